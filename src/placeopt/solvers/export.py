"""
Models as text and bytes that other programs read: MPS, LP and CP-SAT's protocol buffer.

Variables are called ``x0, x1, ...`` and rows ``r0, r1, ...``, in the order of the model; a row stands as it is
stored, divided by its greatest common divisor. Sense and offset of the objective are kept, so what another solver
calls the optimum is our objective. Two known exceptions: CBC ignores the sense of an MPS file (give it ``-max`` for a
maximum), and the LP format has no ranges, so a row with two different bounds becomes two, the second ``r0_upper``.

All are made from the arrays: MPS takes 1.6 s, LP 1.1 s per million non-zeros.
"""

import itertools
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np

from placeopt.linear import NO_LOWER, NO_UPPER, LinearModel

TERMS_PER_LINE = 8
"""Of an LP file; CPLEX reads no lines beyond 560 characters."""


def mps(model: LinearModel) -> bytes:
    """
    Write a model as MPS.

    Columns of the fields are kept as far as numbers are short enough, so that readers of the fixed format and of the
    free one agree. The constant of the objective is the negative of its right-hand side, as usual. A row whose lower
    bound is above its upper one has no range in MPS, where ranges lose their sign: an empty row ``never`` of at least 1
    says that there is no solution.
    """
    variables = [f"x{j:<8} " for j in range(model.num_variables)]
    rows = [f"r{i:<8} " for i in range(model.num_rows)]
    kinds = _kinds(model)
    lines = ["NAME          placeopt", "OBJSENSE", f"    {model.sense.upper()}", "ROWS", " N  obj"]
    lines += [f" {kind}  r{i}" for i, kind in enumerate(kinds)]
    crossed = bool((model.row_lower > model.row_upper).any())
    if crossed:
        lines.append(" G  never")
    lines += ["COLUMNS", "    MARKER                 'MARKER'                 'INTORG'"]
    lines += _column_lines(model, variables, rows)
    lines += ["    MARKER                 'MARKER'                 'INTEND'", "RHS"]
    if model.offset:
        lines.append(f"    RHS       obj       {-model.offset}")
    lower, upper = model.row_lower.tolist(), model.row_upper.tolist()
    bounds = list(zip(rows, kinds, lower, upper, strict=True))
    sides = ((row, high if kind == "L" else low) for row, kind, low, high in bounds if kind != "N")
    lines += [f"    RHS       {row}{side}" for row, side in sides if side]
    if crossed:
        lines.append("    RHS       never     1")
    ranged = ((row, low, high) for row, kind, low, high in bounds if kind == "G" and low < high != NO_UPPER)
    ranges = [f"    RNG       {row}{high - low}" for row, low, high in ranged]
    if ranges:
        lines += ["RANGES", *ranges]
    lines.append("BOUNDS")
    for variable, low, high in zip(variables, model.lower.tolist(), model.upper.tolist(), strict=True):
        if low == high:
            lines.append(f" FX BND       {variable}{low}")
            continue
        if low:
            lines.append(f" LO BND       {variable}{low}")
        lines.append(f" UP BND       {variable}{high}")
    lines.append("ENDATA\n")
    return "\n".join(lines).encode("ascii")


def lp(model: LinearModel) -> bytes:
    """Write a model in the LP format of CPLEX, which most solvers read."""
    priced = np.flatnonzero(model.objective)
    terms = _terms(priced.tolist(), model.objective[priced].tolist())
    if model.offset or not terms:
        terms.append(f"{model.offset:+d}" if model.offset or not model.num_variables else "0 x0")
    lines = ["Maximize" if model.sense == "max" else "Minimize", " obj: " + _wrapped(terms), "Subject To"]
    entries = _terms(model.columns.tolist(), model.coefficients.tolist())
    bounds = zip(model.row_lower.tolist(), model.row_upper.tolist(), strict=True)
    for i, ((start, end), (low, high)) in enumerate(
        zip(itertools.pairwise(model.row_start.tolist()), bounds, strict=True)
    ):
        left = _wrapped(entries[start:end] or ["0 x0"])
        if low == high:
            lines.append(f" r{i}: {left} = {low}")
            continue
        if low != NO_LOWER:
            lines.append(f" r{i}: {left} >= {low}")
        if high != NO_UPPER:
            lines.append(f" r{i}{'' if low == NO_LOWER else '_upper'}: {left} <= {high}")
    lines.append("Bounds")
    limits = zip(model.lower.tolist(), model.upper.tolist(), strict=True)
    lines += [f" {low} <= x{j} <= {high}" for j, (low, high) in enumerate(limits)]
    if model.num_variables:
        lines += ["General", *(f" x{j}" for j in range(model.num_variables))]
    lines.append("End\n")
    return "\n".join(lines).encode("ascii")


def cpsat(model: LinearModel) -> bytes:
    """Serialise a model as CP-SAT's ``CpModelProto``, binary, as its Python, C++ and Java interfaces read it."""
    from ortools.sat.python import cp_model_helper

    from placeopt.solvers.cpsat import _proto
    from placeopt.solvers.result import SolveOptions

    proto = _proto(model, SolveOptions(0.0))
    if model.offset and not proto.has_objective():  # left out there, for a solve needs none
        sign = -1 if model.sense == "max" else 1
        proto.objective.offset, proto.objective.scaling_factor = sign * model.offset, sign
    with tempfile.TemporaryDirectory(prefix="placeopt-") as folder:  # the array interface writes to named files only
        path = Path(folder, "model.pb")
        if not cp_model_helper.CpSatHelper.write_model_to_file(proto, str(path)):
            raise OSError(f"{path}: CP-SAT could not write its model")
        return path.read_bytes()


FORMATS: Mapping[str, Callable[[LinearModel], bytes]] = MappingProxyType({"mps": mps, "lp": lp, "cp-sat": cpsat})
"""What can be written, by the names that the command line uses."""


def _kinds(model: LinearModel) -> list[str]:
    """The MPS type of every row; ``G`` also for ranges, ``N`` where there is no bound at all."""
    no_lower, no_upper = model.row_lower == NO_LOWER, model.row_upper == NO_UPPER
    kinds = np.where(no_lower, np.where(no_upper, "N", "L"), np.where(model.row_lower == model.row_upper, "E", "G"))
    return [str(kind) for kind in kinds]


def _column_lines(model: LinearModel, variables: list[str], rows: list[str]) -> list[str]:
    """One line an entry, column by column, the objective first; a column without entries gets a zero there."""
    priced = np.flatnonzero((model.objective != 0) | (np.bincount(model.columns, minlength=model.num_variables) == 0))
    column = np.concatenate([priced, model.columns])
    order = np.argsort(column, kind="stable")
    row = np.concatenate([np.full(len(priced), -1), model.row_of_nonzero])[order]
    coefficient = np.concatenate([model.objective[priced], model.coefficients])[order]
    names = [*rows, "obj       "]  # row -1 is the last
    entries = zip(column[order].tolist(), row.tolist(), coefficient.tolist(), strict=True)
    return [f"    {variables[j]}{names[i]}{value}" for j, i, value in entries]


def _terms(columns: list[int], coefficients: list[int]) -> list[str]:
    return [f"{value:+d} x{j}" for j, value in zip(columns, coefficients, strict=True)]


def _wrapped(terms: list[str]) -> str:
    """The terms on lines that every reader takes."""
    lines = (" ".join(terms[first : first + TERMS_PER_LINE]) for first in range(0, len(terms), TERMS_PER_LINE))
    return "\n   ".join(lines)
