"""Mixed-integer models in floating point, as solvers read them from files, and the check of their solutions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from placeopt.benchmark.solu import is_equal
from placeopt.linear import IntArray, Sense

FloatArray = NDArray[np.float64]

TOLERANCE = 1e-6
"""
What a solution may break: a row by this times the largest of 1, its side and its largest term, a bound of a continuous
variable by this times the largest of 1 and the bound. Integers have no tolerance.
"""
FAULTS = 20
"""Most faults of a kind that are listed."""


@dataclass(frozen=True, eq=False)
class MixedModel:
    """
    Maximise or minimise ``objective @ x + offset`` over ``x``, ``row_lower <= A x <= row_upper``.

    With ``n`` variables, ``m`` rows and ``z`` non-zeros. Numbers are the doubles nearest to those of the file, as in
    every solver; a bound that is missing is infinite.
    """

    lower: FloatArray
    upper: FloatArray
    integer: NDArray[np.bool_]
    """``lower``, ``upper``, ``integer``: Shape ``(n,)``, bounds, and which variables are integer."""
    row_start: IntArray
    columns: IntArray
    coefficients: FloatArray
    """``row_start``, ``columns``, ``coefficients``: Shapes ``(m + 1,)``, ``(z,)``, ``(z,)``: the rows of ``A``."""
    row_lower: FloatArray
    row_upper: FloatArray
    """``row_lower``, ``row_upper``: Shape ``(m,)``."""
    objective: FloatArray  # shape ``(n,)``
    offset: float
    sense: Sense
    reason: str
    """Why `placeopt.linear.LinearModel`, of bounded integers and integral coefficients, cannot state it."""

    @property
    def row_of_nonzero(self) -> IntArray:
        """Shape ``(z,)``: the row of every coefficient."""
        return np.repeat(np.arange(len(self.row_lower), dtype=np.int64), np.diff(self.row_start))

    @property
    def is_void(self) -> bool:
        """Whether crossed bounds, or a row without entries that excludes 0, leave no solution."""
        empty = self.row_start[1:] == self.row_start[:-1]
        excluded = empty & ((self.row_lower > 0) | (self.row_upper < 0))
        crossed = (self.lower > self.upper).any() or (self.row_lower > self.row_upper).any()
        return bool(crossed or excluded.any())

    def objective_value(self, values: FloatArray) -> float:
        """Return the objective with its offset at ``values``, shape ``(n,)``."""
        return float(np.dot(self.objective.astype(np.longdouble), values) + self.offset)

    def rounded(self, values: FloatArray) -> FloatArray:
        """Return ``values``, shape ``(n,)``, with the nearest integers where a variable is integer."""
        return np.where(self.integer, np.rint(values), values)

    def shuffled(self, seed: int) -> tuple[MixedModel, IntArray]:
        """Return the model with rows and columns shuffled, and the former place of each column, shape ``(n,)``."""
        random = np.random.default_rng(seed)
        before, row_before = random.permutation(len(self.lower)), random.permutation(len(self.row_lower))
        row = np.argsort(row_before)[self.row_of_nonzero]
        order = np.argsort(row, kind="stable")
        counts = np.bincount(row, minlength=len(self.row_lower))
        model = replace(
            self,
            lower=self.lower[before],
            upper=self.upper[before],
            integer=self.integer[before],
            row_start=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            columns=np.argsort(before)[self.columns][order],
            coefficients=self.coefficients[order],
            row_lower=self.row_lower[row_before],
            row_upper=self.row_upper[row_before],
            objective=self.objective[before],
        )
        return model, before

    def misfits(self, values: FloatArray, objective: float | None) -> list[str]:
        """
        Return the faults of values, shape ``(n,)``, and of the objective stated for them; empty if there are none.

        Integer variables must be integers within their bounds, exactly; all else holds within `TOLERANCE`.
        """
        if len(values) != len(self.lower):
            return [f"{len(values)} values for {len(self.lower)} variables"]
        if not np.isfinite(values).all():
            return ["a value is not finite"]
        broken = self.integer & (values != np.rint(values))
        faults = [f"variable {j} is {values[j]:.12g}, not an integer" for j in np.flatnonzero(broken)[:FAULTS]]
        slack = np.where(self.integer, 0.0, TOLERANCE)
        low, high = (_slack(bound) * slack for bound in (self.lower, self.upper))
        outside = (values < self.lower - low) | (values > self.upper + high)
        faults += [f"variable {j} is {values[j]:g}, outside its bounds" for j in np.flatnonzero(outside)[:FAULTS]]
        terms = self.coefficients.astype(np.longdouble) * values[self.columns]
        activity, largest = np.zeros(len(self.row_lower), dtype=np.longdouble), np.ones(len(self.row_lower))
        np.add.at(activity, self.row_of_nonzero, terms)
        np.maximum.at(largest, self.row_of_nonzero, np.abs(terms).astype(np.float64))
        low, high = (TOLERANCE * np.maximum(largest, _slack(side)) for side in (self.row_lower, self.row_upper))
        wrong = (activity < self.row_lower - low) | (activity > self.row_upper + high)
        faults += [f"row {i} does not hold" for i in np.flatnonzero(wrong)[:FAULTS]]
        actual = self.objective_value(values)
        if objective is None or not is_equal(actual, objective):
            faults.append(f"objective is stated as {objective}, but it is {actual:g}")
        return faults


def _slack(limit: FloatArray) -> FloatArray:
    """Return the size that a tolerance is relative to: at least 1, 1 where there is no limit."""
    return np.where(np.isfinite(limit), np.maximum(np.abs(limit), 1.0), 1.0)
