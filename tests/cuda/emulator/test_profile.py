"""The memory profile: numbers that can be counted by hand, a table, a file, a picture."""

from __future__ import annotations

import json
import subprocess
import xml.dom.minidom
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.cuda.emulator.building import EMULATOR, emulated, module_of, python


def profile(value: str) -> subprocess.CompletedProcess[str]:
    done = python("emulated('api.cu', True).run('profiled')", CUEMU_PROFILE=value)
    done.check_returncode()
    return done


@pytest.fixture(scope="module")
def picture() -> ModuleType:
    return module_of(EMULATOR / "profile_picture.py")


def rows(numbers: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {f"{line['line']} {line['memory']}": line for kernel in numbers["kernels"] for line in kernel["lines"]}


def test_sectors_and_bank_conflicts_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "prö file.json"
    done = profile(str(file))
    numbers = json.loads(file.read_text(encoding="utf-8"))
    assert [kernel["kernel"] for kernel in numbers["kernels"]] == ["Column", "Strided"]
    line = {name: emulated("api.cu", check=True).line(name) for name in ("strided", "column", "row")}
    found = rows(numbers)
    # line "strided": a read of 32 floats 128 bytes apart (32 sectors), and a write of 32 in a row (128 bytes: 4 or 5
    # sectors, by where the array lies), in each of two launches
    strided = found[f"api.cu:{line['strided']} global"]
    assert strided["requests"] == 4 and 36 / 2 <= strided["per_request"] <= 37 / 2 and strided["fewest"] == 4
    column, row = found[f"api.cu:{line['column']} shared"], found[f"api.cu:{line['row']} shared"]
    assert (column["per_request"], column["fewest"]) == (32, 1)  # 32 words of one bank
    assert (row["per_request"], row["fewest"]) == (1, 1)  # one word of each bank
    assert f"api.cu:{line['column']}" in done.stderr and "32.0x" in done.stderr


def test_without_a_wish_there_is_no_profile() -> None:
    assert profile("0").stderr == ""


def test_a_table_alone() -> None:
    table = profile("1").stderr
    assert "memory profile" in table and "Strided" in table and "shared" in table
    assert not Path("1").exists()


def test_a_picture_of_it(tmp_path: Path, picture: ModuleType) -> None:
    numbers, drawn = tmp_path / "numbers.json", tmp_path / "drawn.svg"
    lines = [
        {"line": "a<b.cu:3", "memory": "global", "requests": 8, "per_request": 32.0, "fewest": 4.0},
        {"line": "a.cu:9", "memory": "shared", "requests": 8, "per_request": 1.0, "fewest": 1.0},
    ]
    numbers.write_text(json.dumps({"kernels": [{"kernel": "Compact<float>", "lines": lines}]}))
    assert picture.main([str(numbers), str(drawn)]) == 0
    text = drawn.read_text(encoding="utf-8")
    xml.dom.minidom.parseString(text)
    assert "8.0x: 32.0 sectors, 4.0 would do" in text and "Compact&lt;float&gt;" in text
    assert "the worst is a&lt;b.cu:3 in Compact&lt;float&gt;, 8.0 times the best possible" in text


def test_what_is_no_profile_is_said_in_one_line(
    tmp_path: Path, picture: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.json").write_text("[]")
    assert picture.main([str(tmp_path / "x.json"), str(tmp_path / "x.svg")]) == 1
    assert capsys.readouterr().err.count("\n") == 1
