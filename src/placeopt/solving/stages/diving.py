"""Diving: integers from a relaxation by rounding some columns, solving again, and so on."""

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
