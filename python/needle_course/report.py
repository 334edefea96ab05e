"""Reports for people: the result of a check on a terminal, and a grade as a page that needs nothing but itself."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator
from typing import Any

from .results import BLOCKED, ERROR, FAILED, NOT_IMPLEMENTED, PASSED, SKIPPED, PartResult, QuestionResult, Report

MARKS = {PASSED: "✓", FAILED: "✗", ERROR: "✗", NOT_IMPLEMENTED: "○", BLOCKED: "⏸", SKIPPED: "-"}
STYLES = {PASSED: "green", FAILED: "red", ERROR: "red", NOT_IMPLEMENTED: "dim", BLOCKED: "yellow", SKIPPED: "dim"}
CASES_SHOWN = 3  # of a red part; `--json` and JUnit have them all


# ---- on a terminal --------------------------------------------------------------------------------------------------


def show(report: Report, console: Any = None) -> None:
    """Print the report: a line a question, and below a red one what is wrong with its parts."""
    console = console or new_console()
    console.print(headline(report), highlight=False)
    for question in report.questions:
        console.print(question_line(question), highlight=False, soft_wrap=True)
        for part in question.parts:
            for style, line in part_lines(part, alone=len(question.parts) == 1):
                console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)
    for note in report.notes:
        console.print(f"note: {note}", style="yellow", markup=False, highlight=False, soft_wrap=True)
    if not report.passed and not any(part.hint for part in report.parts()):
        console.print("hints: add --hints 1 (with make: H=1), or 2, or 3", style="dim", highlight=False)


def new_console() -> Any:
    from rich.console import Console

    return Console()


def headline(report: Report) -> str:
    counts = (
        f"{report.passed_count} of {len(report.questions)} questions, {report.earned:g} of {report.points:g} points"
    )
    return f"{report.stage}: {counts}, {report.seconds:.1f} s"


def question_line(question: QuestionResult) -> str:
    style = STYLES[question.status]
    name = f"[{style}]{MARKS[question.status]} {question.id}[/{style}]"
    return f"{name}  {question.title}  {question.earned:g}/{question.points:g}  {question.status.replace('_', ' ')}"


def part_lines(part: PartResult, alone: bool) -> Iterator[tuple[str, str]]:
    """(style, line) of a part: nothing more than its name if it is green, else its cases and its message."""
    style = STYLES[part.status]
    run = [case for case in part.cases if case.status != SKIPPED]
    count = f", {sum(case.status == PASSED for case in run)} of {len(run)} cases" if len(run) > 1 else ""
    if not alone or part.status != PASSED:
        yield style, f"    {MARKS[part.status]} {part.id} ({part.title}): {part.status.replace('_', ' ')}{count}"
    if part.status == PASSED:
        return
    for line in part.message.splitlines():
        yield "", f"        {line}"
    others = [case for case in run if case.status != PASSED][1:CASES_SHOWN]
    for case in others:
        yield "dim", f"        also {case.name}: {case.message.partition(chr(10))[0]}"
    for line in part.hint.splitlines():
        yield "cyan", f"        {line}"


# ---- as a page ------------------------------------------------------------------------------------------------------

STYLE = """
:root { color-scheme: light dark; --back: #fff; --text: #1b1b1b; --line: #d0d0d0; --good: #00614a; --bad: #a33c00;
        --dim: #5f5f5f; --code: #f4f4f2; }
@media (prefers-color-scheme: dark) {
  :root { --back: #16181b; --text: #e8e8e6; --line: #3a3d42; --good: #5fd3ac; --bad: #ff9d66; --dim: #a2a5aa;
          --code: #22252a; } }
body { background: var(--back); color: var(--text); font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto;
       max-width: 60rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .6rem; text-align: left; vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
pre { background: var(--code); overflow-x: auto; padding: .6rem .8rem; white-space: pre-wrap; }
summary { cursor: pointer; }
.passed { color: var(--good); } .failed, .error { color: var(--bad); } .not_implemented, .blocked { color: var(--dim); }
.notice { border-left: 4px solid var(--bad); padding-left: .8rem; }
"""
HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
"""


def page(title: str, body: Iterable[str]) -> str:
    """A whole page: no script, nothing fetched, light or dark as the reader's system is."""
    head = HEAD.format(title=html.escape(title), style=STYLE)
    return head + "\n".join([f"<h1>{html.escape(title)}</h1>", *body]) + "\n</body>\n</html>\n"


def questions_as_html(questions: Iterable[QuestionResult]) -> Iterator[str]:
    """A table of the questions, then, folded, what is wrong with each red part."""
    questions = list(questions)
    yield "<table><thead><tr><th>question</th><th>status</th><th class=number>points</th></tr></thead><tbody>"
    for question in questions:
        name, title = html.escape(question.id), html.escape(question.title)
        points = f"<td class=number>{question.earned:g} / {question.points:g}</td>"
        yield f"<tr><td><a href='#{name}'>{name}</a> {title}</td>{status_cell(question.status)}{points}</tr>"
    yield "</tbody></table>"
    for question in questions:
        yield f"<h2 id='{html.escape(question.id)}'>{html.escape(question.id)}: {html.escape(question.title)}</h2>"
        for part in question.parts:
            yield from part_as_html(part)


def part_as_html(part: PartResult) -> Iterator[str]:
    mark = f"<span class={part.status}>{MARKS[part.status]} {part.status.replace('_', ' ')}</span>"
    name = f"{html.escape(part.id)} ({html.escape(part.title)})"
    if part.status == PASSED:
        yield f"<p>{mark} {name}, {len(part.cases)} case{'s' if len(part.cases) != 1 else ''}</p>"
        return
    yield f"<details open><summary>{mark} {name}</summary>"
    yield f"<pre>{html.escape(part.message)}</pre>"
    yield "</details>"


def status_cell(status: str) -> str:
    return f"<td class={status}>{MARKS.get(status, '✗')} {html.escape(status.replace('_', ' '))}</td>"
