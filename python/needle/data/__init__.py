"""Data sets, loaders and transforms: what stands between files and batches of Tensors."""

from .data_basic import DataLoader, Dataset
from .data_transforms import RandomCrop, RandomFlipHorizontal, Transform
from .datasets import (
    CIFAR10Dataset,
    Corpus,
    Dictionary,
    DigitsDataset,
    FashionMNISTDataset,
    MNISTDataset,
    NDArrayDataset,
    batchify,
    get_batch,
    load_digits,
)
from .download import fetch
from .errors import DataFileError, DataMissingError, DownloadError
from .idx import parse_mnist
from .loader_workers import TransformedDataset
from .paths import data_dir
from .transforms_more import Compose, Normalize, RandomErasing, ToCHW, ToHWC

__all__ = [
    "CIFAR10Dataset",
    "Compose",
    "Corpus",
    "DataFileError",
    "DataLoader",
    "DataMissingError",
    "Dataset",
    "Dictionary",
    "DigitsDataset",
    "DownloadError",
    "FashionMNISTDataset",
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
    "batchify",
    "data_dir",
    "fetch",
    "get_batch",
    "load_digits",
    "parse_mnist",
]
