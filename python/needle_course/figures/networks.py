"""Pictures of networks: windows over an image, blocks with shortcuts, cells unrolled over time, an LSTM's gates."""

from __future__ import annotations

from collections.abc import Sequence

from .colours import FAINT, PAPER
from .drawing import COLOURS, Sheet


def windows(height: int, width: int, kernel: int, stride: int = 1) -> Sheet:
    """An image with numbered pixels, and beside it the matrix whose rows are its windows (im2col).

    Each pixel has the same number and, by its row in the image, the same colour on both sides.
    """
    rows, columns = (height - kernel) // stride + 1, (width - kernel) // stride + 1
    cell = 26.0
    alt = (
        f"An image of {height} by {width} pixels and its {rows * columns} windows of {kernel} by {kernel}, stride "
        f"{stride}, each written as a row of {kernel * kernel} numbers."
    )
    left = width * cell + 90
    sheet = Sheet(left + kernel * kernel * cell + 70, max(rows * columns, height) * cell + 50, alt)
    sheet.text(20 + width * cell / 2, 22, f"image {height} × {width}")
    sheet.text(left + kernel * kernel * cell / 2, 22, f"windows {rows * columns} × {kernel * kernel}")
    for pixel in range(height * width):
        i, j = divmod(pixel, width)
        sheet.box(20 + j * cell, 32 + i * cell, cell, cell, pixel, COLOURS[i % len(COLOURS)], size=11)
    for window in range(rows * columns):
        i, j = divmod(window, columns)
        sheet.text(left - 8, 32 + (window + 0.7) * cell, f"({i}, {j})", size=10, anchor="end")
        for entry in range(kernel * kernel):
            y, x = i * stride + entry // kernel, j * stride + entry % kernel
            place = left + entry * cell, 32 + window * cell
            sheet.box(*place, cell, cell, y * width + x, COLOURS[y % len(COLOURS)], size=11)
    return sheet


def chain(blocks: Sequence[tuple[str, str]], shortcuts: Sequence[tuple[int, int]] = (), alt: str = "") -> Sheet:
    """Blocks from top to bottom: (what it does, the shape that leaves it); shortcuts lead from behind one block to
    where the output of another is added to it."""
    height, width, step = 34.0, 300.0, 58.0
    words = "; ".join(f"{name} gives {shape}" for name, shape in blocks)
    jumps = "; ".join(f"what leaves block {a} is added to what leaves block {b}" for a, b in shortcuts)
    sheet = Sheet(width + 250, len(blocks) * step + 10, f"{alt} {words}. {jumps}".strip())
    for i, (name, shape) in enumerate(blocks):
        y = 8 + i * step
        sheet.box(20, y, width, height, name, COLOURS[4] if "(" in name else PAPER, round_=6)
        sheet.text(20 + width / 2 - 8, y + height + 16, shape, size=11, anchor="end")
        if i + 1 < len(blocks):
            sheet.arrow(20 + width / 2, y + height, 20 + width / 2, y + step - 1)
    for a, b in shortcuts:
        top, bottom, x = 8 + a * step + height + 10, 8 + b * step + height + 12, width + 90
        sheet.body += (
            f'<path d="M{20 + width / 2} {top} H{x} V{bottom} H{20 + width / 2 + 4}" fill="none" stroke="{COLOURS[5]}" '
            'stroke-width="2" marker-end="url(#head)"/>'
        )
        sheet.text(x + 8, (top + bottom) / 2, "added", size=11, anchor="start")
    return sheet


def unrolled(steps: int, cell: str = "cell") -> Sheet:
    """One cell used at every step: inputs from below, outputs above, the state from left to right."""
    alt = (
        f"A recurrent network over {steps} steps: the same {cell} reads the input of its step and the state "
        "of the step before, and gives the next state, which is also the output."
    )
    gap = 120.0
    sheet = Sheet(steps * gap + 130, 190, alt)
    sheet.text(30, 98, "h₀")
    for t in range(steps):
        x = 70 + t * gap
        sheet.arrow(x - 26 if t == 0 else x - gap + 68, 94, x - 2, 94)
        sheet.box(x, 70, 66, 48, cell, COLOURS[4], round_=8)
        sheet.arrow(x + 33, 158, x + 33, 120)
        sheet.text(x + 33, 176, f"x{_below(t + 1)}")
        sheet.arrow(x + 33, 70, x + 33, 34)
        sheet.text(x + 33, 24, f"h{_below(t + 1)}")
    sheet.arrow(70 + steps * gap - 52, 94, 70 + steps * gap - 10, 94)
    sheet.text(70 + steps * gap + 4, 98, f"h{_below(steps)}")
    return sheet


def _below(number: int) -> str:
    return "".join("₀₁₂₃₄₅₆₇₈₉"[int(digit)] for digit in str(number))


def lstm() -> Sheet:
    """An LSTM cell: the memory c passes straight through, erased by f, written by i and g, shown by o."""
    alt = (
        "An LSTM cell. The memory c runs from left to right: it is multiplied by the forget gate f, then the product "
        "of the input gate i and the candidate g is added. The new state h is the output gate o times tanh of the new "
        "memory. All four gates are computed from the input x and the old state h."
    )
    sheet = Sheet(620, 300, alt)
    sheet.text(22, 64, "c")
    sheet.arrow(34, 60, 146, 60)
    sheet.circle(164, 60, 16, "×", COLOURS[6])
    sheet.arrow(182, 60, 286, 60)
    sheet.circle(304, 60, 16, "+", COLOURS[6])
    sheet.arrow(322, 60, 580, 60)
    sheet.text(600, 64, "c′")
    for x, name, colour in (
        (134.0, "f  forget", 0),
        (224.0, "i  input", 2),
        (314.0, "g  candidate", 1),
        (434.0, "o  output", 3),
    ):
        sheet.box(x - 14, 200, 84, 32, name, COLOURS[colour], size=12, round_=6)
        sheet.arrow(x + 28, 262, x + 28, 234)
    sheet.arrow(164, 198, 164, 78)
    sheet.circle(304, 130, 14, "×", COLOURS[6])
    sheet.arrow(266, 198, 296, 144)
    sheet.arrow(346, 198, 312, 144)
    sheet.arrow(304, 114, 304, 78)
    sheet.box(500, 92, 50, 26, "tanh", FAINT, size=12, round_=6)
    sheet.arrow(525, 60, 525, 90)
    sheet.circle(525, 150, 14, "×", COLOURS[6])
    sheet.arrow(525, 118, 525, 134)
    sheet.arrow(476, 198, 514, 160)
    sheet.arrow(541, 150, 580, 150)
    sheet.text(600, 154, "h′")
    sheet.box(110, 264, 400, 26, "x W_ih + b_ih + h W_hh + b_hh", FAINT, size=12)
    return sheet
