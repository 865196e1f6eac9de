"""The mapping of ranks to GPUs: start, bound, search or proof; and a job's placement with its ranks permuted."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from placeopt.errors import BadInput, Unsupported
from placeopt.problem import IntArray, Placement, Problem
from placeopt.rank_mapping.bound import cut_bound, gilmore_lawler
from placeopt.rank_mapping.case import Mapping, MappingProblem, make_case
from placeopt.rank_mapping.search import improve
from placeopt.rank_mapping.sets import map_by_sets
from placeopt.rank_mapping.tree import find_tree
from placeopt.terms.costs.communication import job_cost, rank_traffic

MAX_GPUS = 1_024
"""GPUs of one job up to which ranks are mapped; the distances between them are a full table."""

BOUND_SHARE = 1 / 2
"""Share of the time left that the bound may take; the rest is for the search."""


def map_ranks(
    weights: IntArray,
    distances: IntArray,
    groups: IntArray | None = None,
    *,
    gpus_per_rank: int = 1,
    inside: int = 0,
    start: IntArray | None = None,
    deadline: float = float("inf"),
    seed: int = 0,
    on_better: Callable[[Mapping], object] = lambda _: None,
) -> Mapping:
    """
    Choose which of the given GPUs each rank of a job holds, so that its traffic goes the shortest ways.

    Parameters
    ----------
    weights
        Shape ``(k, k)``, symmetric, >= 0: traffic between every GPU of one rank and every GPU of another. The diagonal
        is not read.
    distances
        Shape ``(n, n)``, n = k x ``gpus_per_rank``, symmetric, zero diagonal, >= 0; any matrix, in link-cost units.
    groups
        Shape ``(n,)``: the node of each GPU. All GPUs of a rank come from one group, any of them; to fix which ones go
        together, make each such set a group. None: all GPUs are one group.
    inside
        Traffic between two GPUs of one rank.
    start
        A known order, as in ``Mapping.order``: the result never costs more.
    deadline
        Of ``time.monotonic()``. The result is the best so far, with what is proven so far.
    seed
        Of the search. Same arguments, same result, unless the deadline interrupts.
    on_better
        Called with the first order and with each better one, with what is proven by then.

    Returns
    -------
    Mapping
        Optimal up to 16 GPUs on trees and on machines of up to 8 GPUs of any shape; else if the bound is met.

    Raises
    ------
    BadInput
        As ``make_case``, or if ``start`` is no order or splits a rank over groups.
    Unsupported
        Above 1,024 GPUs, or if costs may pass 2^47.

    Notes
    -----
    A quadratic assignment problem (Koopmans and Beckmann 1957); docs/mapping.md has methods, proofs and figures.
    """
    if len(distances) > MAX_GPUS:
        raise Unsupported(f"mapping: {len(distances)} GPUs are too many (limit {MAX_GPUS}); keep the order as it is")
    case = make_case(weights, distances, groups, gpus_per_rank=gpus_per_rank, inside=inside)
    if start is not None:
        _check(case, start)
    return _solve(case, start, deadline, seed, on_better)


def _solve(
    case: MappingProblem,
    start: IntArray | None,
    deadline: float,
    seed: int,
    on_better: Callable[[Mapping], object],
    *,
    in_round: bool = False,
) -> Mapping:
    """Return the best order. ``in_round``: Whether the bound has no reader, so that one serves that ends searches."""
    best = np.argsort(case.groups, kind="stable") if start is None else start.astype(np.int64)
    cost, bound = case.cost(best), 0
    if case.constant:
        return Mapping(best, cost, cost)
    on_better(Mapping(best, cost, bound))
    if not in_round and time.monotonic() < deadline:
        bound = -(-gilmore_lawler(case.traffic, case.distances) // 2)  # which counts each pair twice
    tree = find_tree(case)
    now = time.monotonic()
    bound = max(bound, cut_bound(case, tree, now + BOUND_SHARE * (deadline - now)))
    rng = np.random.default_rng(seed)
    along = np.argsort(tree.root.gpus)  # (n,) position of each GPU in the tree
    for order in (best, tree.root.gpus) if case.size > 1 else (best,):
        slots = order.reshape(-1, case.size)
        in_order = np.argsort(along[slots].min(axis=1))
        found = improve(case, slots[in_order], np.argsort(in_order), rng, deadline, bound)
        if case.cost(found) < cost:
            best, cost = found, case.cost(found)
        on_better(Mapping(best, cost, bound))
        if cost <= bound or time.monotonic() >= deadline:
            break
    proven = map_by_sets(case, tree, deadline) if cost > bound else None
    if proven is not None:
        best, cost, bound = proven, case.cost(proven), case.cost(proven)
    return Mapping(best, cost, bound)


def _check(case: MappingProblem, start: IntArray) -> None:
    n, g = case.num_tasks, case.size
    if start.shape != (n,) or (np.sort(start) != np.arange(n)).any():
        raise BadInput(f"mapping: start must hold each of the {n} GPUs once")
    nodes = case.groups[start].reshape(-1, g)
    if (nodes != nodes[:, :1]).any():
        raise BadInput("mapping: start must give each rank GPUs of one group")


def improve_ranks(problem: Problem, job: int, placement: Placement, deadline: float, *, seed: int = 0) -> Placement:
    """
    Permute the ranks of a job on the GPUs that it holds, so that its communication costs less.

    Returns the placement, or the same object where nothing better was found. Only a job with edges can gain. Beyond
    the limits of ``map_ranks`` (1,024 GPUs, costs of 2^47) nothing is tried.

    The placement need not be in any state. Every rule still holds: the same GPUs are held, each node has as many
    workers as before, and a worker's GPUs are on one node (which two of a node's GPUs a worker of two gets may change).
    """
    communication = problem.class_communication[problem.job_class[job]]
    before = job_cost(problem, job, placement)
    workers, gpus = len(placement.nodes), np.array(placement.gpus, dtype=np.int64)
    if not communication.edges or before == 0 or len(gpus) > MAX_GPUS:  # before the table of distances is made
        return placement
    try:
        case = make_case(
            rank_traffic(communication, workers),
            problem.topology.pair_distances(gpus),
            problem.gpu_node[gpus],
            gpus_per_rank=len(gpus) // workers,
            inside=int(communication.weight),
        )
    except Unsupported:
        return placement
    mapping = _solve(case, np.arange(len(gpus)), deadline, seed, lambda _: None, in_round=True)
    if mapping.cost >= before:
        return placement
    held = gpus[mapping.order]
    nodes = problem.gpu_node[held].reshape(workers, -1)[:, 0]
    return replace(placement, nodes=tuple(nodes.tolist()), gpus=tuple(held.tolist()))
