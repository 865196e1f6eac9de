"""A plan made again from the running jobs: the jobs of a relaxation, the hardest to place first, by greedy."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.construction.gang_placer import GangPlacer
from placeopt.heuristics.greedy_pass import GreedyResult, greedy, place, place_on_nodes, places, stop_at
from placeopt.heuristics.scores.registry import score_named
from placeopt.problem import BoolArray, IntArray, Placement, Problem, State
from placeopt.terms.costs.communication import Communication
from placeopt.terms.objective import Weighted, weight_of


def construct(
    problem: Problem,
    weighted: tuple[Weighted, ...],
    surplus: np.ndarray,
    *,
    chosen: IntArray | None = None,
    deadline: float = float("inf"),
    cancelled: Callable[[], bool] | None = None,
) -> GreedyResult:
    """
    Return a plan of the running jobs, and of as many waiting ones as find room: gangs by cost, others by close fit.

    - ``weighted``: The costs that count.
    - ``surplus``, ``chosen``: What a job in each option costs beyond its worth, and whom to place before all others, as
      in ``insertion_order``.
    - ``deadline``, ``cancelled``: As in ``greedy``.
    """
    free, over = int(np.maximum(State(problem).gpu_free_milli, 0).sum()), stop_at(deadline, cancelled)
    queue, weight = insertion_order(problem, free, surplus, chosen), weight_of(weighted, Communication)

    def chooser(begun: State) -> GangsByCost:
        return GangsByCost(Candidates(begun, score_named("close_fit", problem), over), weight)

    return greedy(problem, queue, deadline=deadline, cancelled=cancelled, chooser=chooser)


class GangsByCost:
    """The chooser that ranks nodes for single bundles by a score, and chooses those of gangs by their cost."""

    def __init__(self, candidates: Candidates, weight: int) -> None:
        self._candidates, self._gang_placer = candidates, GangPlacer(candidates, weight)
        self.changed = candidates.changed

    def place(self, job: int) -> Placement | None:
        """See ``Chooser``: the first place found in the most valuable option that has one."""
        return place(self._candidates, job, offered=self._places)

    def _places(self, candidates: Candidates, option: int) -> Iterator[Placement]:
        if candidates.problem.options.bundles[option] == 1:
            yield from places(candidates, option)
            return
        nodes = self._gang_placer.nodes(option)
        spot = None if nodes is None else place_on_nodes(candidates, option, nodes)
        if spot is not None:
            yield spot


def insertion_order(problem: Problem, free: int, surplus: np.ndarray, chosen: IntArray | None = None) -> IntArray:
    """
    Return the waiting jobs that have a way to run and may find room in ``free`` thousandths of GPUs, in order.

    Most value per GPU share comes first, always; among equals the least cost beyond that, ``surplus``, shape (O,), of
    a job in each option. Of these the first that fit into the free share together, or else the jobs ``chosen``, are
    placed the hardest first: those that fill half of a domain or more, first the ones that a split keeps inside
    domains, then by most traffic; the others by demand within one domain, then the largest bundles, so that small ones
    fill the remaining gaps, then most traffic. All others follow, as far as they find room.
    """
    options, numbers = problem.options, np.unique(problem.job_class, return_index=True)[1].tolist()
    best = np.array(
        [max(problem.options_of(j), key=lambda o: (options.value[o], -o), default=-1) for j in numbers], dtype=np.int64
    )
    able: BoolArray = (best >= 0)[problem.job_class]
    able[list(problem.running)] = False
    jobs = _within(problem, np.flatnonzero(able), free)
    option = best[problem.job_class[jobs]]
    milli, value = options.total_milli[option], options.value[option]
    share = np.maximum(milli, 1)
    rank = np.lexsort((jobs, surplus[option] / share, -(value / share)))
    jobs, option, milli = jobs[rank], option[rank], milli[rank]
    taken = milli.cumsum() <= free if chosen is None else np.isin(jobs, chosen)
    at, o, milli = jobs[taken], option[taken], milli[taken]
    weight = np.array([int(c.weight) for c in problem.class_communication], dtype=np.int64)
    traffic, half = (weight[options.job_class] * problem.best_path)[o], 1000 * largest_domain(problem) // 2
    bundle = (options.gpus * options.bundle_workers * options.milli)[o]
    parts = np.array([min((s.domains for s in splits), default=0) for splits in options.splits], dtype=np.int64)[o]
    together = np.where(parts > 0, milli // np.maximum(parts, 1), 0)
    of_wide = np.where((milli >= half) & (milli > bundle), traffic, 0)
    of_split = np.where(together >= half, together, 0)
    hardest = np.lexsort((at, -milli, -traffic, -bundle, -np.maximum(bundle, together), -of_wide, -of_split))
    return np.concatenate([at[hardest], jobs[~taken]])


def _within(problem: Problem, jobs: IntArray, free: int) -> IntArray:
    """Return of every class as many of ``jobs``, the first ones, as the free share takes; alike ones are equal."""
    if not problem.shares_bind:
        return jobs
    fewest = np.full(problem.num_classes, np.iinfo(np.int64).max)
    np.minimum.at(fewest, problem.options.job_class, problem.options.total_milli)
    by_class = jobs[np.argsort(problem.job_class[jobs], kind="stable")]
    classes = problem.job_class[by_class]
    position = np.arange(len(by_class)) - np.searchsorted(classes, classes)
    return np.sort(by_class[position * fewest[classes] < free])


def largest_domain(problem: Problem) -> int:
    """Return the GPUs of the largest domain that holds nodes; without domains more than there are."""
    domain, gpus = problem.topology.node_domain, np.diff(problem.node_gpu_start)
    inside = domain >= 0
    return int(np.bincount(domain[inside], gpus[inside]).max()) if inside.any() else 2 * problem.num_gpus + 1
