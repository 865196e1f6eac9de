"""On which nodes a waiting job could have a worker now, best first, and what keeps it off each of the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placeopt.feasibility.free_capacity import FreeCapacity, free_capacity_of
from placeopt.feasibility.requirement import NAMED, Requirement, requirements_of
from placeopt.live_cluster.incremental_placer import IncrementalPlacer
from placeopt.model import Job
from placeopt.model.machine import NODE_AMOUNTS
from placeopt.problem import BoolArray, IntArray

BARRIER_WORDS = {
    "drained": "the node is drained and takes no new work",
    "taints": "the job does not tolerate the taints of the node",
    "nodes_allowed": "the node is not among those that the job allows",
    "nodes_excluded": "the node is one that the job excludes",
    "node_selector": "the node lacks a label that the job asks for",
    "node_affinity": "the labels of the node do not meet the job's node affinity",
}
RESOURCE_WORDS = {amount.group: amount.words for amount in NODE_AMOUNTS}


OTHER_FLAVOR = "jobs of its queue run on nodes of other flavors"
"""Why a node takes no job, whatever it has."""


class RankedNode(NamedTuple):
    """A node that has room."""

    node: str
    option: str
    """Most valuable option of the job of which the node could take a worker."""
    workers: int
    """Most workers of it that the node could take."""
    score: float | None
    """Score of the method, the less the better; None where a whole bundle of the option does not fit."""


_ranked: Callable[[Iterable[object]], RankedNode] = partial(tuple.__new__, RankedNode)
"""As ``RankedNode._make``, in a fifth of its time."""


@dataclass(frozen=True)
class Ranking:
    """The nodes of a cluster for one job."""

    job: str
    revision: int
    nodes: tuple[RankedNode, ...]
    """Nodes with room for a worker, best first: by value of the option, then by score, then in their order."""
    refused: dict[str, str]
    """Every other node, and the first reason in the order of the checks."""


def rank(
    placer: IncrementalPlacer,
    number: int,
    job: Job,
    score: str,
    revision: int,
    asked: IntArray,
    open_: BoolArray | None,
) -> Ranking:
    """
    Return the ranking of nodes by number; ``number``: class of the job.

    ``open_``: Shape (N,), the nodes of which relations to running jobs, its own or theirs, do not keep the job off;
    None: all.
    """
    problem, free = placer.problem, free_capacity_of(placer.state, job)
    left = np.zeros(problem.num_nodes, dtype=bool)
    left[asked] = True
    kept_off = np.zeros(problem.num_nodes, dtype=bool) if open_ is None else ~open_
    ranked: list[RankedNode] = []
    requirements = requirements_of(problem, job)
    for requirement in requirements:
        room = _room(free, requirement)
        here = np.flatnonzero(left & ~kept_off & (room > 0))
        left[here] = False
        scores = _scores(placer, number, requirement.option, score)[here]
        best = np.argsort(scores, kind="stable")
        fits = int(np.isfinite(scores).sum())  # the others come last
        told = [*scores[best[:fits]].tolist(), *[None] * (len(best) - fits)]
        names = map(problem.node_ids.__getitem__, here[best].tolist())
        rows = zip(names, repeat(requirement.option), room[here[best]].tolist(), told, strict=False)
        ranked += map(_ranked, rows)
    why: dict[int, str] = {}
    refusing = asked[left[asked]]
    for requirement in requirements:
        if requirement.option == requirements[0].option:
            of_flavor = np.full(len(refusing), requirement.flavor < 0)
            of_flavor |= problem.node_flavor[refusing] == requirement.flavor
            why |= _reasons(free, requirement, refusing[of_flavor], kept_off)
    why |= {node: OTHER_FLAVOR for node in refusing.tolist() if node not in why}
    refused = {problem.node_ids[node]: text for node, text in why.items()}
    return Ranking(job=job.id, revision=revision, nodes=tuple(ranked), refused=refused)


def _scores(placer: IncrementalPlacer, number: int, option: str, score: str) -> NDArray[np.float64]:
    """Shape (N,): the score of a bundle of the option, of the largest size that fits on the node; infinite without."""
    options, candidates = placer.problem.options, placer.candidates(score)
    sizes = [o for o in placer.problem.options_of(number) if options.name[o] == option]
    scores = np.full(placer.problem.num_nodes, np.inf)
    for size in sorted(sizes, key=lambda o: -int(options.total_milli[o])):
        scores = np.where(np.isfinite(scores), scores, candidates.scores(size))
    return scores


def _room(free: FreeCapacity, requirement: Requirement) -> IntArray:
    """Shape (N,): workers that each node could take; 0 below all of them where they must share a node."""
    if not requirement.useful or free.queue_takes(requirement) < requirement.fewest:
        return np.zeros(free.problem.num_nodes, dtype=np.int64)
    workers = free.workers(requirement)
    return np.where(workers >= (requirement.fewest if requirement.single_node else 1), workers, 0)


def _reasons(free: FreeCapacity, requirement: Requirement, nodes: IntArray, kept_off: BoolArray) -> dict[int, str]:
    """Return the first reason for each of these nodes, which have no room for the requirement."""
    problem = free.problem
    out: dict[int, str] = {}

    def refuse(closed: BoolArray, words: Callable[[int], str]) -> None:
        for node in nodes[closed[nodes]].tolist():
            if node not in out:
                out[node] = words(node)

    everywhere = np.ones(problem.num_nodes, dtype=bool)
    if not requirement.useful:
        refuse(everywhere, lambda _: "the option's utility is below the minimum of the job")
    if free.queue_takes(requirement) < requirement.fewest:
        refuse(everywhere, lambda _: "the queue of the job has no room for it")
    for barrier in requirement.barriers:
        refuse(~free.open[barrier], _always(BARRIER_WORDS[barrier]))
    refuse(kept_off, _always("relations between the job and running ones keep it off the node"))
    together = requirement.fewest if requirement.single_node else 1
    need = requirement.gpus * together
    if need:
        of_node = problem.gpu_node
        suitable = np.bincount(of_node[free.gpu_suits(requirement)], minlength=problem.num_nodes)
        refuse(suitable < need, lambda n: f"{suitable[n]} of {need} GPUs are of a model and size that the job can use")
        usable = np.bincount(of_node[free.usable(requirement)], minlength=problem.num_nodes)
        refuse(usable < need, lambda n: f"{usable[n]} of {need} GPUs have room")
    for r, group in enumerate(requirement.resources):
        amount, have = requirement.demand[r] * together, free.of_resource(r)
        unit = RESOURCE_WORDS.get(group, group.removeprefix(NAMED))
        refuse(have < amount if amount else ~everywhere, _free_of(have, amount, unit))
    refuse(everywhere, lambda _: f"fewer than {together} workers may share the node")
    return out


def _always(text: str) -> Callable[[int], str]:
    return lambda _: text


def _free_of(have: IntArray, need: int, unit: str) -> Callable[[int], str]:
    return lambda node: f"{max(0, have[node])} of {need} {unit} are free"
