"""The nodes of a real control plane: kubelets without containers, with heartbeats and what their GPUs measure."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Self

import httpx

from helpers.kubelets import GPU, Kubelets, Runs, ends, gpus_of
from helpers.kubernetes_client import RealApi
from helpers.kubernetes_objects import HOSTNAME
from helpers.kubernetes_updates import Refusal
from helpers.prometheus_lab import Exporter

LOOK_S, HEARTBEAT_S = 0.3, 2.0
JOB = "batch.kubernetes.io/job-name"
INDEX = "batch.kubernetes.io/job-completion-index"
OURS = "tests.placeopt.io/"
"""Annotations of pods that say what these kubelets do with them."""
RUN_S, LATE_S, TOGETHER, PERCENT = f"{OURS}run-s", f"{OURS}late-s", f"{OURS}together", f"{OURS}percent"
"""How long a job runs; how long its pods take to end; how many must run; the utilisation of their GPUs."""
MEMORY_MIB = 3000.0
CONTAINER = {"name": "main", "image": "none", "imageID": "none", "ready": True, "restartCount": 0, "started": True}
Object = dict[str, Any]


class RealKubelets(Kubelets):
    """
    All kubelets, in one thread; a context manager.

    ``gpus``: Node -> how many it has; ``labels``: of every node.
    ``unlucky``: Jobs of which the next pod is refused, once. ``dead``: Nodes whose kubelet does nothing any more.

    Attributes
    ----------
    faults
        Pods of one index of a job that ran at once, and nodes that held more GPUs than they have.
    gone
        UIDs of pods that left before their end, or were refused.
    refused, left
        How many pods were refused, and how many left.
    """

    def __init__(self, api: RealApi, exporter: Exporter, gpus: dict[str, int], labels: dict[str, str]) -> None:
        super().__init__(api)
        self.server, self._exporter, self._gpus, self._labels = api, exporter, gpus, labels
        self.unlucky: set[str] = set()
        self.dead: set[str] = set()
        self.faults: list[str] = []
        self.gone: set[str] = set()
        self.refused = self.left = 0
        self.pods: list[Object] = []
        self._leaving: dict[str, float] = {}
        self._beat = -HEARTBEAT_S
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._runs = Runs(_job, lambda pod: int(_notes(pod)[TOGETHER]), lambda pod: float(_notes(pod)[RUN_S]))

    def __enter__(self) -> Self:
        """Register the nodes, and begin."""
        for name, gpus in self._gpus.items():
            has = {"cpu": "32", "memory": "128Gi", "pods": "110", "ephemeral-storage": "100Gi", GPU: str(gpus)}
            ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "as a test says"}
            status = {"capacity": has, "allocatable": has, "conditions": [ready | _heard()]}
            metadata = {"name": name, "labels": {HOSTNAME: name, **self._labels}}
            self.server.create("/api/v1/nodes", {"metadata": metadata, "status": status})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(LOOK_S):
            try:
                self.turn()
            except (Refusal, httpx.HTTPError):
                continue  # the server is away, or another has written since: the next look sees to it

    def turn(self) -> None:
        """Look at all pods once."""
        self.pods = self.server.all("pods")
        here = [found for found in self.pods if found["spec"].get("nodeName", "") not in self.dead | {""}]
        self._measure(here)
        self._check()
        if time.monotonic() - self._beat > HEARTBEAT_S:
            self._beat = time.monotonic()
            for name in self._gpus.keys() - self.dead:
                self.server.change("nodes", name, _beats)
        for found in here:
            self.look(found)
        for pods in self._runs.over(found for found in here if "deletionTimestamp" not in found["metadata"]):
            for found in pods:
                self.server.change("pods", found["metadata"]["name"], ends)

    def refuses(self, found: Object) -> bool:
        """Return whether a pod is refused, for which its job has no more bad luck."""
        if _job(found) not in self.unlucky:
            return False
        self.unlucky.discard(_job(found))
        self.refused += 1
        return True

    def reject(self, found: Object) -> None:
        """Refuse a pod."""
        super().reject(found)
        self.gone.add(found["metadata"]["uid"])

    def begin(self, found: Object) -> None:
        """Take a pod."""
        container = CONTAINER | {"state": {"running": {"startedAt": _now()}}}
        status = {"phase": "Running", "startTime": _now(), "containerStatuses": [container]}
        self.api.change("pods", found["metadata"]["name"], lambda pod: pod["status"].update(status))

    def leave(self, found: Object) -> None:
        """Let a pod that is being deleted end as late as it says, and tell the server."""
        uid = found["metadata"]["uid"]
        if uid not in self._leaving:
            self.left += 1
            self.gone.add(uid)
        since = self._leaving.setdefault(uid, time.monotonic())
        if time.monotonic() - since < float(_notes(found).get(LATE_S, 0)):
            return
        if found["status"]["phase"] not in ("Succeeded", "Failed"):
            self.api.change("pods", found["metadata"]["name"], lambda pod: pod["status"].update(phase="Failed"))
        super().leave(found)

    def _measure(self, pods: Iterable[Object]) -> None:
        gpus = {}
        for found in pods:
            if found["status"]["phase"] == "Running":
                labels = {"namespace": "default", "pod": found["metadata"]["name"]}
                for number in range(gpus_of(found)):
                    gpu = f"{found['metadata']['name']}/{number}"
                    gpus[gpu] = (labels, float(_notes(found)[PERCENT]), MEMORY_MIB)
        self._exporter.gpus = gpus

    def _check(self) -> None:
        """Note what must never be seen."""
        held = Counter[str]()
        indices: dict[tuple[str, str], str] = {}
        for found in self.pods:
            name = found["metadata"]["name"]
            if not found["spec"].get("nodeName") or found["status"]["phase"] in ("Succeeded", "Failed"):
                continue
            held[found["spec"]["nodeName"]] += gpus_of(found)
            if found["status"]["phase"] == "Running":
                other = indices.setdefault((_job(found), _notes(found)[INDEX]), name)
                if other != name:
                    self._fault(f"{other} and {name} run at once")
        for node, gpus in held.items():
            if gpus > self._gpus[node]:
                self._fault(f"{node}: pods hold {gpus} of {self._gpus[node]} GPUs")

    def _fault(self, words: str) -> None:
        if words not in self.faults:
            self.faults.append(words)


def _job(found: Object) -> str:
    return str(found["metadata"]["labels"][JOB])


def _notes(found: Object) -> dict[str, str]:
    notes: dict[str, str] = found["metadata"]["annotations"]
    return notes


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _heard() -> Object:
    return {"lastHeartbeatTime": _now(), "lastTransitionTime": _now()}


def _beats(found: Object) -> None:
    """A heartbeat in the status of a node, as kubelets write it."""
    for condition in found["status"]["conditions"]:
        if condition["type"] == "Ready":
            condition.update(status="True", reason="KubeletReady", **_heard())
