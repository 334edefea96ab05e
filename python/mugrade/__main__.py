"""python -m mugrade {submit,publish} KEY [HOMEWORK] [pytest's options]

The homework may be left out or empty, as some notebooks do: then it is the one whose submissions the -k expression
names, that of the tree, or the last. The key is not used. `publish` makes the answers from the code that is here.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from .session import ANSWERS, read_answers, session, write_answers

USAGE = "usage: python -m mugrade {submit,publish} KEY [HOMEWORK] [pytest options]"
SUBMISSIONS = "test_submit.py"


class Mistake(Exception):
    """The caller's; one line."""


class Command(NamedTuple):
    operation: str
    homework: str  # "" if it was not named
    rest: list[str]  # for pytest


def main(arguments: list[str] | None = None) -> int:
    """Returns 0 only if everything that was asked for ran, and agreed."""
    try:
        command = parse(sys.argv[1:] if arguments is None else arguments)
        root = find_root(Path.cwd())
        folder = tests_of(root, command.homework or guess(root, command.rest))
        if command.operation == "publish" and (root / ".needle").is_dir():
            raise Mistake(f"{root}: a learner's tree; answers are published from the course's own checkout")
    except Mistake as mistake:
        print(f"mugrade: {mistake}", file=sys.stderr)
        return 2
    return run(command, folder)


def run(command: Command, folder: Path) -> int:
    """Run the submissions of a folder by pytest, with this process's session as their judge."""
    answers = folder / ANSWERS
    print(command.operation)
    session.begin(command.operation, read_answers(answers))
    options = ["-s", "-q", "--no-header", "--tb=short", "-p", "no:cacheprovider", "-o", "addopts=", "-W", "ignore"]
    options += ["--import-mode=importlib", "-o", "python_functions=submit_*", f"--confcutdir={folder}"]
    status = int(pytest.main([*options, *command.rest, str(folder / SUBMISSIONS)], plugins=[Plugin()]))
    if command.operation == "publish" and status == 0:
        write_answers(answers, {**read_answers(answers), **session.kept})
    elif status == 5:
        print(f"mugrade: no submission of {folder.name} is called that; see {folder / SUBMISSIONS}", file=sys.stderr)
    print("This was a self-check on your own machine: nothing was sent, and no marks were given.")
    return status


class Plugin:
    """Tells the session which submission runs, and makes it fail if one of its values is wrong."""

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: Any) -> Any:
        session.start(pyfuncitem.originalname.removeprefix("submit_"))
        result = yield
        if trouble := session.finish():
            pytest.fail(trouble, pytrace=False)
        return result


# ---- the command ----------------------------------------------------------------------------------------------------


def parse(arguments: list[str]) -> Command:
    """What the command line says; every form that the public notebooks use."""
    if len(arguments) < 2 or arguments[0] not in ("submit", "publish"):
        raise Mistake(USAGE)
    operation, _, *rest = arguments
    homework = ""
    if rest and not rest[0].startswith("-"):
        homework = rest.pop(0)
    return Command(operation, homework, without_server(rest))


def without_server(rest: list[str]) -> list[str]:
    """The options without --server and its value, which choose a server elsewhere."""
    kept = iter(rest)
    found = []
    for word in kept:
        if word == "--server":
            next(kept, None)
        elif not word.startswith("--server="):
            found.append(word)
    return found


def find_root(here: Path) -> Path:
    for folder in (here, *here.parents):
        if (folder / "hw" / "stages.toml").is_file():
            return folder
    raise Mistake(f"{here}: no course here (no hw/stages.toml at or above it); run this in your tree")


def folders(root: Path) -> dict[str, Path]:
    """{homework: the folder of its tests}, of those that have submissions, in order."""
    places = [root / "hw" / "hw0" / "tests", *sorted((root / "tests").glob("hw*"))]
    names = ["hw0", *(place.name for place in places[1:])]
    return {name: place for name, place in zip(names, places) if (place / SUBMISSIONS).is_file()}


def tests_of(root: Path, homework: str) -> Path:
    """The folder of a homework's tests; `hw4extra`, as one notebook has it, will do for hw4_extra."""
    known = folders(root)
    found = [place for name, place in known.items() if name.replace("_", "") == homework.replace("_", "").lower()]
    if not found:
        raise Mistake(f"{homework or 'no homework'}: unknown here; wanted one of {', '.join(known) or 'none'}")
    return found[0]


def guess(root: Path, rest: list[str]) -> str:
    """The homework that is meant where none is named."""
    known = folders(root)
    words = re.findall(r"\w+", rest[rest.index("-k") + 1]) if "-k" in rest[:-1] else []
    words = [word for word in words if word not in ("and", "or", "not")]
    own = re.search(r'^stage = "(\w+)"', text_of(root / ".needle" / "tree.toml"), re.M)
    order = [*([own[1]] if own and own[1] in known else []), *reversed(known)]
    problems = {name: re.findall(r"^def submit_(\w+)", text_of(known[name] / SUBMISSIONS), re.M) for name in order}
    for like in (lambda word, problem: word == problem, lambda word, problem: word in f"submit_{problem}"):
        for name in order:
            if any(like(word, problem) for word in words for problem in problems[name]):
                return name
    return order[0] if order else ""


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


if __name__ == "__main__":
    sys.exit(main())
