"""The model of one level of a round, to be solved elsewhere."""

from __future__ import annotations

import math
import time

from placeopt.check import violations
from placeopt.errors import BadInput, Unsupported
from placeopt.linear import LinearModel, ModelBuilder
from placeopt.model import Instance, Policy
from placeopt.problem import State, compile_problem
from placeopt.solving.budget import Budget
from placeopt.solving.context import SolveContext
from placeopt.solving.draft import draft_plan
from placeopt.solving.params import SolveParams
from placeopt.solving.sizes import product, waiting
from placeopt.solving.stages.exact import build_level

MAX_PRODUCT = {"assignment": 4_000_000, "counts": 40_000_000}
"""Formulations, and the waiting jobs x GPUs up to which a model is built without a deadline."""


def level_model(
    instance: Instance, policy: Policy | None, formulation: str, *, optimal_value: int | None = None
) -> LinearModel:
    """
    Build the model that an exact stage would solve.

    Parameters
    ----------
    instance, policy
        The round, and the policy instead of its own.
    formulation
        A key of `MAX_PRODUCT`.
    optimal_value
        ``None`` for the first level, the value of what is placed, maximised. A number for the second, the costs,
        minimised over the placements of that value, which should be the optimum of the first.

    Returns
    -------
    LinearModel
        Its objective is that level's objective in a plan of the round, where the costs have exact linear forms, and a
        bound on it where they have not (the plan's ``bound_relaxes`` names them).

    Raises
    ------
    BadInput
        If the running placements break a rule.
    Unsupported
        If the round is too large, the second level is requested of a policy without costs, or the formulation cannot
        express it.
    """
    problem = compile_problem(instance, policy)
    found = violations(instance, draft_plan(instance, problem, State(problem).allocation())) if problem.running else ()
    if found:
        raise BadInput(f"running placements: {found[0].message} ({found[0].rule}); they contradict each other")
    context = SolveContext(problem, Budget(SolveParams(time_limit_s=math.inf), time.monotonic(), deadline=math.inf))
    if product(context) > MAX_PRODUCT[formulation]:
        able = [name for name, most in MAX_PRODUCT.items() if product(context) <= most]
        raise Unsupported(
            f"{waiting(context)} waiting or movable jobs on {problem.num_gpus} GPUs are too many for {formulation!r}; "
            + (f"use {' or '.join(map(repr, able))}" if able else "take fewer jobs or nodes")
        )
    if optimal_value is None:
        builder = ModelBuilder()
        build_level(context, builder, formulation, "value")
        return builder.build()
    if not context.weighted:
        raise Unsupported(f"policy {problem.policy.name!r} weighs no costs, so there is only the level 'value'")
    context.bounds.prove_value(optimal_value)
    builder = ModelBuilder()
    build_level(context, builder, formulation, "cost")
    return builder.build()
