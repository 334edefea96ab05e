"""`python -m needle_course` is `needle-course`."""

from __future__ import annotations

import sys


def run() -> int:
    """Run the command line; without the packages that it is made with, say in one line how to get them."""
    try:
        from .cli import main
    except ModuleNotFoundError as error:
        if (error.name or "").startswith(__package__):
            raise
        install = f"{sys.executable} -m pip install typer rich"
        print(f"needle-course: {error.name} is missing; run: {install}", file=sys.stderr)
        return 2
    return main()


if __name__ == "__main__":
    sys.exit(run())
