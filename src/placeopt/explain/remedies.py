"""What a waiting job itself could change, by feasibility alone: exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from placeopt.deadline import FOREVER, Deadline
from placeopt.explain.records import DomainsMin, WorkersMax
from placeopt.feasibility.fit import fit, largest
from placeopt.feasibility.free_capacity import FreeCapacity
from placeopt.feasibility.requirement import Requirement
from placeopt.model import Split


def most_workers(room: FreeCapacity, requirements: Sequence[Requirement], deadline: Deadline) -> WorkersMax | None:
    """
    Return the largest gang below the fewest workers asked for that fits, of all options; None if no smaller one does.

    A split that states its workers stays a split into as many equal parts.
    """
    best: WorkersMax | None = None
    for requirement in requirements:
        if requirement.fewest > 1:
            smaller = replace(requirement, fewest=1, most=requirement.fewest - 1)
            workers = largest(room, smaller, deadline)
            if workers is not None and (best is None or workers > best.workers):
                best = WorkersMax(option=requirement.option, workers=workers, asked=requirement.fewest)
    return best


def fewest_domains(
    room: FreeCapacity, requirements: Sequence[Requirement], level: str, deadline: Deadline
) -> DomainsMin | None:
    """Return the fewest domains of ``level`` over which it fits, all else as asked, of options that split over it."""
    best: DomainsMin | None = None
    for requirement in requirements:
        asked = [split.domains for split in requirement.splits if split.level == level]
        there = {*room.domains(level)[room.workers(requirement) > 0].tolist()} - {-1} if asked else ()
        for domains in range(1, min(len(there), requirement.most) + 1):
            if best is not None and domains >= best.domains:
                break
            if fit(room, [requirement.spread_over(level, domains)], deadline) is not None:
                best = DomainsMin(option=requirement.option, level=level, domains=domains, asked=asked[0])
    return best


def first_level(room: FreeCapacity, requirements: Sequence[Requirement], deadline: Deadline = FOREVER) -> str | None:
    """
    Return the first of node, the levels of the network upwards, and ``cluster``, such that one domain of it holds all.

    What the job says itself about single nodes and splits is set aside; its limit per node is kept.
    """
    anywhere: dict[str, Any] = {"single_node": False, "splits": (), "spread": (), "part_level": None}
    free = [replace(requirement, **anywhere) for requirement in requirements]
    if fit(room, free, deadline) is None:
        return None
    for level in levels_upward(room):
        together = [replace(requirement, splits=(Split(level=level, domains=1),)) for requirement in free]
        if fit(room, together, deadline) is not None:
            return level
    return "cluster"


def levels_upward(room: FreeCapacity) -> list[str]:
    """``node`` and the levels of the network's domains, the lowest first."""
    topology = room.problem.topology
    height: dict[str, int] = {"node": -1}
    above = [0] * len(topology.domain_parent)
    for domain in range(len(above) - 1, -1, -1):  # parents stand first
        level, parent = topology.domain_level[domain], int(topology.domain_parent[domain])
        height[level] = max(height.get(level, 0), above[domain])
        if parent >= 0:
            above[parent] = max(above[parent], above[domain] + 1)
    return sorted(height, key=lambda level: (height[level], level))
