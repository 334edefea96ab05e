"""The course's kernel file builds in three states: solved, with a blank, and in the public course's layout."""

from __future__ import annotations

import pytest

from tests.native_tree import ROOT, Tree, with_cmake

pybind11 = pytest.importorskip("pybind11")
pytestmark = [pytest.mark.slow, with_cmake]
MODULE = "ndarray_backend_cpu"
SOLVED = ROOT / "src" / f"{MODULE}.cc"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    root = tmp_path_factory.mktemp("native") / "My Drive" / "näedle a"
    return Tree(root, SOLVED.name, "-DCMAKE_BUILD_TYPE=Debug")


ADD = ("a = m.Array(3)", "out = m.Array(3)", "m.fill(a, 2)", "m.ewise_add(a, a, out)")
SHOW = ("print(m.to_numpy(out, (3,), (1,), 0).tolist())", "print(hasattr(m, 'wrap'), getattr(m, 'layout', 'ours'))")


def test_the_solved_file_is_built_with_our_bindings(tree: Tree) -> None:
    tree.build(SOLVED.read_text(encoding="utf-8"))
    assert tree.python(MODULE, *ADD, *SHOW) == "[4.0, 4.0, 4.0]\nTrue ours"


def test_a_file_in_the_public_layout_is_built_alone(tree: Tree) -> None:
    tree.build((ROOT / "tests" / "cpp" / "public_layout.cc").read_text(encoding="utf-8"))
    assert tree.python(MODULE, *ADD, *SHOW) == "[4.0, 4.0, 4.0]\nFalse public"


def test_a_blank_throws_and_the_process_lives_on_U018(tree: Tree) -> None:
    text = SOLVED.read_text(encoding="utf-8")
    body = text[text.index("void Compact(") :]
    body = body[body.index("{\n") + 2 : body.index("\n}")]
    blank = text.replace(body, '  throw NotImplemented("hw3/compact");', 1)
    blank = blank.replace("a + b)", 'Blank("hw3/ewise_ops"))', 1)
    tree.build(blank)
    printed = tree.python(
        MODULE,
        "a = m.Array(2)",
        "for call in (lambda: m.compact(a, m.Array(2), (2,), (1,), 0), lambda: m.ewise_add(a, a, a)):",
        "    try: call()",
        "    except NotImplementedError as error: print(error)",
        "m.fill(a, 1)",
        "print(m.to_numpy(a, (2,), (1,), 0).tolist())",
    )
    assert printed.splitlines() == [
        "hw3/compact is not implemented yet",
        "hw3/ewise_ops is not implemented yet",
        "[1.0, 1.0]",
    ]
