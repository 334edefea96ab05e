"""Wrong answers made from right ones: small changes to the syntax tree of a region in Python.

The changes are mistakes that people make: operands swapped, a factor or a term dropped, a sign, `<` for `<=`, off by
one, a mean for a sum, a keyword such as keepdims forgotten, a condition that always or never holds, not in place,
1 % off.
What only words an error message is left alone, and so are the conditions that lead there.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass

OTHER_OPERATOR: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
OTHER_NAME = {
    "sum": "mean",
    "mean": "sum",
    "max": "min",
    "min": "max",
    "ones": "zeros",
    "zeros": "ones",
    "ones_like": "zeros_like",
    "zeros_like": "ones_like",
    "rand": "randn",
    "randn": "rand",
    "fan_in": "fan_out",
    "fan_out": "fan_in",
    "append": "remove",
    "exp": "log",
    "log": "exp",
    "tanh": "sigmoid",
    "maximum": "minimum",
    "reversed": "list",
    "Tanh": "Sigmoid",
}
KEPT_WITHOUT = ("sum", "reshape", "transpose", "broadcast_to", "exp", "log", "sqrt", "flip", "dilate", "astype", "copy",
                "detach", "permute", "compact", "swapaxes", "mean", "abs", "negate", "pad", "reversed", "sum_to_shape",
                "unbroadcast", "relu")  # fmt: skip
WHERE = ("device", "dtype")  # keywords that say no more than the defaults in most homeworks
SYMMETRIC = ("maximum", "minimum", "add", "multiply", "equal", "isinstance", "getattr", "hasattr")
PERCENT = 1.01


@dataclass(frozen=True)
class Mutant:
    """A wrong answer of a part: what was changed, and the file with the change in it.

    Or, because whole files take long: which of its statements to exchange for which.
    """

    part: str
    name: str
    file: str
    source: tuple[int, ast.stmt] | str


def mutants(part: str, file: str, text: str, first: int, last: int) -> Iterator[Mutant]:
    """The mutants of the region in lines first to last of a file's text."""
    module = ast.parse(text)
    paths = list(_paths(module, first, last))
    own = {_at(module, path).id for path in paths if _is_assigned_name(_at(module, path), _at(module, path[:-1]))}
    for path in paths:
        old = _at(module, path)
        for change in _changes(old):
            if change is not_in_place and old.target.id in own:
                continue  # nobody else has this array
            number = path[0][1]
            changed = ast.Module([deepcopy(module.body[number])], [])
            inside = (("body", 0), *path[1:])
            new = change(_at(changed, inside))
            _put(changed, inside, new)
            ast.fix_missing_locations(changed)
            name = f"line {getattr(old, 'lineno', first) - first + 1}: {_short(old)} → {_short(new)}"
            yield Mutant(part, name, file, (number, changed.body[0]))


def _is_assigned_name(node: ast.AST, parent: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and not isinstance(parent, ast.AugAssign)


Path = tuple[tuple[str, int | None], ...]


def _paths(node: ast.AST, first: int, last: int, path: Path = ()) -> Iterator[Path]:
    """Where the nodes inside the lines are, outermost first."""
    if isinstance(node, ast.Raise) or _is_guard(node) or (isinstance(node, ast.Expr) and _is_text(node.value)):
        return
    if path and first <= getattr(node, "lineno", 0) and getattr(node, "end_lineno", last + 1) <= last:
        yield path
    for field, value in ast.iter_fields(node):
        if field in ("args", "returns", "decorator_list", "annotation") and not isinstance(node, ast.Call):
            continue
        for place, child in _children(field, value):
            yield from _paths(child, first, last, (*path, place))


def _children(field: str, value: object) -> Iterator[tuple[tuple[str, int | None], ast.AST]]:
    if isinstance(value, ast.AST):
        yield (field, None), value
    elif isinstance(value, list):
        yield from (((field, i), child) for i, child in enumerate(value) if isinstance(child, ast.AST))


def _is_guard(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and all(isinstance(step, ast.Raise) for step in node.body)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _at(node: ast.AST, path: Path) -> ast.AST:
    for field, number in path:
        value = getattr(node, field)
        node = value if number is None else value[number]
    return node


def _put(module: ast.AST, path: Path, new: ast.AST) -> None:
    parent, (field, number) = _at(module, path[:-1]), path[-1]
    if number is None:
        setattr(parent, field, new)
    else:
        getattr(parent, field)[number] = new


def _short(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())[:90]


# ---- changes --------------------------------------------------------------------------------------------------------

Change = Callable[[ast.AST], ast.AST]


def _changes(node: ast.AST) -> Iterator[Change]:
    """What can be done to this one node; each takes a copy of it, and may change it."""
    for kind, changes in CHANGES.items():
        if isinstance(node, kind):
            yield from changes(node)


def _binary(node: ast.BinOp) -> Iterator[Change]:
    if type(node.op) in OTHER_OPERATOR:
        yield lambda n: ast.BinOp(n.left, OTHER_OPERATOR[type(n.op)](), n.right)
    if isinstance(node.op, (ast.Sub, ast.Div, ast.MatMult, ast.Pow)):
        yield lambda n: ast.BinOp(n.right, n.op, n.left)
    if not isinstance(node.op, ast.MatMult):  # whose operands alone have other shapes
        yield lambda n: n.left
    if isinstance(node.op, (ast.Mult, ast.Add)):
        yield lambda n: n.right


def _unary(node: ast.UnaryOp) -> Iterator[Change]:
    yield lambda n: n.operand


def _comparison(node: ast.Compare) -> Iterator[Change]:
    for i, op in enumerate(node.ops):
        if type(op) in OTHER_OPERATOR:
            yield lambda n, i=i, op=op: _with_op(n, i, OTHER_OPERATOR[type(op)]())
    if len(node.ops) == 1 and isinstance(node.ops[0], (ast.Lt, ast.LtE, ast.Gt, ast.GtE)):
        yield lambda n: ast.Compare(n.comparators[0], n.ops, [n.left])


def _with_op(node: ast.Compare, number: int, op: ast.cmpop) -> ast.Compare:
    node.ops[number] = op
    return node


def _boolean(node: ast.BoolOp) -> Iterator[Change]:
    yield lambda n: ast.BoolOp(OTHER_OPERATOR[type(n.op)](), n.values)
    yield lambda n: n.values[0]


def _constant(node: ast.Constant) -> Iterator[Change]:
    value = node.value
    if isinstance(value, bool):
        yield lambda n: ast.Constant(not n.value)
    elif isinstance(value, int):
        yield lambda n: ast.Constant(n.value + 1)
        if value > 0:
            yield lambda n: ast.Constant(n.value - 1)
    elif isinstance(value, float):
        yield lambda n: ast.Constant(n.value * PERCENT if n.value else 0.01)


def _call(node: ast.Call) -> Iterator[Change]:
    for i, keyword in enumerate(node.keywords):
        if keyword.arg not in (None, *WHERE):
            yield lambda n, i=i: ast.Call(n.func, n.args, n.keywords[:i] + n.keywords[i + 1 :])
    name = _name_of(node.func)
    if len(node.args) == 2 and name not in SYMMETRIC and not any(isinstance(arg, ast.Starred) for arg in node.args):
        yield lambda n: ast.Call(n.func, n.args[::-1], n.keywords)
    if name in OTHER_NAME:
        yield lambda n: ast.Call(_renamed(n.func, OTHER_NAME[name]), n.args, n.keywords)
    if name in KEPT_WITHOUT:
        if node.args:
            yield lambda n: n.args[0]
        if isinstance(node.func, ast.Attribute) and not _is_module(node.func.value):
            yield lambda n: n.func.value


def _name_of(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _is_module(node: ast.AST) -> bool:
    return _name_of(node) in ("np", "array_api", "ops", "init", "nn", "ndl", "struct", "math", "self", "random")


def _renamed(node: ast.AST, name: str) -> ast.AST:
    return ast.Attribute(node.value, name, node.ctx) if isinstance(node, ast.Attribute) else ast.Name(name, ast.Load())


def _attribute(node: ast.Attribute) -> Iterator[Change]:
    if isinstance(node.ctx, ast.Load) and node.attr == "T":
        yield lambda n: n.value


def _returned(node: ast.Return) -> Iterator[Change]:
    if node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None):
        return
    yield lambda n: ast.Return(ast.Constant(None))
    if isinstance(node.value, ast.Tuple):
        if len(node.value.elts) == 2:
            yield lambda n: ast.Return(ast.Tuple(n.value.elts[::-1], ast.Load()))
        for i in range(len(node.value.elts)):
            for spoil in SPOILED:
                yield lambda n, i=i, spoil=spoil: _with_element(n, i, spoil)
    else:
        for spoil in SPOILED:
            yield lambda n, spoil=spoil: ast.Return(spoil(n.value))


SPOILED = (
    lambda value: ast.BinOp(value, ast.Mult(), ast.Constant(PERCENT)),
    lambda value: ast.BinOp(value, ast.Mult(), ast.Constant(0)),
    lambda value: ast.UnaryOp(ast.USub(), value),
    lambda value: ast.BinOp(value, ast.Add(), ast.Constant(1)),
)


def _with_element(node: ast.Return, number: int, spoil: Callable) -> ast.Return:
    node.value.elts[number] = spoil(node.value.elts[number])
    return node


def not_in_place(node: ast.AugAssign) -> ast.Assign:
    return ast.Assign([node.target], ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value))


def _assigned_in_place(node: ast.AugAssign) -> Iterator[Change]:
    if isinstance(node.target, ast.Name):
        yield not_in_place
    yield lambda n: ast.Assign([n.target], n.value)
    if type(node.op) in OTHER_OPERATOR:
        yield lambda n: ast.AugAssign(n.target, OTHER_OPERATOR[type(n.op)](), n.value)
    yield lambda n: ast.Pass()


def _statement(node: ast.Expr) -> Iterator[Change]:
    yield lambda n: ast.Pass()


def _assigned(node: ast.Assign) -> Iterator[Change]:
    if not isinstance(node.value, (ast.Tuple, ast.Constant)):
        yield lambda n: ast.Assign(n.targets, ast.BinOp(n.value, ast.Mult(), ast.Constant(PERCENT)))
    if isinstance(node.targets[0], (ast.Attribute, ast.Subscript)):
        yield lambda n: ast.Pass()


def _choice(node: ast.IfExp) -> Iterator[Change]:
    yield lambda n: n.body
    yield lambda n: n.orelse


def _condition(node: ast.If | ast.While) -> Iterator[Change]:
    yield lambda n: type(n)(ast.Constant(False), n.body, n.orelse)
    if isinstance(node, ast.If):
        yield lambda n: type(n)(ast.Constant(True), n.body, n.orelse)


def _leaving(node: ast.Break | ast.Continue) -> Iterator[Change]:
    yield lambda n: ast.Pass()


def _slice(node: ast.Slice) -> Iterator[Change]:
    for field in ("lower", "upper", "step"):
        if getattr(node, field) is not None:
            yield lambda n, field=field: _without(n, field)


def _without(node: ast.Slice, field: str) -> ast.Slice:
    setattr(node, field, None)
    return node


def _generated(node: ast.comprehension) -> Iterator[Change]:
    if node.ifs:
        yield lambda n: ast.comprehension(n.target, n.iter, [], n.is_async)


CHANGES: dict[type | tuple[type, ...], Callable] = {
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.Compare: _comparison,
    ast.BoolOp: _boolean,
    ast.Constant: _constant,
    ast.Call: _call,
    ast.Attribute: _attribute,
    ast.Return: _returned,
    ast.AugAssign: _assigned_in_place,
    ast.Assign: _assigned,
    ast.Expr: _statement,
    ast.IfExp: _choice,
    (ast.If, ast.While): _condition,
    (ast.Break, ast.Continue): _leaving,
    ast.Slice: _slice,
    ast.comprehension: _generated,
}
