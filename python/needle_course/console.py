"""How commands talk: results on standard output, everything else, one line at a time, on standard error."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

Item = TypeVar("Item")
SHOWN = 12


def say(text: str = "") -> None:
    """A line of the result, for people."""
    print(text, flush=True)


def note(text: str) -> None:
    """A line about what goes on, or what to know; never part of a result."""
    print(text, file=sys.stderr, flush=True)


def shortened(names: Sequence[str]) -> str:
    """The names, or the first of very many; --json has them all."""
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def never_fail_to_print() -> None:
    """A terminal that lacks a sign, or a path that is no UTF-8, shows a question mark; no command stops at it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def emit(document: Any) -> None:
    """The result for machines: one JSON document, and nothing else, on standard output."""
    print(json.dumps(document, indent=2), flush=True)


def track(items: Sequence[Item], what: str) -> Iterator[Item]:
    """Go through items with a progress bar on a terminal, and with one plain line elsewhere."""
    if not sys.stderr.isatty():
        note(f"{what} ({len(items)})")
        yield from items
        return
    from rich.console import Console
    from rich.progress import track as bar

    yield from bar(items, what, console=Console(stderr=True), transient=True)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show on a terminal that something of unknown length goes on; say nothing elsewhere."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield
