"""Resources of nodes that the round does not have: pods, ephemeral storage, huge pages, network cards."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from placeopt.formats.kubernetes.job_drafts import JobDraft
from placeopt.formats.kubernetes.nodes import NodeCapacity
from placeopt.formats.kubernetes.pods import Pod

Floats = NDArray[np.float64]
SLACK = 1e-9
"""Part of an amount by which floats may be off; amounts are whole numbers, or bytes by the million."""


class OtherResources:
    """
    Amounts that are free on each node, of resources that no plan counts.

    A node with less than a pod asks for is closed to it. Where jobs that wait could together ask for more than a node
    has free, a plan might put them there: they are taken one after the other as long as that is impossible, and the
    others are left out. What could come to a node is at most what all of them ask for; and, as far as each of them
    holds some of a resource that plans do count (GPUs, CPU, memory), at most what that lets in.

    Parameters
    ----------
    nodes
        By name.
    running
        Pods on nodes; those of daemons too.
    shut
        Nodes that take nothing new.
    """

    def __init__(self, nodes: Mapping[str, NodeCapacity], running: Sequence[Pod], shut: Collection[str]) -> None:
        self._names = list(nodes)
        at = {name: i for i, name in enumerate(self._names)}
        here = [(pod, at[pod.node]) for pod in running if pod.node in at]
        self._room = np.array([[node.gpus, node.cpu, node.memory] for node in nodes.values()], dtype=float).T
        for pod, n in here:
            self._room[:, n] -= (pod.gpus, float(1000 * pod.cpu), float(pod.memory) / 2**20)
        self._room[:, [at[name] for name in shut]] = -1
        self._nodes, self._here = nodes, here
        self._free: dict[str, Floats] = {}
        self._total: dict[str, Floats] = {}
        self._ratio: dict[str, Floats] = {}

    def free(self, resource: str) -> Floats:
        """Return how much of a resource each node has free; ``pods`` are without limit where a node states none."""
        if resource not in self._free:
            none = Fraction(2**62) if resource == "pods" else Fraction(0)
            free = [node.other_resources.get(resource, none) for node in self._nodes.values()]
            for pod, n in self._here:
                free[n] -= pod.other_resources.get(resource, Fraction(0))
            self._free[resource] = np.array(free, dtype=float)
            self._total[resource] = np.zeros(len(free))
            self._ratio[resource] = np.zeros((3, len(free)))
        return self._free[resource]

    def full(self) -> list[str]:
        """Return the nodes that take no pod more."""
        return [name for name, free in zip(self._names, self.free("pods"), strict=True) if free < 1]

    def close(self, draft: JobDraft) -> str | None:
        """Block nodes with too little for one pod of a job; return the resource that no node has at all, if any."""
        for resource, amount in draft.first.other_resources.items():
            if not any(resource in node.other_resources for node in self._nodes.values()) and resource != "pods":
                return resource
            short = self.free(resource) < float(amount)
            if resource != "pods":  # such nodes are drained
                draft.excluded_nodes |= {self._names[n] for n in np.flatnonzero(short)}
        return None

    def take(self, drafts: Sequence[JobDraft]) -> dict[str, str]:
        """Take jobs in this order as long as no node can run short; return those left out, with the resource."""
        left: dict[str, str] = {}
        alike: dict[tuple[object, ...], list[JobDraft]] = {}
        for draft in drafts:
            shape = (draft.gpus, draft.cpu_millicores, draft.memory_mib, len(draft.pods), draft.excluded_nodes)
            alike.setdefault((*shape, tuple(draft.first.other_resources.items())), []).append(draft)
        for members in alike.values():
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
                self._add(resource, members[0], len(members), mask)
        return left

    def _mask(self, draft: JobDraft) -> NDArray[np.bool_]:
        """Return the nodes on which a pod of the job may be, by what is free of all resources."""
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

    def _add(self, resource: str, draft: JobDraft, count: int, mask: NDArray[np.bool_]) -> None:
        self._total[resource], self._ratio[resource] = self._after(resource, draft, count, mask)
