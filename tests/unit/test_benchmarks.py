"""The benchmarks, tried at tiny sizes: their answers, what they write, what they say of it.  No time is looked at."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import compare, harness, machine, report, suites
from benchmarks.__main__ import main

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A quick run of all suites, without PyTorch: answers are compared with NumPy's and the plain kernels'."""
    out = tmp_path_factory.mktemp("benchmarks")
    command = [sys.executable, "-m", "benchmarks", "--quick", "--without", "torch", "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (out / "said.txt").write_text(done.stdout, encoding="utf-8")
    return out


def test_every_task_of_every_suite_runs_and_agrees(folder: Path) -> None:
    found = report.load(folder / "results.json")
    wanted = [(task.suite, task.name) for suite in suites.SUITES.values() for task in suite(True)]
    measured = [(r["suite"], r["task"]) for r in found["results"] if r["suite"] != "probes"]
    assert measured == wanted
    for record in found["results"]:
        assert all(len(values) >= 1 and min(values) > 0 for values in record["measured"].values()), record["task"]


def test_a_run_says_on_what_it_ran_and_keeps_to_the_format(folder: Path) -> None:
    found = report.load(folder / "results.json")
    assert set(machine.facts()) | {"threads", "needle", "NumPy"} <= set(found["machine"])
    assert all(set(r) == report.KEYS for r in found["results"])
    said = (folder / "said.txt").read_text(encoding="utf-8")
    assert "processor: " in said
    assert "add that records" in said


def test_rows_of_the_list_of_faults_are_named() -> None:
    named = {row for suite in suites.SUITES.values() for task in suite(False) for row in task.rows}
    assert named >= {"U100", "U101"}


def test_names_of_tasks_are_unique() -> None:
    for quick in (False, True):
        names = [(task.suite, task.name) for suite in suites.SUITES.values() for task in suite(quick)]
        assert len(names) == len(set(names))


def test_pictures_and_a_page_of_several_runs(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    page, run = tmp_path / "page.md", str(folder / "results.json")
    page.write_text("before\n<!-- overhead -->\nold\n<!-- end -->\nafter\n", encoding="utf-8")
    assert main(["--report", run, run, "--out", str(tmp_path), "--page", str(page)]) == 0
    assert (tmp_path / "performance_scaling.svg").exists()
    text = page.read_text(encoding="utf-8")
    assert "| add that records |" in text
    assert "\nold\n" not in text
    assert text.startswith("before\n<!-- overhead -->\n| task |")
    assert text.endswith(" |\n<!-- end -->\nafter\n")


# ---- answers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "got", [{"out": np.array([1.0, 2.1])}, {"out": np.array([1.0, np.nan])}, {"out": np.ones(3)}, {}], ids=str
)
def test_a_wrong_answer_is_not_measured(got: dict[str, np.ndarray]) -> None:
    task = suites.operation("add", 600)
    harness.compare(task, "needle", {"out": np.array([[1.0, 2.0]])}, "numpy", {"out": np.array([1.0, 2.0])})
    with pytest.raises(harness.Trouble, match=r"wrong answer: .*out"):
        harness.compare(task, "needle", got, "numpy", {"out": np.array([1.0, 2.0])})


def test_a_peer_that_fails_is_told_in_a_line(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--quick", "--without", "needle", "--only", "records nothing", "overhead"]) == 1
    last = capfd.readouterr().err.splitlines()[-1]
    assert last == "benchmarks: overhead/add that records nothing: needle is absent: left out"


def test_an_unknown_suite_is_told_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gem"]) == 2
    assert capsys.readouterr().err.startswith("benchmarks: no suite 'gem'; there are gemm, sizes, conv")


# ---- turns and verdicts ---------------------------------------------------------------------------------------------


def test_the_order_of_peers_turns_round_and_the_first_turn_does_not_count() -> None:
    order: list[str] = []
    turns = {peer: lambda peer=peer: float(order.append(peer) or len(order)) for peer in ("a", "b")}
    measured = harness.take_turns(turns, 2)
    assert order == ["b", "a", "a", "b", "b", "a"]
    assert measured == {"a": [3.0, 6.0], "b": [4.0, 5.0]}


def record(rule: suites.Rule | None, unit: str = "s", **measured: list[float]) -> dict[str, Any]:
    names = {peer.replace("_", ":"): values for peer, values in measured.items()}
    task = suites.Task("suite", "task", "kind", {}, flop=1e9, rule=rule, unit=unit)
    return report.record(harness.Result(task, names))


@pytest.mark.parametrize(
    ("rule", "measured", "standing"),
    [
        (suites.Rule("speed", 0.95, 1.0), {"needle": [1.0], "numpy": [0.9], "torch": [2.0]}, "short"),
        (suites.Rule("speed", 0.95, 1.0), {"needle": [1.0], "numpy": [0.96], "torch": [2.0]}, "pass"),
        (suites.Rule("time", 1.2, 1.0), {"needle": [1.0], "torch": [1.0], "torch_compile": [0.1]}, "aim"),
        (suites.Rule("time", 1.2, 1.0), {"needle": [1.3], "torch": [1.0]}, "short"),
        (suites.Rule("share", 0.9), {"needle": [1.0], "numpy": [0.1], "limit_add": [0.95]}, "pass"),
        (suites.Rule("seconds", 4e-6, 2e-6), {"needle": [3e-6]}, "pass"),
        (suites.Rule("time", 1.2), {"needle": [1.0]}, None),  # nobody to compare with
    ],
)
def test_a_row_stands_as_its_rule_says(
    rule: suites.Rule, measured: dict[str, list[float]], standing: str | None
) -> None:
    found = report.verdict(record(rule, **measured))
    assert (found and found.standing) == standing


# ---- two runs -------------------------------------------------------------------------------------------------------


def run_of(**measured: list[float]) -> dict[str, Any]:
    return {"format": report.FORMAT, "machine": {}, "absent": {}, "results": [record(None, **measured)]}


@pytest.mark.parametrize(
    ("needle", "torch", "said"),
    [
        ([2.0, 2.0, 2.0], [1.0, 1.0, 1.0], "slower   suite/task: 1 s → 2 s (2.00, beside the best peer 2.00)"),
        ([2.0, 2.0, 2.0], [2.0, 2.0, 2.0], "no change"),  # the machine is slower, not needle
        ([0.5, 1.1, 2.0], [1.0, 1.0, 1.0], "no change"),  # within the spread
    ],
)
def test_only_what_lies_beyond_the_spread_is_a_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], needle: list[float], torch: list[float], said: str
) -> None:
    before, after = run_of(needle=[1.0] * 3, torch=[1.0] * 3), run_of(needle=needle, torch=torch)
    for name, document in (("a", before), ("b", after)):
        (tmp_path / name).write_text(json.dumps(document))
    assert compare.main([str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    assert capsys.readouterr().out.splitlines()[0] == said


@pytest.mark.parametrize("content", [None, "", "[]", '{"format": 0}', '{"format": 1, "results": [{}]}'])
def test_a_bad_file_is_told_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | None) -> None:
    bad = tmp_path / "bad.json"
    if content is not None:
        bad.write_text(content)
    assert compare.main([str(bad), str(bad)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"compare: {bad}: ")
    assert error.count("\n") == 1
