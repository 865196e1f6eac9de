"""Placements of the jobs -> values of the columns, as a hint."""

from __future__ import annotations

import numpy as np

from placeopt.linear import ModelBuilder
from placeopt.problem import Allocation, IntArray, Placement, change_of
from placeopt.terms.variables import MOVE, NEW, SHRINK, STAY, Variables


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
    bundle_of = {(int(s), int(n)): b for b, (s, n) in enumerate(zip(v.bundle_start, v.bundle_node, strict=True))}
    grant_of = {(int(b), int(c)): q for q, (b, c) in enumerate(zip(v.grant_bundle, v.grant_cell, strict=True))}
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
            if s in v.rank_columns:
                _set_ranks(v, values, s, placement)
    return builder.complete(values)


def _set_ranks(v: Variables, values: IntArray, s: int, placement: Placement) -> None:
    """Say which rank holds which GPUs, where the start has columns for that."""
    rank_columns, gpus = v.rank_columns[s], int(v.problem.options.gpus[placement.option])
    cells = v.grant_cell[rank_columns.grant]
    column = {
        (r, c): x
        for r, c, x in zip(rank_columns.rank.tolist(), cells.tolist(), rank_columns.column.tolist(), strict=True)
    }
    for i, gpu in enumerate(placement.gpus):
        at = column.get((i // gpus, int(v.gpu_to_cell[gpu])))
        if at is not None:
            values[at] += 1


def _kind(v: Variables, job: int, placement: Placement) -> int:
    """Return which kind of start the placement is."""
    if job not in v.problem.running:
        return NEW
    return {"kept": STAY, "shrunk": SHRINK, "moved": MOVE}[change_of(v.problem, job, placement)]
