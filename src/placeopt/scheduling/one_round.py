"""One round under a scheduling policy: what it decides there, as a plan with value, cost, bound and reasons."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Unpack

from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance, Plan, Postpone
from placeopt.scheduling.live import LiveScheduler, refuse_unread, scheduling_in, setting_of
from placeopt.scheduling.live_rounds import round_under
from placeopt.scheduling.policy import Scheduling
from placeopt.solving.bounds import Progress
from placeopt.solving.params import SolveOptions, SolveParams

LEAST_S = 0.001
"""Left to a decision that took the time limit: it is stated even so."""
DECIDES = 0.5
"""Part of the time limit in which the policy decides; the rest is for what its plan is worth, and a bound."""


def plan_round(
    instance: Instance,
    scheduling: Scheduling,
    *,
    cancel: threading.Event | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    **options: Unpack[SolveOptions],
) -> Plan:
    """
    Return the plan of a round under a scheduling policy that knows nothing of earlier rounds.

    Parameters
    ----------
    instance
        The round. What the policy of rounds leaves out is as the instance's says.
    scheduling
        The policy. One of whole rounds solves the round; one that places job by job decides, and its decision is stated
        as a plan: method ``given``.
    cancel, on_progress, **options
        As of ``placeopt.solve``; ``method`` is the policy's.

    Returns
    -------
    Plan
        As of ``placeopt.solve``.

    Raises
    ------
    BadInput
        If the policy reads what no round states; and as ``placeopt.solve`` raises it.
    """
    params, began = SolveParams.of(options), time.monotonic()
    refuse_unread(scheduling)
    own, decided = scheduling_in(scheduling, setting_of(instance)), None
    policy, method = own.policy, own.method
    asked = round_under(own, instance) if own.rounds == "whole" else instance
    if own.rounds != "whole" or own.predictions or (asked.jobs, asked.holds) != (instance.jobs, instance.holds):
        cancelled = threading.Event() if cancel is None else cancel
        with Engine() as engine:
            live = LiveScheduler(engine, scheduling)
            live.follow(instance)
            decided = live.decide(DECIDES * params.time_limit_s, cancelled, deterministic=params.deterministic)
        policy, method = decided.policy.values, "given"
        if policy.postpone.rule == "lookahead":  # it has looked ahead
            policy = policy.model_copy(update={"postpone": Postpone()})
    options["method"] = method
    options["time_limit_s"] = max(params.time_limit_s - (time.monotonic() - began), LEAST_S)
    with Engine(policy) as engine:
        return engine.solve(instance, previous=decided, cancel=cancel, on_progress=on_progress, **options)
