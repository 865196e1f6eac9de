"""Models of other people's files: comments, sets of sides, signs of bounds, solvers that do not end."""

from pathlib import Path

import pytest

from placeopt import BadInput
from placeopt.benchmark import Row, plan_cases, read_model, run_cases

REPORTS = Path(__file__).resolve().parents[1] / "data" / "reports"


def ran(name: str, solver: str, out: Path) -> Row:
    """Return the row of a model of the reports, with two seconds."""
    plan = plan_cases([str(REPORTS / "mps" / f"{name}.mps")], [solver], time_limit_s=2, seeds=[0], threads=1)
    [row] = run_cases(plan.cases, out)
    return row


def test_a_dollar_begins_a_comment() -> None:
    """Behind a row's name, too (HiGHS #1860)."""
    model = read_model(REPORTS / "mps" / "dollar.mps")
    assert model.objective.tolist() == [1, 2]
    assert (model.row_lower.tolist(), model.row_upper.tolist()) == ([3], [3])


def test_the_first_set_of_sides_and_of_ranges_counts() -> None:
    """4..6, not 9..59 (QPSReader #14)."""
    model = read_model(REPORTS / "mps" / "rhs2.mps")
    assert (model.row_lower.tolist(), model.row_upper.tolist()) == ([4], [6])


@pytest.mark.parametrize("name", ["lo0_up_neg", "up_neg_lo0"])
def test_a_stated_lower_bound_of_0_holds(name: str, tmp_path: Path) -> None:
    """In either order: no value is left (cuPDLPx #102)."""
    model = read_model(REPORTS / "mps" / f"{name}.mps")
    assert (model.lower[0], model.upper[0]) == (0, -3)
    assert ran(name, "highs", tmp_path).answer.status == "infeasible"


@pytest.mark.parametrize("name", ["loop", "loopA"])
def test_a_solver_that_does_not_end_is_ended(name: str, tmp_path: Path) -> None:
    """Odd sums of even numbers: HiGHS goes on for ever (HiGHS #2226); the case ends soon after its limit, undecided."""
    answer = ran(name, "highs", tmp_path).answer
    assert answer.status == "infeasible" or (answer.status, answer.limit) == ("no_solution", "time")


@pytest.mark.parametrize("solver", ["highs", "pulp-cbc"])
def test_a_model_without_rows_is_unbounded(solver: str, tmp_path: Path) -> None:
    """And no path of a file in the cause (pulp #894)."""
    answer = ran("unb_free", solver, tmp_path).answer
    assert (answer.status, answer.message) == ("unbounded", "")


def test_the_sense_of_pulps_comment_is_no_sense() -> None:
    """Other readers would minimise (pulp #697)."""
    with pytest.raises(BadInput, match=r"pulp_max\.mps: \*SENSE:Maximize is no part of MPS"):
        read_model(REPORTS / "mps" / "pulp_max.mps")


def test_files_of_the_or_library_hold_several_problems() -> None:
    with pytest.raises(BadInput, match=r"orlib\.gap: .*the first number is that of the problems"):
        read_model(REPORTS / "qap" / "orlib.gap")
