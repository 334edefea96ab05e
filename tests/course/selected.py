"""Prints, as JSON, what a stage's tests are called and which of them each pytest expression given selects.

python selected.py FOLDER EXPRESSION…  in the root of a tree
"""

from __future__ import annotations

import contextlib
import io
import json
import sys

import pytest
from _pytest.mark import KeywordMatcher
from _pytest.mark.expression import Expression


class Collector:
    """Keeps the items that pytest has collected."""

    items: list[pytest.Item]

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self.items = list(items)


def main(folder: str, expressions: list[str]) -> None:
    collector = Collector()
    options = ["--collect-only", "-qq", "-p", "no:cacheprovider", "-o", "addopts=", "--import-mode=importlib"]
    with contextlib.redirect_stdout(io.StringIO()):
        pytest.main([*options, folder], plugins=[collector])
    matchers = {item.nodeid: KeywordMatcher.from_item(item) for item in collector.items}
    chosen = {
        text: [node for node, matcher in matchers.items() if Expression.compile(text).evaluate(matcher)]
        for text in expressions
    }
    print(json.dumps({"all": list(matchers), "selected": chosen}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
