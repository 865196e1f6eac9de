"""The autoscaler: how many replicas a policy wants of an endpoint, decided periodically by a load measured before."""

from __future__ import annotations

from placeopt.model.endpoint import Endpoint, LoadStep, Replica
from placeopt.model.scheduling import Scheduling

Wanted = tuple[int, int]
"""Replicas with GPUs, and on CPU cores alone."""


def wanted_replicas(endpoint: Endpoint, rate_milli: int, scheduling: Scheduling) -> Wanted:
    """
    Return the replicas that a policy wants under a load.

    At least one, and as many as it takes that none serves more than ``replica_load_percent`` of its capacity. With
    ``cpu_replicas`` they run on CPU cores as long as one replica with a GPU would suffice (SODA V-D 2).
    """
    percent = scheduling.replica_load_percent
    with_gpus = _number(endpoint.gpu, rate_milli, percent)
    if scheduling.cpu_replicas and endpoint.cpu is not None and with_gpus == 1:
        return 0, min(endpoint.replicas_max, _number(endpoint.cpu, rate_milli, percent))
    return min(endpoint.replicas_max, with_gpus), 0


def wanted_over_time(endpoint: Endpoint, scheduling: Scheduling) -> list[tuple[int, Wanted]]:
    """
    Return the replicas that a policy wants from each moment on, ascending; the first moment is that of the load.

    The first decision is by the first load step, for which the service was deployed. Later ones are at multiples of the
    autoscaler's period, by the load of ``lag_ms`` earlier; two at one moment count as the later one.
    """
    loads = _expected(endpoint) if scheduling.replicas == "ahead" else endpoint.load
    wanted = [wanted_replicas(endpoint, step.rate_milli, scheduling) for step in loads]
    begin = endpoint.load[0].from_ms
    if scheduling.replicas == "first":
        return [(begin, wanted[0])]
    if scheduling.replicas == "peak":
        return [(begin, max(wanted))]
    decided = {begin: wanted[0]}
    for step, number in zip(loads[1:], wanted[1:], strict=True):
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


def _expected(endpoint: Endpoint) -> tuple[LoadStep, ...]:
    """
    Return each load step with the largest rise so far within `horizon_ms` added; the first step is a rise from 0.

    So with nothing but past measurements the load may rise as fast as it ever did, until what is decided answers.
    Without a lag that is the load itself.
    """
    horizon = horizon_ms(endpoint)
    if not horizon:
        return endpoint.load
    rise, expected = 0, []
    for i, step in enumerate(endpoint.load):
        for first in range(i, -1, -1):
            if first < i and step.from_ms - endpoint.load[first].from_ms >= horizon:
                break
            rise = max(rise, step.rate_milli - (endpoint.load[first - 1].rate_milli if first else 0))
        expected.append(step.model_copy(update={"rate_milli": step.rate_milli + rise}))
    return tuple(expected)


def _number(replica: Replica, rate_milli: int, percent: int) -> int:
    known = replica.profiled_rate_milli or replica.rate_milli
    return max(1, -(-rate_milli * 100 // (known * percent)))
