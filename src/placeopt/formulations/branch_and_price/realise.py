"""Columns -> placements of jobs, and placements -> columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placeopt.formulations.branch_and_price.cross_group_jobs import CrossGroupJob, CrossGroupPatterns, distribute
from placeopt.formulations.branch_and_price.gpu_groups import GpuGroups, NodeGroup, OpenGroups
from placeopt.formulations.branch_and_price.master import ColumnMaster, MasterModel
from placeopt.formulations.branch_and_price.pricing import Column
from placeopt.problem import Allocation, IntArray, Placement

Bundles = list[tuple[int, int, tuple[int, ...]]]
"""(bundle group, node, GPUs)."""


def realise(master: ColumnMaster, columns: Sequence[Column], layout: MasterModel, values: IntArray) -> Allocation:
    """
    Give every job its GPUs.

    Raises ``ValueError`` if the values do not add up, which rows forbid.
    """
    gpu_groups = master.gpu_groups
    problem, options = gpu_groups.problem, gpu_groups.problem.options
    bundles: dict[int, Bundles] = {}
    for bundle_group, node, gpus in bundles_of(master, columns, values[layout.column]):
        bundles.setdefault(bundle_group, []).append((bundle_group, node, gpus))
    out = list(gpu_groups.state.allocation())
    waiting: dict[int, list[int]] = {}
    for job in range(problem.num_jobs):
        if out[job] is None:
            waiting.setdefault(int(problem.job_class[job]), []).append(job)
    for o, count in zip(master.options.tolist(), values[layout.option].tolist(), strict=True):
        selected = bundles.get(int(gpu_groups.bundle_groups.option_bundle_group[o]), [])
        workers = int(options.bundle_workers[o])
        for _ in range(count):
            parts = [selected.pop(0) for _ in range(int(options.bundles[o])) if selected]
            if len(parts) != options.bundles[o]:
                raise ValueError(f"too few bundles for option {options.name[o]!r}")
            job = waiting[int(options.job_class[o])].pop(0)
            nodes = tuple(node for _, node, _ in parts for _ in range(workers))
            out[job] = Placement(o, nodes, tuple(gpu for _, _, gpus in parts for gpu in gpus))
    if any(bundles.values()):
        raise ValueError("bundles of no job")
    return tuple(out)


def bundles_of(master: ColumnMaster, columns: Sequence[Column], values: IntArray) -> Bundles:
    """Return every bundle of the columns, ``values`` times each, shape (columns,), on GPUs of its own."""
    gpu_groups, patterns = master.gpu_groups, master.patterns
    out: Bundles = []
    first = [0] * len(gpu_groups.node_groups)
    chosen = [(columns[i], int(values[i])) for i in np.flatnonzero(values).tolist()]
    for column, count in chosen:
        for _ in range(count if column.pattern >= 0 else 0):
            group = int(patterns.group[column.pattern])
            nodes, cross_group_jobs = gpu_groups.node_groups[group], patterns.cross_group_jobs[column.pattern]
            node = nodes.nodes[first[group]]
            first[group] += 1
            start = int(gpu_groups.problem.node_gpu_start[node])
            held = distribute(gpu_groups, nodes, cross_group_jobs)[1]
            for (bundle_group, _), gpus in zip(cross_group_jobs, held, strict=True):
                out.append((bundle_group, node, tuple(start + gpu for gpu in sorted(gpus))))
            taken = frozenset().union(*held)
            for r, pattern_counts in enumerate(column.group_counts):
                out.extend(_fill(gpu_groups, nodes, node, r, np.frombuffer(pattern_counts, dtype=np.int64), taken))
    free: dict[int, list[tuple[NodeGroup, int, int]]] = {}
    for begin, nodes in zip(first, gpu_groups.node_groups, strict=True):
        for node in nodes.nodes[begin:]:  # room after room of a node, so that as few idle nodes as can be are opened
            for r, open_group in enumerate(nodes.room):
                free.setdefault(open_group, []).append((nodes, node, r))
    for column, count in chosen:
        for _ in range(count if column.open_group >= 0 else 0):
            nodes, node, r = free[column.open_group].pop(0)
            counts = np.frombuffer(column.group_counts[0], dtype=np.int64)
            out.extend(_fill(gpu_groups, nodes, node, r, counts, frozenset()))
    return out


def _fill(
    gpu_groups: GpuGroups, nodes: NodeGroup, node: int, r: int, counts: IntArray, taken: frozenset[int]
) -> Bundles:
    """
    Hand out the GPUs of a room, largest shares first, idle ones before others: as many become busy as can.

    Shares divide each other, so any GPU that takes a share leaves as many slots to the smaller ones as any other.
    """
    bundle_groups, state, start = (
        gpu_groups.bundle_groups,
        gpu_groups.state,
        int(gpu_groups.problem.node_gpu_start[node]),
    )
    idle = [start + p for p in nodes.free[r] if p not in taken]
    parts = [start + p for p in nodes.parts[r] if p not in nodes.free[r]]
    alone = gpu_groups.problem.jobs_per_gpu == 1
    left = {gpu: 0 if alone else int(state.gpu_free_milli[gpu]) for gpu in parts}
    out: Bundles = []
    for bundle_group in sorted(
        np.flatnonzero(counts).tolist(), key=lambda k: -int(bundle_groups.milli[k] * bundle_groups.gpus[k])
    ):
        milli, gpus = int(bundle_groups.milli[bundle_group]), int(bundle_groups.gpus[bundle_group])
        for _ in range(int(counts[bundle_group])):
            if len(idle) >= gpus:
                held, idle = idle[:gpus], idle[gpus:]
            else:
                held = [gpu for gpu, free in left.items() if free >= milli][:1]
            if len(held) != gpus:
                raise ValueError(f"no GPU left for a share of {milli} in node {node}")
            for gpu in held:
                left[gpu] = left.get(gpu, 1000) - milli
            out.append((bundle_group, node, tuple(held)))
    return out


def columns_of(gpu_groups: GpuGroups, patterns: CrossGroupPatterns, allocation: Allocation) -> list[Column]:
    """Return the columns of an allocation of the round, those left out in which a job is in no bundle group."""
    bundle_groups, problem, state = gpu_groups.bundle_groups, gpu_groups.problem, gpu_groups.state
    numbers = {(int(patterns.group[q]), patterns.cross_group_jobs[q]): q for q in range(len(patterns))}
    on_node: dict[int, list[tuple[int, tuple[int, ...]]]] = {}
    for job, placement in enumerate(allocation):
        if (
            placement is None
            or state.placements[job] is not None
            or bundle_groups.option_bundle_group[placement.option] < 0
        ):
            continue
        bundle_group = int(bundle_groups.option_bundle_group[placement.option])
        gpus, bundles = int(bundle_groups.gpus[bundle_group]), int(problem.options.bundles[placement.option])
        for i in range(bundles):
            held = placement.gpus[i * gpus : (i + 1) * gpus]
            on_node.setdefault(int(problem.gpu_node[held[0]]), []).append((bundle_group, held))
    group_of = {node: g for g, nodes in enumerate(gpu_groups.node_groups) for node in nodes.nodes}
    out: list[Column] = []
    for node, bundles_here in sorted(on_node.items()):
        nodes, start = gpu_groups.node_groups[group_of[node]], int(problem.node_gpu_start[node])
        counts = np.zeros((len(nodes.parts), len(bundle_groups)), dtype=np.int64)
        cross_group_jobs: list[CrossGroupJob] = []
        for bundle_group, held in bundles_here:
            split = tuple(sum(gpu - start in part for gpu in held) for part in nodes.parts)
            if sum(n > 0 for n in split) > 1:
                cross_group_jobs.append((bundle_group, split))
            else:
                counts[int(np.argmax(split)), bundle_group] += 1
        if not cross_group_jobs:
            for r, open_group in enumerate(nodes.room):
                if counts[r].any():
                    out.append(
                        Column(
                            open_group,
                            -1,
                            (counts[r].tobytes(),),
                            _content_cost(gpu_groups, gpu_groups.open_groups, open_group, counts[r]),
                        )
                    )
            continue
        q = _number(numbers, group_of[node], cross_group_jobs)
        if q is None:
            continue
        price = int(patterns.cost[q]) + distribute(gpu_groups, nodes, patterns.cross_group_jobs[q])[0]
        for r in range(len(nodes.parts)):
            if counts[r].any():
                price += _content_cost(
                    gpu_groups, patterns.occupied_groups, int(patterns.occupied_group[q, r]), counts[r]
                )
        out.append(Column(-1, q, tuple(row.tobytes() for row in counts), price))
    return out


def _number(
    numbers: dict[tuple[int, tuple[CrossGroupJob, ...]], int], group: int, cross_group_jobs: list[CrossGroupJob]
) -> int | None:
    """Return the number of the pattern with these cross-group jobs: by bundle group, the splits of each ascending."""
    return numbers.get((group, tuple(sorted(cross_group_jobs))))


def _content_cost(gpu_groups: GpuGroups, open_groups: OpenGroups, row: int, counts: IntArray) -> int:
    """Cost of a pattern: neighbours, the bundles themselves, GPUs that become busy."""
    bundle_groups = gpu_groups.bundle_groups
    by_profile = np.bincount(bundle_groups.profile, weights=counts, minlength=len(bundle_groups.pair)).astype(np.int64)
    meet = int(by_profile @ bundle_groups.pair @ by_profile - by_profile @ bundle_groups.pair.diagonal()) // 2
    gpus = int(counts @ bundle_groups.gpus)
    busy = min(gpus, int(open_groups.idle[row]))
    total = (
        meet
        + int(by_profile @ open_groups.beside[row])
        + int(counts @ open_groups.fixed[row])
        - busy * int(open_groups.busy[row])
    )
    return total + (int(open_groups.opening[row]) if gpus else 0)
