"""One run of submit_* functions: takes their values, compares or keeps them, and says how each went."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .values import condensed, difference, encode_json

ANSWERS = "answers.json"  # beside the tests of a stage


class Session:
    """What runs now. Outside of a run `submit` only looks whether it could take the value."""

    def __init__(self) -> None:
        self.operation = ""  # "submit" or "publish"
        self.answers: dict[str, list[Any]] = {}
        self.kept: dict[str, list[Any]] = {}
        self.name = ""
        self.values: list[Any] = []
        self.errors = 0

    def begin(self, operation: str, answers: dict[str, list[Any]]) -> None:
        self.__init__()  # type: ignore[misc]
        self.operation, self.answers = operation, answers

    def start(self, name: str) -> None:
        self.name, self.values, self.errors = name, [], 0
        if self.operation == "submit":
            print(f"\nSubmitting {name}...")

    def take(self, value: Any) -> None:
        self.values.append(encode_json(value))
        if self.operation != "submit":
            return
        number, wanted = len(self.values), self.answers.get(self.name, [])
        text = difference(self.values[-1], wanted[number - 1]) if number <= len(wanted) else "no such test"
        print(f"Grader test {number} " + (f"failed: {text}" if text else "passed"))
        self.errors += bool(text)

    def finish(self) -> str:
        """ "" if all went well, else what did not."""
        if self.operation == "publish":
            self.kept[self.name] = [condensed(value) for value in self.values]
            print(f"published {self.name}: {len(self.values)} values")
            return ""
        wanted = len(self.answers.get(self.name, []))
        if self.errors:
            return f"{self.errors} of {wanted} grader tests failed"
        if not wanted:
            return f"there are no answers for {self.name}; restore {ANSWERS} from the starter"
        return "" if len(self.values) == wanted else f"{len(self.values)} values were submitted, wanted {wanted}"


session = Session()


def submit(value: Any) -> None:
    """Hand in one value of the problem that runs: a number, text, a NumPy array, or a tuple or list of them.

    Raises TypeError, with what to do, for anything else, such as a needle Tensor.
    """
    session.take(value)


def read_answers(path: Path) -> dict[str, list[Any]]:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def write_answers(path: Path, answers: dict[str, list[Any]]) -> None:
    """One line a value, so that a change reads well; written whole or not at all."""
    problems = [
        f" {json.dumps(name)}: [\n  " + ",\n  ".join(json.dumps(value) for value in values) + "\n ]"
        for name, values in sorted(answers.items())
    ]
    new = path.with_name(f".{path.name}.new")
    new.write_text("{\n" + ",\n".join(problems) + "\n}\n", encoding="utf-8")
    os.replace(new, path)


# ---- names of the public client that notebooks use -------------------------------------------------------------------


def init(server: str | None = None) -> None:
    """Does nothing: there is no server."""


class _Tests:
    """`with mugrade.test:` counts and tells the tests of a notebook cell."""

    def __init__(self) -> None:
        self.number = 0

    def __enter__(self) -> _Tests:
        self.number += 1
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> bool:
        failed = kind is not None and issubclass(kind, AssertionError)
        if kind is None or failed:
            print(f"  Test {self.number} {'FAILED' if failed else 'PASSED'}")
        return failed


test = _Tests()


def local_tests(function: Callable) -> Callable:
    """Decorator: run the caller's test_<name>, if there is one, on the function."""
    own = _of_main(f"test_{function.__name__}")
    print(f"Running local tests for function {function.__name__}():")
    if own is not None:
        test.number = 0
        setattr(sys.modules["__main__"], function.__name__, function)
        own()
    return function


def submit_tests(key: str) -> Callable[[Callable], Callable]:
    """Decorator: run the caller's submit_<name>, if there is one, on the function; nothing is sent."""

    def run(function: Callable) -> Callable:
        own = _of_main(f"submit_{function.__name__}")
        print(f"{function.__name__}: a self-check; nothing is sent")
        if own is not None:
            setattr(sys.modules["__main__"], function.__name__, function)
            own()
        return function

    return run


def publish_tests(key: str, overwrite: bool = False) -> Callable[[Callable], Callable]:
    """Decorator: does nothing; answers are made by `python -m mugrade publish`."""
    return lambda function: function


def _of_main(name: str) -> Callable | None:
    return getattr(sys.modules.get("__main__"), name, None)
