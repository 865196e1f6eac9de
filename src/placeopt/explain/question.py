"""One waiting job under explanation: what is known of it, how to solve, by when, and what stayed open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from placeopt.errors import OutOfTime, SolverFault, Unsupported
from placeopt.explain.records import Rival
from placeopt.explain.removal import GivenUp, least_given_up
from placeopt.explain.removal_candidates import Jobs
from placeopt.explain.states import ExplainCase
from placeopt.feasibility.requirement import Requirement, requirements_of
from placeopt.model import Instance, Plan
from placeopt.problem import State
from placeopt.solving.runners import Solve

T = TypeVar("T")
MAX_PRICE = 2**50


@dataclass
class Question:
    """What every part of the answer needs. ``open`` collects the parts that could not be finished, with the cause."""

    instance: Instance
    plan: Plan
    case: ExplainCase
    solve: Solve
    deadline: float
    requirements: tuple[Requirement, ...] = field(init=False)
    open: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Take the job's options apart."""
        self.requirements = requirements_of(self.case.problem, self.case.job)

    def within(self, part: str, work: Callable[[], T]) -> T | None:
        """Return the result of ``work``; None, with the cause noted under ``part``, where it could not be finished."""
        try:
            return work()
        except (OutOfTime, SolverFault, Unsupported) as error:
            self.open[part] = f"not answered: {error}"
            return None

    def cheapest(
        self,
        state: State,
        jobs: Sequence[int],
        prices: Sequence[int],
        last_first: Sequence[tuple[int, int]] = (),
    ) -> tuple[Jobs, GivenUp] | None:
        """Return which of ``jobs`` would leave at the least price for this one to fit; of equal prices the fewest."""
        givers = Jobs(self.case, state, jobs, _with_ties(prices), last_first)
        found = least_given_up(givers, self.requirements, self.solve, self.deadline)
        return None if found is None else (givers, found)

    def rivals(self, givers: Jobs, found: GivenUp, values: Mapping[int, int]) -> tuple[Rival, ...]:
        """Name the jobs that would leave, with what they are worth."""
        ids = self.case.problem.job_ids
        return tuple(
            Rival(job=ids[job], value=values[job], running=job in self.case.running)
            for job, gone in zip(givers.jobs, found.given, strict=True)
            if gone
        )


def _with_ties(prices: Sequence[int]) -> list[int]:
    """Prices in which, of equal sums, the smaller set is the cheaper; as they are where they would get too large."""
    scale = len(prices) + 1
    return [price * scale + 1 for price in prices] if sum(prices) * scale < MAX_PRICE else list(prices)
