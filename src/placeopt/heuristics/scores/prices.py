"""Prices for jobs that arrive one at a time: of GPUs partly left, of nodes that others need, of stranded GPUs."""

from __future__ import annotations

import numpy as np

from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.scores.cutting_stock import share_prices
from placeopt.heuristics.scores.fit import Stranding
from placeopt.heuristics.scores.score import Score, cheapest, closest
from placeopt.heuristics.scores.table import MOST_STATES, Columns, FloatArray
from placeopt.problem import CPU, GPU_MILLI, MEMORY, IntArray, Problem, State

FULL = 1 << 50
"""Price of a share on a GPU that has too little left for it; more than any other."""

MICRO = 1_000_000
"""Everything is counted in millionths of a GPU, so that two ways to add it up agree."""

LEFT_WEIGHT, UNTOUCHED_WEIGHT, NODE_WEIGHT = 0.1, 0.005, 0.5
"""Of what a share leaves on its GPU, of an untouched GPU on a node in the running, of the price of a node's GPUs."""

WIDTH = 0.2
"""Of the softplus function sp, in GPUs: the width over which it bends from 0 to the number of stranded GPUs."""

LOWEST = -4096
"""Thousandths from which on ``stranded`` is listed: it is 0 millionths up to -2,600."""


class PriceColumns(Columns):
    """
    The sum that ``PriceScore`` is, by its parts, all in millionths of a GPU: so both give the same whole numbers.

    What depends on the GPUs alone is cached by their free share; the rest is looked up in the table of stranded
    GPUs by what CPU and memory could serve.
    """

    def __init__(self, prices: PriceScore, state: State) -> None:
        super().__init__(state)
        self._per_gpu = int(prices.per_gpu[0]), int(prices.per_gpu[1])
        self._stranded, self._untouched = prices.stranded, prices.untouched
        asked = self.gpus * self.milli
        self._by_cpu, self._by_memory = (prices.need[self.of] - asked[:, None] - LOWEST).T.copy()
        kinds, kind = np.unique(np.column_stack((self.gpus, self.milli)), axis=0, return_inverse=True)
        self._kind: IntArray = kind.reshape(-1)
        self._kind_gpus, shares = kinds.T
        rows = prices.loss[np.searchsorted(prices.shares, shares)]
        self._paid: IntArray = np.where(np.arange(rows.shape[1]) < shares[:, None], FULL, rows).T.copy()
        """(1001, kinds) by the free share of the GPU."""
        first = {c: n for n, c in enumerate(self.problem.node_class.tolist())}
        self._by_class = {c: asked * prices.node_price[n] for c, n in first.items()}
        self._cache: dict[tuple[int, tuple[int, ...]], tuple[int, IntArray]] = {}

    def column(self, node_class: int, cpu: int, memory: int, left: tuple[int, ...]) -> FloatArray:
        """See ``Columns``."""
        key = (node_class, left)
        cached = self._cache.get(key)
        if cached is None:
            if len(self._cache) >= MOST_STATES:
                self._cache.clear()
            cached = self._cache[key] = sum(left), self._of_gpus(left) + self._by_class[node_class]
        idle, part = cached
        by_cpu, by_memory = idle - cpu * 1000 // self._per_gpu[0], idle - memory * 1000 // self._per_gpu[1]
        cost: IntArray = self._stranded.take(self._by_cpu + by_cpu, mode="clip")
        cost += self._stranded.take(self._by_memory + by_memory, mode="clip")
        cost += part
        now = self._stranded.take((by_cpu - LOWEST, by_memory - LOWEST), mode="clip")
        cost -= now[0] + now[1]
        return cost

    def _of_gpus(self, left: tuple[int, ...]) -> IntArray:
        """Shape (S,): what the GPUs taken cost, and those that stay untouched; ``left`` ascending."""
        cost = np.zeros(len(self._kind_gpus), dtype=np.int64)
        if left:
            paid = np.sort(self._paid[list(left)], axis=0)
            last = np.minimum(self._kind_gpus, len(left)) - 1
            cost = np.where(self._kind_gpus > 0, paid.cumsum(axis=0)[last, np.arange(len(last))], 0)
        cost += self._untouched * sum(milli >= 1000 for milli in left)
        of_shapes: IntArray = cost[self._kind]
        return of_shapes


class PriceScore(Score):
    """
    The node where a job costs least, in GPUs that others lose. Ours; no horizon is known and no job is refused.

    It adds up, for the node and the GPUs there that cost least:

    - the GPUs that become stranded: ``sp(G - C/k) + sp(G - M/m)`` after less before, as in ``Stranding`` but for
      the width, and for k: where CPU-only jobs need more than the nodes' surplus, k counts them too, `cpu_of_cpu_only`;
    - what each GPU taken from loses beyond what the share is worth, both by the prices of ``share_prices`` for the mix
      of shares: 0 where the share is part of a best filling of what is left there, 1 for a GPU spent on nothing;
    - 0.1 x what is left there, 0.005 x the GPUs of the node that stay untouched;
    - 0.5 x the GPUs taken x the price of such nodes: how much of them is spoken for by those who can run there.
    """

    def __init__(self, problem: Problem, counts: IntArray | None = None, *, nodes: bool = True) -> None:
        """Take the mix of jobs from the problem, or ``counts`` jobs of each class, (K,)."""
        # Without ``nodes`` these have no price: for a queue in which jobs that depend on few nodes come first.
        counts = problem.jobs_per_class if counts is None else counts
        means = Stranding(problem, counts)
        # Without ``nodes`` the order of the queue decides instead: it may place CPU-only jobs last.
        beyond = cpu_of_cpu_only(problem, counts, means.cpu_per_gpu) if nodes else 0.0
        cpu, memory = means.cpu_per_gpu + beyond, means.memory_per_gpu
        self.per_gpu = np.array([max(round(cpu), 1), max(round(memory), 1)])  # (2,)
        self.need: IntArray = np.rint(problem.options.demand[:, [CPU, MEMORY]] * 1000 / self.per_gpu).astype(np.int64)
        """(O, 2) thousandths of a GPU whose mean CPU and memory a worker takes."""
        most = int(np.diff(problem.node_gpu_start).max(initial=0))
        x = np.arange(LOWEST, 1000 * most + 1) / (1000 * WIDTH)
        self.stranded: IntArray = _micro(WIDTH * np.logaddexp(0, x))
        """By thousandths of a GPU that CPU or memory cannot serve, from ``LOWEST`` on."""
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
        gpus = int(options.bundle_gpus[option])
        left = candidates.free_milli(nodes)
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

    def columns(self, state: State) -> PriceColumns:
        """Prepare the same score for a table."""
        return PriceColumns(self, state)

    def _stranding(self, idle: IntArray, served: IntArray) -> IntArray:
        stranded: IntArray = self.stranded.take(idle[:, None] - served - LOWEST, mode="clip").sum(axis=1)
        return stranded

    def pick(self, candidates: Candidates, option: int, gpus: list[int], need: int) -> tuple[int, ...]:
        """Return the GPUs that cost least, ties by number; where all cost the same, those that are closest together."""
        if int(candidates.problem.options.milli[option]) >= 1000:
            return closest(candidates.state, gpus, need)
        paid = self.loss[self.kind[option], np.maximum(candidates.state.gpu_free_milli[gpus], 0)]
        return cheapest(gpus, paid, need)


def losses(problem: Problem, counts: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct shares, (Z,) ascending, and what a GPU costs by its free share, (Z, 1001) millionths."""
    # The cost of a share there: what it loses by the prices of shares, part of what is left over, less an untouched
    # GPU.
    options, (has, first) = problem.options, problem.first_options
    wanted = counts[has] * options.gpus[first] * options.workers[first]
    shares = np.unique(options.milli)
    demand = np.bincount(np.searchsorted(shares, options.milli[first]), weights=wanted, minlength=len(shares))
    priced = (demand > 0) & (shares > 0) & (shares < 1000)
    prices = share_prices(shares[priced], demand[priced])
    level = np.arange(GPU_MILLI + 1)
    rows = []
    for share in shares.tolist():
        lost = np.zeros(len(level))
        if share < GPU_MILLI:
            lost = prices.loss(share) + LEFT_WEIGHT * np.maximum(level - share, 0) / GPU_MILLI
        rows.append(_micro(lost - UNTOUCHED_WEIGHT * (level == GPU_MILLI)))
    return shares, np.array(rows, dtype=np.int64).reshape(len(shares), len(level))


def cpu_of_cpu_only(problem: Problem, counts: IntArray, cpu_per_gpu: float) -> float:
    """
    CPU millicores that CPU-only jobs request per GPU requested, or 0 where the surplus of the nodes serves them.

    Where it does not, they and jobs with GPUs compete for the same CPU, so the mean CPU per GPU has to count both.
    ``counts``, (K,), is scaled until its GPU demand is the capacity. The surplus of a node is its CPU beyond
    ``cpu_per_gpu`` for each of its GPUs, in whole CPU-only jobs of mean size: smaller remainders serve none.
    """
    options, (has, first) = problem.options, problem.first_options
    jobs = counts[has] * options.workers[first]
    cpu_only = options.gpus[first] == 0
    number, cpu = int(jobs[cpu_only].sum()), int((jobs * options.demand[first, CPU])[cpu_only].sum())
    milli = int((counts[has] * options.total_milli[first]).sum())
    if not cpu or not milli:
        return 0.0
    size = cpu / number
    over = np.maximum(problem.node_capacity[:, CPU] - cpu_per_gpu * np.diff(problem.node_gpu_start), 0)
    surplus = float((over // size).sum()) * size
    demand = cpu * 1000 * problem.num_gpus / milli
    return cpu * 1000 / milli if demand > surplus else 0.0


def prices_of_nodes(problem: Problem, counts: IntArray) -> np.ndarray:
    """
    Shape (C,): load of each class of nodes if ``counts``, (K,), jobs spread evenly over the GPUs that they may use.

    The sum, over kinds of jobs that can run there while the node is idle, of the kind's demand over the GPUs of all
    such nodes. Demand is scaled so that all of it is the capacity of the cluster. A kind that runs anywhere raises all
    prices alike, so only jobs bound to GPU models, or to nodes that are large enough, make a difference.
    """
    may = problem.options.node_class_ok
    gpus = np.bincount(problem.node_class, weights=np.diff(problem.node_gpu_start), minlength=may.shape[1])
    has, first = problem.first_options
    demand = counts[has] * problem.options.total_milli[first]
    runs = may[first] & (demand > 0)[:, None]
    eligible = runs @ gpus
    even = np.where(eligible > 0, demand / np.maximum(eligible, 1), 0)
    prices: np.ndarray = (even @ runs) * problem.num_gpus / max(int(demand.sum()), 1)
    return prices


def _micro(gpus: np.ndarray) -> IntArray:
    rounded: IntArray = np.rint(gpus * MICRO).astype(np.int64)
    return rounded
