"""Waiting jobs put back onto a solution, in the order of ``insertion_order``."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from placeopt.heuristics.search.incremental_solution import Guide, IncrementalSolution
from placeopt.heuristics.search.insertion import Insertion
from placeopt.heuristics.search.insertion_order import InsertionOrder
from placeopt.problem import IntArray


class Repair:
    """Fills what is free on a solution. ``order``: which jobs come first."""

    def __init__(self, solution: IncrementalSolution, guide: Guide | None, stop: Callable[[], bool]) -> None:
        self._solution, self._insertion, self._stop = solution, Insertion(solution, guide), stop
        self.order = InsertionOrder(solution.problem, guide)

    def fill(
        self,
        jobs: IntArray,
        rng: np.random.Generator,
        *,
        noise: float = 0.0,
        first: int | None = None,
        ranking: str = "close_fit",
    ) -> None:
        """
        Place as many of ``jobs``, which are able and wait, as find room; ``first`` before all others.

        ``noise`` as in ``InsertionOrder.queue``, ``ranking`` as in ``Insertion.best``. Room only shrinks, so a class
        that failed once is not tried again.
        """
        solution, problem = self._solution, self._solution.problem
        free = int(np.maximum(solution.state.gpu_free_milli, 0).sum())
        queue = self.order.queue(jobs, free, first=first, noise=noise, rng=rng)
        least = self.order.least[queue].tolist() if problem.shares_bind else [0] * len(queue)
        failed_classes: set[int] = set()
        for job, k, needed in zip(queue.tolist(), problem.job_class[queue].tolist(), least, strict=True):
            if needed > free or k in failed_classes:
                continue
            if self._stop():
                return
            spot = self._insertion.best(job, ranking)
            if spot is None:
                failed_classes.add(k)
                continue
            solution.put(job, spot)
            free -= int(problem.options.total_milli[spot.option])
