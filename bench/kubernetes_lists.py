"""Nodes and pods in the form of ``kubectl get nodes,pods -o json``, drawn at random, at two moments."""

from __future__ import annotations

import copy
import random
from typing import Any

TOLERATED = (("nvidia.com/gpu", "NoSchedule"), ("node.kubernetes.io/not-ready", "NoExecute"))


def drawn(draw: random.Random, nodes: int, pods: int) -> list[dict[str, Any]]:
    """Return nodes and pods as the API shows them."""
    items = [_node(number) for number in range(nodes)]
    free = [8] * nodes
    for number in range(pods):
        gpus, place = draw.choice((0, 1, 1, 1, 2, 2, 4)), None
        for node in draw.choices(range(nodes), k=50) if number >= pods // 10 else ():
            if free[node] >= gpus:
                free[node] -= gpus
                place = f"node-{node:05d}"
                break
        items.append(_pod(draw, number, gpus, place))
    return items


def later(draw: random.Random, document: dict[str, Any]) -> dict[str, Any]:
    """Return the objects at a later moment: pods that wait take the places of others that ended."""
    items = copy.deepcopy(document["items"])
    pods = [item for item in items if item["kind"] == "Pod"]
    ended = draw.sample([pod for pod in pods if "nodeName" in pod["spec"]], 50)
    waiting = [pod for pod in pods if "nodeName" not in pod["spec"]]
    for gone in ended:
        pod = next(pod for pod in waiting if _gpus(pod) <= _gpus(gone))
        waiting.remove(pod)
        pod["spec"]["nodeName"] = gone["spec"]["nodeName"]
        pod["status"] = {"phase": "Running", "startTime": "2026-11-22T03:00:00Z"}
        items.remove(gone)
    items[0]["spec"]["unschedulable"] = True
    return {"kind": "List", "items": items}


def _gpus(pod: dict[str, Any]) -> int:
    return int(pod["spec"]["containers"][0]["resources"]["requests"].get("nvidia.com/gpu", "0"))


def _node(number: int) -> dict[str, Any]:
    labels = {"kubernetes.io/hostname": f"node-{number:05d}", "kubernetes.io/arch": "amd64"}
    labels |= {"topology.kubernetes.io/zone": f"z{number // 1250}", "topology.kubernetes.io/rack": f"r{number // 20}"}
    labels |= {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.memory": "81559"}
    room = {"cpu": "127", "memory": "1020000Mi", "pods": "110", "ephemeral-storage": "850Gi", "nvidia.com/gpu": "8"}
    fine = [{"type": kind, "status": "False"} for kind in ("MemoryPressure", "DiskPressure", "PIDPressure")]
    return {
        "kind": "Node",
        "metadata": {"name": f"node-{number:05d}", "uid": f"n-{number}", "labels": labels},
        "spec": {"taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]},
        "status": {"allocatable": room, "conditions": [*fine, {"type": "Ready", "status": "True"}]},
    }


def _pod(draw: random.Random, number: int, gpus: int, node: str | None) -> dict[str, Any]:
    amounts = {"cpu": f"{draw.choice((500, 1000, 4000, 8000))}m", "memory": f"{draw.choice((2, 16, 64))}Gi"}
    amounts |= {"nvidia.com/gpu": str(gpus)} if gpus else {}
    spec = {
        "priority": number % 5 * 100,
        "tolerations": [{"key": key, "operator": "Exists", "effect": effect} for key, effect in TOLERATED],
        "containers": [{"name": "main", "resources": {"requests": amounts, "limits": amounts}}],
        "volumes": [{"name": "kube-api-access", "projected": {"sources": []}}],
    }
    metadata = {
        "name": f"work-{number:05d}",
        "namespace": f"team{number % 20}",
        "uid": f"p-{number}",
        "creationTimestamp": f"2026-11-22T0{number % 10}:{number % 60:02d}:00Z",
        "labels": {"app": f"app{number % 200}"},
    }
    pod = {"kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}
    if node is not None:
        spec["nodeName"] = node
        held = [{"name": "main", "allocatedResources": amounts}]
        pod["status"] = {"phase": "Running", "startTime": "2026-11-22T02:41:55Z", "containerStatuses": held}
    return pod
