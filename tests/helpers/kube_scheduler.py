"""The part of kube-scheduler that calls extenders, and an API server that keeps the rule of bindings."""

from __future__ import annotations

from typing import Any

from helpers import kubernetes_objects as objects
from placeopt import PlaceoptError
from placeopt.service.extender import BindingArgs


def node(name: str, gpus: int = 8, **spec: Any) -> dict[str, Any]:
    """A node as the API server lists it."""
    has = {"cpu": "96", "memory": "1000Gi", "pods": "110"}
    return objects.node(name, str(gpus), labels={objects.HOSTNAME: name}, has=has, **spec)


def pod(name: str, gpus: int = 1, gang: tuple[str, int] | None = None, **spec: Any) -> dict[str, Any]:
    """A pod as the scheduler sends it; ``gang``: name and number of pods."""
    if gang is not None:
        spec["labels"] = {"kueue.x-k8s.io/pod-group-name": gang[0]}
        spec["annotations"] = {"kueue.x-k8s.io/pod-group-total-count": str(gang[1])}
    asks = {"cpu": "4", "memory": "16Gi", "ephemeral-storage": "1Gi", "nvidia.com/gpu": str(gpus)}
    return objects.pod(name, namespace="team", uid=f"uid-{name}", asks=asks, **spec)


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
