"""
Docstrings of the public names are complete: summary, parameters, returns, raises (numpydoc).

Public are the names of ``placeopt.__all__``, every name that a Python block of README.md or docs/*.md imports from
placeopt, and the public methods of these classes. Ruff (rules D, convention numpy) checks the form of all docstrings;
this test checks that sections are there and name what the signature has. Of the classes in ``TOOLBOX``, with which new
terms, scores and stages are written, only the summaries are checked: their methods are one-liners.
"""

import ast
import enum
import importlib
import inspect
import re
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel

import placeopt

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
ENTRY = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: ?:.*)?$", re.MULTILINE)
SAME = re.compile(r"as `(?:[\w.]+\.)?(\w+)` does\.$")
"""A function that says no more than that has the sections of another public one."""
TOOLBOX = {"Candidates", "Cost", "ModelBuilder", "Problem", "State", "SolveContext", "GreedyRule", "Variables"}


def public_objects() -> dict[str, Any]:
    """Return the public classes and functions by their qualified names; constants and aliases have no docstring."""
    names = {("placeopt", name) for name in placeopt.__all__}
    for page in PAGES:
        for block in PYTHON.findall(page.read_text(encoding="utf-8")):
            for node in ast.walk(ast.parse(block)):
                if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "placeopt":
                    names |= {(node.module or "", alias.name) for alias in node.names}
    things = [getattr(importlib.import_module(module), name, None) for module, name in names]
    return {
        f"{one.__module__}.{one.__qualname__}": one for one in things if inspect.isroutine(one) or inspect.isclass(one)
    }


def public_callables() -> dict[str, Callable[..., Any]]:
    """Return the public functions, and the public methods and the constructor of every public class but records."""
    found = {}
    for name, thing in PUBLIC.items():
        if not inspect.isclass(thing):
            same = SAME.search(inspect.getdoc(thing) or "")
            if same is None or not any(other.endswith(f".{same[1]}") for other in PUBLIC):
                found[name] = thing
        elif thing.__name__ not in TOOLBOX and not issubclass(thing, BaseModel | BaseException | enum.Enum | tuple):
            for attribute, member in vars(thing).items():
                function = inspect.unwrap(getattr(member, "__func__", member))
                is_field = attribute in getattr(thing, "__dataclass_fields__", {})  # a default; its docstring says more
                if not attribute.startswith("_") and not is_field and inspect.isfunction(function):
                    found[f"{name}.{attribute}"] = function
    return found


PUBLIC = public_objects()
CALLABLES = public_callables()


def entries(function: Any, section: str) -> list[str]:
    """Return the names that a section of a docstring describes; alike ones may stand in one entry."""
    parts = SECTION.split(inspect.getdoc(function) or "")
    text = dict(zip(parts[1::2], parts[2::2], strict=True)).get(section, "")
    return [name.lstrip("*") for line in ENTRY.findall(text) for name in line.split(", ")]


def raised(function: Callable[..., Any]) -> list[type[Exception]]:
    """Return the exceptions that the body of a function raises itself."""
    function = inspect.unwrap(function)
    tree = ast.parse(inspect.cleandoc("\n" + inspect.getsource(function)))
    raises = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.exc is not None]
    names = {ast.unparse(exc.func if isinstance(exc, ast.Call) else exc) for exc in raises}
    values = [function.__globals__.get(name) for name in names]
    return [value for value in values if inspect.isclass(value) and issubclass(value, Exception)]


def test_public_names_are_found() -> None:
    """Otherwise the tests below would prove nothing."""
    assert len(PUBLIC) > 50
    assert any(name.endswith(".solve") for name in CALLABLES)
    assert any(name.endswith("Engine.place") for name in CALLABLES)
    assert {thing.__name__ for thing in PUBLIC.values()} >= TOOLBOX  # a class that no page shows leaves the list


def test_every_public_name_has_a_summary() -> None:
    firsts = {name: (inspect.getdoc(thing) or "").partition("\n")[0] for name, thing in PUBLIC.items()}
    assert {name: first for name, first in firsts.items() if not first.endswith((".", ":"))} == {}


def test_parameters_are_those_of_the_signature() -> None:
    described = {name: sorted(entries(function, "Parameters")) for name, function in CALLABLES.items()}
    needed = {
        name: sorted(one for one in inspect.signature(function).parameters if one not in ("self", "cls"))
        for name, function in CALLABLES.items()
    }
    assert {name: found for name, found in described.items() if found != needed[name]} == {}


def test_what_is_returned_is_described() -> None:
    """Unless it is nothing; an iterator may describe what it yields."""
    nothing = (None, "None", inspect.Signature.empty, typing.Never, "Never")
    silent = [
        name
        for name, function in CALLABLES.items()
        if inspect.signature(function).return_annotation not in nothing
        and not {"Returns", "Yields"} & set(SECTION.findall(inspect.getdoc(function) or ""))
    ]
    assert silent == []


def test_what_is_raised_is_described() -> None:
    """At least what the function raises in its own body, by its class or a base class."""
    silent = {
        (name, kind.__name__)
        for name, function in CALLABLES.items()
        for kind in raised(function)
        if not {base.__name__ for base in kind.__mro__} & set(entries(function, "Raises"))
    }
    assert silent == set()
