"""Endpoints: replicas that arrive and leave by the policy's rule for the load, and how late they answer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import NamedTuple

from placeopt.errors import BadInput
from placeopt.model import Job, Option
from placeopt.scheduling.policy import Scheduling
from placeopt.simulation.autoscaler import wanted_over_time
from placeopt.simulation.latency import latency_ms, load_of, most_load
from placeopt.simulation.records.endpoint import Endpoint, Replica
from placeopt.simulation.records.scenario import Arrival, Scenario

LATE_SHARE = 0.05
"""Part of the requests that take longer than the 95th percentile of latency."""


def with_replicas(scenario: Scenario, scheduling: Scheduling) -> Scenario:
    """Return the scenario with the replicas that the policy wants for its endpoints; the same if there are none."""
    if not scenario.endpoints:
        return scenario
    added = [arrival for endpoint in scenario.endpoints for arrival in replicas(endpoint, scheduling)]
    taken = {arrival.job.id for arrival in scenario.arrivals}
    for arrival in added:
        if arrival.job.id in taken:
            raise BadInput(
                f"arrivals: job {arrival.job.id!r} has the name of a replica of an endpoint; rename one of them"
            )
        taken.add(arrival.job.id)
    return scenario.model_copy(update={"arrivals": (*scenario.arrivals, *added)})


def replicas(endpoint: Endpoint, scheduling: Scheduling) -> Iterator[Arrival]:
    """
    Yield an arrival for every stay of a replica, those of the first replica first; those with GPUs before the others.

    The last to arrive is the first to leave: replica r is there while r or more are wanted. The utilisation of its GPUs
    is the mean part of its capacity that the load needs, rounded up to ten percent so that few kinds of jobs arise.
    Replicas that may come in the place of others, which do not come then, are the last (`core_stays`).
    """
    steps = wanted_over_time(endpoint, scheduling.replicas)
    yield from _of_kind(endpoint, endpoint.gpu, "gpu", [(at, with_gpus) for at, (with_gpus, _) in steps])
    if endpoint.cpu is not None:
        yield from _of_kind(endpoint, endpoint.cpu, "cpu", [(at, on_cores) for at, (_, on_cores) in steps])
    for stay in core_stays(endpoint, scheduling):
        yield stay.instead


@dataclass(frozen=True)
class CoreStay:
    """A time in which replicas on CPU cores are wanted, and the one with GPUs that could replace them."""

    on_cores: tuple[Arrival, ...]
    """Those that come in this time, the first to come first."""
    instead: Arrival
    """It comes with the first of them, and leaves with the last."""

    @property
    def first_millicores(self) -> int:
        """CPU of the replicas that come first."""
        first_ms = self.instead.job.arrival_ms
        demands = [arrival.job.options[0].demand for arrival in self.on_cores if arrival.job.arrival_ms == first_ms]
        return sum(demand.cpu_millicores for demand in demands)


def core_stays(endpoint: Endpoint, scheduling: Scheduling) -> list[CoreStay]:
    """Return the times in which a policy wants replicas on CPU cores, in order."""
    if endpoint.cpu is None:
        return []
    numbers = [(at, on_cores) for at, (_, on_cores) in wanted_over_time(endpoint, scheduling.replicas)]
    arrivals = sorted(_of_kind(endpoint, endpoint.cpu, "cpu", numbers), key=lambda arrival: arrival.job.arrival_ms)
    found = []
    for i, (begin, end) in enumerate(_stays([(at, number > 0) for at, number in numbers], endpoint.until_ms)):
        used = _used(endpoint, endpoint.gpu, [(begin, 1)], begin, end)
        instead = _arrival(endpoint, endpoint.gpu, f"{endpoint.id}.gpu-instead.{i}", begin, end, used)
        found.append(CoreStay(tuple(one for one in arrivals if begin <= one.job.arrival_ms < end), instead))
    return found


def _of_kind(endpoint: Endpoint, replica: Replica, kind: str, numbers: list[tuple[int, int]]) -> Iterator[Arrival]:
    """Yield the replicas of one kind, of which so many are wanted since each moment."""
    for number in range(max(wanted for _, wanted in numbers)):
        stays = _stays([(at, wanted > number) for at, wanted in numbers], endpoint.until_ms)
        for i, (begin, end) in enumerate(stays):
            used = _used(endpoint, replica, numbers, begin, end)
            yield _arrival(endpoint, replica, f"{endpoint.id}.{kind}{number}.{i}", begin, end, used)


def _stays(there: list[tuple[int, bool]], until_ms: int) -> list[tuple[int, int]]:
    """Return the spans in which a replica is wanted, joined where they touch."""
    changes = [next(steps) for _, steps in groupby(there, key=lambda step: step[1])]
    ends = [at for at, _ in changes[1:]] + [until_ms]
    return [(at, end) for (at, wanted), end in zip(changes, ends, strict=True) if wanted]


def _used(endpoint: Endpoint, replica: Replica, numbers: list[tuple[int, int]], begin: int, end: int) -> int:
    """Return the utilisation of a replica in percent; ``numbers``: (time, replicas that share the load since)."""
    served = 0.0
    moments = sorted({begin, end, *(at for at, _ in numbers), *(step.from_ms for step in endpoint.load)})
    amount, number = 0, 1
    amounts, sizes = {step.from_ms: step.amount for step in endpoint.load}, dict(numbers)
    for at, following in pairwise(moments):
        amount, number = amounts.get(at, amount), sizes.get(at, number)
        if begin <= at < end:
            each = amount / max(1, number)
            served += (following - at) * min(1.0, load_of(replica, each, endpoint.think_time_ms))
    return min(100, 10 * math.ceil(10 * served / (end - begin) - 1e-9))


def _arrival(endpoint: Endpoint, replica: Replica, name: str, begin: int, end: int, used_percent: int) -> Arrival:
    demand = replica.demand
    percent = demand.gpu_utilisation_percent * used_percent // 100
    job = Job(
        id=name,
        kind="inference",
        user=endpoint.user or endpoint.id,
        priority=endpoint.priority,
        arrival_ms=begin,
        options=(
            Option(
                demand=demand.model_copy(update={"gpu_utilisation_percent": percent}), value=1000 * max(1, demand.gpus)
            ),
        ),
        profile=endpoint.id,
    )
    return Arrival(job=job, service=True, leaves_ms=end)


Stay = tuple[Replica, int, int]
"""A replica that ran from one moment to another, in ms."""
Running = list[tuple[Replica, int]]
"""How many replicas of each kind run."""


@dataclass(frozen=True)
class Serving:
    """
    Requests and answers, all endpoints together.

    Requests are divided among an endpoint's replicas. At load r, a part of its capacity, an answer takes
    ``latency_ms`` and waits before that ``r / (2 (1 - r))`` times the time between two answers at full load: the mean
    of a queue with Poisson arrivals and constant service (M/D/1). Requests beyond the load at which that reaches the
    target are late; all are where no replica runs. Clients wait for their answers, so all of these take as long: none
    is late, or all are; where no replica runs, they send none. A replica answers from ``start_ms`` after its start on.
    """

    requests: float
    late: float
    """Requests answered late, or not at all: violations of the service level."""
    late_s: float
    """Time with late requests, summed over endpoints."""
    latency_p95_ms: float | None
    """None: late by an unknown time."""

    @property
    def late_share(self) -> float:
        """Part of the requests that was late."""
        return self.late / self.requests if self.requests else 0.0


class Answers(NamedTuple):
    """Requests that are answered alike."""

    latency_ms: float
    """Infinite: late by an unknown time, or not answered."""
    requests: float
    late: bool


def serving(endpoints: Iterable[tuple[Endpoint, list[Stay]]], until_ms: int) -> Serving | None:
    """
    Return the service of all endpoints by the replicas that ran, up to a moment; None if no request arrived.

    Where an endpoint has replicas of both kinds at a time, each serves the same part of its timely capacity.
    """
    late_s, every = 0.0, list[Answers]()
    for endpoint, stays in endpoints:
        for span_s, found in answers(endpoint, stays, until_ms):
            every += found
            late_s += span_s if any(some.late for some in found) else 0.0
    requests = sum(some.requests for some in every)
    if not requests:
        return None
    late = sum(some.requests for some in every if some.late)
    return Serving(requests, late, late_s, _p95(every, requests))


def answers(endpoint: Endpoint, stays: list[Stay], until_ms: int) -> Iterator[tuple[float, list[Answers]]]:
    """Yield the seconds of each span with a load in which nothing changes, and the answers to its requests."""
    for span_s, amount, running in _spans(endpoint, stays, until_ms):
        if amount:
            answer = _to_rate if endpoint.think_time_ms is None else _to_clients
            yield span_s, [some._replace(requests=some.requests * span_s) for some in answer(endpoint, amount, running)]


def _to_rate(endpoint: Endpoint, rate_milli: int, running: Running) -> list[Answers]:
    """Return the answers of a second to requests that come at a rate."""
    rate, target = rate_milli / 1000, endpoint.latency_target_ms
    in_time = [replica.rate_milli / 1000 * most_load(replica, target) * count for replica, count in running]
    part = min(1.0, rate / sum(in_time)) if sum(in_time) else 0.0
    found = [
        Answers(latency_ms(replica, part * most_load(replica, target)), part * most, late=False)
        for (replica, _), most in zip(running, in_time, strict=True)
    ]
    missed = max(0.0, rate - sum(in_time))
    return [*found, Answers(math.inf, missed, late=True)] if missed else found


def _to_clients(endpoint: Endpoint, clients: int, running: Running) -> list[Answers]:
    """Return the answers of a second to clients that wait for them."""
    if not running:
        return [Answers(math.inf, 0.0, late=True)]
    ((replica, count),) = running
    load = load_of(replica, clients / count, endpoint.think_time_ms)
    late = load > most_load(replica, endpoint.latency_target_ms)
    return [Answers(latency_ms(replica, load), count * replica.rate_milli / 1000 * load, late=late)]


def _p95(every: list[Answers], requests: float) -> float | None:
    """Return the 95th percentile of latency; None: late by an unknown time."""
    count = 0.0
    for latency, number, _ in sorted(every):
        count += number
        if count >= (1 - LATE_SHARE) * requests * (1 - 1e-12):
            return latency if latency < math.inf else None
    return None


def _spans(endpoint: Endpoint, stays: list[Stay], until_ms: int) -> Iterable[tuple[float, int, Running]]:
    """Yield seconds, amount of load, and numbers of running replicas, for each span without change."""
    end = min(endpoint.until_ms, until_ms)
    changes: list[tuple[int, int, int, int]] = [(step.from_ms, 0, step.amount, 0) for step in endpoint.load]
    kinds = [endpoint.gpu] + ([endpoint.cpu] if endpoint.cpu is not None else [])
    for replica, begin, leave in stays:
        kind = kinds.index(replica)
        answers = begin if begin == endpoint.load[0].from_ms else begin + replica.start_ms
        if answers < leave:
            changes += [(answers, 1, kind, 1), (leave, 1, kind, -1)]
    changes.sort()
    counts, amount, now = [0] * len(kinds), 0, 0
    for at, what, value, sign in [*changes, (end, 2, 0, 0)]:
        if min(at, end) > now:
            yield (min(at, end) - now) / 1000, amount, [(k, n) for k, n in zip(kinds, counts, strict=True) if n]
            now = min(at, end)
        if what == 0:
            amount = value
        elif what == 1:
            counts[value] += sign
