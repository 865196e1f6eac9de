"""How long a replica takes to answer under a load, and the load that requests or clients are."""

from __future__ import annotations

import math

from placeopt.simulation.records.endpoint import Replica


def latency_ms(replica: Replica, load: float) -> float:
    """Return the mean latency at a load of the part ``load``, below 1, of what replicas can serve."""
    return replica.latency_ms + _between_ms(replica) * load / (2 * (1 - load))


def most_load(replica: Replica, target_ms: int) -> float:
    """Return the highest load, as a part of the capacity, at which answers are in time on average."""
    slack = (target_ms - replica.latency_ms) / _between_ms(replica)
    return 2 * slack / (2 * slack + 1)


def load_of(replica: Replica, amount: float, think_time_ms: int | None) -> float:
    """
    Return the load, as a part of the capacity, of a replica under its part of an endpoint's load.

    Parameters
    ----------
    replica
        The replica.
    amount
        Without a think time: requests per 1,000 s, which may be more than it can serve. Else the number of clients
        that it serves; the load is then below 1.
    think_time_ms
        Time Z from an answer to the client's next request.

    Returns
    -------
    float
        Of clients the one r with n = X (Z + R), where X = r / D is the rate, D the time between two answers at full
        load, and R = L + D r / (2 (1 - r)) the latency: the root in [0, 1) of (a - 1/2) r^2 - (a + n) r + n with
        a = (Z + L) / D, which is n at r = 0 and -1/2 at r = 1.
    """
    if think_time_ms is None:
        return amount / replica.rate_milli
    busy = (think_time_ms + replica.latency_ms) / _between_ms(replica)
    return 2 * amount / (busy + amount + math.sqrt((busy - amount) ** 2 + 2 * amount))


def amount_of(replica: Replica, load: float, think_time_ms: int | None) -> float:
    """Return the requests per 1,000 s, or with a think time the clients, that are a load, below 1, of a replica."""
    if think_time_ms is None:
        return replica.rate_milli * load
    return load * (think_time_ms + latency_ms(replica, load)) / _between_ms(replica)


def _between_ms(replica: Replica) -> float:
    """Return the time between two answers of a replica that serves all it can."""
    return 1_000_000 / replica.rate_milli
