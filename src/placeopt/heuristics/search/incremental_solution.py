"""A solution that the search changes: a state with value and cost kept exact, a way back, and a relaxation's prices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.scores.registry import score_named
from placeopt.problem import Allocation, BoolArray, IntArray, Move, Placement, Problem, State
from placeopt.terms.costs.communication import Communication, job_cost
from placeopt.terms.objective import Weighted, cost, cost_delta, part_cost, value, weight_of
from placeopt.terms.protocols import Part


@dataclass(frozen=True, eq=False)
class Guide:
    """Prices from a relaxation of the whole round, in units of the cost level. They prove nothing."""

    surplus: np.ndarray  # (O,) cost of a job in the option beyond its worth, at these prices; the less the better
    gpu_rent: IntArray  # (N,) of a GPU on each node
    node_rent: IntArray  # (N,) of a bundle that needs more than ``half`` of the GPUs that are idle on the node
    half: IntArray  # (N,)

    def rent(self, gpus: int, nodes: IntArray) -> IntArray:
        """Shape (len(nodes),): rent of a bundle of ``gpus`` GPUs."""
        large = np.where(gpus > self.half[nodes], self.node_rent[nodes], 0)
        paid: IntArray = gpus * self.gpu_rent[nodes] + large
        return paid


Mark = tuple[int, int, int]
"""Moves made so far, value and cost at that point."""

RANKINGS = ("close_fit", "marginal_cost", "filled_cost")
"""Scores by which nodes for single bundles are ranked: by fit, by cost, by cost as if opened domains fill up."""


class IncrementalSolution:
    """
    Jobs on a cluster, changed by ``put`` alone: value and cost follow by exact increments.

    Running jobs are never moved. ``ranked`` has candidates by each of the `RANKINGS`; ``candidates`` are those by fit.
    ``is_placed`` (J,) tells which jobs have a place. ``paid`` (J,) is what jobs added to the cost when they were put
    here, and of those that were here before the cost of their communication.
    """

    def __init__(self, problem: Problem, allocation: Allocation, weighted: tuple[Weighted, ...]) -> None:
        self.problem, self.weighted = problem, weighted
        self.state = State(problem, allocation)
        self.ranked = {name: Candidates(self.state, score_named(name, problem)) for name in RANKINGS}
        self.candidates = self.ranked["close_fit"]
        self.value, self.cost = value(problem, allocation), cost(problem, allocation, weighted)
        path_price = weight_of(weighted, Communication)
        self.is_placed: BoolArray = np.array([placement is not None for placement in allocation], dtype=bool)
        self.paid: IntArray = np.zeros(problem.num_jobs, dtype=np.int64)
        for job, placement in enumerate(allocation) if path_price else ():
            if placement is not None and len(placement.gpus) > 1 and job not in problem.running:
                self.paid[job] = path_price * job_cost(problem, job, placement)
        self._undo: list[Move] = []

    def put(self, job: int, placement: Placement | None) -> None:
        """Put a waiting job somewhere, or take it away."""
        move, worth = Move(job, placement), self.problem.options.value
        part = Part(self.state, move)
        before = part_cost(self.state, part, self.weighted)
        undo = self._apply(move)
        delta = part_cost(self.state, part, self.weighted) - before
        self.cost += delta
        if placement is not None:
            self.paid[job] = delta
            self.value += int(worth[placement.option])
        if undo.placement is not None:
            self.value -= int(worth[undo.placement.option])
        self._undo.append(undo)

    def delta(self, job: int, placement: Placement | None) -> int:
        """Return what ``put`` would add to the cost."""
        return cost_delta(self.state, Move(job, placement), self.weighted)

    def mark(self) -> Mark:
        """Return where to come back to."""
        return len(self._undo), self.value, self.cost

    def roll_back(self, mark: Mark) -> None:
        """Take back every move since ``mark``."""
        length, self.value, self.cost = mark
        while len(self._undo) > length:
            self._apply(self._undo.pop())

    def commit(self) -> None:
        """Forget the way back: marks of before no longer hold."""
        self._undo.clear()

    def _apply(self, move: Move) -> Move:
        """Make a move; return the one that undoes it."""
        undo = self.state.apply(move)
        self.is_placed[move.job] = move.placement is not None
        for placement in (undo.placement, move.placement):
            for node in dict.fromkeys(placement.nodes) if placement is not None else ():
                for candidates in self.ranked.values():
                    candidates.changed(node)
        return undo
