"""A small sheet to draw on: boxes, words and arrows, as SVG that a notebook shows and a screen reader can name."""

from __future__ import annotations

from html import escape

from .colours import BLUE, GREEN, GREY, INK, ORANGE, PAPER, PURPLE, SKY, VERMILION, YELLOW
from .svg import Svg

COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, YELLOW, GREY)
HEAD = (
    '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
    f'orient="auto"><path d="M0 0L8 4L0 8z" fill="{INK}"/></marker></defs>'
)


class Sheet(Svg):
    """A drawing of width × height pixels, empty at first; alt says in words what it shows."""

    def __init__(self, width: float, height: float, alt: str) -> None:
        super().__init__(HEAD, (width, height), alt)

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        text: object = "",
        fill: str = PAPER,
        *,
        size: float = 13,
        round_: float = 0,
    ) -> None:
        """A rectangle with words in its middle; words on a dark colour are white."""
        self.body += (
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{round_:g}" fill="{fill}" '
            f'stroke="{INK}"/>'
        )
        if str(text):
            self.text(x + width / 2, y + height / 2 + size * 0.35, text, size=size, fill=_ink_on(fill))

    def text(
        self, x: float, y: float, text: object, *, size: float = 13, fill: str = INK, anchor: str = "middle"
    ) -> None:
        """Words whose base line stands at y."""
        self.body += (
            f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" fill="{fill}" text-anchor="{anchor}">'
            f"{escape(str(text))}</text>"
        )

    def arrow(self, x1: float, y1: float, x2: float, y2: float) -> None:
        """A straight line with a head at its second end."""
        self.body += (
            f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{INK}" stroke-width="1.5" '
            'marker-end="url(#head)"/>'
        )

    def circle(self, x: float, y: float, radius: float, text: object = "", fill: str = PAPER, size: float = 13) -> None:
        """A circle with words in its middle."""
        self.body += f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="{fill}" stroke="{INK}"/>'
        self.text(x, y + size * 0.35, text, size=size, fill=_ink_on(fill))


def _ink_on(fill: str) -> str:
    """Black or white, whichever can be read on the colour."""
    red, green, blue = (int(fill[i : i + 2], 16) for i in (1, 3, 5))
    return INK if 0.3 * red + 0.6 * green + 0.1 * blue > 120 else PAPER
