"""The data sets that needle reads."""

from .digits_dataset import load_digits
from .mnist_dataset import MNISTDataset
from .ndarray_dataset import NDArrayDataset

# >>> hw3
# isort: split
from .digits_dataset import DigitsDataset
from .fashion_mnist_dataset import FashionMNISTDataset

# <<< hw3
# >>> hw4
# isort: split
from .cifar10_dataset import CIFAR10Dataset
from .ptb_dataset import Corpus, Dictionary, batchify, get_batch

# <<< hw4

__all__ = [
    "MNISTDataset",
    "NDArrayDataset",
    "load_digits",
]

# >>> hw3
__all__ += ["DigitsDataset", "FashionMNISTDataset"]
# <<< hw3
# >>> hw4
__all__ += ["CIFAR10Dataset", "Corpus", "Dictionary", "batchify", "get_batch"]
# <<< hw4
