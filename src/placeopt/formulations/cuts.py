"""
Rows that hold on every node, summed over the nodes of a class: how far what needs of a resource can be packed.

The row of a class lets two nodes of 16 cores take 11 + 6 and 11 + 4 cores, for together they have enough. A dual
feasible function f gives every need x of a node's room C a weight, such that needs that fit together never weigh more
than the room (Fekete and Schepers, Mathematical Programming 91, 2001). So the sum of f(x) over all that a class takes
is at most its number of nodes times f(C). Three families, in integers:

- threshold e: C where x > C - e, 0 where x < e, else x. (What leaves less than e on a node may as well fill it.)
- steps k: k x where (k + 1) x is a multiple of C, else C floor((k + 1) x / C); f(C) = k C.
- remainder d: floor(x / d) (d - C mod d) + max(0, x mod d - C mod d); f(C) = floor(C / d) (d - C mod d). (As many needs
  of d as fit leave C mod d: so much of each may be waste. Mixed-integer rounding of the node's row.)

Only rows that a solution of the relaxation breaks are added.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from placeopt.formulations.gpu_patterns import GpuPatterns
from placeopt.linear import NO_LOWER, LinearModel
from placeopt.problem import RESOURCES, UNLIMITED, IntArray, State

STEPS = 8
EACH = 2
"""Rows added for a resource of a class of nodes at a time: those that are broken most."""
MOST_CELLS = 2_000_000
"""Functions x demands looked at together; where demands are of more sizes, only some sizes make functions."""
BROKEN = 1e-4
"""By so much of the class's room at least."""


def with_cuts(gpu_patterns: GpuPatterns, state: State, values: np.ndarray) -> GpuPatterns | None:
    """Return the relaxation with rows that ``values``, a solution of it, break; None if there are none."""
    problem, options = state.problem, state.problem.options
    amount = values[gpu_patterns.bundle]
    option = gpu_patterns.start_option[gpu_patterns.bundle_start]
    rows: list[tuple[IntArray, IntArray, int]] = []
    for r in range(len(RESOURCES)):
        need = (options.demand[:, r] * options.bundle_workers)[option]
        free = np.maximum(state.node_free[:, r], 0)
        for c in np.unique(gpu_patterns.bundle_class[(need > 0) & (amount > 0)]).tolist():
            nodes = free[problem.node_class == c]
            room, count = int(nodes.max()), int((nodes > 0).sum())
            if room >= UNLIMITED:
                continue
            selected = np.flatnonzero((gpu_patterns.bundle_class == c) & (need > 0))
            weights, most = dual_feasible(need[selected], room)
            excess = weights @ amount[selected] / (most * count) - 1
            worst = [i for i in np.argsort(-excess, kind="stable")[:EACH].tolist() if excess[i] > BROKEN]
            rows.extend((gpu_patterns.bundle[selected], weights[i], int(most[i]) * count) for i in worst)
    return replace(gpu_patterns, model=_extended(gpu_patterns.model, rows)) if rows else None


def dual_feasible(need: IntArray, room: int) -> tuple[IntArray, IntArray]:
    """
    Return weights under which whatever fits together into ``room`` weighs at most so much.

    ``need``: Shape (n,): at most ``room`` each.

    Returns weights, shape (functions, n), and what a full node weighs, shape (functions,).
    """
    most = max(MOST_CELLS // max(len(need), 1), STEPS)
    threshold = _some(np.unique(need[2 * need <= room]), most)[:, None]
    by_threshold = np.where(need > room - threshold, room, np.where(need < threshold, 0, need))
    steps = np.arange(1, STEPS + 1, dtype=np.int64)[:, None]
    whole, rest = np.divmod((steps + 1) * need, room)
    by_steps = np.where(rest == 0, steps * need, room * whole)
    divisor = _some(np.unique(need), most)[:, None]
    waste = room % divisor
    whole, rest = np.divmod(need, divisor)
    by_remainder = whole * (divisor - waste) + np.maximum(rest - waste, 0)
    full = (
        np.full(len(threshold), room, dtype=np.int64),
        steps[:, 0] * room,
        ((room // divisor) * (divisor - waste))[:, 0],
    )
    return np.concatenate([by_threshold, by_steps, by_remainder]), np.concatenate(full)


def _some(sizes: IntArray, most: int) -> IntArray:
    """At most so many of them, evenly chosen."""
    return sizes if len(sizes) <= most else sizes[np.linspace(0, len(sizes) - 1, most).astype(np.int64)]


def _extended(model: LinearModel, rows: list[tuple[IntArray, IntArray, int]]) -> LinearModel:
    """Append rows (columns, coefficients, upper bound), each divided by its greatest common divisor."""
    columns, coefficients, upper, divisors = [], [], [], []
    for column, coefficient, most in rows:
        kept = np.flatnonzero(coefficient)
        order = kept[np.argsort(column[kept])]
        divisor = int(np.gcd.reduce(coefficient[order]))
        columns.append(column[order])
        coefficients.append(coefficient[order] // divisor)
        upper.append(most // divisor)
        divisors.append(divisor)
    ends = model.row_start[-1] + np.cumsum([len(column) for column in columns])
    return replace(
        model,
        row_start=np.concatenate([model.row_start, ends]),
        columns=np.concatenate([model.columns, *columns]),
        coefficients=np.concatenate([model.coefficients, *coefficients]),
        row_lower=np.concatenate([model.row_lower, np.full(len(rows), NO_LOWER, dtype=np.int64)]),
        row_upper=np.concatenate([model.row_upper, upper]),
        row_divisor=np.concatenate([model.row_divisor, divisors]),
    )
