"""Wrong answers for the element-wise kernels, the same in C++ and in CUDA: other formulas in the reference's line."""

from __future__ import annotations

import re
from collections.abc import Iterator

# of any formula
SPOILED = ("1.01f * ({})", "-({})", "0 * ({})", "({}) + 1")

# {kernel: what people write instead}; b stands for the second operand, array or scalar
INSTEAD = {
    "mul": ("a + b", "a / b", "a * a", "a"),
    "div": ("b / a", "a * b", "1 / b", "a"),
    "maximum": ("a < b ? a : b", "a", "b", "a > b ? a : 0", "a + b"),
    "eq": ("a != b", "a >= b", "a <= b", "b"),
    "ge": ("a > b", "a <= b", "b > a", "a == b", "a - b"),
    "power": ("a * b", "powf(b, a)", "a * a", "expf(b * logf(a))", "a"),
    "log": ("log2f(a)", "log10f(a)", "log1pf(a)", "expf(a)"),
    "exp": ("exp2f(a)", "expm1f(a)", "1 + a", "logf(a)"),
    "tanh": ("sinhf(a) + coshf(a)", "atanf(a)", "a", "tanhf(2 * a)", "1 / (1 + expf(-a))"),
}
LINE = re.compile(r"(?P<head>NEEDLE_EWISE_(?P<kind>\w+)\((?P<name>\w+), +\"(?P<python>\w+)\", +)(?P<formula>.*)\);")


def elementwise(body: str) -> Iterator[tuple[str, str]]:
    """(name, body) of the wrong answers to a region that registers an element-wise kernel; none for another region."""
    line = LINE.search(body)
    if line is None:
        return
    other = "val" if line["kind"] == "SCALAR" else "b"
    instead = [re.sub(r"\bb\b", other, formula) for formula in INSTEAD[line["python"].partition("_")[2]]]
    for formula in [*(spoiled.format(line["formula"]) for spoiled in SPOILED), *instead]:
        yield formula, body.replace(line[0], f"{line['head']}{formula});")
