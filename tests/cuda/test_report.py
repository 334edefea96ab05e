"""needle.device_report(): every device has a row that says what runs it, or why it cannot be used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from needle import backend_ndarray as nd
from needle import device_report
from needle.backend_ndarray import report

ROOT = Path(__file__).resolve().parents[2]


def test_each_device_has_a_row(emulator: ModuleType) -> None:
    rows = {row.name: row for row in device_report()}
    assert list(rows) == ["cpu()", "cpu_numpy()", "cuda()", "cuda_emu()"]
    assert rows["cpu_numpy()"].usable and "NumPy" in rows["cpu_numpy()"].detail
    assert rows["cuda_emu()"].usable and "emulated" in rows["cuda_emu()"].detail
    assert rows["cuda()"].usable == nd.cuda().enabled()
    assert "emulated on" not in rows["cuda()"].detail


def test_a_file_that_calls_itself_cuda_is_told_to_be_emulated() -> None:
    module = ModuleType("ndarray_backend_cuda_emu")
    module.__device_name__ = "cuda"  # as a file in the public course's layout has it
    emulated = nd.BackendDevice("cuda_emu", module, {"float32": list}, remark="emulated on the CPU")
    assert report._cuda_detail(emulated).startswith("cuda (emulated); ")


def test_it_is_a_table_and_json(emulator: ModuleType) -> None:
    found = device_report()
    assert [row["name"] for row in json.loads(found.to_json())] == [row.name for row in found]
    assert len(str(found).splitlines()) == len(found) and str(found).startswith("cpu() ")


def test_what_is_missing_is_told_in_one_line_with_a_next_step() -> None:
    absent = nd.BackendDevice("cuda", None, absence="not built;\nrun 'make lib'")
    assert report._row(absent, str) == ("cuda()", False, "not built; run 'make lib'")


def test_a_device_that_cannot_add_is_not_usable() -> None:
    class Wrong(nd.BackendDevice):
        def ones(self, *shape: int, dtype: object = "float32") -> nd.NDArray:
            return nd.zeros(shape, device=nd.cpu_numpy())

    row = report._row(Wrong("cuda", None), str)
    assert not row.usable and "1 + 1 is not 2" in row.detail


@pytest.mark.parametrize("backend", ["np", "nd"])
def test_in_both_modes(backend: str) -> None:
    command = [sys.executable, "-c", "import needle; print(needle.device_report())"]
    variables = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "NEEDLE_BACKEND": backend}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["cpu()", "cpu_numpy()", "cuda()", "cuda_emu()"]
