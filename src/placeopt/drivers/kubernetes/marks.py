"""What the driver reads from and writes into pods: its gate, and annotations that say what happened to an action."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from placeopt.drivers.kubernetes.api import Object

GATE = "placeopt.io/gate"
"""Scheduling gate of the pods that placeopt places; their owner sets it when they are created."""
ROUND, PLAN = "placeopt.io/round", "placeopt.io/plan"
NODE, JOB, PODS = "placeopt.io/node", "placeopt.io/job", "placeopt.io/pods"
GPUS = "placeopt.io/gpus"
"""Indices of the GPUs that the plan gives the pod, as ``CUDA_VISIBLE_DEVICES`` takes them."""
WHOLE = "placeopt.io/whole"
"""Kubelets have taken all pods of the action: from then on a pod that is lost does not end the others."""
HOSTNAME_FIELD = "metadata.name"


@dataclass(frozen=True)
class Mark:
    """
    What annotations say of the action that a pod is part of.

    ``round_id``: Of the round that decided it. ``plan``: Digest of the plan. ``job``: Job of the action. ``pods``: How
    many pods the action starts together. ``node``: The node of this pod. ``gpus``: Its GPUs there, by comma.
    """

    round_id: str
    plan: str
    job: str
    pods: int
    node: str
    gpus: str

    @property
    def action(self) -> tuple[str, str]:
        """Key that the pods of one action share."""
        return self.round_id, self.job

    def annotations(self) -> dict[str, str]:
        """Return the annotations that state it."""
        stated = {ROUND: self.round_id, PLAN: self.plan, JOB: self.job, PODS: str(self.pods)}
        return {**stated, NODE: self.node, GPUS: self.gpus}


def mark_of(pod: Object) -> Mark | None:
    """Return the mark of a pod; None if it has none, or not a whole one."""
    notes = pod["metadata"].get("annotations") or {}
    if not all(key in notes for key in (ROUND, PLAN, JOB, PODS, NODE, GPUS)) or not notes[PODS].isdecimal():
        return None
    return Mark(notes[ROUND], notes[PLAN], notes[JOB], int(notes[PODS]), notes[NODE], notes[GPUS])


def is_whole(pod: Object) -> bool:
    """Return whether it is on record that all pods of this pod's action were taken; one that starts alone is whole."""
    mark = mark_of(pod)
    return mark is None or mark.pods == 1 or WHOLE in pod["metadata"]["annotations"]


def gates(pod: Object) -> list[str]:
    """Return the names of a pod's scheduling gates."""
    return [gate["name"] for gate in pod["spec"].get("schedulingGates") or []]


def waits_for_placeopt(pod: Object) -> bool:
    """Return whether placeopt alone holds a pod back."""
    return gates(pod) == [GATE] and "deletionTimestamp" not in pod["metadata"]


def is_lifted(pod: Object) -> bool:
    """Return whether placeopt lifted the gate of a pod that has not ended and is not being deleted."""
    return mark_of(pod) is not None and GATE not in gates(pod) and not has_ended(pod) and not is_leaving(pod)


def is_leaving(pod: Object) -> bool:
    """Return whether a pod is being deleted."""
    return "deletionTimestamp" in pod["metadata"]


def has_ended(pod: Object) -> bool:
    """Return whether a pod has run to its end, or failed."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def bound_node(pod: Object) -> str | None:
    """Return the node of a pod, None while it has none."""
    return pod["spec"].get("nodeName") or None


def has_controller(pod: Object) -> bool:
    """Return whether something makes the pod again when it is deleted."""
    return any(owner.get("controller") for owner in pod["metadata"].get("ownerReferences") or [])


def name_of(pod: Object) -> tuple[str, str]:
    """Return namespace and name."""
    return pod["metadata"].get("namespace", "default"), pod["metadata"]["name"]


def by_action(pods: Iterable[Object]) -> dict[tuple[str, str], list[Object]]:
    """Return the marked pods by action."""
    found: dict[tuple[str, str], list[Object]] = {}
    for pod in pods:
        if (mark := mark_of(pod)) is not None:
            found.setdefault(mark.action, []).append(pod)
    return found
