"""
Who may import whom. Read from the source of every file, so files written later are held to it too.

A module imports only from lower floors, or from its own room. That is what keeps the referee blind to compiled arrays,
the costs blind to solvers, and a change in one way to work out of the others.
"""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import placeopt

ROOT = Path(placeopt.__file__).parent
FLOORS = (
    ("errors",),
    ("model",),
    ("arguments",),
    ("check", "formats"),
    ("linear", "metrics", "readable", "referee", "topology"),
    ("predict", "problem"),
    ("generators", "terms"),
    ("alone", "formulations", "heuristics", "mapping", "queueing", "solvers"),
    ("auditing", "fanout", "methods", "workplace"),
    ("stages",),
    ("resident",),
    ("engine",),
    ("explain", "partition"),
    ("benchmark", "simulate", "whatif"),
    ("papers", "replay"),
    ("page", "report"),
    ("cli",),
)
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
FILES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def room_of(path: Path) -> str:
    """Return the top-level module or package that a file belongs to."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, full name) of everything a file imports, at its top or deep inside, for types or for use."""
    package = ["placeopt", *path.relative_to(ROOT).parts[:-1]]
    for statement in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(statement, ast.Import):
            yield from ((statement.lineno, alias.name) for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            above = package[: len(package) + 1 - statement.level] if statement.level else []
            module = ".".join([*above, *([statement.module] if statement.module else [])])
            if module == "placeopt":  # a room, or a public name that lives in one
                names = [alias.name for alias in statement.names if alias.name != "__version__"]
                yield from ((statement.lineno, placeopt._HOME.get(name, f"placeopt.{name}")) for name in names)
            else:
                yield statement.lineno, module


def rooms_used(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, room) of what a file imports from other rooms of the package."""
    for line, name in imported(path):
        parts = name.split(".")
        if parts[0] == "placeopt" and len(parts) > 1 and parts[1] != room_of(path):
            yield line, parts[1]


def test_every_room_has_a_floor() -> None:
    """A new package must be put on a floor before anybody builds on it."""
    rooms = {room_of(path) for path in FILES}
    assert rooms <= FLOOR_OF.keys(), f"put {sorted(rooms - FLOOR_OF.keys())} on a floor of FLOORS"


@pytest.mark.parametrize("room", sorted({room_of(path) for path in FILES}))
def test_a_room_imports_only_from_lower_floors(room: str) -> None:
    """Otherwise a cycle, or a room of one floor that leans on its neighbour."""
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {used}"
        for path in FILES
        if room_of(path) == room
        for line, used in rooms_used(path)
        if FLOOR_OF.get(used, len(FLOORS)) >= FLOOR_OF.get(room, 0)
    ]
    assert not wrong


def test_the_referee_imports_only_the_model() -> None:
    """It is the second statement of the rules: what it shares with the first, it cannot find wrong."""
    for path in FILES:
        if room_of(path) == "check":
            for line, name in imported(path):
                top, _, rest = name.partition(".")
                allowed = (
                    rest.split(".")[0] in ("check", "errors", "model")
                    if top == "placeopt"
                    else top in sys.stdlib_module_names
                )
                assert allowed, f"{path.name}:{line} imports {name}"


def test_solvers_know_nothing_but_linear_models() -> None:
    """A solver that hears of GPUs cannot be swapped."""
    used = {used for path in FILES if room_of(path) == "solvers" for _, used in rooms_used(path)}
    assert used <= {"errors", "linear"}


def test_only_solvers_import_solver_packages() -> None:
    """One wrapper a solver is the only place that reads its values; terms least of all."""
    packages = {"highspy", "ortools", "pulp"}
    found = {room_of(path) for path in FILES for _, name in imported(path) if name.split(".")[0] in packages}
    assert found <= {"solvers"}


def test_importing_the_package_loads_the_standard_library_only() -> None:
    """Command lines and services start with it; what is asked for is loaded then."""
    program = (
        "import json, sys; before = set(sys.modules); import placeopt; dir(placeopt); "
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60).stdout
    loaded = json.loads(out)
    assert "placeopt" in loaded
    strangers = [name for name in loaded if name.split(".")[0] not in {*sys.stdlib_module_names, "placeopt"}]
    assert not strangers
    assert [name for name in loaded if name.startswith("placeopt.")] == []


def test_every_public_name_loads() -> None:
    """The lazy table names modules as texts, which no type checker follows."""
    for name in placeopt.__all__:
        assert getattr(placeopt, name) is not None


def test_public_functions_are_not_hidden_by_modules() -> None:
    """A module of the same name would take a function's place in the package once it is imported (regression)."""
    code = (
        "import placeopt, placeopt.live_cluster.engine, placeopt.cli.app; "
        "print(callable(placeopt.audit), callable(placeopt.generate))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]
