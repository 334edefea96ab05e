"""Say where hw/stages.toml and the tests disagree on how many items the tests of a part have.

python tools/count_items.py [--write]

With `--write` the manifest's numbers are corrected.  The exit status is 1 if a number was wrong, or tests name nothing.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

from needle_course import stages  # noqa: E402  (the line above finds it)


def main() -> int:
    course = stages.load(ROOT)
    wrong = {}
    for stage in course.stages.values():
        nodes = collected(stage)
        for part in stage.parts:
            named = {selector: [n for n in nodes if stages.matches(selector, n)] for selector in part.tests}
            for selector in [selector for selector, items in named.items() if not items]:
                print(f"{part.id}: {selector} names no test")
                wrong[part.id] = part.items
            count = len({node for items in named.values() for node in items})
            if count != part.items:
                print(f"{part.id}: {part.items} items in the manifest, {count} in the tests")
                wrong[part.id] = count
    if "--write" in sys.argv[1:]:
        correct(wrong)
    return 1 if wrong else 0


def collected(stage: stages.Stage) -> list[str]:
    """The test items of a stage, as pytest names them from the course's root."""
    kept = {key: value for key, value in os.environ.items() if key != "NEEDLE_KERNELS"}
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *stage.tests]
    done = subprocess.run(
        command, cwd=ROOT, env={**kept, "NEEDLE_BACKEND": stage.backend}, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"count_items: {stage.id}: its tests cannot be collected\n{done.stdout}{done.stderr}")
    return [line for line in done.stdout.splitlines() if "::" in line]


def correct(counts: dict[str, int]) -> None:
    path = ROOT / stages.MANIFEST
    text = path.read_text(encoding="utf-8")
    for part, count in counts.items():
        row = re.compile(rf'(\{{ id = "{part}".*?\bitems = )\d+', re.S)
        text = row.sub(rf"\g<1>{count}", text, count=1)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
