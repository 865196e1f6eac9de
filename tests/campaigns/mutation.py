"""The mutants of a Python file: every single small change that a test suite should notice."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
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
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.MatMult: ast.Add,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
RENAMED = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "argmin": "argmax",
    "argmax": "argmin",
    "minimum": "maximum",
    "maximum": "minimum",
    "issubset": "issuperset",
    "issuperset": "issubset",
}
"""Functions and methods that are put in each other's place."""

SKIPPED = {"decorator_list", "annotation", "returns", "type_comment"}
"""Fields of the syntax tree that say nothing about what is computed."""

CONTEXT = 48
"""Characters of the line that a key shows before and after the change."""


@dataclass(frozen=True)
class Mutant:
    """
    One changed file.

    ``key`` names the change by function and source text, not by line: it stays the same while other lines change.
    ``inside`` tells whether it is inside a function, so that nothing but that ``function`` differs.
    """

    key: str
    function: str
    line: int
    inside: bool
    source: str


def mutants(source: str) -> list[Mutant]:
    """List the mutants of a file, in the order of its lines; all are written as ``ast.unparse`` writes."""
    tree = ast.parse(source)
    plain = ast.unparse(tree).splitlines()
    found: list[Mutant] = []
    seen: Counter[str] = Counter()
    for function, inside, line, swap, restore in _changes(tree, "", inside=False):
        swap()
        text = ast.unparse(tree)
        restore()
        key = f"{function or '(module)'}: {_difference(plain, text.splitlines())}"
        seen[key] += 1
        found.append(Mutant(key if seen[key] == 1 else f"{key} #{seen[key]}", function, line, inside, text))
    return found


Change = tuple[str, bool, int, Callable[[], None], Callable[[], None]]
"""Name of the function or class, whether it is inside a function, line; what makes the change and takes it back."""


def _changes(node: ast.AST, function: str, *, inside: bool) -> Iterator[Change]:
    """Yield every change below ``node``."""
    for name, value in ast.iter_fields(node):
        if name in SKIPPED or _says_nothing(node):
            continue
        for i, child in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(child, ast.AST):
                continue

            def put(new: ast.AST, name: str = name, value: Any = value, i: int = i) -> None:
                if isinstance(value, list):
                    value[i] = new
                else:
                    setattr(node, name, new)

            line = getattr(child, "lineno", getattr(node, "lineno", 0))
            for new in _replacements(node, name, child):
                yield function, inside, line, partial(put, new), partial(put, child)
            below, deep = function, inside
            if isinstance(child, ast.FunctionDef | ast.ClassDef) and not inside:  # a function in it is a part of it
                below = f"{function}.{child.name}" if function else child.name
                deep = isinstance(child, ast.FunctionDef)
            yield from _changes(child, below, inside=deep)


def _says_nothing(node: ast.AST) -> bool:
    """Docstrings, types, ``__all__``, and ``strict`` of ``zip``, which guards against what cannot happen."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Literal":
        return True
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "TypeVar":
        return True
    if isinstance(node, ast.keyword) and node.arg in ("strict", "dtype"):
        return True
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return True
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"


def _replacements(parent: ast.AST, field: str, node: ast.AST) -> Iterator[ast.AST]:
    """Yield what stands in the place of ``node`` in each mutant of it alone."""
    if type(node) in SWAPPED:
        yield SWAPPED[type(node)]()
    elif isinstance(node, ast.Constant):
        yield from _other_constants(parent, node.value)
    elif isinstance(node, ast.UnaryOp) and not isinstance(node.operand, ast.Constant):
        yield node.operand
    elif isinstance(node, ast.Name | ast.Attribute):
        attribute = "id" if isinstance(node, ast.Name) else "attr"
        other = RENAMED.get(getattr(node, attribute))
        if other is not None and field in ("func", "value"):
            yield type(node)(**{**{f: getattr(node, f) for f in node._fields}, attribute: other})
    elif isinstance(node, ast.Call) and ast.unparse(node.func) == "sorted":
        yield ast.Call(ast.Name("list"), node.args[:1], [])
    elif isinstance(node, ast.Break):
        yield ast.Continue()
    elif isinstance(node, ast.Continue):
        yield ast.Break()
        yield ast.Pass()
    elif isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        yield ast.Return(ast.Constant(None))
    elif _is_removable(node):
        yield ast.Pass()
    if field in ("test", "ifs") and not isinstance(node, ast.Constant):
        yield ast.Constant(False)
        if not isinstance(parent, ast.While):
            yield ast.Constant(True)


def _other_constants(parent: ast.AST, value: object) -> Iterator[ast.Constant]:
    """A number is one more, a truth the other one, a word another word; prose stays: its readers are people."""
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int | float):
        yield ast.Constant(value + 1)
    elif isinstance(value, str) and not isinstance(parent, ast.JoinedStr) and not any(c.isspace() for c in value):
        yield ast.Constant(value + "_")


def _is_removable(node: ast.AST) -> bool:
    """Whether a statement does something that the names after it do not need to exist."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call)
    if isinstance(node, ast.Assign):
        return all(isinstance(target, ast.Subscript | ast.Attribute) for target in node.targets)
    return isinstance(node, ast.AugAssign | ast.Delete | ast.Raise)


def _difference(before: list[str], after: list[str]) -> str:
    """Show the first line that differs, as ``text [old => new] text``."""
    lines = next(((a, b) for a, b in zip(before, after, strict=False) if a != b), (before[-1], ""))
    old, new = (re.findall(r"\w+|[<>=!*/+&|-]+|\s+|.", line.strip()) for line in lines)
    start = _alike(old, new)
    end = min(_alike(old[::-1], new[::-1]), len(old) - start, len(new) - start)
    head, tail = "".join(old[:start]), "".join(old[len(old) - end :])
    head = head if len(head) <= CONTEXT else f"...{head[-CONTEXT:]}"
    tail = tail if len(tail) <= CONTEXT else f"{tail[:CONTEXT]}..."
    return f"{head}[{''.join(old[start : len(old) - end])} => {''.join(new[start : len(new) - end])}]{tail}"


def _alike(one: list[str], other: list[str]) -> int:
    """Count the words at the beginning that are equal."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
