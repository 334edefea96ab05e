"""What the emulator takes of one core: python -m tests.cuda.emulator.speed. No test: a time depends on the machine."""

from __future__ import annotations

import os

from tests.cuda.emulator.building import emulated

if __name__ == "__main__":
    print(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
    for check in (False, True):
        print("check build" if check else "fast build", flush=True)
        print(emulated("speed.cu", check).run("speed") or "")
