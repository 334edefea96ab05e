"""What a check found, shown: a table in a notebook, lines elsewhere."""

from __future__ import annotations

import html
from typing import Any

from .report import MARKS
from .results import BLOCKED, ERROR, FAILED, NOT_IMPLEMENTED, PASSED

# beside the mark and the word, which everybody sees
COLOURS = {PASSED: "#00614a", FAILED: "#a33c00", ERROR: "#a33c00", NOT_IMPLEMENTED: "#5a5a5a", BLOCKED: "#5a5a5a"}
SHOWN = 5  # failed cases of a part; the first tells most


def look_of(status: str) -> tuple[str, str]:
    """The mark and the colour of a part's status; of one that is new to us, an error's."""
    known = status if status in COLOURS else ERROR
    return MARKS[known], COLOURS[known]


class Verdict:
    """What a check found, as a table in a notebook and as lines elsewhere."""

    def __init__(self, question: str, result: dict[str, Any]) -> None:
        self.question, self.result = question, result
        self.parts = [part for q in result["questions"] for part in q["parts"]]

    @property
    def green(self) -> bool:
        return bool(self.parts) and all(part["status"] == PASSED for part in self.parts)

    def first_trouble(self) -> str:
        """The message of the first part that is not green, on one line."""
        for part in self.parts:
            if part["status"] != PASSED:
                message = (part.get("message") or "no message").strip().splitlines()[0]
                return message if part["id"] in message else f"{part['id']}: {message}"
        return f"{self.question}: no part of it was checked"

    def _rows(self) -> list[tuple[str, str, str]]:
        """(status, name, message) of each part and of the first of its cases that failed."""
        rows = []
        for part in self.parts:
            cases = part.get("cases") or ()
            passed = sum(case["status"] == PASSED for case in cases)
            count = f" · {passed} of {len(cases)} cases" if cases else ""
            message = "\n".join(filter(None, (part.get("message"), part.get("hint"))))
            rows.append((part["status"], part["id"] + count, message))
            failed = [case for case in cases if case["status"] == FAILED]
            rows += [(FAILED, f"   {case['name']}", case.get("message") or "") for case in failed[:SHOWN]]
        return rows

    def _repr_html_(self) -> str:
        head = f"<b>{html.escape(self.question)}</b> · {self.result.get('seconds', 0):.1f} s"
        return head + "<table>" + "".join(self._row(*row) for row in self._rows()) + "</table>"

    def _row(self, status: str, name: str, message: str) -> str:
        mark, colour = look_of(status)
        text = "" if status == PASSED else f'<pre style="margin:0;white-space:pre-wrap">{html.escape(message)}</pre>'
        cell = 'style="text-align:left;vertical-align:top"'
        label = f'<span style="color:{colour}"><b>{mark} {status.replace("_", " ")}</b></span>'
        return f"<tr><td {cell}>{label}</td><td {cell}>{html.escape(name)}</td><td {cell}>{text}</td></tr>"

    def __repr__(self) -> str:
        lines = []
        for status, name, message in self._rows():
            lines.append(f"{look_of(status)[0]} {status.replace('_', ' ')}  {name}")
            lines += [f"      {line}" for line in message.splitlines() if status != PASSED]
        return "\n".join(lines)
