"""The training scripts: each runs to its end in seconds, from any folder, and says in one line what it lacks."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

APPS = Path(__file__).resolve().parents[2] / "apps"
SCRIPTS = sorted(path.name for path in APPS.glob("train_*.py"))


def run(script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
    """Run a script as a user would, from a folder that is not the tree's and without a terminal."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("NEEDLE_")}
    return subprocess.run(
        [sys.executable, "-W", "error", str(APPS / script), *arguments],
        cwd="/",
        env={**kept, "NEEDLE_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_there_are_scripts_for_every_application():
    assert [f"train_{name}.py" for name in ("cifar10", "gan", "lenet", "lm", "mnist", "rl", "xor")] == SCRIPTS


@pytest.mark.parametrize("script", SCRIPTS)
def test_smoke_run_leaves_log_and_pictures_U103(script, tmp_path):
    done = run(script, "--smoke", "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""

    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"log.csv", "log.json", "curves.png"} <= files
    assert not [name for name in files if name.startswith(".part")]
    record = json.loads((tmp_path / "out" / "log.json").read_text())
    assert record["options"]["smoke"] is True and record["options"]["seed"] == 0
    with (tmp_path / "out" / "log.csv").open() as table:
        rows = list(csv.DictReader(table))
    assert len(rows) == len(record["rows"]) > 0
    for picture in (tmp_path / "out").glob("*.png"):
        assert picture.read_bytes().startswith(b"\x89PNG")
    assert all(isinstance(value, (int, float)) for value in record["results"].values()) and record["results"]


def test_the_same_seed_gives_the_same_run_another_seed_another(tmp_path):
    results = []
    for number, seed in enumerate(("3", "3", "4")):
        run("train_xor.py", "--epochs", "5", "--seed", seed, "--out", str(tmp_path / str(number)))
        rows = json.loads((tmp_path / str(number) / "log.json").read_text())["rows"]
        results.append([{name: value for name, value in row.items() if name != "seconds"} for row in rows])
    assert results[0] == results[1] != results[2]


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_names_the_options(script):
    done = run(script, "--help")
    assert done.returncode == 0
    for option in ("--epochs", "--lr", "--seed", "--smoke", "--out"):
        assert option in done.stdout
    assert "(default: None)" not in done.stdout


@pytest.mark.parametrize(
    "script", ["train_mnist.py", "train_lenet.py", "train_gan.py", "train_cifar10.py", "train_lm.py"]
)
def test_missing_data_is_one_line_with_the_next_step_U103(script, tmp_path):
    done = run(script, "--out", str(tmp_path / "out"), NEEDLE_DATA_DIR=str(tmp_path))
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert str(tmp_path) in done.stderr and "--download" in done.stderr and "NEEDLE_DATA_DIR" in done.stderr


@pytest.mark.parametrize("option, value", [("--device", "abacus"), ("--out", "/dev/null/folder")])
def test_what_cannot_be_is_one_line(option, value, tmp_path):
    done = run("train_mnist.py", "--smoke", "--out", str(tmp_path), option, value)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1 and value.split("/")[1 if "/" in value else 0] in done.stderr


@pytest.mark.parametrize("option", ["--epochs", "--batch-size", "--hidden-dim"])
def test_a_count_of_none_is_refused(option, tmp_path):
    done = run("train_mnist.py", "--smoke", "--out", str(tmp_path), option, "0")
    assert done.returncode == 2 and option in done.stderr.splitlines()[-1]


def test_a_fault_in_the_code_keeps_its_traceback():
    program = "from training import script\n@script('doc', smoke={}, epochs=1)\ndef main(chosen): 1 / 0\nmain()"
    done = subprocess.run([sys.executable, "-c", program], cwd=APPS, capture_output=True, text=True)
    assert done.returncode == 1 and "ZeroDivisionError" in done.stderr
