"""Resources of nodes that the model lacks: pods, ephemeral storage, huge pages, network cards."""

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
    Free amounts of each node, of resources that plans do not count.

    A node with less than a pod requests is excluded for it. A plan might exceed a node's free amount if the waiting
    jobs together request more. So jobs are accepted one by one as long as no plan can do that, and the others are left
    out. The load of a node is at most the sum of all requests; and, where each job also requests a resource that plans
    count (GPUs, CPU, memory), at most what the node's capacity of that resource admits.

    Parameters
    ----------
    nodes
        By name.
    running
        Pods on nodes, daemons included.
    shut
        Nodes that take no new pods.
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
        """Return the free amount of a resource on each node; ``pods`` are unlimited on a node that states no number."""
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
                self._add(resource, members[0], len(members), mask)
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

    def _add(self, resource: str, draft: JobDraft, count: int, mask: NDArray[np.bool_]) -> None:
        self._total[resource], self._ratio[resource] = self._after(resource, draft, count, mask)
