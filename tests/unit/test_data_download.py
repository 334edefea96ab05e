"""Where data lies, fetching it from a server that the tests run on this machine, and unpacking archives."""

from __future__ import annotations

import builtins
import contextlib
import gzip
import hashlib
import http.server
import io
import os
import pickle
import struct
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import needle as ndl
import numpy as np
import pytest
from needle.data import DataFileError, download, fetch
from needle.data.archive import extract_tar

# ---- where data lies


def test_data_dir_is_the_one_that_is_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NEEDLE_DATA_DIR", "~/sets")
    assert ndl.data.data_dir() == tmp_path / "sets"


def test_data_dir_does_not_depend_on_the_start_folder_U103(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NEEDLE_DATA_DIR", raising=False)
    before = ndl.data.data_dir()
    monkeypatch.chdir(tmp_path)
    assert ndl.data.data_dir() == before
    assert before.is_absolute()


@pytest.mark.parametrize("mark", [".needle/manifest", "pyproject.toml", None])
def test_data_dir_is_in_the_course_tree_or_the_cache(
    mark: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NEEDLE_DATA_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(ndl.data.paths, "PACKAGE", tmp_path / "tree" / "python" / "needle")
    if mark:
        (tmp_path / "tree" / mark).parent.mkdir(parents=True)
        (tmp_path / "tree" / mark).touch()
    assert ndl.data.data_dir() == tmp_path / ("tree/data" if mark else "cache/needle")


# ---- a data set and its server


def idx(*shape: int) -> bytes:
    """A gzipped IDX file of ones."""
    return gzip.compress(
        struct.pack(f">{1 + len(shape)}I", 0x800 + len(shape), *shape) + bytes([1]) * int(np.prod(shape))
    )


FILES = {
    "train-images-idx3-ubyte.gz": idx(3, 2, 2),
    "train-labels-idx1-ubyte.gz": idx(3),
    "t10k-images-idx3-ubyte.gz": idx(1, 2, 2),
    "t10k-labels-idx1-ubyte.gz": idx(1),
}


def md5(content: bytes) -> str:
    return "md5:" + hashlib.md5(content, usedforsecurity=False).hexdigest()


class Server(http.server.ThreadingHTTPServer):
    """Serves `contents`; remembers what was asked; breaks off the next transfers after `break_after` bytes."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.contents: dict[str, bytes] = {}
        self.asked: list[tuple[str, str | None]] = []
        self.break_after: list[int] = []
        self.ranges = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        name, wanted = self.path[1:], self.headers.get("Range")
        self.server.asked.append((name, wanted))
        content = self.server.contents.get(name)
        if content is None:
            self.send_error(404)
            return
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and self.server.ranges else 0
        if start >= len(content):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.send_header("Content-Encoding", "x-gzip")  # what Apache says of a .gz: it must be kept as it lies there
        self.end_headers()
        end = start + self.server.break_after.pop(0) if self.server.break_after else len(content)
        self.wfile.write(content[start:end])

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    pytest.importorskip("pooch")
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def mnist(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """ "mnist" is four small files on the server; returns the folder that `fetch` should put them in."""
    server.contents = dict(FILES)
    remote = {name: md5(content) for name, content in FILES.items()}
    offer(monkeypatch, "mnist", server, remote=remote)
    monkeypatch.setenv("NEEDLE_DATA_DIR", str(tmp_path / "sets"))
    return tmp_path / "sets" / "mnist"


def offer(monkeypatch: pytest.MonkeyPatch, name: str, server: Server, **changes: Any) -> None:
    source = replace(download.SOURCES[name], **{"mirrors": (server.url,), **changes})
    monkeypatch.setitem(download.SOURCES, name, source)
    monkeypatch.delenv("NEEDLE_DATA_MIRROR", raising=False)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_fetch_downloads_once(server: Server, mnist: Path) -> None:
    assert fetch("mnist") == mnist
    assert contents(mnist) == FILES, "byte for byte, and nothing else is left"
    fetch("mnist")
    assert len(server.asked) == 4


def test_fetch_puts_the_files_where_it_is_told(server: Server, mnist: Path, tmp_path: Path) -> None:
    assert fetch("mnist", tmp_path / "elsewhere") == tmp_path / "elsewhere"
    assert contents(tmp_path / "elsewhere") == FILES


def test_fetch_gets_only_what_is_missing_or_damaged_U103(server: Server, mnist: Path) -> None:
    fetch("mnist")
    server.asked.clear()
    (mnist / "t10k-labels-idx1-ubyte.gz").unlink()
    path = mnist / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-6])
    fetch("mnist")
    assert contents(mnist) == FILES
    assert sorted(name for name, _ in server.asked) == ["t10k-labels-idx1-ubyte.gz", "train-images-idx3-ubyte.gz"]


def test_fetch_accepts_the_same_data_packed_differently(server: Server, mnist: Path) -> None:
    mnist.mkdir(parents=True)
    for name, content in FILES.items():
        (mnist / name).write_bytes(gzip.compress(gzip.decompress(content), compresslevel=1, mtime=1))
    fetch("mnist")
    assert server.asked == []


def test_fetch_goes_on_where_a_broken_transfer_ended(server: Server, mnist: Path) -> None:
    server.break_after = [10]
    fetch("mnist")
    name = "train-images-idx3-ubyte.gz"
    assert server.asked[:2] == [(name, None), (name, "bytes=10-")]
    assert contents(mnist) == FILES


def test_fetch_goes_on_in_another_run(server: Server, mnist: Path) -> None:
    server.break_after = [9, 0]
    with pytest.raises(OSError, match="no mirror gave train-images"):
        fetch("mnist")
    assert (mnist / "train-images-idx3-ubyte.gz.part").stat().st_size == 9
    assert not (mnist / "train-images-idx3-ubyte.gz").exists()
    server.asked.clear()
    fetch("mnist")
    assert server.asked[0][1] == "bytes=9-"
    assert contents(mnist) == FILES


def test_fetch_starts_over_where_a_server_cannot_go_on(server: Server, mnist: Path) -> None:
    server.ranges = False
    server.break_after = [10]
    fetch("mnist")
    assert contents(mnist) == FILES


@pytest.mark.parametrize("part", [b"<html>", b"x" * 1000])
def test_fetch_recovers_from_a_part_of_something_else(part: bytes, server: Server, mnist: Path) -> None:
    mnist.mkdir(parents=True)
    (mnist / "train-images-idx3-ubyte.gz.part").write_bytes(part)
    fetch("mnist")
    assert contents(mnist) == FILES


def test_fetch_tries_the_next_mirror(server: Server, mnist: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, content in FILES.items():
        server.contents["false/" + name] = content[::-1]
    mirrors = ("http://127.0.0.1:1/", server.url + "absent/", server.url + "false/", server.url)
    offer(monkeypatch, "mnist", server, mirrors=mirrors)
    fetch("mnist")
    assert contents(mnist) == FILES


def test_fetch_asks_the_mirror_of_the_course_first(
    server: Server, mnist: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.contents = {prefix + name: content for prefix in ("", "course/") for name, content in FILES.items()}
    monkeypatch.setenv("NEEDLE_DATA_MIRROR", server.url + "course")
    fetch("mnist")
    assert {name for name, _ in server.asked} == {"course/" + name for name in FILES}


def test_fetch_does_not_keep_what_has_another_checksum(server: Server, mnist: Path) -> None:
    server.contents["train-images-idx3-ubyte.gz"] = idx(2, 2, 2)  # right in itself, but not what was published
    with pytest.raises(ndl.data.DownloadError) as caught:
        fetch("mnist")
    assert list(mnist.iterdir()) == []
    assert str(mnist / "train-images-idx3-ubyte.gz") in str(caught.value), "the way to do it by hand"
    assert "\n" not in str(caught.value)


def test_fetch_stops_an_endless_file(server: Server, mnist: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "MAX_BYTES", 20)
    with pytest.raises(ndl.data.DownloadError, match="more than"):
        fetch("mnist")


def test_fetch_offline_says_where_to_put_the_file(mnist: Path, monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    offer(monkeypatch, "mnist", server, mirrors=("http://127.0.0.1:1/",))
    with pytest.raises(ndl.data.DownloadError) as caught:
        fetch("mnist")
    assert f"put it at {mnist / 'train-images-idx3-ubyte.gz'}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_fetch_says_what_the_server_answered(server: Server, mnist: Path) -> None:
    server.contents.clear()
    with pytest.raises(ndl.data.DownloadError, match="404"):
        fetch("mnist")


def test_a_short_answer_is_an_error_whatever_urllib3_thinks_of_it(tmp_path: Path) -> None:
    class Short:
        headers: ClassVar = {"Content-Length": "10"}
        raw = property(lambda self: self)

        def stream(self, *args: Any, **kwargs: Any) -> list[bytes]:
            return [b"abc", b"def"]

    (tmp_path / "file.part").write_bytes(b"zz")
    with pytest.raises(ConnectionError, match="ended after 8 of 12 bytes"):
        download.ResumingDownloader(tmp_path / "file.part").write(Short(), 2)
    assert (tmp_path / "file.part").read_bytes() == b"zzabcdef"


def no_pooch(monkeypatch: pytest.MonkeyPatch) -> None:
    found = builtins.__import__

    def imports(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "pooch":
            raise ImportError(name)
        return found(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", imports)


def test_fetch_without_pooch_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_pooch(monkeypatch)
    with pytest.raises(
        ImportError, match=r"run 'pip install pooch', or get the file by hand and put it at .*train-images"
    ):
        fetch("mnist", tmp_path)


def test_fetch_of_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="fetch: no data set 'imagenet'; there are mnist, fashion_mnist, cifar10, ptb"):
        fetch("imagenet")


def test_fetch_names_the_text_files_as_the_course_does(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {"train.txt": b"a b\n", "valid.txt": b"b\n", "test.txt": b"c\n"}
    server.contents = {"ptb." + name: text for name, text in texts.items()}
    offer(monkeypatch, "ptb", server, remote={name: md5(text) for name, text in texts.items()})
    monkeypatch.setenv("NEEDLE_DATA_DIR", str(tmp_path))
    assert contents(fetch("ptb")) == texts
    (tmp_path / "ptb" / "valid.txt").write_bytes(b"")
    assert contents(fetch("ptb")) == texts


# ---- archives

CIFAR = {
    name: pickle.dumps({b"data": np.full((2, 3072), i, np.uint8), b"labels": [i, i]}, 2)
    for i, name in enumerate([f"data_batch_{k}" for k in range(1, 6)] + ["test_batch"])
}


def tar(members: dict[str, bytes | tarfile.TarInfo], mode: str = "w:gz") -> bytes:
    """An archive of files, or of whatever a TarInfo describes."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as archive:
        for name, content in members.items():
            if isinstance(content, tarfile.TarInfo):
                archive.addfile(content)
            else:
                info = tarfile.TarInfo(name)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    return packed.getvalue()


def special(name: str, kind: bytes, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


@pytest.fixture
def cifar(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """ "cifar10" is a small archive on the server; returns the folder that `fetch` should unpack it to."""
    folder = special("cifar-10-batches-py", tarfile.DIRTYPE)
    members = {"cifar-10-batches-py/" + name: content for name, content in CIFAR.items()}
    packed = tar({"": folder, **members, "cifar-10-batches-py/readme.html": b"not wanted"})
    server.contents = {"cifar-10-python.tar.gz": packed}
    offer(monkeypatch, "cifar10", server, remote={"cifar-10-python.tar.gz": md5(packed)})
    monkeypatch.setenv("NEEDLE_DATA_DIR", str(tmp_path))
    return tmp_path / "cifar-10-batches-py"


def test_fetch_unpacks_and_the_data_set_reads_it(server: Server, cifar: Path) -> None:
    assert fetch("cifar10") == cifar
    assert contents(cifar) == CIFAR
    assert ndl.data.CIFAR10Dataset(cifar, train=True).y.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


def test_fetch_unpacks_again_what_is_missing_or_damaged_U103(
    server: Server, cifar: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch("cifar10")
    (cifar / "data_batch_3").unlink()
    (cifar / "test_batch").write_bytes(CIFAR["test_batch"][:-20])
    fetch("cifar10")
    assert contents(cifar) == CIFAR
    assert len(server.asked) == 1, "the archive was still there"
    (cifar / "data_batch_1").unlink()
    no_pooch(monkeypatch)  # which is for downloads only
    fetch("cifar10")
    assert contents(cifar) == CIFAR


def test_fetch_downloads_the_archive_again_if_it_is_damaged(server: Server, cifar: Path) -> None:
    archive = fetch("cifar10").parent / "cifar-10-python.tar.gz"
    archive.write_bytes(archive.read_bytes()[:50])
    (cifar / "data_batch_3").unlink()
    fetch("cifar10")
    assert contents(cifar) == CIFAR


HOSTILE: dict[str, tuple[dict[str, Any], str]] = {
    "up and out": ({"../out": b"x", "x/a": b"a"}, "'../out', a path that leads out"),
    "absolute": ({"/tmp/out": b"x", "x/a": b"a"}, "a path that leads out"),
    "backslashes": ({"..\\out": b"x", "x/a": b"a"}, "a path that leads out"),
    "a symbolic link": ({"a": special("a", tarfile.SYMTYPE, "/etc/passwd")}, "neither a file nor a folder"),
    "a hard link": ({"b": b"b", "a": special("a", tarfile.LNKTYPE, "b")}, "neither a file nor a folder"),
    "a device": ({"a": special("a", tarfile.CHRTYPE)}, "neither a file nor a folder"),
    "a size bomb": ({"a": b"a", "big": bytes(2001)}, "more than 2000 bytes"),
    "many small files": ({"a": b"a", **{str(i): bytes(100) for i in range(21)}}, "more than 2000 bytes"),
    "a name twice": ({"x/a": b"a", "y/a": b"b"}, "holds a twice"),
    "a file that is not there": ({"b": b"b"}, "lacks a"),
    "a folder instead": ({"a": special("a", tarfile.DIRTYPE)}, "lacks a"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_extract_refuses_and_leaves_the_folder_as_it_was(case: str, tmp_path: Path) -> None:
    members, message = HOSTILE[case]
    (tmp_path / "hostile.tar.gz").write_bytes(tar(members))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_bytes(b"before")
    with pytest.raises(DataFileError) as caught:
        extract_tar(tmp_path / "hostile.tar.gz", tmp_path / "in", ["a"], max_bytes=2000)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert contents(tmp_path / "in") == {"a": b"before"}
    assert sorted(os.listdir(tmp_path)) == ["hostile.tar.gz", "in"]


def test_extract_finds_a_cut_archive(tmp_path: Path) -> None:
    whole = tar({"a": os.urandom(5000), "b": b"b"})
    for size in (0, 20, len(whole) // 2):
        (tmp_path / "cut.tar.gz").write_bytes(whole[:size])
        with pytest.raises(DataFileError, match=r"extract: .*cut\.tar\.gz is damaged"):
            extract_tar(tmp_path / "cut.tar.gz", tmp_path / "in", ["a", "b"])


# ---- the face of the package


def test_importing_data_imports_nothing_that_is_optional() -> None:
    code = "import needle.data, sys; print([m for m in ('pooch', 'requests', 'rich', 'urllib3') if m in sys.modules])"
    environment = {**os.environ, "PYTHONPATH": str(Path(ndl.data.__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_public_names_resolve() -> None:
    assert [name for name in ndl.data.__all__ if not hasattr(ndl.data, name)] == []


@contextlib.contextmanager
def captured_bar(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    written = io.StringIO()
    monkeypatch.setattr(written, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", written)
    yield written


def test_progress_is_silent_unless_a_person_watches(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    pytest.importorskip("rich")
    with download.progress("digits", 10, 4) as advance:
        advance(6)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setenv("TERM", "xterm")
    with captured_bar(monkeypatch) as written, download.progress("digits", 10, 4) as advance:
        advance(6)
    assert "digits" in written.getvalue()
