"""The four laws of the course, for every stage.

1. A starter with the reference's answers filled in is the solved source as it stands at that stage.
2. What a stage asks for, or a later one, is nowhere in what a learner gets.
3. A starter builds and imports, and its checks are red because it is not implemented.
4. The reference passes them all.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from needle_course import regions, stages, trees

from tests.course.small_course import put

ROOT = Path(__file__).resolve().parents[2]
COURSE = stages.load(ROOT)
every_stage = pytest.mark.parametrize("stage", COURSE.order)


@functools.cache
def solved(stage: str) -> trees.Tree:
    return trees.solved(COURSE, stage)


@functools.cache
def starter(stage: str) -> trees.Tree:
    return trees.starter(COURSE, stage)


@functools.cache
def reference() -> dict[str, list[regions.Piece]]:
    """The sources that hold marks, in pieces."""
    return {name: regions.parse(text, name) for name, text in stages.sources(COURSE) if trees.is_marked(name)}


def code_of(tree: trees.Tree) -> dict[str, str]:
    """The files of a tree that may hold regions, as text."""
    return {name: content.decode() for name, content in tree.items() if trees.is_marked(name)}


# ---- 1: filled is solved --------------------------------------------------------------------------------------------


@every_stage
def test_a_starter_filled_with_the_answers_is_the_solved_tree(stage):
    asked = set(COURSE.stage(stage).tags)
    answers = {tag: body for tag, body in trees.answers_in(solved(stage)).items() if tag in asked}
    filled = trees.filled(starter(stage), answers)
    assert set(answers) == asked and set(filled) == set(solved(stage)) and filled != starter(stage)
    assert [name for name, content in solved(stage).items() if filled[name] != content] == []


@every_stage
def test_the_solved_tree_is_the_source_without_later_blocks_and_without_marks(stage):
    for name, text in code_of(solved(stage)).items():
        assert not re.search(r"^\s*(#|//)\s*(>>>|<<<) \w+\s*$|STARTER$|^# isort: split$", text, re.M), name
        if name not in (trees.DEFAULTS, stages.MANIFEST):
            lines = iter(regions.read(ROOT / name).splitlines())
            assert all(line in lines for line in text.splitlines()), f"{name}: new lines, or in another order"


def test_the_last_stage_has_all_of_the_source_but_what_is_never_given():
    never = {name for name, stage in COURSE.files().items() if stage == regions.NEVER}
    assert set(COURSE.files()) - set(solved(COURSE.order[-1])) == never


# ---- 2: no answers --------------------------------------------------------------------------------------------------

TELLING = 24  # characters; a shorter line is an idiom: `opt.reset_grad()`, `for X, y in loader:`
IDIOMS = {  # longer ones that a starter has beside its blanks, and that tell nothing
    "CUDA_CHECK(cudaGetLastError());",
    "before = (slice(None),) * axis",
    "for (size_t i = 0; i < out->size; i++) {",
    "const dim3 grid = Grid(Blocks(out->size, kBlockThreads));",
    "const int64_t i = GlobalIndex();",
    "return self._view(shape, strides, self._offset)",
    "return y.transpose((2, 3)).transpose((1, 2))",  # back to (N, C, H, W)
    "self.dropout = Dropout(dropout)",
}


@every_stage
def test_no_line_of_an_answer_remains_in_what_a_learner_gets(stage):
    answers = telling_lines(stage)
    assert len(answers) >= 10
    leaks = [f"{name}: {line}" for name, lines in lines_by_file(stage).items() for line in sorted(lines & answers)]
    assert leaks == [], "move it into a region or a later stage; a coincidence is renamed in the reference"


def test_a_line_of_an_answer_would_be_noticed(monkeypatch):
    page = "# %% [markdown]\n# for example:\n#     pixels = np.frombuffer(images.read(), dtype=np.uint8)\n"
    monkeypatch.setitem(starter("hw0"), "hw/hw0/hw0.py", page.encode())
    with pytest.raises(AssertionError, match=r"hw/hw0/hw0\.py: pixels = np\.frombuffer"):
        test_no_line_of_an_answer_remains_in_what_a_learner_gets("hw0")


@every_stage
def test_what_a_stage_asks_for_is_blank_and_what_came_before_is_not(stage):
    asked = set(COURSE.stage(stage).tags)
    for name, text in code_of(starter(stage)).items():
        for region in regions.all_regions(text, name):
            assert regions.is_blank(region) == bool(asked & set(region.tags)), f"{name}:{region.line}"
            assert COURSE.first_stage(region.tags) in COURSE.present(stage), f"{name}:{region.line}: asked later"


def telling_lines(stage: str) -> set[str]:
    """The lines of bodies first asked for at a stage or later, without idioms and what an earlier stage asked for."""
    late: set[str] = set()
    early: set[str] = set()
    shown: set[str] = set()
    for pieces in reference().values():
        for region in regions_in(pieces):
            is_late = COURSE.order.index(COURSE.first_stage(region.tags)) >= COURSE.order.index(stage)
            (late if is_late else early).update(lines_of(region.body))
            shown |= lines_of(region.starter or "")
    return {line for line in late - early - shown - IDIOMS if len(line) >= TELLING}


def regions_in(pieces: list[regions.Piece]) -> list[regions.Region]:
    return regions.all_regions(regions.render(pieces))


def lines_by_file(stage: str) -> dict[str, set[str]]:
    texts = {name: content.decode() for name, content in starter(stage).items() if not name.endswith(".npz")}
    return {name: lines_of(text) for name, text in texts.items()}


def lines_of(text: str) -> set[str]:
    """The lines without their indentation, without what makes a notebook's prose a comment, a macro's end a line's."""
    return {re.sub(r"^(# |// )\s*", "", line.strip()).rstrip("\\ ") for line in text.splitlines()}


# ---- as if written for the stage ------------------------------------------------------------------------------------


@every_stage
@pytest.mark.parametrize("make, unused", [(solved, ()), (starter, ("F401", "F841"))], ids=["solved", "starter"])
def test_a_tree_reads_as_if_written_for_its_stage(stage, make, unused, tmp_path):
    """No name is undefined, imported for nothing or exported and missing; a blank may leave imports to its answer."""
    code = code_of(make(stage)).items()
    put(tmp_path, {name: text for name, text in code if name.endswith(".py") and not name.startswith("hw/hw0/tests")})
    lint = [*(f"--ignore={rule}" for rule in unused), "--select=F"]
    faces = ["--per-file-ignores=**/__init__.py:F401", "--per-file-ignores=**/__init__.py:F403"]
    ruff = [sys.executable, "-m", "ruff"]
    folders = [folder for folder in ("python/needle", "apps", "hw/hw0/src") if (tmp_path / folder).is_dir()]
    for command in (
        ["check", "--quiet", "--isolated", *lint, *faces],
        ["format", "--isolated", "--line-length=120", "--diff"],
    ):
        done = subprocess.run([*ruff, *command, *folders], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("stage", COURSE.order[1:])
def test_every_name_that_a_starter_exports_is_there(stage, tmp_path):
    root = written(starter(stage), tmp_path)
    program = r"""
import importlib, pkgutil, needle
for info in pkgutil.walk_packages(needle.__path__, "needle."):
    if "whole" not in info.name and not info.name.split(".")[-1].startswith(("kernels_c", "ndarray_backend_c")):
        module = importlib.import_module(info.name)
        missing = [name for name in getattr(module, "__all__", []) if not hasattr(module, name)]
        assert not missing, (info.name, missing)
from needle import core, defaults, kernels
print(core.BACKEND, defaults.BACKEND, kernels.mode(), needle.__file__, sep="\n")
"""
    backend = COURSE.stage(stage).backend
    done = python(root, "-W", "error", "-c", program)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [backend, backend, "course", str(root / "python/needle/__init__.py")]


@pytest.mark.parametrize("stage", COURSE.order[1:])
def test_a_tree_imports_though_everything_is_blank(stage, tmp_path):
    tags = {tag for name in COURSE.present(stage) for tag in COURSE.stage(name).tags}
    blank = {name: regions.blank(text, name, tags).encode() for name, text in code_of(solved(stage)).items()}
    done = python(written({**solved(stage), **blank}, tmp_path), "-W", "error", "-c", "import needle")
    assert done.returncode == 0, done.stderr


# ---- 3 and 4: red, and green ----------------------------------------------------------------------------------------

QUICK = "hw1"  # the others compile, or take longer; `make test-all` judges them, too
judged = pytest.mark.parametrize(
    "stage", [pytest.param(name, marks=[] if name == QUICK else pytest.mark.slow) for name in COURSE.order]
)


@judged
def test_every_check_of_a_starter_is_red_because_it_is_not_implemented(stage, tmp_path):
    results = results_of(built(starter(stage), tmp_path), stage)
    for part in COURSE.stage(stage).parts:
        items = {node: text for node, text in results.items() if any(stages.matches(t, node) for t in part.tests)}
        judged_items = {node: text for node, text in items.items() if not (text or "").startswith("skipped")}
        assert len(items) == part.items and judged_items, part.id
        green = [node for node, text in judged_items.items() if "NotImplementedError" not in (text or "")]
        assert green == [], f"{part.id}: {green[0]}: {judged_items[green[0]]}"


@judged
def test_the_reference_passes_every_check(stage, tmp_path):
    results = results_of(built(solved(stage), tmp_path), stage)
    assert len(results) >= sum(1 for _ in COURSE.stage(stage).parts)
    assert {node: text for node, text in results.items() if text and not text.startswith("skipped")} == {}


def written(tree: trees.Tree, folder: Path) -> Path:
    """The tree in a folder with a blank and an umlaut in its name, and what pytest needs to run its tests."""
    root = folder / "näedle a"
    trees.write(tree, root)
    (root / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n", encoding="utf-8")
    return root


def built(tree: trees.Tree, folder: Path) -> Path:
    root = written(tree, folder)
    if (root / "tools" / "build_native.py").is_file():
        done = python(root, "tools/build_native.py")
        assert done.returncode == 0, done.stdout + done.stderr
    return root


def python(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python in a tree, without anything that chooses a backend or another needle."""
    chosen = ("NEEDLE_BACKEND", "NEEDLE_KERNELS", "PYTHONPATH", "NEEDLE_DATA_DIR")
    variables = {key: value for key, value in os.environ.items() if key not in chosen}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=root,
        env={**variables, "PYTHONPATH": str(root / "python"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )


def results_of(root: Path, stage: str) -> dict[str, str | None]:
    """{item: what went wrong, "skipped: why", or None} of all tests of a stage, run in its tree."""
    report = root / "report.xml"
    done = python(
        root,
        "-m",
        "pytest",
        "-q",
        "--tb=short",
        "-p",
        "no:cacheprovider",
        f"--junitxml={report}",
        *COURSE.stage(stage).tests,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return dict(map(outcome, ElementTree.parse(report).iter("testcase")))


def outcome(case: ElementTree.Element) -> tuple[str, str | None]:
    node = f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"
    for kind in ("failure", "error"):
        if (found := case.find(kind)) is not None:
            return node, f"{found.get('message')}\n{found.text}"
    skipped = case.find("skipped")
    return node, None if skipped is None else f"skipped: {skipped.get('message')}"


# ---- a blank spoils nothing else ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["src/ndarray_backend_cpu.cc"])
def test_each_blank_alone_compiles(name, tmp_path):
    """With the reference around it: so it is when a learner has filled all but one."""
    text = regions.read(ROOT / name)
    for tag in regions.regions(text, name):
        file = tmp_path / "blank.cc"
        file.write_text(regions.blank(text, name, {tag}), encoding="utf-8")
        command = ["c++", "-std=c++17", "-fsyntax-only", f"-I{ROOT / 'src'}", str(file)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, f"{tag}: {done.stderr}"


@every_stage
def test_each_blank_alone_is_python(stage):
    for name, text in code_of(solved(stage)).items():
        if name.endswith(".py"):
            for tag in regions.regions(text, name):
                source = regions.read(ROOT / name)
                alone = regions.blank(regions.without_blocks(source, name, COURSE.present(stage)), name, {tag})
                compile(alone, f"{name} without {tag}", "exec")
