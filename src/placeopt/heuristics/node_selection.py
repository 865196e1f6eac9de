"""Nodes for the workers of a job that may be on several nodes: as close together as they fit."""

from __future__ import annotations

import numpy as np

from placeopt.heuristics.candidates import Candidates
from placeopt.model import Split
from placeopt.problem import IntArray
from placeopt.problem.free_capacity import eligible_domains
from placeopt.problem.worker_distribution import Surroundings, WorkerDistribution


def nodes_for_bundles(candidates: Candidates, option: int) -> list[int] | None:
    """Return one node per worker, or None if greedy finds no way."""
    # Splits are filled from the outermost level inwards. Without splits, the job goes to the smallest network domain
    # that takes it whole, of those to the one with the least room, and there to as few nodes as possible.
    problem = candidates.problem
    nodes = np.flatnonzero(np.isfinite(candidates.scores(option)))
    rooms = candidates.free_rooms(option)[nodes]
    if problem.options.spread[option]:
        return _laid(candidates, option, nodes, rooms)
    splits = sorted(problem.options.splits[option], key=lambda split: split.domains)
    return _fill(candidates, option, nodes, rooms, int(problem.options.bundles[option]), splits)


def _laid(candidates: Candidates, option: int, nodes: IntArray, rooms: IntArray) -> list[int] | None:
    """Return a way to lay the workers that splits and spread allow, if there is one beside uplinks."""
    problem, options = candidates.problem, candidates.problem.options
    per_node = np.zeros(problem.num_nodes, dtype=np.int64)
    per_node[nodes] = np.minimum(rooms, options.workers_per_node[option])
    around = Surroundings(
        problem.topology,
        lambda level: problem.split_domain[level],
        options.splits[option],
        options.spread[option],
        lambda spread: eligible_domains(problem, option, spread),
    )
    way = WorkerDistribution(around, int(options.workers[option]), per_node)
    return [node for node, count in way.nodes().items() for _ in range(count)] if way.fits else None


def _fill(
    candidates: Candidates, option: int, nodes: IntArray, rooms: IntArray, count: int, splits: list[Split]
) -> list[int] | None:
    if int(rooms.sum()) < count:
        return None
    if not splits:
        return _pack(candidates, option, nodes, rooms, count)
    outer, inner = splits[0], splits[1:]
    per_domain = [count // outer.domains + (i < count % outer.domains) for i in range(outer.domains)]
    if count < outer.domains or (outer.workers is not None and any(n != outer.workers for n in per_domain)):
        return None
    inside = [Split(level=s.level, domains=max(1, s.domains // outer.domains), workers=s.workers) for s in inner]
    domain = candidates.problem.split_domain[outer.level][nodes]
    free = [d for d in np.unique(domain).tolist() if d >= 0]
    free.sort(key=lambda d: (int(rooms[domain == d].sum()), d))
    out: list[int] = []
    for need in per_domain:
        for d in free:
            here = domain == d
            part = _fill(candidates, option, nodes[here], rooms[here], need, inside)
            if part is not None:
                out.extend(part)
                free.remove(d)
                break
        else:
            return None
    return out


def _pack(candidates: Candidates, option: int, nodes: IntArray, rooms: IntArray, count: int) -> list[int] | None:
    """Choose nodes inside the smallest domain with room: the roomiest node first, the last one by best fit."""
    topology = candidates.problem.topology
    inside = topology.node_domain[nodes]
    while True:
        room = np.bincount(inside + 1, weights=rooms).astype(np.int64)  # 0 is the network
        enough = np.flatnonzero(room >= count)
        local = enough[enough > 0]
        if len(local) or not (inside >= 0).any():
            chosen = int(local[room[local].argmin()]) - 1 if len(local) else -1
            here = inside == chosen if len(local) else np.ones(len(nodes), dtype=bool)
            break
        inside = np.where(inside >= 0, topology.domain_parent[inside], -1)
    nodes, rooms = nodes[here], rooms[here]
    scores = candidates.scores(option)[nodes]
    roomiest_first = np.lexsort((scores, -rooms))
    taken = np.cumsum(rooms[roomiest_first])
    missing = count - np.concatenate([[0], taken])  # after so many nodes of this order
    ends = np.flatnonzero(rooms[roomiest_first] >= missing[:-1])  # here the next node could take all that is missing
    if not len(ends):
        return None
    filled, left = roomiest_first[: ends[0]], np.sort(roomiest_first[ends[0] :])
    need = int(missing[ends[0]])
    enough = left[rooms[left] >= need]
    last = enough[np.lexsort((scores[enough], rooms[enough]))[0]]
    return [*np.repeat(nodes[filled], rooms[filled]).tolist(), *[int(nodes[last])] * need]
