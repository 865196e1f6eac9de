"""The linear forms of fragmentation ``fgd``: what is left of GPUs, which workers may take it, which nodes host them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from placeopt.linear import NO_LOWER, NO_UPPER, Entries, ModelBuilder
from placeopt.problem import RESOURCES, BoolArray, IntArray
from placeopt.terms.protocols import Expression
from placeopt.terms.variables import Variables

CPU = RESOURCES.index("cpu_millicores")


class Stocks:
    """
    GPUs of which something is left: one entry a cell, and one a GPU that is in none.

    Jobs hold the GPUs of a *whole* entry one each and all of it, so their number says everything. Any other entry is
    a single GPU.
    """

    def __init__(self, v: Variables, left: IntArray) -> None:
        problem = v.problem
        apart = np.flatnonzero(v.gpu_to_cell < 0).tolist()
        gpus = [np.array(members, dtype=np.int64) for members in (*v.cell_gpus, *([gpu] for gpu in apart))]
        first = np.array([members[0] for members in gpus], dtype=np.int64)
        self.free: IntArray = np.array([left[members].sum() for members in gpus], dtype=np.int64)
        self.unclipped: IntArray = self.free  # below 0 where jobs that stay hold more than all of a GPU
        self.node: IntArray = problem.gpu_node[first]
        self.type: IntArray = problem.gpu_type[first]
        single = problem.jobs_per_gpu == 1
        self.whole: BoolArray = np.concatenate([~v.cell_met, np.zeros(len(apart), dtype=bool)]) | single
        self.share: IntArray = np.full(len(v.grant), 1000, dtype=np.int64) if single else v.grant_milli
        """What a grant takes of a GPU."""
        self.over = not problem.shares_bind and not single
        """Whether jobs may hold more than all of a GPU together."""
        if self.over:
            self.unclipped = np.array([v.state.gpu_free_milli[members].sum() for members in gpus], dtype=np.int64)


@dataclass
class _WorkerGroups:
    """
    Typical workers that are alike on a node, K kinds, and what they may take there.

    That is a whole stock, or a *take*: what is left of a single GPU if that is at least ``milli``, else nothing.
    """

    take_stock: list[int] = field(default_factory=list)
    take_milli: list[int] = field(default_factory=list)
    node: list[int] = field(default_factory=list)
    gpus: list[int] = field(default_factory=list)
    cpu: list[int] = field(default_factory=list)  # 0 where the node always has enough
    parts: list[int] = field(default_factory=list)
    member_kind: list[int] = field(default_factory=list)
    member_stock: list[int] = field(default_factory=list)
    member_take: list[int] = field(default_factory=list)  # -1: the whole stock


def bound(v: Variables, left: IntArray) -> Expression:
    """
    Return the sum over GPUs of what is left x the frequency of the workers that can never take it there.

    Neither the GPU nor the node suits these workers now, and more jobs do not change that.
    """
    stocks = Stocks(v, left)
    useless = v.problem.target.total - v.problem.target.parts @ _able(v, stocks).astype(np.int64)  # (stocks,)
    return v.grant, -useless[v.grant_cell] * stocks.share, int((useless * stocks.unclipped).sum())


def exact(builder: ModelBuilder, v: Variables, left: IntArray) -> Expression:
    """All that is left, less what typical workers can take of it x their frequency."""
    stocks = Stocks(v, left)
    rest = _add_rest(builder, v, stocks)
    kinds = _kinds(builder, v, stocks)
    enough, taken = _add_takes(builder, kinds, rest, stocks)
    columns, coefficients = _add_hosts(builder, v, kinds, stocks, rest, enough, taken)
    return (
        np.append(rest, columns),
        np.append(np.full(len(rest), v.problem.target.total, dtype=np.int64), coefficients),
        0,
    )


def _able(v: Variables, stocks: Stocks) -> BoolArray:
    """Shape (M, stocks): whether the typical worker could use the stock now."""
    target, nodes = v.problem.target, v.problem.num_nodes
    useful = np.where(stocks.whole, stocks.free > 0, stocks.free >= target.milli[:, None])
    useful &= target.type_ok[:, stocks.type]
    number = useful * np.where(stocks.whole, stocks.free // 1000, 1)
    counts = [np.bincount(stocks.node, of_one, nodes) for of_one in number]
    per_node = np.array(counts, dtype=np.int64).reshape(len(target), nodes)
    hosts = (per_node >= target.gpus[:, None]) & (np.maximum(v.state.node_free[:, CPU], 0) >= target.cpu[:, None])
    hosts &= target.gpus[:, None] > 0
    able: BoolArray = useful & hosts[:, stocks.node]
    return able


def _add_rest(builder: ModelBuilder, v: Variables, stocks: Stocks) -> IntArray:
    """Add a column for what is left of every stock."""
    cells, size, free = v.grant_cell, len(stocks.free), stocks.unclipped
    each = np.arange(size)
    most = np.bincount(cells, stocks.share * v.grant_most, size).astype(np.int64)
    fixed = most == 0
    rest = builder.add_variables(np.where(fixed, stocks.free, 0), stocks.free)
    builder.define(rest, lambda x: np.maximum(free - np.bincount(cells, stocks.share * x[v.grant], size), 0))
    held = (cells, v.grant, stocks.share)
    own = (each, rest, 1)
    if not stocks.over:
        _add(builder, np.where(fixed, NO_LOWER, free), np.where(fixed, NO_UPPER, free), held, own)
        return rest
    # the larger of free - held and 0: a binary says which
    over = builder.add_variables(0, 1, count=size)
    builder.define(over, lambda x: np.bincount(cells, stocks.share * x[v.grant], size) > free)
    _add(builder, np.where(fixed, NO_LOWER, free), NO_UPPER, held, own)
    _add(builder, NO_LOWER, np.where(fixed, NO_UPPER, free), held, own, (each, over, -np.maximum(most - free, 0)))
    _add(builder, NO_LOWER, np.where(fixed, NO_UPPER, 1000), own, (each, over, 1000))
    return rest


def _kinds(builder: ModelBuilder, v: Variables, stocks: Stocks) -> _WorkerGroups:
    """Fold the typical workers node by node: those that need the same there are one kind."""
    target, able, kinds = v.problem.target, _able(v, stocks), _WorkerGroups()
    cores = v.bundle_most * v.problem.options.demand[v.bundle_option, CPU]
    cores = cores * v.problem.options.bundle_workers[v.bundle_option]
    left = v.state.node_free[:, CPU] - np.bincount(v.bundle_node, cores, v.problem.num_nodes).astype(np.int64)
    takes: dict[tuple[int, int], int] = {}
    order = np.argsort(stocks.node, kind="stable")
    starts = np.searchsorted(stocks.node[order], np.arange(v.problem.num_nodes + 1))
    for n in np.unique(stocks.node).tolist():
        builder.check_time()
        here = order[starts[n] : starts[n + 1]]
        known: dict[tuple[object, ...], int] = {}
        for m in np.flatnonzero(able[:, here].any(axis=1)).tolist():
            mine = here[able[m, here]]
            cpu = int(target.cpu[m]) if left[n] < target.cpu[m] else 0
            milli = 0 if stocks.whole[mine].all() else int(target.milli[m])
            key = (int(target.gpus[m]), milli, cpu, tuple(mine.tolist()))
            if key in known:
                kinds.parts[known[key]] += int(target.parts[m])
                continue
            known[key] = len(kinds.parts)
            kinds.node.append(n)
            kinds.gpus.append(key[0])
            kinds.cpu.append(cpu)
            kinds.parts.append(int(target.parts[m]))
            for stock in mine.tolist():
                take = -1 if stocks.whole[stock] else takes.setdefault((stock, milli), len(takes))
                kinds.member_kind.append(known[key])
                kinds.member_stock.append(stock)
                kinds.member_take.append(take)
    kinds.take_stock, kinds.take_milli = [stock for stock, _ in takes], [milli for _, milli in takes]
    return kinds


def _add_takes(
    builder: ModelBuilder, kinds: _WorkerGroups, rest: IntArray, stocks: Stocks
) -> tuple[IntArray, IntArray]:
    """Add for every take a binary, whether there is enough, and a column: what is left if so, else 0."""
    stock, milli = _ints(kinds.take_stock), _ints(kinds.take_milli)
    each, left, most = np.arange(len(stock)), rest[stock], stocks.free[stock]
    enough = builder.add_variables(0, 1, count=len(stock))
    taken = builder.add_variables(0, most)
    builder.define(enough, lambda x: x[left] >= milli)
    builder.define(taken, lambda x: x[enough] * x[left])
    zero = np.zeros(len(stock), dtype=np.int64)
    _add(builder, NO_LOWER, zero, (each, enough, milli), (each, left, -1))
    _add(builder, NO_LOWER, zero, (each, taken, 1), (each, left, -1))
    _add(builder, NO_LOWER, zero, (each, taken, 1), (each, enough, -most))
    return enough, taken


def _add_hosts(
    builder: ModelBuilder,
    v: Variables,
    kinds: _WorkerGroups,
    stocks: Stocks,
    rest: IntArray,
    enough: IntArray,
    taken: IntArray,
) -> tuple[IntArray, IntArray]:
    """Add for every kind what it can take if its node hosts it, and return columns and (negative) coefficients."""
    gpus, cpu, parts = _ints(kinds.gpus), _ints(kinds.cpu), _ints(kinds.parts)
    kind, stock, take = _ints(kinds.member_kind), _ints(kinds.member_stock), _ints(kinds.member_take)
    single = take >= 0
    offer, number, unit = rest[stock], rest[stock], np.ones(len(kind), dtype=np.int64)
    offer[single], number[single], unit[single] = taken[take[single]], enough[take[single]], 1000
    sure = (gpus == 1) & (cpu == 0)  # these are hosted wherever there is anything for them to take
    direct = (offer[sure[kind]], -parts[kind[sure[kind]]])
    asks = np.flatnonzero(~sure)
    mine = ~sure[kind]
    row = (np.cumsum(~sure) - 1)[kind[mine]]
    offer, number, unit, most = offer[mine], number[mine], unit[mine], stocks.free[stock[mine]]
    need, node, cores, size = 1000 * gpus[asks], _ints(kinds.node)[asks], cpu[asks], len(asks)
    each, zero = np.arange(size), np.zeros(size, dtype=np.int64)
    most_taken = np.bincount(row, most, size).astype(np.int64)
    hosted = builder.add_variables(0, 1, count=size)
    value = builder.add_variables(0, most_taken)
    at, bundle = _pairs(np.where(cores > 0, node, -1), v.bundle_node)
    option = v.bundle_option[bundle]
    use = v.problem.options.demand[option, CPU] * v.problem.options.bundle_workers[option]
    room = v.state.node_free[node, CPU]

    def hosts(x: IntArray) -> BoolArray:
        free = room - np.bincount(at, use * x[v.bundle[bundle]], size)
        out: BoolArray = (np.bincount(row, unit * x[number], size) >= need) & (np.maximum(free, 0) >= cores)
        return out

    builder.define(hosted, hosts)
    builder.define(value, lambda x: x[hosted] * np.bincount(row, x[offer], size).astype(np.int64))
    _add(builder, NO_LOWER, zero, (each, value, 1), (row, offer, -1))
    _add(builder, NO_LOWER, zero, (each, value, 1), (each, hosted, -most_taken))
    _add(builder, NO_LOWER, zero, (each, hosted, need), (row, number, -unit))
    excess = v.excess.node[node, CPU]  # what running jobs that stay may hold beyond the node's
    upper = np.where(cores > 0, room + excess, NO_UPPER)
    _add(builder, NO_LOWER, upper, (each, hosted, cores + excess), (at, v.bundle[bundle], use))
    return np.append(direct[0], value), np.append(direct[1], -parts[asks])


def _pairs(nodes: IntArray, of: IntArray) -> tuple[IntArray, IntArray]:
    """Return all (i, j) with ``nodes[i] == of[j]``."""
    order = np.argsort(of, kind="stable")
    low, high = np.searchsorted(of[order], nodes), np.searchsorted(of[order], nodes, side="right")
    i = np.repeat(np.arange(len(nodes)), high - low)
    within = np.arange(len(i)) - np.repeat(np.cumsum(high - low) - (high - low), high - low)
    return i, order[np.repeat(low, high - low) + within]


def _add(builder: ModelBuilder, lower: IntArray | int, upper: IntArray | int, *parts: Entries) -> None:
    """Add a block of rows given in several parts; those without a bound are left out."""
    low, high = np.broadcast_arrays(lower, upper)
    binds = (low != NO_LOWER) | (high != NO_UPPER)
    position = np.cumsum(binds) - 1
    kept = []
    for part in parts:
        row, columns, coefficients = np.broadcast_arrays(*part)
        mine = binds[row]
        kept.append((position[row[mine]], columns[mine], coefficients[mine]))
    builder.add_parts(low[binds], high[binds], *kept)


def _ints(values: list[int]) -> IntArray:
    return np.array(values, dtype=np.int64)
