"""Shares of GPUs in a simulation: placements state requests, logs and progress use grants."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from placeopt.model import Placement
from placeopt.model.policy import ShareMode
from placeopt.model.scenario import Scenario
from placeopt.problem.grants import Bounds, bounds_of, has_limit, with_grants, with_shares


class Shares:
    """
    Requests and limits of a scenario's jobs under a share mode.

    What is granted above a request changes with every start and end on the GPU, so the simulation keeps requests and
    computes grants by the rule of rounds (`placeopt.problem.grants`) where they matter.
    """

    def __init__(self, scenario: Scenario, mode: ShareMode) -> None:
        self._jobs = {arrival.job.id: arrival.job for arrival in scenario.arrivals}
        self._mode: ShareMode = mode
        self._limited = {name for name, job in self._jobs.items() if has_limit(job)}
        self.granting = mode == "fraction" and bool(self._limited)
        """Whether anything can be granted above a request."""

    def bounds(self, placement: Placement) -> Bounds:
        """Return request and limit of a placed job."""
        return bounds_of(placement, self._jobs, self._mode)

    def requested(self, placement: Placement) -> Placement:
        """Return a placement with the request as share of each GPU."""
        if placement.job not in self._limited:
            return placement
        request, _ = self.bounds(placement)
        return with_shares(placement, [dict.fromkeys(a.gpus, request) for a in placement.assignments])

    def granted(self, placements: Sequence[Placement], beside: Iterable[Placement] = ()) -> tuple[Placement, ...]:
        """Return placements with the shares granted to them beside others."""
        if not self.granting:
            return tuple(placements)
        bounds = [self.bounds(placement) for placement in placements]
        return tuple(with_grants(placements, bounds, ((one, self.bounds(one)) for one in beside)))
