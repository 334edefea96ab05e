"""Programs that are played by small scripts, for tests of what calls them."""

from __future__ import annotations

from pathlib import Path


def pretend(folder: Path, name: str, script: str) -> Path:
    """Put a program into a folder: a script of the shell."""
    command = folder / name
    command.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    command.chmod(0o755)
    return command
