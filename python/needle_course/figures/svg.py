"""A picture in SVG that shows itself in a notebook, and its alternative text where pictures do not show."""

from __future__ import annotations

import html
from pathlib import Path


class Svg:
    """Elements on a white sheet of width × height pixels; `alt` says in words what there is to see."""

    def __init__(self, body: str, size: tuple[float, float], alt: str) -> None:
        self.body, self.size, self.alt = body, size, alt

    def svg(self) -> str:
        """The picture as the text of an .svg file."""
        width, height = self.size
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
            f'role="img" aria-label="{html.escape(self.alt)}" font-family="DejaVu Sans, Arial, sans-serif" '
            f'font-size="12"><title>{html.escape(self.alt)}</title>'
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>{self.body}</svg>'
        )

    def _repr_svg_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        return self.alt

    def save(self, path: str | Path) -> Path:
        """Write the picture to an .svg file."""
        Path(path).write_text(self.svg(), encoding="utf-8")
        return Path(path)
