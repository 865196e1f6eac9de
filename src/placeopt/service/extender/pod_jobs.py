"""Jobs of pods, read beside the nodes of an instance: kube-scheduler sends pods, the cluster is known already."""

from __future__ import annotations

from typing import Any

from placeopt.errors import Unsupported
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.kubernetes.devices import Devices
from placeopt.importers.kubernetes.pods import Pod, read_pod
from placeopt.importers.kubernetes.resources import is_accelerator
from placeopt.importers.kubernetes.snapshot import GPU, KubernetesObjects
from placeopt.model import Cluster, Job, Node

CHECKED_BEFORE = ("topologySpreadConstraints", "volumes")
"""Of the specification of a pod: rules that kube-scheduler's own filters have applied to the nodes that it sends."""


class PodJobs:
    """Reads pods beside the nodes of ``cluster``; ``resource``: the extended resource that counts GPUs."""

    def __init__(self, cluster: Cluster, resource: str = GPU) -> None:
        self.cluster, self._resource = cluster, resource
        objects: list[Any] = []
        for node in cluster.nodes:
            machine = cluster.machine_of(node)
            amounts = {"cpu": f"{machine.cpu_millicores}m", "memory": f"{machine.memory_mib}Mi"}
            if machine.gpus:
                amounts[resource] = str(len(machine.gpus))
            objects.append(_object(node, amounts | {name: str(amount) for name, amount in machine.resources.items()}))
        self._named = {name for machine in cluster.machines for name in machine.resources}
        self._reader = KubernetesObjects(objects, resource=resource, cluster=cluster)

    def read(self, pod: dict[str, Any]) -> Pod:
        """Return what a pod requests, and its gang; raises `BadInput` or `Unsupported` if it has ended."""
        read = read_pod(JsonEntry("body.Pod", pod), self._resource, Devices({}), {})
        if read is None:
            raise Unsupported("body.Pod: the pod has ended")
        return read

    def single(self, pod: dict[str, Any]) -> Job:
        """Return the job of a pod alone, without the rules that kube-scheduler has applied already."""
        spec = {key: value for key, value in pod["spec"].items() if key not in CHECKED_BEFORE}
        affinity = spec.get("affinity") or {}
        spec["affinity"] = {"nodeAffinity": affinity["nodeAffinity"]} if affinity.get("nodeAffinity") else None
        return self._reader.job(self._counted({**pod, "spec": spec}))

    def gang(self, pod: dict[str, Any], count: int) -> Job:
        """Return the job of a gang of ``count`` pods, of which one is known; the others are as it is."""
        pods, metadata = [pod], pod["metadata"]
        for number in range(1, count):
            unknown = {**metadata, "name": f"{metadata['name'][:200]}~{number}", "uid": None}
            pods.append({**pod, "metadata": unknown})
        return self._reader.job(*(self._counted(pod) for pod in pods))

    def _counted(self, pod: dict[str, Any]) -> dict[str, Any]:
        """Return a pod that requests only what plans count; kube-scheduler counts ephemeral storage and the like."""
        spec = dict(pod["spec"])
        for key in ("containers", "initContainers"):
            if spec.get(key):
                spec[key] = [self._counted_container(container) for container in spec[key]]
        return {**pod, "spec": spec}

    def _counted_container(self, container: dict[str, Any]) -> dict[str, Any]:
        resources = {
            kind: {
                name: amount
                for name, amount in amounts.items()
                if name in ("cpu", "memory", self._resource) or name in self._named or is_accelerator(name)
            }
            for kind, amounts in (container.get("resources") or {}).items()
            if isinstance(amounts, dict)
        }
        return {**container, "resources": resources}


def _object(node: Node, amounts: dict[str, str]) -> dict[str, Any]:
    """Return a node as an object of Kubernetes, as far as pods refer to it."""
    return {
        "kind": "Node",
        "metadata": {"name": node.id, "labels": dict(node.labels)},
        "spec": {"taints": [taint.model_dump() for taint in node.taints]},
        "status": {"allocatable": amounts},
    }
