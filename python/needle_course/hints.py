"""The hints of a part: `hw/hwN/hints.toml` has three of each, from the idea to nearly code."""

from __future__ import annotations

from pathlib import Path

from . import files
from .errors import UserError

LEVELS = ("the idea", "the shapes", "nearly code")


def of_part(root: Path, stage: str, part: str, level: int) -> str:
    """The first `level` hints of a part, a line each, or "" if there are none. UserError for a damaged file."""
    if level <= 0:
        return ""
    hints = read(root / "hw" / stage / "hints.toml").get(part, [])
    return "\n".join(f"hint {i} ({name}): {hint}" for i, (name, hint) in enumerate(zip(LEVELS, hints[:level]), start=1))


def read(path: Path) -> dict[str, list[str]]:
    """{part: its hints} of a hints.toml; {} where there is none."""
    try:
        tables = files.parse_toml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise UserError(f"{path}: {error}; restore the file from the starter") from None
    return {part: [hint.strip() for hint in table.get("hints", [])] for part, table in tables.items()}
