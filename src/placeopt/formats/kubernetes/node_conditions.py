"""Conditions on nodes that the model lacks: volumes, and resources other than CPU, memory and GPUs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from placeopt.errors import BadInput
from placeopt.formats.json_entry import JsonEntry
from placeopt.formats.kubernetes.gangs import JobDraft
from placeopt.formats.kubernetes.node_selectors import EVERY_NODE, NodeConditions, node_selector_terms
from placeopt.formats.kubernetes.nodes import NodeCapacity
from placeopt.formats.kubernetes.pods import Pod, unreadable_field
from placeopt.formats.kubernetes.resources import NONE
from placeopt.model import LabelExpression

ZONES = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)
"""Labels of a volume that a node which carries any of them must share; several values are joined by ``__``."""


class Volumes:
    """
    Volume claims and volumes as they were listed.

    ``claims``, ``volumes``: PersistentVolumeClaims and PersistentVolumes. ``pods``: All of them: a claim that only one
    pod may use is full if another names it.
    """

    def __init__(self, claims: Iterable[JsonEntry], volumes: Iterable[JsonEntry], pods: Iterable[Pod]) -> None:
        self._claims, self._volumes = _by_id(claims, namespaced=True), _by_id(volumes, namespaced=False)
        self._users = Counter(f"{pod.namespace}/{claim}" for pod in pods for claim in pod.claims)

    def read(self, pod: Pod) -> NodeConditions:
        """Return which nodes the volumes of a pod allow."""
        conditions = EVERY_NODE
        for name in pod.claims:
            claim = self._claims.get(f"{pod.namespace}/{name}")
            try:
                read = self._read(claim, self._users[f"{pod.namespace}/{name}"])
            except BadInput as error:
                read = f"with a volume {unreadable_field(claim or pod.entry, error)}"
            conditions &= NodeConditions(unread=read) if isinstance(read, str) else read
        return conditions

    def _read(self, claim: JsonEntry | None, users: int) -> NodeConditions | str:
        """Return which nodes the volume of a claim allows, or why that is not known; ``users``: pods that name it."""
        if claim is None:
            return "with volume claims that are not listed (get persistentvolumeclaims,persistentvolumes too)"
        spec = claim.entry("spec")
        if "volumeName" not in spec or not spec.text("volumeName"):
            return "with a volume claim that is not bound"
        if "ReadWriteOncePod" in spec.words("accessModes") and users > 1:
            return "with a volume claim for one pod alone (ReadWriteOncePod) that another pod names"
        volume = self._volumes.get(spec.text("volumeName"))
        return "with volumes that are not listed (get persistentvolumes too)" if volume is None else _volume(volume)


def _by_id(entries: Iterable[JsonEntry], *, namespaced: bool) -> dict[str, JsonEntry]:
    """Return objects by namespace and name, or by name; one whose name cannot be read counts as not listed."""
    objects = {}
    for entry in entries:
        with suppress(BadInput):
            metadata = entry.entry("metadata")
            name = metadata.text("name")
            objects[f"{metadata.text('namespace', 'default')}/{name}" if namespaced else name] = entry
    return objects


def _volume(entry: JsonEntry) -> NodeConditions:
    """Return the conditions of a volume: its node affinity; a node with labels of zones must share the volume's."""
    required = entry.entry("spec").entry("nodeAffinity").entry("required")
    conditions = node_selector_terms(required) if "nodeSelectorTerms" in required else EVERY_NODE
    labels = entry.entry("metadata").texts("labels")
    zones = [(key, labels[key].split("__")) for key in ZONES if labels.get(key)]
    if zones:
        without = tuple(LabelExpression(key=key, operator="DoesNotExist") for key in ZONES)
        within = tuple(LabelExpression(key=key, operator="In", values=tuple(values)) for key, values in zones)
        conditions &= NodeConditions((within, without))
    return conditions


Floats = NDArray[np.float64]
SLACK = 1e-9
"""Part of an amount by which floats may be off; amounts are whole numbers, or bytes by the million."""


class OtherResources:
    """
    Free amounts of each node, of resources that plans do not count.

    A node with less than a pod requests is excluded for it. A plan might exceed a node's free amount if the waiting
    jobs together request more. So jobs are accepted one by one as long as no plan can do that, and the others are left
    out. The load of a node is at most the sum of all requests; and, where each job also requests a resource that plans
    count (GPUs, CPU, memory), at most what the node's capacity of that resource admits.

    ``running``: Pods on nodes, daemons included. ``shut``: Nodes that take no new pods.
    """

    def __init__(self, nodes: Mapping[str, NodeCapacity], running: Sequence[Pod], shut: Collection[str]) -> None:
        self._names = list(nodes)
        at = {name: i for i, name in enumerate(self._names)}
        here = [(pod, at[pod.node]) for pod in running if pod.node in at]
        self._room = np.array([[node.gpus, node.cpu, node.memory] for node in nodes.values()], dtype=float).T
        np.subtract.at(self._room.T, [n for _, n in here], [pod.amounts.floats for pod, _ in here]) if here else None
        self._room[:, [at[name] for name in shut]] = -1
        self._nodes, self._here = nodes, here
        self._free: dict[str, Floats] = {}
        self._total: dict[str, Floats] = {}
        self._ratio: dict[str, Floats] = {}

    def emptied(self) -> OtherResources:
        """Return the same nodes and pods without any job taken."""
        other = copy(self)
        other._free = dict(self._free)
        other._total = {resource: np.zeros_like(total) for resource, total in self._total.items()}
        other._ratio = {resource: np.zeros_like(ratio) for resource, ratio in self._ratio.items()}
        return other

    def free(self, resource: str) -> Floats:
        """Return the free amount of a resource on each node; ``pods`` are unlimited on a node that states no number."""
        if resource not in self._free:
            none = Fraction(2**62) if resource == "pods" else NONE
            free = [node.other_resources.get(resource, none) for node in self._nodes.values()]
            for pod, n in self._here if resource != "pods" else ():
                if (amount := pod.other_resources.get(resource)) is not None:
                    free[n] -= amount
            self._free[resource] = np.array(free, dtype=float)
            if resource == "pods":
                self._free[resource] -= np.bincount(
                    np.array([n for _, n in self._here], dtype=np.int64), minlength=len(free)
                )
            self._total[resource] = np.zeros(len(free))
            self._ratio[resource] = np.zeros((3, len(free)))
        return self._free[resource]

    def full(self) -> list[str]:
        """Return the nodes with no free pod slot."""
        return [name for name, free in zip(self._names, self.free("pods"), strict=True) if free < 1]

    def close(self, draft: JobDraft) -> str | None:
        """Exclude nodes that cannot hold one pod of a job; return a resource that no node has, if there is one."""
        for resource, amount in draft.first.other_resources.items():
            if not any(resource in node.other_resources for node in self._nodes.values()) and resource != "pods":
                return resource
            short = self.free(resource) < float(amount)
            if resource != "pods":  # such nodes are drained
                draft.excluded_nodes |= {self._names[n] for n in np.flatnonzero(short)}
        return None

    def take(self, drafts: Sequence[JobDraft]) -> dict[str, str]:
        """Accept jobs in this order while no node can run short; return the other jobs, with the resource."""
        left: dict[str, str] = {}
        identical: dict[tuple[object, ...], list[JobDraft]] = {}
        for draft in drafts:
            shape = (draft.gpus, draft.cpu_millicores, draft.memory_mib, len(draft.pods), draft.excluded_nodes)
            identical.setdefault((*shape, tuple(draft.first.other_resources.items())), []).append(draft)
        for members in identical.values():
            mask = self._mask(members[0])
            for resource in members[0].first.other_resources:
                low, high = 0, len(members)
                while low < high:  # how many of them may be taken
                    middle = (low + high + 1) // 2
                    low, high = (middle, high) if self._fits(resource, members[0], middle, mask) else (low, middle - 1)
                left.update((draft.name, resource) for draft in members[low:])
                members = members[:low]
                if not members:
                    break
            for resource in members[0].first.other_resources if members else ():
                total, ratio = self._after(resource, members[0], len(members), mask)
                self._total[resource], self._ratio[resource] = total, ratio
        return left

    def _mask(self, draft: JobDraft) -> NDArray[np.bool_]:
        """Return the nodes with enough free resources for one pod of the job."""
        need = np.array([[draft.gpus], [draft.cpu_millicores], [draft.memory_mib]])
        shut = np.array([name in draft.excluded_nodes for name in self._names])
        able: NDArray[np.bool_] = np.all(self._room >= need, axis=0) & ~shut
        for resource, amount in draft.first.other_resources.items():
            able &= self.free(resource) >= float(amount)
        return able

    def _after(self, resource: str, draft: JobDraft, count: int, mask: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        amount = float(draft.first.other_resources[resource])
        self.free(resource)
        total = self._total[resource] + mask * amount * count * len(draft.pods)
        needs = (draft.gpus, draft.cpu_millicores, draft.memory_mib)
        mine = np.array([[amount / need if need else np.inf] for need in needs])
        ratio = np.where(mask, np.maximum(self._ratio[resource], mine), self._ratio[resource])
        return total, ratio

    def _fits(self, resource: str, draft: JobDraft, count: int, mask: NDArray[np.bool_]) -> bool:
        total, ratio = self._after(resource, draft, count, mask)
        with np.errstate(invalid="ignore"):
            most = np.minimum(total, np.nan_to_num(np.maximum(self._room, 0) * ratio, nan=np.inf).min(axis=0))
        return bool((most <= self.free(resource) * (1 + SLACK))[mask].all())
