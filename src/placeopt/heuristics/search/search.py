"""Large neighbourhood search: jobs are taken away and put back, and what is worse is undone."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from placeopt.heuristics.search.incremental_solution import RANKINGS, Guide, IncrementalSolution, Mark
from placeopt.heuristics.search.repair import Repair
from placeopt.problem import Allocation, IntArray, Problem
from placeopt.terms.objective import Weighted

BLOCK = 8
"""Nodes of a district where the network has no domains."""
MOST_JOBS = 80
"""Jobs of districts taken away at once."""
MOST_FILLERS = 40
"""Jobs taken away beside them because others that wait are worth more."""
MOST_COSTLY = 16
"""Costly jobs taken away at once, mostly far fewer."""
MOST_DISTRICTS = 4
"""Districts emptied at once."""
EXPONENT = 3
"""The rank of a job chosen among n is n x u to this power, u even between 0 and 1: the first are likelier."""
SHARES = (0.4, 0.25, 0.25, 0.1)
"""Of the neighbourhoods: around a costly job, several jobs, districts, for a job that waits. By what they brought."""

NOISE = 0.5
"""How far the order among jobs of equal worth is shaken, in every other step."""


class Destroy:
    """
    Neighbourhoods of a plan. A district is a lowest domain of the network, or a block of nodes where there is none.

    ``density`` (J,) is the value of jobs per share.
    """

    def __init__(self, solution: IncrementalSolution, density: np.ndarray, rng: np.random.Generator) -> None:
        self._solution, self._density, self._rng, problem = solution, density, rng, solution.problem
        domain = problem.topology.node_domain
        blocks = len(problem.topology.domain_parent) + np.arange(problem.num_nodes) // BLOCK
        self._district = np.unique(np.where(domain >= 0, domain, blocks), return_inverse=True)[1].reshape(-1)
        order = np.argsort(self._district, kind="stable")
        starts = np.searchsorted(self._district[order], np.arange(1, int(self._district.max(initial=0)) + 1))
        self._nodes = [part.tolist() for part in np.split(order, starts)]
        self._waited = np.ones(problem.num_jobs, dtype=bool)
        self._waited[list(problem.running)] = False
        self._mean_gpus = max(problem.num_gpus / len(self._nodes), 1.0)

    def some(self, waiting: IntArray) -> int | None:
        """Remove a few jobs, by one of four neighbourhoods; return a job of ``waiting`` to be placed first, if any."""
        # With a job that waits, and in every other step, also jobs that are worth less per share than some that wait:
        # then what is removed elsewhere finds room in the gaps that they fill.
        first = None
        draw = self._rng.choice(len(SHARES), p=SHARES)
        if draw == 0:
            self._around_costly()
        elif draw == 1:
            self._several()
        elif draw == 2 or not len(waiting):
            self._empty(self._any_districts(1 + int(self._rng.integers(MOST_DISTRICTS - 1))))
        else:
            first = self._for_waiting(waiting)
        if len(waiting) and (first is not None or self._rng.random() < 0.5):
            self._fillers(float(self._density[waiting].max()))
        return first

    def _around_costly(self) -> None:
        """Empty districts of a job that costs much, and another one, so that it finds room elsewhere."""
        jobs = self._placed()
        if not len(jobs):
            return
        (job,) = self._by_cost(jobs, [self._rank(len(jobs))])
        placement = self._solution.state.placements[job]
        assert placement is not None  # noqa: S101 - it is among the placed ones
        mine = self._rng.permutation(np.unique(self._district[list(placement.nodes)]))[: MOST_DISTRICTS - 1]
        self._empty([*mine.tolist(), *self._any_districts(1)])

    def _several(self) -> None:
        """Remove a few costly jobs, wherever they are: they may exchange places, or make room for cheaper ones."""
        jobs = self._placed()
        if not len(jobs):
            return
        count = 1 + self._rank(min(MOST_COSTLY, len(jobs)))
        for job in self._by_cost(jobs, sorted({self._rank(len(jobs)) for _ in range(count)})):
            self._solution.put(job, None)

    def _for_waiting(self, waiting: IntArray) -> int:
        """Empty districts for a job that waits, the likelier the more it is worth per share."""
        ranked = waiting[np.argsort(-self._density[waiting], kind="stable")]
        job = int(ranked[self._rank(len(ranked))])
        options = self._solution.problem.options
        milli = max(int(options.total_milli[o]) for o in self._solution.problem.options_of(job))
        needed = math.ceil(milli / 1000 / self._mean_gpus) + int(self._rng.integers(2))
        self._empty(self._any_districts(min(needed, MOST_DISTRICTS)))
        return job

    def _fillers(self, most: float) -> None:
        """Take away jobs that are worth less per share than ``most``."""
        jobs = self._placed()
        low = jobs[self._density[jobs] < most]
        for job in self._rng.choice(low, min(len(low), MOST_FILLERS), replace=False).tolist():
            self._solution.put(job, None)

    def _by_cost(self, jobs: IntArray, ranks: list[int]) -> list[int]:
        """Return those of ``jobs`` that have these ranks by cost, 0 for the costliest."""
        chosen: list[int] = jobs[np.argpartition(-self._solution.paid[jobs], ranks)[ranks]].tolist()
        return chosen

    def _rank(self, count: int) -> int:
        return max(min(int(count * self._rng.random() ** EXPONENT), count - 1), 0)

    def _placed(self) -> IntArray:
        return np.flatnonzero(self._solution.is_placed & self._waited)

    def _any_districts(self, count: int) -> list[int]:
        chosen: list[int] = self._rng.choice(len(self._nodes), min(count, len(self._nodes)), replace=False).tolist()
        return chosen

    def _empty(self, districts: list[int]) -> None:
        """Take away the jobs of these districts, as long as they are not too many."""
        solution, taken = self._solution, 0
        for district in dict.fromkeys(districts):
            jobs = dict.fromkeys(job for node in self._nodes[district] for job in solution.state.node_jobs[node])
            for job in jobs:
                if job not in solution.problem.running and taken < MOST_JOBS:
                    solution.put(job, None)
                    taken += 1


class LargeNeighbourhoodSearch:
    """
    A plan that only improves: first its value, then, at equal value, its cost (Shaw 1998; Schrimpf et al. 2000).

    A step removes jobs (``Destroy``), inserts waiting ones (``Repair``), and is undone if the result is worse. Running
    jobs stay where ``allocation``, a plan that every rule allows, has them. Without ``guide`` jobs of equal worth are
    compared by the least cost of their traffic. The same ``seed`` makes the same steps. ``stop`` is polled between
    placements; once it is true a step ends, and is undone unless it is better by then.
    """

    def __init__(
        self,
        problem: Problem,
        allocation: Allocation,
        weighted: tuple[Weighted, ...],
        *,
        guide: Guide | None = None,
        seed: int = 0,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._rng = np.random.default_rng(seed)
        self._solution = IncrementalSolution(problem, allocation, weighted)
        self._recreate = Repair(self._solution, guide, stop)
        self._ruin = Destroy(self._solution, self._recreate.order.density, self._rng)

    @property
    def value(self) -> int:
        """Net value."""
        return self._solution.value

    @property
    def cost(self) -> int:
        """Cost level."""
        return self._solution.cost

    @property
    def allocation(self) -> Allocation:
        """The plan."""
        return self._solution.state.allocation()

    def step(self) -> bool:
        """Change a part of the plan; return whether it is better for it."""
        mark = self._solution.mark()
        first = self._ruin.some(self._waiting())
        noise = NOISE if self._rng.random() < 0.5 else 0.0
        ranking = str(self._rng.choice(RANKINGS))
        self._recreate.fill(self._waiting(), self._rng, noise=noise, first=first, ranking=ranking)
        return self._judge(mark)

    def _waiting(self) -> IntArray:
        return np.flatnonzero(self._recreate.order.able & ~self._solution.is_placed)

    def _judge(self, mark: Mark) -> bool:
        """Go back where the plan is worse; what is just as good is kept, so that the search moves on."""
        solution = self._solution
        before, now = (mark[1], -mark[2]), (solution.value, -solution.cost)
        if now < before:
            solution.roll_back(mark)
        solution.commit()
        return now > before
