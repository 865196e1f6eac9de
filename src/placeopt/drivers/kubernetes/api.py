"""Requests to the API server through the official client; objects are JSON as the server sends them."""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from placeopt.drivers.answers import Unreachable, json_object
from placeopt.errors import BadInput, PlaceoptError, Unsupported

Object = dict[str, Any]

CONNECT_S = 5.0
READ_S = 30.0
WATCH_S = 240
"""Seconds after which the server ends a watch, which is then begun again where it stood."""
WATCH_SILENCE_S = 120.0
"""Seconds without an event or bookmark after which a watch counts as broken; servers send bookmarks every minute."""
PAGE = 1000
"""Objects in one part of a list."""
MERGE_PATCH = "application/merge-patch+json"
OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class ApiFault(PlaceoptError):
    """
    A request that the API server refused.

    ``status``: HTTP status: 409 conflict, 410 gone, 422 invalid, 429 not now. ``reason``: As Kubernetes names it.
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status, self.reason = status, reason


class Api:
    """
    A connection to an API server.

    Parameters
    ----------
    kubeconfig
        File; None: what ``KUBECONFIG`` names, ``~/.kube/config``, or the service account of the pod.

    Attributes
    ----------
    host
        Address of the server.
    namespace
        Namespace of the pod's service account or of the configuration's context.

    Raises
    ------
    Unsupported
        If the official client is not installed.
    BadInput
        If there is no configuration, or it cannot be read.
    """

    def __init__(self, kubeconfig: str | None = None) -> None:
        try:
            from kubernetes import client
        except ImportError:
            raise Unsupported(
                "kubernetes: the official client is not installed; pip install 'placeopt[kubernetes]'"
            ) from None
        configuration = client.Configuration()
        self.namespace = _configure(configuration, kubeconfig)
        configuration.retries = False
        configuration.connection_pool_maxsize = 32
        self._client = client.ApiClient(configuration)
        self.host = str(configuration.host)

    def call(
        self, method: str, path: str, *, query: Mapping[str, str] | None = None, body: Object | None = None
    ) -> Object:
        """Return the answer to a request: an object or a list. What ``PATCH`` sends is a JSON merge patch."""
        return json_object(_read(self._send(method, path, query, body)), path)

    def list_all(self, path: str) -> tuple[list[Object], str]:
        """Return all objects of a kind, read in parts, and the resource version from which to watch."""
        items: list[Object] = []
        query = {"limit": str(PAGE)}
        while True:
            part = self.call("GET", path, query=query)
            items += part.get("items") or []
            metadata = part.get("metadata") or {}
            if not metadata.get("continue"):
                return items, metadata.get("resourceVersion", "")
            query["continue"] = metadata["continue"]

    def watch(self, path: str, resource_version: str) -> Iterator[Object]:
        """
        Return the events of a kind after a resource version, until the server ends the watch.

        The watch is open on return. Raises, also later, `ApiFault` with status 410 where the server no longer has that
        version.
        """
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(WATCH_S),
        }
        return _events(self._send("GET", path, query, timeout=(CONNECT_S, WATCH_SILENCE_S)), path)

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Object | None = None,
        timeout: tuple[float, float] = (CONNECT_S, READ_S),
    ) -> Any:
        """Return the response to a request that was not refused."""
        headers = {"Accept": "application/json", "User-Agent": "placeopt"}
        if body is not None:
            headers["Content-Type"] = MERGE_PATCH if method == "PATCH" else "application/json"
        try:
            made = self._client.param_serialize(
                method=method,
                resource_path=path,
                query_params=list((query or {}).items()),
                header_params=headers,
                body=body,
                auth_settings=["BearerToken"],
            )
            response = self._client.call_api(*made, _request_timeout=timeout)
        except Exception as error:
            raise _unreachable(error) from error
        if response.status >= 400:
            answer: object = None
            with contextlib.suppress(ValueError):
                answer = json.loads(_read(response))
            raise _fault(response.status, answer)
        return response


def _configure(configuration: Any, kubeconfig: str | None) -> str:
    """Fill the client's configuration; return the namespace of its context."""
    from kubernetes import config

    default = os.path.expanduser(os.environ.get("KUBECONFIG", "~/.kube/config").split(os.pathsep)[0])
    try:
        if kubeconfig is None and not os.path.exists(default):
            config.load_incluster_config(client_configuration=configuration)
            return OWN_NAMESPACE.read_text().strip()
        with contextlib.redirect_stdout(io.StringIO()):
            config.load_kube_config(config_file=kubeconfig, client_configuration=configuration)
        _, context = config.list_kube_config_contexts(config_file=kubeconfig)
    except Exception as error:  # noqa: BLE001 - the client raises whatever its parsers and the file do
        where = kubeconfig or default
        raise BadInput(f"{where}: is not a cluster configuration ({error}); --kubeconfig names one") from None
    return str(context["context"].get("namespace") or "default")


def _read(response: Any) -> bytes:
    try:
        return bytes(response.read())
    except Exception as error:
        raise _unreachable(error) from error


def _events(response: Any, path: str) -> Iterator[Object]:
    try:
        for line in _lines(response.response):
            event = json_object(line, path)
            if event.get("type") == "ERROR":
                raise _fault(int(event["object"].get("code") or 500), event["object"])
            yield event
    finally:
        with contextlib.suppress(Exception):
            response.response.close()


def _lines(response: Any) -> Iterator[bytes]:
    """Yield the lines of a body as they arrive."""
    rest = b""
    pieces = response.stream(amt=None, decode_content=False)
    while True:
        try:
            piece = next(pieces, None)
        except Exception as error:
            raise _unreachable(error) from error
        if piece is None:
            return
        *whole, rest = (rest + piece).split(b"\n")
        yield from (line for line in whole if line.strip())


def _fault(status: int, answer: object) -> PlaceoptError:
    stated = answer if isinstance(answer, dict) else {}
    reason, message = str(stated.get("reason") or "refused"), str(stated.get("message") or "without a message")
    return Unreachable(f"{status} {message}") if status >= 500 else ApiFault(status, reason, message)


def _unreachable(error: Exception) -> Unreachable:
    lines = str(error).splitlines()
    return Unreachable(f"{type(error).__name__}: {lines[0] if lines else 'no more is known'}")
