"""With NEEDLE_TEST_DEVICE these tests run on another device than the usual ones; see tests/chosen_device.py."""

from __future__ import annotations

import os

if os.environ.get("NEEDLE_TEST_DEVICE"):
    from tests import chosen_device

    chosen_device.choose()
