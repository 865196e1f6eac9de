"""Who would have to stop where minimal utilities count: removals in order of price, each judged by all minima."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from placeopt.deadline import Deadline
from placeopt.errors import OutOfTime
from placeopt.feasibility.minimal_utility import Reach, reach
from placeopt.formulations import add_counts, decode
from placeopt.linear import NO_UPPER, ModelBuilder
from placeopt.model import Instance
from placeopt.problem import Move, State, compile_problem
from placeopt.problem.changes import open_state
from placeopt.solvers.result import SolveOptions
from placeopt.solving.runners import Solve
from placeopt.terms.variables import STAY


@dataclass(frozen=True)
class Candidate:
    """Jobs without which a job has room on some nodes; ``proven``: no candidate that is left is cheaper."""

    gone: frozenset[str]
    nodes: frozenset[int]
    proven: bool


@dataclass(frozen=True)
class JudgedRemoval:
    """Jobs without which a job has a place where all minima are kept; ``proven``: no cheaper ones do."""

    gone: frozenset[str]
    place: Reach
    proven: bool


class PricedRemovals:
    """
    The jobs that may stop for one that waits, in order of price: a model from which what is refused is cut off.

    ``round_``: Of one waiting job, and running ones worth their price (``room_round``). The model states all its rules,
    but knows of a minimal utility only what it asks of paths, whoever the neighbours are.
    """

    def __init__(self, round_: Instance, job: str, solve: Solve, deadline: Deadline) -> None:
        self._solve, self._deadline, self._builder = solve, deadline, ModelBuilder(deadline.at)
        problem = compile_problem(round_)
        self._job = problem.job_ids.index(job)
        self._columns = v = add_counts(self._builder, open_state(problem))
        jobs = np.array([jobs[0] for jobs in v.unit_jobs], dtype=np.int64)[v.start_unit]
        stays, mine = v.start_kind == STAY, jobs == self._job
        names = [problem.job_ids[j] for j in jobs[stays].tolist()]
        self._stay = dict(zip(names, v.start[stays].tolist(), strict=True))
        self._bundles = mine[v.bundle_start]
        self._builder.add_row(v.start[mine], 1, 1, NO_UPPER)
        self._builder.set_objective(v.start[stays], v.start_value[stays], "max")

    @property
    def jobs(self) -> frozenset[str]:
        """Those that may stop."""
        return frozenset(self._stay)

    def cheapest(self) -> Candidate | None:
        """Return the cheapest candidate that is left; None if there is none. Raises ``OutOfTime``."""
        self._deadline.check("what others could give up was looked for")
        solution = self._solve("highs", self._builder.build(), SolveOptions(time_limit_s=self._deadline.left_s))
        if solution.status == "infeasible":
            return None
        if solution.values is None:
            raise OutOfTime("stopped while looking for what others could give up")
        placed = decode(self._columns, solution.values)
        place, gone = placed[self._job], (name for name, stay in self._stay.items() if not solution.values[stay])
        nodes = () if place is None else place.nodes
        return Candidate(frozenset(gone), frozenset(nodes), solution.objective == solution.bound)

    def forbid(self, refused: Candidate, jobs: Iterable[str]) -> None:
        """Forbid the job all places on the candidate's nodes alone while, of ``jobs``, just the same are gone."""
        v = self._columns
        elsewhere = v.bundle[self._bundles & ~np.isin(v.bundle_node, list(refused.nodes))]
        gone = [self._stay[name] for name in jobs if name in refused.gone]
        there = [self._stay[name] for name in jobs if name not in refused.gone]
        columns = np.concatenate([elsewhere, np.array([*gone, *there], dtype=np.int64)])
        signs = np.repeat([1, -1], [len(elsewhere) + len(gone), len(there)])
        self._builder.add_row(columns, signs, 1 - len(there), NO_UPPER)


def judged_removal(removals: PricedRemovals, free: State, job: int, deadline: Deadline) -> JudgedRemoval | None:
    """
    Return the cheapest removal that leaves the job a place where it and all jobs that start have their minimum.

    ``free``: All jobs where they are held, without minima (``without_minima``). None if no removal does. What a job's
    utility depends on is who is on its nodes. So a candidate is refused for its nodes together with those around: what
    happens elsewhere cannot help, unless it makes room for other places on these nodes. Raises ``OutOfTime``.
    """
    while (candidate := removals.cheapest()) is not None:
        found = _reach_without(free, job, candidate.gone, candidate.nodes, deadline)
        if found is not None and found.reached:
            return JudgedRemoval(candidate.gone, found, candidate.proven)
        near = _around(free, candidate.nodes) & removals.jobs
        roomiest = _reach_without(free, job, candidate.gone | (removals.jobs - near), candidate.nodes, deadline)
        removals.forbid(candidate, removals.jobs if roomiest is not None and roomiest.reached else near)
    return None


def _reach_without(
    free: State, job: int, gone: Iterable[str], nodes: frozenset[int], deadline: Deadline
) -> Reach | None:
    """Return the best place on some nodes without some jobs."""
    numbers = {name: j for j, name in enumerate(free.problem.job_ids)}
    undo = [free.apply(Move(numbers[name], None)) for name in gone]
    found = reach(free, job, deadline, nodes)
    for move in undo:
        free.apply(move)
    return found


def _around(state: State, nodes: frozenset[int]) -> frozenset[str]:
    """Return the jobs on some nodes, and on other nodes of these jobs."""
    placed = {j: set(held.nodes) for j, held in enumerate(state.placements) if held is not None}
    around = nodes.union(*(held for held in placed.values() if held & nodes))
    return frozenset(state.problem.job_ids[j] for j, held in placed.items() if held & around)
