"""What is written, read and solved by others, gives our optimum."""

import hashlib
import shutil
import subprocess
from pathlib import Path

import highspy
import numpy as np
import pulp
import pytest
from ortools.sat import cp_model_pb2
from ortools.sat.python import cp_model

from helpers.solver_models import KNOWN, covering, hard, infeasible, placement
from placeopt.linear import NO_LOWER, NO_UPPER, LinearModel, ModelBuilder
from placeopt.solvers import FORMATS, SolveOptions, load


def general_integers(rng: np.random.Generator) -> LinearModel:
    """Negative bounds, one-sided, two-sided and equal rows, columns and rows without entries, an offset."""
    n, m = int(rng.integers(2, 7)), int(rng.integers(1, 6))
    builder = ModelBuilder()
    low = rng.integers(-6, 3, n)
    x = builder.add_variables(low, low + rng.integers(0, 9, n))
    matrix = rng.integers(-5, 6, (m, n)) * (rng.random((m, n)) < 0.7)
    middle = matrix @ (low + rng.integers(0, 2, n))
    lower = np.where(rng.random(m) < 0.3, NO_LOWER, middle - rng.integers(0, 5, m))
    upper = np.where(rng.random(m) < 0.3, NO_UPPER, middle + rng.integers(0, 5, m))
    builder.add_rows(*np.nonzero(matrix), matrix[np.nonzero(matrix)], lower, upper)
    costs = rng.integers(-9, 10, n) * (rng.random(n) < 0.8)
    builder.set_objective(x, costs, "max" if rng.random() < 0.5 else "min", offset=int(rng.integers(-50, 50)))
    return builder.build()


def large_numbers() -> LinearModel:
    """Sixteen digits do not fit the fields of the fixed MPS format."""
    builder = ModelBuilder()
    x = builder.add_variables([0, -(10**9)], [10**9, 10**9])
    builder.add_row(x, [1_000_003, 1], NO_LOWER, 1_234_567_890_123)
    builder.set_objective(x, [1_000_000, -1], "max", offset=-987_654_321_012)
    return builder.build()


RNG = np.random.default_rng(11)
MODELS = {
    **{name: make() for name, (make, _) in KNOWN.items()},
    **{f"placement-{i}": placement(RNG) for i in range(4)},
    **{f"general-{i}": general_integers(RNG) for i in range(6)},
    "infeasible": infeasible(),
    "large": large_numbers(),
}
each_model = pytest.mark.parametrize("name", list(MODELS))


def optimum(model: LinearModel) -> int | None:
    """By two of our own solvers; ``None`` if there is none."""
    ours = [load(solver)(model, SolveOptions(20.0)) for solver in ("cpsat", "highs")]
    assert ours[0].objective == ours[1].objective
    assert {solution.status for solution in ours} <= {"optimal", "infeasible"}
    return ours[0].objective


@each_model
@pytest.mark.parametrize("form", ["mps", "lp"])
def test_highs_reads_it(name: str, form: str, tmp_path: Path) -> None:
    """With sense, offset, ranges and integrality."""
    path = tmp_path / f"model.{form}"
    path.write_bytes(FORMATS[form](MODELS[name]))
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("mip_rel_gap", 0.0)
    assert highs.readModel(str(path)) == highspy.HighsStatus.kOk
    highs.run()
    expected = optimum(MODELS[name])
    if expected is None:
        assert highs.getModelStatus() == highspy.HighsModelStatus.kInfeasible
    else:
        assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
        assert highs.getInfo().objective_function_value == pytest.approx(expected, abs=0.01, rel=1e-12)


@each_model
def test_cbc_reads_mps(name: str, tmp_path: Path) -> None:
    """It ignores the sense, as the page says; the objective's constant it takes."""
    model = MODELS[name]
    path, solution = tmp_path / "model.mps", tmp_path / "model.sol"
    path.write_bytes(FORMATS["mps"](model))
    turn = ["-max"] if model.sense == "max" else []
    command = [pulp.PULP_CBC_CMD().path, str(path), *turn, "-preprocess", "off", "-solve", "-solution", str(solution)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    expected = optimum(model)
    if done.returncode < 0:  # it dies over some infeasible models, after it has found them so
        assert expected is None
        return
    assert "read with 0 errors" in done.stdout
    first = solution.read_text().splitlines()[0]
    if expected is None:
        assert "nfeasible" in first
    else:
        assert first.startswith("Optimal")
        assert float(first.rsplit(maxsplit=1)[1]) == pytest.approx(expected, abs=0.01, rel=1e-12)


@each_model
def test_cpsat_parses_its_proto(name: str) -> None:
    """By the public class of the message, and solved by the public interface."""
    proto = cp_model_pb2.CpModelProto()
    proto.ParseFromString(FORMATS["cp-sat"](MODELS[name]))
    model = cp_model.CpModel()
    model.proto.parse_text_format(str(proto))
    solver = cp_model.CpSolver()
    solver.parameters.catch_sigint_signal = False
    solver.parameters.num_workers = 1
    status = solver.solve(model)
    expected = optimum(MODELS[name])
    if expected is None:
        assert status == cp_model.INFEASIBLE
    else:
        assert status == cp_model.OPTIMAL
        assert round(solver.objective_value) == expected


def test_mps_by_hand() -> None:
    """The covering model, whole: two ranges, an offset with its sign turned, bounds that are not left to defaults."""
    assert (
        FORMATS["mps"](covering()).decode()
        == """\
NAME          placeopt
OBJSENSE
    MIN
ROWS
 N  obj
 G  r0
 G  r1
COLUMNS
    MARKER                 'MARKER'                 'INTORG'
    x0        obj       5
    x0        r0        2
    x0        r1        1
    x1        obj       4
    x1        r0        1
    x1        r1        3
    MARKER                 'MARKER'                 'INTEND'
RHS
    RHS       obj       3
    RHS       r0        7
    RHS       r1        9
RANGES
    RNG       r0        92
    RNG       r1        90
BOUNDS
 UP BND       x0        9
 UP BND       x1        9
ENDATA
"""
    )


@pytest.mark.parametrize("form", ["mps", "lp"])
def test_crossed_bounds_stay_infeasible(form: str, tmp_path: Path) -> None:
    """3 <= 2x <= 3 has no integer solution: divided by two its bounds cross, and a range would lose its sign."""
    builder = ModelBuilder()
    x = builder.add_variables(0, 5, 1)
    builder.add_row(x, [2], 3, 3)
    builder.set_objective(x, [1], "max")
    path = tmp_path / f"model.{form}"
    path.write_bytes(FORMATS[form](builder.build()))
    h = highspy.Highs()
    h.setOptionValue("output_flag", False)
    h.readModel(str(path))
    h.run()
    assert h.getModelStatus() == highspy.HighsModelStatus.kInfeasible


def test_lp_by_hand() -> None:
    """The same: ranges are two rows each."""
    assert (
        FORMATS["lp"](covering()).decode()
        == """\
Minimize
 obj: +5 x0 +4 x1 -3
Subject To
 r0: +2 x0 +1 x1 >= 7
 r0_upper: +2 x0 +1 x1 <= 99
 r1: +1 x0 +3 x1 >= 9
 r1_upper: +1 x0 +3 x1 <= 99
Bounds
 0 <= x0 <= 9
 0 <= x1 <= 9
General
 x0
 x1
End
"""
    )


@pytest.mark.parametrize("form", list(FORMATS))
def test_same_model_same_bytes(form: str) -> None:
    """No names that depend on a hash, no time."""
    assert len({hashlib.sha256(FORMATS[form](hard())).digest() for _ in range(3)}) == 1


@pytest.mark.parametrize("form", list(FORMATS))
def test_empty_models_are_written(form: str) -> None:
    """A round without jobs; nobody needs to solve it, but nothing may fail."""
    builder = ModelBuilder()
    builder.set_objective([], [], "max", offset=3)
    assert FORMATS[form](builder.build())


@pytest.mark.skipif(shutil.which("scip") is None and shutil.which("glpsol") is None, reason="neither is installed")
def test_another_program_reads_mps(tmp_path: Path) -> None:
    """Where there is one more reader, it should like the file."""
    path = tmp_path / "model.mps"
    path.write_bytes(FORMATS["mps"](covering()))
    program = shutil.which("glpsol")
    command = [program, "--freemps", str(path)] if program else ["scip", "-f", str(path)]
    assert "19" in subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout
