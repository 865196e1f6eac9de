"""Jobs that arrive one at a time, by prices: with a few moves now and then, with quotas where demand is known."""

from __future__ import annotations

from dataclasses import dataclass, fields
from numbers import Integral

import numpy as np

from placeopt.arguments import expect
from placeopt.errors import BadInput, Unsupported
from placeopt.heuristics import Candidates, place
from placeopt.heuristics.scores.prices import PriceScore
from placeopt.heuristics.scores.table import served
from placeopt.problem import IntArray, Placement, Problem, State


@dataclass(frozen=True)
class Moves:
    """
    Which of the jobs placed so far are moved to where they cost less by now. Ours.

    Rounds of moves follow the first arrival and every ``every``-th after it. A round draws jobs by the seed and moves
    them one after the other, never to an option of less value.

    Attributes
    ----------
    most
        Jobs moved in a round, at most.
    every
        Arrivals from one round to the next.
    tried
        Jobs that are drawn in a round, at most.
    least_saving_micro
        What a move must save at least, in millionths of a GPU that others lose (``PriceScore``).

    Raises
    ------
    BadInput
        If one of them is not a whole number of at least 1. Without moves: ``moves=None``.
    """

    most: int = 10
    every: int = 100
    tried: int = 50
    least_saving_micro: int = 20_000

    def __post_init__(self) -> None:
        for name in (field.name for field in fields(self)):
            value = getattr(self, name)
            expect(f"Moves.{name}", value, Integral, "a whole number")
            if value < 1:
                raise BadInput(f"Moves.{name}: {value}, expected 1 or more; to have no moves, leave Moves out")


@dataclass(frozen=True, eq=False)
class DemandQuota:
    """
    Of each class of jobs the part that is taken: that of a plan for all that is expected to arrive. Ours.

    Of the jobs of a class that have come, as many are taken as the plan's part of them is, rounded to the nearest whole
    number. Those beyond are refused, wherever there is room. A class of which none is expected is refused altogether.

    Attributes
    ----------
    expected
        (K,) jobs of each class that arrive until the horizon.
    planned
        (K,) how many of them the plan places; fractions where it is one of a relaxation.

    Raises
    ------
    BadInput
        If the two differ in shape, or more is planned than expected.
    """

    expected: IntArray
    planned: np.ndarray

    def __post_init__(self) -> None:
        if self.expected.ndim != 1 or self.expected.shape != self.planned.shape:
            raise BadInput(
                f"Quota: expected {self.expected.shape} and planned {self.planned.shape}, "
                "expected one number for each class of jobs in both"
            )
        wrong = np.flatnonzero(~((self.planned > -0.5) & (self.planned < self.expected + 0.5)))
        if len(wrong):
            k = int(wrong[0])
            raise BadInput(
                f"Quota.planned[{k}]: {self.planned[k]}, expected 0 to {self.expected[k]}, the jobs that are expected"
            )

    @property
    def parts(self) -> np.ndarray:
        """(K,) part of a class's jobs that is taken, 0 to 1."""
        parts: np.ndarray = self.planned / np.maximum(self.expected, 1)
        return parts

    @property
    def mix(self) -> IntArray:
        """(K,) planned jobs of each class, whole ones: the mix that prices go by."""
        mix: IntArray = np.rint(self.planned).astype(np.int64)
        return mix


class OnlinePlacer:
    """
    A cluster on which jobs arrive one at a time; each is placed at once or never.

    A job goes where it costs least by ``PriceScore``. No job leaves. The same problem, arrivals, arguments and seed
    give the same placements.

    Parameters
    ----------
    problem
        What may arrive, and the cluster with what runs there; running jobs are never moved. Without a quota its jobs
        are also the mix that prices go by.
    quota
        Whom to refuse, and the mix that prices go by; None refuses no job that has room.
    moves
        How jobs that have arrived are moved; None moves no job.
    seed
        Draws the jobs that are looked at in rounds of moves.

    Attributes
    ----------
    state
        What is free now. Its ``placements`` hold running jobs only, since a job may arrive more than once.
    jobs
        Job of each arrival so far.
    placements
        Of each arrival: where it is now, or None where it was refused or had no room.
    refused
        Arrivals, counted from 0, that the quota refused.
    moved
        How many moves there were in each round of moves so far.

    Raises
    ------
    Unsupported
        If more than GPU shares, CPU and memory decides whether a job fits: ``greedy`` and ``Engine`` take ``prices``
        there, without moves and quotas.
    BadInput
        If the quota is for another number of classes.
    """

    def __init__(
        self, problem: Problem, *, quota: DemandQuota | None = None, moves: Moves | None = None, seed: int = 0
    ) -> None:
        classes = problem.num_classes
        if not served(problem).all():
            raise Unsupported(
                "one by one: only for jobs of one worker where GPU shares, CPU and memory alone decide what fits; "
                "use placeopt.heuristics.greedy or an Engine, method prices"
            )
        if quota is not None and len(quota.expected) != classes:
            raise BadInput(f"quota: of {len(quota.expected)} classes of jobs, expected {classes}, those of the problem")
        expect("seed", seed, Integral, "a whole number")
        if seed < 0:
            raise BadInput(f"seed: {seed}, expected 0 or more")
        self.state = State(problem)
        self.jobs: list[int] = []
        self.placements: list[Placement | None] = []
        self.refused: list[int] = []
        self.moved: list[int] = []
        score = PriceScore(problem, None if quota is None else quota.mix)
        self._candidates = Candidates(self.state, score, for_many=True)
        self._parts = None if quota is None else quota.parts.tolist()
        self._class: list[int] = problem.job_class.tolist()
        self._came, self._taken = [0] * classes, [0] * classes
        self._moves, self._rng = moves, np.random.default_rng(seed)
        self._placed: list[tuple[int, Placement]] = []
        """Arrivals that are somewhere, and where."""

    def arrive(self, job: int) -> Placement | None:
        """
        Decide where a job goes, carry it out, and then the round of moves if it is time for one.

        Parameters
        ----------
        job
            Index in the problem. One that has arrived before stands for another just like it.

        Returns
        -------
        Placement or None
            Where it starts; None if it was refused or there is no room. A round of moves may have moved it since.

        Raises
        ------
        BadInput
            If there is no such job, or it runs since before.
        """
        if not 0 <= job < len(self._class):
            raise BadInput(f"job: {job}, expected 0 to {len(self._class) - 1}")
        if job in self.state.problem.running:
            raise BadInput(f"job: {job} ({self.state.problem.job_ids[job]!r}) runs already, expected one that waits")
        arrival, k = len(self.jobs), self._class[job]
        self.jobs.append(job)
        self._came[k] += 1
        placement = None
        if self._parts is not None and self._taken[k] + 0.5 > self._parts[k] * self._came[k]:
            self.refused.append(arrival)
        else:
            placement = place(self._candidates, job)
        self.placements.append(placement)
        if placement is not None:
            self._change(job, placement, 1)
            self._taken[k] += 1
            self._placed.append((arrival, placement))
        if self._moves is not None and arrival % self._moves.every == 0 and self._placed:
            self.moved.append(self._move_some(self._moves))
        return placement

    def _change(self, job: int, placement: Placement, sign: int) -> None:
        self.state.take(job, placement, sign)
        self._candidates.changed(placement.nodes[0])

    def _move_some(self, moves: Moves) -> int:
        """Return how many were moved."""
        moved, candidates = 0, self._candidates
        for index in self._rng.choice(len(self._placed), min(moves.tried, len(self._placed)), replace=False).tolist():
            arrival, before = self._placed[index]
            job = self.jobs[arrival]
            self._change(job, before, -1)
            after = place(candidates, job) or before  # there is room where it was, so something is found
            was, now = (candidates.scores(held.option)[held.nodes[0]] for held in (before, after))
            if was - now < moves.least_saving_micro:
                after = before
            self._change(job, after, 1)
            self._placed[index], self.placements[arrival] = (arrival, after), after
            moved += after is not before
            if moved == moves.most:
                break
        return moved
