"""
How a round is split: nodes that must stay together, parts of like room made of them, and waiting jobs over the parts.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any, Literal, get_args

import networkx as nx
import numpy as np

from placeopt.arguments import checked
from placeopt.errors import BadInput
from placeopt.model import Instance
from placeopt.model.policy import Changes
from placeopt.problem import IntArray, Problem, State, compile_problem, in_amounts

Group = tuple[int, ...]
"""Nodes by number."""

LEAST_ROOM = 2.0**-30
"""GPU-milli of a node without free GPUs, so that such nodes are dealt evenly, too."""

Way = Literal["random", "rack"]
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

    There are at most ``parts``, fewer where running jobs, or racks, tie nodes together. Nodes are drawn, by ``seed``,
    alike ones evenly over the parts; with ``by`` ``rack`` racks are, which stay whole.

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
    state = State(problem)
    free = np.bincount(problem.gpu_node, weights=state.gpu_free_milli, minlength=problem.num_nodes) + LEAST_ROOM
    of_node = _deal_nodes(groups_of(problem.instance, by_domain=by == "rack"), state, free, parts, rng)
    of_job = _deal_jobs(problem, of_node, free, rng)
    return [Part(np.flatnonzero(of_node == p), np.flatnonzero(of_job == p)) for p in range(int(of_node.max()) + 1)]


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


def _deal_nodes(groups: list[Group], state: State, free: np.ndarray, parts: int, rng: np.random.Generator) -> IntArray:
    """
    Shape (N,): the part of every node; parts that would stay empty are left out.

    Groups go one by one, large ones first and alike ones one after the other, to the part with least room so far. Nodes
    that jobs run on but the cluster does not list, which have the last numbers, go to the first part.
    """
    listed = len(state.problem.given.cluster.nodes)
    groups = [group for group in groups if group[0] < listed]
    first = np.array([group[0] for group in groups], dtype=np.int64)
    size = np.array([len(group) for group in groups], dtype=np.int64)
    alike = (*state.node_free[first].T, free[first], state.problem.node_class[first], -size)
    of_node = np.zeros(state.problem.num_nodes, dtype=np.int64)
    loads: list[tuple[float, int]] = [(0.0, p) for p in range(min(parts, len(groups)))]
    for g in np.lexsort((rng.permutation(len(groups)), *alike)).tolist():
        nodes = list(groups[g])
        load, of_node[nodes] = loads[0]
        heapq.heapreplace(loads, (load + float(free[nodes].sum()), int(of_node[nodes[0]])))
    return of_node


def _deal_jobs(problem: Problem, of_node: IntArray, free: np.ndarray, rng: np.random.Generator) -> IntArray:
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
    jobs = rng.permutation(np.flatnonzero(waiting))
    jobs = jobs[np.argsort(problem.job_class[jobs], kind="stable")]
    start = np.searchsorted(problem.job_class[jobs], np.arange(problem.num_classes + 1))
    room, asked = _room_of_classes(problem, of_node, free), np.zeros(problem.num_classes)
    classes, options = problem.first_options
    asked[classes] = problem.options.total_milli[options]
    whole = np.bincount(of_node, weights=free)
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
        of_job[mine] = np.repeat(np.arange(len(whole)), number)
    return of_job


def _room_of_classes(problem: Problem, of_node: IntArray, free: np.ndarray) -> np.ndarray:
    """Shape (K, parts): what is free in a part on nodes that a class of jobs may run on in one of its options."""
    options, shape = problem.options, (int(problem.node_class.max()) + 1, int(of_node.max()) + 1)
    may = np.zeros((problem.num_classes, shape[0]), dtype=bool)
    np.logical_or.at(may, options.job_class, options.node_class_ok)
    cells = np.bincount(problem.node_class * shape[1] + of_node, weights=free, minlength=shape[0] * shape[1])
    room: np.ndarray = may @ cells.reshape(shape)
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
