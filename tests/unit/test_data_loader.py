"""Data sets in memory and the DataLoader, with and without workers."""

from __future__ import annotations

import threading
import time
from typing import Any

import needle as ndl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from needle.data import DataLoader, Dataset, NDArrayDataset, TransformedDataset
from needle.data.loader_workers import THREAD_NAME

IMAGES = np.arange(11 * 4 * 4 * 1, dtype=np.float32).reshape(11, 4, 4, 1)
LABELS = np.arange(11, dtype=np.uint8)


def numbers(loader: Any) -> list[list[int]]:
    """The last field of each batch of one epoch."""
    return [batch[-1].numpy().astype(int).tolist() for batch in loader]


def workers_alive() -> list[str]:
    """Names of loader threads that still run, after giving them time to end."""
    for _ in range(500):
        names = [thread.name for thread in threading.enumerate() if thread.name.startswith(THREAD_NAME)]
        if not names:
            break
        time.sleep(0.01)
    return names


class Items(Dataset):
    """A data set that knows single samples only, as one that reads files would."""

    def __init__(self, count: int = 11, fail_at: int | None = None) -> None:
        super().__init__()
        self.count, self.fail_at = count, fail_at
        self.asked: list[int] = []

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple:
        self.asked.append(index)
        if type(index) is not int:
            raise TypeError(f"no {type(index).__name__} here")
        if index == self.fail_at:
            raise KeyError(f"sample {index}")
        return IMAGES[index], index


def test_ndarray_dataset_by_int_slice_and_index_array() -> None:
    dataset = NDArrayDataset(IMAGES, LABELS)
    assert len(dataset) == 11
    for index in (3, -1, slice(2, 9, 3), np.array([4, 4, 0])):
        fields = dataset[index]
        assert isinstance(fields, tuple)
        np.testing.assert_array_equal(fields[0], IMAGES[index])
        np.testing.assert_array_equal(fields[1], LABELS[index])


@pytest.mark.parametrize("arrays", [(), (IMAGES, LABELS[:5]), (3.0,)])
def test_ndarray_dataset_wants_equal_lengths(arrays: tuple) -> None:
    with pytest.raises(ValueError, match="NDArrayDataset: arrays of lengths"):
        NDArrayDataset(*arrays)


def test_dataset_is_to_be_filled_in() -> None:
    with pytest.raises(NotImplementedError, match=r"Dataset\.__len__"):
        len(Dataset())
    with pytest.raises(NotImplementedError, match=r"Dataset\.__getitem__"):
        Dataset()[0]


@given(st.integers(0, 40), st.integers(1, 12), st.booleans(), st.booleans(), st.sampled_from([0, 1, 3]))
def test_loader_cuts_one_permutation_into_chunks(
    count: int, size: int, shuffle: bool, drop_last: bool, num_workers: int
) -> None:
    dataset = NDArrayDataset(np.arange(2 * count).reshape(count, 2), np.arange(count))
    loader = DataLoader(dataset, size, shuffle, drop_last=drop_last, num_workers=num_workers)
    np.random.seed(count)
    batches = list(loader)
    after = np.random.rand()
    np.random.seed(count)
    order = np.random.permutation(count) if shuffle else np.arange(count)
    assert after == np.random.rand(), "one permutation and nothing else is drawn"
    chunks = [order[i : i + size] for i in range(0, count, size)]
    if drop_last and chunks and len(chunks[-1]) < size:
        chunks.pop()
    assert len(loader) == len(batches) == len(chunks)
    for (data, labels), chunk in zip(batches, chunks, strict=True):
        np.testing.assert_array_equal(data.numpy(), np.stack([2 * chunk, 2 * chunk + 1], axis=1))
        np.testing.assert_array_equal(labels.numpy(), chunk)


def test_loader_draws_when_the_epoch_starts_and_anew_for_each() -> None:
    loader = DataLoader(NDArrayDataset(LABELS), batch_size=11, shuffle=True)
    np.random.seed(5)
    iterator = iter(loader)
    drawn = np.random.rand()
    first, second = next(iterator)[0].numpy().tolist(), numbers(loader)[0]
    np.random.seed(5)
    assert first == np.random.permutation(11).tolist()
    assert drawn == np.random.rand()
    assert second == np.random.permutation(11).tolist()


def test_loader_is_its_own_iterator_and_starts_over() -> None:
    loader = DataLoader(NDArrayDataset(LABELS), batch_size=4)
    assert iter(loader) is loader
    assert next(loader)[0].numpy().tolist() == [0, 1, 2, 3]
    assert numbers(loader) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10]]
    with pytest.raises(StopIteration):
        next(loader)


def test_loader_yields_a_tuple_of_tensors_that_want_no_gradient() -> None:
    batch = next(iter(DataLoader(NDArrayDataset(IMAGES, LABELS), batch_size=3)))
    assert isinstance(batch, tuple)
    for field, shape in zip(batch, [(3, 4, 4, 1), (3,)], strict=True):
        assert isinstance(field, ndl.Tensor)
        assert field.shape == shape
        assert field.device == ndl.default_device()
        assert not field.requires_grad


def test_loader_puts_its_tensors_where_it_is_told() -> None:
    for device in ndl.all_devices():
        if device.enabled():
            batch = next(iter(DataLoader(NDArrayDataset(IMAGES, LABELS), device=device)))
            assert [field.device for field in batch] == [device, device]


def test_loader_types_are_those_of_tensor_unless_told_otherwise() -> None:
    dataset = NDArrayDataset(IMAGES, LABELS)
    plain = next(iter(DataLoader(dataset)))
    assert [str(field.dtype) for field in plain] == [str(ndl.Tensor(a[:1]).dtype) for a in (IMAGES, LABELS)]
    one = next(iter(DataLoader(dataset, dtype="float32")))
    assert [str(field.dtype) for field in one] == ["float32", "float32"]
    each = next(iter(DataLoader(dataset, dtype=("float32", "int64"), device=ndl.cpu())))
    assert [str(field.dtype) for field in each] == ["float32", "int64"]
    with pytest.raises(ValueError, match="DataLoader: 3 dtypes for the 2 fields"):
        next(iter(DataLoader(dataset, dtype=("float32",) * 3)))


def test_loader_asks_for_a_whole_batch_at_once_where_it_can() -> None:
    class Counting(NDArrayDataset):
        asked = 0

        def __getitem__(self, index: Any) -> tuple:
            self.asked += 1
            return super().__getitem__(index)

    dataset = Counting(IMAGES, LABELS)
    list(DataLoader(dataset, batch_size=4))
    assert dataset.asked == 3


@pytest.mark.parametrize("num_workers", [0, 2])
def test_loader_stacks_the_samples_of_a_data_set_that_takes_ints_only(num_workers: int) -> None:
    dataset = Items()
    loader = DataLoader(dataset, batch_size=4, num_workers=num_workers)
    images = np.concatenate([images.numpy() for images, _ in loader])
    np.testing.assert_array_equal(images, IMAGES)
    assert sorted(dataset.asked) == list(range(11))
    assert numbers(loader) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10]]


def test_loader_takes_any_sequence() -> None:
    assert numbers(DataLoader([(1.0, 10), (2.0, 20), (3.0, 30)], batch_size=2)) == [[10, 20], [30]]
    assert numbers(DataLoader([np.array([1, 2]), np.array([3, 4])], batch_size=2)) == [[[1, 2], [3, 4]]]


SENSELESS = [{"batch_size": 0}, {"batch_size": 2.5}, {"batch_size": True}, {"num_workers": -1}, {"prefetch": 0}]


@pytest.mark.parametrize("arguments", SENSELESS)
def test_loader_refuses_senseless_sizes(arguments: dict) -> None:
    name, value = next(iter(arguments.items()))
    with pytest.raises(ValueError, match=f"DataLoader: {name} is {type(value).__name__} {value}, wanted an integer"):
        DataLoader(NDArrayDataset(LABELS), **arguments)


@pytest.mark.parametrize("dataset", [3, None, iter([1])])
def test_loader_refuses_what_is_no_data_set(dataset: object) -> None:
    with pytest.raises(TypeError, match="DataLoader: got"):
        DataLoader(dataset)


# ---- workers


def test_workers_deliver_in_order_however_long_each_takes() -> None:
    class Slow(Items):
        def __getitem__(self, index: int) -> tuple:
            time.sleep(0.02 if index == 0 else 0)  # the first batch is ready last
            return super().__getitem__(index)

    assert numbers(DataLoader(Slow(), num_workers=3, prefetch=2)) == [[i] for i in range(11)]
    assert workers_alive() == []


@pytest.mark.parametrize("prefetch", [1, 3])
def test_workers_read_ahead_no_further_than_told(prefetch: int) -> None:
    dataset = Items(count=11)
    iterator = iter(DataLoader(dataset, num_workers=2, prefetch=prefetch))
    next(iterator)
    # the one that was delivered, those ahead, and one that replaced the delivered one
    wanted = 2 * prefetch + 1
    for _ in range(500):
        if len(dataset.asked) >= wanted:
            break
        time.sleep(0.01)
    time.sleep(0.05)  # room for a mistake to show
    assert len(dataset.asked) == wanted
    iterator.close()


def test_workers_read_while_the_caller_computes() -> None:
    both = threading.Barrier(2, timeout=10)

    class Meets(Items):
        def __getitem__(self, index: int) -> tuple:
            if index == 1:
                both.wait()  # passes only if batch 1 is read while the caller still holds batch 0
            return super().__getitem__(index)

    iterator = iter(DataLoader(Meets(), num_workers=1))
    next(iterator)
    both.wait()
    assert next(iterator)[1].numpy().tolist() == [1]
    iterator.close()


@pytest.mark.parametrize("num_workers", [0, 1, 3])
def test_an_exception_reaches_the_caller_in_its_turn(num_workers: int) -> None:
    loader = DataLoader(Items(fail_at=5), batch_size=2, num_workers=num_workers)
    seen = []
    with pytest.raises(KeyError, match="sample 5"):
        seen.extend(batch[1].numpy().astype(int).tolist() for batch in loader)
    assert seen == [[0, 1], [2, 3]]
    assert workers_alive() == []


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_stop_iteration_inside_a_data_set_is_an_error_and_not_the_end(num_workers: int) -> None:
    class Stops(Items):
        def __getitem__(self, index: int) -> tuple:
            raise StopIteration

    with pytest.raises(RuntimeError):
        list(DataLoader(Stops(), num_workers=num_workers))
    assert workers_alive() == []


def test_stopping_early_ends_the_workers() -> None:
    for end in ("close", "forget", "start anew"):
        loader: DataLoader | None = DataLoader(Items(), num_workers=3)
        assert loader is not None
        for _ in loader:
            break
        if end == "close":
            loader.close()
        elif end == "forget":
            loader = None
        else:
            assert numbers(loader) == [[i] for i in range(11)]
        assert workers_alive() == [], end


def test_close_drops_what_is_not_yet_read_and_waits_for_what_is() -> None:
    gate = threading.Event()

    class Waits(Items):
        def __getitem__(self, index: int) -> tuple:
            sample = super().__getitem__(index)
            if index == 1:
                gate.wait(10)
            return sample

    dataset = Waits()
    loader = DataLoader(dataset, num_workers=1, prefetch=5)
    next(iter(loader))
    while len(dataset.asked) < 2:
        time.sleep(0.001)
    threading.Timer(0.1, gate.set).start()
    loader.close()
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith(THREAD_NAME)] == []
    assert dataset.asked == [0, 1]


def test_a_worker_that_collects_its_own_loader_does_not_wait_for_itself() -> None:
    gate = threading.Event()

    class Waits(Items):
        def __getitem__(self, index: int) -> tuple:
            if index:
                gate.wait(10)
            return super().__getitem__(index)

    loader = DataLoader(Waits(), num_workers=1)
    next(iter(loader))
    # any thread of that name will do: the collector may run in each of them
    worker = threading.Thread(target=loader.close, name=THREAD_NAME + "_0")
    worker.start()
    worker.join(5)
    ended_first = not worker.is_alive()
    gate.set()
    worker.join()
    assert ended_first
    assert workers_alive() == []


def test_after_close_the_epoch_is_over_and_a_new_one_starts_at_the_front() -> None:
    for num_workers in (0, 2):
        loader = DataLoader(NDArrayDataset(LABELS), batch_size=6, num_workers=num_workers)
        next(iter(loader))
        loader.close()
        with pytest.raises(StopIteration):
            next(loader)
        assert numbers(loader) == [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10]]


def augmented() -> list[Any]:
    """Data sets with random transforms: of their own, and kept apart."""
    crop_and_flip = [ndl.data.RandomCrop(1), ndl.data.RandomFlipHorizontal()]
    return [ndl.data.DigitsDataset(train=False, transforms=crop_and_flip), TransformedDataset(Items(), crop_and_flip)]


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("num_workers", [1, 3])
def test_random_transforms_with_workers_equal_those_without_bit_for_bit(which: int, num_workers: int) -> None:
    runs = []
    for workers in (0, num_workers):
        np.random.seed(11)
        run = []
        for images, labels in DataLoader(augmented()[which], 4, shuffle=True, num_workers=workers):
            run.append((images.numpy().copy(), labels.numpy().copy(), np.random.rand()))  # as dropout would draw
        runs.append(run)
    for (images, labels, draw), (images2, labels2, draw2) in zip(*runs, strict=True):
        np.testing.assert_array_equal(images, images2)
        np.testing.assert_array_equal(labels, labels2)
        assert draw == draw2


def test_transformed_dataset_reads_in_workers_and_draws_in_the_caller() -> None:
    where: dict[str, set[str]] = {"read": set(), "transform": set()}

    class Reads(Items):
        def __getitem__(self, index: int) -> tuple:
            where["read"].add(threading.current_thread().name[: len(THREAD_NAME)])
            return super().__getitem__(index)

    def transform(image: np.ndarray) -> np.ndarray:
        where["transform"].add(threading.current_thread().name)
        return image + 1

    dataset = TransformedDataset(Reads(), [transform, transform])
    images = np.concatenate([images.numpy() for images, _ in DataLoader(dataset, 4, num_workers=2)])
    np.testing.assert_array_equal(images, IMAGES + 2)
    assert where == {"read": {THREAD_NAME}, "transform": {threading.current_thread().name}}
    image, label = dataset[3]
    np.testing.assert_array_equal(image, IMAGES[3] + 2)
    assert (label, len(dataset)) == (3, 11)


# ---- the embedded digits


def test_digits_split_is_stratified_and_complete() -> None:
    train_images, train_labels, test_images, test_labels = ndl.data.load_digits()
    assert (train_images.shape, test_images.shape) == ((1438, 8, 8), (359, 8, 8))
    assert {train_images.dtype, test_images.dtype} == {np.dtype("float32")}
    assert {train_labels.dtype, test_labels.dtype} == {np.dtype("uint8")}
    assert (train_images.min(), train_images.max()) == (0, 1)
    np.testing.assert_array_equal(np.unique(train_images * 16), np.arange(17))
    counts = np.array([178, 182, 177, 183, 181, 182, 181, 179, 174, 180])  # of the data set as published
    np.testing.assert_array_equal(np.bincount(train_labels) + np.bincount(test_labels), counts)
    assert np.abs(np.bincount(test_labels) - counts / 5).max() < 1


def test_digits_have_their_right_labels() -> None:
    """A nearest-neighbour rule of two lines knows them, as it could not if labels and images were mixed up."""
    train_images, train_labels, test_images, test_labels = ndl.data.load_digits()
    a, b = test_images.reshape(-1, 64), train_images.reshape(-1, 64)
    nearest = ((a**2).sum(1)[:, None] - 2 * a @ b.T + (b**2).sum(1)).argmin(1)
    assert (train_labels[nearest] == test_labels).mean() > 0.97


def test_digits_dataset_is_made_of_images_with_channels() -> None:
    train_images, _, test_images, test_labels = ndl.data.load_digits()
    training, test = ndl.data.DigitsDataset(train=True), ndl.data.DigitsDataset(train=False)
    assert (len(training), len(test)) == (1438, 359)
    np.testing.assert_array_equal(training[5][0], train_images[5][..., None])
    images, labels = test[np.array([7, 1])]
    np.testing.assert_array_equal(images, test_images[[7, 1]][..., None])
    np.testing.assert_array_equal(labels, test_labels[[7, 1]])
    np.testing.assert_array_equal(test[:][1], test_labels)
