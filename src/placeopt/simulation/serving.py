"""Latencies and late answers of endpoints, from the times at which their replicas ran."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from placeopt.model.endpoint import Endpoint, Replica

Stay = tuple[Replica, int, int]
"""A replica that ran from one moment to another, in ms."""

LATE_SHARE = 0.05
"""Above it the 95th percentile of latency is late by an unknown time."""


@dataclass(frozen=True)
class Serving:
    """
    Requests and answers, all endpoints together.

    Requests are divided among an endpoint's replicas. At load r, a part of its capacity, an answer takes
    ``latency_ms`` and waits before that ``r / (2 (1 - r))`` times the time between two answers at full load: the mean
    of a queue with Poisson arrivals and constant service (M/D/1). Requests beyond the load at which that reaches the
    target are late; all are where no replica runs.
    """

    requests: float
    late: float
    """Requests answered late, or not at all: violations of the service level."""
    late_s: float
    """Time with late requests, summed over endpoints."""
    latency_p95_ms: float | None
    """None: late, or no requests."""

    @property
    def late_share(self) -> float:
        """Part of the requests that was late."""
        return self.late / self.requests if self.requests else 0.0


def latency_ms(replica: Replica, load: float) -> float:
    """Return the mean latency at a load of the part ``load``, below 1, of what replicas can serve."""
    return replica.latency_ms + _between_ms(replica) * load / (2 * (1 - load))


def most_load(replica: Replica, target_ms: int) -> float:
    """Return the highest load, as a part of the capacity, at which answers are in time on average."""
    slack = (target_ms - replica.latency_ms) / _between_ms(replica)
    return 2 * slack / (2 * slack + 1)


def _between_ms(replica: Replica) -> float:
    """Return the time between two answers of a replica that serves all it can."""
    return 1_000_000 / replica.rate_milli


def serving(endpoints: Iterable[tuple[Endpoint, list[Stay]]], until_ms: int) -> Serving | None:
    """
    Return the service of all endpoints by the replicas that ran, up to a moment; None if no request arrived.

    Where an endpoint has replicas of both kinds at a time, each serves the same part of its timely capacity.
    """
    requests = late = late_s = 0.0
    answers: list[tuple[float, float]] = []  # latency, requests
    for endpoint, stays in endpoints:
        for span_s, rate, running in _spans(endpoint, stays, until_ms):
            if not rate:
                continue
            requests += rate * span_s
            target = endpoint.latency_target_ms
            in_time = [one.rate_milli / 1000 * most_load(one, target) * count for one, count in running]
            part = min(1.0, rate / sum(in_time)) if sum(in_time) else 0.0
            for (one, _), most in zip(running, in_time, strict=True):
                answers.append((latency_ms(one, part * most_load(one, target)), part * most * span_s))
            missed = max(0.0, rate - sum(in_time))
            late += missed * span_s
            late_s += span_s if missed else 0.0
    if not requests:
        return None
    return Serving(requests, late, late_s, _p95(answers, requests) if late <= LATE_SHARE * requests else None)


def _p95(answers: list[tuple[float, float]], requests: float) -> float:
    count = 0.0
    for latency, number in sorted(answers):
        count += number
        if count >= (1 - LATE_SHARE) * requests * (1 - 1e-12):
            return latency
    return max(latency for latency, _ in answers)


def _spans(
    endpoint: Endpoint, stays: list[Stay], until_ms: int
) -> Iterable[tuple[float, float, list[tuple[Replica, int]]]]:
    """Yield seconds, requests per second, and numbers of running replicas, for each span without change."""
    end = min(endpoint.until_ms, until_ms)
    changes: list[tuple[int, int, int, int]] = [(step.from_ms, 0, step.rate_milli, 0) for step in endpoint.load]
    kinds = [endpoint.gpu] + ([endpoint.cpu] if endpoint.cpu is not None else [])
    for replica, begin, leave in stays:
        kind = kinds.index(replica)
        changes += [(begin, 1, kind, 1), (leave, 1, kind, -1)]
    changes.sort()
    counts, rate, now = [0] * len(kinds), 0, 0
    for at, what, value, sign in [*changes, (end, 2, 0, 0)]:
        if min(at, end) > now:
            yield (min(at, end) - now) / 1000, rate / 1000, [(k, n) for k, n in zip(kinds, counts, strict=True) if n]
            now = min(at, end)
        if what == 0:
            rate = value
        elif what == 1:
            counts[value] += sign
