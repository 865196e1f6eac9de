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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import placeopt

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
ENTRY = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: ?:.*)?$", re.MULTILINE)


def imported_names() -> Iterator[tuple[str, str]]:
    """Yield (module, name) of every import from placeopt in the Python blocks of the pages."""
    for page in PAGES:
        for block in PYTHON.findall(page.read_text(encoding="utf-8")):
            for node in ast.walk(ast.parse(block)):
                if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "placeopt":
                    yield from ((node.module or "", alias.name) for alias in node.names)


def public_objects() -> dict[str, Any]:
    """Return the public classes and functions by their qualified names."""
    names = {("placeopt", name) for name in placeopt.__all__} | set(imported_names())
    objects = {getattr(importlib.import_module(module), name) for module, name in names if is_documented(module, name)}
    return {f"{thing.__module__}.{thing.__qualname__}": thing for thing in objects}


def is_documented(module: str, name: str) -> bool:
    """Tell whether a name is a class or function of its own: constants and type aliases have no docstring."""
    thing = getattr(importlib.import_module(module), name)
    return inspect.isroutine(thing) or inspect.isclass(thing)


PUBLIC = public_objects()
TOOLBOX = frozenset(
    f"placeopt.{name}"
    for name in (
        "heuristics.candidates.Candidates",
        "linear.ModelBuilder",
        "problem.problem.Problem",
        "problem.state.State",
        "solving.context.SolveContext",
        "solving.greedy_rule.GreedyRule",
        "terms.variables.Variables",
    )
)


def callables() -> dict[str, Callable[..., Any]]:
    """Return the public functions, and the public methods and the constructor of every public class but records."""
    found = {}
    for name, thing in PUBLIC.items():
        if not inspect.isclass(thing):
            found[name] = thing
        elif name not in TOOLBOX and not issubclass(thing, BaseModel | BaseException | enum.Enum | tuple):
            for attribute, member in vars(thing).items():
                function = inspect.unwrap(getattr(member, "__func__", member))
                if not attribute.startswith("_") and inspect.isfunction(function):
                    found[f"{name}.{attribute}"] = function
    return found


CALLABLES = callables()


def sections(function: Any) -> dict[str, str]:
    """Return the sections of a docstring; what stands before the first one is ""."""
    parts = SECTION.split(inspect.getdoc(function) or "")
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def entries(section: str) -> list[str]:
    """Return the names that a section describes."""
    return [name.lstrip("*") for line in ENTRY.findall(section) for name in line.split(", ")]


def parameters(function: Callable[..., Any]) -> list[str]:
    """Return the parameters of a signature, without ``self``."""
    return [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_public_name_has_a_summary(name: str) -> None:
    """One line that ends with a full stop, and a class has its attributes or fields described."""
    lines = (inspect.getdoc(PUBLIC[name]) or "").splitlines()
    assert lines
    assert lines[0].endswith(".") or lines[0].endswith(":")


@pytest.mark.parametrize("name", sorted(CALLABLES))
def test_parameters_are_those_of_the_signature(name: str) -> None:
    """All of them and no others; alike ones may stand in one entry."""
    function = CALLABLES[name]
    assert sorted(entries(sections(function).get("Parameters", ""))) == sorted(parameters(function))


@pytest.mark.parametrize("name", sorted(CALLABLES))
def test_what_is_returned_is_described(name: str) -> None:
    """Unless it is nothing; an iterator may describe what it yields."""
    function = CALLABLES[name]
    returned = inspect.signature(function).return_annotation
    if returned not in (None, "None", inspect.Signature.empty, typing.Never, "Never"):
        assert {"Returns", "Yields"} & sections(function).keys()


def raised(function: Callable[..., Any]) -> set[type[Exception]]:
    """Return the exceptions that the body of a function raises itself."""
    function = inspect.unwrap(function)
    tree = ast.parse(inspect.cleandoc("\n" + inspect.getsource(function)))
    raises = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.exc is not None]
    names = {ast.unparse(exc.func if isinstance(exc, ast.Call) else exc) for exc in raises}
    values = {function.__globals__.get(name) for name in names}
    return {value for value in values if inspect.isclass(value) and issubclass(value, Exception)}


@pytest.mark.parametrize("name", sorted(CALLABLES))
def test_what_is_raised_is_described(name: str) -> None:
    """At least what the function raises in its own body, by its class or a base class."""
    function = CALLABLES[name]
    described = set(entries(sections(function).get("Raises", "")))
    assert [kind for kind in raised(function) if not described & {base.__name__ for base in kind.__mro__}] == []


def test_toolbox_is_public() -> None:
    """A class that no page shows any more leaves the list."""
    assert PUBLIC.keys() >= TOOLBOX


def test_public_names_are_found() -> None:
    """Otherwise the tests above would prove nothing."""
    assert len(PUBLIC) > 50
    assert {"placeopt.solving.api.solve", "placeopt.terms.protocols.Cost.score"} <= CALLABLES.keys()
    assert any(name.endswith("Engine.place") for name in CALLABLES)
