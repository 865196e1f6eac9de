"""What Slurm gave, scored: it chooses the GPUs on a node itself, so costs of the plan are not those of the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from placeopt.actions import ActionPart
from placeopt.errors import PlaceoptError
from placeopt.model import Instance, Policy, Running
from placeopt.problem import compile_problem
from placeopt.solving.audit import allocation_of
from placeopt.terms.objective import weighted_costs
from placeopt.whatif.placements import only_running, plan_of

Gpus = Mapping[str, frozenset[int]]
"""Indices by node."""


def running_costs(instance: Instance, policy: Policy) -> dict[str, int]:
    """
    Return the costs of what runs, by name, in the units of ``Plan.costs`` (``raw``); under a policy of rounds.

    Empty where what runs cannot be scored: on hardware that is not listed.
    """
    runs = only_running(instance.model_copy(update={"policy": policy}))
    try:
        problem = compile_problem(runs, runs.policy)
        allocation = allocation_of(plan_of(runs, ()), problem)
    except PlaceoptError:
        return {}
    return {weighted.cost.name: weighted.cost.score(problem, allocation) for weighted in weighted_costs(problem)}


def gpus_advised(parts: Iterable[ActionPart]) -> Gpus:
    """Return the GPUs of an action."""
    found: dict[str, frozenset[int]] = {}
    for part in parts:
        found[part.node] = found.get(part.node, frozenset()) | frozenset(part.gpus)
    return found


def gpus_held(running: Running) -> Gpus:
    """Return the GPUs that a running job has."""
    return {part.node: frozenset(int(gpu) for gpu in part.gpus) for part in running.assignments}
