"""The digest of the code that decides a simulation: a stored row of other code is not taken for one of today's."""

from __future__ import annotations

import ast
import hashlib
from functools import cache
from pathlib import Path

import placeopt
import placeopt_papers
from placeopt.model import Scheduling
from placeopt.solving.methods import method_of

PACKAGES = {"placeopt": Path(placeopt.__file__).parent, "placeopt_papers": Path(placeopt_papers.__file__).parent}
SIMULATED = ("placeopt.simulation.play", "placeopt.simulation.summary", "placeopt_papers.measures")
"""What plays a scenario and measures it; all that decides is imported from here."""
ONE_AT_A_TIME = ("placeopt_papers.one_at_a_time.protocol",)
"""The same for jobs placed one after the other by a score."""
NEVER = ("placeopt.explain", "placeopt.generators", "placeopt.partition")
"""Imported, but nothing of a simulation runs there; what generators make is input, whose digest a row has."""
MODELS = ("placeopt.formulations",)
"""Runs only under methods that solve a round as a model."""
DATA = (".csv", ".json")


def code_digest(scheduling: Scheduling | None) -> str:
    """
    Return 12 hexadecimal digits over the code that can decide a row; docstrings, comments and layout do not count.

    The code is what the simulation imports, over all modules in between, and the data files beside these modules; so a
    new module cannot be forgotten. ``scheduling``: the policy, whose own settings have a digest of their own; None
    stands for a score that places one job after the other.
    """
    return _digest(deciding_modules(scheduling))


def deciding_modules(scheduling: Scheduling | None) -> frozenset[str]:
    """Return the names of the modules that count for a policy, or for a score."""
    return _imported(ONE_AT_A_TIME if scheduling is None else SIMULATED, left_out(scheduling))


def left_out(scheduling: Scheduling | None) -> tuple[str, ...]:
    """Return the packages that decide nothing under a policy though they are imported; tests watch what runs."""
    if scheduling is None:
        return (*NEVER, *MODELS)
    solves = scheduling.rounds != "each" and not method_of(scheduling.method).is_greedy
    return NEVER if scheduling.adapts or solves else (*NEVER, *MODELS)


@cache
def bare_code(source: str) -> str:
    """Return a module's code without comments, docstrings and layout."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            body[:] = [line for line in body if not _is_text(line)]
    return ast.dump(tree)


def module_files() -> dict[str, Path]:
    """Return the file of every module of placeopt and of this package."""
    return {
        ".".join((name, *(part for part in path.relative_to(folder).with_suffix("").parts if part != "__init__"))): path
        for name, folder in PACKAGES.items()
        for path in sorted(folder.rglob("*.py"))
    }


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _is_text(line: ast.stmt) -> bool:
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant) and isinstance(line.value.value, str)


@cache
def _digest(modules: frozenset[str]) -> str:
    files = module_files()
    digest = hashlib.sha256()
    folders = set()
    for module in sorted(modules):
        digest.update(f"{module}\n{bare_code(_text(files[module]))}\n".encode())
        folders.add(files[module].parent)
    for path in sorted(path for folder in folders for path in folder.iterdir() if path.suffix in DATA):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:12]


@cache
def _imported(roots: tuple[str, ...], without: tuple[str, ...]) -> frozenset[str]:
    """Return the modules that the roots import, and their packages, other than those left out."""
    files = module_files()
    found: set[str] = set()
    left = list(roots)
    while left:
        module = left.pop()
        if module in found or any(module == one or module.startswith(f"{one}.") for one in without):
            continue
        found.add(module)
        left += [name for name in _imports(_text(files[module])) if name in files]
        left += [module.rpartition(".")[0]] if "." in module else []
    return frozenset(found)


@cache
def _imports(source: str) -> tuple[str, ...]:
    """Return the names that a module imports, except for types only: modules, and what may be modules in them."""
    names: list[str] = []
    left: list[ast.AST] = [ast.parse(source)]
    while left:
        node = left.pop()
        if isinstance(node, ast.Import):
            names += (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            names += (node.module or "", *(f"{node.module}.{name.name}" for name in node.names))
        elif isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            left += node.orelse
        else:
            left += ast.iter_child_nodes(node)
    return tuple(names)
