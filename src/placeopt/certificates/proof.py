"""A tree of branches, each leaf of which is bounded by prices: a proof that no plan is worth more than is claimed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from placeopt.certificates.master import Branch, Counted
from placeopt.certificates.prices import Prices, PriceSearch
from placeopt.certificates.records import BranchProof, BundlePrice, NodePayment, PriceProof
from placeopt.certificates.room import Room

WHOLE = 1e-6
"""A number of jobs that is no further from a whole one counts as one: tolerance of the relaxation."""


class Proof:
    """Searches a proof of one claim."""

    def __init__(self, room: Room, search: PriceSearch, bound: Callable[[int], int], deadline: float) -> None:
        """
        Prepare.

        ``bound`` says what a bound on all that may start or change proves; ``deadline``: of ``time.monotonic()``.
        """
        self._room, self._search, self._bound, self._deadline = room, search, bound, deadline

    def prove(self, claim: int) -> PriceProof | BranchProof | None:
        """
        Return a proof that no plan is worth more than ``claim``, or that costs are below 0 by no more than that.

        None if none was found. Raises ``OutOfTime``.
        """
        return self._prove(claim, ())

    def _prove(self, claim: int, branches: Sequence[Branch]) -> PriceProof | BranchProof | None:
        def enough(parts: int) -> bool:
            return self._bound(parts // self._search.scale) <= claim

        prices, counts = self._search.search(branches, enough)
        if prices is not None and enough(prices.bound):
            return self._stated(prices)
        counted = self._most_apart(counts or {})
        if counts is None or counted is None or time.monotonic() > self._deadline:
            return None
        most = int(np.floor(counts[counted]))
        more = self._prove(claim, (*branches, Branch(counted, at_most=False, limit=most + 1)))
        at_most = more and self._prove(claim, (*branches, Branch(counted, at_most=True, limit=most)))
        if more is None or at_most is None:
            return None
        problem = self._room.problem
        jobs = tuple(problem.job_ids[job] for job in self._room.groups[counted.group].jobs)
        return BranchProof(jobs=jobs, option=counted.option, most=most, at_most=at_most, more=more)

    def _most_apart(self, counts: Mapping[Counted, float]) -> Counted | None:
        """Return the number of starts that is furthest from a whole one, else of bundles; None if there is none."""
        groups, running = self._room.groups, self._room.problem.running
        apart = {
            what: abs(number - round(number))
            for what, number in counts.items()
            if abs(number - round(number)) > WHOLE and groups[what.group].jobs[0] not in running
        }
        return max(apart, key=lambda what: (what.option is None, apart[what]), default=None)

    def _stated(self, prices: Prices) -> PriceProof:
        problem, room = self._room.problem, self._room
        jobs: dict[tuple[str, int, bool], list[str]] = {}
        for group in room.groups:
            for option, price, stays in {(way.option, prices.bundle[way.bundle], way.stays) for way in group.ways}:
                if price:
                    jobs.setdefault((option, price, stays), []).extend(problem.job_ids[job] for job in group.jobs)
        return PriceProof(
            scale=prices.value,
            cost=self._search.cost,
            prices=tuple(
                BundlePrice(option=option, price=price, stays=stays, jobs=tuple(alike))
                for (option, price, stays), alike in jobs.items()
            ),
            nodes=tuple(
                NodePayment(
                    nodes=tuple(problem.node_ids[node] for node in state.nodes),
                    most=most,
                    amounts={name: price for name, price in zip(room.amounts, row, strict=True) if price},
                )
                for state, most, row in zip(room.states, prices.most, prices.amounts, strict=True)
            ),
            branches=prices.branches,
        )
