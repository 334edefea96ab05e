"""Spoil every answer of the course in many ways, and see that the check of its part turns red.

    python tools/mutate_answers.py [STAGE | PART ...] [--few N | --all] [--python] [-v]

The wrong answers of a part in Python are made from the reference (tests/course/mutants/python_mutants.py), and more
are written down in tests/course/mutants/STAGE.toml, with those of C++ and CUDA.  The same file lists what is no
mistake after all, each with its reason.  Prints what survives and exits with 1 if anything does.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MUTANTS = ROOT / "tests" / "course" / "mutants"
sys.path[:0] = [str(ROOT / "python"), str(MUTANTS)]

from cpp_mutants import elementwise  # noqa: E402
from needle_course import files, regions, stages, testrun, trees  # noqa: E402  (the lines above find them)
from python_mutants import Mutant, mutants  # noqa: E402
from worker import Job  # noqa: E402

FEW = 10
RIGHT = -1  # the number of the reference among the mutants
SECONDS = 20.0  # of processor time for one mutant; what takes longer hangs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="stages or parts; all by default")
    parser.add_argument("--few", type=int, default=FEW, help=f"so many of a part at most, spread evenly; {FEW}")
    parser.add_argument("--all", action="store_true", help="every wrong answer of a part, which takes very long")
    parser.add_argument("--python", action="store_true", help="only answers in Python")
    parser.add_argument("-v", "--verbose", action="store_true", help="tell each mutant")
    arguments = parser.parse_args()
    start = time.monotonic()
    course = stages.load(ROOT)
    few = 0 if arguments.all else arguments.few
    survivors: list[Mutant] = []
    counts: Counter[str] = Counter()
    for stage in course.stages.values():
        wanted = [part for part in stage.parts if asked(arguments.names, stage, part)]
        if arguments.python:
            wanted = [part for part in wanted if part.file.endswith(".py")]
        if wanted:
            survivors += judge(course, stage, wanted, few, arguments.verbose, counts)
    for mutant in survivors:
        print(f"survives: {mutant.part}: {mutant.name}")
    print(
        f"{counts['parts']} parts, {counts['mutants']} wrong answers, {counts['caught']} caught, {len(survivors)} "
        f"survive, {counts['right']} are right after all ({time.monotonic() - start:.0f} s)"
    )
    return 1 if survivors or not counts["mutants"] else 0


def asked(names: list[str], stage: stages.Stage, part: stages.Part) -> bool:
    return not names or stage.id in names or part.id in names


def judge(
    course: stages.Course, stage: stages.Stage, parts: list[stages.Part], few: int, verbose: bool, counts: Counter
) -> list[Mutant]:
    """Judge the mutants of these parts of a stage in its solved tree; returns those that survive."""
    start = time.monotonic()
    tree = trees.solved(course, stage.id)
    survivors = []
    with tempfile.TemporaryDirectory(prefix="needle-mutants-") as folder:
        root = Path(folder, "tree")
        trees.write(tree, root)
        in_python = [part for part in parts if part.file.endswith(".py")]
        if in_python:
            if stage.needs_build:
                copy_modules(root)
            chosen = [mutant for part in in_python for mutant in wrong_answers(stage, part, tree, few, counts)]
            survivors += told(chosen, verdicts(root, stage, chosen), verbose, counts)
            remove_modules(root)
        native = [part for part in parts if part not in in_python]
        made = {part.id: wrong_answers(stage, part, tree, few, counts) for part in native}
        for batch in batches(course, native, made):
            put_into(root, tree, batch)
            lines = verdicts(root, stage, batch)
            survivors += told(batch, lines, verbose, counts)
    counts["parts"] += len(parts)
    print(f"{stage.id}: {len(parts)} parts, {len(survivors)} survive ({time.monotonic() - start:.0f} s)", flush=True)
    return survivors


def told(chosen: list[Mutant], lines: list[dict], verbose: bool, counts: Counter) -> list[Mutant]:
    """Count the verdicts; returns the mutants that survive."""
    counts["mutants"] += len(lines)
    counts["caught"] += sum(line["caught"] for line in lines)
    for mutant, line in zip(chosen, lines, strict=True):
        if verbose:
            mark = "caught" if line["caught"] else "SURVIVES"
            how = line["how"].partition("\n")[0][:100]
            print(f"{mark} {line['seconds']:6.2f} s  {mutant.part}: {mutant.name}   [{how}]", flush=True)
    return [mutant for mutant, line in zip(chosen, lines, strict=True) if not line["caught"]]


# ---- wrong answers --------------------------------------------------------------------------------------------------


def wrong_answers(stage: stages.Stage, part: stages.Part, tree: trees.Tree, few: int, counts: Counter) -> list[Mutant]:
    """The mutants of a part, those left out that are right after all."""
    found = by_name([*written(stage, part, tree), *generated(part, tree)])
    right = notes(stage).get("right", {}).get(part.id, {})  # {name, or its beginning and a star: why it is no mistake}
    for pattern in right:
        if not any(is_named(name, pattern) for name in found):
            sys.exit(f"mutate_answers: {stage.id}.toml: {part.id} has no such mutant any more: {pattern!r}")
    kept = [mutant for name, mutant in found.items() if not any(is_named(name, pattern) for pattern in right)]
    counts["right"] += len(found) - len(kept)
    return spread(kept, few) if few else kept


def spread(found: list[Mutant], few: int) -> list[Mutant]:
    """At most so many, evenly spaced."""
    count = min(few, len(found))
    return [found[i * len(found) // count] for i in range(count)]


def by_name(found: list[Mutant]) -> dict[str, Mutant]:
    """{name: mutant}; of several with one name, all but the first have a number behind it."""
    named: dict[str, Mutant] = {}
    seen: Counter[str] = Counter()
    for mutant in found:
        seen[mutant.name] += 1
        name = mutant.name if seen[mutant.name] == 1 else f"{mutant.name} ({seen[mutant.name]})"
        named[name] = replace(mutant, name=name)
    return named


def is_named(name: str, pattern: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def written(stage: stages.Stage, part: stages.Part, tree: trees.Tree) -> Iterator[Mutant]:
    text = tree[part.file].decode()
    body = regions.regions(text, part.file)[part.id].body
    for name, old, new in notes(stage).get("wrong", {}).get(part.id, []):
        if body.count(old) != 1:
            sys.exit(f"mutate_answers: {stage.id}.toml: {part.id}: {old!r} is {body.count(old)} times in the answer")
        yield Mutant(part.id, name, part.file, regions.pour(text, part.file, {part.id: body.replace(old, new)}))


def generated(part: stages.Part, tree: trees.Tree) -> Iterator[Mutant]:
    text = tree[part.file].decode()
    region = regions.regions(text, part.file)[part.id]
    if part.file.endswith(".py"):
        yield from mutants(part.id, part.file, text, region.line + 1, region.end_line - 1)
    for name, body in elementwise(region.body):
        yield Mutant(part.id, name, part.file, regions.pour(text, part.file, {part.id: body}))


def notes(stage: stages.Stage) -> dict:
    """What is written down about a stage: wrong answers, and changes that are none."""
    path = MUTANTS / f"{stage.id}.toml"
    return files.parse_toml(path.read_text(encoding="utf-8")) if path.exists() else {}


# ---- native code ----------------------------------------------------------------------------------------------------


def copy_modules(root: Path) -> None:
    """Link the checkout's native modules, built if they are not: answers in Python leave them alone."""
    build(ROOT, ["cpu", "cuda_here"])
    for module in modules_of(ROOT):
        (root / "python" / "needle" / "backend_ndarray" / module.name).symlink_to(module)


def remove_modules(root: Path) -> None:
    for module in modules_of(root):
        module.unlink()


def modules_of(root: Path) -> list[Path]:
    folder = root / "python" / "needle" / "backend_ndarray"
    return [*folder.glob("*.so"), *folder.glob("*.dylib")]  # macOS's word for the emulator's runtime


def batches(course: stages.Course, parts: list[stages.Part], made: dict[str, list[Mutant]]) -> Iterator[list[Mutant]]:
    """The mutants in groups that are compiled together: of a part only one, and none of a part that another needs."""
    waiting = {part.id: list(made[part.id]) for part in parts}
    needs = {part.id: {need.id for need in course.needs_of(part)} for part in parts}
    while any(waiting.values()):
        batch: list[Mutant] = []
        for part, queue in sorted(waiting.items(), key=lambda item: -len(item[1])):
            taken = [mutant.part for mutant in batch]
            if queue and not any(other in needs[part] or part in needs[other] for other in taken):
                batch.append(queue.pop(0))
        yield batch


def put_into(root: Path, tree: trees.Tree, batch: list[Mutant]) -> None:
    """Write the mutants' bodies into the tree's files, and build it."""
    texts = {mutant.file: tree[mutant.file].decode() for mutant in batch}
    for mutant in batch:
        body = regions.regions(str(mutant.source), mutant.file)[mutant.part].body
        texts[mutant.file] = regions.pour(texts[mutant.file], mutant.file, {mutant.part: body})
    for file, text in tree.items():
        if file.endswith((".cc", ".cu", ".cpp")):
            content = texts.get(file, text.decode()).encode()
            if (root / file).read_bytes() != content:
                (root / file).write_bytes(content)
    if (root / "tools" / "build_native.py").exists():
        named = ", ".join(f"{mutant.part}: {mutant.name}" for mutant in batch)
        build(root, ["cpu"] + ["cuda_here"] * any(mutant.file.endswith(".cu") for mutant in batch), named)


def build(root: Path, groups: list[str], what: str = "the checkout") -> None:
    for group in groups:
        if trouble := testrun.build(root, group):
            sys.exit(f"mutate_answers: {what}: {trouble}")


# ---- judging --------------------------------------------------------------------------------------------------------


def verdicts(root: Path, stage: stages.Stage, chosen: list[Mutant]) -> list[dict]:
    """What the worker says of each."""
    if not chosen:
        return []
    selectors = {part.id: list(part.tests) for part in stage.parts}
    for part, helpers in notes(stage).get("also", {}).items():
        selectors[part] += [test for helper in helpers for test in selectors[helper]]
    tests = sorted({test.split("::")[0] for mutant in chosen for test in selectors[mutant.part]})
    with tempfile.TemporaryDirectory(prefix="needle-job-") as folder:
        job, results, printed = (Path(folder, name) for name in ("job", "results", "printed"))
        results.write_text("")
        listed = [(i, m.part, m.file, m.source if m.file.endswith(".py") else None) for i, m in enumerate(chosen)]
        if chosen[0].file.endswith(".py"):
            listed.insert(0, (RIGHT, chosen[0].part, chosen[0].file, None))  # must be green, or nothing is proved
        job.write_bytes(pickle.dumps(Job(tests, selectors, listed, SECONDS, str(results))))
        variables = {**testrun.environment(root), "TMPDIR": folder, **dict.fromkeys(testrun.THREADS, "1")}
        with printed.open("wb") as output:
            command = [sys.executable, str(MUTANTS / "worker.py"), str(job)]
            done = subprocess.run(
                command, cwd=root, env=variables, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )
        lines = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
        if lines and lines[0]["number"] == RIGHT and (right := lines.pop(0))["caught"]:
            sys.exit(f"mutate_answers: the check of {chosen[0].part} is red on the reference itself: {right['how']}")
        if len(lines) != len(chosen):
            words = printed.read_text(encoding="utf-8", errors="replace")[-3000:]
            sys.exit(f"mutate_answers: {stage.id}: the worker left with {done.returncode}\n{words}")
    return lines


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main())
