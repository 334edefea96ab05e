"""Measure needle beside the peers that are installed.

    python -m benchmarks [gemm|models|overhead|all]

Each answer is compared before it is timed. Peers take turns within one run; only ratios within one run mean something.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "apps"), str(ROOT)]  # this tree's needle, whatever else is installed

from benchmarks import suites
from benchmarks.harness import machine, measure, table

REPORT = ROOT / "out" / "benchmarks.json"


def main() -> int:
    wanted = sys.argv[1] if len(sys.argv) > 1 else "all"
    if wanted not in (*suites.SUITES, "all"):
        print(f"benchmarks: no suite {wanted!r}; there are {', '.join(suites.SUITES)} and all", file=sys.stderr)
        return 2
    results = []
    for name, suite in suites.SUITES.items():
        for task in suite() if wanted in (name, "all") else []:
            print(f"{name}: {task.name}", file=sys.stderr, flush=True)
            results.append(measure(task))
    facts = machine()
    print(", ".join(f"{key} {value}" for key, value in facts.items()))
    print(table(results))
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(json.dumps({"machine": facts, "results": [r._asdict() for r in results]}, indent=1) + "\n")
    print(f"all times: {REPORT.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
