"""What is written, read and solved by others, gives our optimum."""

import functools
import hashlib
import subprocess
from collections.abc import Callable
from pathlib import Path

import highspy
import numpy as np
import pulp
import pytest
from ortools.sat import cp_model_pb2
from ortools.sat.python import cp_model

from helpers.solver_models import INFEASIBLE, KNOWN, covering, hard, model, nothing, placement
from placeopt.linear import NO_LOWER, NO_UPPER, LinearModel
from placeopt.solvers import FORMATS, SolveOptions, load


def general_integers(rng: np.random.Generator) -> LinearModel:
    """Negative bounds, one-sided, two-sided and equal rows, columns and rows without entries, an offset."""
    n, m = int(rng.integers(2, 7)), int(rng.integers(1, 6))
    low = rng.integers(-6, 3, n)
    high = low + rng.integers(0, 9, n)
    matrix = rng.integers(-5, 6, (m, n)) * (rng.random((m, n)) < 0.7)
    middle = matrix @ (low + rng.integers(0, 2, n))
    least = np.where(rng.random(m) < 0.3, NO_LOWER, middle - rng.integers(0, 5, m))
    most = np.where(rng.random(m) < 0.3, NO_UPPER, middle + rng.integers(0, 5, m))
    costs = (rng.integers(-9, 10, n) * (rng.random(n) < 0.8)).tolist()
    sense, offset = "max" if rng.random() < 0.5 else "min", int(rng.integers(-50, 50))
    return model(sense, costs, *zip(matrix, least, most, strict=True), low=low, high=high, offset=offset)


RNG = np.random.default_rng(11)
MODELS = {
    **{name: make() for name, (make, _) in KNOWN.items() if make is not nothing},
    **{name: INFEASIBLE[name] for name in ("parity", "2x = 3")},
    **{f"placement-{i}": placement(RNG) for i in range(4)},
    **{f"general-{i}": general_integers(RNG) for i in range(6)},
    # sixteen digits do not fit the fields of the fixed MPS format
    "large": model(
        "max", [10**6, -1], ([1_000_003, 1], NO_LOWER, 1_234_567_890_123), low=[0, -(10**9)], high=10**9,
        offset=-987_654_321_012,
    ),
}  # fmt: skip


@functools.cache
def optimum(name: str) -> int | None:
    """By two of our own solvers; ``None`` if there is none."""
    ours = [load(solver)(MODELS[name], SolveOptions(20.0)) for solver in ("cpsat", "highs")]
    assert ours[0].objective == ours[1].objective
    assert {solution.status for solution in ours} <= {"optimal", "infeasible"}
    return ours[0].objective


def by_highs(model: LinearModel, form: str, path: Path) -> float | None:
    path = path.with_suffix(f".{form}")
    path.write_bytes(FORMATS[form](model))
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("mip_rel_gap", 0.0)
    assert highs.readModel(str(path)) == highspy.HighsStatus.kOk
    highs.run()
    if highs.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
        return None
    assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return float(highs.getInfo().objective_function_value)


def by_cbc(model: LinearModel, form: str, path: Path) -> float | None:
    """CBC ignores the sense, as the page says; the objective's constant it takes."""
    path.write_bytes(FORMATS[form](model))
    turn, solution = ["-max"] if model.sense == "max" else [], path.with_suffix(".sol")
    command = [pulp.PULP_CBC_CMD().path, str(path), *turn, "-preprocess", "off", "-solve", "-solution", str(solution)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode < 0:  # it dies over some infeasible models, after it has found them so
        return None
    assert "read with 0 errors" in done.stdout
    first = solution.read_text().splitlines()[0]
    if "nfeasible" in first:
        return None
    assert first.startswith("Optimal")
    return float(first.rsplit(maxsplit=1)[1])


def by_cpsat(exported: LinearModel, form: str, _: Path) -> float | None:
    """By the public class of the message, and solved by the public interface."""
    proto = cp_model_pb2.CpModelProto()
    proto.ParseFromString(FORMATS[form](exported))
    model = cp_model.CpModel()
    model.proto.parse_text_format(str(proto))
    solver = cp_model.CpSolver()
    solver.parameters.catch_sigint_signal = False
    solver.parameters.num_workers = 1
    status = solver.solve(model)
    assert status in (cp_model.OPTIMAL, cp_model.INFEASIBLE, cp_model.MODEL_INVALID)  # the last: bounds that cross
    return round(solver.objective_value) if status == cp_model.OPTIMAL else None


@pytest.mark.parametrize("name", list(MODELS))
@pytest.mark.parametrize(
    ("form", "solved"), [("mps", by_highs), ("lp", by_highs), ("mps", by_cbc), ("cp-sat", by_cpsat)]
)
def test_others_find_our_optimum(form: str, solved: Callable, name: str, tmp_path: Path) -> None:
    """With sense, offset, ranges and integrality."""
    found, expected = solved(MODELS[name], form, tmp_path / "model.mps"), optimum(name)
    assert found == (None if expected is None else pytest.approx(expected, abs=0.01, rel=1e-12))


def test_mps_keeps_the_columns_of_the_fixed_format() -> None:
    """Readers of the free format do not see it: fields begin in columns 2, 5, 15 and 25."""
    lines = FORMATS["mps"](covering()).decode().splitlines()
    for section, field in (("COLUMNS", "    c0        Obj       5"), ("RANGES", "    RANGE     r0        92"),
                           ("BOUNDS", " UI BOUND     c0        9")):  # fmt: skip
        assert field in lines[lines.index(section) :]


@pytest.mark.parametrize("form", list(FORMATS))
def test_same_model_same_bytes(form: str) -> None:
    """No names that depend on a hash, no time."""
    assert len({hashlib.sha256(FORMATS[form](hard())).digest() for _ in range(3)}) == 1


@pytest.mark.parametrize("form", list(FORMATS))
def test_empty_models_are_written(form: str) -> None:
    """A round without jobs; nobody needs to solve it, but nothing may fail."""
    assert FORMATS[form](nothing())
