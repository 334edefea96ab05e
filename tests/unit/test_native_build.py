"""The course's kernel file builds in three states: solved, with a blank, and in the public course's layout."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pybind11 = pytest.importorskip("pybind11")
ROOT = Path(__file__).parents[2]
cmake = shutil.which("cmake", path=str(Path(sys.executable).parent)) or shutil.which("cmake")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(cmake is None, reason="no cmake here")]


class Tree:
    """A checkout with the course's kernel file and its bindings alone, as an early stage has it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.kernel_file = root / "src" / "ndarray_backend_cpu.cc"
        self.modules = root / "python" / "needle" / "backend_ndarray"
        shutil.copytree(ROOT / "src", root / "src", ignore=shutil.ignore_patterns("kernels", "kernels_cpu.cc"))
        shutil.copy(ROOT / "CMakeLists.txt", root)
        self.run(
            cmake, "-S", root, "-B", root / "build", f"-DPython_EXECUTABLE={sys.executable}", "-DCMAKE_BUILD_TYPE=Debug"
        )

    def build(self) -> None:
        self.run(cmake, "--build", self.root / "build")

    def python(self, *lines: str) -> str:
        """What a fresh interpreter prints that has imported the module as m."""
        return self.run(sys.executable, "-c", "\n".join(["import ndarray_backend_cpu as m", *lines]), cwd=self.modules)

    @staticmethod
    def run(*command: object, cwd: Path | None = None) -> str:
        done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout.strip()


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    return Tree(tmp_path_factory.mktemp("native") / "My Drive" / "näedle a")


ADD = ("a = m.Array(3)", "out = m.Array(3)", "m.fill(a, 2)", "m.ewise_add(a, a, out)")
SHOW = ("print(m.to_numpy(out, (3,), (1,), 0).tolist())", "print(hasattr(m, 'wrap'), getattr(m, 'layout', 'ours'))")


def test_the_solved_file_is_built_with_our_bindings(tree: Tree) -> None:
    shutil.copy(ROOT / "src" / "ndarray_backend_cpu.cc", tree.kernel_file)
    tree.build()
    assert tree.python(*ADD, *SHOW) == "[4.0, 4.0, 4.0]\nTrue ours"


def test_a_file_in_the_public_layout_is_built_alone(tree: Tree) -> None:
    shutil.copy(ROOT / "tests" / "cpp" / "public_layout.cc", tree.kernel_file)
    tree.build()
    assert tree.python(*ADD, *SHOW) == "[4.0, 4.0, 4.0]\nFalse public"


def test_a_blank_throws_and_the_process_lives_on_U018(tree: Tree) -> None:
    text = (ROOT / "src" / "ndarray_backend_cpu.cc").read_text(encoding="utf-8")
    body = text[text.index("void Compact(") :]
    body = body[body.index("{\n") + 2 : body.index("\n}")]
    blank = text.replace(body, '  throw NotImplemented("hw3/compact");', 1)
    blank = blank.replace("a + b)", 'Blank("hw3/ewise_ops"))', 1)
    tree.kernel_file.write_text(blank, encoding="utf-8")
    tree.build()
    printed = tree.python(
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
