"""Limits on what jobs take together in a domain, in the whole cluster, or on a node beside room held for others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placeopt.model import Hold, hold_groups
from placeopt.problem.arrays import RESOURCES, UNLIMITED, BoolArray, IntArray, held_amounts

if TYPE_CHECKING:
    from placeopt.problem.arrays import Placement
    from placeopt.problem.problem import Problem
    from placeopt.problem.state import State


@dataclass(frozen=True, eq=False)
class Place:
    """Some nodes, and the most that the jobs of some classes may take on them together."""

    name: str
    nodes: IntArray  # (n,)
    counted: BoolArray  # (K,) classes of jobs that count
    most: IntArray  # (R,) UNLIMITED where nothing is stated
    domain: int | None = None
    """Number of the domain that it is."""
    holds: frozenset[str] = frozenset()
    """The holds that are left free, one of each kind."""
    exempt_jobs: tuple[int, ...] = ()

    def room(self, state: State) -> IntArray:
        """Shape (R,): what is left; below 0 where running jobs take more."""
        return self.left(state.problem, state.node_free, self.exempt(state))

    def left(self, problem: Problem, node_free: IntArray, exempt: IntArray) -> IntArray:
        """Shape (R,): what is left; of what is not in ``node_free``, (N, R), ``exempt`` does not count."""
        used = (problem.node_capacity[self.nodes] - node_free[self.nodes]).sum(axis=0) - exempt
        room: IntArray = np.where(self.most < UNLIMITED, self.most - used, UNLIMITED)
        return room

    def exempt(self, state: State) -> IntArray:
        """Shape (R,): what jobs that do not count take there."""
        taken: IntArray = np.zeros(len(self.most), dtype=np.int64)
        for held in (state.placements[job] for job in self.exempt_jobs):
            if held is not None:
                taken += state.problem.options.demand[held.option] * int(np.isin(held.nodes, self.nodes).sum())
        return taken

    def taken(self, problem: Problem, placement: Placement) -> IntArray:
        """Shape (R,): what a placement takes; 0 if its job does not count."""
        workers = int(np.isin(placement.nodes, self.nodes).sum())
        counts = self.counted[problem.options.job_class[placement.option]]
        taken: IntArray = problem.options.demand[placement.option] * (workers if counts else 0)
        return taken


def find_places(problem: Problem) -> tuple[Place, ...]:
    """Return the places whose amounts some option takes of."""
    cluster, named = problem.instance.cluster, problem.named_resources
    inside: dict[int, list[int]] = {d: [] for d, domain in enumerate(cluster.domains) if domain.resources}
    for n in range(problem.num_nodes) if inside else ():
        for d in problem.topology.node_ancestors(n):
            if d in inside:
                inside[d].append(n)
    stated = [
        *(
            (f"{cluster.domains[d].level} {cluster.domains[d].id!r}", d, cluster.domains[d].resources, nodes)
            for d, nodes in inside.items()
        ),
        ("the cluster", None, cluster.resources, range(problem.num_nodes) if cluster.resources else ()),
    ]
    everybody = np.ones(problem.num_classes, dtype=bool)
    places: list[Place] = []
    for name, domain, resources, nodes in stated:
        if nodes:
            most = [UNLIMITED] * len(RESOURCES) + [resources.get(one, UNLIMITED) for one in named]
            here = np.array(nodes, dtype=np.int64)
            places.append(Place(name, here, everybody, np.array(most, dtype=np.int64), domain))
    asked = (problem.options.demand > 0).any(axis=0)
    return tuple(place for place in places + _beside_holds(problem) if (asked & (place.most < UNLIMITED)).any())


def _beside_holds(problem: Problem) -> list[Place]:
    """Return nodes beside the holds that some jobs may use; what is held against all is no capacity of its node."""
    by_node: dict[str, list[Hold]] = {}
    for hold in problem.instance.holds_now:
        by_node.setdefault(hold.node, []).append(hold)
    number = {name: n for n, name in enumerate(problem.node_ids)} if by_node else {}
    found = []
    now_ms, kinds = problem.instance.now_ms, problem.instance.hold_kinds
    for name, holds in by_node.items():
        for group in hold_groups(tuple(holds), now_ms) if name in number else ():
            some = [hold for hold in group if not hold.counts_against_all(now_ms)]
            if some:
                ids = {kinds[hold.kind].id for hold in some}
                counted = np.array([not ids & exempt for exempt in problem.class_exempt], dtype=bool)
                free = problem.node_capacity[number[name]] + problem.node_held[number[name]]
                held = np.array([held_amounts(hold, problem.named_resources) for hold in group]).sum(axis=0)
                most = np.where(free < UNLIMITED, free - held, UNLIMITED)
                jobs = tuple(np.flatnonzero(~counted[problem.job_class]).tolist())
                label = f"node {name!r} beside hold " + " and ".join(repr(hold.id) for hold in group)
                here = np.array([number[name]])
                found.append(Place(label, here, counted, most, holds=frozenset(ids), exempt_jobs=jobs))
    return found
