"""Say what changed between two runs, beyond their spreads.

    python -m benchmarks.compare before.json after.json

needle's numbers are compared as they are, and beside the best other peer: only the second kind means something if the
runs are of different machines or days.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

from .harness import spread
from .report import BadReport, best_peer, load, median, shown

FLOOR = 0.03  # what two runs differ by though their turns do not


class Change(NamedTuple):
    """needle's number before and after; `factor` is after / before, `relative` the same beside the best peer."""

    key: tuple[str, str]
    before: float
    after: float
    factor: float
    relative: float | None
    beyond: bool
    unit: str


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[Change]:
    """Of the tasks that both runs hold."""
    old = {(r["suite"], r["task"]): r for r in before["results"]}
    pairs = [(old.get((r["suite"], r["task"])), r) for r in after["results"] if "needle" in r["measured"]]
    return [_change(a, b) for a, b in pairs if a and "needle" in a["measured"]]


def _change(a: dict[str, Any], b: dict[str, Any]) -> Change:
    before, after = median(a, "needle"), median(b, "needle")
    peer = best_peer(b)
    both = peer is not None and peer in a["measured"]
    relative = (after / median(b, peer)) / (before / median(a, peer)) if both and peer else None
    noise = sum(spread(r["measured"][p]) for r in (a, b) for p in (["needle", peer] if both and peer else ["needle"]))
    seen = relative if relative is not None else after / before
    beyond = abs(seen - 1) > noise + FLOOR
    return Change((b["suite"], b["task"]), before, after, after / before, relative, beyond, b["unit"])


def told(change: Change) -> str:
    suite, task = change.key
    seen = change.factor if change.relative is None else change.relative
    word = (
        ("slower" if change.unit == "s" else "larger") if seen > 1 else ("faster" if change.unit == "s" else "smaller")
    )
    beside = "" if change.relative is None else f", beside the best peer {change.relative:.2f}"
    times = f"{shown(change.before, change.unit)} → {shown(change.after, change.unit)}"
    return f"{word:8} {suite}/{task}: {times} ({change.factor:.2f}{beside})"


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print("compare: takes two files: python -m benchmarks.compare before.json after.json", file=sys.stderr)
        return 2
    try:
        before, after = (load(Path(name)) for name in arguments)
    except BadReport as trouble:
        print(f"compare: {trouble}", file=sys.stderr)
        return 2
    found = changes(before, after)
    if not found:
        print("compare: the two files have no task in common", file=sys.stderr)
        return 2
    different = [c for c in found if c.beyond]
    for fact in ("processor", "cores", "compiler"):
        if (was := before["machine"].get(fact)) != (now := after["machine"].get(fact)):
            print(f"another {fact}: {was}, now {now}")
    print("\n".join(told(c) for c in sorted(different, key=lambda c: c.relative or c.factor)) or "no change")
    print(f"{len(found) - len(different)} of {len(found)} tasks did not change beyond the spread of their turns")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
