"""The command line: what it prints where, its exit status, and one line for every mistake."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from needle_course import advance, answers, pack, starter, status
from needle_course.cli import main
from needle_course.stages import Course

from tests.course import small_course
from tests.course.small_course import ADD, TWICE, edit

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = (
    "starter", "advance", "restore", "reset", "pack", "check", "grade", "notebook", "status", "doctor", "release",
)  # fmt: skip


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """The exit status, standard output and standard error of one command."""
    status = main([str(word) for word in words])
    out, err = capsys.readouterr()
    return status, out, err


def the_line(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """The one line on standard error with which a command refuses."""
    status, out, err = run(capsys, *words)
    assert status == 2 and out == "" and err.count("\n") == 1, (status, out, err)
    return err


# ---- help and mistakes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_every_command_has_a_help_page(capsys: pytest.CaptureFixture[str], command: str) -> None:
    status, out, err = run(capsys, *command.split(), "--help")
    assert status == 0 and "Usage" in out and err == ""


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "--help")[1]
    assert [name for name in COMMANDS if f"  {name} " not in out] == []
    assert "..." not in out.partition("Commands:")[2]  # no sentence is cut off


def test_help_imports_nothing_slow() -> None:
    code = "import sys; from needle_course.cli import main; main(['check', '--help']); print(sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
    )
    loaded = set(eval(done.stdout.splitlines()[-1]))
    assert not loaded & {"numpy", "needle", "jupytext", "nbformat", "merge3", "rich.table", "pytest", "hypothesis"}


def test_the_module_runs_and_its_status_is_the_commands(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    command = [sys.executable, "-m", "needle_course", "check", "hw1", "--dir", str(tmp_path / "gone")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and "gone: no such folder" in done.stderr


def test_a_terminal_without_our_signs_is_no_reason_to_stop(learner: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "PYTHONIOENCODING": "ascii"}
    for command, found in ((["status"], "0 of 2"), (["doctor"], "->"), (["status", "--json"], "n\\u00e4edle")):
        words = [sys.executable, "-m", "needle_course", *command, "--dir", str(learner)]
        done = subprocess.run(words, env=environment, capture_output=True, text=True)
        assert "Traceback" not in done.stderr and found.replace("->", "?") in done.stdout


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["frobnicate"], "frobnicate"),
        (["starter"], "STAGE"),
        (["starter", "hw1"], "--out"),
        (["starter", "hw1", "--otu", "x"], "--otu"),
        (["check", "hw1", "--hints", "7"], "7"),
        (["check", "hw1", "--hints", "many"], "many"),
        ([], "command"),
    ],
)
def test_a_mistyped_command_is_one_line_that_names_the_word(
    capsys: pytest.CaptureFixture[str], words: list[str], named: str
) -> None:
    line = the_line(capsys, *words)
    assert named in line and "--help" in line


def test_a_tilde_that_no_shell_has_replaced_is_the_home_folder(
    monkeypatch: pytest.MonkeyPatch, course: Course, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert main(["starter", "hw1", "--out", "~/tree", "--course", str(course.root)]) == 0
    assert (tmp_path / "tree").is_dir() and not (tmp_path / "~").exists()


@pytest.mark.parametrize("command", ["starter", "notebook", "grade"])
def test_a_wrong_stage_is_one_line(
    capsys: pytest.CaptureFixture[str], course: Course, tmp_path: Path, command: str
) -> None:
    paths = [tmp_path] if command == "grade" else []
    line = the_line(capsys, command, "hw99", *paths, "--out", tmp_path / "out", "--course", course.root)
    assert "hw99" in line and "hw1, hw2, hw3" in line
    assert not (tmp_path / "out").exists()


def test_a_check_of_a_wrong_stage_names_it_before_the_folder(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert "hw99" in the_line(capsys, "check", "hw99", "--dir", tmp_path)


@pytest.mark.parametrize("words", [["check", "hw1"], ["pack"], ["reset", "hw1/add"], ["restore"]])
def test_a_folder_without_a_tree_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "empty").mkdir()
    assert "empty" in the_line(capsys, *words, "--dir", tmp_path / "empty")
    assert "no such folder" in the_line(capsys, *words, "--dir", tmp_path / "gone")
    (tmp_path / "file").write_text("")
    assert "is a file" in the_line(capsys, *words, "--dir", tmp_path / "file")


def test_an_unknown_question_is_one_line(capsys: pytest.CaptureFixture[str], learner: Path) -> None:
    assert "hw1/nope" in the_line(capsys, "reset", "hw1/nope", "--dir", learner)


def test_a_damaged_manifest_is_one_line_with_its_line(capsys: pytest.CaptureFixture[str], course: Course) -> None:
    (course.root / "hw/stages.toml").write_text("[stages.hw1\n")
    line = the_line(capsys, "starter", "hw1", "--out", course.root / "x", "--course", course.root)
    assert "stages.toml:1:" in line


def test_a_folder_that_cannot_be_written_is_one_line(
    capsys: pytest.CaptureFixture[str], course: Course, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    line = the_line(capsys, "starter", "hw1", "--out", tmp_path / "file" / "tree", "--course", course.root)
    assert "file" in line


def test_without_a_course_it_says_how_to_name_one(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As from a wheel: the tools lie in no course, and neither does the current folder."""
    monkeypatch.setattr("needle_course.cli.__file__", str(tmp_path / "site-packages/needle_course/cli.py"))
    monkeypatch.chdir(tmp_path)
    assert "--course" in the_line(capsys, "starter", "hw1", "--out", tmp_path / "x")


# ---- what commands print --------------------------------------------------------------------------------------------


def test_starter_prints_where_it_is_and_one_json_document(
    capsys: pytest.CaptureFixture[str], course: Course, tmp_path: Path
) -> None:
    out = tmp_path / "tree"
    done, text, err = run(capsys, "starter", "hw1", "--out", out, "--course", course.root, "--json")
    made = json.loads(text)
    assert done == 0 and err == ""
    assert (made["stage"], made["path"], made["backup"], made["kept"]) == ("hw1", str(out), None, [])
    assert "lib/core.py" in made["files"] and (out / "lib/core.py").exists()
    done, text, _ = run(capsys, "starter", "hw1", "--out", tmp_path / "second", "--course", course.root)
    assert str(tmp_path / "second") in text


def test_advance_says_what_it_did_and_where_the_backup_is(
    capsys: pytest.CaptureFixture[str], course: Course, learner: Path
) -> None:
    done, text, err = run(capsys, "advance", "hw2", "--dir", learner, "--course", course.root, "--json")
    result = json.loads(text)
    assert done == 0 and result["stage"] == "hw2" and "lib/more.py" in result["files"]
    assert Path(result["backup"]).is_dir() and result["backup"] in err


def test_advance_with_a_conflict_exits_1_and_lists_it(
    capsys: pytest.CaptureFixture[str], course: Course, learner: Path
) -> None:
    path = learner / "lib/core.py"
    edit(path, ("first = a", "first = -a"))
    small_course.write(course.root, {"lib/core.py": small_course.CORE.replace("first = a", "first = +a")})
    done, text, err = run(capsys, "advance", "hw1", "--dir", learner, "--course", course.root)
    assert done == 1 and "1 files in conflict" in text
    assert str(path) in err and "core.py.conflict" in err


def test_a_tree_finds_the_course_that_it_came_from(
    capsys: pytest.CaptureFixture[str], course: Course, learner: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As run from the tree's own tools."""
    monkeypatch.setattr("needle_course.cli.__file__", str(learner / "python/needle_course/cli.py"))
    monkeypatch.chdir(learner / "lib")
    assert run(capsys, "advance", "hw2")[0] == 0
    assert (learner / "lib/more.py").exists()
    course.root.rename(course.root.with_name("moved"))
    assert "--course PATH" in the_line(capsys, "advance", "hw3")


def test_a_tree_advances_by_the_tools_of_the_course_that_it_goes_to(
    capfd: pytest.CaptureFixture[str], course: Course, learner: Path
) -> None:
    """A newer release may make its trees otherwise than the tools that an older one left in the tree."""
    tools = course.root / "python/needle_course"
    tools.mkdir(parents=True)
    (tools / "__init__.py").touch()
    (tools / "__main__.py").write_text("import sys\nprint(sys.argv[1:])\nsys.exit(5)\n")
    before = (learner / "lib/core.py").read_bytes()
    assert main(["advance", "hw2", "--dir", str(learner), "--course", str(course.root)]) == 5
    words = ["advance", "hw2", "--dir", str(learner), "--course", str(course.root)]
    assert capfd.readouterr().out == f"{words}\n"
    assert (learner / "lib/core.py").read_bytes() == before and not (learner / "lib/more.py").exists()


def test_what_it_says_to_type_can_be_typed_where_the_path_has_blanks(
    capsys: pytest.CaptureFixture[str], course: Course, tmp_path: Path
) -> None:
    out = tmp_path / "my Drive ü"
    _, text, _ = run(capsys, "starter", "hw1", "--out", out, "--course", course.root)
    assert f"next: cd '{out}'," in text
    assert f"advance --dir '{out}'" in the_line(capsys, "starter", "hw1", "--out", out, "--course", course.root)


def test_damaged_marks_are_not_taken_for_blanks(
    capsys: pytest.CaptureFixture[str], course: Course, learner: Path
) -> None:
    path = learner / "lib/core.py"
    edit(path, (ADD, "    return a + b\n"), ("END YOUR SOLUTION hw1/add", "the end"))
    assert "lib/core.py:" in the_line(capsys, "reset", "hw1/add", "--dir", learner)
    done, text, err = run(capsys, "pack", "--dir", learner)
    assert done == 0 and "still blank: hw1/twice\n" in text and "marks damaged: lib/core.py:" in err
    done, _, err = run(capsys, "advance", "hw2", "--dir", learner, "--course", course.root)
    assert "marks damaged: lib/core.py:" in err
    assert "hw1/add" not in err.partition("answered by the course")[2]


def test_restore_lists_and_restores(capsys: pytest.CaptureFixture[str], course: Course, learner: Path) -> None:
    run(capsys, "advance", "hw2", "--dir", learner, "--course", course.root)
    done, text, _ = run(capsys, "restore", "--list", "--dir", learner)
    assert done == 0 and "before advance from hw1 to hw2" in text
    done, text, err = run(capsys, "restore", "--dir", learner, "--json")
    assert done == 0 and not (learner / "lib/more.py").exists()
    assert json.loads(text)["backup"] in err


def test_reset_says_what_is_blank_again(capsys: pytest.CaptureFixture[str], course: Course, learner: Path) -> None:
    path = learner / "lib/core.py"
    edit(path, (ADD, "    return a + b\n"))
    done, text, err = run(capsys, "reset", "hw1/add", "--dir", learner)
    assert done == 0 and text == "lib/core.py: blank again: hw1/add\n" and "backup" in err
    assert ADD in path.read_text()


# ---- the hand-in ----------------------------------------------------------------------------------------------------


def test_pack_holds_what_the_manifest_names_and_says_what_is_blank(
    capsys: pytest.CaptureFixture[str], course: Course, learner: Path
) -> None:
    path = learner / "lib/core.py"
    edit(path, (ADD, "    return a + b\n"))
    (learner / "lib/secrets.py").write_text("KEY = 1\n")
    done, text, _ = run(capsys, "pack", "--dir", learner)
    assert done == 0 and "still blank: hw1/sub, hw1/twice" in text
    with zipfile.ZipFile(learner / "hw1.zip") as archive:
        assert archive.namelist() == ["lib/core.py", "lib/util.py"]
        assert archive.read("lib/core.py") == path.read_bytes()


def test_the_same_work_packs_to_the_same_bytes(course: Course, learner: Path, tmp_path: Path) -> None:
    for name in ("one.zip", "two.zip"):
        pack.run(course, learner, "hw1", tmp_path / name)
        os.utime(learner / "lib/core.py", (1, 1))
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


def test_pack_of_a_tree_that_lacks_a_file_says_so_and_exits_1(
    capsys: pytest.CaptureFixture[str], course: Course, learner: Path
) -> None:
    (learner / "lib/util.py").unlink()
    done, text, err = run(capsys, "pack", "--dir", learner)
    assert done == 1 and "lib/util.py: missing" in err and "hw1/twice" in text


# ---- progress -------------------------------------------------------------------------------------------------------


def test_status_of_an_empty_project_is_0_of_n_U031(
    capsys: pytest.CaptureFixture[str], course: Course, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    done, text, _ = run(capsys, "status", "--dir", tmp_path / "empty", "--course", course.root)
    assert done == 0 and "0 of 2 questions passed, 0 of 100 points" in text


def result(part: str, verdict: str) -> dict:
    return {"stage": "hw1", "questions": [{"id": "hw1/x", "parts": [{"id": part, "status": verdict}]}]}


def test_status_recalls_the_last_check_until_the_answer_changes_U031(course: Course, learner: Path) -> None:
    path = learner / "lib/util.py"
    edit(path, (TWICE, "    return 2 * a\n"))
    before = status.run(course, learner)
    assert [q.status for q in before.questions] == ["not_implemented", "unchecked"] and before.passed == 0
    status.record(learner, result("hw1/twice", "passed"), course)
    after = status.run(course, learner)
    assert after.passed == 1 and after.earned == 40 and after.questions[1].checked
    edit(path, ("return 2 * a", "raise RuntimeError"))
    assert status.run(course, learner).questions[1].status == "unchecked"
    assert status.run(course, learner).to_json()["passed"] == 0


def test_a_question_with_some_parts_right_has_some_points(course: Course, learner: Path) -> None:
    path = learner / "lib/core.py"
    edit(path, (ADD, "    return a + b\n"))
    status.record(learner, result("hw1/add", "passed"), course)
    sums = status.run(course, learner).questions[0]
    assert (sums.status, sums.earned, sums.points) == ("not_implemented", 30, 60)


def test_what_the_course_solved_is_not_the_learners(course: Course, tmp_path: Path) -> None:
    starter.make(course, "hw3", tmp_path / "late")
    found = status.run(course, tmp_path / "late")
    assert [q.status for q in found.questions] == ["given", "given", "given", "not_implemented"]
    assert found.to_json()["total"] == 1 and found.points == 100


def test_an_answer_like_the_courses_own_counts(course: Course, learner: Path) -> None:
    path = learner / "lib/util.py"
    edit(path, (TWICE, "    return a + a\n"))
    advance.run(course, learner, "hw2")
    status.record(learner, result("hw1/twice", "passed"), course)
    assert [q.status for q in status.run(course, learner).questions][:2] == ["not_implemented", "passed"]


def test_status_survives_a_damaged_record(course: Course, learner: Path) -> None:
    folder = learner / status.RESULTS
    folder.mkdir(parents=True)
    for text in ("{", "[]", '{"hw1/add": {"status": "passed"}}'):
        (folder / "hw1.json").write_text(text)
        assert status.run(course, learner).passed == 0


# ---- the doctor -----------------------------------------------------------------------------------------------------


def test_doctor_names_what_is_missing_and_the_next_step(
    capsys: pytest.CaptureFixture[str], learner: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    (learner / "lib/util.py").unlink()
    path = learner / "lib/core.py"
    edit(path, ("### END YOUR SOLUTION hw1/sub", ""))
    done, text, _ = run(capsys, "doctor", "--dir", learner, "--json")
    found = {finding["what"]: finding for finding in json.loads(text)["findings"]}
    assert done == 1 and found["Python"]["state"] == "ok"
    for what, seen in (("C++ compiler", "none found"), ("files", "lib/util.py"), ("marks", "lib/core.py:")):
        assert found[what]["state"] == "bad" and seen in found[what]["seen"] and found[what]["next"]


def test_doctor_of_any_folder_says_how_to_begin(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    _, text, _ = run(capsys, "doctor", "--dir", tmp_path)
    assert "no learner's tree" in text and "needle-course starter" in text


# ---- answers --------------------------------------------------------------------------------------------------------


def test_answers_are_what_differs_from_what_was_given(course: Course, learner: Path) -> None:
    given = answers.bodies_in({path: (learner / path).read_bytes() for path in ("lib/core.py", "lib/util.py")})
    assert given["hw1/add"] == ADD
    assert answers.collect(learner, {}).bodies == {}  # nothing is known of the start, and all is blank
