"""What a start at a place costs beside those who are there, whenever it is: the job's slowdown, others', sockets."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace

from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.greedy_pass import places_on_node
from placeopt.heuristics.run_times import company_of, path_excess, run_time_ms, run_time_there_ms, slowed_ms, spread_of
from placeopt.problem import Move, Placement
from placeopt.terms.costs.interference import meets, together
from placeopt.terms.costs.utility import talks

HARM = 2
"""What neighbours lose by a job counts twice: for them, and for the jobs that get their GPUs next."""


@dataclass(frozen=True, slots=True)
class StartEstimate:
    """A place for a job, and the effects of a start there at any time, as long as the jobs there stay."""

    placement: Placement
    slowdown_thousandths: int  # by how much the job's run time is longer there
    harm_ms: int  # by how much its neighbours' run times get longer
    clear_ms: tuple[int, ...]  # end of the last other job on each socket it would use; without unknown ends

    def in_option(self, option: int) -> Placement:
        """Return the placement in an option of the same kind."""
        placement = self.placement
        return placement if placement.option == option else replace(placement, option=option)

    def scored(self, alone_ms: int | None, at: int, spread: int) -> tuple[int | None, int]:
        """
        Return the end of a start at a time, None where it is unknown, and its score, the lower the better.

        ``alone_ms``: The job's run time in the best place. ``spread``: Thousandths of the time that its sockets are
        divided for longer, which a job loses that finds no whole one.
        """
        if alone_ms is None:
            return None, 0
        end = at + slowed_ms(alone_ms, self.slowdown_thousandths)
        delay = sum(max(0, end - max(clear, at)) for clear in self.clear_ms)
        return end, 1000 * (end + HARM * self.harm_ms) + spread * delay


class StartEstimates:
    """Estimates of starts in the state of ``candidates``, whose jobs end at ``ends``, as far as that is known."""

    def __init__(self, candidates: Candidates, ends: Mapping[int, int | None]) -> None:
        self._candidates, self._ends = candidates, ends
        self._problem, self._state = candidates.problem, candidates.state
        self._on_node: dict[Hashable, tuple[StartEstimate, ...]] = {}

    def on_node(self, job: int, option: int, node: int) -> tuple[StartEstimate, ...]:
        """Return the estimates on a node with room for the whole job, computed once for the same jobs there."""
        key = (self._kind(job, option), node, *map(self._occupant, self._state.node_jobs[node]))
        found = self._on_node.get(key)
        if found is None:
            found = tuple(self.at(job, place) for place in places_on_node(self._candidates, option, node))
            self._on_node[key] = found
        return found

    def at(self, job: int, placement: Placement) -> StartEstimate:
        """Return the estimate at any place with room."""
        slowdown, harm = self._effects(job, placement)
        return StartEstimate(placement, slowdown, harm, self._clear(placement))

    def _kind(self, job: int, option: int) -> Hashable:
        """Return what is equal for options of jobs that differ in run time and worth alone."""
        problem, options = self._problem, self._problem.options
        return (
            self._candidates.shape(option),
            options.part_level[option],
            int(options.utilisation[option]),
            int(problem.best_path[option]),
            int(problem.class_profile[problem.job_class[job]]),
            spread_of(problem, job) if talks(problem, option) else 0,
        )

    def _occupant(self, job: int) -> Hashable:
        """Return what a job on a node means for others there; one on other nodes too is slowed from there as well."""
        held = self._state.placements[job]
        is_spread = held is not None and any(node != held.nodes[0] for node in held.nodes)
        return job, held, self._ends.get(job), company_of(self._state, job) if is_spread else 0

    def _effects(self, job: int, placement: Placement) -> tuple[int, int]:
        """Return the job's excess there in thousandths, and by how much its neighbours' run times get longer, in ms."""
        state, problem = self._state, self._problem
        apart = path_excess(problem, placement, spread_of(problem, job))
        if problem.policy.interference.model == "curve":  # all that share a GPU have a part in it: put it there and see
            beside = dict.fromkeys(other for node in placement.nodes for other in state.node_jobs[node])
            alone = [run_time_ms(state, other) or 0 for other in beside]
            undo = state.apply(Move(job, placement))
            company, both = company_of(state, job), [run_time_ms(state, other) or 0 for other in beside]
            state.apply(undo)
            return apart + company, sum(max(0, b - a) for a, b in zip(alone, both, strict=True))
        excesses, harm = [], 0
        for other, felt, caused in meets(state, job, placement):
            excesses.append(felt)
            held = state.placements[other]
            if caused and held is not None:
                alone_there = company_of(state, other)
                before, after = (
                    run_time_there_ms(problem, other, held, excess) or 0
                    for excess in (alone_there, together(problem, (alone_there, caused)))
                )
                harm += after - before
        return apart + together(problem, excesses), harm

    def _clear(self, placement: Placement) -> tuple[int, ...]:
        """Return when the others on each socket in use have ended; sockets where one end is unknown are left out."""
        problem, clear = self._problem, []
        sockets = {(int(problem.gpu_node[gpu]), int(problem.gpu_socket[gpu])) for gpu in placement.gpus}
        for node, socket in sockets:
            ends = [
                self._ends.get(other)
                for other, held in self._state.placed(self._state.node_jobs[node]).items()
                if any(problem.gpu_node[gpu] == node and problem.gpu_socket[gpu] == socket for gpu in held.gpus)
            ]
            known = [end for end in ends if end is not None]
            if len(known) == len(ends):
                clear.append(max(known, default=0))
        return tuple(clear)
