"""Asking what solvers can do costs nothing, and loading them works in every order."""

import subprocess
import sys

import pytest

from placeopt import Unsupported
from placeopt.solvers import SOLVERS, Capability, Entry, available, load, require


def test_solvers_of_the_dependencies_are_available_here() -> None:
    """The others are whatever else is installed."""
    assert available()[:3] == ("cpsat", "highs", "pulp-cbc")


def test_a_solver_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused before a model is built, with its package and those that are there and can."""
    missing = Entry("placeopt.solvers.pulp_packages", "no_such_package", Capability(), "scip")
    monkeypatch.setattr("placeopt.solvers.registry.SOLVERS", {**SOLVERS, "pulp-scip": missing})
    assert "pulp-scip" not in available()
    with pytest.raises(Unsupported, match=r"'pulp-scip' needs .*'no_such_package'.* use cpsat or highs or pulp-cbc"):
        require("pulp-scip", ["hint"])
    with pytest.raises(Unsupported, match="not installed"):
        load("pulp-scip")


def test_require() -> None:
    """What can is returned; what cannot is refused with one that can, whatever the reason."""
    assert require("highs", ["relax", "hint"]).capability.relax
    assert require("cpsat", coefficient=2**50).package == "ortools"


@pytest.mark.parametrize(
    ("solver", "needs", "coefficient", "message"),
    [
        ("cpsat", ["relax"], 0, r"'cpsat' cannot .*relax.*use highs"),
        ("highs", [], 2**50, "use cpsat"),
        ("highs", ["relax"], 10**16, "none can"),
        ("pulp-cbc", [], 10**10, "use cpsat or highs"),
        ("gurobi", [], 0, "there are cpsat, highs, pulp-cbc"),
    ],
)
def test_refused_with_those_that_can(solver: str, needs: list[str], coefficient: int, message: str) -> None:
    with pytest.raises(Unsupported, match=message):
        require(solver, needs, coefficient=coefficient)


def test_an_unknown_need() -> None:
    with pytest.raises(ValueError, match="unknown need"):
        require("highs", ["speed"])


def run(code: str) -> str:
    """Run code in a fresh interpreter."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        # the command line imports the package on every call, also when nothing is solved
        ("import placeopt.solvers as s; s.available(); s.require('highs', ['relax'])", {"numpy", "pulp"}),
        # solvers are the child's; the parent of a worker only needs numpy
        ("import placeopt.solvers as s; s.Worker", {"pulp"}),
    ],
)
def test_nothing_heavy_is_imported_early(code: str, absent: set[str]) -> None:
    absent = absent | {"ortools", "highspy", "pandas"}
    assert run(f"import sys; {code}; print(*sorted({absent!r} & set(sys.modules)))").split() == []


@pytest.mark.parametrize(
    "order",
    [("highspy", "ortools.sat.python.cp_model"), ("ortools.sat.python.cp_model", "highspy"),
     ("pulp", "ortools.sat.python.cp_model"), ("ortools.sat.python.cp_model", "pulp")],
)  # fmt: skip
def test_both_libraries_in_one_process(order: tuple[str, str]) -> None:
    """From highspy 1.15 on this fails with ortools 9.15, in either order (trap 17), and ``pip check`` is content."""
    code = f"""
import {order[0]}, {order[1]}
from placeopt.linear import ModelBuilder
from placeopt.solvers import SolveOptions, load
builder = ModelBuilder()
x = builder.add_variables(0, 3, count=2)
builder.add_row(x, [2, 3], 0, 7)
builder.set_objective(x, [3, 4], "max")
print(*(load(name)(builder.build(), SolveOptions(5.0)).objective for name in ("highs", "cpsat")))
"""
    assert run(code).split() == ["10", "10"]
