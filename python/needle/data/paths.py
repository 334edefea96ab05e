"""Where data sets live: one folder, the same one from whatever folder a script is started."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import DataMissingError

PACKAGE = Path(__file__).resolve().parents[1]  # the folder of needle itself


def data_dir() -> Path:
    """The folder that holds one folder per data set (absolute; it need not exist yet).

    In this order: the environment variable NEEDLE_DATA_DIR; `data/` of the course tree that this needle lies in;
    `needle/` in the user's cache folder (XDG_CACHE_HOME, or ~/.cache).
    """
    chosen = os.environ.get("NEEDLE_DATA_DIR")
    if chosen:
        return Path(chosen).expanduser().resolve()
    tree = course_tree()
    if tree is not None:
        return tree / "data"
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser().resolve() / "needle"


def course_tree() -> Path | None:
    """The root of the course tree around this package, or None when needle was installed as a wheel."""
    root = PACKAGE.parents[1]
    in_a_tree = PACKAGE.parent.name == "python" and ((root / ".needle").is_dir() or (root / "pyproject.toml").is_file())
    return root if in_a_tree else None


def existing_file(path: str | os.PathLike[str], owner: str) -> Path:
    """The path itself if a file is there; otherwise a DataMissingError that names `owner` and the absolute path."""
    path = Path(path)
    if not path.is_file():
        raise DataMissingError(
            f"{owner}: no file {path.absolute()}; ndl.data.fetch(NAME) gets a data set and returns its folder"
        )
    return path
