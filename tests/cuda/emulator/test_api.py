"""The host's side of the API, half precision, and the functions of the device."""

from __future__ import annotations

import os
import re

import pytest

from tests.cuda.emulator.building import HERE, emulated, python

NAMES = re.findall(r"TEST_FUNCTION\((\w+)\)", (HERE / "api.cu").read_text(encoding="utf-8"))


APART = {"profiled", "addresses_come_back_when_all_have_been_used"}


@pytest.mark.parametrize("name", [name for name in NAMES if name not in APART])
@pytest.mark.parametrize("check", [False, True], ids=["fast", "check"])
def test_api(name: str, check: bool) -> None:
    assert emulated("api.cu", check).run(name) is None


def test_times_of_events_say_once_that_they_are_emulated() -> None:
    done = python(
        "api = emulated('api.cu', False)\nprint(api.run('streams_and_events'), api.run('streams_and_events'))"
    )
    assert done.stdout == "None None\n"
    assert done.stderr.count("emulated; this is the time of the CPU, and says nothing about a GPU") == 1


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="the limit on addresses is Linux's")
def test_addresses_of_freed_arrays_are_used_again_when_there_are_no_others() -> None:
    # another 1.5 GB of addresses leave one for device memory
    done = python(
        "import resource\n"
        "api = emulated('api.cu', False)\n"
        "used = 4096 * int(open('/proc/self/statm').read().split()[0])\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + (3 << 29), used + (3 << 29)))\n"
        "print(api.run('addresses_come_back_when_all_have_been_used'))"
    )
    assert done.stdout == "None\n", done.stderr
