"""A bound on value in milliseconds: what fits into the cluster as if it were one node, by a price of each resource."""

from __future__ import annotations

import numpy as np

from placeopt.problem import UNLIMITED, IntArray, State
from placeopt.problem.free_capacity import gpu_milli_left, waiting_per_class
from placeopt.terms.objective import trivial_value_bound

RELAXES = ("where free capacity is: all nodes count as one", "what running jobs that may change hold")
STEPS = 20
"""Halvings of the range of a price, after which it is known to a millionth of the range."""
GAIN = 1 / 1024
"""Of a turn over all prices: less ends the search."""
MOST = 1 << 54
"""What prices add up to stays below it, so that sums over a few hundred resources are exact in 64 bits."""


def bound_by_totals(state: State) -> int:
    """
    Bound the value of any plan that keeps what ``state`` holds.

    With a price of each resource, a job gains at most what its best option is worth above the price of what it asks
    for, and all that is free costs its price: together at least what any choice of jobs that fits is worth. The prices
    are searched one after the other, in integers, so that any of them bounds. Running jobs that may change count with
    the most that they can be worth, and as if they held nothing.
    """
    problem, options = state.problem, state.problem.options
    jobs = waiting_per_class(state)
    changeable = [job for job in problem.running if state.placements[job] is None]
    jobs -= np.bincount(problem.job_class[changeable], minlength=len(jobs))
    possible = np.flatnonzero(options.node_class_ok.any(axis=1) & (jobs[options.job_class] > 0) & (options.value > 0))
    trivial, most = trivial_value_bound(problem), options.value[possible]
    all_placed = int((jobs * problem.most_of_class(options.value * options.node_class_ok.any(axis=1))).sum())
    need, free = _amounts(state, possible)
    fits = (need <= free).all(axis=1)
    if not fits.any():
        return trivial - all_placed
    waiting = _Waiting(jobs, options.job_class[possible[fits]], most[fits], need[fits], free)
    return trivial - all_placed + waiting.least_bound(MOST // max(all_placed, 1))


def _amounts(state: State, option: IntArray) -> tuple[IntArray, IntArray]:
    """Return what jobs in each option ask for in total, (o, R), and what is free of it, (R,)."""
    problem, options = state.problem, state.problem.options
    need, free = [options.workers[option] * of for of in options.demand[option].T], list(state.node_free.T)
    if problem.jobs_per_gpu == 1:
        need.append(1000 * options.gpus[option] * options.workers[option])
    elif problem.shares_bind:
        need.append(options.total_milli[option])
    if len(need) > len(free):
        free.append(gpu_milli_left(state))
    totals = np.array([np.clip(of, 0, UNLIMITED // len(of)).sum() for of in free], dtype=np.int64)
    return np.column_stack(need), totals


class _Waiting:
    """Options of waiting jobs, (o,), by class: what each is worth, and asks for of what is ``free``, (R,)."""

    def __init__(self, jobs: IntArray, of_class: IntArray, value: IntArray, need: IntArray, free: IntArray) -> None:
        self._first = np.flatnonzero(np.diff(of_class, prepend=-1))
        self._length = np.diff(self._first, append=len(of_class))
        self._jobs, self._value, self._need, self._free = jobs[of_class[self._first]], value, need, free

    def least_bound(self, unit: int) -> int:
        """Return the least bound found with prices in parts of a ``unit`` of value."""
        all_placed = int(self._jobs @ np.maximum.reduceat(self._value, self._first))
        scarce = np.flatnonzero(self._jobs @ np.maximum.reduceat(self._need, self._first, axis=0) > self._free).tolist()
        prices = np.zeros(len(self._free), dtype=np.int64)
        bound, before = all_placed, np.inf
        while before - bound > GAIN * bound:
            before = bound
            for r in scarce:
                low, high = 0, all_placed * unit // max(int(self._free[r]), 1)  # nothing is worth a higher price
                for _ in range(STEPS):
                    prices[r] = (low + high) // 2
                    gain, used = self._chosen(prices, unit, r)
                    bound = min(bound, (gain + int(prices @ self._free)) // unit)
                    low, high = (int(prices[r]), high) if used > self._free[r] else (low, int(prices[r]))
        return bound

    def _chosen(self, prices: IntArray, unit: int, r: int) -> tuple[int, int]:
        """Return what all jobs gain above the prices, each by its best option, and what they use of a resource."""
        net = self._value * unit - self._need @ prices
        best = np.maximum(np.maximum.reduceat(net, self._first), 0)
        chosen = (net > 0) & (net == np.repeat(best, self._length))
        used = np.maximum.reduceat(self._need[:, r] * chosen, self._first)
        return int(self._jobs @ best), int(self._jobs @ used)
