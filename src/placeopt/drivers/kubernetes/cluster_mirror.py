"""The objects of a cluster, each kind in a store that is kept current."""

from __future__ import annotations

import threading
import time

from placeopt.drivers.kubernetes.api import Api, Object
from placeopt.drivers.kubernetes.kinds import NODES, PODS, watched_kinds
from placeopt.drivers.kubernetes.object_store import ObjectStore
from placeopt.errors import PlaceoptError

LIST_S = 5.0
"""Seconds for which one turn waits for the first lists."""


class ClusterMirror:
    """
    Stores of all kinds that a round looks at.

    Raises as `watched_kinds`: the server is asked which kinds it has.
    """

    def __init__(self, api: Api, stop: threading.Event) -> None:
        stores = [ObjectStore(api, kind, stop) for kind in watched_kinds(api)]
        self.nodes = next(store for store in stores if store.kind == NODES)
        self.pods = next(store for store in stores if store.kind == PODS)
        self._others = [store for store in stores if store not in (self.nodes, self.pods)]
        self._stores = stores
        for store in stores:
            store.start()

    @property
    def others(self) -> list[Object]:
        """Objects that pods name: groups, namespaces, claims, volumes."""
        return [found for store in self._others for found in store.objects]

    @property
    def groups(self) -> frozenset[str]:
        """Namespace and name of what states the size of gangs."""
        listed = (found["metadata"] for found in self.others if found["kind"] == "PodGroup")
        return frozenset(f"{metadata.get('namespace', 'default')}/{metadata['name']}" for metadata in listed)

    def wait(self, seconds: float = LIST_S) -> bool:
        """Wait for the first lists of all kinds; return whether they are there."""
        deadline = time.monotonic() + seconds
        return all(store.wait(max(0.0, deadline - time.monotonic())) for store in self._stores)

    @property
    def fault(self) -> PlaceoptError | None:
        """Why the objects are not current, None if they are."""
        return next((store.fault for store in self._stores if store.fault is not None), None)
