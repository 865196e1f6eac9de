"""Columns -> placements of jobs, and placements -> columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placeopt.formulations.branch_and_price.cross_group_jobs import CrossGroupPatterns, Span, lay
from placeopt.formulations.branch_and_price.gpu_groups import GpuGroups, NodeGroup, OpenGroups
from placeopt.formulations.branch_and_price.master import Master, MasterModel
from placeopt.formulations.branch_and_price.pricing import Column
from placeopt.problem import Allocation, IntArray, Placement

Bundles = list[tuple[int, int, tuple[int, ...]]]
"""(kind, node, GPUs)."""


def realise(master: Master, columns: Sequence[Column], layout: MasterModel, values: IntArray) -> Allocation:
    """
    Give every job its GPUs.

    Raises
    ------
    ValueError
        If the values do not add up, which rows forbid.
    """
    rooms = master.rooms
    problem, options = rooms.problem, rooms.problem.options
    bundles: dict[int, Bundles] = {}
    for kind, node, gpus in bundles_of(master, columns, values[layout.column]):
        bundles.setdefault(kind, []).append((kind, node, gpus))
    out = list(rooms.state.allocation())
    waiting: dict[int, list[int]] = {}
    for job in range(problem.num_jobs):
        if out[job] is None:
            waiting.setdefault(int(problem.job_class[job]), []).append(job)
    for o, count in zip(master.options.tolist(), values[layout.option].tolist(), strict=True):
        mine = bundles.get(int(rooms.kinds.option_kind[o]), [])
        workers = int(options.bundle_workers[o])
        for _ in range(count):
            parts = [mine.pop(0) for _ in range(int(options.bundles[o])) if mine]
            if len(parts) != options.bundles[o]:
                raise ValueError(f"too few bundles for option {options.name[o]!r}")
            job = waiting[int(options.job_class[o])].pop(0)
            nodes = tuple(node for _, node, _ in parts for _ in range(workers))
            out[job] = Placement(o, nodes, tuple(gpu for _, _, gpus in parts for gpu in gpus))
    if any(bundles.values()):
        raise ValueError("bundles of no job")
    return tuple(out)


def bundles_of(master: Master, columns: Sequence[Column], values: IntArray) -> Bundles:
    """Return every bundle of the columns, ``values`` times each, shape (columns,), on GPUs of its own."""
    rooms, patterns = master.rooms, master.patterns
    out: Bundles = []
    first = [0] * len(rooms.groups)
    chosen = [(columns[i], int(values[i])) for i in np.flatnonzero(values).tolist()]
    for column, count in chosen:
        for _ in range(count if column.pattern >= 0 else 0):
            group = int(patterns.group[column.pattern])
            nodes, spans = rooms.groups[group], patterns.spans[column.pattern]
            node = nodes.nodes[first[group]]
            first[group] += 1
            start = int(rooms.problem.node_gpu_start[node])
            held = lay(rooms, nodes, spans)[1]
            for (kind, _), gpus in zip(spans, held, strict=True):
                out.append((kind, node, tuple(start + gpu for gpu in sorted(gpus))))
            taken = frozenset().union(*held)
            for r, content in enumerate(column.contents):
                out.extend(_fill(rooms, nodes, node, r, np.frombuffer(content, dtype=np.int64), taken))
    free: dict[int, list[tuple[NodeGroup, int, int]]] = {}
    for begin, nodes in zip(first, rooms.groups, strict=True):
        for node in nodes.nodes[begin:]:  # room after room of a node, so that as few idle nodes as can be are opened
            for r, place in enumerate(nodes.room):
                free.setdefault(place, []).append((nodes, node, r))
    for column, count in chosen:
        for _ in range(count if column.place >= 0 else 0):
            nodes, node, r = free[column.place].pop(0)
            counts = np.frombuffer(column.contents[0], dtype=np.int64)
            out.extend(_fill(rooms, nodes, node, r, counts, frozenset()))
    return out


def _fill(rooms: GpuGroups, nodes: NodeGroup, node: int, r: int, counts: IntArray, taken: frozenset[int]) -> Bundles:
    """
    Hand out the GPUs of a room, largest shares first, idle ones before others: as many become busy as can.

    Shares divide each other, so any GPU that takes a share leaves as many slots to the smaller ones as any other.
    """
    kinds, state, start = rooms.kinds, rooms.state, int(rooms.problem.node_gpu_start[node])
    idle = [start + p for p in nodes.free[r] if p not in taken]
    parts = [start + p for p in nodes.parts[r] if p not in nodes.free[r]]
    alone = rooms.problem.jobs_per_gpu == 1
    left = {gpu: 0 if alone else int(state.gpu_free_milli[gpu]) for gpu in parts}
    out: Bundles = []
    for kind in sorted(np.flatnonzero(counts).tolist(), key=lambda k: -int(kinds.milli[k] * kinds.gpus[k])):
        milli, gpus = int(kinds.milli[kind]), int(kinds.gpus[kind])
        for _ in range(int(counts[kind])):
            if len(idle) >= gpus:
                held, idle = idle[:gpus], idle[gpus:]
            else:
                held = [gpu for gpu, free in left.items() if free >= milli][:1]
            if len(held) != gpus:
                raise ValueError(f"no GPU left for a share of {milli} in node {node}")
            for gpu in held:
                left[gpu] = left.get(gpu, 1000) - milli
            out.append((kind, node, tuple(held)))
    return out


def columns_of(rooms: GpuGroups, patterns: CrossGroupPatterns, allocation: Allocation) -> list[Column]:
    """Return the columns of an allocation of the round, those left out in which a job is in no kind."""
    kinds, problem, state = rooms.kinds, rooms.problem, rooms.state
    numbers = {(int(patterns.group[q]), patterns.spans[q]): q for q in range(len(patterns))}
    on_node: dict[int, list[tuple[int, tuple[int, ...]]]] = {}
    for job, placement in enumerate(allocation):
        if placement is None or state.placements[job] is not None or kinds.option_kind[placement.option] < 0:
            continue
        kind = int(kinds.option_kind[placement.option])
        gpus, bundles = int(kinds.gpus[kind]), int(problem.options.bundles[placement.option])
        for i in range(bundles):
            held = placement.gpus[i * gpus : (i + 1) * gpus]
            on_node.setdefault(int(problem.gpu_node[held[0]]), []).append((kind, held))
    group_of = {node: g for g, nodes in enumerate(rooms.groups) for node in nodes.nodes}
    out: list[Column] = []
    for node, bundles_here in sorted(on_node.items()):
        nodes, start = rooms.groups[group_of[node]], int(problem.node_gpu_start[node])
        counts = np.zeros((len(nodes.parts), len(kinds)), dtype=np.int64)
        spans: list[Span] = []
        for kind, held in bundles_here:
            split = tuple(sum(gpu - start in part for gpu in held) for part in nodes.parts)
            if sum(n > 0 for n in split) > 1:
                spans.append((kind, split))
            else:
                counts[int(np.argmax(split)), kind] += 1
        if not spans:
            for r, place in enumerate(nodes.room):
                if counts[r].any():
                    out.append(
                        Column(place, -1, (counts[r].tobytes(),), _content_cost(rooms, rooms.places, place, counts[r]))
                    )
            continue
        q = _number(numbers, group_of[node], spans)
        if q is None:
            continue
        price = int(patterns.cost[q]) + lay(rooms, nodes, patterns.spans[q])[0]
        for r in range(len(nodes.parts)):
            if counts[r].any():
                price += _content_cost(rooms, patterns.scenes, int(patterns.scene[q, r]), counts[r])
        out.append(Column(-1, q, tuple(row.tobytes() for row in counts), price))
    return out


def _number(numbers: dict[tuple[int, tuple[Span, ...]], int], group: int, spans: list[Span]) -> int | None:
    """Number of the pattern with these spans, which are listed by kind, each kind's splits ascending."""
    return numbers.get((group, tuple(sorted(spans))))


def _content_cost(rooms: GpuGroups, places: OpenGroups, row: int, counts: IntArray) -> int:
    """Cost of a content: neighbours, the bundles themselves, GPUs that become busy."""
    kinds = rooms.kinds
    by_profile = np.bincount(kinds.profile, weights=counts, minlength=len(kinds.pair)).astype(np.int64)
    meet = int(by_profile @ kinds.pair @ by_profile - by_profile @ kinds.pair.diagonal()) // 2
    gpus = int(counts @ kinds.gpus)
    busy = min(gpus, int(places.idle[row]))
    total = meet + int(by_profile @ places.beside[row]) + int(counts @ places.fixed[row]) - busy * int(places.busy[row])
    return total + (int(places.opening[row]) if gpus else 0)
