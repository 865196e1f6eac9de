"""
A bound that holds exactly, from duals that only hold roughly.

Weak duality needs no optimal duals and no tolerances: *any* multipliers give a bound, good ones give a good bound.
So the duals of an LP solver are taken as a suggestion, turned into integers, and the bound is worked out exactly.
"""

import math

import numpy as np
from numpy.typing import NDArray

from placeopt.linear import NO_LOWER, NO_UPPER, IntArray, LinearModel

FRACTION_BITS = 32
"""Binary digits kept behind the point of a multiplier, where they fit: finer than what LP solvers call equal."""
LIMB_BITS = np.iinfo(np.int64).bits - 1 - 2
"""Of the 63 binary digits of a sum those that its terms may fill; a multiplier beyond is an accident."""


def dual_bound(model: LinearModel, duals: NDArray[np.float64]) -> int:
    """
    Bound on the objective of every solution of ``model``, relaxed or integer, proven by ``duals``.

    ``model``: The model; its variable bounds are finite, so there always is a bound. ``duals``: Shape ``(m,)``,
    multipliers of the rows such that ``objective - duals @ A`` are the reduced costs (for either sense). Any numbers
    will do: those with a sign that points at a missing row bound, and those that are not finite or beyond all reason,
    count as 0.

    For ``max`` and multipliers ``y``, with ``b`` the upper row bound where ``y > 0`` and the lower where ``y < 0``::

        bound = b @ y + sum over j of max over x_j in [lower_j, upper_j] of (c_j - (y @ A)_j) * x_j

    ``min c`` is ``-max -c``, with ``-y``. ``y`` is scaled by a power of two and rounded before anything is summed;
    from there on all numbers are integers. Where a multiplier is 0 it stays 0, so slack rows cost nothing.

    Returns at least (``max``) or at most (``min``) the objective of every solution; never worse than the trivial bound,
    which is what zero duals prove.
    """
    if len(duals) != model.num_rows:
        raise ValueError(f"{len(duals)} duals for {model.num_rows} rows")
    sign = 1 if model.sense == "max" else -1
    trivial = sign * trivial_bound(model)
    proven = _lagrangian(model, sign, _usable(model, duals, sign))
    return sign * (trivial if proven is None else min(proven, trivial))


def trivial_bound(model: LinearModel) -> int:
    """What the variable bounds alone prove, rows left aside; exact."""
    best = np.maximum if model.sense == "max" else np.minimum
    return int(best(model.objective * model.lower, model.objective * model.upper).sum()) + model.offset


def _usable(model: LinearModel, duals: NDArray[np.float64], sign: int) -> NDArray[np.float64]:
    """The multipliers for a maximisation, without those that lean on a row bound that is not there."""
    multipliers = sign * np.where(np.abs(duals) < 2.0**LIMB_BITS, duals, 0.0)  # NaN compares false
    missing = np.where(multipliers > 0, model.row_upper == NO_UPPER, model.row_lower == NO_LOWER)
    return np.where(missing, 0.0, multipliers)


def _lagrangian(model: LinearModel, sign: int, multipliers: NDArray[np.float64]) -> int | None:
    """
    The bound of the Notes above for the maximisation of ``sign * objective``; ``None`` if nothing fits.

    A scaled multiplier is split into two limbs, each so small that its products with a whole column stay in int64:
    the work per non-zero is numpy's, and only the sums per row and per column are Python integers.
    """
    heaviest = np.bincount(model.columns, weights=np.abs(model.coefficients)).max(initial=1.0)
    limb_bits = LIMB_BITS - math.ceil(math.log2(heaviest))
    magnitude = math.ceil(math.log2(np.abs(multipliers).max(initial=1.0) + 1.0))
    bits = min(FRACTION_BITS, 2 * limb_bits - magnitude)
    if limb_bits <= 0 or bits < 0:
        return None
    scaled = np.rint(np.ldexp(multipliers, bits))  # floats, but every one an integer; so are the limbs
    high = np.trunc(np.ldexp(scaled, -limb_bits))
    low = scaled - np.ldexp(high, limb_bits)
    integer = _wide(high) * (1 << limb_bits) + _wide(low)  # (m,), the multipliers times 2**bits
    covered = _wide(_column_sums(model, high)) * (1 << limb_bits) + _wide(_column_sums(model, low))

    reduced = _wide(sign * model.objective) * (1 << bits) - covered
    right = np.where(multipliers > 0, model.row_upper, np.where(multipliers < 0, model.row_lower, 0))
    at_best = np.where(reduced > 0, model.upper, model.lower)
    total = int(integer.dot(_wide(right))) + int(reduced.dot(_wide(at_best)))
    return (total >> bits) + sign * model.offset


def _column_sums(model: LinearModel, limb: NDArray[np.float64]) -> IntArray:
    """``limb @ A``, shape ``(n,)``; zeros cost nothing."""
    sums = np.zeros(model.num_variables, dtype=np.int64)
    if limb.any():
        weights = np.repeat(limb.astype(np.int64), np.diff(model.row_start))
        np.add.at(sums, model.columns, model.coefficients * weights)
    return sums


def _wide(array: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.object_]:
    """As Python integers, which do not overflow."""
    return array.astype(np.int64).astype(object)
