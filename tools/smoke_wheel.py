"""Build the wheel, install it in an empty environment, and train one step there, away from this tree.

python tools/smoke_wheel.py
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STEP = """
import needle as ndl
assert "site-packages" in ndl.__file__, ndl.__file__
assert ndl.cpu().enabled(), "the wheel holds no native module"
x, y, *_ = ndl.data.load_digits()
print("wheel: digits", x.shape)
model = ndl.nn.Linear(64, 10)
loss = ndl.nn.SoftmaxLoss()(model(ndl.Tensor(x[:50].reshape(50, 64))), ndl.Tensor(y[:50]))
loss.backward()
ndl.optim.Adam(model.parameters()).step()
print("wheel: one step on", model.weight.device)
"""


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="needle wheel ") as folder:
        subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, ROOT], check=True)
        (wheel,) = Path(folder).glob("needle-*.whl")
        print(f"wheel: {wheel.name}, {wheel.stat().st_size / 1e6:.1f} MB", flush=True)
        python = Path(folder, "environment", "bin", "python")
        subprocess.run([sys.executable, "-m", "venv", python.parent.parent], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", wheel], check=True)
        subprocess.run([python, "-W", "error", "-c", STEP], cwd=folder, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
