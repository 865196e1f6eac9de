"""Solvers behind PuLP: what it says about the end of a solve, and how we take it."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pulp
import pytest

from helpers.solver_models import KNOWN, hard, infeasible, knapsack
from placeopt import BadInput
from placeopt.solvers import SOLVERS, Solve, SolveOptions, load

LONG = SolveOptions(60.0)


def bound_of_highs(model: object) -> float:
    """Return the bound that HiGHS has after a solve."""
    return model.getInfo().mip_dual_bound


@pytest.fixture
def through_package(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Solve]:
    """The way of all solvers but CBC, with the one package that is always there at its end."""
    entry = replace(SOLVERS["pulp-scip"], package="highspy")
    monkeypatch.setattr("placeopt.solvers.registry.SOLVERS", {**SOLVERS, "pulp-scip": entry})

    def made(
        bound: Callable[[object], float] | None = bound_of_highs, arguments: dict[str, object] | None = None
    ) -> Solve:
        interface = SimpleNamespace(
            solver=partial(pulp.getSolver, "HiGHS"), arguments=lambda *_: arguments or {}, bound=bound, limit=None,
            hint=True, digits=9, proves=10**9,
        )  # fmt: skip
        monkeypatch.setattr("placeopt.solvers.pulp_packages.INTERFACES", {"scip": interface})
        return load("pulp-scip")

    return made


def test_package_solves_what_is_known(through_package: Callable[..., Solve]) -> None:
    """Senses, offsets, ranges, empty objectives, hints, and an infeasible one, over to PuLP and back."""
    solve = through_package()
    for make, optimum in KNOWN.values():
        solution = solve(make(), LONG)
        assert (solution.status, solution.objective, solution.bound) == ("optimal", optimum, optimum)
    assert solve(knapsack(), SolveOptions(60.0, hint=np.array([1, 1, 0]))).objective == 227
    assert solve(infeasible(), LONG).status == "infeasible"


def test_optimum_of_a_package_needs_its_bound(through_package: Callable[..., Solve]) -> None:
    """PuLP has called optimal what was found at a limit; without the solver's bound its word is not enough."""
    for bound in (None, lambda model: model.no_such_thing, lambda _: float("inf")):
        solution = through_package(bound=bound)(knapsack(), LONG)
        assert (solution.status, solution.objective, solution.bound) == ("feasible", 227, 287)


def test_package_stopped_by_time(through_package: Callable[..., Solve]) -> None:
    """What PuLP calls optimal is a solution and no more, if there is one in time, and the limit is the time."""
    solution = through_package()(hard(), SolveOptions(4.0))
    assert solution.status in ("feasible", "no_solution")
    assert solution.limit == "time"
    if solution.status == "feasible":
        assert solution.objective < solution.bound < hard().objective.sum()


def test_package_refuses_an_option(through_package: Callable[..., Solve]) -> None:
    """By name, whatever exception it takes for that."""
    solve = through_package(arguments={"no_such_option": 1, "warmStart": True})
    with pytest.raises(BadInput, match="no_such_option=1"):
        solve(knapsack(), SolveOptions(9.0, extra=(("no_such_option", "1"),)))
