"""Data sets, loaders and transforms: what stands between files and batches of Tensors."""

from .data_basic import DataLoader, Dataset
from .data_transforms import RandomCrop, RandomFlipHorizontal, Transform
from .datasets import MNISTDataset, NDArrayDataset, load_digits
from .download import fetch
from .errors import DataFileError, DataMissingError, DownloadError
from .idx import parse_mnist
from .loader_workers import TransformedDataset
from .paths import data_dir
from .transforms_more import Compose, Normalize, RandomErasing, ToCHW, ToHWC

# >>> hw3
# isort: split
from .datasets import DigitsDataset, FashionMNISTDataset

# <<< hw3
# >>> hw4
# isort: split
from .datasets import CIFAR10Dataset, Corpus, Dictionary, batchify, get_batch

# <<< hw4

__all__ = [
    "Compose",
    "DataFileError",
    "DataLoader",
    "DataMissingError",
    "Dataset",
    "DownloadError",
    "MNISTDataset",
    "NDArrayDataset",
    "Normalize",
    "RandomCrop",
    "RandomErasing",
    "RandomFlipHorizontal",
    "ToCHW",
    "ToHWC",
    "Transform",
    "TransformedDataset",
    "data_dir",
    "fetch",
    "load_digits",
    "parse_mnist",
]

# >>> hw3
__all__ += ["DigitsDataset", "FashionMNISTDataset"]
# <<< hw3
# >>> hw4
__all__ += ["CIFAR10Dataset", "Corpus", "Dictionary", "batchify", "get_batch"]
# <<< hw4
