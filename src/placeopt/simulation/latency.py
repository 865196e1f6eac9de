"""How long a replica takes to answer under a load, and the load up to which its answers are in time."""

from __future__ import annotations

from placeopt.simulation.records.endpoint import Replica


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
