"""The calls on single pods: read, patch, evict; what they return is in the store at once."""

from __future__ import annotations

from placeopt.drivers.kubernetes.api import Api, ApiFault, Object
from placeopt.drivers.kubernetes.marks import name_of
from placeopt.drivers.kubernetes.object_store import ObjectStore


class PodCalls:
    """Calls on pods, with their identity as a precondition: a pod of the same name made later is another."""

    def __init__(self, api: Api, store: ObjectStore) -> None:
        self._api, self.store = api, store

    def read(self, pod: Object) -> Object | None:
        """Return a pod as the server has it now, None if it is gone or another has its name."""
        namespace, name = name_of(pod)
        try:
            found = self._api.call("GET", _path(pod))
        except ApiFault as fault:
            if fault.status != 404:
                raise
            self.store.drop(namespace, name)
            return None
        self.store.put(found)
        return found if found["metadata"]["uid"] == pod["metadata"]["uid"] else None

    def patch(self, pod: Object, patch: Object) -> Object:
        """Patch a pod; return it as it is then."""
        found = self._api.call("PATCH", _path(pod), body=patch)
        self.store.put(found)
        return found

    def evict(self, pod: Object, *, this_version: bool = False) -> str | None:
        """
        Ask for the end of a pod through the eviction API, which heeds disruption budgets.

        Returns None if it was accepted or the pod is gone, otherwise why it was refused. ``this_version``: Only if
        nothing about the pod has changed, as when it has been bound since.
        """
        namespace, name = name_of(pod)
        precondition = {"uid": pod["metadata"]["uid"]}
        if this_version:
            precondition["resourceVersion"] = pod["metadata"]["resourceVersion"]
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"namespace": namespace, "name": name},
            "deleteOptions": {"preconditions": precondition},
        }
        try:
            self._api.call("POST", f"{_path(pod)}/eviction", body=body)
        except ApiFault as fault:
            if fault.status == 404:
                return None
            if fault.status == 409 and not this_version:
                return None if self.read(pod) is None else str(fault)
            return str(fault)
        return None


def _path(pod: Object) -> str:
    namespace, name = name_of(pod)
    return f"/api/v1/namespaces/{namespace}/pods/{name}"
