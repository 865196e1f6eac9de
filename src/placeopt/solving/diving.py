"""
Diving: a solution of a linear relaxation made integer, one group of columns after the other, by solving it again.

Relaxations over GPU patterns have tens of thousands of columns, of which a solution uses some hundred: the dive goes
on with those that the relaxation prices near to use.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from placeopt.linear import IntArray, LinearModel
from placeopt.solvers.result import Solution

WHOLE = 1e-6
"""Values so near to an integer count as one."""
UP_SHARE = 0.25
"""Of the columns that are fractions, those rounded up at once; only where most of a unit is used anyway."""
PATTERNS_PER_ROW = 1
"""Columns that a dive keeps of those that it may leave out, for each row of the model."""


def dive(
    model: LinearModel,
    relaxed: np.ndarray,
    groups: tuple[IntArray, ...],
    solve: Callable[[LinearModel], Solution],
    hopeless: Callable[[np.ndarray], bool],
) -> IntArray | None:
    """
    Return values that are integers in the columns of ``groups``, made so one group after the other.

    None if a solve finds nothing, be it for want of time, or if the values on the way are ``hopeless``.

    What is used never falls below its floor again; the columns with most of a unit are rounded up, as long as the rest
    can follow, and those that cannot be are kept down. The model must allow every rounding down.
    """
    lower, upper, values = model.lower.copy(), model.upper.copy(), relaxed
    for columns in groups:
        step = UP_SHARE
        while True:
            if hopeless(values):
                return None
            floor = np.floor(values[columns] + WHOLE).astype(np.int64)
            part = np.where(upper[columns] > floor, values[columns] - floor, 0)
            parts = np.flatnonzero(part > WHOLE)
            if not len(parts):
                break
            lower[columns] = np.maximum(lower[columns], floor)
            first = parts[np.argsort(-part[parts], kind="stable")][: max(1, int(step * len(parts)))]
            up = first[part[first] > 0.5] if part[first[0]] > 0.5 else first[:1]
            raised = lower.copy()
            raised[columns[up]] = floor[up] + 1
            solution = solve(replace(model, lower=raised, upper=upper.copy()))
            if solution.relaxed_values is not None:
                lower, values = raised.copy(), solution.relaxed_values
            elif solution.status != "infeasible":
                return None
            elif len(up) > 1:
                step /= 4
            else:
                upper[columns[up]] = floor[up]
                solution = solve(replace(model, lower=lower.copy(), upper=upper.copy()))
                if solution.relaxed_values is None:
                    return None
                values = solution.relaxed_values
        lower[columns] = upper[columns] = np.floor(values[columns] + WHOLE).astype(np.int64)
    return np.floor(values + WHOLE).astype(np.int64)


def near_use(
    model: LinearModel, relaxed: np.ndarray, duals: np.ndarray, optional: IntArray
) -> tuple[LinearModel, IntArray]:
    """
    Return the model without the columns of ``optional`` that the duals price far from use, and the columns kept.

    ``relaxed``, ``duals``: A solution of the relaxation, shapes (n,) and (m,). A column left out is 0, which the model
    must allow.
    """
    gain = model.objective - np.bincount(
        model.columns, model.coefficients * duals[model.row_of_nonzero], minlength=model.num_variables
    )
    distance = np.where(relaxed[optional] > WHOLE, -1.0, np.abs(gain[optional]))
    most = PATTERNS_PER_ROW * model.num_rows
    keep = np.ones(model.num_variables, dtype=bool)
    keep[optional[np.argsort(distance, kind="stable")[most:]]] = False
    kept = np.flatnonzero(keep)
    number = np.cumsum(keep) - 1
    stays = keep[model.columns]
    count = np.bincount(model.row_of_nonzero[stays], minlength=model.num_rows)
    return (
        replace(
            model,
            lower=model.lower[kept],
            upper=model.upper[kept],
            objective=model.objective[kept],
            row_start=np.concatenate(([0], np.cumsum(count))),
            columns=number[model.columns[stays]],
            coefficients=model.coefficients[stays],
        ),
        kept,
    )
