"""Measure needle beside the peers that are installed: NumPy, PyTorch, and what the machine can do at most.

    python -m benchmarks [SUITE …]        gemm sizes conv ops models overhead memory scaling, or all

Each answer is compared before it is timed. Peers take turns within one run; only ratios within one run mean something.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from . import machine, pictures, report
from .harness import DISTURBED, QUICK, ROOT, Effort, Pool, Result, Trouble, measure, tasks_of
from .suites import SUITES, THREADS, Task, probes

OUT = ROOT / "out" / "benchmarks"


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: what was measured is kept
    unknown = [s for s in options.suites if s not in (*SUITES, "all")]
    if unknown:
        print(f"benchmarks: no suite {unknown[0]!r}; there are {', '.join(SUITES)} and all", file=sys.stderr)
        return 2
    if options.report:
        return show(options)
    wanted = list(SUITES) if "all" in options.suites else options.suites
    tasks = [*probes(options.quick), *(t for s in wanted for t in tasks_of(SUITES[s], options.quick, options.only))]
    facts, pool = machine.facts(), Pool(options.torch, tuple(options.without))
    results, troubles = run(tasks, pool, options)
    found = report.document({**facts, "threads": str(THREADS), **pool.facts}, pool.absent, results)
    write(found, options)
    for line in troubles:
        print(f"benchmarks: {line}", file=sys.stderr)
    return 1 if troubles else 0


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("suites", nargs="*", default=["all"], metavar="SUITE", help=f"{', '.join(SUITES)} or all")
    parser.add_argument("--only", default="", metavar="TEXT", help="tasks whose name holds this")
    parser.add_argument(
        "--quick", action="store_true", help="tiny sizes, two turns: tries the program, measures nothing"
    )
    parser.add_argument(
        "--turns", type=int, default=Effort().turns, help="of each peer that count (at least 7 to publish)"
    )
    parser.add_argument("--compile", action="store_true", help="torch.compile too, on training steps")
    parser.add_argument("--torch", default=os.environ.get("NEEDLE_BENCH_TORCH", ""), metavar="PYTHON",
                        help="the interpreter of an environment with PyTorch, if this one has none")  # fmt: skip
    parser.add_argument("--without", nargs="*", default=[], metavar="PEER", help="peers to leave out")
    parser.add_argument("--out", type=Path, default=OUT, help="folder for results.json and pictures")
    parser.add_argument("--report", nargs="+", type=Path, default=[], metavar="FILE", help="show earlier runs as one")
    parser.add_argument("--page", type=Path, help="with --report: a page whose tables to fill, as docs/performance.md")
    return parser.parse_args(arguments)


def run(tasks: list[Task], pool: Pool, options: argparse.Namespace) -> tuple[list[Result], list[str]]:
    """The results, and a line for each task that went wrong."""
    effort = QUICK if options.quick else Effort(turns=options.turns)
    results, troubles = [], []
    try:
        for task in tasks:
            print(f"{task.suite}: {task.name}", file=sys.stderr, flush=True)
            if options.compile and task.suite == "models":
                task = task._replace(peers=(*task.peers, "torch:compile"))
            try:
                results.append(measure(task, pool, effort))
            except Trouble as trouble:
                troubles.append(f"{task.suite}/{task.name}: {trouble}")
    except KeyboardInterrupt:
        troubles.append(f"stopped during {task.suite}/{task.name}; what was measured before is kept")
    finally:
        pool.close()
    return results, troubles


def write(found: dict[str, Any], options: argparse.Namespace) -> None:
    """Numbers and pictures into files; the table on the screen."""
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "results.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print("\n".join(f"{key}: {value}" for key, value in found["machine"].items()))
    for peer, why in found["absent"].items():
        print(f"without {peer}: {why}")
    report.print_table(found)
    disturbed = [r["task"] for r in found["results"] if (r["others"] or 0.0) > DISTURBED]
    if disturbed:
        print(f"other programs took more than a quarter of a CPU during: {', '.join(disturbed)}")
    drawn = pictures.draw(found, options.out)
    print(f"in {options.out}: results.json" + "".join(f", {path.name}" for path in drawn))


def show(options: argparse.Namespace) -> int:
    """Earlier results as one document: the later file's where both have a task."""
    try:
        documents = [report.load(path) for path in options.report]
    except report.BadReport as trouble:
        print(f"benchmarks: {trouble}", file=sys.stderr)
        return 2
    found = report.merged(documents)
    write(found, options)
    if options.page:
        page = options.page.read_text(encoding="utf-8")
        options.page.write_text(report.fill(page, found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
