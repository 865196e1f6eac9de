"""
In deterministic mode a longer limit never gives a worse plan, nor a weaker bound.

Every round of the library up to so many jobs is solved at each limit. The clock, which guards deterministic rounds on
slow machines, is set `FAR_S` away, so that it hardly ever ends one; such a plan depends on the machine and is not
compared.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from campaigns.harness import ROOT, Campaign, Case
from placeopt import Instance, Plan, read_instance
from placeopt.benchmark import read_sets
from placeopt.problem import compile_problem
from placeopt.solving import SolveParams, Solver
from placeopt.solving.api import RoundInput
from placeopt.solving.budget import Budget

SETS = ("tiny", "hand", "generated", "hard", "real", "openb", "large")
LIMITS_S = (0.3, 1.0, 3.0, 10.0)
MOST_JOBS = 12_000
FAR_S = 300.0
"""Seconds until the clock ends a round, whatever its limit."""


class WorkBudget(Budget):
    """A budget whose clock is `FAR_S` away."""

    @property
    def ends(self) -> float:
        """When the whole call is due."""
        return self.started + FAR_S


class WorkInput(RoundInput):
    """A round that work alone ends."""

    def budget(self, params: SolveParams, reserve_s: float = 0.0) -> Budget:
        """Return its budget."""
        del reserve_s
        return WorkBudget(params, started=self.started, deadline=self.started + FAR_S, threads=1)


def solved(solver: Solver, instance: Instance, limit_s: float) -> Plan:
    """Solve in deterministic mode."""
    params = SolveParams(time_limit_s=limit_s, deterministic=True)
    return solver.solve_compiled(
        lambda: compile_problem(instance, instance.policy), params, WorkInput(time.monotonic())
    )


def cases(seed: int) -> Iterator[Case]:
    """Solve each round at all limits."""
    del seed
    with Solver() as solver:
        for entry in read_sets(SETS, ROOT / "instances"):
            if entry.kind != "placement":
                continue
            instance = read_instance(entry.there())
            if len(instance.jobs) > MOST_JOBS:
                continue
            plans = [(limit, solved(solver, instance, limit)) for limit in LIMITS_S]
            kept = [(limit, plan) for limit, plan in plans if plan.limit != "time"]
            faults = [
                f"{entry.name}: {what} at {longer:g} s worse than at {shorter:g}"
                for number, (longer, plan) in enumerate(kept)
                for shorter, before in kept[:number]
                for what, now, then in zip(("plan", "bound"), worth(plan), worth(before), strict=True)
                if now < then
            ]
            yield Case("all by work" if len(kept) == len(plans) else "some ended by the clock", faults)


def worth(plan: Plan) -> tuple[list[float], list[float]]:
    """Return what a plan reaches and what it proves, so that more is better."""
    reached = [float(level.objective if level.sense == "max" else -level.objective) for level in plan.levels]
    bound = plan.levels[0].bound
    return reached, [float("-inf") if bound is None else -float(bound)]


CAMPAIGN = Campaign("is a longer limit never worse in deterministic mode?", cases, 100, 60)
