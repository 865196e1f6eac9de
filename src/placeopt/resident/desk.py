"""The desk: where single jobs are decided on, against what is free now, with everything known from before."""

from __future__ import annotations

import numpy as np

from placeopt.heuristics import Candidates, Table, place, score_named, table_for
from placeopt.problem import IntArray, Move, Placement, Problem, State
from placeopt.resident.carry import Carry
from placeopt.stages.draft import Recorder


class LastingCandidates(Candidates):
    """``Candidates`` for as long as a cluster stays: the journal of changed nodes does not grow without end."""

    def __init__(self, state: State, score: str, counts: IntArray) -> None:
        """``counts``, shape (K,): jobs of each class, for scores that go by the mix of jobs."""
        problem = state.problem
        super().__init__(state, score_named(score, problem, counts=counts))

    def changed(self, node: int) -> None:
        """Note that the free capacity of ``node`` changed."""
        super().changed(node)
        if len(self._journal) > 4 * self.problem.num_nodes + 1000:  # what fell behind that far is worked out anew
            self._journal.clear()
            self._known.clear()


class Desk:
    """
    Free capacity under the vocabulary, whose job k stands for every job of class k, and candidates for each score.

    A decision looks only at nodes that changed since the last one for jobs of the class, and then for the smallest
    score.
    """

    def __init__(self, problem: Problem, counts: IntArray, state: State) -> None:
        """``state`` is what is free, of ``problem`` or another on the same hardware; the desk keeps it."""
        self.problem = problem
        self.state = state
        _ = state.tenants  # followed from here on: placements are not kept
        self.state.problem, self.state.placements = problem, [None] * problem.num_jobs
        self._counts = counts
        self._candidates: dict[str, LastingCandidates] = {}
        self._tables: dict[str, Table | None] = {}
        self._worth: dict[int, int] = {}
        self._recorder: Recorder | None = None

    def learn(self, problem: Problem, counts: IntArray) -> None:
        """Go on with more classes of jobs, or another mix of them, on the same hardware."""
        self.state.problem = self.problem = problem
        self.state.placements = [None] * problem.num_jobs
        self._forget(counts)

    def move(self, problem: Problem, counts: IntArray, carry: Carry, placed: list[Placement]) -> None:
        """Go on with changed hardware; ``placed`` is all that is held, in old numbers."""
        self.state = carry.state(self.state, placed)
        self.problem = problem
        self._forget(counts)

    def _forget(self, counts: IntArray) -> None:
        self._counts = counts
        self._candidates.clear()
        self._tables.clear()
        self._worth.clear()
        self._recorder = None

    @property
    def recorder(self) -> Recorder:
        """What turns placements of the vocabulary into records."""
        if self._recorder is None:
            self._recorder = Recorder(self.problem)
        return self._recorder

    @property
    def jobs_known(self) -> int:
        """Number of jobs whose mix the scores go by."""
        return int(self._counts.sum())

    def take(self, number: int, placement: Placement, sign: int = 1) -> None:
        """Note that a job of class ``number`` now holds ``placement``, or (``sign`` -1) does so no more."""
        self._count(number, placement, sign)
        for node in dict.fromkeys(placement.nodes):
            for candidates in self._candidates.values():
                candidates.changed(node)
            for table in self._tables.values():
                if table is not None:
                    table.changed(node)

    def _count(self, number: int, placement: Placement, sign: int) -> None:
        self.state.take(number, placement, sign)

    def candidates(self, score: str) -> LastingCandidates:
        """Return what is known of the nodes under a score."""
        known = self._candidates.get(score)
        if known is None:
            known = self._candidates[score] = LastingCandidates(self.state, score, self._counts)
        return known

    def decide(self, number: int, score: str) -> Placement | None:
        """Return the best placement by ``score`` that every rule allows for a job of class ``number``, or None."""
        if score not in self._tables:
            self._tables[score] = table_for(self.state, score, self._counts)
        table = self._tables[score]
        return place(self.candidates(score), number) if table is None else table.place(number)

    def worth(self, number: int) -> int:
        """Return the value of a job of class ``number`` in its dearest option that fits on idle nodes: a bound."""
        known = self._worth.get(number)
        if known is None:
            options = self.problem.options
            mine = np.array(self.problem.options_of(number), dtype=np.int64)
            possible = mine[options.node_class_ok[mine].any(axis=1)]
            known = self._worth[number] = int(options.value[possible].max(initial=0))
        return known


class FullDesk(Desk):
    """
    A desk for one call, over a whole problem: its numbers are those of jobs.

    For rules that look at who is beside whom, which a count of what is free does not tell.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem, np.bincount(problem.job_class), State(problem))
        self.state = State(problem)

    def _count(self, number: int, placement: Placement, sign: int) -> None:
        self.state.apply(Move(number, placement if sign > 0 else None))
