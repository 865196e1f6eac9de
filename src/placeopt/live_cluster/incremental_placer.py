"""Decisions for single jobs against what is free now, with candidates kept from one decision to the next."""

from __future__ import annotations

import numpy as np

from placeopt.heuristics import CHOOSERS, Candidates, Chooser, place, score_named
from placeopt.problem import BoolArray, IntArray, Move, Placement, Problem, State
from placeopt.solving.draft import Recorder


class IncrementalPlacer:
    """
    Free capacity under the class problem, whose job k stands for every job of class k, and candidates for each score.

    A decision looks only at nodes that changed since the last one for jobs of the class, and then for the smallest
    score.
    """

    def __init__(self, problem: Problem, counts: IntArray, state: State) -> None:
        """``state`` is what is free, of ``problem`` or another on the same hardware; the placer keeps it."""
        self.problem = problem
        self.state = state
        _ = state.tenants  # followed from here on: placements are not kept
        self.state.problem, self.state.placements = problem, [None] * problem.num_jobs
        self.state.relations = []  # where jobs have some, decisions are made over a whole problem
        self.held_value = 0
        """Value of what was taken; the caller adds that of what ``state`` held before."""
        self._counts = counts
        self._candidates: dict[str, Candidates] = {}
        self._choosers: dict[str, Chooser] = {}
        self._worth: dict[int, int] = {}
        self._recorder: Recorder | None = None

    def use_hardware(self, problem: Problem, counts: IntArray) -> None:
        """Replace the problem by one of changed hardware, in which nodes that came are the last."""
        there = set(problem.node_ids)
        nodes = np.flatnonzero([name in there for name in self.problem.node_ids])
        self.state = carried_over(self.state, problem, nodes)
        self.state.relations = []
        self.use_classes(problem, counts)

    def use_classes(self, problem: Problem, counts: IntArray) -> None:
        """Replace the problem by one of more classes of jobs, or another mix of them, on the same hardware."""
        self.state.problem = self.problem = problem
        self.state.placements = [None] * problem.num_jobs
        self._counts = counts
        self._candidates.clear()
        self._choosers.clear()
        self._worth.clear()
        self._recorder = None

    @property
    def recorder(self) -> Recorder:
        """What turns placements of the class problem into records."""
        if self._recorder is None:
            self._recorder = Recorder(self.problem)
        return self._recorder

    @property
    def jobs_known(self) -> int:
        """Number of jobs in the mix that the scores are computed for."""
        return int(self._counts.sum())

    def take(self, number: int, placement: Placement, sign: int = 1) -> None:
        """Note that a job of class ``number`` now holds ``placement``, or (``sign`` -1) no longer does."""
        self._count(number, placement, sign)
        for node in dict.fromkeys(placement.nodes):
            for candidates in self._candidates.values():
                candidates.changed(node)
            for chosen in self._choosers.values():
                chosen.changed(node)

    def _count(self, number: int, placement: Placement, sign: int) -> None:
        self.state.take(number, placement, sign)
        self.held_value += sign * int(self.problem.options.value[placement.option])

    def candidates(self, score: str) -> Candidates:
        """Return the candidates under a score."""
        known = self._candidates.get(score)
        if known is None:
            by = score_named(score, self.problem, counts=self._counts)
            known = self._candidates[score] = Candidates(self.state, by, for_many=True)
        return known

    def decide(
        self, number: int, score: str, chooser: str | None = None, nodes: BoolArray | None = None
    ) -> Placement | None:
        """
        Return the best placement by ``score`` or ``chooser`` that every rule allows for class ``number``, or None.

        ``nodes``: Shape (N,), the only nodes in question, of which the score chooses.
        """
        if chooser is not None and nodes is None:
            if chooser not in self._choosers:
                self._choosers[chooser] = CHOOSERS[chooser](self.state)
            return self._choosers[chooser].place(number)
        candidates = self.candidates(score)
        candidates.restricted_to = nodes
        try:
            return place(candidates, number)
        finally:
            candidates.restricted_to = None

    def worth(self, number: int) -> int:
        """Return a bound: the value of a job of the class in its most valuable option that fits on idle nodes."""
        known = self._worth.get(number)
        if known is None:
            options = self.problem.options
            mine = np.array(self.problem.options_of(number), dtype=np.int64)
            possible = mine[options.node_class_ok[mine].any(axis=1)]
            known = self._worth[number] = int(options.value[possible].max(initial=0))
        return known


class FullPlacer(IncrementalPlacer):
    """
    A placer for one call, over a whole problem: its numbers are those of jobs.

    For rules that depend on neighbours, which counts of free capacity do not show.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem, np.bincount(problem.job_class), State(problem))
        self.state = State(problem)

    def _count(self, number: int, placement: Placement, sign: int) -> None:
        self.state.apply(Move(number, placement if sign > 0 else None))


def carried_over(state: State, problem: Problem, nodes: IntArray) -> State:
    """
    Return what is held on ``nodes`` of ``state``, ascending, as a state of a problem whose first nodes these are.

    ``problem`` lists nothing that runs; its further nodes are idle. Machines, and the domains of the cluster, are the
    same in both. No job of ``state`` holds anything on its other nodes, or the problem does not ask for its load there.
    """
    before, out = state.problem, State(problem)
    gpus = np.flatnonzero(np.isin(before.gpu_node, nodes))
    n, g = len(nodes), len(gpus)
    out.node_free[:n] -= (before.node_capacity - state.node_free)[nodes]
    out.gpu_free_milli[:g], out.gpu_free_memory[:g] = state.gpu_free_milli[gpus], state.gpu_free_memory[gpus]
    out.gpu_jobs[:g], out.gpu_utilisation[:g] = state.gpu_jobs[gpus], state.gpu_utilisation[gpus]
    out.gpu_slots[:g] = state.gpu_slots[gpus]
    for level, free in zip(problem.levels, out.level_free, strict=True):
        held = level.gpu_to_domain[out.gpu_jobs > 0]
        free -= np.bincount(held[held >= 0], minlength=len(free))
    out.link_load[:n], out.link_load[problem.num_nodes :] = state.link_load[nodes], state.link_load[before.num_nodes :]
    out.queue_used[:] = state.queue_used
    shifts = (problem.node_gpu_start[:n] - before.node_gpu_start[nodes]).tolist()
    for there, node, by in zip(out.tenants, nodes.tolist(), shifts, strict=False):
        here = state.tenants[node]
        if by:
            here = {(profile, tuple([gpu + by for gpu in held])): count for (profile, held), count in here.items()}
        there.update(here)
    return out
