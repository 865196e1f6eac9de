"""
Models as text and bytes that other programs read: MPS and LP, as HiGHS writes them, and CP-SAT's protocol buffer.

Variables are called ``c0, c1, ...`` and rows ``r0, r1, ...``, in the order of the model; a row stands as it is
stored, divided by its greatest common divisor. Sense and offset of the objective are kept, so what another solver
calls the optimum is our objective. Two known exceptions: CBC ignores the sense of an MPS file (give it ``-max`` for a
maximum), and the LP format has no ranges, so a row with two different bounds becomes two, ``r0lo`` and ``r0up``.
"""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

import numpy as np

from placeopt.linear import NO_LOWER, NO_UPPER, LinearModel


def _by_highs(suffix: str, model: LinearModel) -> bytes:
    """
    Write a model as MPS or LP; numbers have up to 15 digits.

    In MPS a row whose lower bound is above its upper one would lose its sign with its range: an empty row of at least 1
    says instead that there is no solution.
    """
    import highspy

    from placeopt.solvers.highs import pass_model

    crossed = model.row_lower > model.row_upper
    if crossed.any():
        model = replace(
            model,
            row_lower=np.append(np.where(crossed, NO_LOWER, model.row_lower), 1),
            row_upper=np.append(np.where(crossed, NO_UPPER, model.row_upper), NO_UPPER),
            row_start=np.append(model.row_start, model.row_start[-1]),
        )
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    taken = pass_model(solver, model, np.ones(model.num_variables, dtype=bool))
    return _written(suffix, lambda path: taken and solver.writeModel(path) != highspy.HighsStatus.kError)


def cpsat(model: LinearModel) -> bytes:
    """Serialise a model as CP-SAT's ``CpModelProto``, binary, as its Python, C++ and Java interfaces read it."""
    from ortools.sat.python import cp_model_helper

    from placeopt.solvers.cpsat import _proto
    from placeopt.solvers.result import SolveOptions

    proto = _proto(model, SolveOptions(0.0))
    if model.offset and not proto.has_objective():  # left out there, for a solve needs none
        sign = -1 if model.sense == "max" else 1
        proto.objective.offset, proto.objective.scaling_factor = sign * model.offset, sign
    return _written("pb", lambda path: cp_model_helper.CpSatHelper.write_model_to_file(proto, path))


def _written(suffix: str, write: Callable[[str], bool]) -> bytes:
    """Return what a solver writes; it takes the name of a file, and its form from that."""
    with tempfile.TemporaryDirectory(prefix="placeopt-") as folder:
        path = Path(folder, f"model.{suffix}")
        if not write(str(path)):
            raise OSError(f"{path}: the solver could not write its model")
        return path.read_bytes()


FORMATS: Mapping[str, Callable[[LinearModel], bytes]] = MappingProxyType(
    {"mps": partial(_by_highs, "mps"), "lp": partial(_by_highs, "lp"), "cp-sat": cpsat}
)
"""What can be written, by the names that the command line uses."""
