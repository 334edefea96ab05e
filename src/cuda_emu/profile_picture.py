#!/usr/bin/env python3
"""Draw the emulator's memory profile: one bar a source line, as long as it is worse than the best possible.

CUEMU_PROFILE=profile.json python my_program.py
python src/cuda_emu/profile_picture.py profile.json profile.svg
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

GLOBAL, SHARED = "#0072b2", "#e69f00"  # blue and orange: apart for the colour-blind too
ROW, HEAD, LABEL, BAR, SIDE = 24, 40, 250, 420, 20
WIDTH = LABEL + BAR + 220


def draw(profile: dict[str, Any]) -> str:
    """The profile, as read from its JSON, as the text of an SVG picture."""
    kernels = profile["kernels"]
    worst = max([factor(line) for kernel in kernels for line in kernel["lines"]] + [1.0])
    parts, y = [], HEAD + 30
    for kernel in kernels:
        parts.append(text(SIDE, y, kernel["kernel"], weight="bold"))
        y += ROW
        for line in kernel["lines"]:
            parts.append(bar(line, y, worst))
            y += ROW
        y += ROW // 2
    return svg(parts, y, summary(kernels))


def factor(line: dict[str, Any]) -> float:
    """How many times the fewest possible sectors or passes a request of this line takes; 1 is best."""
    return line["per_request"] / line["fewest"]


def bar(line: dict[str, Any], y: int, worst: float) -> str:
    shared = line["memory"] == "shared"
    width = max(2.0, BAR * factor(line) / worst)
    unit = "passes" if shared else "sectors"
    note = f"{factor(line):.1f}x: {line['per_request']:.1f} {unit}, {line['fewest']:.1f} would do"
    return "\n".join(
        [
            text(SIDE + 12, y, f"{line['line']} ({line['memory']})"),
            f'<rect x="{LABEL}" y="{y - 12}" width="{width:.1f}" height="16" fill="{SHARED if shared else GLOBAL}"/>',
            text(LABEL + round(width) + 8, y, note),
        ]
    )


def text(x: int, y: int, words: str, weight: str = "normal") -> str:
    return f'<text x="{x}" y="{y}" font-weight="{weight}">{escape(words)}</text>'


def summary(kernels: list[dict[str, Any]]) -> str:
    """What the picture shows, for those who cannot see it."""
    lines = [(factor(line), line["line"], kernel["kernel"]) for kernel in kernels for line in kernel["lines"]]
    if not lines:
        return "No access to memory was seen."
    worst, where, kernel = max(lines)
    return (
        f"Memory requests of {len(lines)} lines; the worst is {where} in {kernel}, {worst:.1f} times the best possible."
    )


def svg(parts: list[str], height: int, description: str) -> str:
    legend = [
        text(SIDE, 26, "Memory requests of a warp: times the fewest possible (1 is best)", weight="bold"),
        f'<rect x="{WIDTH - 250}" y="14" width="14" height="14" fill="{GLOBAL}"/>' + text(WIDTH - 230, 26, "global"),
        f'<rect x="{WIDTH - 150}" y="14" width="14" height="14" fill="{SHARED}"/>' + text(WIDTH - 130, 26, "shared"),
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
            ' font-family="sans-serif" font-size="13" role="img" aria-labelledby="title description">',
            '<title id="title">Memory profile of CUDA kernels</title>',
            f'<desc id="description">{escape(description)}</desc>',
            f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
            *legend,
            *parts,
            "</svg>\n",
        ]
    )


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print("usage: profile_picture.py PROFILE.json PICTURE.svg", file=sys.stderr)
        return 2
    try:
        profile = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
        picture = draw(profile)
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(
            f"{arguments[0]}: no profile of the emulator ({error}); make one with CUEMU_PROFILE=FILE", file=sys.stderr
        )
        return 1
    Path(arguments[1]).write_text(picture, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
