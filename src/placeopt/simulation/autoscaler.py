"""The autoscaler: how many replicas a policy wants of an endpoint, decided periodically by a load measured before."""

from __future__ import annotations

import math
from collections.abc import Sequence

from placeopt.scheduling.host_rules import Replicas
from placeopt.simulation.latency import amount_of, most_load
from placeopt.simulation.records.endpoint import Endpoint, LoadStep, Replica

ROUNDING = 1e-9
"""Part of a replica that a quotient of floats may lack."""
Wanted = tuple[int, int]
"""Replicas with GPUs, and on CPU cores alone."""
REMEMBERED_MS = 300_000
"""How long a rise counts: as long as Kubernetes' autoscaler keeps replicas after a peak, unless told otherwise."""


def wanted_replicas(endpoint: Endpoint, amount: int, rule: Replicas, expected: int = 0) -> Wanted:
    """
    Return the replicas that a policy wants under a load, and under one that is expected before a decision answers.

    At least one, and as many as it takes that none serves more than ``load_percent`` of its capacity, and that
    the expected load is answered in time. Loads are requests per 1,000 s or, where the endpoint has them, clients: as
    many as these keep so busy once as many run. With ``on_cpu`` they run on CPU cores as long as one replica with a GPU
    would suffice (SODA V-D 2).
    """

    def number(replica: Replica) -> int:
        percent = rule.load_percent
        known = replica.model_copy(update={"rate_milli": replica.profiled_rate_milli or replica.rate_milli})
        in_time = max(percent, int(100 * most_load(known, endpoint.latency_target_ms)))
        return max(1, least(known, amount, percent), least(known, expected, in_time))

    def least(known: Replica, amount: int, percent: int) -> int:
        return math.ceil(amount / amount_of(known, percent / 100, endpoint.think_time_ms) - ROUNDING)

    with_gpus = number(endpoint.gpu)
    if rule.on_cpu and endpoint.cpu is not None and with_gpus == 1:
        return 0, min(endpoint.replicas_max, number(endpoint.cpu))
    return min(endpoint.replicas_max, with_gpus), 0


def wanted_over_time(endpoint: Endpoint, rule: Replicas) -> list[tuple[int, Wanted]]:
    """
    Return the replicas that a policy wants from each moment on, ascending; the first moment is that of the load.

    The first decision is by the first load step, for which the service was deployed. Later ones are at multiples of the
    autoscaler's period, by the load of ``lag_ms`` earlier; two at one moment count as the later one.
    """
    expected = _expected(endpoint) if rule.rule == "ahead" else [0] * len(endpoint.load)
    wanted = [
        wanted_replicas(endpoint, step.amount, rule, later) for step, later in zip(endpoint.load, expected, strict=True)
    ]
    begin = endpoint.load[0].from_ms
    if rule.rule == "first":
        return [(begin, wanted[0])]
    if rule.rule == "peak":
        return [(begin, max(wanted))]
    decided = {begin: wanted[0]}
    for step, number in zip(endpoint.load[1:], wanted[1:], strict=True):
        at = _decided_ms(endpoint, step.from_ms)
        if at < endpoint.until_ms:
            decided[at] = number
    return list(decided.items())


def horizon_ms(endpoint: Endpoint) -> int:
    """Return the time from a change of the load until a replica that it causes answers, at most."""
    return endpoint.autoscaler.lag_ms + endpoint.autoscaler.period_ms + endpoint.gpu.start_ms


def _decided_ms(endpoint: Endpoint, changed_ms: int) -> int:
    """Return when a change of the load is decided upon."""
    seen, period = changed_ms + endpoint.autoscaler.lag_ms, endpoint.autoscaler.period_ms
    return -(-seen // period) * period if period else seen


def _expected(endpoint: Endpoint) -> list[int]:
    """
    Return the load that each step may have risen to once what it causes answers.

    Added is the largest of the n rises of the last `REMEMBERED_MS`, times (n + 1) / n: of n values from 0 to an unknown
    end, all as likely, that is the unbiased estimate of the end. Without a lag nothing is added.
    """
    load, horizon = endpoint.load, horizon_ms(endpoint)
    if not horizon:
        return [step.amount for step in load]
    expected: list[int] = []
    rises: list[int] = []
    before = [0, *(step.amount for step in load)]
    for i, step in enumerate(load):
        rises.append(step.amount - min(before[_first_within(load, i, horizon) : i + 1]))
        recent = rises[_first_within(load, i, REMEMBERED_MS) :]
        expected.append(step.amount + max(0, *recent) * (len(recent) + 1) // len(recent))
    return expected


def _first_within(load: Sequence[LoadStep], last: int, span_ms: int) -> int:
    """Return the first of the steps that lie less than ``span_ms`` before the one with index ``last``."""
    first = last
    while first and load[last].from_ms - load[first - 1].from_ms < span_ms:
        first -= 1
    return first
