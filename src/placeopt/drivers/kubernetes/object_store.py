"""All objects of one kind, kept current by a list and a watch in a thread of its own."""

from __future__ import annotations

import threading

from placeopt.drivers.answers import Unreachable
from placeopt.drivers.backoff import pause_s
from placeopt.drivers.kubernetes.api import Api, ApiFault, Object
from placeopt.drivers.kubernetes.kinds import Kind
from placeopt.errors import PlaceoptError

FIRST_WAIT_S, MOST_WAIT_S = 0.2, 30.0


class ObjectStore:
    """
    The objects of a kind, by namespace and name.

    The first list is read by ``start``'s thread; afterwards events keep it current. The server may drop the history
    that a watch needs (410 Gone): then all objects are listed again, and those that are gone leave the store.

    Attributes
    ----------
    fault
        Why the store is not current, None while it is.
    """

    def __init__(self, api: Api, kind: Kind, stop: threading.Event) -> None:
        self.kind = kind
        self.fault: PlaceoptError | None = None
        self._latest = 0
        self._api, self._stop = api, stop
        self._objects: dict[tuple[str, str], Object] = {}
        self._lock = threading.Lock()
        self._listed = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"placeopt-watch-{kind.name}", daemon=True)

    def start(self) -> None:
        """Begin to list and to watch."""
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Wait for the first list; return whether there is one."""
        return self._listed.wait(seconds)

    @property
    def objects(self) -> list[Object]:
        """The objects now, in the order of namespace and name; they are not to be changed."""
        with self._lock:
            return [self._objects[key] for key in sorted(self._objects)]

    def get(self, namespace: str, name: str) -> Object | None:
        """Return one object, None if there is none of that name."""
        with self._lock:
            return self._objects.get((namespace, name))

    def put(self, found: Object) -> None:
        """Keep an object as the server returned it from a write, unless the watch has shown a later version."""
        with self._lock:
            self._keep(found)

    def drop(self, namespace: str, name: str) -> None:
        """Forget an object that the server no longer has."""
        with self._lock:
            self._objects.pop((namespace, name), None)

    def _run(self) -> None:
        version, failures = "", 0
        while not self._stop.is_set():
            try:
                if not version:
                    version = self._list()
                events = self._api.watch(self.kind.path, version)
                self.fault = None
                for event in events:
                    version, failures = self._take(event) or version, 0
                    if self._stop.is_set():
                        return
                failures = 0
            except ApiFault as fault:
                version = ""
                failures += 1
                if fault.status != 410:  # of those, the list that follows is the remedy
                    self.fault = fault
            except Unreachable as fault:
                self.fault = fault
                failures += 1
            if failures:
                self._stop.wait(pause_s(failures, FIRST_WAIT_S, MOST_WAIT_S))

    def _list(self) -> str:
        items, version = self._api.list_all(self.kind.path)
        fresh = {_key(item): _without_history({"kind": self.kind.name, **item}) for item in items}
        with self._lock:
            self._objects, self._latest = fresh, int(version) if version.isdecimal() else 0
        self._listed.set()
        return version

    def _take(self, event: Object) -> str:
        """Apply an event; return the resource version after it."""
        found: Object = event["object"]
        version = str(found["metadata"].get("resourceVersion") or "")
        if event["type"] == "BOOKMARK":
            return version
        with self._lock:
            if event["type"] == "DELETED":
                self._objects.pop(_key(found), None)
            else:
                self._keep({"kind": self.kind.name, **found})
            self._latest = max(self._latest, _number(found))
        return version

    def _keep(self, found: Object) -> None:
        """Keep an object unless a later version, or its deletion, is known; the lock is held."""
        known = self._objects.get(_key(found))
        if _number(found) >= (self._latest if known is None else _number(known)):
            self._objects[_key(found)] = _without_history(found)


def _key(found: Object) -> tuple[str, str]:
    return found["metadata"].get("namespace", ""), found["metadata"]["name"]


def _number(found: Object) -> int:
    """
    Return the resource version as a number; versions of a server can be compared so (Kubernetes enhancement 5504).

    Where a server has others, all are 0: whatever comes last is kept.
    """
    text = str(found["metadata"].get("resourceVersion") or "")
    return int(text) if text.isdecimal() else 0


def _without_history(found: Object) -> Object:
    """Return an object without the record of who set which field: it is the larger half of most pods."""
    if "managedFields" not in found["metadata"]:
        return found
    return {**found, "metadata": {key: value for key, value in found["metadata"].items() if key != "managedFields"}}
