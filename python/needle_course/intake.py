"""Takes what was handed in: the files that the manifest names, out of a folder or a zip, and nothing else.

Nothing of a submission is run here, unpacked as a whole, or followed to where a link points. What is not asked for is
ignored, however odd it is; what is asked for has to be a plain file of text, not too large.
"""

from __future__ import annotations

import stat
import zipfile
from collections import Counter
from collections.abc import Collection
from pathlib import Path, PurePosixPath

from .errors import UserError

MOST_ENTRIES = 20_000  # of a zip: somebody's environment with it is fine, a bomb of names is not
LARGEST_FILE = 10 << 20  # bytes
LARGEST_SUM = 50 << 20
HIGHEST_RATIO = 200  # of a file's size to what it takes in the zip
IGNORED_FOLDERS = {"__MACOSX", ".git", ".venv"}


def take(path: Path, wanted: Collection[str]) -> dict[str, bytes]:
    """{relative path: content} of the wanted files that a folder or a zip holds, at its top or in its only folder.

    UserError, one line that names the file, if it holds none of them, or holds something that is not to be trusted.
    """
    if not path.exists():
        raise UserError(f"{path}: no such file or folder; check the spelling")
    contents = from_folder(path, wanted) if path.is_dir() else from_zip(path, wanted)
    if not contents:
        some = ", ".join(sorted(wanted)[:3])
        raise UserError(
            f"{path}: holds none of the files of this stage ({some}, …); hand in a tree or what `pack` made"
        )
    if sum(map(len, contents.values())) > LARGEST_SUM:
        raise UserError(f"{path}: its files are larger than {LARGEST_SUM >> 20} MiB together; hand in sources only")
    for name, content in contents.items():
        refuse_what_is_no_text(path, name, content)
    return contents


def refuse_what_is_no_text(path: Path, name: str, content: bytes) -> None:
    if b"\0" in content:
        raise UserError(f"{path}: {name} holds a NUL byte; save it as UTF-8 text")
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: {name} is not UTF-8 at byte {error.start}; save it as UTF-8") from None


# ---- folders --------------------------------------------------------------------------------------------------------


def holds_any(folder: Path, wanted: Collection[str]) -> bool:
    """Whether a folder, or the only folder in it, holds one of the wanted files."""
    return any((top / name).is_file() for top in tops(folder) for name in wanted)


def tops(folder: Path) -> list[Path]:
    below = [entry for entry in sorted(folder.iterdir()) if entry.is_dir() and entry.name not in IGNORED_FOLDERS]
    return [folder, *(below if len(below) == 1 else [])]


def from_folder(folder: Path, wanted: Collection[str]) -> dict[str, bytes]:
    for top in tops(folder):
        contents = {name: read_plain(top, name) for name in wanted if (top / name).exists()}
        if contents:
            return contents
    return {}


def read_plain(top: Path, name: str) -> bytes:
    """The content of top/name; no part of the name may be a link."""
    path = top
    for part in PurePosixPath(name).parts:
        path = path / part
        if path.is_symlink():
            raise UserError(f"{path}: is a link; hand in the file itself")
    if not path.is_file():
        raise UserError(f"{path}: is no plain file; hand in the file itself")
    if path.stat().st_size > LARGEST_FILE:
        raise UserError(f"{path}: is larger than {LARGEST_FILE >> 20} MiB; hand in sources only")
    return path.read_bytes()


# ---- zips -----------------------------------------------------------------------------------------------------------


def from_zip(path: Path, wanted: Collection[str]) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(path) as archive:
            return from_archive(path, archive, wanted)
    except (zipfile.BadZipFile, NotImplementedError, EOFError, ValueError, OSError) as error:
        raise UserError(f"{path}: cannot be read as a zip ({error}); make it anew with `pack`") from None
    except RuntimeError as error:  # how zipfile says that it wants a password
        raise UserError(f"{path}: {error}; make it anew without a password") from None


def from_archive(path: Path, archive: zipfile.ZipFile, wanted: Collection[str]) -> dict[str, bytes]:
    entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    if len(entries) > MOST_ENTRIES:
        raise UserError(f"{path}: holds {len(entries)} files; hand in sources only")
    for entry in entries:
        refuse_what_leaves(path, entry.filename)
    names = {plain(entry.filename): entry for entry in entries}
    top = common_top(names, wanted)
    copies = Counter(plain(entry.filename).casefold() for entry in entries)
    found: dict[str, bytes] = {}
    for name in wanted:
        if copies[(top + name).casefold()] > 1:
            raise UserError(f"{path}: holds {name} more than once; make it anew with `pack`")
        if top + name in names:
            found[name] = read_entry(path, archive, names[top + name])
    return found


def plain(name: str) -> str:
    return "/".join(part for part in name.replace("\\", "/").split("/") if part not in ("", "."))


def refuse_what_leaves(path: Path, name: str) -> None:
    """No entry may point out of the folder that it would be unpacked in, whether or not we would unpack it."""
    slashed = name.replace("\\", "/")
    if slashed.startswith("/") or slashed[1:2] == ":" or ".." in slashed.split("/"):
        raise UserError(f"{path}: holds {name[:80]!r}, which leaves its folder; make it anew with `pack`")


def common_top(names: Collection[str], wanted: Collection[str]) -> str:
    """ "" or "folder/": where in the archive the wanted files are."""
    tops = {name.split("/")[0] + "/" for name in names if "/" in name} - {f"{name}/" for name in IGNORED_FOLDERS}
    places = ["", *(tops if len(tops) == 1 else [])]
    return max(places, key=lambda place: sum(place + name in names for name in wanted))


def read_entry(path: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    mode = entry.external_attr >> 16
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        raise UserError(f"{path}: {entry.filename} is a link or no plain file; hand in the file itself")
    if entry.file_size > 1 << 16 and entry.file_size > HIGHEST_RATIO * max(1, entry.compress_size):
        raise UserError(f"{path}: {entry.filename} is packed suspiciously small; make it anew with `pack`")
    with archive.open(entry) as file:
        content = file.read(LARGEST_FILE + 1)  # what the entry says about its size may be a lie
    if len(content) > LARGEST_FILE:
        raise UserError(f"{path}: {entry.filename} is larger than {LARGEST_FILE >> 20} MiB; hand in sources only")
    return content
