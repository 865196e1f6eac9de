"""What surrounds the API server of the tests: kube-scheduler and kubelets, and a controller that makes pods anew."""

from __future__ import annotations

import contextlib
import copy
import itertools
import json
import threading
from collections import Counter
from pathlib import Path
from typing import Any

from helpers import kubernetes_objects as objects
from helpers.kubelets import GPU, Kubelets, gpus_of
from helpers.kubernetes_api import KubernetesApi
from helpers.kubernetes_updates import Refusal

GATE = "placeopt.io/gate"
Object = dict[str, Any]
OWNER = [{"apiVersion": "batch/v1", "kind": "Job", "name": "owner", "uid": "owner-uid", "controller": True}]


def node(name: str, gpus: int = 8, **labels: str) -> Object:
    """Return a node of 64 cores and 512 GiB that is ready."""
    has = {"cpu": "64", "memory": "512Gi", "pods": "110"}
    made = objects.node(name, str(gpus), labels={objects.HOSTNAME: name, **labels}, has=has)
    made["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    return made


def pod(name: str, gpus: int = 1, *, gated: bool = True, owned: bool = True, **more: Any) -> Object:
    """Return a pod that waits; ``more``: labels, annotations and fields of its spec."""
    asks = {"cpu": "1", "memory": "1Gi", GPU: str(gpus)}
    owner = {"ownerReferences": copy.deepcopy(OWNER)} if owned else {}
    gates = {"schedulingGates": [{"name": GATE}]} if gated else {}
    return objects.pod(name, asks=asks, **owner, **gates, **more)


def gang(name: str, pods: int, gpus: int = 1, **more: Any) -> list[Object]:
    """Return the pods of a LeaderWorkerSet's group, which states its size."""
    lws = "leaderworkerset.sigs.k8s.io/"
    labels = {f"{lws}name": name, f"{lws}group-index": "0"}
    return [pod(f"{name}-{i}", gpus, labels=labels, annotations={f"{lws}size": str(pods)}, **more) for i in range(pods)]


def write_kubeconfig(server: Object, path: Path, **user: str) -> None:
    """Write the kubeconfig file of a server: its address, and what else says how to reach it; ``user``: who asks."""
    context = {"name": "test", "context": {"cluster": "test", "user": "test", "namespace": "placeopt"}}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "contexts": [context],
        "clusters": [{"name": "test", "cluster": server}],
        "users": [{"name": "test", "user": user}],
    }
    path.write_text(json.dumps(content))


class Cluster(Kubelets):
    """
    kube-scheduler, kubelets and a controller, in one thread; a context manager.

    A pod without gates is bound to a node that its required ``metadata.name`` allows and that has the GPUs. A pod with
    an owner that goes, or fails, is made anew under another name, gated as it was. ``bindings``: UID -> the nodes to
    which the pod was bound: more than one would be a double start. ``blind``: Nodes that kube-scheduler does not use.
    """

    api: KubernetesApi

    def __init__(self, api: KubernetesApi) -> None:
        super().__init__(api)
        self.bindings: dict[str, list[str]] = {}
        self.blind: set[str] = set()
        self.templates: dict[str, Object] = {}
        self.stop = threading.Event()
        self._numbers = itertools.count()
        self._thread = threading.Thread(target=self._run, daemon=True)
        api.deleted = self._gone

    def __enter__(self) -> Cluster:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self.stop.wait(0.02):
            self.turn()

    def turn(self) -> None:
        pods = self.api.all("pods")
        nodes = {found["metadata"]["name"]: found for found in self.api.all("nodes")}
        free = Counter({name: int(found["status"]["allocatable"][GPU]) for name, found in nodes.items()})
        for found in pods:
            if found["spec"].get("nodeName") and found["status"]["phase"] == "Running":
                free[found["spec"]["nodeName"]] -= gpus_of(found)
        for found in pods:
            name, spec, phase = found["metadata"]["name"], found["spec"], found["status"]["phase"]
            with contextlib.suppress(Refusal, KeyError):
                waits = not spec.get("nodeName") and not spec.get("schedulingGates") and phase == "Pending"
                if waits and "deletionTimestamp" not in found["metadata"]:
                    where = self._where(found, nodes, free)
                    if where is not None:
                        self.api.bind(name, where)
                        self.bindings.setdefault(found["metadata"]["uid"], []).append(where)
                        free[where] -= gpus_of(found)
                else:
                    self.look(found)

    def _where(self, found: Object, nodes: dict[str, Object], free: Counter[str]) -> str | None:
        affinity = (found["spec"].get("affinity") or {}).get("nodeAffinity") or {}
        terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms")
        for name, node_found in nodes.items():
            if name in self.blind or node_found["spec"].get("unschedulable") or free[name] < gpus_of(found):
                continue
            if terms is None or any(
                term and all(name in field["values"] for field in term.get("matchFields") or []) for term in terms
            ):
                return name
        return None

    def reject(self, found: Object) -> None:
        """Refuse a pod; its controller makes another."""
        super().reject(found)
        self._anew(found)

    def _gone(self, found: Object) -> None:
        if found["kind"] == "Pod" and found["status"]["phase"] not in ("Failed", "Succeeded"):
            self._anew(found)

    def _anew(self, found: Object) -> None:
        """What a controller does."""
        template = self.templates.get(found["metadata"]["uid"])
        if template is None:
            return
        name = f"{found['metadata']['name'].partition('.')[0]}.{next(self._numbers)}"
        self.submit({**template, "metadata": {**template["metadata"], "name": name}})

    def submit(self, *pods: Object) -> list[Object]:
        """Create pods; those with an owner are made anew when they go."""
        made = []
        for found in pods:
            made.append(self.api.add("pods", found))
            if "ownerReferences" in found["metadata"]:
                self.templates[made[-1]["metadata"]["uid"]] = copy.deepcopy(found)
        return made
