"""Files of tensors and of whole trainings: what is saved comes back, also bit for bit, and errors are one line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import needle as ndl
import numpy as np
import pytest
from needle import Tensor, nn, optim, serialize

safetensors = pytest.importorskip("safetensors", reason="safetensors is not installed")

DTYPES = ["float32", "float64", "int32", "int64", "uint8", "bool"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.safetensors"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (0, 4)])
def test_tensors_come_back(path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    values = np.random.RandomState(0).uniform(0, 5, shape).astype(dtype)
    ndl.save({"x": Tensor(values, dtype=dtype)}, path)
    x = ndl.load(path)["x"]
    assert isinstance(x, Tensor) and not x.requires_grad and str(x.dtype) == dtype and x.shape == shape
    np.testing.assert_array_equal(x.numpy(), values)


def test_a_saved_file_is_readable_by_whom_the_user_lets_read(path: Path) -> None:
    (path.parent / "plain").touch()
    ndl.save({"x": ndl.ones(2)}, path)
    assert path.stat().st_mode == (path.parent / "plain").stat().st_mode


def test_views_are_saved_as_they_look(path: Path) -> None:
    x = Tensor(np.arange(12).reshape(3, 4), dtype="float32")
    ndl.save([x.transpose(), x[::2], x.broadcast_to((2, 3, 4))], path)
    transposed, stepped, broadcast = ndl.load(path)
    np.testing.assert_array_equal(transposed.numpy(), x.numpy().T)
    np.testing.assert_array_equal(stepped.numpy(), x.numpy()[::2])
    np.testing.assert_array_equal(broadcast.numpy(), [x.numpy()] * 2)


def test_data_around_the_tensors_comes_back(path: Path) -> None:
    data: dict[str, Any] = {
        "epoch": 3,
        "rate": 0.1 + 0.2,
        "extreme": [float("inf"), -1e-320, 2**70],
        "name": "näedle",
        "none": None,
        "flag": True,
        "nested": {"list": [1, [2.5, {}], []], "dotted.name": {"a/b": "c"}},
    }
    ndl.save(data, path)
    assert ndl.load(path) == data
    ndl.save({"n": np.float64(0.5), "i": np.int64(3), 7: (1, 2)}, path)
    assert ndl.load(path) == {"n": 0.5, "i": 3, "7": [1, 2]}


def test_equal_dotted_names_do_not_overwrite_each_other(path: Path) -> None:
    ndl.save({"a": {"b": ndl.ones(1)}, "a.b": ndl.zeros(1)}, path)
    state = ndl.load(path)
    assert (state["a"]["b"].item(), state["a.b"].item()) == (1, 0)


def test_a_state_dict_is_a_plain_safetensors_file(path: Path) -> None:
    from safetensors.numpy import load_file

    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    ndl.save(model.state_dict(), path)
    arrays = load_file(path)
    assert set(arrays) == set(model.state_dict())
    np.testing.assert_array_equal(arrays["modules.0.weight"], model[0].weight.numpy())
    other = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    other.load_state_dict(ndl.load(path))
    np.testing.assert_array_equal(other[0].weight.numpy(), model[0].weight.numpy())


def test_files_from_elsewhere_are_read(path: Path) -> None:
    from safetensors.numpy import save_file

    save_file({"a.b": np.arange(3, dtype="float32")}, path)
    state = ndl.load(path)
    assert list(state) == ["a.b"]
    np.testing.assert_array_equal(state["a.b"].numpy(), [0, 1, 2])


def test_a_path_may_hold_blanks_and_umlauts(tmp_path: Path) -> None:
    folder = tmp_path / "My Drive" / "näedle"
    folder.mkdir(parents=True)
    ndl.save({"x": ndl.ones(2)}, folder / "größe.safetensors")
    assert ndl.load(str(folder / "größe.safetensors"))["x"].shape == (2,)


# ---- what goes wrong -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [object(), {"model": nn.Linear(1, 1)}, [lambda: 0], {"a": {1, 2}}, 1j])
def test_only_data_is_saved(path: Path, wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"^save: got ") as caught:
        ndl.save(wrong, path)
    assert "\n" not in str(caught.value)
    assert not path.exists()


def test_a_missing_file_is_named(path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=path.name):
        ndl.load(path)


@pytest.mark.parametrize("content", [b"", b"12", b"\x80\x04K\x03.", b"{}" * 50, b"\x08" + b"\0" * 7 + b'{"a":1}'])
def test_a_file_of_another_format_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(ValueError, match=path.name) as caught:
        ndl.load(path)
    assert "\n" not in str(caught.value)


def test_a_truncated_file_is_refused(path: Path) -> None:
    ndl.save({"x": ndl.ones(100)}, path)
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(ValueError, match=f"{path.name} is damaged"):
        ndl.load(path)


@pytest.mark.parametrize("layout", ["[1]", "{", '{"tensor": "y"}', '{"dict": {"a": 3}}', '{"list": 4}', "{}"])
def test_a_damaged_layout_is_refused(path: Path, layout: str) -> None:
    from safetensors.numpy import save_file

    save_file({"x": np.ones(2, dtype="float32")}, path, metadata={"needle": layout})
    with pytest.raises(ValueError, match=f"{path.name} is damaged"):
        ndl.load(path)


def test_a_failed_save_leaves_the_old_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import safetensors.numpy

    ndl.save({"x": ndl.ones(2)}, path)

    def fails(arrays: Any, filename: str, metadata: Any = None) -> None:
        Path(filename).write_bytes(b"half a fi")
        raise OSError("no space left on device")

    monkeypatch.setattr(safetensors.numpy, "save_file", fails)
    with pytest.raises(OSError, match="no space"):
        ndl.save({"x": ndl.zeros(2)}, path)
    np.testing.assert_array_equal(ndl.load(path)["x"].numpy(), [1, 1])
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_whoever_reads_the_old_file_reads_it_to_the_end(path: Path) -> None:
    ndl.save({"x": ndl.ones(2)}, path)
    content = path.read_bytes()
    with path.open("rb") as reader:
        ndl.save({"x": ndl.zeros(3)}, path)
        assert reader.read() == content  # the new file took the name, not the place


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"save: .*nowhere"):
        ndl.save({"x": ndl.ones(2)}, tmp_path / "nowhere" / "x.safetensors")


def test_without_safetensors_the_message_says_what_to_install(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "safetensors", None)
    for call in (lambda: ndl.save({}, path), lambda: ndl.load(path)):
        with pytest.raises(ImportError, match="pip install safetensors"):
            call()


# ---- checkpoints -----------------------------------------------------------------------------------------------------


class Training:
    """A small training that draws batches and dropout masks from the global generator."""

    def __init__(self, optimizer: str) -> None:
        self.model = nn.Sequential(
            nn.Linear(4, 8),
            nn.BatchNorm1d(8),
            nn.ReLU(),
            nn.Dropout(0.3),
            nn.Residual(nn.Linear(8, 8)),
            nn.Linear(8, 3),
        )
        make = {
            "SGD": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
            "Adam": lambda p: optim.Adam(p, lr=0.01, weight_decay=0.01),
            "AdamW": lambda p: optim.AdamW(p, lr=0.01),
            "RMSProp": lambda p: optim.RMSProp(p, lr=0.01, momentum=0.5),
        }[optimizer]
        self.optimizer = make(self.model.parameters())
        self.scheduler = optim.WarmupCosine(self.optimizer, 3, 20)

    def steps(self, count: int) -> list[float]:
        losses = []
        for _ in range(count):
            x = Tensor(np.random.randn(6, 4), dtype="float32")
            y = Tensor(np.random.randint(0, 3, 6))
            self.optimizer.reset_grad()
            loss = nn.SoftmaxLoss()(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            self.scheduler.step()
            losses.append(loss.item())
        return losses

    @property
    def parts(self) -> tuple[Any, Any, Any]:
        return self.model, self.optimizer, self.scheduler


@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "AdamW", "RMSProp"])
def test_a_resumed_training_equals_an_undisturbed_one_bit_for_bit(path: Path, optimizer: str) -> None:
    np.random.seed(0)
    undisturbed = Training(optimizer)
    undisturbed.steps(5)
    np.random.randn(3)  # an odd number of normal draws: the generator keeps one back, which must be saved, too
    serialize.save_checkpoint(path, *undisturbed.parts, extra={"epoch": 5})
    expected = undisturbed.steps(5)

    np.random.seed(99)
    resumed = Training(optimizer)
    resumed.steps(2)
    assert serialize.load_checkpoint(path, *resumed.parts) == {"epoch": 5}
    assert resumed.steps(5) == expected
    for name, value in undisturbed.model.state_dict().items():
        np.testing.assert_array_equal(resumed.model.state_dict()[name].numpy(), value.numpy())


def test_a_checkpoint_may_hold_the_model_alone(path: Path) -> None:
    model = nn.Linear(2, 2)
    serialize.save_checkpoint(path, model)
    other = nn.Linear(2, 2)
    assert serialize.load_checkpoint(path, other) is None
    np.testing.assert_array_equal(other.weight.numpy(), model.weight.numpy())


def test_a_checkpoint_that_does_not_fit_changes_nothing(path: Path) -> None:
    np.random.seed(0)
    saved, other = Training("SGD"), Training("Adam")
    saved.steps(2)
    other.steps(1)
    serialize.save_checkpoint(path, saved.model, saved.optimizer)
    before, generator = other.model.state_dict(), np.random.get_state()[1].copy()
    with pytest.raises(ValueError, match="no state of scheduler"):
        serialize.load_checkpoint(path, *other.parts)
    with pytest.raises(ValueError, match="load_state_dict: Adam"):
        serialize.load_checkpoint(path, other.model, other.optimizer)
    for name, value in other.model.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[name].numpy())
    np.testing.assert_array_equal(np.random.get_state()[1], generator)


def test_a_file_that_is_no_checkpoint_is_refused(path: Path) -> None:
    model = nn.Linear(2, 2)
    for values in (model.state_dict(), [1, 2]):
        ndl.save(values, path)
        with pytest.raises(ValueError, match="load_checkpoint"):
            serialize.load_checkpoint(path, model)
