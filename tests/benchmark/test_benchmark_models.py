"""Integer models from files: what is read is what was written, and what other programs read."""

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import highspy
import numpy as np
import pytest

from helpers.night import seeds
from helpers.solver_models import same
from placeopt import BadInput
from placeopt.benchmark import read_model
from placeopt.linear import NO_LOWER, NO_UPPER, LinearModel, ModelBuilder
from placeopt.solvers import FORMATS, SolveOptions, Worker

GAP = "2 3\n 5 1 4\n 2 6 3\n 3 2 2\n 2 3 4\n 5 6\n"
"""Two agents, three items. Agent 0 carries 5, agent 1 six."""

FREE = """\
* comment
NAME some model
OBJSENSE
    MAX
ROWS
 N gain
 L room
 G some
 E tie
 N ignored
COLUMNS
 M1 'MARKER' 'INTORG'
 x gain 3 room 2.5
 x tie 1 ignored 7
 y gain 2 room 1
 y some 1
 z gain -1 tie -1
 w gain 1
 M2 'MARKER' 'INTEND'
RHS
 RHS room 10 some -1
 RHS gain 4
RANGES
 RNG room 5 some 3
 RNG tie -2
BOUNDS
 UP BND x 8
 LO BND y -2
 UP BND y 3.5
 FX BND z 1
ENDATA
"""


def model_of(text: str, name: str) -> Any:
    with TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_text(text)
        return read_model(path)


def random_model(seed: int) -> LinearModel:
    """Draw a small model with every kind of row and bound."""
    draw = np.random.default_rng(seed)
    builder = ModelBuilder()
    n, m = int(draw.integers(1, 8)), int(draw.integers(0, 6))
    low = draw.integers(-4, 3, n)
    columns = builder.add_variables(low, low + draw.integers(0, 6, n))
    for _ in range(m):
        size = int(draw.integers(1, n + 1))
        side = int(draw.integers(-6, 12))
        limits = [(side, side), (side, NO_UPPER), (NO_LOWER, side), (side, side + 3)][int(draw.integers(4))]
        coefficients = np.append(draw.integers(1, 9, size - 1), 1)  # no divisor in common
        builder.add_row(draw.choice(n, size, replace=False), coefficients, *limits)
    builder.set_objective(columns, draw.integers(-9, 9, n), ("max", "min")[seed % 2], int(draw.integers(-5, 5)))
    return builder.build()


def test_an_assignment_problem_by_hand() -> None:
    """
    Agent 0 cheapest at item 1 (1), agent 1 at items 0 and 2 (2 + 3), weights 2 + 4 of the 6 it carries: 6 in all.

    Carrying 5 only, agent 1 must leave item 2 to agent 0 (4, and 2 + 2 of the 5 it carries), 7 in all.
    """
    model = model_of(GAP, "x.gap")
    assert (model.num_variables, model.num_rows, model.sense) == (6, 5, "min")
    best = np.array([0, 1, 0, 1, 0, 1])
    assert model.is_feasible(best)
    assert model.objective_value(best) == 6
    tighter = model_of(GAP.replace(" 5 6", " 5 5"), "x.gap")
    assert not tighter.is_feasible(best)
    assert tighter.objective_value(np.array([0, 1, 1, 1, 0, 0])) == 7
    assert tighter.is_feasible(np.array([0, 1, 1, 1, 0, 0]))
    assert not model.is_feasible(np.array([1, 1, 0, 1, 0, 1]))  # item 0 twice


def test_a_model_by_hand() -> None:
    """Every section once: signs of ranges, the default of integers, rounding of bounds, rows with decimals."""
    model = integer(FREE)
    assert model.sense == "max"
    assert model.offset == -4
    assert model.objective.tolist() == [3, 2, -1, 1]
    assert model.lower.tolist() == [0, -2, 1, 0]
    assert model.upper.tolist() == [8, 3, 1, 1]  # w has no bounds: 0 or 1
    # 2.5 x + y <= 10 within 5, doubled: 10 <= 5 x + 2 y <= 20; -1 <= y <= 2; -2 <= x - z <= 0
    assert model.row_lower.tolist() == [10, -1, -2]
    assert model.row_upper.tolist() == [20, 2, 0]
    assert model.coefficients.tolist() == [5, 2, 1, 1, -1]


@pytest.mark.parametrize("seed", seeds(20))
def test_what_is_written_is_read(seed: int) -> None:
    """Through our own writer, whose files other solvers read (test_export)."""
    model = random_model(seed)
    assert same(integer(FORMATS["mps"](model).decode()), model)


def test_others_read_the_same(tmp_path: Path) -> None:
    """HiGHS's reader beside ours on the model by hand: bounds, sides and costs."""
    path = tmp_path / "free.mps"
    path.write_text(FREE.replace("some model", "some"))
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    assert highs.readModel(str(path)) == highspy.HighsStatus.kOk
    lp, model = highs.getLp(), integer(FREE)
    assert np.ceil(lp.col_lower_).tolist() == model.lower.tolist()
    assert np.floor(lp.col_upper_).tolist() == model.upper.tolist()
    assert list(lp.col_cost_) == model.objective.tolist()
    assert (lp.offset_, lp.sense_) == (-4, highspy.ObjSense.kMaximize)
    assert [2 * lp.row_lower_[0], *lp.row_lower_[1:3]] == model.row_lower.tolist()
    assert [2 * lp.row_upper_[0], *lp.row_upper_[1:3]] == model.row_upper.tolist()


BROKEN_GAP = {
    "": "numbers of agents and items",
    "0 3": "1 or more",
    "2 3\n1 2 x": "word 5 is 'x'",
    "2 3\n1 2 -4": "word 5 is '-4'",
    GAP + "7": "more than 16 numbers; 2 agents and 3 items make 16",
}
BROKEN_MPS = {
    "ENDATA -> ": "ENDATA",
    "RANGES -> RANGED": "section 'RANGED'",
    "room 2.5 -> rum 2.5": r"x\.mps:13: no row 'rum'",
    "room 2.5 -> room two": "'two' is not a number",
    "room 2.5 -> room 1e300": "beyond",
    "room 2.5 -> room 1e-300": "beyond",
    "FX BND z -> XX BND z": "bound 'XX'",
    "FX BND z -> FX BND q": "not a column",
    " L room ->  L some": "appears twice",
    "MAX -> MOST": "sense 'MOST'",
}
BROKEN = [(text, "x.gap", words) for text, words in BROKEN_GAP.items()]
BROKEN += [(FREE.replace(*change.split(" -> ")), "x.mps", words) for change, words in BROKEN_MPS.items()]


@pytest.mark.parametrize(("text", "name", "words"), BROKEN)
def test_a_broken_model_is_named(text: str, name: str, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        model_of(text, name)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("'INTORG'", "'INTEND'"), "'x' is continuous"),
        (("UP BND x 8", "UP BND x 1e30"), "'x' is unbounded"),
        (("UP BND x 8", "FR BND x"), "'x' is unbounded"),
        (("gain 3", "gain 3.5"), "objective has decimals"),
    ],
)
def test_what_integers_cannot_state_is_in_floating_point(change: tuple[str, str], words: str) -> None:
    model = model_of(FREE.replace(*change), "x.mps")
    assert not isinstance(model, LinearModel)
    assert words in model.reason


def integer(text: str) -> LinearModel:
    model = model_of(text, "x.mps")
    assert isinstance(model, LinearModel)
    return model


@pytest.mark.parametrize(("name", "solver"), [("gap1-0", "highs"), ("gap3-2", "cpsat")])
def test_known_optima_are_found(name: str, solver: str) -> None:
    """Two of the stored ones; their sums stand in best.solu, from the collection's own list."""
    root = Path(__file__).resolve().parents[2] / "instances"
    model = read_model(root / "gap" / f"{name}.gap")
    known = {"gap1-0": 261, "gap3-2": 446}
    assert isinstance(model, LinearModel)
    with Worker() as worker:
        solution = worker.solve(solver, model, SolveOptions(20.0), deadline=time.monotonic() + 30)
    assert (solution.status, solution.objective) == ("optimal", known[name])
