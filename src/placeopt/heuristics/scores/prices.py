"""Prices for jobs that arrive one at a time: of GPUs partly left, of nodes that others need, of stranded GPUs."""

from __future__ import annotations

import numpy as np

from placeopt.heuristics.candidates import Candidates, closest
from placeopt.heuristics.scores.cutting_stock import share_prices
from placeopt.heuristics.scores.fit import CPU, MEMORY, Stranding
from placeopt.heuristics.scores.price_columns import PriceColumns
from placeopt.problem import IntArray, Problem, State

MICRO = 1_000_000
"""Everything is counted in millionths of a GPU, so that two ways to add it up agree."""

LEFT_WEIGHT, UNTOUCHED_WEIGHT, NODE_WEIGHT = 0.1, 0.005, 0.5
"""Of what a share leaves on its GPU, of an untouched GPU on a node in the running, of the price of a node's GPUs."""

WIDTH = 0.2
"""Of the softplus function sp, in GPUs: over so much it bends from 0 to the number of stranded GPUs."""

LOWEST = -5000
"""Thousandths below which ``stranded`` is 0."""


class PriceScore:
    """
    The node where a job costs least, in GPUs that others lose. Ours; no horizon is known and no job is refused.

    It adds up, for the node and the GPUs there that cost least:

    - the GPUs that become stranded: ``sp(G - C/k) + sp(G - M/m)`` after less before, as in ``Stranding`` but for
      the width;
    - what each GPU taken from loses beyond what the share is worth, both by the prices of ``share_prices`` for the mix
      of shares: 0 where the share is part of a best filling of what is left there, 1 for a GPU spent on nothing;
    - 0.1 x what is left there, 0.005 x the GPUs of the node that stay untouched;
    - 0.5 x the GPUs taken x the price of such nodes: how much of them is spoken for by those who can run there.
    """

    cacheable = True

    def __init__(self, problem: Problem, counts: IntArray | None = None, *, nodes: bool = True) -> None:
        """
        Take the mix of jobs from the problem, or so many of each class, shape (K,).

        Without ``nodes`` these have no price: for a queue in which those come first who depend on few nodes.
        """
        if counts is None:
            counts = np.bincount(problem.job_class, minlength=len(problem.class_communication))
        means = Stranding(problem, counts)
        self.per_gpu = np.array([max(round(means.cpu_per_gpu), 1), max(round(means.memory_per_gpu), 1)])  # (2,)
        self.need: IntArray = np.rint(problem.options.demand[:, [CPU, MEMORY]] * 1000 / self.per_gpu).astype(np.int64)
        """(O, 2) thousandths of a GPU whose mean CPU and memory a worker takes."""
        most = int(np.diff(problem.node_gpu_start).max(initial=0))
        x = np.arange(LOWEST, 1000 * most + 1) / (1000 * WIDTH)
        self.stranded: IntArray = _micro(WIDTH * np.logaddexp(0, x))
        """By thousandths of a GPU that CPU or memory cannot serve, from ``LOWEST`` on."""
        self.lowest = LOWEST
        self.shares, self.loss = losses(problem, counts)
        self.kind: IntArray = np.searchsorted(self.shares, problem.options.milli)  # (O,) row of ``loss``
        self.untouched = int(UNTOUCHED_WEIGHT * MICRO)
        price = prices_of_nodes(problem, counts)[problem.node_class]
        self.node_price: IntArray = np.rint(nodes * NODE_WEIGHT * price * (MICRO // 1000)).astype(np.int64)
        """(N,) of a thousandth of a GPU."""

    def __call__(self, candidates: Candidates, option: int, nodes: IntArray) -> np.ndarray:
        """Score ``nodes``, on all of which a bundle of ``option`` fits."""
        state, options = candidates.state, candidates.problem.options
        workers, share = int(options.bundle_workers[option]), int(options.milli[option])
        gpus = workers * int(options.gpus[option])
        left = np.maximum(state.gpu_free_milli[candidates.slot_gpu[nodes]], 0)
        left = np.where(candidates.slot_exists[nodes], left, 0)
        idle = left.sum(axis=1)
        served = state.node_free[nodes][:, [CPU, MEMORY]] * 1000 // self.per_gpu
        score = self._stranding(idle - gpus * share, served - workers * self.need[option])
        score -= self._stranding(idle, served)
        score += self.untouched * (left >= 1000).sum(axis=1) + gpus * share * self.node_price[nodes]
        if gpus:
            usable = candidates.usable(option, nodes)
            paid = np.where(usable, self.loss[self.kind[option], left], np.iinfo(np.int64).max // 2048)
            score += np.sort(paid, axis=1)[:, :gpus].sum(axis=1)
        return score.astype(float)

    def columns(self, state: State, representatives: list[int]) -> PriceColumns:
        """Prepare the same score for a table; each shape of jobs is represented by an option."""
        return PriceColumns(self, state, representatives)

    def _stranding(self, idle: IntArray, served: IntArray) -> IntArray:
        stranded: IntArray = self.stranded.take(idle[:, None] - served - LOWEST, mode="clip").sum(axis=1)
        return stranded

    def pick(self, candidates: Candidates, option: int, gpus: list[int], need: int) -> tuple[int, ...]:
        """Return the GPUs that cost least, ties by number; where all cost the same, those that are closest together."""
        if int(candidates.problem.options.milli[option]) >= 1000:
            return closest(candidates.problem, candidates.state, gpus, need)
        left = np.clip(candidates.state.gpu_free_milli[gpus], 0, 1000)
        paid = self.loss[self.kind[option], left]
        return tuple(sorted(gpus[i] for i in np.argsort(paid, kind="stable")[:need].tolist()))


def losses(problem: Problem, counts: IntArray) -> tuple[IntArray, IntArray]:
    """
    Return the distinct shares, (Z,) ascending, and what a GPU costs by what is left of it, (Z, 1001) millionths.

    The cost of a share there: what it loses by the prices of shares, part of what is left over, less an untouched GPU.
    """
    options, has = problem.options, np.flatnonzero(np.diff(problem.class_option_start) > 0)
    first = problem.class_option_start[:-1][has]
    wanted = counts[has] * options.gpus[first] * options.workers[first]
    shares = np.unique(options.milli)
    demand = np.bincount(np.searchsorted(shares, options.milli[first]), weights=wanted, minlength=len(shares))
    priced = (demand > 0) & (shares > 0) & (shares < 1000)
    prices = share_prices(shares[priced], demand[priced])
    level = np.arange(1001)
    rows = []
    for share in shares.tolist():
        lost = (
            np.zeros(1001) if share >= 1000 else prices.loss(share) + LEFT_WEIGHT * np.maximum(level - share, 0) / 1000
        )
        rows.append(_micro(lost - UNTOUCHED_WEIGHT * (level >= 1000)))
    return shares, np.array(rows, dtype=np.int64).reshape(len(shares), 1001)


def prices_of_nodes(problem: Problem, counts: IntArray) -> np.ndarray:
    """
    Return the load of each class of nodes if ``counts``, (K,), jobs spread evenly over the GPUs where they can run.

    The sum, over kinds of jobs that can run there while it is idle, of the kind's demand over the GPUs of all such
    nodes. Demand is scaled so that all of it is the capacity of the cluster. A kind that runs anywhere raises all
    prices alike, so only jobs bound to GPU models, or to nodes that are large enough, make a difference.
    """
    options, has = problem.options, np.flatnonzero(np.diff(problem.class_option_start) > 0)
    first = problem.class_option_start[:-1][has]
    demand = counts[has] * options.total_milli[first]
    runs = options.node_class_ok[first] & (demand > 0)[:, None]
    gpus = np.bincount(problem.node_class, weights=np.diff(problem.node_gpu_start), minlength=runs.shape[1])
    eligible = runs @ gpus
    even = np.where(eligible > 0, demand / np.maximum(eligible, 1), 0)
    prices: np.ndarray = (even @ runs) * problem.num_gpus / max(int(demand.sum()), 1)
    return prices


def prices_of_types(problem: Problem, counts: IntArray) -> np.ndarray:
    """
    Shape (T,): load of each type of GPU if ``counts``, (K,), jobs spread evenly over what they may take.

    The sum, over kinds of jobs that may take the type, of the kind's demand over the GPUs of all types open to it.
    Demand is scaled so that all of it is the capacity of the cluster. A kind that may take every type raises all prices
    alike, so only jobs bound to models make a difference.
    """
    options, has = problem.options, np.flatnonzero(np.diff(problem.class_option_start) > 0)
    first = problem.class_option_start[:-1][has]
    demand = counts[has] * options.total_milli[first]
    capacity = np.bincount(problem.gpu_type, minlength=len(problem.type_model))
    allowed = options.gpu_type_ok[first] & (demand > 0)[:, None]
    eligible = allowed @ capacity
    even = np.where(eligible > 0, demand / np.maximum(eligible, 1), 0)
    prices: np.ndarray = (even @ allowed) * problem.num_gpus / max(int(demand.sum()), 1)
    return prices


def _micro(gpus: np.ndarray) -> IntArray:
    rounded: IntArray = np.rint(gpus * MICRO).astype(np.int64)
    return rounded
