"""
The Lease that one driver of several holds.

It keeps drivers from working against each other; it is not a fence. A driver that was stopped may go on for a moment
while another one holds the Lease already, so every write names the version of what it was decided for.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

from placeopt.drivers.answers import Unreachable
from placeopt.drivers.kubernetes.api import Api, ApiFault, Object

NAME = "placeopt"
DURATION_S = 15
RENEW_S = 5.0


class Lease:
    """
    A Lease of ``coordination.k8s.io/v1``, renewed by a thread of its own.

    ``holder``: Name of this driver, which no other one has. ``duration_s``: How long a driver that no longer renews is
    waited for. ``clock``: Seconds that only go forward. Whether another holder still renews is seen by whether its
    record changes, by this clock: clocks of two machines are never compared.
    """

    def __init__(
        self,
        api: Api,
        namespace: str,
        holder: str,
        stop: threading.Event,
        *,
        duration_s: float = DURATION_S,
        renew_s: float = RENEW_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api, self._namespace, self._holder, self._stop = api, namespace, holder, stop
        self._duration_s, self._renew_s, self._clock = duration_s, renew_s, clock
        self._held_until = float("-inf")
        self._seen: Object = {}
        self._seen_at = float("-inf")
        self.other = ""
        """Who holds it, where that is another driver."""
        self._thread = threading.Thread(target=self._run, name="placeopt-lease", daemon=True)

    @property
    def is_held(self) -> bool:
        """Whether this driver may act."""
        return self._clock() < self._held_until

    def start(self) -> None:
        """Begin to acquire and to renew."""
        self._thread.start()

    def release(self) -> None:
        """Give it up, so that another driver need not wait; the thread has to be stopped by the event."""
        if self._thread.is_alive():
            self._thread.join(timeout=2 * self._renew_s)
        if not self.is_held:
            return
        self._held_until = float("-inf")
        try:
            self._api.call("PUT", self._path, body=self._record(self._seen, holder=""))
        except (ApiFault, Unreachable):
            return  # it ends by itself

    @property
    def _path(self) -> str:
        return f"/apis/coordination.k8s.io/v1/namespaces/{self._namespace}/leases/{NAME}"

    def _run(self) -> None:
        while not self._stop.is_set():
            self.renew()
            self._stop.wait(self._renew_s)

    def renew(self) -> None:
        """Acquire or renew it, once."""
        asked = self._clock()
        try:
            found = self._api.call("GET", self._path)
        except ApiFault as fault:
            if fault.status == 404:
                self._write("POST", self._path.rpartition("/")[0], {}, asked)
            elif fault.status != 429:
                self._lose(str(fault))
            return
        except Unreachable:
            return  # what is held so far runs out
        spec = found.get("spec") or {}
        if spec != (self._seen.get("spec") or {}):
            self._seen_at = asked
        self._seen = found
        holder = str(spec.get("holderIdentity") or "")
        ended = asked - self._seen_at >= float(spec.get("leaseDurationSeconds") or self._duration_s)
        if holder in ("", self._holder) or ended:
            self._write("PUT", self._path, found, asked)
        else:
            self._lose(holder)

    def _write(self, method: str, path: str, found: Object, asked: float) -> None:
        try:
            self._seen = self._api.call(method, path, body=self._record(found))
        except ApiFault as fault:
            self._lose("another driver" if fault.status == 409 else str(fault))
        except Unreachable:
            return
        else:
            self._seen_at = asked
            self.other = ""
            self._held_until = asked + self._duration_s * 2 / 3  # ends before others may take it

    def _lose(self, other: str) -> None:
        self._held_until = float("-inf")
        self.other = other

    def _record(self, found: Object, holder: str | None = None) -> Object:
        spec = found.get("spec") or {}
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        holder = self._holder if holder is None else holder
        same = spec.get("holderIdentity") == holder
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {**(found.get("metadata") or {}), "name": NAME, "namespace": self._namespace},
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": max(1, round(self._duration_s)),
                "acquireTime": spec["acquireTime"] if same and "acquireTime" in spec else now,
                "renewTime": now,
                "leaseTransitions": int(spec.get("leaseTransitions") or 0) + (not same and bool(holder)),
            },
        }
