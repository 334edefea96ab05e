"""A tree goes from stage to stage, back, and loses no line of its learner's on the way."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from needle_course import advance, backup, change, files, regions, reset, starter, tree
from needle_course.errors import UserError
from needle_course.merge import Merged, Text, lost_lines, three_way
from needle_course.merge_notebook import merge_notebooks
from needle_course.stages import Course
from needle_course.tree import LearnerTree

from tests.course import small_course
from tests.course.small_course import ADD, SUB, TWICE, edit

ROOT = Path(__file__).resolve().parents[2]


def contents(root: Path) -> dict[str, bytes]:
    """Everything a learner sees, and what .needle remembers, but for backups and locks."""
    passed = (".needle/backups/", ".needle/lock")
    return {path: data for path, data in files.read_tree(root).items() if not path.startswith(passed)}


# ---- the next stage -------------------------------------------------------------------------------------------------


def test_the_next_stage_has_my_answers_and_my_other_edits(course: Course, learner: Path) -> None:
    edit(learner / "lib/core.py", (ADD, "    return b + a  # mine\n"), ("LIMIT = 10\n", "LIMIT = 12\n"))
    outcome = advance.run(course, learner)
    core = (learner / "lib/core.py").read_text()
    assert "return b + a  # mine" in core and "LIMIT = 12" in core and "def prod(items)" in core
    assert outcome.tree.stage == "hw2" and outcome.plan.conflicts == []
    assert (learner / "lib/more.py").exists() and "lib/core.py" in outcome.plan.kept


def test_what_i_left_blank_is_solved_and_said_where_the_course_has_solutions(course: Course, learner: Path) -> None:
    edit(learner / "lib/core.py", (ADD, "    return a + b\n"))
    outcome = advance.run(course, learner)
    assert outcome.solved == ["hw1/sub", "hw1/twice"]
    assert "return a + a" in (learner / "lib/util.py").read_text()


def test_a_question_that_is_asked_again_keeps_my_text(course: Course, learner: Path) -> None:
    edit(learner / "lib/core.py", (ADD, "    return a + b\n"))
    advance.run(course, learner)
    assert regions.regions((learner / "lib/core.py").read_text())["hw2/add"].body == "    return a + b\n"


def test_running_it_again_changes_nothing(course: Course, learner: Path) -> None:
    edit(learner / "lib/core.py", (ADD, "    return a + b\n"))
    advance.run(course, learner)
    before, saved = files.read_tree(learner), backup.every(learner)
    for stage in (None, "hw2"):
        outcome = advance.run(course, learner, stage)
        assert outcome.plan.writes == {} and outcome.saved is None and outcome.tree.stage == "hw2"
    assert files.read_tree(learner) == before and len(backup.every(learner)) == len(saved) == 1


def test_going_back_is_refused_and_a_wrong_stage_named(course: Course, learner: Path) -> None:
    advance.run(course, learner, "hw2")
    with pytest.raises(UserError, match=r"hw1: .* is past it"):
        advance.run(course, learner, "hw1")
    with pytest.raises(UserError, match="hw99"):
        advance.run(course, learner, "hw99")


def test_an_answer_like_the_courses_own_is_still_mine(course: Course, learner: Path) -> None:
    edit(learner / "lib/util.py", (TWICE, "    return a + a\n"))
    assert advance.run(course, learner, "hw2").solved == ["hw1/sub"]  # hw2 asks for add again
    course = newer(course, {"lib/util.py": small_course.UTIL.replace("return a + a", "return 2 * a")})
    advance.run(course, learner, "hw3")
    assert "return a + a" in (learner / "lib/util.py").read_text()


def test_a_question_that_i_made_blank_again_stays_blank(course: Course, learner: Path) -> None:
    advance.run(course, learner, "hw2")
    reset.run(course, learner, "hw1/twice")
    outcome = advance.run(course, learner, "hw3")
    assert TWICE in (learner / "lib/util.py").read_text()
    assert "hw1/twice" not in outcome.solved and "hw2/mul" in outcome.solved


def test_stages_may_be_skipped(course: Course, learner: Path) -> None:
    edit(learner / "lib/util.py", (TWICE, "    return 2 * a\n"))
    advance.run(course, learner, "hw3")
    assert "return 2 * a" in (learner / "lib/util.py").read_text()
    assert "return a * b" in (learner / "lib/more.py").read_text()  # hw2, solved
    assert regions.is_blank(regions.regions((learner / "lib/last.py").read_text())["hw3/last"])


# ---- a newer release of the same ------------------------------------------------------------------------------------


def newer(course: Course, changes: dict[str, str]) -> Course:
    return small_course.write(course.root, changes)


def test_a_newer_release_of_the_same_stage_comes_in(course: Course, learner: Path) -> None:
    edit(learner / "lib/core.py", (ADD, "    return a + b\n"))
    course = newer(course, {"lib/core.py": small_course.CORE.replace("first = a", "first = 0 + a")})
    outcome = advance.run(course, learner, "hw1")
    core = (learner / "lib/core.py").read_text()
    assert "first = 0 + a" in core and "return a + b" in core
    assert list(outcome.plan.writes) == ["lib/core.py"]


def test_the_same_lines_changed_by_both_are_a_conflict_that_loses_nothing(course: Course, learner: Path) -> None:
    mine = edit(learner / "lib/core.py", ("first = a", "first = -a"), (ADD, "    return a + b\n"))
    course = newer(course, {"lib/core.py": small_course.CORE.replace("first = a", "first = 0 + a")})
    outcome = advance.run(course, learner, "hw1")
    shown = (learner / "lib/core.py.conflict").read_text()
    assert outcome.plan.conflicts == ["lib/core.py"]
    assert (learner / "lib/core.py").read_text() == mine
    assert "<<<<<<< yours\n    first = -a\n=======\n    first = 0 + a\n>>>>>>> course\n" in shown
    assert "return a + b" in shown

    before = files.read_tree(learner)
    again = advance.run(course, learner, "hw1")  # not settled yet: nothing happens
    assert again.plan.conflicts == ["lib/core.py"] and files.read_tree(learner) == before

    (learner / "lib/core.py").write_text(shown)  # taken over, but with its marks
    (learner / "lib/core.py.conflict").unlink()
    assert advance.run(course, learner, "hw1").plan.conflicts == ["lib/core.py"]

    settled = shown.replace("<<<<<<< yours\n    first = -a\n=======\n", "").replace(">>>>>>> course\n", "")
    (learner / "lib/core.py").write_text(settled)
    assert advance.run(course, learner).tree.stage == "hw2"
    assert "first = 0 + a" in (learner / "lib/core.py").read_text()


def test_a_question_that_is_gone_from_the_course_shows_as_a_conflict(course: Course, learner: Path) -> None:
    mine = edit(learner / "lib/util.py", (TWICE, "    return 2 * a\n"))
    manifest = small_course.STAGES[: small_course.STAGES.index('[[stages.hw1.questions]]\nid = "hw1/twice"')]
    manifest += small_course.STAGES[small_course.STAGES.index("[stages.hw2]") :]
    course = newer(course, {"lib/util.py": "def thrice(a):\n    return 3 * a\n", "hw/stages.toml": manifest})
    outcome = advance.run(course, learner, "hw1")
    assert outcome.plan.conflicts == ["lib/util.py"] and (learner / "lib/util.py").read_text() == mine


def test_a_question_that_moved_to_another_file_keeps_my_answer(course: Course, learner: Path) -> None:
    edit(learner / "lib/util.py", (TWICE, "    return 2 * a\n"))
    region = small_course.UTIL.split("\n\n\n")[0] + "\n"
    manifest = small_course.STAGES.replace('file = "lib/util.py"', 'file = "lib/core.py"')
    changes = {"lib/util.py": "def thrice(a):\n    return 3 * a\n", "lib/core.py": region + small_course.CORE}
    outcome = advance.run(newer(course, {**changes, "hw/stages.toml": manifest}), learner, "hw1")
    assert outcome.plan.conflicts == []
    assert "return 2 * a" in (learner / "lib/core.py").read_text()


def test_a_file_that_the_course_gave_up_goes_unless_i_changed_it(course: Course, learner: Path) -> None:
    without = small_course.STAGES.replace(', "notes.txt"', "")
    untouched = learner.with_name("untouched")
    shutil.copytree(learner, untouched)
    with (learner / "notes.txt").open("a") as notes:
        notes.write("my own line\n")
    course = newer(course, {"hw/stages.toml": without})
    assert advance.run(course, learner, "hw1").plan.retired == ["notes.txt"]
    assert "my own line" in (learner / "notes.txt").read_text()
    advance.run(course, untouched, "hw1")
    assert not (untouched / "notes.txt").exists()


# ---- what learners do to their files --------------------------------------------------------------------------------


@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_windows_line_ends_a_byte_order_mark_and_an_open_end_stay(course: Course, learner: Path, bom: str) -> None:
    path = learner / "lib/util.py"
    text = edit(path, (TWICE, "    return 2 * a\n")).removesuffix("\n")
    path.write_bytes((bom + text).replace("\n", "\r\n").encode())
    course = newer(course, {"lib/util.py": '"""Given later."""\n' + small_course.UTIL})
    advance.run(course, learner, "hw1")
    got = path.read_bytes().decode()
    assert got == (bom + '"""Given later."""\n' + text).replace("\n", "\r\n")


def test_a_file_with_both_kinds_of_line_ends_keeps_each(course: Course, learner: Path) -> None:
    path = learner / "notes.txt"
    path.write_bytes(b"Notes\nthat the course gives\nmy line\r\nwith every stage\n")
    course = newer(course, {"notes.txt": "New notes\nthat the course gives\nwith every stage\n"})
    advance.run(course, learner, "hw1")
    assert path.read_bytes() == b"New notes\nthat the course gives\nmy line\r\nwith every stage\n"


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text.replace("    ### END YOUR SOLUTION hw1/sub\n", ""),
        lambda text: text.replace("    ### BEGIN YOUR SOLUTION hw1/add hw2/add\n", ""),
        lambda text: text.replace("BEGIN YOUR SOLUTION hw1/add hw2/add", "BEGIN YOUR SOLUTION"),
        lambda text: text.replace("hw1/sub\n", "hw1/nonsense\n"),
        lambda text: "".join(line for line in text.splitlines(True) if "YOUR SOLUTION" not in line),
    ],
    ids=["no END", "no BEGIN", "no tag", "another tag", "no marks at all"],
)
def test_damaged_marks_cost_no_line(course: Course, learner: Path, damage: Callable[[str], str]) -> None:
    path = learner / "lib/core.py"
    edit(path, (ADD, "    return b + a  # mine\n"), (SUB, "    minus = -b\n    return a + minus\n"))
    path.write_text(damage(path.read_text()))
    outcome = advance.run(course, learner)
    text = path.read_text()
    assert all(line in text for line in ("return b + a  # mine", "minus = -b", "return a + minus"))
    assert outcome.tree.stage == "hw2" and outcome.plan.conflicts == []
    assert list(outcome.answers.damaged) == ["lib/core.py"]


def test_damaged_marks_are_named_with_file_and_line(course: Course, learner: Path) -> None:
    text = edit(learner / "lib/core.py", ("    ### END YOUR SOLUTION hw1/sub\n", ""))
    line = text[: text.index("### BEGIN YOUR SOLUTION hw1/sub")].count("\n") + 1
    outcome = advance.run(course, learner)
    assert list(outcome.answers.damaged) == ["lib/core.py"]
    assert f"lib/core.py:{line}" in outcome.answers.damaged["lib/core.py"]


def test_a_deleted_file_is_here_again(course: Course, learner: Path) -> None:
    (learner / "lib/util.py").unlink()
    assert advance.run(course, learner, "hw1").plan.returned == ["lib/util.py"]
    assert (learner / "lib/util.py").exists()


def test_a_renamed_file_stays_and_its_answer_is_found(course: Course, learner: Path) -> None:
    edit(learner / "lib/util.py", (TWICE, "    return 2 * a\n"))
    (learner / "lib/util.py").rename(learner / "lib/my_util.py")
    advance.run(course, learner)
    assert "return 2 * a" in (learner / "lib/util.py").read_text()
    assert "return 2 * a" in (learner / "lib/my_util.py").read_text()


def test_an_old_copy_of_a_file_does_not_win_over_the_file(course: Course, learner: Path) -> None:
    text = (learner / "lib/util.py").read_text()
    (learner / "lib/a_first_try.py").write_text(text.replace(TWICE, "    return a * a\n"))
    edit(learner / "lib/util.py", (TWICE, "    return 2 * a\n"))
    advance.run(course, learner)
    assert "return 2 * a" in (learner / "lib/util.py").read_text()


def test_files_that_i_added_stay_also_where_the_course_has_one_now(course: Course, learner: Path) -> None:
    (learner / "lib/mine.py").write_text("MINE = 1\n")
    (learner / "lib/more.py").write_text("MORE = 1\n")  # which hw2 brings
    outcome = advance.run(course, learner, "hw2")
    assert (learner / "lib/mine.py").read_text() == "MINE = 1\n"
    assert (learner / "lib/more.py").read_text() == "MORE = 1\n"
    assert outcome.plan.conflicts == ["lib/more.py"]
    assert "def mul" in (learner / "lib/more.py.conflict").read_text()


def test_a_folder_in_the_way_is_named_and_nothing_done(course: Course, learner: Path) -> None:
    (learner / "lib/more.py").mkdir()
    before = contents(learner)
    with pytest.raises(UserError, match=r"more\.py: is a folder"):
        advance.run(course, learner, "hw2")
    assert contents(learner) == before


def test_a_link_out_of_the_tree_is_not_followed(course: Course, learner: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (learner / "lib").rename(elsewhere)
    (learner / "lib").symlink_to(elsewhere)
    before = files.read_tree(elsewhere)
    with pytest.raises(UserError, match="leads out of this tree"):
        advance.run(course, learner, "hw2")
    assert files.read_tree(elsewhere) == before


def test_bytes_that_are_no_text_are_kept(course: Course, learner: Path) -> None:
    (learner / "notes.txt").write_bytes(b"caf\xe9 in Latin-1\n")
    advance.run(course, learner, "hw2")
    assert b"caf\xe9 in Latin-1\n" in (learner / "notes.txt").read_bytes()


def test_an_answer_with_bytes_that_are_no_text_is_kept(course: Course, learner: Path) -> None:
    path = learner / "lib/util.py"
    path.write_bytes(path.read_bytes().replace(TWICE.encode(), b"    return 2 * a  # caf\xe9\n"))
    advance.run(course, learner)
    assert b"    return 2 * a  # caf\xe9\n" in path.read_bytes()
    reset.run(course, learner, "hw1/twice")
    assert b"caf" not in path.read_bytes()


def test_a_region_that_is_there_twice_costs_no_line(course: Course, learner: Path) -> None:
    path = learner / "lib/util.py"
    edit(path, (TWICE, "    return 2 * a\n"))
    path.write_text(path.read_text() + path.read_text().replace("2 * a", "a * 2"))
    outcome = advance.run(course, learner)
    assert "return 2 * a" in path.read_text() and "return a * 2" in path.read_text()
    assert list(outcome.answers.damaged) == ["lib/util.py"]


def test_a_script_stays_executable_and_a_read_only_file_gets_its_change(course: Course, learner: Path) -> None:
    path = learner / "lib/core.py"
    path.chmod(0o555)
    advance.run(course, learner, "hw2")
    assert "def prod" in path.read_text() and path.stat().st_mode & stat.S_IXUSR


def test_lost_copies_of_what_was_given_make_a_conflict_not_a_loss(course: Course, learner: Path) -> None:
    mine = edit(learner / "lib/core.py", ("LIMIT = 10", "LIMIT = 12"))
    (learner / ".needle/starter/lib/core.py").write_text("tampered")
    (learner / ".needle/starter/lib/util.py").unlink()  # not changed: its digest tells
    outcome = advance.run(course, learner, "hw2")
    assert outcome.plan.conflicts == ["lib/core.py"] and (learner / "lib/core.py").read_text() == mine
    assert "return a + a" in (learner / "lib/util.py").read_text()


def test_a_damaged_record_is_one_line(course: Course, learner: Path) -> None:
    (learner / tree.RECORD).write_text("stage = ")
    with pytest.raises(UserError, match=r"tree\.toml: damaged .*restore"):
        advance.run(course, learner)


def test_a_read_only_course_will_do(course: Course, learner: Path) -> None:
    for path in course.root.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        advance.run(course, learner, "hw2")
    finally:
        for path in course.root.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
    assert os.access(learner / "lib/more.py", os.W_OK)


# ---- cut short ------------------------------------------------------------------------------------------------------


def advance_killed_after(steps: int, course: Course, learner: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Advance to hw2, and die after so many steps of that change."""
    taken = []

    def take(root: Path, step: dict) -> None:
        if len(taken) == steps:
            raise KeyboardInterrupt
        taken.append(step)
        original(root, step)

    original = change.take
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(change, "take", take)
        advance.run(course, learner, "hw2")


def advanced_copy(course: Course, learner: Path) -> Path:
    """A copy of the tree at hw2, where nothing was cut short."""
    whole = learner.with_name("whole")
    shutil.copytree(learner, whole)
    advance.run(course, whole, "hw2")
    return whole


@pytest.mark.parametrize("steps", range(0, 9, 2))
def test_a_killed_advance_is_finished_by_the_next_command(
    course: Course, learner: Path, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(learner / "lib/core.py", (ADD, "    return b + a\n"))
    whole = advanced_copy(course, learner)
    advance_killed_after(steps, course, learner, monkeypatch)
    advance.run(course, learner, "hw2")
    assert contents(learner) == contents(whole)


def test_a_change_killed_while_it_is_prepared_leaves_the_tree_alone(
    course: Course, learner: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(learner)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(files, "write_whole", die)
        change.apply(learner, {"lib/core.py": b"other"})
    with change.alone(learner):
        pass
    assert contents(learner) == before


def test_what_i_edit_after_the_kill_is_not_overwritten(
    course: Course, learner: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    advance_killed_after(0, course, learner, monkeypatch)
    edit(learner / "lib/core.py", ("LIMIT = 10", "LIMIT = 12"))
    mine = (learner / "lib/core.py").read_text()
    assert advance.run(course, learner, "hw2").plan.conflicts == ["lib/core.py"]
    assert (learner / "lib/core.py").read_text() == mine
    assert "def prod" in (learner / "lib/core.py.conflict").read_text()


def test_a_command_that_only_looks_finishes_what_was_interrupted(
    course: Course, learner: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    advance_killed_after(2, course, learner, monkeypatch)
    assert LearnerTree.open(learner).stage == "hw2"
    assert (learner / "lib/more.py").exists() and not (learner / change.PENDING).exists()


def test_two_commands_in_one_tree_do_not_mix(course: Course, learner: Path) -> None:
    with change.alone(learner), pytest.raises(UserError, match="another needle-course command"):
        advance.run(course, learner, "hw2")


KILLED = """
import os, sys, threading, time
from pathlib import Path
from needle_course import advance, stages
threading.Thread(target=lambda: (time.sleep(float(sys.argv[3])), os.kill(os.getpid(), 9)), daemon=True).start()
advance.run(stages.load(Path(sys.argv[1])), Path(sys.argv[2]), "hw2")
"""


@pytest.mark.slow
def test_a_process_killed_at_any_moment_leaves_old_or_new_after_the_next_run(course: Course, learner: Path) -> None:
    edit(learner / "lib/core.py", (ADD, "    return b + a\n"))
    whole = advanced_copy(course, learner)
    for attempt in range(20):
        victim = learner.with_name(f"victim{attempt}")
        shutil.copytree(learner, victim)
        arguments = [str(course.root), str(victim), str(0.002 * attempt)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
        subprocess.run([sys.executable, "-c", KILLED, *arguments], env=environment)
        advance.run(course, victim, "hw2")
        assert contents(victim) == contents(whole)


# ---- back in time ---------------------------------------------------------------------------------------------------


def test_restore_brings_everything_back_and_can_be_taken_back(course: Course, learner: Path) -> None:
    edit(learner / "lib/core.py", (ADD, "    return b + a\n"))
    before = contents(learner)
    advance.run(course, learner, "hw2")
    after = contents(learner)
    backup.restore(learner)
    assert contents(learner) == before
    backup.restore(learner)
    assert contents(learner) == after


def test_restore_by_name_goes_back_several_steps(course: Course, learner: Path) -> None:
    before = contents(learner)
    advance.run(course, learner, "hw2")
    advance.run(course, learner, "hw3")
    first = backup.every(learner)[0]
    assert first.why == "advance from hw1 to hw2"
    backup.restore(learner, first.name)
    assert contents(learner) == before


def test_restore_leaves_files_that_i_made_since(course: Course, learner: Path) -> None:
    advance.run(course, learner, "hw2")
    (learner / "lib/mine.py").write_text("MINE = 1\n")
    backup.restore(learner)
    assert (learner / "lib/mine.py").read_text() == "MINE = 1\n"


def test_restore_saves_a_record_that_was_damaged(course: Course, learner: Path) -> None:
    advance.run(course, learner, "hw2")
    (learner / tree.RECORD).write_text("nonsense")
    backup.restore(learner)
    assert LearnerTree.open(learner).stage == "hw1"


def test_restore_without_a_backup_or_with_a_wrong_name_is_one_line(course: Course, learner: Path) -> None:
    with pytest.raises(UserError, match="no backup yet"):
        backup.restore(learner)
    advance.run(course, learner, "hw2")
    with pytest.raises(UserError, match="yesterday: no backup"):
        backup.restore(learner, "yesterday")


def test_backups_of_one_second_are_in_order(tmp_path: Path) -> None:
    names = ["2026-01-01_10-00-00_10", "2026-01-01_10-00-00", "2026-01-01_10-00-00_9"]
    assert sorted((tmp_path / name for name in names), key=backup.order)[-1].name.endswith("_10")


# ---- trying a question again ----------------------------------------------------------------------------------------


def test_reset_blanks_a_question_and_keeps_a_backup(course: Course, learner: Path) -> None:
    fresh = (learner / "lib/core.py").read_text()
    filled = edit(learner / "lib/core.py", (ADD, "    return a + b\n"), (SUB, "    return a - b\n"))
    saved, blanked = reset.run(course, learner, "hw1/sums")
    assert (learner / "lib/core.py").read_text() == fresh  # its starter text, too
    assert blanked == {"lib/core.py": ["hw1/add", "hw1/sub"]}
    assert (saved.folder / "lib/core.py").read_text() == filled


def test_reset_takes_a_part_and_keeps_windows_line_ends(course: Course, learner: Path) -> None:
    path = learner / "lib/core.py"
    filled = edit(path, (ADD, "    return a + b\n"), (SUB, "    return a - b\n"))
    path.write_bytes(filled.replace("\n", "\r\n").encode())
    reset.run(course, learner, "sub")
    assert path.read_bytes().decode() == filled.replace("    return a - b\n", SUB).replace("\n", "\r\n")


def test_reset_of_what_is_blank_says_so(course: Course, learner: Path) -> None:
    with pytest.raises(UserError, match="hw1/twice: is blank already"):
        reset.run(course, learner, "hw1/twice")
    assert backup.every(learner) == []


def test_reset_works_when_what_blanks_hold_is_lost(course: Course, learner: Path) -> None:
    edit(learner / "lib/core.py", (ADD, "    return a + b\n"))
    (learner / tree.BLANKS).unlink()
    reset.run(course, learner, "hw1/add")
    assert ADD in (learner / "lib/core.py").read_text()


def test_reset_of_an_earlier_stage_brings_its_starter_text_back(course: Course, learner: Path) -> None:
    advance.run(course, learner, "hw2")
    reset.run(course, learner, "hw1/sub")
    assert regions.regions((learner / "lib/core.py").read_text())["hw1/sub"].body == SUB


# ---- starting with earlier answers ----------------------------------------------------------------------------------


def test_a_starter_takes_the_answers_of_an_earlier_tree(course: Course, learner: Path, tmp_path: Path) -> None:
    edit(learner / "lib/util.py", (TWICE, "    return 2 * a\n"))
    made = starter.make(course, "hw2", tmp_path / "second", learner)
    assert made.kept == ["hw1/twice"]
    assert "return 2 * a" in (tmp_path / "second/lib/util.py").read_text()
    assert "return total" not in (tmp_path / "second/lib/core.py").read_text()  # hw2 asks for it again: blank


def test_a_starter_from_a_tree_without_answers_says_so(course: Course, learner: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no answer to an earlier stage"):
        starter.make(course, "hw2", tmp_path / "second", learner)
    assert not (tmp_path / "second").exists()


def test_a_starter_goes_into_no_folder_that_holds_something(course: Course, learner: Path) -> None:
    with pytest.raises(UserError, match="needle-course advance"):
        starter.make(course, "hw1", learner)
    with pytest.raises(UserError, match="not empty"):
        starter.make(course, "hw1", learner.parent)


# ---- merging --------------------------------------------------------------------------------------------------------


def text(*lines: str) -> Text:
    return Text.of("".join(f"{line}\n" for line in lines).encode())


def test_three_way_takes_both_sides() -> None:
    given, mine, new = text("a", "b", "c", "d"), text("a", "mine", "b", "c", "d"), text("a", "b", "c", "new", "d")
    assert three_way(given, mine, new) == Merged(b"a\nmine\nb\nc\nnew\nd\n")


def test_a_merge_that_would_lose_a_line_is_a_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    given, mine, new = text("a", "b"), text("a", "mine", "b"), text("new", "a", "b")
    monkeypatch.setattr("needle_course.merge.lost_lines", lambda *_: ["mine"])
    merged = three_way(given, mine, new)
    assert merged.content == b"a\nmine\nb\n"
    assert merged.conflict == b"<<<<<<< yours\na\nmine\nb\n=======\nnew\na\nb\n>>>>>>> course\n"


def test_text_is_written_back_byte_for_byte() -> None:
    for content in (
        b"",
        b"\n",
        b"a",
        b"a\r\nb\n",
        b"\xef\xbb\xbfa\r\n",
        b"a\x0cb\n\x85c\n",
        b"\xff\xfe\n",
        b"\r\n\r\n",
    ):
        parsed = Text.of(content)
        assert parsed.written_alike(parsed.lines) == content


def notebook(*cells: tuple[str, str]) -> bytes:
    made = [
        {"cell_type": kind, "id": f"c{n}", "metadata": {}, "source": source} for n, (kind, source) in enumerate(cells)
    ]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


def test_a_notebook_keeps_my_cells_and_outputs_and_gets_the_new_ones() -> None:
    given = notebook(("markdown", "one"), ("code", "1 + 1"), ("markdown", "end"))
    mine = json.loads(notebook(("markdown", "one"), ("code", "1 + 1"), ("code", "my cell"), ("markdown", "end")))
    mine["cells"][1]["outputs"] = ["2"]
    new = notebook(("markdown", "first"), ("code", "1 + 1"), ("markdown", "end"))
    merged = json.loads(merge_notebooks(given, json.dumps(mine).encode(), new).content)
    assert [cell["source"] for cell in merged["cells"]] == ["first", "1 + 1", "my cell", "end"]
    assert merged["cells"][1]["outputs"] == ["2"]
    assert len({cell["id"] for cell in merged["cells"]}) == 4


def test_a_notebook_changed_by_both_at_one_place_is_a_conflict() -> None:
    given, mine, new = (notebook(("code", source)) for source in ("x", "mine", "theirs"))
    assert merge_notebooks(given, mine, new) == Merged(mine, new)


# ---- any edits ------------------------------------------------------------------------------------------------------

EDITS = ("insert", "delete", "replace", "fill", "damage", "windows", "bom", "rename", "remove", "add", "open end")
EDITED = ("lib/core.py", "lib/util.py", "notes.txt")
RELEASES = [
    {},
    {"lib/core.py": small_course.CORE.replace("first = a", "first = 0 + a").replace("LIMIT = 10", "LIMIT = 11")},
    {"lib/core.py": '"""Moved."""\n' + small_course.CORE, "notes.txt": "Notes\nrewritten\n"},
    {"lib/util.py": small_course.UTIL.replace("def thrice", "def triple"), "lib/mine0.py": "COURSE = 1\n"},
]


@st.composite
def scenarios(draw: st.DrawFn) -> tuple[list[tuple[str, str, int]], int, str]:
    """Some edits, each with a file and a place in it; a release; a stage."""
    edits = st.tuples(st.sampled_from(EDITS), st.sampled_from(EDITED), st.integers(0, 60))
    return (
        draw(st.lists(edits, min_size=1, max_size=8)),
        draw(st.sampled_from(range(4))),
        draw(st.sampled_from(["hw1", "hw2"])),
    )


def make_edit(root: Path, kind: str, name: str, place: int, number: int) -> None:
    """One thing that a learner does to a file; the lines that they write hold "mine" and a number."""
    path = root / name
    if not path.exists():
        return
    lines = path.read_bytes().decode("utf-8-sig").split("\n")
    at = place % len(lines)
    mine = f"    # mine {number}"
    if kind == "insert":
        lines.insert(at, mine)
    elif kind == "delete" and "mine" not in lines[at]:
        del lines[at]
    elif kind == "replace" and "mine" not in lines[at]:
        lines[at] = mine
    elif kind == "fill":
        lines = [mine if "raise NotImplementedError" in line else line for line in lines]
    elif kind == "damage":
        marks = [n for n, line in enumerate(lines) if "YOUR SOLUTION" in line]
        if marks:
            del lines[marks[place % len(marks)]]
    elif kind == "rename":
        path.rename(root / f"lib/renamed{number}.py")
        return
    elif kind == "remove" and not any("mine" in line for line in lines):
        path.unlink()
        return
    elif kind == "add":
        (root / f"lib/mine{place % 3}.py").write_text(f"{mine}\n")
    text = "\n".join(lines)
    if kind == "windows":
        text = text.replace("\r\n", "\n").replace("\n", "\r\n")
    if kind == "open end":
        text = text.rstrip("\r\n")
    path.write_bytes((("\ufeff" if kind == "bom" else "") + text).encode())


def my_lines(root: Path) -> set[str]:
    """The learner's lines, wherever in the tree a learner looks for them."""
    return {
        line.strip().lstrip("\ufeff")
        for path in files.listing(root)
        for line in (root / path).read_text(encoding="utf-8").splitlines()
        if "# mine" in line
    }


@pytest.fixture(scope="module")
def memory() -> Iterator[Path]:
    """A folder in memory where there is one: the scenarios make and remove thousands of small files."""
    shared = Path("/dev/shm")
    usable = shared.is_dir() and os.access(shared, os.W_OK)
    with tempfile.TemporaryDirectory(prefix="needle-", dir=shared if usable else None) as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def releases(memory: Path) -> list[Course]:
    manifest = small_course.STAGES.replace('"notes.txt"]', '"notes.txt", "lib/mine0.py"]')
    changes = [{**change, "hw/stages.toml": manifest} if "lib/mine0.py" in change else change for change in RELEASES]
    return [small_course.write(memory / str(number), change) for number, change in enumerate(changes)]


@pytest.fixture(scope="module")
def fresh(releases: list[Course], memory: Path) -> Path:
    starter.make(releases[0], "hw1", memory / "fresh")
    return memory / "fresh"


@given(scenario=scenarios())
@settings(max_examples=250, suppress_health_check=[HealthCheck.too_slow])
def test_no_line_of_mine_is_lost_whatever_i_did(
    releases: list[Course], fresh: Path, scenario: tuple[list[tuple[str, str, int]], int, str]
) -> None:
    edits, release, stage = scenario
    root = fresh.with_name("edited")
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(fresh, root)
    for number, (kind, name, place) in enumerate(edits):
        make_edit(root, kind, name, place, number)
    mine, before = my_lines(root), contents(root)
    outcome = advance.run(releases[release], root, stage)
    assert mine <= my_lines(root)
    for path in outcome.plan.conflicts:
        assert (root / path).read_bytes() == before[path]
    after = files.read_tree(root)
    advance.run(releases[release], root, stage)
    assert files.read_tree(root) == after
    if outcome.saved:
        backup.restore(root)
        assert {path: data for path, data in contents(root).items() if path in before} == before


def test_lost_lines_counts_what_was_added_and_is_gone() -> None:
    given, mine = text("a", "b"), text("a", "b", "b", "new")
    assert lost_lines(given, mine, ["a", "b", "new"]) == []
    assert lost_lines(given, mine, ["a", "b"]) == ["new"]
