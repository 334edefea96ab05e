"""Taking files out of an archive that is not trusted."""

from __future__ import annotations

import os
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Collection
from pathlib import Path, PurePosixPath

from .errors import DataFileError

MAX_BYTES = 1 << 30  # CIFAR-10 unpacks to 178 MiB


def extract_tar(archive: Path, folder: Path, wanted: Collection[str], max_bytes: int = MAX_BYTES) -> None:
    """Put the files of the archive whose base names are in `wanted` into `folder`: all of them, or none.

    Raises DataFileError, with the folder unchanged, for a damaged archive, for one that lacks a wanted file or holds a
    file twice, for links and devices, for names that lead out of the folder, and beyond `max_bytes` of contents.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".unpacking-", dir=folder) as stage:
        try:
            with tarfile.open(archive) as tar:
                unpack(tar, Path(stage), wanted, max_bytes)
        except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
            raise DataFileError(f"extract: {archive} is damaged ({error}); delete it and fetch it anew") from None
        except DataFileError as error:
            raise DataFileError(f"extract: {archive} {error}") from None
        lacking = sorted(set(wanted) - set(os.listdir(stage)))
        if lacking:
            raise DataFileError(f"extract: {archive} lacks {', '.join(lacking)}")
        for name in wanted:
            os.replace(Path(stage) / name, folder / name)


def unpack(tar: tarfile.TarFile, stage: Path, wanted: Collection[str], max_bytes: int) -> None:
    """Write the wanted files into `stage`; refuse the archive at the first member that no honest one holds."""
    total = 0
    for member in tar:
        total += member.size
        if total > max_bytes:
            raise DataFileError(f"unpacks to more than {max_bytes} bytes")
        name = checked_name(member)
        if name not in wanted or member.isdir():
            continue
        source = tar.extractfile(member)
        if source is None or (stage / name).exists():
            raise DataFileError(f"holds {name} twice")
        with source, (stage / name).open("wb") as target:
            shutil.copyfileobj(source, target)


def checked_name(member: tarfile.TarInfo) -> str:
    """The base name of a plain file or folder inside the archive; a DataFileError for any other member."""
    if not (member.isreg() or member.isdir()):
        raise DataFileError(f"holds {member.name!r}, which is neither a file nor a folder")
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts or "\\" in member.name:
        raise DataFileError(f"holds {member.name!r}, a path that leads out of the folder")
    return path.name
