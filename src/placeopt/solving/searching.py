"""The local search of a round: beside the stages where a thread is free, in turns with them where none is."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from placeopt.problem import Allocation
from placeopt.search import LocalSearch, is_compiled, what_is_judged
from placeopt.solving.bounds import FAR
from placeopt.solving.incumbent import Accepted, Offer, Refused

if TYPE_CHECKING:
    from placeopt.solving.context import SolveContext

CALL_S = 1 / 128
"""Seconds that a call is to take: compiled, nothing interrupts it. It takes at most twice as long as the one before."""
MOST_STEPS = 1_000
"""Steps of a call at most: compiled they take milliseconds, whatever the clock says."""
OFFERS = 1 / 8
"""Part of the time that offers may take while the round goes on."""
LAST_OFFER = 1
"""
Time for the offer of its last plan, after all stages, in multiples of what the first offer took: on openb and rounds
of 1,000 to 10,000 jobs it takes 0.45 to 1.2 of these, and the end of the round less than is reserved for it.
"""
DEAR = 2
"""How many times as much as the plan of the relaxations one costs that is far from it, and one from there may cost."""


@dataclass(frozen=True)
class OtherStart:
    """A plan that a search begins with beside the best one, and its cost."""

    allocation: Allocation
    cost: int


def _luby() -> Iterator[int]:
    """Yield 1, 1, 2, 1, 1, 2, 4, ...: restarts of these lengths are nearly as good as those of the best one."""
    turn, length = 1, 1
    while True:
        yield length
        turn, length = (turn + 1, 1) if turn & -turn == length else (turn, 2 * length)


def has_thread(context: SolveContext) -> bool:
    """Tell whether the search runs beside stages: where a thread is free, and no step of it holds Python's lock."""
    is_free = context.budget.threads > 1 and is_compiled()
    return is_free and what_is_judged(context.problem, context.weighted) is None


class Searching:
    """
    A search that begins with the best plan, and what it and the stages hand to each other.

    While a stage runs, the search runs in a thread of its own. Where the round has one thread only, or every step holds
    Python's lock (not compiled, or judged), the stage has half of the time that is left, and then the search as much as
    the stage took. Between stages the better plan of both goes on. In deterministic mode it runs in its own stage only.

    Where it has stalled, or costs `DEAR` times as much, half of its steps go to another search, from the plan that was
    made of the relaxations, be that worth less: jobs that cost little together are not found one by one. Its cost stays
    near that of its start. The better one of both goes on. The other one begins again with other random numbers, after
    some coolings (Luby et al. 1993).
    """

    def __init__(self, context: SolveContext) -> None:
        """Take a round that `placeopt.search.what_is_missing` finds nothing missing in; reserve time for its end."""
        self._context = context
        context.budget.reserve(context.budget.reserve_s + LAST_OFFER * context.budget.offer_s)
        self._before = 0  # steps of searches before this one
        self._calls = 1  # steps of the next call
        self._failed = self._stopped = False
        self._other: LocalSearch | None = None
        self._better_at = 0  # steps until the best plan
        self._lengths = _luby()
        self._other_ends = 0  # steps of the other search
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None
        self._deadline: float | None = None  # that of the round, while a stage has an earlier one
        self._offered = time.monotonic()
        self._accepted: int | None = None  # number of the last plan of the search that became the best one
        self._has_thread = has_thread(context)
        self._begin()

    def begin_again(self) -> None:
        """Go on from the best plan."""
        self.alone()
        self._before += self._search.steps
        self._begin()

    def _begin(self) -> None:
        best = self._context.incumbent
        self._search = self._new(best.allocation)
        self._changes = best.value - self._search.value  # what changes of running jobs cost

    def _new(self, start: Allocation) -> LocalSearch:
        context = self._context
        return LocalSearch(context.problem, start, context.weighted, seed=context.draw_seed())

    @staticmethod
    def _objective(search: LocalSearch) -> tuple[int, int]:
        return search.value, -search.cost

    @property
    def steps(self) -> int:
        """Number of all steps."""
        return self._before + self._search.steps + (0 if self._other is None else self._other.steps)

    @property
    def is_judged(self) -> bool:
        """Whether every placement is judged by what the search has no differences of."""
        return self._search.is_judged

    @property
    def is_better(self) -> bool:
        """Whether it holds a plan that is better than the best one, and none was refused."""
        best = self._context.incumbent
        return not self._failed and best.is_better(self._search.value + self._changes, self._search.cost)

    def is_far_ahead(self, worth: int) -> bool:
        """Tell whether its plan is worth much more than some other one."""
        return not self._failed and self._search.value + self._changes - worth > FAR * abs(worth)

    @property
    def holds_best(self) -> bool:
        """Whether the best plan is the last one that it offered."""
        return self._accepted == self._context.incumbent.number

    @property
    def is_due(self) -> bool:
        """Whether to offer its plan now: one that meets a bound, or where offers have not taken their time yet."""
        bounds, best, search = self._context.bounds, self._context.incumbent, self._search
        reached = search.value + self._changes
        meets = reached >= bounds.value and (reached > best.value or search.cost == bounds.cost)
        since_s = time.monotonic() - self._offered
        return self.is_better and (meets or self._context.budget.offer_s <= OFFERS * since_s)

    @property
    def has_stalled(self) -> bool:
        """Whether half of all steps or more, the latest, found nothing better."""
        return self._search.has_stalled and 2 * self._better_at <= self.steps

    def advance(self, steps: int) -> None:
        """Take some steps."""
        start, best = self._context.handover.other_start, self._objective(self._search)
        if start is not None and self._other is None and self._is_stuck(start):
            self._other = self._new(start.allocation)
            self._other_ends = next(self._lengths) * self._other.cooling_steps
            self._other.limit_cost(DEAR * start.cost)
        other = self._other
        if other is None:
            self._search.advance(steps)
        else:
            self._search.advance(steps - steps // 2)
            other.advance(steps // 2)
            if self._objective(other) > self._objective(self._search):
                self._before += self._search.steps
                self._search, self._other = other, None
                other.limit_cost(None)
            elif other.has_stalled and other.steps >= self._other_ends:
                self._before += other.steps
                self._other = None
        if self._objective(self._search) > best:
            self._better_at = self.steps

    def _is_stuck(self, start: OtherStart) -> bool:
        """Tell whether it finds nothing better, or costs far more than a plan of the relaxations."""
        return self._search.has_stalled or DEAR * start.cost < self._search.cost

    def call(self) -> None:
        """Take steps for some ``CALL_S``."""
        began = time.monotonic()
        self.advance(self._calls)
        took_s = time.monotonic() - began
        self._calls = min(MOST_STEPS, max(1, int(self._calls * min(2.0, CALL_S / max(took_s, CALL_S / 2)))))

    def exchange(self) -> Offer | None:
        """Offer its plan if that is better than the best one, or go on from the best one if that is better."""
        best, search = self._context.incumbent, self._search
        offer: Offer | None = None
        if self.is_better:
            offer = best.offer(search.allocation())
            self._offered = time.monotonic()
            if isinstance(offer, Accepted):
                self._accepted = best.number
        if isinstance(offer, Refused):
            self._failed = True
        elif (search.value + self._changes, -search.cost) < (best.value, -best.cost):
            self.begin_again()
        return offer

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Run while the block does, or after it; the block may end that with `alone`."""
        budget = self._context.budget
        if budget.params.deterministic or self._failed:
            yield
            return
        began = time.monotonic()
        if self._has_thread:
            self._thread = threading.Thread(target=self._run, name="placeopt-search", daemon=True)
            self._thread.start()
        else:
            self._deadline, budget.deadline = budget.deadline, (began + budget.deadline) / 2
        try:
            yield
        finally:
            takes_turns = self._deadline is not None
            self.alone()
        if takes_turns:
            ends = min(budget.deadline, 2 * time.monotonic() - began)
            while time.monotonic() < ends and not budget.stopped():
                self.call()

    def alone(self) -> None:
        """Let the stage that runs have all threads, and all of the time that is left."""
        if self._deadline is not None:
            self._context.budget.deadline, self._deadline = self._deadline, None
        if self._thread is not None:
            thread, self._thread, self._stopped = self._thread, None, True
            self._stop_both(stopped=True)
            thread.join()
            self._stopped = False
            self._stop_both(stopped=False)
            if self._error is not None:
                self._failed = True
                raise self._error

    def _stop_both(self, *, stopped: bool) -> None:
        for search in (self._search, self._other):
            if search is not None:
                search.stop(stopped)

    def _run(self) -> None:
        try:
            while not self._stopped:
                self.call()
        except Exception as error:  # noqa: BLE001 - it is raised in the thread of the round
            self._error = error
