"""
A small API server for tests: pods, nodes, leases and the like over HTTP, by the rules of Kubernetes that matter here.

Kept: resource versions, one for every write of any object; merge patches with uid and resourceVersion as preconditions
(409); lists in parts; watches with bookmarks, time-outs and a history that can be compacted (410); scheduling gates
that are only removed; node affinity that only tightens, and only while the pod is gated; evictions with preconditions
and disruption budgets (429); deletion with a grace period. Left out: authentication, admission, other patch types,
everything else.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import json
import threading
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from helpers.kubernetes_updates import Refusal, merged, refuse_pod_update

Object = dict[str, Any]

NAMESPACED = {
    "pods": "Pod", "persistentvolumeclaims": "PersistentVolumeClaim", "leases": "Lease", "podgroups": "PodGroup"
}  # fmt: skip
KINDS = {"nodes": "Node", "namespaces": "Namespace", "persistentvolumes": "PersistentVolume", **NAMESPACED}
GROUPS = {"coordination.k8s.io": ("v1", ["leases"]), "scheduling.x-k8s.io": ("v1alpha1", ["podgroups"])}


class KubernetesApi:
    """
    The server's state, and the calls by which a test changes it; a context manager that serves it on a port.

    Objects that it returns are not to be changed: a write makes a new one.

    ``before``: Called with method, path and body before every write; may raise a `Refusal`, change other objects, or
    raise `ConnectionResetError`, which ends the connection without an answer. ``after``: Called likewise when the write
    is done, before it is answered. ``writes``: Every write that was accepted. ``requests``: Verb, group and resource of
    every request about objects, as rules of a role name them. ``down``: It ends every connection. ``forbids``: It
    answers 403, as a server does for seconds after its start.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.objects: dict[tuple[str, str, str], Object] = {}
        self.events: list[tuple[int, str, str, Object]] = []
        self.compacted = 0
        self.version = 100
        self.budgets: list[tuple[dict[str, str], int]] = []
        self.before: Callable[[str, str, Any], None] = lambda method, path, body: None
        self.after: Callable[[str, str, Any], None] = lambda method, path, body: None
        self.writes: list[tuple[str, str, Any]] = []
        self.requests: set[tuple[str, str, str]] = set()
        self.lists = 0
        self.deleted: Callable[[Object], None] = lambda found: None
        self.watch_epoch = 0
        self.down = False
        self.forbids = False
        self._names = itertools.count()
        handler = type("Handler", (_Handler,), {"api": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self) -> KubernetesApi:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.cut_watches()
        self.server.shutdown()
        self.server.server_close()

    # What a test, a controller, kube-scheduler or a kubelet does.

    def add(self, plural: str, found: Object) -> Object:
        with self.lock:
            metadata = {"uid": str(uuid.uuid4()), "creationTimestamp": _after(0)}
            if plural in NAMESPACED:
                metadata["namespace"] = "default"
            found = copy.deepcopy(found)
            metadata |= found["metadata"]
            found = {"kind": KINDS[plural], "apiVersion": "v1", **found, "metadata": metadata}
            key = (plural, metadata.get("namespace", ""), metadata["name"])
            if key in self.objects:
                raise Refusal(409, "AlreadyExists", f"{plural} {metadata['name']!r} already exists")
            return self._store(key, found, "ADDED")

    def get(self, plural: str, name: str, namespace: str | None = None) -> Object | None:
        with self.lock:
            return self.objects.get((plural, self._namespace(plural, namespace), name))

    def all(self, plural: str) -> list[Object]:
        with self.lock:
            return [found for key, found in sorted(self.objects.items()) if key[0] == plural]

    def change(self, plural: str, name: str, change: Callable[[Object], None], namespace: str | None = None) -> None:
        """Change an object past all rules, as a status update or another writer does."""
        with self.lock:
            key = (plural, self._namespace(plural, namespace), name)
            found = copy.deepcopy(self.objects[key])
            change(found)
            self._store(key, found, "MODIFIED")

    def remove(self, plural: str, name: str, namespace: str | None = None) -> None:
        with self.lock:
            key = (plural, self._namespace(plural, namespace), name)
            found = self.objects.pop(key)
            self.version += 1
            found = {**found, "metadata": {**found["metadata"], "resourceVersion": str(self.version)}}
            self._note("DELETED", key, found)
        self.deleted(found)

    def bind(self, name: str, node: str, namespace: str | None = None) -> None:
        """What ``POST pods/NAME/binding`` does."""
        with self.lock:
            found = self.objects[("pods", self._namespace("pods", namespace), name)]
            for why, holds in {
                "has scheduling gates": found["spec"].get("schedulingGates"),
                "is already assigned to a node": found["spec"].get("nodeName"),
                "is being deleted": "deletionTimestamp" in found["metadata"],
            }.items():
                if holds:
                    raise Refusal(409, "Conflict", f"pod {why}")
            self.change("pods", name, lambda pod: pod["spec"].update(nodeName=node), namespace)

    def compact(self) -> None:
        """Forget all history: watches that continue from before get 410."""
        with self.lock:
            self.compacted = self.version
            self.events.clear()
        self.cut_watches()

    def cut_watches(self) -> None:
        """End the watches that are open."""
        with self.changed:
            self.watch_epoch += 1
            self.changed.notify_all()

    def _namespace(self, plural: str, namespace: str | None) -> str:
        return namespace or "default" if plural in NAMESPACED else ""

    def _store(self, key: tuple[str, str, str], found: Object, event: str) -> Object:
        self.version += 1
        found["metadata"]["resourceVersion"] = str(self.version)
        self.objects[key] = found
        self._note(event, key, found)
        return found

    def _note(self, event: str, key: tuple[str, str, str], found: Object) -> None:
        with self.changed:
            self.events.append((self.version, key[0], event, found))
            self.changed.notify_all()

    # Requests.

    def answer(self, method: str, path: str, query: dict[str, str], body: Any) -> Object:
        if self.down:
            raise ConnectionResetError
        if self.forbids:
            raise Refusal(403, "Forbidden", "pods is forbidden")
        if method == "GET" and path == "/apis":
            of = {name: {"groupVersion": f"{name}/{version}"} for name, (version, _) in GROUPS.items()}
            groups = [{"name": name, "preferredVersion": own, "versions": [own]} for name, own in of.items()]
            return {"kind": "APIGroupList", "groups": groups}
        plural, namespace, name, sub = _parsed(path)
        if method == "GET" and plural is None:
            _, plurals = GROUPS[path.split("/")[2]]
            return {"kind": "APIResourceList", "resources": [{"name": p, "kind": KINDS[p]} for p in plurals]}
        assert plural is not None
        if method == "GET" and not name:
            return self._list(plural, namespace, query)
        key = (plural, self._namespace(plural, namespace), name)
        if method == "GET":
            with self.lock:
                if key not in self.objects:
                    raise Refusal(404, "NotFound", f"{plural} {name!r} not found")
                return self.objects[key]
        self.before(method, path, body)
        with self.lock:
            if method == "POST" and sub == "eviction":
                made = self._evict(key, body)
            elif method == "POST" and not name:
                metadata = {**body["metadata"], "namespace": namespace}
                made = self.add(plural, {**body, "metadata": metadata})
            elif key not in self.objects:
                raise Refusal(404, "NotFound", f"{plural} {name!r} not found")
            elif method == "PUT":
                made = self._put(key, body)
            elif method == "PATCH":
                made = self._patch(key, body)
            else:
                raise Refusal(405, "MethodNotAllowed", f"{method} {path}")
            self.writes.append((method, path, body))
        self.after(method, path, body)
        return made

    def _list(self, plural: str, namespace: str | None, query: dict[str, str]) -> Object:
        with self.lock:
            self.lists += 1
            found = [found for found in self.all(plural) if namespace in (None, found["metadata"].get("namespace"))]
            begin = int(query.get("continue") or 0)
            limit = int(query.get("limit") or len(found) or 1)
            metadata = {"resourceVersion": str(self.version)}
            if begin + limit < len(found):
                metadata["continue"] = str(begin + limit)
            items = [{k: v for k, v in one.items() if k not in ("kind", "apiVersion")} for one in found]
            return {"kind": f"{KINDS[plural]}List", "metadata": metadata, "items": items[begin : begin + limit]}

    def _put(self, key: tuple[str, str, str], body: Object) -> Object:
        now = self.objects[key]
        _expect(now, body["metadata"])
        kept = {name: now["metadata"][name] for name in ("uid", "creationTimestamp")}
        return self._store(key, {**copy.deepcopy(body), "metadata": {**body["metadata"], **kept}}, "MODIFIED")

    def _patch(self, key: tuple[str, str, str], body: Object) -> Object:
        now = self.objects[key]
        _expect(now, body.get("metadata", {}))
        new = merged(now, body)
        if key[0] == "pods":
            refuse_pod_update(now, new)
        return self._store(key, new, "MODIFIED")

    def _evict(self, key: tuple[str, str, str], body: Object) -> Object:
        pod = self.objects.get(key)
        if pod is None:
            raise Refusal(404, "NotFound", f"pods {key[2]!r} not found")
        _expect(pod, (body.get("deleteOptions") or {}).get("preconditions") or {})
        if pod["spec"].get("nodeName") and (pod.get("status") or {}).get("phase") == "Running":
            for labels, least in self.budgets:
                group = [p for p in self.all("pods") if labels.items() <= (p["metadata"].get("labels") or {}).items()]
                healthy = [p for p in group if p["status"].get("phase") == "Running" and not _is_ending(p)]
                if pod in healthy and len(healthy) <= least:
                    raise Refusal(429, "TooManyRequests", "Cannot evict pod as it would violate its disruption budget")
            until = _after(pod["spec"].get("terminationGracePeriodSeconds", 30))
            if not _is_ending(pod):
                self.change("pods", key[2], lambda found: found["metadata"].update(deletionTimestamp=until), key[1])
        else:
            self.remove("pods", key[2], key[1])
        return {"kind": "Status", "status": "Success", "code": 201}


def _parsed(path: str) -> tuple[str | None, str | None, str, str]:
    """Return plural, namespace, name and subresource of a path."""
    parts = path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    namespace = None
    if len(parts) > 2 and parts[0] == "namespaces":
        namespace, parts = parts[1], parts[2:]
    if not parts:
        return None, None, "", ""
    return parts[0], namespace, parts[1] if len(parts) > 1 else "", parts[2] if len(parts) > 2 else ""


def _expect(found: Object, wanted: Object) -> None:
    """Refuse a write to another object or version than it names."""
    for name in ("resourceVersion", "uid"):
        if wanted.get(name) not in (None, found["metadata"][name]):
            raise Refusal(409, "Conflict", f"the object has been modified: {name}")


def _is_ending(found: Object) -> bool:
    return "deletionTimestamp" in found["metadata"]


def _after(seconds: int) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat(timespec="seconds").replace("+00:00", "Z")


class _Handler(BaseHTTPRequestHandler):
    api: KubernetesApi
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *args: object) -> None:
        pass

    def _do(self) -> None:
        url = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        watch = query.get("watch") == "true"
        self._note_request(url.path, watch=watch)
        try:
            if watch:
                self._watch(_parsed(url.path)[0], query)
                return
            code, answer = 200, self.api.answer(self.command, url.path, query, body)
        except Refusal as refusal:
            code, answer = refusal.answer["code"], refusal.answer
        except ConnectionResetError:
            self.close_connection = True
            return
        data = json.dumps(answer).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            self.wfile.write(data)

    def _note_request(self, path: str, *, watch: bool) -> None:
        plural, _, name, sub = _parsed(path)
        if path == "/apis" or plural is None:
            return
        verbs = {"GET": "get" if name else "list", "POST": "create", "PUT": "update", "PATCH": "patch"}
        group = path.split("/")[2] if path.startswith("/apis/") else ""
        self.api.requests.add(("watch" if watch else verbs[self.command], group, f"{plural}/{sub}" if sub else plural))

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _do  # noqa: N815

    def _watch(self, plural: str | None, query: dict[str, str]) -> None:
        api = self.api
        if api.down:
            raise ConnectionResetError
        since = int(query["resourceVersion"])
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        end = time.monotonic() + float(query.get("timeoutSeconds") or 60)
        with api.lock:
            epoch, expired = api.watch_epoch, since < api.compacted
        try:
            if expired:  # a server opens the watch all the same
                text = f"too old resource version: {since} ({api.compacted})"
                status = {"kind": "Status", "code": 410, "reason": "Expired", "message": text}
                self._chunk(json.dumps({"type": "ERROR", "object": status}).encode() + b"\n")
                end = 0.0
            while time.monotonic() < end:
                with api.changed:
                    if api.watch_epoch != epoch or api.down:
                        break
                    new = [e for e in api.events if e[0] > since]
                    if not new:
                        api.changed.wait(0.5)
                        continue
                    since = new[-1][0]
                events = [{"type": e[2], "object": e[3]} for e in new if e[1] == plural]
                bookmark = {"kind": KINDS[plural or ""], "metadata": {"resourceVersion": str(since)}}
                for event in events or [{"type": "BOOKMARK", "object": bookmark}]:
                    self._chunk(json.dumps(event).encode() + b"\n")
            self._chunk(b"")
        except OSError:
            return

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()
