"""The part of kube-scheduler that calls extenders, and an API server that keeps the rule of bindings."""

from __future__ import annotations

from typing import Any

from placeopt import PlaceoptError
from placeopt.service.extender import BindingArgs


def node(name: str, gpus: int = 8, **spec: Any) -> dict[str, Any]:
    """A node as the API server lists it."""
    amounts = {"cpu": "96", "memory": "1000Gi", "nvidia.com/gpu": str(gpus), "pods": "110"}
    return {
        "kind": "Node",
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": {"kubernetes.io/hostname": name}},
        "spec": spec,
        "status": {"allocatable": amounts},
    }


def pod(name: str, gpus: int = 1, gang: tuple[str, int] | None = None, **spec: Any) -> dict[str, Any]:
    """A pod as the scheduler sends it; ``gang``: name and number of pods."""
    metadata: dict[str, Any] = {"name": name, "namespace": "team", "uid": f"uid-{name}"}
    if gang is not None:
        metadata["labels"] = {"kueue.x-k8s.io/pod-group-name": gang[0]}
        metadata["annotations"] = {"kueue.x-k8s.io/pod-group-total-count": str(gang[1])}
    requests = {"cpu": "4", "memory": "16Gi", "ephemeral-storage": "1Gi", "nvidia.com/gpu": str(gpus)}
    containers = [{"name": "main", "resources": {"requests": requests}}]
    return {"kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}}


def args(of: dict[str, Any], nodes: list[str]) -> dict[str, Any]:
    """``ExtenderArgs`` with ``nodeCacheCapable: true``."""
    return {"Pod": of, "Nodes": None, "NodeNames": nodes}


def binding(of: dict[str, Any], to: str) -> dict[str, Any]:
    """``ExtenderBindingArgs``."""
    metadata = of["metadata"]
    names = {"PodName": metadata["name"], "PodNamespace": metadata["namespace"], "PodUID": metadata["uid"]}
    return {**names, "Node": to}


class Bindings:
    """Bound pods; a second binding of a pod is a conflict, as at the API server."""

    def __init__(self) -> None:
        self.node_of: dict[str, str] = {}

    def __call__(self, asked: BindingArgs) -> None:
        if asked.uid in self.node_of:
            raise PlaceoptError(f"409: pod {asked.pod} is already assigned to {self.node_of[asked.uid]}")
        self.node_of[asked.uid] = asked.node
