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
    missing = Entry("placeopt.solvers.pulp_gateway", "no_such_package", Capability(), "scip")
    monkeypatch.setattr("placeopt.solvers.registry.SOLVERS", {**SOLVERS, "pulp-scip": missing})
    assert "pulp-scip" not in available()
    with pytest.raises(Unsupported, match=r"'pulp-scip' needs .*'no_such_package'.* use cpsat or highs or pulp-cbc"):
        require("pulp-scip", ["hint"])
    with pytest.raises(Unsupported, match="not installed"):
        load("pulp-scip")


def test_require() -> None:
    """Names one that can, whatever the reason why this one cannot."""
    assert require("highs", ["relax", "hint"]).capability.relax
    assert require("cpsat", coefficient=2**50).package == "ortools"
    with pytest.raises(Unsupported, match=r"'cpsat' cannot .*relax.*use highs"):
        require("cpsat", ["relax"])
    with pytest.raises(Unsupported, match="use cpsat"):
        require("highs", ["integer"], coefficient=2**50)
    with pytest.raises(Unsupported, match="none can"):
        require("highs", ["relax"], coefficient=2**53 + 1)
    with pytest.raises(Unsupported, match="use cpsat or highs"):
        require("pulp-cbc", ["integer"], coefficient=10**10)
    with pytest.raises(Unsupported, match="there are cpsat, highs, pulp-cbc"):
        load("gurobi")
    with pytest.raises(ValueError, match="unknown need"):
        require("highs", ["speed"])


def run(code: str) -> str:
    """Run code in a fresh interpreter."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_package_imports_nothing_heavy() -> None:
    """The command line imports it on every call, also when nothing is solved."""
    code = "import sys, placeopt.solvers, placeopt.solvers.registry as r; r.available(); r.require('highs', ['relax'])"
    loaded = run(f"{code}; print(*sorted({{'numpy', 'ortools', 'highspy', 'pandas', 'pulp'}} & set(sys.modules)))")
    assert loaded.split() == []


def test_the_parent_of_a_worker_imports_no_solver() -> None:
    """Solvers are the child's; the parent only needs numpy."""
    code = (
        "import sys, placeopt.solvers.pool; print(*sorted({'ortools', 'highspy', 'pandas', 'pulp'} & set(sys.modules)))"
    )
    assert run(code).split() == []


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
from placeopt.solvers.registry import load
from placeopt.solvers.result import SolveOptions
builder = ModelBuilder()
x = builder.add_variables(0, 3, count=2)
builder.add_row(x, [2, 3], 0, 7)
builder.set_objective(x, [3, 4], "max")
print(*(load(name)(builder.build(), SolveOptions(5.0)).objective for name in ("highs", "cpsat")))
"""
    assert run(code).split() == ["10", "10"]
