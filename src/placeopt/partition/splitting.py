"""
How a round is split: nodes that must stay together, parts of like worth made of them, and waiting jobs over the parts.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import networkx as nx
import numpy as np

from placeopt.arguments import checked
from placeopt.errors import BadInput
from placeopt.heuristics.scores.prices import prices_of_types
from placeopt.model import Instance
from placeopt.model.policy import Changes
from placeopt.problem import IntArray, Problem, State, compile_problem, in_amounts

Group = tuple[int, ...]
"""Nodes by number."""

LEAST_WORTH = 1e-9
"""Of a node without GPUs, so that such nodes are dealt evenly, too."""


def groups_of(instance: Instance, *, by_domain: bool) -> list[Group]:
    """Return the finest groups of nodes that no running job crosses; ``by_domain`` keeps racks whole as well."""
    # A rack is the domain that a node lies in directly, of whatever level it is.
    numbers = {node.id: n for n, node in enumerate(instance.cluster.nodes)}
    ties: Any = nx.utils.UnionFind()  # of nodes that are tied to others
    for running in instance.running:
        if len(running.assignments) > 1:
            ties.union(*(numbers[assignment.node] for assignment in running.assignments))
    if by_domain:
        first: dict[str, int] = {}
        for n, node in enumerate(instance.cluster.nodes):
            if node.domain is not None:
                ties.union(first.setdefault(node.domain, n), n)
    tied = [tuple(sorted(group)) for group in ties.to_sets()]
    alone = set(numbers.values()).difference(*tied)
    return sorted([*tied, *((n,) for n in alone)])


def deal(groups: Iterable[Group], weight: np.ndarray, parts: int) -> list[list[int]]:
    """
    Deal groups one by one to the part that weighs least so far; return the nodes of every part, ascending.

    Large groups should come first. ``weight``, (N,), is of each node; parts that would stay empty are left out.
    """
    heap: list[tuple[float, int]] = [(0.0, p) for p in range(parts)]
    dealt: list[list[int]] = [[] for _ in range(parts)]
    for group in groups:
        load, p = heapq.heappop(heap)
        dealt[p].extend(group)
        heapq.heappush(heap, (load + float(weight[list(group)].sum()), p))
    return [sorted(nodes) for nodes in dealt if nodes]


Way = Literal["random", "rack", "price"]
WAYS: tuple[Way, ...] = get_args(Way)


@dataclass(frozen=True, eq=False)
class Part:
    """What lies in one part, by numbers of the whole: nodes and jobs, ascending; running jobs are where they are."""

    nodes: IntArray
    jobs: IntArray


@checked
def split(instance: Instance, parts: int, by: Way = "random", seed: int = 0) -> list[Instance]:
    """
    Split a round, policy included, into rounds over disjoint parts of its nodes; every job goes to one of them.

    There are at most ``parts``, fewer where running jobs, or racks, tie nodes together. ``by`` is ``random``: nodes are
    drawn, by ``seed``, alike ones evenly over the parts; ``rack``: racks stay whole; or ``price``: parts have like
    priced capacity, the price of a type of GPU being its load if demand spread evenly over all GPUs that it may take
    (``heuristics.prices``).

    Running jobs are in the part of their nodes, and stay as they are: no part may change them. Of a class of waiting
    jobs every part gets a number in proportion to what is free there on nodes that these jobs may run on; jobs that may
    run nowhere go to the first part. Quotas and shares of queues, and uplinks, that several parts share are whole in
    each: the joined plan may break them, and is repaired by the caller.

    Raises ``BadInput`` if ``parts`` is below 1 or ``by`` is none of ``WAYS``.
    """
    check_split(parts, by)
    problem = compile_problem(instance)
    return [part_instance(problem, part, number) for number, part in enumerate(deal_parts(problem, parts, by, seed))]


def check_split(parts: int, by: str) -> None:
    """Raise ``BadInput`` if a round cannot be split in that number of parts, or in that way."""
    if parts < 1:
        raise BadInput(f"parts: {parts}; expected 1 or more")
    if by not in WAYS:
        raise BadInput(f"by: {by!r}; expected one of {', '.join(WAYS)}")


def deal_parts(problem: Problem, parts: int, by: Way, seed: int) -> list[Part]:
    """Return the parts of a compiled round; see ``split``."""
    rng = np.random.default_rng(seed)
    price = np.ones(len(problem.type_model))
    if by == "price":
        price = np.maximum(prices_of_types(problem, problem.jobs_per_class), LEAST_WORTH)
    state = State(problem)
    free = _free_worth(state, price)
    listed = len(problem.given.cluster.nodes)
    groups = _with_listed(groups_of(problem.instance, by_domain=by == "rack"), listed)
    dealt = deal(_in_order(groups, state, free, by, rng), free, parts)
    of_node = np.zeros(problem.num_nodes, dtype=np.int64)
    for number, nodes in enumerate(dealt):
        of_node[nodes] = number
    of_job = _deal_jobs(problem, of_node, len(dealt), free, price, rng)
    return [
        Part(np.array(nodes, dtype=np.int64), np.flatnonzero(of_job == number)) for number, nodes in enumerate(dealt)
    ]


def _with_listed(groups: list[Group], listed: int) -> list[Group]:
    """Put nodes that jobs run on but the cluster does not list, from number ``listed`` on, beside one that it does."""
    lone = [node for group in groups if group[0] >= listed for node in group]
    return [(*groups[0], *lone), *(group for group in groups[1:] if group[0] < listed)]


def _free_worth(state: State, price: np.ndarray) -> np.ndarray:
    """Shape (N,): free GPU share of every node, by the price of its type."""
    problem = state.problem
    free = state.gpu_free_milli * price[problem.gpu_type]
    worth: np.ndarray = np.bincount(problem.gpu_node, weights=free, minlength=problem.num_nodes) + LEAST_WORTH
    return worth


def _in_order(
    groups: list[Group], state: State, free: np.ndarray, by: Way, rng: np.random.Generator
) -> Iterable[Group]:
    """Return the groups as they are dealt: large ones first, then the dearest, or alike ones one after the other."""
    first = np.array([group[0] for group in groups], dtype=np.int64)
    size = np.array([len(group) for group in groups], dtype=np.int64)
    drawn = rng.permutation(len(groups))
    if by == "price":
        number = np.repeat(np.arange(len(groups)), size)
        worth = np.bincount(number, weights=free[np.concatenate(groups)], minlength=len(groups))
        order = np.lexsort((drawn, -worth, -size))
    else:
        order = np.lexsort((drawn, *state.node_free[first].T, free[first], state.problem.node_class[first], -size))
    return (groups[g] for g in order.tolist())


def _deal_jobs(
    problem: Problem, of_node: IntArray, parts: int, free: np.ndarray, price: np.ndarray, rng: np.random.Generator
) -> IntArray:
    """
    Shape (J,): the part of every job; running ones where they are.

    Of each class of waiting jobs a part gets its share of what is free on nodes that the class may run on, rounded
    down. The rest goes to the parts with the greatest share of their room left, one job each. Classes whose jobs ask
    for most come first.
    """
    of_job = np.zeros(problem.num_jobs, dtype=np.int64)
    waiting = np.ones(problem.num_jobs, dtype=bool)
    for job, placement in problem.running.items():
        of_job[job], waiting[job] = of_node[placement.nodes[0]], False
    room, asked = _room_of_classes(problem, of_node, parts, free), _asked_worth(problem, price)
    jobs = rng.permutation(np.flatnonzero(waiting))
    jobs = jobs[np.argsort(problem.job_class[jobs], kind="stable")]
    start = np.searchsorted(problem.job_class[jobs], np.arange(problem.num_classes + 1))
    whole = np.bincount(of_node, weights=free, minlength=parts)
    left = whole.copy()
    for k in np.argsort(-asked, kind="stable").tolist():
        mine, total = jobs[start[k] : start[k + 1]], room[k].sum()
        if not len(mine) or not total:
            continue
        number = np.floor(len(mine) * (room[k] / total)).astype(np.int64)
        left -= number * asked[k]
        open_ = room[k] > 0
        for _ in range(len(mine) - int(number.sum())):
            part = int(np.where(open_, left / whole, -np.inf).argmax())
            number[part] += 1
            left[part] -= asked[k]
            open_[part] = False
        of_job[mine] = np.repeat(np.arange(parts), number)
    return of_job


def _asked_worth(problem: Problem, price: np.ndarray) -> np.ndarray:
    """Shape (K,): GPU share that a job asks for in its first option, by the mean price of the types it may take."""
    options, (classes, first) = problem.options, problem.first_options
    types = options.gpu_type_ok[first]
    worth = np.zeros(problem.num_classes)
    worth[classes] = options.total_milli[first] * ((types @ price) / np.maximum(types.sum(axis=1), 1))
    return worth


def _room_of_classes(problem: Problem, of_node: IntArray, parts: int, free: np.ndarray) -> np.ndarray:
    """Shape (K, parts): what is free in a part on nodes that a class of jobs may run on in one of its options."""
    options, kinds = problem.options, int(problem.node_class.max(initial=0)) + 1
    may = np.zeros((problem.num_classes, kinds), dtype=bool)
    np.logical_or.at(may, options.job_class, options.node_class_ok)
    cells = np.bincount(problem.node_class * parts + of_node, weights=free, minlength=kinds * parts)
    room: np.ndarray = may @ cells.reshape(kinds, parts)
    return room


def part_instance(problem: Problem, part: Part, number: int) -> Instance:
    """Return the round of one part."""
    instance = problem.given
    listed = instance.cluster.nodes
    inside = tuple(listed[n] for n in part.nodes.tolist() if n < len(listed))
    jobs = tuple(instance.jobs[job] for job in part.jobs.tolist())
    records = problem.running_records
    running = tuple(records[job] for job in part.jobs.tolist() if job in problem.running)
    queues = in_amounts(problem.policy.queues, instance.cluster)
    return instance.model_copy(
        update={
            "name": f"{instance.name}-part-{number}",
            "cluster": instance.cluster.model_copy(update={"nodes": inside}),
            "jobs": jobs,
            "running": running,
            "policy": problem.policy.model_copy(update={"changes": Changes(), "queues": queues}),
        }
    )
