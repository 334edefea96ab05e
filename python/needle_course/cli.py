"""needle-course: the commands of the course. What a command needs is imported when it runs, so that --help is quick.

Exit status: 0 if the command did what it names, 1 if it ran and the answer is no (a red check, a conflict), 2 for a
mistake of the user's, which is one line on standard error.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from .console import emit, never_fail_to_print, note, say, shortened, working
from .errors import UserError

app = typer.Typer(
    name="needle-course",
    help="Homework of the needle course: starters, checks, notebooks, grades.",
    no_args_is_help=False,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

StageName = Annotated[str, typer.Argument(metavar="STAGE", help="hw0, hw1, … as in hw/stages.toml")]
MaybeStage = Annotated[str | None, typer.Argument(metavar="[STAGE]", help="hw0, hw1, …; by default the tree's own")]
TreeFolder = Annotated[Path | None, typer.Option("--dir", help="the learner's tree; by default the one around you")]
CourseFolder = Annotated[Path | None, typer.Option("--course", help="a checkout or a bundle of the course")]


def hint_level(text: str | int) -> int:
    if str(text) not in ("0", "1", "2", "3"):  # the default comes as a number
        raise typer.BadParameter(f"{text!r} is no number from 0 to 3")
    return int(text)


AsJson = Annotated[bool, typer.Option("--json", help="one JSON document on standard output")]


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns its exit status."""
    never_fail_to_print()
    # make hands on OUT=~/tree in quotes, and not every shell has replaced the ~ by then
    words = [os.path.expanduser(word) for word in (sys.argv[1:] if arguments is None else arguments)]
    try:
        return app(args=words, prog_name="needle-course", standalone_mode=False) or 0
    except UserError as error:
        return refused(str(error))
    except KeyboardInterrupt:
        note("needle-course: stopped")
        return 130
    except BrokenPipeError:  # the reader of our output, `head` perhaps, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        return refused(f"{error.filename or 'file'}: {error.strerror or error}; is it yours, is the disk full?")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("needle"):
            raise
        return refused(f"{error.name} is missing; run: {sys.executable} -m pip install {error.name}")
    except Exception as error:
        if hasattr(error, "format_message"):  # what the command line itself refuses
            return refused(f"{error.format_message()} (needle-course {command_of(error)}--help says what it takes)")
        raise


def refused(message: str) -> int:
    note("needle-course: " + " ".join(message.split()))
    return 2


def command_of(error: Any) -> str:
    context = getattr(error, "ctx", None)
    words = context.command_path.split()[1:] if context is not None else []
    return "".join(f"{word} " for word in words)


# ---- where things are -----------------------------------------------------------------------------------------------


def course_at(folder: Path | None, learner: Path | None = None) -> Any:
    """The course that is named, that these tools lie in, that is around us, or that a learner's tree came from.

    A learner's tree itself, which is a course without its other stages, only where there is nothing else.
    """
    from . import files, stages

    if folder is not None:
        return stages.load(files.existing_folder(folder))
    candidates = [Path(__file__).resolve().parents[2], *around(Path.cwd()), *origin_of(learner)]
    found = [path for path in candidates if (path / stages.MANIFEST).is_file()]
    courses = [path for path in found if not (path / ".needle" / "tree.toml").is_file()]
    if not found:
        raise UserError(f"{Path.cwd()}: no course here (no {stages.MANIFEST}); name its folder: --course PATH")
    return stages.load((courses or found)[0])


def whole_course(folder: Path | None, learner: Path | None = None) -> Any:
    """The same, for commands that need every stage."""
    course = course_at(folder, learner)
    if course.kind == "tree":
        where = "".join(f", not at {path} any more" for path in origin_of(course.root) if not path.exists())
        raise UserError(f"{course.root}: is a learner's tree{where}; name the checkout or bundle: --course PATH")
    return course


def by_its_own_tools(course: Any, command: str, words: list[str]) -> int | None:
    """Run a command by the tools that lie in a course, if these here are others; returns its exit status.

    A learner's tree has the tools of the release that it came from; only a course's own know how its trees are made.
    """
    import subprocess

    tools = (Path(course.root) / "python").resolve()
    if tools == Path(__file__).resolve().parents[1] or not (tools / "needle_course" / "__main__.py").is_file():
        return None
    call = [sys.executable, "-m", "needle_course", command, *words, "--course", str(course.root)]
    return subprocess.run(call, cwd=tools, env={**os.environ, "PYTHONPATH": str(tools)}, check=False).returncode


def around(folder: Path) -> list[Path]:
    return [folder, *folder.parents]


def origin_of(learner: Path | None) -> list[Path]:
    """Where the course lay that the learner's tree, or the tree of these tools, was made from."""
    from .tree import RECORD, LearnerTree

    folders = [learner, Path(__file__).resolve().parents[2], *around(Path.cwd())]
    trees = [path for path in folders if path is not None and (path / RECORD).is_file()]
    return [Path(LearnerTree.read(path).source) for path in trees[:1]]


def tree_at(folder: Path | None, stage: str | None = None) -> Any:
    """The learner's tree, or the checkout, that a command is to look at. Refuses what is no stage anywhere."""
    from . import change, files, stages

    if stage is not None:
        refuse_unknown(stage)
    if folder is None:
        here = [path for path in around(Path.cwd()) if (path / stages.MANIFEST).is_file()]
        root = here[0] if here else course_at(None).root
    else:
        root = files.existing_folder(folder)
    if not (root / stages.MANIFEST).is_file():
        raise UserError(f"{root}: no learner's tree (no {stages.MANIFEST}); make one: needle-course starter")
    change.finish_interrupted(root)
    return stages.load(root)


def refuse_unknown(stage: str) -> None:
    try:
        course = course_at(None)
    except UserError:  # tools without a course: the tree itself must know
        return
    if course.kind != "tree":
        course.stage(stage)


def keep_result(course: Any, report: dict[str, Any]) -> None:
    """For `status`; a tree that we may not write to is checked all the same."""
    from . import status

    if course.kind == "tree":
        try:
            status.record(course.root, report, course)
        except OSError as error:
            note(f"the result is not kept for `status`: {error.strerror}")


# ---- making and moving a tree ---------------------------------------------------------------------------------------


@app.command()
def starter(
    stage: StageName,
    out: Annotated[Path, typer.Option("--out", help="the new folder")],
    own: Annotated[Path | None, typer.Option("--from", help="a tree whose answers to earlier stages to take")] = None,
    course: CourseFolder = None,
    as_json: AsJson = False,
) -> None:
    """Make a learner's tree for a stage."""
    source = whole_course(course)
    source.stage(stage)
    from . import starter as starters

    with working(f"{stage}: making the tree"):
        made = starters.make(source, stage, out, own)
    if as_json:
        emit(made.to_json())
        return
    say(f"{stage}: a learner's tree of {len(made.files)} files in {made.path}")
    if made.kept:
        say(f"your answers are in it: {shortened(made.kept)}")
    if made.blank:
        say(f"earlier questions still blank: {shortened(made.blank)}")
    place, book = shlex.quote(str(made.path)), f"hw/{stage}/{stage}.ipynb"
    say(f"next: cd {place}, read README.md and open {book}, or see `make help` there")


@app.command()
def advance(
    stage: Annotated[str | None, typer.Argument(metavar="[STAGE]", help="by default the next one")] = None,
    folder: TreeFolder = None,
    course: CourseFolder = None,
    as_json: AsJson = False,
) -> int:
    """Take a tree and your work to the next stage."""
    from . import advance as advancing
    from .tree import LearnerTree

    source = whole_course(course, folder)
    if stage is not None:
        source.stage(stage)
    root = LearnerTree.open(folder).root
    words = [*([stage] if stage else []), "--dir", str(root), *(["--json"] if as_json else [])]
    if (ended := by_its_own_tools(source, "advance", words)) is not None:
        return ended
    with working("merging"):
        outcome = advancing.run(source, root, stage)
    advancing.report(outcome)
    if as_json:
        emit(outcome.to_json())
    elif outcome.plan.conflicts:
        say(f"{outcome.tree.stage}: {len(outcome.plan.conflicts)} files in conflict, all others are done")
    else:
        changed = len(outcome.plan.writes) + len(outcome.plan.removals)
        say(f"{outcome.tree.stage}: {changed} files changed" if changed else f"{outcome.tree.stage}: nothing to change")
    return 1 if outcome.plan.conflicts else 0


@app.command()
def restore(
    name: Annotated[str | None, typer.Argument(metavar="[BACKUP]", help="by default the newest")] = None,
    folder: TreeFolder = None,
    show: Annotated[bool, typer.Option("--list", help="only show which backups there are")] = False,
    as_json: AsJson = False,
) -> None:
    """Bring a tree back to a backup."""
    from . import backup, files, tree

    root = files.existing_folder(folder) if folder is not None else tree.above_here()
    if not (root / ".needle").is_dir():
        raise UserError(f"{root}: no learner's tree (no .needle in it), so it has no backup")
    if show:
        found = [{"name": one.name, "why": one.why} for one in backup.every(root)]
        emit(found) if as_json else [say(f"{one['name']}  before {one['why']}") for one in found]
        return
    wanted, before, changed = backup.restore(root, name)
    note(f"backup of your tree as it was: {before.folder}")
    if as_json:
        emit({"restored": wanted.name, "path": str(root), "files": changed, "backup": str(before.folder)})
    else:
        say(f"back to {wanted.name} (before {wanted.why}): {len(changed)} files changed")


@app.command()
def reset(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="a question or part, hw1/backward")],
    folder: TreeFolder = None,
    as_json: AsJson = False,
) -> None:
    """Make a question blank again."""
    from . import reset as resetting
    from . import stages
    from .tree import LearnerTree

    root = LearnerTree.open(folder).root
    saved, blanked = resetting.run(stages.load(root), root, question)
    note(f"backup of your tree: {saved.folder}")
    if as_json:
        emit({"question": question, "path": str(root), "blank": blanked, "backup": str(saved.folder)})
        return
    for path, tags in blanked.items():
        say(f"{path}: blank again: {', '.join(tags)}")


@app.command()
def pack(
    stage: MaybeStage = None,
    folder: TreeFolder = None,
    out: Annotated[Path | None, typer.Option("--out", help="the zip; by default STAGE.zip in the tree")] = None,
    as_json: AsJson = False,
) -> int:
    """Make the hand-in of a stage, a zip."""
    from . import pack as packing
    from . import stages
    from .tree import LearnerTree

    learner = LearnerTree.open(folder)
    made = packing.run(stages.load(learner.root), learner.root, stage, out)
    for path in made.missing:
        note(f"{path}: missing in {learner.root}, so it is not in the zip")
    for message in made.damaged.values():
        note(f"marks damaged: {message} (it is in the zip as it is)")
    if as_json:
        emit(made.to_json())
    else:
        say(f"{made.path}: {', '.join(made.files)}")
        say(
            f"still blank: {shortened(made.blank)}"
            if made.blank
            else "no other is blank"
            if made.damaged
            else "nothing is blank"
        )
    return 1 if made.missing else 0


# ---- looking at one -------------------------------------------------------------------------------------------------


@app.command()
def check(
    stage: StageName,
    question: Annotated[str | None, typer.Option("--question", "-q", help="a question or part; else all")] = None,
    folder: TreeFolder = None,
    hints: Annotated[int, typer.Option(parser=hint_level, metavar="0-3", help="how many hints to show")] = 0,
    junit: Annotated[Path | None, typer.Option("--junit", help="also write the results as JUnit's XML")] = None,
    as_json: AsJson = False,
) -> int:
    """Check a question, or a whole stage."""
    tree = tree_at(folder, stage)
    tree.stage(stage)
    from . import check as checking
    from . import report as pages
    from . import results

    with working(f"checking {question or stage}"):
        report = checking.run(tree, stage, question, hints)
    document = report.to_json()
    keep_result(tree, document)
    if junit is not None:
        junit.write_text(results.to_junit(report), encoding="utf-8")
    emit(document) if as_json else pages.show(report)
    return 0 if report.passed else 1


@app.command()
def grade(
    stage: StageName,
    paths: Annotated[list[Path], typer.Argument(metavar="PATH…", help="a tree, a zip, or a folder of them")],
    out: Annotated[Path, typer.Option("--out", help="the folder for results.json and report.html")],
    course: CourseFolder = None,
    as_json: AsJson = False,
) -> int:
    """Grade submissions by every check."""
    source = course_at(course)
    source.stage(stage)
    from . import grade as grading

    result = grading.run(source, stage, paths, out)
    emit(result.to_json()) if as_json else grading.show(result)
    return 0


@app.command()
def notebook(
    stage: StageName,
    out: Annotated[Path, typer.Option("--out", help="a folder, or a name ending in .ipynb")],
    course: CourseFolder = None,
    as_json: AsJson = False,
) -> None:
    """Write a stage's notebook."""
    source = course_at(course)
    source.stage(stage)
    from . import notebook as notebooks

    path = notebooks.write(source, stage, out)
    emit({"stage": stage, "path": str(path)}) if as_json else say(f"{stage}: {path}")


@app.command()
def status(
    folder: TreeFolder = None,
    check_now: Annotated[bool, typer.Option("--check", help="run the checks instead of recalling the last")] = False,
    course: CourseFolder = None,
    as_json: AsJson = False,
) -> None:
    """Say how far you are: questions and points."""
    from . import files, stages, tree
    from . import status as progress

    root = files.existing_folder(folder) if folder is not None else (tree_or_here())
    known = stages.load(root) if (root / tree.RECORD).is_file() else course_at(course)
    found = progress.run(known, root, check_now)
    emit(found.to_json()) if as_json else show_status(found)


def tree_or_here() -> Path:
    from . import tree

    try:
        return tree.above_here()
    except UserError:
        return Path.cwd()


def show_status(found: Any) -> None:
    """A line per question, and the sum."""
    width = max(len(question.id) for question in found.questions)
    for question in found.questions:
        points, status = f"{question.earned:g}/{question.points:g}", question.status.replace("_", " ")
        say(f"{question.id:{width}}  {points:>7}  {status:15}  {question.checked:16}  {question.title}")
    if not found.stage:
        say(f"{found.path} holds no learner's tree yet: needle-course starter hw0 --out DIR makes one")
    how = "checked now" if found.source == "checked now" else "as last checked; --check checks now"
    sums = f"{found.passed} of {len(found.counted)} questions passed, {found.earned:g} of {found.points:g} points"
    say(f"{sums} ({how})")


@app.command()
def doctor(
    folder: TreeFolder = None,
    course: CourseFolder = None,
    as_json: AsJson = False,
) -> int:
    """Say what is missing on this machine."""
    from . import doctor as examining
    from . import files

    root = files.existing_folder(folder) if folder is not None else tree_or_here()
    try:
        known = course_at(course, root)
    except UserError:
        known = None
    findings = examining.run(known, root)
    sick = any(finding.state == "bad" for finding in findings)
    if as_json:
        emit({"path": str(root), "healthy": not sick, "findings": [finding.to_json() for finding in findings]})
        return int(sick)
    for finding in findings:
        mark = {"ok": "ok  ", "note": "note", "bad": "BAD "}[finding.state]
        say(f"{mark}  {finding.what}: {finding.seen}" + (f"\n      → {finding.next}" if finding.next else ""))
    return int(sick)


# ---- publishing -----------------------------------------------------------------------------------------------------


@app.command()
def release(
    out: Annotated[Path, typer.Option("--out", help="the folder for needle-course/ and needle-course.zip")],
    through: Annotated[str | None, typer.Option(help="the last stage to publish; by default all")] = None,
    course: CourseFolder = None,
    as_json: AsJson = False,
) -> None:
    """Make what a course publishes."""
    source = whole_course(course)
    from . import release as releasing

    made = releasing.run(source, out, through)
    if as_json:
        emit(made.to_json())
    else:
        say(f"{', '.join(made.stages)}: {len(made.files)} files in {made.path}, and as {made.archive.name} beside it")
