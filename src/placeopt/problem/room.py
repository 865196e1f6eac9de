"""What is free and what is counted in a round: the arrays that every state of a problem has."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, fields
from typing import Any

from placeopt.problem.arrays import IntArray

Tenant = tuple[int, tuple[int, ...]]
"""Profile, -1 for none, and GPUs held on a node."""


@dataclass(eq=False)
class Room:
    """Free amounts, below 0 where running jobs exceed them, and counts of what is held."""

    node_free: IntArray  # (N, R)
    gpu_free_milli: IntArray  # (G,) below 0 where overcommitted
    gpu_free_memory: IntArray  # (G,)
    gpu_jobs: IntArray  # (G,) number of jobs on it
    gpu_utilisation: IntArray  # (G,) cumulative percent
    gpu_slots: IntArray  # (G,) load of each GPU with profiles, as in `placeopt.problem.gpu_slots`
    level_free: list[IntArray]  # of each level of fragmentation, (domains,)
    machine_load: IntArray  # (N, 2) hose load by GPU jobs and CPU jobs
    domain_load: IntArray  # (D, 2)
    queue_used: IntArray  # (queues, A) what each counts with

    def arrays(self) -> dict[str, Any]:
        """Return copies of the arrays, by name."""
        return {field.name: deepcopy(getattr(self, field.name)) for field in fields(Room)}


@dataclass(frozen=True, eq=False)
class BaseLoad:
    """
    The room that jobs leave which run and which a problem does not list: every state of the problem begins with it.

    A round in which running jobs stay as they are needs no more of them than this: it is solved for the waiting jobs
    alone, in time that does not grow with what runs.
    """

    room: Room
    tenants: Sequence[dict[Tenant, int]]  # by node; empty where none disturbs
