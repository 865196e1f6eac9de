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
from helpers.kubernetes_api import KubernetesApi
from helpers.kubernetes_updates import Refusal

GPU = "nvidia.com/gpu"
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


def gpus_of(found: Object) -> int:
    return sum(int(c["resources"]["limits"].get(GPU, 0)) for c in found["spec"]["containers"])


def write_kubeconfig(api: KubernetesApi, path: Path) -> None:
    """Write the kubeconfig file of a server of tests."""
    context = {"name": "test", "context": {"cluster": "test", "user": "test", "namespace": "placeopt"}}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "contexts": [context],
        "clusters": [{"name": "test", "cluster": {"server": api.url}}],
        "users": [{"name": "test", "user": {}}],
    }
    path.write_text(json.dumps(content))


class Cluster:
    """
    kube-scheduler, kubelets and a controller, in one thread; a context manager.

    A pod without gates is bound to a node that its required ``metadata.name`` allows and that has the GPUs; it runs at
    once. Pods that are being deleted go. A pod with an owner that goes, or fails, is made anew under another name,
    gated as it was. ``bindings``: UID -> the nodes to which the pod was bound: more than one would be a double start.
    ``refusing``: Nodes whose kubelet admits no pod; ``refused_gpus``: numbers of GPUs that no kubelet
    admits. ``blind``: Nodes that kube-scheduler does not use. ``holds``: Names of pods that never end once they are
    being deleted.
    """

    def __init__(self, api: KubernetesApi) -> None:
        self.api = api
        self.bindings: dict[str, list[str]] = {}
        self.refusing: set[str] = set()
        self.refused_gpus: set[int] = set()
        self.blind: set[str] = set()
        self.holds: set[str] = set()
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
                if "deletionTimestamp" in found["metadata"]:
                    if name not in self.holds:
                        self.api.remove("pods", name)
                elif not spec.get("nodeName") and not spec.get("schedulingGates") and phase == "Pending":
                    where = self._where(found, nodes, free)
                    if where is not None:
                        self.api.bind(name, where)
                        self.bindings.setdefault(found["metadata"]["uid"], []).append(where)
                        free[where] -= gpus_of(found)
                elif spec.get("nodeName") and phase == "Pending":
                    if spec["nodeName"] in self.refusing or gpus_of(found) in self.refused_gpus:
                        self._fail(found)
                    else:
                        self.api.change("pods", name, _runs)

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

    def _fail(self, found: Object) -> None:
        status = {"phase": "Failed", "reason": "OutOfnvidia.com/gpu", "message": "Pod was rejected"}
        self.api.change("pods", found["metadata"]["name"], lambda pod: pod.update(status=status))
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


def _runs(found: Object) -> None:
    found["status"] = {"phase": "Running", "startTime": found["metadata"]["creationTimestamp"]}
