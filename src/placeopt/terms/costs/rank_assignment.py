"""Who of a job's workers sits where, for jobs whose traffic depends on that: columns, rows and the traffic's price."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import combinations_with_replacement

import numpy as np

from placeopt.linear import NO_UPPER, ModelBuilder
from placeopt.model import Communication
from placeopt.problem import IntArray, Problem
from placeopt.terms.linearized_costs import CostPrices, Rows
from placeopt.terms.variables import RankVariables, Variables


@dataclass(frozen=True, eq=False)
class _Node:
    """Where a start may have workers: its bundle, its grants, and what pairs of GPUs there cost."""

    node: int
    bundle: int  # column
    grants: IntArray  # positions
    within: IntArray  # (cells, cells) distance of two different GPUs of two cells, or of one
    root: IntArray  # (cells,) from GPU to the machine's vertex


def price_by_ranks(
    builder: ModelBuilder, prices: CostPrices, v: Variables, s: int, communication: Communication
) -> None:
    """
    State what the traffic of a start costs, whose unit is one job, with a column for every rank and grant.

    Any two GPUs of two workers are at least ``near`` apart; on that stands what they are further apart inside a node,
    by products, and what every tree edge between nodes costs that has one of the two workers below it.
    """
    option = int(v.start_option[s])
    workers, gpus = int(v.problem.options.workers[option]), int(v.problem.options.gpus[option])
    spread = int(v.problem.options.bundles[option]) > 1
    nodes = _nodes(v, s)
    near = _near(v.problem, nodes, spread=spread)
    edges = [(*edge.ranks, edge.weight) for edge in communication.edges if max(edge.ranks) < workers]
    traffic = sum(weight for _, _, weight in edges) * gpus * gpus
    inside = communication.weight * workers * (gpus * (gpus - 1) // 2)
    prices.add(v.start[s : s + 1], np.array([near * (traffic + inside)], dtype=np.int64))
    rank_column = _add_seats(builder, v, s, nodes, workers, gpus)
    for at in nodes:
        most = np.minimum(v.grant_most[at.grants], gpus)
        further = at.within - near
        np.fill_diagonal(further, np.where(v.cell_size[v.grant_cell[at.grants]] == 1, 0, further.diagonal()))
        for i, j in combinations_with_replacement(range(len(at.grants)), 2):
            for a, b, weight in edges if further[i, j] else ():
                for one, other in {(a, b), (b, a)} if i != j else {(a, b)}:
                    x, y = rank_column[one, at.grants[i]], rank_column[other, at.grants[j]]
                    prices.add_product(x, int(most[i]), y, int(most[j]), int(further[i, j]) * weight)
            if communication.weight and gpus > 1 and further[i, j]:
                price = int(further[i, j]) * communication.weight
                for rank in range(workers):
                    x, y = rank_column[rank, at.grants[i]], rank_column[rank, at.grants[j]]
                    if i == j:
                        k = np.arange(int(most[i]) + 1)
                        prices.add_count(np.array([x]), k * (k - 1) // 2 * price)
                    else:
                        prices.add_product(x, int(most[i]), y, int(most[j]), price)
    if spread:
        _price_ways(builder, prices, v, nodes, rank_column, workers, gpus, edges, near)


def _nodes(v: Variables, s: int) -> list[_Node]:
    topology = v.problem.topology
    out = []
    mine = np.flatnonzero(v.grant_start == s)
    for b in np.unique(v.grant_bundle[mine]).tolist():
        node = int(v.bundle_node[b])
        grants = mine[v.grant_bundle[mine] == b]
        machine = int(topology.node_machine[node])
        index = [[gpu - int(v.problem.node_gpu_start[node]) for gpu in v.cell_gpus[c]] for c in v.grant_cell[grants]]
        first, last = np.array([i[0] for i in index]), np.array([i[-1] for i in index])
        within = topology.distance[machine][np.ix_(first, last)].copy()
        within = np.where(np.eye(len(first), dtype=bool), within.diagonal(), within)
        out.append(_Node(node, int(v.bundle[b]), grants, within, topology.root[machine][first]))
    return out


def _near(problem: Problem, nodes: list[_Node], *, spread: bool) -> int:
    """Return an even distance: no two GPUs of two workers are closer, as far as can be told; nor are two nodes."""
    least = []
    for at in nodes:
        apart = ~np.eye(len(at.within), dtype=bool) | (at.within > 0)
        least.append(int(at.within[apart].min(initial=1 << 40)))
        if spread:
            least.append(2 * int(at.root.min() + problem.topology.node_uplink[at.node]))
    return min(least, default=0) // 2 * 2 if min(least, default=0) < 1 << 40 else 0


def _add_seats(
    builder: ModelBuilder, v: Variables, s: int, nodes: list[_Node], workers: int, gpus: int
) -> dict[tuple[int, int], int]:
    """Add a column for every rank and grant: how many GPUs of it the worker holds. Keys: (rank, position)."""
    grants = np.concatenate([at.grants for at in nodes])
    rank, position = np.repeat(np.arange(workers), len(grants)), np.tile(grants, workers)
    columns = builder.add_variables(0, np.minimum(v.grant_most[position], gpus))
    v.rank_columns[s] = RankVariables(columns, rank, position)
    rank_column = {(r, q): c for r, q, c in zip(rank.tolist(), position.tolist(), columns.tolist(), strict=True)}
    rows = Rows(builder)
    for q in grants.tolist():
        rows.add([*(rank_column[r, q] for r in range(workers)), int(v.grant[q])], [*[1] * workers, -1], 0, 0)
    single = int(v.problem.options.bundles[v.start_option[s]]) == 1
    for r in range(workers):
        for at in nodes if single else ():
            rows.add(
                [*(rank_column[r, q] for q in at.grants.tolist()), at.bundle], [*[1] * len(at.grants), -gpus], 0, 0
            )
        if not single:
            rows.add(
                [*(rank_column[r, q] for q in grants.tolist()), int(v.start[s])], [*[1] * len(grants), -gpus], 0, 0
            )
    rows.hand_over()
    return rank_column


def _price_ways(
    builder: ModelBuilder,
    prices: CostPrices,
    v: Variables,
    nodes: list[_Node],
    rank_column: dict[tuple[int, int], int],
    workers: int,
    gpus: int,
    edges: list[tuple[int, int, int]],
    near: int,
) -> None:
    """State the ways between nodes: a column says where a worker is, one more where just one of two is below."""
    topology = v.problem.topology
    here = builder.add_variables(0, 1, count=workers * len(nodes)).reshape(workers, len(nodes))
    rows = Rows(builder)
    for r in range(workers):
        for n, at in enumerate(nodes):
            mine = [rank_column[r, q] for q in at.grants.tolist()]
            rows.add([*mine, int(here[r, n])], [*[1] * len(mine), -gpus], 0, 0)
            builder.define(here[r, n : n + 1], partial(_holds_any, mine))
    below: list[tuple[int, list[int]]] = [
        (int(at.root.min() + topology.node_uplink[at.node]) - near // 2, [n]) for n, at in enumerate(nodes)
    ]
    domains: dict[int, list[int]] = {}
    for n, at in enumerate(nodes):
        for domain in topology.node_ancestors(at.node):
            domains.setdefault(domain, []).append(n)
    below += [(int(topology.domain_uplink[domain]), inside) for domain, inside in domains.items()]
    ways = [(a, b, price * weight * gpus * gpus, inside) for price, inside in below for a, b, weight in edges if price]
    crossing = builder.add_variables(0, 1, count=len(ways))
    for (a, b, _, inside), column in zip(ways, crossing.tolist(), strict=True):
        one, other = here[a, inside].tolist(), here[b, inside].tolist()
        for plus, minus in ((one, other), (other, one)):
            rows.add([*plus, *minus, column], [*[-1] * len(plus), *[1] * len(minus), 1], 0, NO_UPPER)
    rows.hand_over()
    ones, others = [here[a, inside] for a, _, _, inside in ways], [here[b, inside] for _, b, _, inside in ways]
    builder.define(
        crossing, lambda x: np.array([x[i].sum() != x[j].sum() for i, j in zip(ones, others, strict=True)], dtype=bool)
    )
    prices.add(crossing, np.array([price for _, _, price, _ in ways], dtype=np.int64))
    for n, at in enumerate(nodes):  # GPUs that lie further from the network than the closest of their machine
        for extra, q in zip((at.root - at.root.min()).tolist(), at.grants.tolist(), strict=True):
            for a, b, weight in edges if extra else ():
                for one, other in ((a, b), (b, a)):
                    price, most = extra * weight * gpus, min(int(v.grant_most[q]), gpus)
                    prices.add(np.array([rank_column[one, q]]), np.array([price]))
                    prices.add_product(rank_column[one, q], most, int(here[other, n]), 1, -price)


def _holds_any(columns: list[int], values: IntArray) -> bool:
    return bool(values[columns].sum() > 0)


def price_remaining(
    builder: ModelBuilder, prices: CostPrices, v: Variables, s: int, communication: Communication
) -> None:
    """
    State the traffic of a running job that shrinks: its workers close ranks, in their order, on their GPUs.

    A column for every new rank and former worker; the rows leave no choice once the remaining workers are fixed.
    """
    job, option = v.unit_jobs[v.start_unit[s]][0], int(v.start_option[s])
    workers, gpus = int(v.problem.options.workers[option]), int(v.problem.options.gpus[option])
    held = np.array(v.problem.running[job].gpus, dtype=np.int64)
    former = len(held) // gpus
    grant_of = {int(v.grant_cell[q]): int(v.grant[q]) for q in np.flatnonzero(v.grant_start == s)}
    stays = np.array([grant_of[int(v.gpu_to_cell[gpu])] for gpu in held[::gpus]], dtype=np.int64)
    distance = v.problem.topology.pair_distances(held).reshape(former, gpus, former, gpus).sum(axis=(1, 3))
    prices.add(stays, communication.weight * distance.diagonal() // 2)
    rank_column = builder.add_variables(0, 1, count=workers * former).reshape(workers, former)

    def close_ranks(x: IntArray) -> IntArray:
        out = np.zeros((workers, former), dtype=np.int64)
        who = np.flatnonzero(x[stays])[:workers]
        out[np.arange(len(who)), who] = x[v.start[s]]
        return out.reshape(-1)

    builder.define(rank_column.reshape(-1), close_ranks)
    rows, start = Rows(builder), int(v.start[s])
    for i in range(former):
        rows.add([*rank_column[:, i].tolist(), int(stays[i])], [*[1] * workers, -1], 0, 0)
    for r in range(workers):
        rows.add([*rank_column[r].tolist(), start], [*[1] * former, -1], 0, 0)
        if r:
            columns = [*rank_column[r].tolist(), *rank_column[r - 1].tolist(), start]
            rows.add(columns, [*range(former), *(-i for i in range(former)), -1], 0, NO_UPPER)
    rows.hand_over()
    for edge in communication.edges:
        a, b = sorted(edge.ranks)
        for i in range(former) if b < workers else ():
            for j in range(i + 1, former):
                prices.add_product(
                    int(rank_column[a, i]), 1, int(rank_column[b, j]), 1, int(distance[i, j]) * edge.weight
                )
