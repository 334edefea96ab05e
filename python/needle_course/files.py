"""Files of a tree: which ones there are, what is in them, and writing them whole or not at all."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from .errors import UserError

# what tools make, and what is too big or not ours to look into: never saved, scanned or packed
PASSED_AT_TOP = {".venv", "venv", "build", "data", "dist", "out", ".needle"}
PASSED_ANYWHERE = {".git", ".hg", "__pycache__", ".ipynb_checkpoints", ".pytest_cache", ".mypy_cache", ".ruff_cache"}
BUILT = (".so", ".dylib", ".pyc", ".o")
LARGEST = 10 * 2**20  # bytes: sources are smaller, data sets and trained models are not


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def listing(root: Path) -> list[str]:
    """The regular files below root that somebody wrote or was given, as sorted relative paths with '/'."""
    found = []
    for folder, below, names in os.walk(root):
        at_top = Path(folder) == root
        below[:] = [name for name in below if not passed_over(name, at_top)]
        for name in names:
            path = Path(folder, name)
            if path.is_file() and not path.name.endswith(BUILT) and path.stat().st_size <= LARGEST:
                found.append(path.relative_to(root).as_posix())
    return sorted(found)


def passed_over(folder: str, at_top: bool) -> bool:
    return folder in PASSED_ANYWHERE or (at_top and folder in PASSED_AT_TOP)


def read_tree(root: Path) -> dict[str, bytes]:
    """{relative path: content} of every file below root, nothing passed over."""
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def parse_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text.  ValueError, which names the line, for what is no TOML."""
    try:
        import tomllib
    except ModuleNotFoundError:  # Python 3.10
        import tomli as tomllib  # type: ignore[no-redef]
    return tomllib.loads(text)


def differs(path: Path, content: bytes) -> bool:
    """Whether there is no such file, or something else in it."""
    return not path.is_file() or path.read_bytes() != content


def write_whole(path: Path, content: bytes) -> None:
    """Write by a temporary name beside and a rename, so that no reader ever sees half of it; keeps the mode."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        temporary.write_bytes(content)
        if path.exists():
            temporary.chmod(path.stat().st_mode & 0o777 | 0o200)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def existing_folder(path: Path) -> Path:
    """path itself, made absolute; or one line that says what it is instead of a folder."""
    if not path.exists():
        raise UserError(f"{path}: no such folder; check the spelling")
    if not path.is_dir():
        raise UserError(f"{path}: is a file, wanted a folder")
    return path.resolve()
