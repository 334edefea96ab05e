"""The profile counts and nests right, the search for NaN finds the operator and the line, memory numbers move."""

from __future__ import annotations

import gc
import json
import threading

import needle as ndl
import numpy as np
import pytest
from needle.profile import AnomalyError, Profile, detect_anomaly, memory


def tensor(values: object, requires_grad: bool = True) -> ndl.Tensor:
    return ndl.Tensor(np.array(values), dtype="float32", requires_grad=requires_grad)


def rows(profile: Profile) -> dict:
    return {row.name: row for row in profile.rows()}


# ---- profile ---------------------------------------------------------------------------------------------------------


def test_profile_counts_calls_and_bytes_of_each_operator() -> None:
    x, w = tensor(np.ones((4, 8))), tensor(np.ones((8, 2)))
    with Profile() as profile:
        for _ in range(3):
            ndl.relu(x @ w)
    found = rows(profile)
    assert {name: row.calls for name, row in found.items()} == {"matmul": 3, "relu": 3}
    assert found["matmul"].nbytes == 3 * 4 * (4 * 8 + 8 * 2 + 4 * 2)
    assert found["relu"].backward == 0 < found["relu"].forward


def test_profile_counts_what_a_backward_pass_runs_only_there() -> None:
    x = tensor([1.0, 2.0])
    y = ndl.exp(x).sum()
    with Profile() as profile:
        y.backward()
    found = rows(profile)
    assert found["exp"].backward > 0
    assert found["exp"].calls == 0  # the forward pass ran before the block
    nested = [event for event in profile.events if event.inside]
    assert nested and not {event.name for event in nested} & {name for name, row in found.items() if row.forward}


def test_profile_time_of_the_operators_fits_into_the_block() -> None:
    x = tensor(np.ones((50, 50)))
    with Profile() as profile:
        (x @ x).sum().backward()
    assert 0 < sum(row.forward + row.backward for row in profile.rows()) <= profile.seconds


def test_profile_reads_as_a_table_slowest_first() -> None:
    with Profile() as profile:
        ndl.exp(tensor([1.0])) + 1
    head, *body, total = str(profile).splitlines()
    assert head.split()[:2] == ["operator", "calls"]
    assert {line.split()[0] for line in body} == {"exp", "add_scalar"}
    spent = [row.forward + row.backward for row in profile.rows()]
    assert spent == sorted(spent, reverse=True)
    assert "ms in operators" in total


def test_profile_of_nothing_prints() -> None:
    with Profile() as profile:
        pass
    assert "0.000 ms in operators" in str(profile)
    assert profile.chrome_trace()["traceEvents"] == []


def test_profile_stops_at_the_end_of_the_block_also_after_an_error() -> None:
    x = tensor([1.0, 2.0])
    with pytest.raises(ValueError), Profile() as profile:
        ndl.exp(x).reshape((5,))
    seen = len(profile.events)
    ndl.exp(x)
    assert len(profile.events) == seen


def test_profile_chrome_trace_nests_and_names(tmp_path) -> None:
    x = tensor([1.0, 2.0])
    with Profile() as profile:
        (x * x).sum().backward()
    trace = json.loads(profile.save_chrome_trace(tmp_path / "trace.json").read_text(encoding="utf-8"))
    events = trace["traceEvents"]
    assert all(event["ph"] == "X" and event["dur"] >= 0 and event["ts"] >= 0 for event in events)
    (outer,) = [event for event in events if event["name"] == "multiply backward"]
    within = [e for e in events if e is not outer and outer["ts"] <= e["ts"] <= outer["ts"] + outer["dur"]]
    assert all(e["ts"] + e["dur"] <= outer["ts"] + outer["dur"] + 1e-3 for e in within)
    assert "multiply" in {event["name"] for event in within}


def test_profile_keeps_threads_apart() -> None:
    x = tensor([1.0])
    with Profile() as profile:
        worker = threading.Thread(target=lambda: ndl.exp(x))
        worker.start()
        worker.join()
        ndl.log(x)
    lanes = {event["name"]: event["tid"] for event in profile.chrome_trace()["traceEvents"]}
    assert lanes["exp"] != lanes["log"]


def test_profile_changes_no_result() -> None:
    x = tensor([0.3, 0.7])
    plain = ndl.exp(x).numpy()
    with Profile():
        watched = ndl.exp(x).numpy()
    np.testing.assert_array_equal(plain, watched)


# ---- anomalies -------------------------------------------------------------------------------------------------------


def message(run) -> str:
    with np.errstate(all="ignore"), pytest.raises(AnomalyError) as caught, detect_anomaly():
        run()
    return str(caught.value)


def test_detect_anomaly_names_the_operator_shapes_entry_and_line() -> None:
    x = tensor([[1.0, 2.0], [3.0, -4.0]])
    text = message(lambda: ndl.exp(ndl.log(x)))
    assert text.startswith("log: forward made nan in 1 of 4 entries, first at (1, 1), shape (2, 2)")
    assert "from -4 to 3" in text
    assert "test_profile.py" in text and "ndl.exp(ndl.log(x))" in text


def test_detect_anomaly_names_the_operator_whose_backward_made_it() -> None:
    x = tensor([4.0, 0.0])

    def run() -> None:
        roots = x**0.5
        roots.sum().backward()

    text = message(run)
    assert text.startswith("power_scalar: backward: ")
    assert "roots = x**0.5" in text


def test_detect_anomaly_sees_infinities_unless_told_otherwise() -> None:
    big = tensor([1000.0])
    assert message(lambda: ndl.exp(big)).startswith("exp: forward made inf")
    with detect_anomaly(inf=False):
        assert np.isinf(ndl.exp(big).numpy()).all()


def test_detect_anomaly_lets_a_mask_of_infinities_pass_but_not_what_turns_it_into_nan() -> None:
    mask = tensor([0.0, -np.inf])
    with detect_anomaly():
        assert (ndl.exp(mask + 1).numpy()[1]) == 0
    assert message(lambda: mask - mask).startswith("add: forward made nan")


def test_detect_anomaly_says_when_nan_came_from_outside() -> None:
    x = tensor([1.0, np.nan])
    assert "nan came in with input 0" in message(lambda: x * 2)


def test_detect_anomaly_sees_a_gradient_rule_that_answers_nan_itself() -> None:
    class Broken(ndl.TensorOp):
        def compute(self, a):
            return a + 0

        def gradient(self, out_grad, node):
            return tensor([np.nan], requires_grad=False)

    x = tensor([1.0])
    text = message(lambda: Broken()(x).backward())
    assert text.startswith("broken: backward: the gradient of input 0 holds nan in 1 of 1 entries")


def test_detect_anomaly_is_silent_when_all_is_well_and_ends_with_the_block() -> None:
    x = tensor([1.0, 2.0])
    with detect_anomaly():
        ndl.log(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [1.0, 0.5])
    with np.errstate(all="ignore"):
        ndl.log(tensor([-1.0]))


def test_detect_anomaly_ignores_integers() -> None:
    x = ndl.Tensor(np.array([1, 2]), dtype="int32")
    with detect_anomaly():
        x + x


# ---- memory ----------------------------------------------------------------------------------------------------------


def test_memory_counts_tensors() -> None:
    gc.collect()  # tracebacks of earlier tests may hold tensors in cycles
    before = memory().tensors
    kept = [tensor([1.0]), tensor([2.0])]
    assert memory().tensors == before + 2
    del kept
    assert memory().tensors == before


def test_memory_reads_as_one_line() -> None:
    now = memory()
    assert str(now).startswith(f"{now.tensors} tensors")
    if now.resident_bytes is not None:
        assert now.resident_bytes > 2**20 and "resident" in str(now)
