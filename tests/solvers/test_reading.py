"""The reading believes nothing: solvers that lie are caught."""

import numpy as np
import pytest

from helpers.solver_models import covering, knapsack
from placeopt.solvers import Progress, SolveOptions
from placeopt.solvers.reading import Reading

GOOD, BETTER, BROKEN = [1, 1, 0], [0, 1, 1], [1, 1, 1]


def reading(news: list[Progress] | None = None, **options: object) -> Reading:
    """A reading of the knapsack, whose optimum is 227 and whose trivial bound is 287."""
    return Reading(knapsack(), SolveOptions(1.0, **options), None if news is None else news.append)


def test_values_are_rounded_never_cut() -> None:
    """0.9999999 cut to an integer is another plan (trap 4)."""
    read = reading()
    assert read.offer([0.9999999999999997, 1.0000000002, -1e-12])
    assert read.values.tolist() == GOOD


@pytest.mark.parametrize("values", [BROKEN, [1, 1], [np.nan, 0, 0], [2, 0, 0], [0, 0, np.inf], [0, -1, 0]])
def test_values_that_break_the_model_are_refused(values: list[float]) -> None:
    """Memory beyond an array, NaN, wrong sizes: nothing of it gets in."""
    read = reading()
    assert not read.offer(values)
    assert read.values is None


def test_only_better_values_are_held_and_reported() -> None:
    """A stream of solutions is a stream of improvements."""
    news: list[Progress] = []
    read = reading(news)
    for values in (GOOD, [1, 0, 0], BETTER, GOOD):
        assert read.offer(values)
    assert [item.objective for item in news] == [167, 227]
    assert read.values.tolist() == BETTER


@pytest.mark.parametrize(("bound", "safe"), [(240.9, 240), (226.9999999, 227), (227.0000001, 227), (300.0, 287)])
def test_bounds_are_rounded_to_the_safe_side(bound: float, safe: int) -> None:
    """A maximum's bound is rounded down, but not because of noise; it never gets worse than the trivial one."""
    read = reading()
    read.offer_bound(bound)
    assert read.bound == safe


def test_bounds_of_a_minimum() -> None:
    """And a minimum's up."""
    read = Reading(covering(), SolveOptions(1.0), None)
    for bound, safe in ((float("-inf"), -3), (10.2, 11), (11.0000001, 11), (18.5, 19)):
        read.offer_bound(bound)
        assert read.bound == safe


def test_optimal_only_if_bound_and_objective_meet() -> None:
    """A claim is not a proof; a bound that meets the objective is one, even unclaimed."""
    read = reading()
    read.offer(BETTER)
    assert read.conclude("optimal", bound=230).status == "feasible"
    assert "bound is apart" in read.conclude("optimal").message
    solution = read.conclude("feasible", "time", bound=227)
    assert (solution.status, solution.limit, solution.bound) == ("optimal", "none", 227)


def test_a_wrong_optimum_is_caught_by_a_better_hint() -> None:
    """As in trap 1: 'optimal' with a worse objective than a solution we hold."""
    read = reading(hint=np.array(BETTER))
    read.offer(GOOD)
    solution = read.conclude("optimal", bound=167)
    assert (solution.status, solution.objective, solution.bound) == ("feasible", 227, 287)
    assert "against a verified solution" in solution.message


def test_false_infeasible_is_caught_by_a_hint() -> None:
    """Trap 6: infeasible never overrides what we hold."""
    solution = reading(hint=np.array(GOOD)).conclude("infeasible")
    assert (solution.status, solution.objective) == ("feasible", 167)
    assert "claims infeasible" in solution.message


def test_errors_without_and_with_a_solution() -> None:
    """A fault costs the solver's bound, not the verified solution."""
    read = reading()
    read.offer_bound(230)
    assert read.conclude("error", message="broken").status == "error"
    read.offer(GOOD)
    solution = read.conclude("error", message="broken")
    assert (solution.status, solution.objective, solution.bound, solution.message) == ("feasible", 167, 287, "broken")


@pytest.mark.parametrize(
    ("bound", "proven", "options", "most"),
    [(227.0, 227, {}, 1000), (227.9, 227, {}, 1000), (226.9999999, 227, {}, 1000), (228.0, None, {}, 1000),
     (226.9, None, {}, 1000), (227.0, None, {"gap": 0.1}, 1000), (227.0, None, {}, 226)],
)  # fmt: skip
def test_a_final_bound_is_a_proof_if_it_leaves_nothing_a_unit_better(
    bound: float, proven: int | None, options: dict[str, float], most: int
) -> None:
    """By a solver that sees a unit at such objectives, asked for no gap; what is no proof is still a bound."""
    read = reading(**options)
    read.offer(BETTER)
    assert read.proven(bound, most=most) == proven
    assert proven is not None or read.bound == int(bound)


def test_what_is_cut_keeps_what_was_verified() -> None:
    """With the cause; a bound that its solver withdraws counts no more."""
    read = reading()
    read.offer_bound(240.0)
    assert read.cut("none", "crashed", failed=True).status == "error"
    read.offer(GOOD)
    cut = read.cut("time", "late", failed=False)
    assert (cut.status, cut.limit, cut.objective, cut.bound, cut.message) == ("feasible", "time", 167, 240, "late")
    read.withdraw_bound(None)
    assert read.cut("memory", "full", failed=True).bound == 287
