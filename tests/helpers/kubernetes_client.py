"""The calls that tests make on a real API server, by the names that the tests' own server has for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx

from helpers.kubernetes_updates import Refusal

Object = dict[str, Any]
PATHS = {
    "nodes": "/api/v1/nodes",
    "pods": "/api/v1/namespaces/{namespace}/pods",
    "jobs": "/apis/batch/v1/namespaces/{namespace}/jobs",
}
MOST_TRIES = 8
"""Of one change, where others write the object at the same time."""


class RealApi:
    """A connection; raises `Refusal` for what is refused, and `httpx.HTTPError` where nothing answers."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def call(self, method: str, path: str, body: Object | None = None, **query: str) -> Object:
        """Send a request; return its answer."""
        response = self._client.request(method, path, json=body, params=query)
        answer: Object = response.json()
        if response.status_code >= 400:
            raise Refusal(response.status_code, answer.get("reason", ""), answer.get("message", ""))
        return answer

    def exists(self, path: str) -> bool:
        """Return whether a path is answered."""
        return self._client.get(path).status_code == 200

    def create(self, path: str, body: Object) -> Object:
        """Create an object."""
        return self.call("POST", path, body)

    def create_once(self, path: str, body: Object) -> None:
        """Create an object, unless it is there already: the answer to an earlier request was lost."""
        try:
            self.create(path, body)
        except Refusal as refusal:
            if refusal.answer["reason"] != "AlreadyExists":
                raise

    def all(self, plural: str, namespace: str = "default") -> list[Object]:
        """Return all objects of a kind, as the server's cache has them."""
        items: list[Object] = self.call("GET", _path(plural, namespace), resourceVersion="0")["items"]
        return items

    def change(self, plural: str, name: str, change: Callable[[Object], None], namespace: str | None = None) -> None:
        """Change an object; of pods and nodes, its status alone, as a kubelet does."""
        path = _path(plural, namespace or "default", name)
        part = "/status" if plural in ("pods", "nodes") else ""
        for tries in range(MOST_TRIES):
            found = self.call("GET", path)
            change(found)
            try:
                self.call("PUT", path + part, found)
            except Refusal as refusal:
                if refusal.answer["code"] != 409 or tries + 1 == MOST_TRIES:
                    raise
            else:
                return

    def remove(self, plural: str, name: str, namespace: str | None = None) -> None:
        """Delete an object at once, as a kubelet does once all containers of a pod have ended."""
        self.call("DELETE", _path(plural, namespace or "default", name), gracePeriodSeconds="0")


def _path(plural: str, namespace: str, *name: str) -> str:
    return "/".join([PATHS[plural].format(namespace=namespace), *name])
