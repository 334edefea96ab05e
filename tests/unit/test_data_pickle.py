"""CIFAR's pickles: honest ones of every protocol and NumPy are read, hostile ones are refused and do nothing."""

from __future__ import annotations

import os
import pickle
import pickletools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import needle as ndl
import numpy as np
import pytest
from needle.data import safe_pickle
from needle.data.safe_pickle import load_arrays

DATA = (np.arange(4 * 3072) * 31 % 251).astype(np.uint8).reshape(4, 3072)


def batch(rows: slice = slice(None)) -> dict[bytes, Any]:
    labels = [9, 0, 3, 3][rows]
    return {
        b"batch_label": b"a batch",
        b"labels": labels,
        b"data": DATA[rows],
        b"filenames": [b"%d.png" % i for i in labels],
        b"": b"",
    }


def python2_pickle() -> bytes:
    """What Python 2 and an old NumPy wrote in 2009: text is bytes, and NumPy's core is called numpy.core."""
    data = DATA[:1].tobytes()
    return (
        b"\x80\x02}(U\x06labelsK\x05\x85U\x04data"
        b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
        b"(K\x01K\x01M\x00\x0c\x86cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89"
        b"T" + len(data).to_bytes(4, "little") + data + b"tbu."
    )


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_load_arrays_reads_every_protocol(protocol: int, tmp_path: Path) -> None:
    (tmp_path / "batch").write_bytes(pickle.dumps(batch(), protocol))
    content = load_arrays(tmp_path / "batch", "cifar10")
    assert content.keys() == batch().keys()
    np.testing.assert_array_equal(content[b"data"], DATA)
    assert content[b"data"].flags.writeable
    assert content[b"labels"] == [9, 0, 3, 3]
    assert content[b"filenames"] == batch()[b"filenames"]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_load_arrays_reads_numbers_of_numpy(protocol: int, tmp_path: Path) -> None:
    labels = [np.int64(9), np.uint8(3), np.float32(0.5)]
    (tmp_path / "batch").write_bytes(pickle.dumps({b"labels": labels}, protocol))
    assert load_arrays(tmp_path / "batch", "cifar10")[b"labels"] == labels


@pytest.mark.parametrize(("old", "new"), [(b"numpy._core", b"numpy.core"), (b"numpy.core", b"numpy._core")])
def test_load_arrays_reads_what_either_numpy_wrote(old: bytes, new: bytes, tmp_path: Path) -> None:
    written = pickle.dumps({b"data": DATA}, 2)
    (tmp_path / "batch").write_bytes(written.replace(old, new))
    np.testing.assert_array_equal(load_arrays(tmp_path / "batch", "cifar10")[b"data"], DATA)


def test_load_arrays_reads_what_python_2_wrote(tmp_path: Path) -> None:
    (tmp_path / "batch").write_bytes(python2_pickle())
    content = load_arrays(tmp_path / "batch", "cifar10")
    assert content[b"labels"] == (5,)
    np.testing.assert_array_equal(content[b"data"], DATA[:1])


@pytest.mark.parametrize("dtype", ["<f4", ">f8", "<i8", ">i2", "|b1", "<c16"])
@pytest.mark.parametrize("protocol", [2, 5])
def test_load_arrays_keeps_dtype_and_layout(dtype: str, protocol: int, tmp_path: Path) -> None:
    grid = np.arange(24).reshape(2, 3, 4).astype(dtype)
    arrays = {b"c": grid, b"fortran": np.asfortranarray(grid), b"turned": grid.transpose(1, 0, 2), b"empty": grid[:0]}
    (tmp_path / "arrays").write_bytes(pickle.dumps(arrays, protocol))
    content = load_arrays(tmp_path / "arrays", "cifar10")
    for name, array in arrays.items():
        assert content[name].dtype == array.dtype
        np.testing.assert_array_equal(content[name], array)


class Calls:
    """Pickles to a call of any function."""

    def __init__(self, function: Callable, *args: Any) -> None:
        self.call = function, args

    def __reduce__(self) -> tuple:
        return self.call


def raw(*parts: bytes) -> bytes:
    return b"\x80\x02" + b"".join(parts) + b"."


DTYPE = b"cnumpy\ndtype\nU\x02u1\x85R"
ARRAY = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
HOSTILE = {
    "os.system": pickle.dumps({b"data": Calls(os.system, "touch stolen")}),
    "open": pickle.dumps({b"data": Calls(open, "stolen", "w")}),
    "eval": pickle.dumps({b"data": Calls(eval, "open('stolen', 'w')")}),
    "numpy.save": pickle.dumps({b"data": Calls(np.save, "stolen", 1)}),
    "a dotted name": b"\x80\x04\x8c\x05numpy\x8c\x10ndarray.__base__\x93.",
    "objects in an array": pickle.dumps({b"data": np.array([None, 1], object)}),
    "a dtype with fields": pickle.dumps({b"data": np.zeros(2, [("a", "u1")])}),
    "a wide void dtype": raw(b"}U\x01acnumpy\ndtype\nU\x03V99\x85Rs"),
    "fields through the state": raw(b"}U\x01a", DTYPE, b"(K\x03U\x01|NU\x01a\x85}K\xffK\xffK\x00tbs"),
    "more shape than bytes": raw(b"}U\x01a", ARRAY, b"(K\x01M\xff\xff\x85", DTYPE, b"\x89U\x01xtbs"),
    "a negative shape": raw(
        b"}U\x01a", ARRAY, b"(K\x01J\xff\xff\xff\xffJ\xff\xff\xff\xff\x86", DTYPE, b"\x89U\x01xtbs"
    ),
    "bytes of a size": raw(b"}U\x01ac__builtin__\nbytes\nJ\xff\xff\xff\x7f\x85Rs"),
    "attributes of a function": raw(b"c_codecs\nencode\n}U\x08__call__U\x01xsb"),
    "slots of a function": raw(b"c_codecs\nencode\n(N}X\x08\x00\x00\x00functionU\x01xstb"),
    "bytes in another encoding": raw(b"}U\x01ac_codecs\nencode\nX\x01\x00\x00\x00aU\x06utf-16\x86Rs"),
    "attributes of an admitted name": raw(b"cnumpy\nndarray\n}U\x01aU\x01bsb"),
    "a memo bomb": raw(b"}r\xff\xff\xff\x7f"),
    "a persistent id": raw(b"Px\n"),
    "an array that never comes": raw(b"}U\x01a", ARRAY, b"s"),
    "no dictionary": pickle.dumps([1, 2]),
    "a cut file": pickle.dumps(batch())[:-100],
    "nothing": b"",
    "no pickle": b"<html>moved</html>",
}


@pytest.mark.parametrize("case", HOSTILE)
def test_load_arrays_refuses(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("batch").write_bytes(HOSTILE[case])
    with pytest.raises(ndl.data.DataFileError, match=r"^cifar10: batch ") as caught:
        load_arrays("batch", "cifar10")
    assert "\n" not in str(caught.value)
    assert os.listdir(tmp_path) == ["batch"], "the pickle was obeyed"
    Path("batch").write_bytes(pickle.dumps(batch(), 2))
    assert load_arrays("batch", "cifar10")[b"filenames"] == batch()[b"filenames"], "it changed what comes after it"


def test_load_arrays_names_what_a_pickle_asks_for(tmp_path: Path) -> None:
    (tmp_path / "batch").write_bytes(HOSTILE["eval"])
    with pytest.raises(ndl.data.DataFileError, match=r"asks for builtins\.eval"):
        load_arrays(tmp_path / "batch", "cifar10")


def test_load_arrays_says_what_it_found_instead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for case, message in {"no dictionary": "a list and no dictionary", "a memo bomb": "memo index 2147483647"}.items():
        (tmp_path / "batch").write_bytes(HOSTILE[case])
        with pytest.raises(ndl.data.DataFileError, match=message):
            load_arrays(tmp_path / "batch", "cifar10")
    monkeypatch.setattr(safe_pickle, "MAX_BYTES", 0)
    with pytest.raises(ndl.data.DataFileError, match="larger than 0 MiB"):
        load_arrays(tmp_path / "batch", "cifar10")


def test_hostile_pickles_are_what_they_claim() -> None:
    for case, content in HOSTILE.items():
        if case not in ("a cut file", "nothing", "no pickle"):
            assert list(pickletools.genops(content)), case


def write_cifar(folder: Path) -> Path:
    """A small `cifar-10-batches-py`: training batches of one image each, in the order 0 1 2 3 0; two test images."""
    for i in range(5):
        (folder / f"data_batch_{i + 1}").write_bytes(pickle.dumps(batch(slice(i % 4, i % 4 + 1)), 2))
    (folder / "test_batch").write_bytes(pickle.dumps(batch(slice(1, 3)), 2))
    return folder


def test_cifar10_is_bytes_over_255_in_planes(tmp_path: Path) -> None:
    training = ndl.data.CIFAR10Dataset(write_cifar(tmp_path), train=True)
    test = ndl.data.CIFAR10Dataset(str(tmp_path), train=False)
    assert (training.X.shape, training.X.dtype, test.X.shape) == ((5, 3, 32, 32), np.float32, (2, 3, 32, 32))
    np.testing.assert_array_equal(training.y, [9, 0, 3, 3, 9])
    np.testing.assert_array_equal(test.y, [0, 3])
    # red comes first: plane c, row i, column j is byte 1024 c + 32 i + j
    assert training.X[2, 1, 5, 7] == np.float32(DATA[2, 1024 + 5 * 32 + 7]) / np.float32(255)


def test_cifar10_items_and_index_arrays(tmp_path: Path) -> None:
    dataset = ndl.data.CIFAR10Dataset(write_cifar(tmp_path), train=True)
    item = dataset[3]
    assert isinstance(item, tuple)
    assert item[0].shape == (3, 32, 32)
    images, labels = dataset[np.array([4, 2])]
    np.testing.assert_array_equal(images, dataset.X[[4, 2]])
    np.testing.assert_array_equal(labels, [9, 3])
    assert len(dataset) == 5


def test_cifar10_transforms_see_channels_last(tmp_path: Path) -> None:
    flip = ndl.data.RandomFlipHorizontal(p=1)
    dataset = ndl.data.CIFAR10Dataset(write_cifar(tmp_path), train=False, transforms=[flip])
    np.testing.assert_array_equal(dataset[1][0], dataset.X[1][:, :, ::-1])
    np.testing.assert_array_equal(dataset[0:2][0], dataset.X[:, :, :, ::-1])


@pytest.mark.parametrize(
    "change",
    [
        {b"labels": [1, 2]},
        {b"labels": [1, 2, 3, 10]},
        {b"data": DATA[:, :100]},
        {b"data": DATA.astype("i4")},
        {b"data": 1},
    ],
)
def test_cifar10_refuses_a_file_of_other_contents(change: dict, tmp_path: Path) -> None:
    (tmp_path / "test_batch").write_bytes(pickle.dumps({**batch(), **change}, 2))
    with pytest.raises(ndl.data.DataFileError, match=r"cifar10: .*test_batch has no"):
        ndl.data.CIFAR10Dataset(tmp_path, train=False)


def test_cifar10_names_the_file_that_is_not_there_U103(tmp_path: Path) -> None:
    (write_cifar(tmp_path) / "data_batch_4").unlink()
    with pytest.raises(FileNotFoundError, match=r"cifar10: no file .*data_batch_4; ndl\.data\.fetch"):
        ndl.data.CIFAR10Dataset(tmp_path, train=True)
