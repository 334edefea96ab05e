"""Marks: what regions.py reads, what it refuses, and that nothing but what was asked for changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from needle_course import regions
from needle_course.errors import UserError

PYTHON = '''\
import math


def area(r):
    """Of a circle."""
    ### BEGIN YOUR SOLUTION hw1/area hw4/nd_area
    square = r * r

    return math.pi * square
    ### END YOUR SOLUTION hw1/area hw4/nd_area


# >>> hw4
def volume(r):
    ### BEGIN YOUR SOLUTION hw4/volume
    return 4 / 3 * r * area(r)
    ### STARTER
    #     r = float(r)
    #     raise NotImplementedError("hw4/volume is not implemented yet")
    ### END YOUR SOLUTION hw4/volume


# <<< hw4
'''
CPP = """\
float Twice(float x) {
  /// BEGIN SOLUTION hw3/twice
  return 2 * x;
  /// END SOLUTION hw3/twice
}
"""


def region(body: str, comment: str = "#", tag: str = "hw1/a") -> regions.Region:
    mark = comment * 3 if comment == "#" else "///"
    text = f"{mark} BEGIN YOUR SOLUTION {tag}\n{body}{mark} END YOUR SOLUTION {tag}\n"
    return regions.regions(text)[tag]


# ---- reading --------------------------------------------------------------------------------------------------------


def test_regions_have_tags_body_and_place():
    found = regions.regions(PYTHON, "shapes.py")
    area = found["hw1/area"]
    assert list(found) == ["hw1/area", "hw4/nd_area", "hw4/volume"] and found["hw4/nd_area"] is area
    assert (area.path, area.line, area.end_line, area.indent, area.comment) == ("shapes.py", 6, 10, "    ", "#")
    assert area.body == "    square = r * r\n\n    return math.pi * square\n" and area.starter is None
    assert found["hw4/volume"].starter.splitlines()[0] == "    r = float(r)"


@pytest.mark.parametrize(
    "begin, end",
    [
        ("### BEGIN YOUR SOLUTION hw1/a", "### END YOUR SOLUTION hw1/a"),
        ("### BEGIN YOUR CODE hw1/a", "### END YOUR CODE"),
        ("## BEGIN SOLUTION hw1/a", "##END SOLUTION"),
        ("  #### BEGIN YOUR SOLUTION: hw1/a which is short", "### END YOUR SOLUTION (the end)"),
        ("/// BEGIN SOLUTION hw1/a", "/// END SOLUTION"),
        ("\t/// BEGIN YOUR CODE hw1/a \r", "\t/// END YOUR CODE\r"),
    ],
)
def test_markers_of_public_material_are_read(begin, end):
    text = f"{begin}\nx\n{end}\n"
    (found,) = regions.all_regions(text)
    assert found.tags == ("hw1/a",) and found.body == "x\n"
    assert regions.render(regions.parse(text)) == text


def test_a_region_without_a_tag_is_read_but_not_taken():
    text = "### BEGIN YOUR SOLUTION\nx\n### END YOUR SOLUTION\n"
    assert regions.all_regions(text)[0].tags == ()
    with pytest.raises(UserError, match=r"^a\.py:1: BEGIN without a tag"):
        regions.regions(text, "a.py")


@pytest.mark.parametrize(
    "line", ["# BEGIN YOUR SOLUTION", "### BEGINNING hw1/a", "### STARTER", "# >>> x = 3", "#>>>hw4"]
)
def test_lines_that_only_look_like_marks_are_text(line):
    assert regions.parse(line + "\n") == [regions.Text(line + "\n")]


@pytest.mark.parametrize(
    "text, place, words",
    [
        ("### BEGIN YOUR SOLUTION hw1/a\n### BEGIN YOUR SOLUTION hw1/b\n", ":2:", "opened at :1"),
        ("x\n### BEGIN YOUR SOLUTION hw1/a\nx\n", ":2:", "hw1/a is not closed"),
        ("### END YOUR SOLUTION hw1/a\n", ":1:", "not opened"),
        ("### BEGIN YOUR SOLUTION hw1/a\n### END YOUR SOLUTION hw1/b\n", ":2:", "hw1/b"),
        ("### BEGIN YOUR SOLUTION hw1/A-b\n### END YOUR SOLUTION\n", ":1:", "'hw1/A-b' is no tag"),
        ("### BEGIN YOUR SOLUTION hw1/a\n# >>> hw4\n### END YOUR SOLUTION\n", ":2:", "inside the region"),
        ("# >>> hw4\nx\n", ":1:", "not closed"),
        ("# <<< hw4\n", ":1:", "not opened"),
        ("# >>> hw4\n# >>> hw3\n# <<< hw4\n# <<< hw3\n", ":3:", "opened at :2"),
    ],
)
def test_what_does_not_add_up_is_refused_with_its_line(text, place, words):
    with pytest.raises(UserError) as error:
        regions.parse(text, "folder/a.py")
    assert str(error.value).startswith("folder/a.py" + place) and words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_tag_with_two_regions_is_refused():
    text = "### BEGIN YOUR SOLUTION hw1/a\n### END YOUR SOLUTION\n" * 2
    with pytest.raises(UserError, match=r"^a\.py:3: hw1/a has a region already, at :1"):
        regions.regions(text, "a.py")


def test_what_is_no_utf8_is_refused():
    with pytest.raises(UserError, match=r"^a\.py: byte 1 is not UTF-8"):
        regions.decode(b"a\xff", "a.py")


# ---- nothing else changes -------------------------------------------------------------------------------------------

LINES = st.sampled_from(
    [
        *("x = 1", "", "    return x", "\x0c", "# >>> hw4", "# <<< hw4", "### BEGIN YOUR SOLUTION hw1/a"),
        *("### END YOUR SOLUTION hw1/a", "### STARTER", "# y", "/// BEGIN SOLUTION hw1/b", "/// END SOLUTION"),
    ]
)
TEXTS = st.builds(
    lambda bom, pairs, last: bom + "".join(line + end for line, end in pairs) + last,
    st.sampled_from(["", "\ufeff"]),
    st.lists(st.tuples(LINES, st.sampled_from(["\n", "\r\n"])), max_size=12),
    st.sampled_from(["", "x", "### END YOUR SOLUTION"]),
)


@given(TEXTS)
def test_a_text_that_parses_renders_to_itself(text):
    try:
        pieces = regions.parse(text)
    except UserError:
        return
    assert regions.render(pieces) == text


@given(TEXTS, st.text(st.sampled_from("ab \n"), max_size=9))
def test_pouring_changes_the_named_region_alone(text, body):
    try:
        before = regions.regions(text)
    except UserError:
        return
    poured = regions.pour(text, "a.py", {"hw1/a": body})
    if "hw1/a" not in before:
        assert poured == text
        return
    after = regions.regions(poured)
    assert after["hw1/a"].body == (body if not body or body.endswith("\n") else body + "\n")
    assert regions.pour(poured, "a.py", {"hw1/a": before["hw1/a"].body}).replace("\r", "") == text.replace("\r", "")


def test_line_ends_byte_order_mark_and_a_missing_last_newline_are_kept():
    text = "\ufeff### BEGIN YOUR SOLUTION hw1/a\r\nold\r\n### END YOUR SOLUTION hw1/a"
    poured = regions.pour(text, "a.py", {"hw1/a": "new\nlines"})
    assert poured == "\ufeff### BEGIN YOUR SOLUTION hw1/a\r\nnew\r\nlines\r\n### END YOUR SOLUTION hw1/a"
    assert regions.regions(poured)["hw1/a"].body == "new\nlines\n"


# ---- blanks ---------------------------------------------------------------------------------------------------------


def test_a_blank_raises_in_the_name_of_the_tag_that_is_asked():
    blank = regions.blank(PYTHON, "a.py", {"hw4/nd_area"})
    wanted = '    raise NotImplementedError("hw4/nd_area is not implemented yet")\n'
    assert regions.regions(blank)["hw1/area"].body == wanted
    names: dict = {}
    exec(blank, names)
    with pytest.raises(NotImplementedError, match=r"^hw4/nd_area is not implemented yet$"):
        names["area"](1)


def test_a_blank_holds_the_starter_text_and_no_text_its_comments():
    blank = regions.blank(PYTHON, "a.py", {"hw4/volume"})
    assert "STARTER" not in blank and "4 / 3" not in blank and "math.pi * square" in blank
    assert regions.regions(blank)["hw4/volume"].body.startswith("    r = float(r)\n    raise")
    assert "STARTER" not in regions.blank(PYTHON, "a.py", set())


def test_a_blank_in_cpp_throws():
    assert '  throw NotImplemented("hw3/twice");\n' in regions.blank(CPP, "a.cc", {"hw3/twice"})


@pytest.mark.parametrize(
    "body, comment",
    [
        ('raise NotImplementedError("hw1/a is not implemented yet")\n', "#"),
        ('# a thought\n\nraise NotImplementedError("hw1/a is not implemented yet")\n', "#"),
        (
            'raise NotImplementedError("…")\n\n\ndef f(x):\n    """It helps."""\n    raise NotImplementedError\n',
            "#",
        ),
        ("", "#"),
        ('throw NotImplemented("hw1/a");\n', "/"),
        ('template <typename T>\nvoid F(int a,\n       T b) {\n  throw needle::NotImplemented("hw1/a");\n}\n', "/"),
        ("int G(int i) {\n  return i;  // to be written\n}\nvoid F() {\n  throw NotImplemented(0);\n}\n", "/"),
        ('NEEDLE_EWISE_UNARY(Log,  "ewise_log",  Blank("hw3/ewise_log"));\n', "/"),
        ('PyErr_SetString(PyExc_NotImplementedError, "hw0/x");\nthrow py::error_already_set();\n', "/"),
    ],
)
def test_what_a_starter_holds_is_blank(body, comment):
    assert regions.is_blank(region(body, comment))


@pytest.mark.parametrize(
    "body, comment",
    [
        ("return a @ b\n", "#"),
        ('return a\nraise NotImplementedError("hw1/a is not implemented yet")\n', "#"),
        ("def helper(x):\n    return x\n", "#"),
        ("for (int i = 0; i < n; i++) {\n  throw NotImplemented(0);\n}\n", "/"),
        ('NEEDLE_EWISE_UNARY(Log,  "ewise_log",  std::log(a));\n', "/"),
    ],
)
def test_what_somebody_wrote_is_not_blank(body, comment):
    assert not regions.is_blank(region(body, comment))


# ---- blocks ---------------------------------------------------------------------------------------------------------


def test_a_block_is_there_from_its_stage_on_without_its_marks():
    early, late = (regions.without_blocks(PYTHON, "a.py", stages) for stages in (["hw1"], ["hw1", "hw4"]))
    assert "volume" not in early and early.endswith("hw4/nd_area\n")
    assert "volume" in late and ">>>" not in late and "<<<" not in late and late.endswith("hw4/volume\n")


@pytest.mark.parametrize(
    "text, without, with_",
    [
        ("a\n\n\n# >>> s\nb\n\n\n# <<< s\nc\n", "a\n\n\nc\n", "a\n\n\nb\n\n\nc\n"),
        ("a\n\n# >>> s\nb\n\n# <<< s\n\nc\n", "a\n\nc\n", "a\n\nb\n\nc\n"),
        ("a\n# >>> s\nb\n# <<< s\n\n\nc\n", "a\n\n\nc\n", "a\nb\n\n\nc\n"),
        ("a\n\n\n# >>> s\nb\n\n\n# <<< s\n", "a\n", "a\n\n\nb\n"),
        ("[\n    # >>> s\n    b,\n    # <<< s\n]\n", "[\n]\n", "[\n    b,\n]\n"),
        ("a\n\n# >>> s\n# isort: split\nimport b\n\n# <<< s\nc\n", "a\n\nc\n", "a\n\nimport b\n\nc\n"),
        ("a\r\n\r\n# >>> s\r\nb\r\n\r\n# <<< s\r\nc", "a\r\n\r\nc", "a\r\n\r\nb\r\n\r\nc"),
    ],
)
def test_blank_lines_around_a_block_are_as_many_as_they_would_be_without_it(text, without, with_):
    assert regions.without_blocks(text, "a.py", []) == without
    assert regions.without_blocks(text, "a.py", ["s"]) == with_


def test_blocks_may_stand_in_blocks_and_never_is_in_no_starter():
    text = "// >>> hw1\na\n// >>> never\nb\n// <<< never\n// >>> hw2\nc\n// <<< hw2\n// <<< hw1\n"
    assert regions.without_blocks(text, "a.cc", ["hw1"]) == "a\n"
    assert regions.without_blocks(text, "a.cc", ["hw1", "hw2"]) == "a\nc\n"
    assert regions.without_blocks(text, "a.cc", ["hw2"]) == ""
    assert regions.stages_of_blocks(text) == [("hw1", 1), ("never", 3), ("hw2", 6)]
