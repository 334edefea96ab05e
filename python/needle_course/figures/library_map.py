"""The map of the library: its rooms on their floors, one of them lit."""

from __future__ import annotations

import html
from dataclasses import dataclass, replace

from .colours import BLUE, INK, PAPER
from .svg import Svg


@dataclass(frozen=True)
class Room:
    """A part of the library: its name on the map, its file, where it stands, and the stage that opens it."""

    name: str
    path: str
    floor: int
    column: int
    width: int
    opens: str


# floors count from the bottom; what stands on a floor uses only what lies below it
ROOMS = (
    Room("src/cpu", "src/ndarray_backend_cpu.cc", 0, 4, 2, "hw3"),
    Room("src/cuda", "src/ndarray_backend_cuda.cu", 0, 6, 2, "hw3"),
    Room("numpy", "backend_numpy.py", 0, 0, 4, "hw1"),
    Room("backend_ndarray", "backend_ndarray/ndarray.py", 1, 4, 4, "hw3"),
    Room("autograd", "autograd.py", 2, 0, 4, "hw1"),
    Room("init", "init/", 2, 4, 4, "hw1"),
    Room("ops", "ops/", 3, 0, 8, "hw1"),
    Room("nn", "nn/", 4, 0, 3, "hw2"),
    Room("optim", "optim.py", 4, 3, 2, "hw2"),
    Room("data", "data/", 4, 5, 3, "hw2"),
    Room("apps", "apps/", 5, 0, 8, "hw1"),
)
HW0_ROOMS = (
    Room("hw0/simple_ml_ext", "src/simple_ml_ext.cpp", 0, 0, 4, "hw0"),
    Room("hw0/simple_ml", "src/simple_ml.py", 1, 0, 4, "hw0"),
)
CELL, HEIGHT, GAP, MARGIN = 84, 46, 8, 12
LIT, PLAIN, EDGE = BLUE, "#eef3f7", "#8899a6"  # blue stays apart in grey, too


def library_map(place: str, stage: str) -> Svg:
    """The rooms that are open in `stage`, with the one that `place` lies in lit: "ops/BroadcastTo.gradient".

    Raises ValueError if no room has that name.
    """
    rooms = open_rooms(stage)
    lit = next((room for room in rooms if place == room.name or place.startswith(room.name + "/")), None)
    if lit is None:
        raise ValueError(f"here: no room for {place!r}; wanted one of {', '.join(room.name for room in rooms)}")
    inside = place[len(lit.name) + 1 :]
    rooms = [_spread(room, rooms) for room in rooms]
    floors = max(room.floor for room in rooms)
    columns = max(room.column + room.width for room in rooms)
    body = [_box(room, room.name == lit.name, inside, floors) for room in rooms]
    summary = f"Map of the library. You are in {lit.path}" + (f", at {inside}." if inside else ".")
    size = columns * CELL + 2 * MARGIN, (floors + 1) * (HEIGHT + GAP) + 2 * MARGIN
    return Svg("".join(body), size, summary)


def open_rooms(stage: str) -> list[Room]:
    """The rooms of the stages up to this one; hw0 has a little house of its own."""
    if stage == "hw0":
        return list(HW0_ROOMS)
    return [room for room in ROOMS if room.opens <= stage]  # hw1 < hw2 < … < hw4 < hw4_extra, as text too


def _spread(room: Room, rooms: list[Room]) -> Room:
    """The room on the lowest floor that leaves none empty, and as wide as all where it is alone there."""
    floor = len({other.floor for other in rooms if other.floor < room.floor})
    if any(other.floor == room.floor for other in rooms if other is not room):
        return replace(room, floor=floor)
    return replace(room, floor=floor, column=0, width=max(other.column + other.width for other in rooms))


def _box(room: Room, lit: bool, inside: str, floors: int) -> str:
    x, y = MARGIN + room.column * CELL, MARGIN + (floors - room.floor) * (HEIGHT + GAP)
    width, middle = room.width * CELL - GAP, MARGIN + room.column * CELL + (room.width * CELL - GAP) / 2
    fill, ink, border = (LIT, PAPER, 3) if lit else (PLAIN, INK, 1)
    upper, lower = (f"▶ {room.name}", inside or room.path) if lit else (room.name, room.path)
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{HEIGHT}" rx="7" fill="{fill}" stroke="{EDGE}" '
        f'stroke-width="{border}"/>' + _text(upper, middle, y + 19, ink, "bold") + _text(lower, middle, y + 36, ink)
    )


def _text(text: str, x: float, y: float, ink: str, weight: str = "normal") -> str:
    return f'<text x="{x}" y="{y}" fill="{ink}" font-weight="{weight}" text-anchor="middle">{html.escape(text)}</text>'
