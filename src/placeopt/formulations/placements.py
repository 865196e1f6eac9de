"""Values of the columns -> placements of the jobs, and placements -> values, as a hint."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placeopt.linear import ModelBuilder
from placeopt.problem import Allocation, BoolArray, IntArray, Placement, change_of
from placeopt.problem.changes import part_of, restarted
from placeopt.terms.variables import MOVE, NEW, SHRINK, STAY, Variables


def decode(variables: Variables, values: IntArray) -> Allocation:
    """
    Give every started job its bundles, and every bundle its GPUs.

    What was counted together is handed out in order: jobs by number, GPUs by number, so equal values give equal
    placements. Where jobs of several GPUs each share GPUs, the formulation keeps them apart, so any order works. A
    running job that stays keeps its placement, shares included; one that shrinks keeps those of its workers that are
    granted their GPUs.

    Raises ``ValueError`` if the values do not add up, which rows forbid; the caller treats it as a solver's fault.
    """
    v, problem = variables, variables.problem
    placements = v.state.allocation()
    out = list(placements)
    free = {c: list(gpus) for c, gpus in enumerate(v.cell_gpus)}
    waiting = [list(jobs) for jobs in v.unit_jobs]
    used = values[v.bundle] != 0
    granted = values[v.grant] != 0
    used[v.grant_bundle[granted]] = True
    grants_of, bundles_of = _by_owner(v.grant_bundle, granted), _by_owner(v.bundle_start, used)
    for s in range(len(v.start)):
        count, option = int(values[v.start[s]]), int(v.start_option[s])
        if not count:
            continue
        kind, first = int(v.start_kind[s]), v.unit_jobs[v.start_unit[s]][0]
        if kind in (STAY, SHRINK):
            out[first] = problem.running[first] if kind == STAY else _shrunk(v, values, s, first)
            continue
        mine = bundles_of.get(s, ())
        parts = [part for b in mine for part in _bundles(v, values, b, grants_of.get(b, ()), free)]
        per_job, unit = int(problem.options.bundles[option]), waiting[v.start_unit[s]]
        if len(parts) != per_job * count or len(unit) < count:
            raise ValueError(f"{len(parts)} bundles for {count} starts of {per_job} bundles")
        for i in range(count):
            selected = parts[i * per_job : (i + 1) * per_job]
            workers = int(problem.options.bundle_workers[option])
            nodes = tuple(node for node, _ in selected for _ in range(workers))
            job, placement = unit.pop(0), Placement(option, nodes, tuple(gpu for _, gpus in selected for gpu in gpus))
            out[job] = restarted(problem, job, placement) if kind == MOVE else placement
    return tuple(out)


def _shrunk(v: Variables, values: IntArray, s: int, job: int) -> Placement:
    """Workers whose first GPU is granted remain; those without GPUs by number, as many a node as it has bundles."""
    held, option = v.problem.running[job], int(v.start_option[s])
    gpus = int(v.problem.options.gpus[option])
    if gpus:
        selected = np.flatnonzero(v.grant_start == s)
        granted = {int(v.grant_cell[q]) for q in selected if values[v.grant[q]]}
        first = held.gpus[::gpus]
        ranks = [rank for rank, gpu in enumerate(first) if int(v.gpu_to_cell[gpu]) in granted]
    else:
        per_bundle = int(v.problem.options.bundle_workers[option])
        selected = np.flatnonzero(v.bundle_start == s)
        left = {int(v.bundle_node[b]): int(values[v.bundle[b]]) * per_bundle for b in selected}
        ranks = []
        for rank, node in enumerate(held.nodes):
            if left[node] > 0:
                ranks.append(rank)
                left[node] -= 1
    if len(ranks) != v.problem.options.workers[option] or ranks[0] != 0:
        raise ValueError(f"workers {ranks} remain of a job that shrinks to {v.problem.options.workers[option]}")
    return part_of(v.problem, job, option, tuple(ranks))


def _by_owner(owner: IntArray, used: BoolArray) -> dict[int, list[int]]:
    """Positions that are used, in ascending order; of a large model these are few."""
    out: dict[int, list[int]] = {}
    for position in np.flatnonzero(used).tolist():
        out.setdefault(int(owner[position]), []).append(position)
    return out


def _bundles(
    v: Variables, values: IntArray, b: int, grants: Sequence[int], free: dict[int, list[int]]
) -> list[tuple[int, tuple[int, ...]]]:
    """Return (node, GPUs) of every bundle that column ``b`` counts."""
    count, option, node = int(values[v.bundle[b]]), int(v.start_option[v.bundle_start[b]]), int(v.bundle_node[b])
    need = int(v.problem.options.gpus[option] * v.problem.options.bundle_workers[option])
    taken: list[int] = []
    for q in grants:
        amount, cell = int(values[v.grant[q]]), int(v.grant_cell[q])
        if len(v.cell_gpus[cell]) == 1:
            taken.extend(v.cell_gpus[cell] * amount)
        else:
            if amount > len(free[cell]):
                raise ValueError(f"{amount} GPUs granted of a cell with {len(free[cell])} left")
            taken.extend(free[cell][:amount])
            del free[cell][:amount]
    if len(taken) != need * count:
        raise ValueError(f"{len(taken)} GPUs granted to {count} bundles of {need}")
    return [(node, tuple(taken[i * need : (i + 1) * need])) for i in range(count)]


def encode(variables: Variables, allocation: Allocation, builder: ModelBuilder) -> IntArray:
    """
    Return the values of all columns of ``builder``, shape (n,): a solution that costs what the allocation costs.

    Start, bundle and grant columns follow from the placements, those that rules and costs added from their
    definitions (`placeopt.linear.ModelBuilder.define`). Placements that have no columns are left out, so the values
    may break rows: a hint is only a hint.
    """
    v, options = variables, variables.problem.options
    values = np.zeros(builder.num_variables, dtype=np.int64)
    starts = zip(v.start_unit.tolist(), v.start_option.tolist(), v.start_kind.tolist(), strict=True)
    start_of = {start: s for s, start in enumerate(starts)}
    bundles = zip(v.bundle_start.tolist(), v.bundle_node.tolist(), strict=True)
    grants = zip(v.grant_bundle.tolist(), v.grant_cell.tolist(), strict=True)
    bundle_of, grant_of = ({place: at for at, place in enumerate(places)} for places in (bundles, grants))
    for unit, jobs in enumerate(v.unit_jobs):
        for job in jobs:
            placement = allocation[job]
            if placement is None:
                continue
            s = start_of.get((unit, placement.option, _kind(v, job, placement)))
            if s is None:
                continue
            values[v.start[s]] += 1
            workers = int(options.bundle_workers[placement.option])
            for node in placement.nodes[::workers]:
                if (s, node) in bundle_of:
                    values[v.bundle[bundle_of[s, node]]] += 1
            for gpu in placement.gpus:
                b = bundle_of.get((s, int(v.problem.gpu_node[gpu])))
                q = None if b is None else grant_of.get((b, int(v.gpu_to_cell[gpu])))
                if q is not None:
                    values[v.grant[q]] += 1
    return builder.complete(values)


def _kind(v: Variables, job: int, placement: Placement) -> int:
    """Return which kind of start the placement is."""
    if job not in v.problem.running:
        return NEW
    return {"kept": STAY, "shrunk": SHRINK, "moved": MOVE}[change_of(v.problem, job, placement)]
