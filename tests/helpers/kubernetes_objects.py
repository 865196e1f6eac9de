"""Kubernetes' objects as the API returns them, with only the fields that matter."""

from typing import Any

from placeopt.importers import read_kubernetes
from placeopt.model import Instance

GPU = {"resources": {"limits": {"nvidia.com/gpu": 1}}}
HOSTNAME = "kubernetes.io/hostname"


def node(name: str = "n", gpus: str = "4", **more: Any) -> dict[str, Any]:
    """Return a node of 8 cores and 1 GiB; ``labels``, ``annotations``, ``has`` and fields of its spec may be given."""
    metadata = {key: more.pop(key, {}) for key in ("labels", "annotations")}
    status = {"allocatable": {"cpu": "8", "memory": "1Gi", "nvidia.com/gpu": gpus, **more.pop("has", {})}}
    return {"kind": "Node", "metadata": {"name": name, **metadata}, "spec": more, "status": status}


def pod(name: str, node: str | None = None, **more: Any) -> dict[str, Any]:
    """Return a pod with one GPU; fields of its metadata, and of its spec, may be given; ``asks``: what it limits."""
    metadata = {
        key: more.pop(key) for key in ("labels", "annotations", "ownerReferences", "namespace", "uid") if key in more
    }
    where = {"nodeName": node} if node else {}
    asks = more.pop("asks", None)
    containers = [GPU] if asks is None else [{"name": "main", "resources": {"limits": asks, "requests": asks}}]
    status = {"phase": "Running" if node else "Pending", **more.pop("status", {})}
    spec = {"containers": containers, **where, **more}
    return {"kind": "Pod", "metadata": {"name": name, **metadata}, "spec": spec, "status": status}


def read(*items: Any, **options: Any) -> Instance:
    """Read a list of these objects, as the API returns it."""
    return read_kubernetes({"kind": "List", "items": list(items)}, **options)


def term(labels: dict[str, str] | None, key: str = HOSTNAME, **more: Any) -> dict[str, Any]:
    """Return one required term about pods with these labels."""
    selector = {} if labels is None else {"labelSelector": {"matchLabels": labels}}
    return {**selector, "topologyKey": key, **more}


def apart(*terms: dict[str, Any]) -> dict[str, Any]:
    """Return required anti-affinity."""
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def near(*terms: dict[str, Any]) -> dict[str, Any]:
    """Return required affinity."""
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def on_nodes(*expressions: dict[str, Any], fields: bool = False) -> dict[str, Any]:
    """Return required node affinity of one term."""
    selector_term = {"matchFields" if fields else "matchExpressions": list(expressions)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [selector_term]}}}
