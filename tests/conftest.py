"""What all tests share: how Hypothesis draws, and where real data may lie."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

import hypothesis
import pytest

# derandomize: a red run is red again. No deadline: a time is never a test, and machines differ.
hypothesis.settings.register_profile("needle", derandomize=True, deadline=None)
hypothesis.settings.load_profile("needle")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder that NEEDLE_DATA_DIR names, of mnist/, cifar-10-batches-py/ and shakespeare/; skips without one."""
    folder = os.environ.get("NEEDLE_DATA_DIR")
    if not folder or not Path(folder).is_dir():
        pytest.skip(
            "no real data here: set NEEDLE_DATA_DIR to the folder of mnist/, cifar-10-batches-py/, shakespeare/"
        )
    return Path(folder)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was skipped and why, one line a reason, and what a stage's `cuda` was."""
    reports = terminalreporter.getreports("skipped")
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in reports)
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"skipped {count}: {reason}")
    stages = sys.modules.get("stages")
    if stages is not None and stages.gpu_or_emulator.cache_info().currsize:
        terminalreporter.write_line(f"cuda is here {stages.gpu_or_emulator()!r}")
