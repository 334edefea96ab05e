"""Refuse to be imported by work that lies in another needle tree: it would silently test the wrong code."""

from __future__ import annotations

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
MARKS = (".needle", os.path.join("hw", "stages.toml"))  # what a learner's tree and a course's checkout have


def tree_above(path: str) -> str | None:
    """The innermost needle tree, if any, that path lies in."""
    path = os.path.realpath(path)
    while True:
        if _is_tree(path):
            return path
        path, below = os.path.dirname(path), path
        if path == below:
            return None


def _is_tree(path: str) -> bool:
    has_needle = os.path.isfile(os.path.join(path, "python", "needle", "__init__.py"))
    return has_needle and any(os.path.exists(os.path.join(path, mark)) for mark in MARKS)


def check(package: str = HERE) -> None:
    """Raise ImportError if the current directory or the running script belongs to a tree that is not package's."""
    try:
        places = [os.getcwd(), *_folder_of_script()]
    except OSError:  # the current directory is gone
        return
    for place in places:
        tree = tree_above(place)
        if tree is not None and os.path.realpath(package) != os.path.join(tree, "python", "needle"):
            where = "you are in" if place == places[0] else "the running script lies in"
            raise ImportError(
                f"needle: this is the needle of {package}, but {where} the tree {tree}; "
                f"run with PYTHONPATH={os.path.join(tree, 'python')} or use that tree's own environment"
            )


def _folder_of_script() -> list[str]:
    """The folder of the running script, unless it is a tool of the environment, as pytest is."""
    script = sys.argv[0] if getattr(sys, "argv", None) else ""
    if not os.path.isfile(script):
        return []
    folder = os.path.realpath(os.path.dirname(os.path.abspath(script)))
    return [] if (folder + os.sep).startswith(os.path.realpath(sys.prefix) + os.sep) else [folder]


check()
