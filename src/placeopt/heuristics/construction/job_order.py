"""The order in which waiting jobs are placed: chosen by worth and cost, the hardest first."""

from __future__ import annotations

import numpy as np

from placeopt.heuristics.construction.guide import Guide
from placeopt.problem import BoolArray, IntArray, Problem

MOST_CELLS = 4_000_000
"""Jobs x units of share up to which the knapsack is solved; beyond, jobs are taken in their order while they fit."""
REACH = 3
"""Jobs are considered until together they ask for this multiple of what is free."""
DOMINANCE = 4.0
"""Weight of the least value against the dearest cost: value first, cost among equals."""


def choose(milli: IntArray, value: IntArray, dear: np.ndarray, capacity: int) -> np.ndarray:
    """
    Shape (n,): the jobs to take that fit into the GPU share ``capacity`` together.

    Most value, then least cost. GPU share ``milli``, ``value`` and cost ``dear``, which may be negative, have shape
    (n,), the best jobs first. Exact for the jobs looked at, by dynamic programming over the capacity in units that all
    shares are multiples of. It fills gaps that taking one job after the other leaves.
    """
    taken = np.zeros(len(milli), dtype=bool)
    fits = np.flatnonzero(milli <= capacity)
    looked = fits[: int(np.searchsorted(np.cumsum(milli[fits]), REACH * capacity)) + 1]
    if not len(looked):
        return taken
    unit = max(int(np.gcd.reduce(milli[looked])), 1)
    cells = capacity // unit
    if len(looked) * (cells + 1) > MOST_CELLS:
        left = capacity
        for i in fits.tolist():
            if milli[i] <= left:
                taken[i] = True
                left -= int(milli[i])
        return taken
    worth = float(max(value[looked].min(), 1))
    gain = value[looked] * (DOMINANCE * max(float(np.abs(dear[looked]).max()), 1.0) / worth) - dear[looked]
    best, picks = np.zeros(cells + 1), np.zeros((len(looked), cells + 1), dtype=bool)
    for i, (size, plus) in enumerate(zip((milli[looked] // unit).tolist(), gain.tolist(), strict=True)):
        with_it = best[: cells + 1 - size] + plus
        picks[i, size:] = with_it > best[size:]
        best[size:] = np.maximum(best[size:], with_it)
    left = cells
    for i in range(len(looked) - 1, -1, -1):
        if picks[i, left]:
            taken[looked[i]] = True
            left -= int(milli[looked[i]]) // unit
    return taken


class InsertionOrder:
    """
    Which waiting jobs of a problem are placed first.

    Most value per GPU share comes first, always. Among equals, least cost beyond that comes first, by the guide, or by
    the traffic of a job whose GPUs are as close as possible; a knapsack chooses the jobs that fill the free share. They
    are placed the hardest first: those that fill half of a domain or more, first the ones that a split keeps inside
    domains, then by most traffic; the others by demand within one domain, then the largest bundles, so that small ones
    fill the remaining gaps, then most traffic. All others follow, as far as they find room.

    - ``able``, (J,): Jobs that have a way to run and do not run now.
    """

    def __init__(self, problem: Problem, guide: Guide | None) -> None:
        self._problem, options = problem, problem.options
        first = np.unique(problem.job_class, return_index=True)[1].tolist()
        best = np.array(
            [max(problem.options_of(j), key=lambda o: (options.value[o], -o), default=-1) for j in first],
            dtype=np.int64,
        )
        some = best >= 0

        def of_jobs(of_options: np.ndarray) -> np.ndarray:
            """Shape (J,), from (O,); 0 for jobs without any option."""
            per_class: np.ndarray = np.append(of_options, 0)[best]
            return per_class[problem.job_class]

        self.able: BoolArray = some[problem.job_class]
        self.able[list(problem.running)] = False
        self._milli: IntArray = of_jobs(options.total_milli)
        share = np.maximum(self._milli, 1)
        fewest = np.full(len(best), np.iinfo(np.int64).max)
        np.minimum.at(fewest, options.job_class, options.total_milli)
        self._least: IntArray = fewest[problem.job_class]
        self._value: IntArray = of_jobs(options.value)
        self._density: np.ndarray = self._value / share
        weight = np.array([int(c.weight) for c in problem.class_communication], dtype=np.int64)[options.job_class]
        self._path_cost: IntArray = of_jobs(weight * problem.best_path)
        self._cost_per_share: np.ndarray = (self._path_cost if guide is None else of_jobs(guide.surplus)) / share
        self._bundle = of_jobs(options.gpus * options.bundle_workers * options.milli)
        parts = np.array([min((s.domains for s in splits), default=0) for splits in options.splits], dtype=np.int64)
        self._half = 500 * largest_domain(problem)
        self._together = of_jobs(np.where(parts > 0, options.total_milli // np.maximum(parts, 1), 0))

    def queue(self, jobs: IntArray, free: int, chosen: IntArray | None = None) -> IntArray:
        """
        Return those of ``jobs``, which are able and wait, that may find room in ``free`` thousandths of GPUs, in order.

        ``chosen`` are placed before the rest, instead of those that the knapsack chooses.
        """
        jobs = self._within(jobs, free)
        dear = self._cost_per_share[jobs]
        order = np.lexsort((jobs, dear, -self._density[jobs]))
        ranked = jobs[order]
        milli = self._milli[ranked]
        if chosen is None:
            taken = choose(milli, self._value[ranked], dear[order] * milli, free)
        else:
            taken = np.isin(ranked, chosen)
        at, rest = ranked[taken], ranked[~taken]
        hard = np.maximum(self._bundle[at], self._together[at])
        together = np.where(self._together[at] >= self._half, self._together[at], 0)
        wide = (self._milli[at] >= self._half) & (self._milli[at] > self._bundle[at])
        first_by_path = np.where(wide, self._path_cost[at], 0)
        keys = (-self._milli[at], -self._path_cost[at], -self._bundle[at], -hard, -first_by_path, -together)
        return np.concatenate([at[np.lexsort((at, *keys))], rest])

    def _within(self, jobs: IntArray, free: int) -> IntArray:
        """Return of every class as many of ``jobs``, the first ones, as the free share takes; alike ones are equal."""
        if not self._problem.shares_bind:
            return jobs
        by_class = jobs[np.argsort(self._problem.job_class[jobs], kind="stable")]
        classes = self._problem.job_class[by_class]
        position = np.arange(len(by_class)) - np.searchsorted(classes, classes)
        return np.sort(by_class[position * self._least[by_class] < free])


def largest_domain(problem: Problem) -> int:
    """Return the GPUs of the largest domain that holds nodes; without domains more than there are."""
    domain, gpus = problem.topology.node_domain, np.diff(problem.node_gpu_start)
    inside = domain >= 0
    return int(np.bincount(domain[inside], gpus[inside]).max()) if inside.any() else 2 * problem.num_gpus + 1
