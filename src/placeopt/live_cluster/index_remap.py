"""Used capacity, renumbered for a cluster whose nodes have changed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from placeopt.problem import IntArray, Placement, Problem, State


class IndexRemap:
    """
    Old numbers of nodes and GPUs in new ones: a node keeps its id, a GPU its index in the node.

    ``node`` and ``gpu`` have -1 for what was removed; nothing may be held there.
    """

    def __init__(self, before: Problem, after: Problem) -> None:
        self._before, self._after = before, after
        position = {name: n for n, name in enumerate(after.node_ids)}
        self.node: IntArray = np.array([position.get(name, -1) for name in before.node_ids], dtype=np.int64)
        old, new = before.topology, after.topology
        at = self.node[old.gpu_node]
        size = np.diff(new.node_gpu_start)
        there = (at >= 0) & (old.gpu_index < size[at])
        self.gpu: IntArray = np.where(there, new.node_gpu_start[at] + old.gpu_index, -1)
        self.shifts = not _is_start(self.node) or not _is_start(self.gpu)

    def state(self, state: State, placed: Iterable[Placement]) -> State:
        """Return the state of the new cluster with everything held that is held in ``state``, by ``placed``."""
        before, after = self._before, self._after
        out = State(after)
        mine, kept = np.flatnonzero(self.node >= 0), np.flatnonzero(self.gpu >= 0)
        nodes, gpus = self.node[mine], self.gpu[kept]
        out.node_free[nodes] -= (before.node_capacity - state.node_free)[mine]
        out.gpu_free_milli[gpus], out.gpu_slots[gpus] = state.gpu_free_milli[kept], state.gpu_slots[kept]
        out.gpu_free_memory[gpus] -= (before.gpu_memory_mib - state.gpu_free_memory)[kept]
        out.gpu_jobs[gpus], out.gpu_utilisation[gpus] = state.gpu_jobs[kept], state.gpu_utilisation[kept]
        busy = out.gpu_jobs > 0
        for level, free in zip(after.levels, out.level_free, strict=True):
            held = level.gpu_to_domain[busy]
            free -= np.bincount(held[held >= 0], minlength=len(free))
        out.queue_used[:] = state.queue_used
        tenants, offset = state.tenants, after.node_gpu_start[nodes] - before.node_gpu_start[mine]
        out.tenants = [{} for _ in range(after.num_nodes if tenants else 0)]
        for at, new, by in zip(mine.tolist(), nodes.tolist(), offset.tolist(), strict=True) if tenants else ():
            here = tenants[at]
            moved = {(p, tuple([g + by for g in its])): count for (p, its), count in here.items()} if by else dict(here)
            out.tenants[new] = moved
        same_domains = (before.topology.node_domain[mine] == after.topology.node_domain[nodes]).all()
        if same_domains or not before.options.network_mbps.any():
            out.link_load[nodes] = state.link_load[mine]
            out.link_load[after.num_nodes :] = state.link_load[before.num_nodes :]
        else:
            for placement in placed:
                out.load_links(replace(placement, nodes=tuple(self.node[list(placement.nodes)].tolist())))
        return out


def _is_start(new: IntArray) -> bool:
    """Tell whether what is still there has the numbers that it had."""
    there = np.flatnonzero(new >= 0)
    return bool((new[there] == there).all())
