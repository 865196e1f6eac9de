"""The driver's loop: a turn every few seconds, until it is told to stop."""

from __future__ import annotations

import os
import socket
import threading
import time
import uuid
from collections.abc import Callable

from placeopt.drivers.backoff import pause_s
from placeopt.drivers.kubernetes.api import Api, ApiFault, Unreachable
from placeopt.drivers.kubernetes.driver import Driver, DriverOptions
from placeopt.drivers.kubernetes.lease import Lease
from placeopt.drivers.round_line import RoundReport
from placeopt.errors import BadInput
from placeopt.live_cluster.engine import Engine

FIRST_WAIT_S, MOST_WAIT_S = 1.0, 60.0
"""How long an API server that does not answer at the start is waited for between two tries."""


def run(api: Api, options: DriverOptions, stop: threading.Event, tell: Callable[[RoundReport], None]) -> None:
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
    tell
        Called after every turn.

    Raises
    ------
    BadInput
        If the API server refuses to say which kinds it has: no driver can run with these credentials.
    """
    lease = None
    with Engine(options.policy) as engine:
        driver = _connected(api, engine, options, stop, tell)
        if driver is None:
            return
        if not options.dry_run:
            holder = f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4().hex[:8]}"
            lease = Lease(api, api.namespace, holder, stop)
            lease.renew()
            lease.start()
            driver.lease = lease
        while not stop.is_set():
            began = time.monotonic()
            tell(driver.turn())
            stop.wait(max(0.0, began + options.every_s - time.monotonic()))
        if lease is not None:
            lease.release()


def _connected(
    api: Api, engine: Engine, options: DriverOptions, stop: threading.Event, tell: Callable[[RoundReport], None]
) -> Driver | None:
    """Return a driver once the server answers; None if it was stopped before."""
    failures = 0
    while not stop.is_set():
        try:
            return Driver(api, engine, options, stop)
        except ApiFault as fault:
            raise BadInput(f"{api.host}: {fault}") from None
        except Unreachable as fault:
            failures += 1
            seconds = pause_s(failures, FIRST_WAIT_S, MOST_WAIT_S)
            note = f"{api.host} does not answer, next try in {seconds:.0f} s: {fault}"
            tell(RoundReport(time.time(), notes=[note]))
            stop.wait(seconds)
    return None
