"""A round in figures: what is placed, how good that is proven to be, and what the nodes cost."""

from __future__ import annotations

import threading

from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance
from placeopt.whatif.answers import RoundOutcome
from placeopt.whatif.instance_edit import edit_instance
from placeopt.whatif.round_solving import NO_COSTS, Limits


def without_costs(instance: Instance) -> Instance:
    """Return the round without its cost level: what is placed, and what that is worth, is all that counts."""
    return edit_instance(instance, policy=instance.policy.model_copy(update={"weights": NO_COSTS}))


def outcome_of(
    engine: Engine, instance: Instance, limits: Limits, cancel: threading.Event | None = None, waits: int = 0
) -> RoundOutcome:
    """
    Solve a round made by `without_costs`, and return its figures.

    Parameters
    ----------
    waits
        Jobs that a scenario has displaced, for the record.
    """
    plan = engine.solve(
        instance,
        method=limits.method,
        time_limit_s=limits.time_limit_s,
        threads=limits.threads,
        seed=limits.seed,
        cancel=cancel,
    )
    value = plan.levels[0]
    return RoundOutcome(
        value=value.objective,
        value_bound=value.bound,
        jobs_placed=len(plan.placements),
        jobs_waiting=len(plan.unplaced),
        gpu_milli_placed=plan.facts["gpu_milli_placed"],
        gpu_milli_bound=plan.facts["gpu_milli_bound"],
        gpu_milli_capacity=plan.facts["gpu_milli_capacity"],
        nodes=len(instance.cluster.nodes),
        price_milli_per_hour=sum(node.price_milli_per_hour for node in instance.cluster.nodes),
        displaced=waits,
    )
