"""Pictures of how arrays lie in memory, and of who works on which part of them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from .colours import FAINT, PAPER
from .drawing import COLOURS, Sheet

CELL = 30.0


def memory(shape: Sequence[int], strides: Sequence[int], offset: int = 0, size: int | None = None) -> Sheet:
    """A view of one or two axes above the flat memory it looks at; strides and offset count elements.

    Each cell of the view holds the number of its place in memory, and has its colour there.  Places that the view
    does not touch stay grey; a place that it shows several times is marked below with how often.
    """
    rows, columns = (1, *shape)[-2:]
    row_stride, column_stride = (0, *strides)[-2:]
    places = [[offset + i * row_stride + j * column_stride for j in range(columns)] for i in range(rows)]
    flat = [place for row in places for place in row]
    size = max(flat, default=0) + 1 if size is None else size
    colour = {place: COLOURS[i % len(COLOURS)] for i, row in reversed(list(enumerate(places))) for place in row}
    alt = (
        f"A view of shape {tuple(shape)} with strides {tuple(strides)} and offset {offset}. Its cells lie at the "
        f"places {flat} of a memory of {size} elements."
    )
    sheet = Sheet(max(size, columns) * CELL + 130, rows * CELL + 130, alt)
    sheet.text(8, 24 + rows * CELL / 2, "the view", anchor="start")
    for (i, row), j in itertools.product(enumerate(places), range(columns)):
        sheet.box(110 + j * CELL, 15 + i * CELL, CELL, CELL, row[j], colour[row[j]])
    top = rows * CELL + 55
    sheet.text(8, top + 20, "the memory", anchor="start")
    for place in range(size):
        sheet.box(110 + place * CELL, top, CELL, CELL, place, colour.get(place, FAINT))
        if flat.count(place) > 1:
            sheet.text(110 + (place + 0.5) * CELL, top + CELL + 16, f"× {flat.count(place)}", size=11)
    if flat:
        sheet.text(110 + (offset + 0.5) * CELL, top - 7, "offset ↓", size=11)
    return sheet


def blocks(rows: int, inner: int, columns: int, tile: int, at: tuple[int, int] = (0, 0)) -> Sheet:
    """Which tiles of a (rows × inner) and b (inner × columns) one tile of their product needs; sizes in tiles.

    tile is the number of elements along a tile's side; at is the tile of the product.
    """
    i, j = at
    step, gap = 22.0, 60.0
    alt = (
        f"Matrix product in tiles of {tile} by {tile}: tile ({i}, {j}) of the product needs row {i} of the tiles of a "
        f"and column {j} of the tiles of b, {inner} pairs."
    )
    top = inner * step + gap
    sheet = Sheet((inner + columns) * step + gap + 40, top + rows * step + 40, alt)
    left = inner * step + gap
    for name, x, y, height, width, lit in (
        ("a", 20.0, top, rows, inner, lambda r, c: r == i),
        ("b", left, 20.0, inner, columns, lambda r, c: c == j),
        ("a @ b", left, top, rows, columns, lambda r, c: (r, c) == (i, j)),
    ):
        for r, c in itertools.product(range(height), range(width)):
            k = c if name == "a" else r
            fill = PAPER if not lit(r, c) else COLOURS[1] if name == "a @ b" else COLOURS[k % len(COLOURS)]
            sheet.box(x + c * step, y + r * step, step, step, "", fill)
        sheet.text(x + width * step / 2, y - 6, name)
    sheet.text(20, top + rows * step + 26, f"one cell = {tile} × {tile} numbers", anchor="start", size=12)
    return sheet


def grid(size: int, block: int) -> Sheet:
    """The blocks and threads that work on `size` elements, `block` threads in each block; those beyond the end idle."""
    count = -(-size // block)
    alt = (
        f"{count} blocks of {block} threads for {size} elements: thread t of block b works on element b times {block} "
        f"plus t. The last {count * block - size} threads have nothing to do."
    )
    sheet = Sheet(count * (block * CELL + 14) + 100, 130, alt)
    sheet.text(8, 62, "threadIdx.x", anchor="start", size=11)
    sheet.text(8, 105, "element", anchor="start", size=11)
    for number in range(count * block):
        b, t = divmod(number, block)
        x = 90 + number * CELL + b * 14
        if t == 0:
            sheet.text(x + block * CELL / 2, 28, f"blockIdx.x = {b}", size=12)
        sheet.box(x, 40, CELL, CELL, t, COLOURS[b % len(COLOURS)])
        if number < size:
            sheet.box(x, 85, CELL, CELL, number, COLOURS[b % len(COLOURS)])
        else:
            sheet.text(x + CELL / 2, 105, "none", size=10)
    return sheet


def tree(values: Sequence[float]) -> Sheet:
    """A sum by halves: in each round, the first half of the threads adds what the second half holds."""
    rows = [list(values)]
    while len(rows[-1]) > 1:
        half = len(rows[-1]) // 2
        rows.append([rows[-1][t] + rows[-1][t + half] for t in range(half)])
    alt = "A sum by halves. " + " Then ".join(str(row) for row in rows)
    step = 46.0
    sheet = Sheet(len(values) * step + 130, len(rows) * 60 + 10, alt)
    for r, row in enumerate(rows):
        sheet.text(8, r * 60 + 30, f"round {r}" if r else "start", anchor="start", size=12)
        for t, value in enumerate(row):
            x = 80 + t * step
            sheet.box(x, r * 60 + 12, step - 8, 28, f"{value:g}", COLOURS[t % len(COLOURS)])
            if r:
                for source in (t, t + len(row)):
                    sheet.arrow(80 + source * step + 19, (r - 1) * 60 + 40, x + 19, r * 60 + 11)
    return sheet
