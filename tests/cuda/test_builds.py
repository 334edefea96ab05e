"""The course's CUDA file builds solved, with blanks, and in the public course's layout: by the emulator and by nvcc."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.native_tree import ROOT, Tree, with_cmake

pytest.importorskip("pybind11")
EMULATED, COMPILED = "ndarray_backend_cuda_emu", "ndarray_backend_cuda"  # the modules that the file becomes
SOLVED = ROOT / "src" / f"{COMPILED}.cu"
nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
pytestmark = [pytest.mark.slow, with_cmake]
with_nvcc = pytest.mark.skipif(nvcc is None, reason="no nvcc here, which compiles for GPUs")


def cuda_tree(root: Path, *options: str) -> Tree:
    """A tree as the third stage has it."""
    return Tree(root, SOLVED.name, *options, folders=("src", "cmake"))


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    root = tmp_path_factory.mktemp("cuda") / "My Drive" / "näedle a"
    return cuda_tree(root, "-DNEEDLE_CUDA=OFF", "-DNEEDLE_CUDA_EMU=ON")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """For a GPU of one architecture, without having one."""
    return cuda_tree(tmp_path_factory.mktemp("gpu"), "-DNEEDLE_CUDA=ON", "-DCMAKE_CUDA_ARCHITECTURES=80")


ADD = ("a = m.Array(300)", "out = m.Array(300)", "m.fill(a, 2)", "m.ewise_add(a, a, out)")
SHOW = ("print(set(m.to_numpy(out, (300,), (1,), 0).tolist()), m.__device_name__, getattr(m, 'layout', 'ours'))",)


def test_the_solved_file_is_built_with_our_bindings(emulated: Tree) -> None:
    emulated.build(SOLVED.read_text(encoding="utf-8"), "needle_cuda_emu")
    assert emulated.python(EMULATED, *ADD, *SHOW) == "{4.0} cuda (emulated) ours"


def test_a_file_in_the_public_layout_is_built_unmodified(emulated: Tree) -> None:
    emulated.build((ROOT / "tests" / "cuda" / "public_layout.cu").read_text(encoding="utf-8"), "needle_cuda_emu")
    assert emulated.python(EMULATED, *ADD, *SHOW) == "{4.0} cuda public"
    printed = emulated.python(
        EMULATED,
        "x = np.random.RandomState(0).randn(33, 50).astype(np.float32)",
        "def up(x):",
        "    a = m.Array(x.size); m.from_numpy(np.ascontiguousarray(x), a); return a",
        "def down(a, *shape): return m.to_numpy(a, shape, (shape[1], 1), 0)",
        "product, sums, turned = m.Array(33 * 33), m.Array(33), m.Array(33 * 50)",
        "m.matmul(up(x), up(x.T), product, 33, 50, 33)",
        "m.reduce_sum(up(x), sums, 50)",
        "m.compact(up(x), turned, (50, 33), (1, 50), 0)",
        "print(np.abs(down(product, 33, 33) - x @ x.T).max() < 1e-4)",
        "print(np.abs(down(sums, 33, 1)[:, 0] - x.sum(1)).max() < 1e-4)",
        "print((down(turned, 50, 33) == x.T).all())",
    )
    assert printed.split() == ["True"] * 3


def blanked(text: str) -> str:
    """The file as a starter has it: the starter text of each region in place of its body."""
    region = re.compile(r"(/// BEGIN YOUR SOLUTION \S+\n).*?/// STARTER\n(.*?)(/// END YOUR SOLUTION \S+\n)", re.S)
    return region.sub(lambda m: m[1] + re.sub("^// ?", "", m[2], flags=re.M) + m[3], text)


def test_every_blank_throws_at_its_launch_and_the_process_lives_on(emulated: Tree) -> None:
    text = SOLVED.read_text(encoding="utf-8")
    tags = re.findall(r"BEGIN YOUR SOLUTION (\S+)", text)
    assert len(tags) == len(set(tags)) == 20
    emulated.build(blanked(text), "needle_cuda_emu")
    printed = emulated.python(
        EMULATED,
        *ADD,
        "view = (2,), (1,), 0",
        "calls = [(m.compact, a, m.Array(2), *view), (m.ewise_setitem, m.Array(2), a, *view)]",
        "calls += [(m.scalar_setitem, 2, 1.0, a, *view), (m.matmul, a, a, m.Array(90000), 300, 1, 300)]",
        "calls += [(m.reduce_max, a, out := m.Array(3), 100), (m.reduce_sum, a, out, 100)]",
        "for name in 'mul div maximum eq ge'.split(): calls.append((getattr(m, 'ewise_' + name), a, a, a))",
        "for name in 'mul div power maximum eq ge'.split(): calls.append((getattr(m, 'scalar_' + name), a, 2.0, a))",
        "for name in 'log exp tanh'.split(): calls.append((getattr(m, 'ewise_' + name), a, a))",
        "for call, *arguments in calls:",
        "    try: call(*arguments)",
        "    except NotImplementedError as error: print(error)",
        "m.scalar_add(a, 1.0, a)",
        "print(set(m.to_numpy(a, (300,), (1,), 0).tolist()))",
    )
    *thrown, last = printed.splitlines()
    assert sorted(thrown) == sorted(f"{tag} is not implemented yet" for tag in tags)
    assert last == "{3.0}"


def test_a_blank_compact_leaves_setitem_compiling(emulated: Tree) -> None:
    """Each part is a blank of its own: a learner may fill them in any order."""
    text = SOLVED.read_text(encoding="utf-8")
    start, end = (
        text.index("/// BEGIN YOUR SOLUTION hw3/cuda_compact"),
        text.index("/// END YOUR SOLUTION hw3/cuda_compact"),
    )
    end = text.index("\n", end) + 1
    emulated.build(text[:start] + blanked(text[start:end]) + text[end:], "needle_cuda_emu")
    assert emulated.python(EMULATED, *ADD, *SHOW).startswith("{4.0}")


def test_a_launch_that_fails_is_a_runtime_error_that_says_where(emulated: Tree) -> None:
    text = SOLVED.read_text(encoding="utf-8")
    wrong = text.replace("MatmulKernel<<<grid, dim3(kTile, kTile)>>>", "MatmulKernel<<<grid, dim3(64, 64)>>>")
    assert wrong != text
    emulated.build(wrong, "needle_cuda_emu")
    printed = emulated.python(
        EMULATED,
        *ADD,
        "try: m.matmul(a, a, m.Array(90000), 300, 1, 300)",
        "except RuntimeError as error: print(error)",
        "m.ewise_add(out, out, out)",
        *SHOW,
    )
    said, after = printed.rsplit("\n", 1)
    assert "MatmulKernel" in said or "cudaGetLastError() failed at ndarray_backend_cuda.cu:" in said
    assert after.startswith("{8.0}")


# ---- for a GPU ------------------------------------------------------------------------------------------------------

TRY = ("try: m.Array(3)", "except RuntimeError as error: print(error)")


@with_nvcc
@pytest.mark.parametrize("file", [SOLVED, ROOT / "tests" / "cuda" / "public_layout.cu"], ids=["ours", "public"])
def test_nvcc_compiles_it_and_the_module_loads_without_a_driver(compiled: Tree, file: Path) -> None:
    compiled.build(file.read_text(encoding="utf-8"), COMPILED)
    printed = compiled.python(COMPILED, "print(m.__device_name__)", *TRY)
    name, *complaint = printed.splitlines()
    assert name == "cuda"
    assert not complaint or re.search("driver version is insufficient|no CUDA-capable device", complaint[0])


@with_nvcc
def test_nvcc_compiles_blanks_too(compiled: Tree) -> None:
    compiled.build(blanked(SOLVED.read_text(encoding="utf-8")), COMPILED)
