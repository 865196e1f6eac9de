"""
Selectors of devices: the part of CEL that compares what a device states.

CEL is written as Python is but for the signs of ``and``, ``or`` and ``not``, so Python's parser reads it; nothing runs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from operator import ge, gt, le, lt
from typing import Any

from placeopt.importers.kubernetes.resources import nano

Facts = Mapping[str, object]
"""``driver``, and ``attributes`` and ``capacity`` by domain and name."""
MAX_CHARACTERS = 2000
_SIGN = re.compile(r"""("[^"]*"|'[^']*')|&&|\|\||!(?!=)|[#\\]""")
_PYTHON = {"&&": " and ", "||": " or ", "!": "~"}
_UNREAD = ast.Constant(None)


def _same(one: object, other: object) -> bool:
    return type(one) is type(other) and one == other


_COMPARED: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: lt,
    ast.LtE: le,
    ast.Gt: gt,
    ast.GtE: ge,
    ast.Eq: _same,
    ast.NotEq: lambda one, other: not _same(one, other),
    ast.In: lambda one, some: any(_same(one, other) for other in some),
}
_METHODS: Mapping[str, Callable[..., object]] = {
    "compareTo": lambda text, other: nano(text) - other,
    "contains": str.__contains__,
    "endsWith": str.endswith,
    "isGreaterThan": lambda text, other: nano(text) > other,
    "isLessThan": lambda text, other: nano(text) < other,
    "lowerAscii": str.lower,
    "startsWith": str.startswith,
}


def is_met(expressions: Iterable[str], facts: Facts) -> bool | None:
    """Return whether a device meets all expressions, and lacks no fact that they name; None if that is not known."""
    met: list[bool | None] = []
    for text in expressions:
        try:
            met.append(_truth(_parsed(text), facts))
        except KeyError:
            met.append(False)
        except (ValueError, TypeError, RecursionError):
            met.append(None)
    return False if False in met else None if None in met else True


@lru_cache(1024)
def _parsed(text: str) -> ast.expr:
    words = _SIGN.sub(lambda found: found[1] or _PYTHON.get(found[0], "?"), text)
    try:
        return ast.parse(f"({words})", mode="eval").body if len(text) <= MAX_CHARACTERS else _UNREAD
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return _UNREAD


def _truth(node: ast.expr, facts: Facts) -> bool:
    value = _value(node, facts)
    if not isinstance(value, bool):
        raise ValueError("no condition")
    return value


def _value(node: ast.expr, facts: Facts) -> Any:
    """Return what an expression is; raises KeyError for a fact that is not there, ValueError for what is not read."""
    match node:
        case ast.Constant(value=str() | int() as constant):
            return constant
        case ast.Name(id="true" | "false" as word):
            return word == "true"
        case ast.List(elts=elements):
            return [_value(one, facts) for one in elements]
        case ast.Attribute(value=ast.Name(id="device"), attr="driver"):
            return facts["driver"]
        case ast.Attribute(
            value=ast.Subscript(value=ast.Attribute() as kind, slice=ast.Constant(value=str() as domain)), attr=name
        ):
            if ast.unparse(kind) in ("device.attributes", "device.capacity"):
                return facts[f"{kind.attr} {domain}/{name}"]
        case ast.Call(func=ast.Name(id="quantity"), args=[one]):
            return nano(_value(one, facts))
        case ast.Call(func=ast.Attribute(value=of, attr=name), args=arguments) if name in _METHODS:
            return _METHODS[name](*(_value(one, facts) for one in (of, *arguments)))
        case ast.Compare(left=left, ops=[sign], comparators=[right]) if type(sign) in _COMPARED:
            return _COMPARED[type(sign)](_value(left, facts), _value(right, facts))
        case ast.UnaryOp(op=ast.Invert(), operand=one):
            return not _truth(one, facts)
        case ast.BoolOp(op=ast.And(), values=values):
            return all(_truth(one, facts) for one in values)
        case ast.BoolOp(values=values):
            with suppress(KeyError):  # another one may hold
                return any(_truth(one, facts) for one in values)
    raise ValueError("an expression that is not read")
