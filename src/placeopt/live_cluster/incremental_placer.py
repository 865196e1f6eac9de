"""The desk: where single jobs are decided on, against what is free now, with everything known from before."""

from __future__ import annotations

import numpy as np

from placeopt.heuristics import CHOOSERS, Candidates, Chooser, Table, place, score_named, table_for
from placeopt.live_cluster.index_remap import IndexRemap
from placeopt.problem import IntArray, Move, Placement, Problem, State
from placeopt.solving.draft import Recorder


class IncrementalPlacer:
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
        self._candidates: dict[str, Candidates] = {}
        self._tables: dict[str, Table | None] = {}
        self._choosers: dict[str, Chooser] = {}
        self._worth: dict[int, int] = {}
        self._recorder: Recorder | None = None

    def learn(self, problem: Problem, counts: IntArray) -> None:
        """Go on with more classes of jobs, or another mix of them, on the same hardware."""
        self.state.problem = self.problem = problem
        self.state.placements = [None] * problem.num_jobs
        self._forget(counts)

    def move(self, problem: Problem, counts: IntArray, carry: IndexRemap, placed: list[Placement]) -> None:
        """Go on with changed hardware; ``placed`` is all that is held, in old numbers."""
        self.state = carry.state(self.state, placed)
        self.problem = problem
        self._forget(counts)

    def _forget(self, counts: IntArray) -> None:
        self._counts = counts
        self._candidates.clear()
        self._tables.clear()
        self._choosers.clear()
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
            for chooser in self._choosers.values():
                chooser.changed(node)

    def _count(self, number: int, placement: Placement, sign: int) -> None:
        self.state.take(number, placement, sign)

    def candidates(self, score: str) -> Candidates:
        """Return what is known of the nodes under a score."""
        known = self._candidates.get(score)
        if known is None:
            by = score_named(score, self.problem, counts=self._counts)
            known = self._candidates[score] = Candidates(self.state, by)
        return known

    def decide(self, number: int, score: str, chooser: str | None = None) -> Placement | None:
        """
        Return the best placement that every rule allows for a job of class ``number``, or None.

        The best by ``score``; or by the ``chooser`` of that name, which then takes its place.
        """
        if chooser is not None:
            if chooser not in self._choosers:
                self._choosers[chooser] = CHOOSERS[chooser](self.state)
            return self._choosers[chooser].place(number)
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


class FullPlacer(IncrementalPlacer):
    """
    A desk for one call, over a whole problem: its numbers are those of jobs.

    For rules that look at who is beside whom, which a count of what is free does not tell.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem, np.bincount(problem.job_class), State(problem))
        self.state = State(problem)

    def _count(self, number: int, placement: Placement, sign: int) -> None:
        self.state.apply(Move(number, placement if sign > 0 else None))
