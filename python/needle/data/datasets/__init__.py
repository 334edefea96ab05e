"""The data sets that needle reads."""

from .cifar10_dataset import CIFAR10Dataset
from .digits_dataset import DigitsDataset, load_digits
from .fashion_mnist_dataset import FashionMNISTDataset
from .mnist_dataset import MNISTDataset
from .ndarray_dataset import NDArrayDataset
from .ptb_dataset import Corpus, Dictionary, batchify, get_batch

__all__ = [
    "CIFAR10Dataset",
    "Corpus",
    "Dictionary",
    "DigitsDataset",
    "FashionMNISTDataset",
    "MNISTDataset",
    "NDArrayDataset",
    "batchify",
    "get_batch",
    "load_digits",
]
