"""
How a round is split: nodes that must stay together, parts of like worth made of them, and waiting jobs over the parts.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Literal, get_args

import networkx as nx
import numpy as np

from placeopt.arguments import checked
from placeopt.errors import BadInput
from placeopt.heuristics.scores.prices import prices_of_types
from placeopt.model import Instance, Policy
from placeopt.model.policy import Changes
from placeopt.problem import IntArray, Problem, State, compile_problem
from placeopt.terms.queue_ceilings import in_amounts

Group = tuple[int, ...]
"""Nodes by number."""

LEAST_WORTH = 1e-9
"""Of a node without GPUs, so that such nodes are dealt evenly, too."""


def groups_of(instance: Instance, *, by_domain: bool) -> list[Group]:
    """Return the finest groups of nodes that no running job crosses; ``by_domain`` keeps racks whole as well."""
    # A rack is the domain that a node lies in directly, of whatever level it is.
    numbers = {node.id: n for n, node in enumerate(instance.cluster.nodes)}
    ties = nx.utils.UnionFind(range(len(numbers)))
    for running in instance.running:
        ties.union(*(numbers[assignment.node] for assignment in running.assignments))
    if by_domain:
        first: dict[str, int] = {}
        for n, node in enumerate(instance.cluster.nodes):
            if node.domain is not None:
                ties.union(first.setdefault(node.domain, n), n)
    return sorted(tuple(sorted(group)) for group in ties.to_sets())


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


@checked
def split(instance: Instance, parts: int, by: Way = "random", seed: int = 0) -> list[Instance]:
    """
    Split a round, policy included, into rounds over disjoint parts of its nodes; every job goes to one of them.

    There are at most ``parts``, fewer where running jobs, or racks, tie nodes together. ``by`` is ``random``: nodes and
    jobs are drawn, by ``seed``; ``rack``: racks stay whole; or ``price``: parts have like priced capacity and jobs of
    like priced demand, the price of a type of GPU being its load if demand spread evenly over all GPUs that it may take
    (``heuristics.prices``).

    Running jobs are in the part of their nodes, and stay as they are: no part may change them. A waiting job goes where
    most of its demand is free beside what was dealt before, among the parts that have a node it may run on; a job that
    may run nowhere, to the first part. Quotas and shares of queues, and uplinks, that several parts share are whole in
    each: the joined plan may break them, and is repaired by the caller.

    Raises ``BadInput`` if ``parts`` is below 1 or ``by`` is none of ``WAYS``.
    """
    if parts < 1:
        raise BadInput(f"parts: {parts}; expected 1 or more")
    if by not in WAYS:
        raise BadInput(f"by: {by!r}; expected one of {', '.join(WAYS)}")
    problem = compile_problem(instance)
    rng = np.random.default_rng(seed)
    price = np.ones(len(problem.type_model))
    if by == "price":
        price = np.maximum(prices_of_types(problem, problem.jobs_per_class), LEAST_WORTH)
    free = _free_worth(problem, price)
    groups = _with_listed(groups_of(problem.instance, by_domain=by == "rack"), len(instance.cluster.nodes))
    dealt = deal(_in_order(groups, free, by, rng), free, parts)
    of_job = _deal_jobs(problem, dealt, free, price, by, rng)
    queues = in_amounts(instance.policy.queues, instance.cluster)
    policy = instance.policy.model_copy(update={"changes": Changes(), "queues": queues})
    return [_part(instance, policy, number, nodes, of_job == number) for number, nodes in enumerate(dealt)]


def _with_listed(groups: list[Group], listed: int) -> list[Group]:
    """Put nodes that jobs run on but the cluster does not list, from number ``listed`` on, beside one that it does."""
    lone = [node for group in groups if group[0] >= listed for node in group]
    return [(*groups[0], *lone), *(group for group in groups[1:] if group[0] < listed)]


def _free_worth(problem: Problem, price: np.ndarray) -> np.ndarray:
    """Shape (N,): free GPU share of every node, by the price of its type."""
    free = State(problem).gpu_free_milli * price[problem.gpu_type]
    worth: np.ndarray = np.bincount(problem.gpu_node, weights=free, minlength=problem.num_nodes) + LEAST_WORTH
    return worth


def _in_order(groups: list[Group], free: np.ndarray, by: Way, rng: np.random.Generator) -> list[Group]:
    """Return the groups in the order in which they are dealt: large ones first, then as drawn, or the dearest."""
    drawn = rng.permutation(len(groups))
    worth = [float(free[list(group)].sum()) if by == "price" else 0.0 for group in groups]
    return [groups[g] for g in sorted(drawn.tolist(), key=lambda g: (-len(groups[g]), -worth[g]))]


def _deal_jobs(
    problem: Problem, dealt: list[list[int]], free: np.ndarray, price: np.ndarray, by: Way, rng: np.random.Generator
) -> IntArray:
    """Shape (J,): the part of every job; running ones where they are."""
    of_node = np.zeros(problem.num_nodes, dtype=np.int64)
    for number, nodes in enumerate(dealt):
        of_node[nodes] = number
    room = np.bincount(of_node, weights=free, minlength=len(dealt))
    left, able = room.copy(), _able_parts(problem, of_node, len(dealt))
    asked = _asked_worth(problem, price)
    order = rng.permutation(problem.num_jobs)
    if by == "price":
        order = order[np.argsort(-asked[order], kind="stable")]
    of_job = np.zeros(problem.num_jobs, dtype=np.int64)
    placements = State(problem).placements
    for job in order.tolist():
        placement, may = placements[job], able[problem.job_class[job]]
        if placement is not None:
            of_job[job] = of_node[placement.nodes[0]]
        elif may.any():
            of_job[job] = int(np.where(may, left / room, -np.inf).argmax())
            left[of_job[job]] -= asked[job]
    return of_job


def _asked_worth(problem: Problem, price: np.ndarray) -> np.ndarray:
    """Shape (J,): GPU share that a job asks for in its first option, by the mean price of the types it may take."""
    options, (classes, first) = problem.options, problem.first_options
    types = options.gpu_type_ok[first]
    worth = np.zeros(problem.num_classes)
    worth[classes] = options.total_milli[first] * ((types @ price) / np.maximum(types.sum(axis=1), 1))
    return worth[problem.job_class]


def _able_parts(problem: Problem, of_node: IntArray, parts: int) -> np.ndarray:
    """Shape (K, parts): whether a part has a node that a class of jobs may run on in one of its options."""
    able = np.zeros((len(problem.class_option_start) - 1, parts), dtype=bool)
    for k, (first, last) in enumerate(zip(problem.class_option_start, problem.class_option_start[1:], strict=False)):
        for option in range(int(first), int(last)):
            able[k, of_node[problem.node_ok(option)]] = True
    return able


def _part(instance: Instance, policy: Policy, number: int, nodes: list[int], mine: np.ndarray) -> Instance:
    """Return the round of one part; a job's list of allowed nodes is cut to those that are in it."""
    inside = tuple(instance.cluster.nodes[n] for n in nodes if n < len(instance.cluster.nodes))
    names = {node.id for node in inside}
    jobs = tuple(
        job
        if job.nodes_allowed is None
        else job.model_copy(update={"nodes_allowed": tuple(name for name in job.nodes_allowed if name in names)})
        for job, here in zip(instance.jobs, mine.tolist(), strict=True)
        if here
    )
    known = {job.id for job in jobs}
    return instance.model_copy(
        update={
            "name": f"{instance.name}-part-{number}",
            "cluster": instance.cluster.model_copy(update={"nodes": inside}),
            "jobs": jobs,
            "running": tuple(running for running in instance.running if running.job in known),
            "policy": policy,
        }
    )
