"""A picture in SVG that shows itself in a notebook, and its alternative text where pictures do not show."""

from __future__ import annotations

import html
from pathlib import Path

from .colours import PAPER


class Svg:
    """Elements on a white sheet of width × height pixels; `alt` says in words what there is to see."""

    def __init__(self, body: str, size: tuple[float, float], alt: str) -> None:
        self.body, self.size, self.alt = body, size, alt

    def svg(self) -> str:
        """The picture as the text of an .svg file."""
        width, height = self.size
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
            f'viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{html.escape(self.alt)}" '
            f'font-family="DejaVu Sans, Arial, sans-serif" font-size="12"><title>{html.escape(self.alt)}</title>'
            f'<rect width="100%" height="100%" fill="{PAPER}"/>{self.body}</svg>'
        )

    def _repr_svg_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        return self.alt

    def save(self, path: str | Path) -> Path:
        """Write the picture to an .svg file."""
        Path(path).write_text(self.svg(), encoding="utf-8")
        return Path(path)
