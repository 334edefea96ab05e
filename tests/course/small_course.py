"""A course of three stages in a few lines, so that a test of the tools takes no seconds and depends on no homework."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from needle_course import files, stages
from needle_course.stages import Course

STAGES = """
[files]
hw1 = ["lib/core.py", "lib/util.py", "tests/hw1/*.py", "notes.txt"]
hw2 = ["lib/more.py", "tests/hw2/*.py"]
hw3 = ["lib/last.py"]
never = ["secret.py"]

[stages.hw1]
title = "One"
backend = "np"
notebook = "hw/hw1/hw1.py"
tests = ["tests/hw1"]

[[stages.hw1.questions]]
id = "hw1/sums"
title = "Sums"
points = 60
select = "sums"
file = "lib/core.py"
test_file = "tests/hw1/test_core.py"
parts = [
  { id = "hw1/add", title = "add", tests = ["test_add"], items = 1 },
  { id = "hw1/sub", title = "sub", tests = ["test_sub"], items = 1 },
]

[[stages.hw1.questions]]
id = "hw1/twice"
title = "Twice"
points = 40
select = "twice"
file = "lib/util.py"
test_file = "tests/hw1/test_core.py"
parts = [{ id = "hw1/twice", title = "twice", tests = ["test_twice"], items = 1 }]

[stages.hw2]
title = "Two"
backend = "np"
notebook = "hw/hw2/hw2.py"
tests = ["tests/hw2"]

[[stages.hw2.questions]]
id = "hw2/products"
title = "mul"
select = "mul"
file = "lib/more.py"
test_file = "tests/hw2/test_more.py"
parts = [
  { id = "hw2/mul", title = "mul", tests = ["test_mul"], items = 1 },
  { id = "hw2/add", title = "add again", tests = ["test_add"], items = 1, file = "lib/core.py" },
]

[stages.hw3]
title = "Three"
backend = "np"
notebook = "hw/hw3/hw3.py"
tests = ["tests/hw3"]

[[stages.hw3.questions]]
id = "hw3/last"
title = "last"
select = "last"
file = "lib/last.py"
test_file = "tests/hw2/test_more.py"
parts = [{ id = "hw3/last", title = "last", tests = ["test_last"], items = 1 }]
"""

CORE = '''"""Sums."""

from __future__ import annotations

LIMIT = 10


def add(a, b):
    """a + b"""
    ### BEGIN YOUR SOLUTION hw1/add hw2/add
    total = a
    total += b
    return total
    ### END YOUR SOLUTION hw1/add hw2/add


def helper(a):
    """Given, and changed by the course from one release to the next."""
    first = a
    second = first
    return second


def sub(a, b):
    ### BEGIN YOUR SOLUTION hw1/sub
    difference = a - b
    return difference
    ### STARTER
    #     # think of add
    #     raise NotImplementedError("hw1/sub is not implemented yet")
    ### END YOUR SOLUTION hw1/sub


def negative(a):
    return -a


# >>> hw2
def prod(items):
    """Given from hw2 on."""
    product = 1
    for item in items:
        product *= item
    return product


# <<< hw2
'''

UTIL = """def twice(a):
    ### BEGIN YOUR SOLUTION hw1/twice
    return a + a
    ### END YOUR SOLUTION hw1/twice


def thrice(a):
    return 3 * a
"""

MORE = """def mul(a, b):
    ### BEGIN YOUR SOLUTION hw2/mul
    return a * b
    ### END YOUR SOLUTION hw2/mul
"""

LAST = """def last(a):
    ### BEGIN YOUR SOLUTION hw3/last
    return a[-1]
    ### END YOUR SOLUTION hw3/last
"""

FILES = {
    "hw/stages.toml": STAGES,
    "lib/core.py": CORE,
    "lib/util.py": UTIL,
    "lib/more.py": MORE,
    "lib/last.py": LAST,
    "tests/hw1/test_core.py": "def test_add():\n    pass\n",
    "tests/hw2/test_more.py": "def test_mul():\n    pass\n",
    "notes.txt": "Notes\nthat the course gives\nwith every stage\n",
    "secret.py": "ANSWER = 42\n",
}


# what stands in the blanks of a starter
ADD = '    raise NotImplementedError("hw1/add is not implemented yet")\n'
SUB = '    # think of add\n    raise NotImplementedError("hw1/sub is not implemented yet")\n'
TWICE = '    raise NotImplementedError("hw1/twice is not implemented yet")\n'


def put(folder: Path, contents: Mapping[str, str | bytes]) -> Path:
    """Write files {path below the folder: content}, and the folders that they need; returns the folder."""
    for path, content in contents.items():
        files.write_whole(folder / path, content.encode() if isinstance(content, str) else content)
    return folder


def write(folder: Path, changes: Mapping[str, str] | None = None) -> Course:
    """Write the course's checkout, with other texts for the files in `changes`, into a folder."""
    return stages.load(put(folder, {**FILES, **(changes or {})}))


def edit(path: Path, *changes: tuple[str, str]) -> str:
    """Replace pieces of a file, each of which must be there once; returns the new text."""
    text = path.read_bytes().decode()
    for old, new in changes:
        assert text.count(old) == 1, (old, text)
        text = text.replace(old, new)
    path.write_bytes(text.encode())
    return text
