"""A driver of Kubernetes from its first connection to its end: the Lease, and rounds until it is stopped."""

from __future__ import annotations

import os
import socket
import threading
import uuid
from collections.abc import Callable

from placeopt.drivers.answers import Unreachable
from placeopt.drivers.kubernetes.api import Api, ApiFault
from placeopt.drivers.kubernetes.driver import Driver, KubernetesOptions
from placeopt.drivers.kubernetes.lease import Lease
from placeopt.drivers.loop import run_rounds
from placeopt.drivers.round_report import RoundReport
from placeopt.errors import BadInput
from placeopt.live_cluster.engine import Engine

UNKNOWN_USER = 401


def run(
    api: Api,
    options: KubernetesOptions,
    stop: threading.Event,
    on_round: Callable[[RoundReport], None],
    on_message: Callable[[str], None],
    *,
    rounds: int | None = None,
) -> None:
    """
    Drive a cluster until ``stop`` is set; it ends between two actions.

    Parameters
    ----------
    api
        The cluster.
    options
        How.
    stop
        Set it from anywhere, once.
    on_round, on_message, rounds
        See `run_rounds`.

    Raises
    ------
    BadInput
        If the API server does not know the user: no driver can run with these credentials.
    """
    driver: Driver | None = None

    def turn() -> RoundReport:
        nonlocal driver
        if driver is None:
            driver = _connected(api, engine, options, stop)
        return driver.turn()

    with Engine() as engine:
        run_rounds(turn, on_round, on_message, every_s=options.every_s, stop=stop, rounds=rounds)
        stop.set()
        if driver is not None and driver.lease is not None:
            driver.lease.release()


def _connected(api: Api, engine: Engine, options: KubernetesOptions, stop: threading.Event) -> Driver:
    """Return a driver with its Lease; raises `Unreachable` if the server does not answer, or not yet."""
    try:
        driver = Driver(api, engine, options, stop)
    except ApiFault as fault:  # for seconds after its start a server forbids everything (403), or is busy
        kind = BadInput if fault.status == UNKNOWN_USER else Unreachable
        raise kind(f"{api.host}: {fault}") from None
    except Unreachable as fault:
        raise Unreachable(f"{api.host}: {fault}") from None
    if not options.dry_run:
        lease = Lease(api, api.namespace, f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4().hex[:8]}", stop)
        lease.renew()
        lease.start()
        driver.lease = lease
    return driver
