"""From results to a document in JSON, and from documents to a table.

A document: {"format": 1, "machine": {fact: text}, "absent": {peer: why}, "results": [{"suite", "task", "unit",
"threads", "flop", "bytes", "rule": {"measure", "limit", "aim"} or null, "rows": [...], "others": CPUs or null,
"measured": {peer: [number, …]}}, …]}.  Where several documents are shown as one, "ceiling" of a result is what the
probe of arithmetic reached in its own run.
"""

from __future__ import annotations

import json
import operator
import re
import statistics
from pathlib import Path
from typing import Any, NamedTuple

from .harness import Result, spread

FORMAT = 1
KEYS = {"suite", "task", "unit", "threads", "flop", "bytes", "rule", "rows", "others", "measured"}


class BadReport(Exception):
    """One line that says what is wrong with a file, for the user."""


def document(machine: dict[str, str], absent: dict[str, str], results: list[Result]) -> dict[str, Any]:
    return {"format": FORMAT, "machine": machine, "absent": absent, "results": [record(r) for r in results]}


def record(result: Result) -> dict[str, Any]:
    task = result.task
    rule = task.rule._asdict() if task.rule else None
    return {
        "suite": task.suite, "task": task.name, "unit": task.unit, "threads": task.threads, "flop": task.flop,
        "bytes": task.nbytes, "rule": rule, "rows": list(task.rows), "others": result.others,
        "measured": result.measured,
    }  # fmt: skip


def load(path: Path) -> dict[str, Any]:
    """Read a document; BadReport if it is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadReport(f"{path}: {error.strerror}; `make bench` writes such a file") from error
    except ValueError as error:
        raise BadReport(f"{path}: is no JSON ({error})") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise BadReport(f"{path}: is no result of these benchmarks in format {FORMAT}; run `make bench` again")
    results = found.get("results")
    if not isinstance(results, list) or not all(isinstance(r, dict) and r.keys() >= KEYS for r in results):
        raise BadReport(f"{path}: results lack some of {', '.join(sorted(KEYS))}; run `make bench` again")
    return found


# ---- what a record says ---------------------------------------------------------------------------------------------


class Verdict(NamedTuple):
    """The number that a rule speaks of, and how it stands: "aim", "pass", "short"."""

    value: float
    shown: str
    wanted: str
    standing: str


def median(record: dict[str, Any], peer: str) -> float:
    return statistics.median(record["measured"][peer])


def best_peer(record: dict[str, Any]) -> str | None:
    """The fastest of the others.  torch.compile is shown but not counted: promises speak of eager PyTorch."""
    others = [p for p in record["measured"] if p not in ("needle", "torch:compile") and not p.startswith("limit")]
    return min(others, key=lambda peer: median(record, peer)) if others else None


def ratio(record: dict[str, Any]) -> float | None:
    """needle's number over the best other peer's: 1.25 is a quarter slower, or larger."""
    best = best_peer(record)
    return median(record, "needle") / median(record, best) if best and "needle" in record["measured"] else None


def verdict(record: dict[str, Any]) -> Verdict | None:
    """None without a rule, or without the peer that the rule needs."""
    rule = record["rule"]
    if rule is None or (value := _judged(record, rule["measure"])) is None:
        return None
    limit, aim = rule["limit"], rule["aim"]
    text = shown if rule["measure"] == "seconds" else "{:.2f}".format
    sign, holds = ("≥", operator.ge) if rule["measure"] in ("speed", "share") else ("≤", operator.le)
    standing = "short" if not holds(value, limit) else "aim" if aim is not None and holds(value, aim) else "pass"
    wanted = f"{sign} {text(limit)}" + (f", aim {text(aim)}" if aim is not None else "")
    return Verdict(value, text(value), wanted, standing)


def _judged(record: dict[str, Any], measure: str) -> float | None:
    """The number that a rule of this measure speaks of."""
    if measure == "seconds":
        return median(record, "needle") if "needle" in record["measured"] else None
    if measure == "share":
        return share(record)
    against = ratio(record)
    return 1 / against if against and measure == "speed" else against


def share(record: dict[str, Any]) -> float | None:
    """needle's part of what the machine can do: of the probe that took turns with it, else of that of arithmetic."""
    if "needle" not in record["measured"]:
        return None
    ours, probes = median(record, "needle"), [peer for peer in record["measured"] if peer.startswith("limit")]
    if probes:
        return median(record, probes[0]) / ours
    ceiling = record.get("ceiling") if record["threads"] > 1 else None
    return record["flop"] / ours / ceiling if record["flop"] and ceiling else None


def with_ceilings(document: dict[str, Any]) -> dict[str, Any]:
    ceiling = limits(document).get("fma")
    return {**document, "results": [{"ceiling": ceiling, **r} for r in document["results"]]}


def merged(documents: list[dict[str, Any]]) -> dict[str, Any]:
    """Several runs as one: the later's result where two have a task."""
    results = {(r["suite"], r["task"]): r for d in documents for r in with_ceilings(d)["results"]}
    machine = {key: value for d in documents for key, value in d["machine"].items()}
    return {**documents[-1], "machine": machine, "results": list(results.values())}


def limits(document: dict[str, Any]) -> dict[str, float]:
    """What the probes reached: FLOP or bytes a second, by name."""
    probes = [r for r in document["results"] if r["suite"] == "probes"]
    return {r["task"]: (r["flop"] or r["bytes"]) / median(r, f"limit:{r['task']}") for r in probes}


# ---- tables ---------------------------------------------------------------------------------------------------------

COLUMNS = ("suite", "task", "needle", "peers", "rate", "of limit", "ratio", "must hold", "", "rows")


def table_rows(document: dict[str, Any]) -> list[tuple[str, ...]]:
    return [_row(r) for r in with_ceilings(document)["results"]]


def _row(record: dict[str, Any]) -> tuple[str, ...]:
    peers = [f"{peer} {with_spread(record, peer)}" for peer in record["measured"] if peer != "needle"]
    ours = with_spread(record, "needle") if "needle" in record["measured"] else ""
    found, part, against = verdict(record), share(record), ratio(record)
    return (
        record["suite"],
        record["task"],
        ours,
        ", ".join(peers),
        rate(record),
        f"{part:.0%}" if part is not None else "",
        found.shown if found else f"{against:.2f}" if against else "",
        found.wanted if found else "",
        found.standing if found else "",
        " ".join(record["rows"]),
    )


def with_spread(record: dict[str, Any], peer: str) -> str:
    values = record["measured"][peer]
    return f"{shown(statistics.median(values), record['unit'])} ±{spread(values):.0%}"


def rate(record: dict[str, Any]) -> str:
    """Of needle, or of the one that was measured."""
    peer = "needle" if "needle" in record["measured"] else next(iter(record["measured"]))
    work, unit = (record["flop"], "GFLOP/s") if record["flop"] else (record["bytes"], "GB/s")
    return f"{work / median(record, peer) / 1e9:.3g} {unit}" if work else ""


def shown(value: float, unit: str = "s") -> str:
    if unit == "B":
        return f"{value / 2**20:.3g} MiB"
    for name, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {name}"
    return f"{value / 1e-9:.3g} ns"


def plain_table(rows: list[tuple[str, ...]]) -> str:
    """Columns aligned by blanks."""
    rows = [COLUMNS, *rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def print_table(document: dict[str, Any]) -> None:
    """With rich if it is installed and somebody looks, else plain."""
    rows = table_rows(document)
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        print(plain_table(rows))
        return
    console = Console()
    if not console.is_terminal:
        print(plain_table(rows))
        return
    table = Table(*COLUMNS)
    colours = {"short": "red", "pass": "yellow", "aim": "green"}
    for row in rows:
        table.add_row(*row, style=colours.get(row[8], ""))
    console.print(table)


def markdown_table(document: dict[str, Any], suite: str) -> str:
    rows = [row[1:] for row in table_rows(document) if row[0] == suite]
    lines = [COLUMNS[1:], ("---",) * len(COLUMNS[1:]), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def fill(page: str, document: dict[str, Any]) -> str:
    """A page with a suite's table between `<!-- suite -->` and `<!-- end -->`, for the suites that the document has."""
    for suite in {r["suite"] for r in document["results"]}:
        table = markdown_table(document, suite)
        page = re.sub(rf"(<!-- {suite} -->\n).*?(<!-- end -->)", rf"\g<1>{table}\n\g<2>", page, flags=re.DOTALL)
    return page
