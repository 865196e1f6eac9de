"""
Diving: a solution of a linear relaxation made integer, one group of columns after the other, by solving it again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placeopt.solvers.reading import LOOSE

if TYPE_CHECKING:
    from placeopt.linear import IntArray
    from placeopt.solvers.result import Status

WHOLE = LOOSE
"""Values so near to an integer count as one."""
UP_SHARE = 1 / 4
"""Of the columns that are fractions, those rounded up at once; only where most of a unit is used anyway."""


class Relaxed(NamedTuple):
    """What a linear program gave: values only where it is ``optimal``."""

    status: Status
    values: np.ndarray | None = None  # (n,)
    duals: np.ndarray | None = None  # (m,), also of one that was cut short
    message: str = ""


def rounded_down(values: np.ndarray) -> IntArray:
    """Return the integers below ``values``, or next to them within `WHOLE`."""
    floor: IntArray = np.floor(values + WHOLE).astype(np.int64)
    return floor


def dive(
    lower: IntArray,
    upper: IntArray,
    relaxed: np.ndarray,
    groups: tuple[IntArray, ...],
    solve: Callable[[IntArray, IntArray], Relaxed],
) -> IntArray | None:
    """
    Return values that are integers in the columns of ``groups``, made so one group after the other.

    None if a solve finds nothing, be it for want of time.

    What is used never falls below its floor again; the columns with most of a unit are rounded up, as long as the rest
    can follow, and those that cannot be are kept down. The model must allow every rounding down.

    - ``lower``, ``upper``: Shape (n,) each: bounds of the columns.
    - ``relaxed``: Shape (n,): the optimum within these bounds.
    - ``solve``: Returns the optimum within other bounds.
    """
    lower, upper, values = lower.copy(), upper.copy(), relaxed
    for columns in groups:
        step = UP_SHARE
        while True:
            floor = rounded_down(values[columns])
            part = np.where(upper[columns] > floor, values[columns] - floor, 0)
            parts = np.flatnonzero(part > WHOLE)
            if not len(parts):
                break
            lower[columns] = np.maximum(lower[columns], floor)
            first = parts[np.argsort(-part[parts], kind="stable")][: max(1, int(step * len(parts)))]
            up = first[: max(1, np.count_nonzero(part[first] > 1 / 2))]
            raised = lower.copy()
            raised[columns[up]] = floor[up] + 1
            found = solve(raised, upper)
            if found.values is not None:
                lower, values = raised, found.values
            elif found.status != "infeasible":
                return None
            elif len(up) > 1:
                step /= 4
            else:
                upper[columns[up]] = floor[up]
                found = solve(lower, upper)
                if found.values is None:
                    return None
                values = found.values
        lower[columns] = upper[columns] = rounded_down(values[columns])
    return rounded_down(values)
