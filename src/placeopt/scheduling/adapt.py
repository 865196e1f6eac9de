"""What a policy that adapts does in a setting: share mode, changes of running jobs, and rounds job by job or whole."""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import Literal

from placeopt.model.instance import Slowdown
from placeopt.model.policy import ShareMode
from placeopt.scheduling.policy import Scheduling
from placeopt.scheduling.rules import Rule
from placeopt.scheduling.setting import Setting

LOOKAHEAD_GPUS = 32
"""GPUs of a cluster up to which rounds are solved whole: a round of five Minskys takes 0.1 s, one of 94 nodes 1 s."""
JOBS_PER_GPU_MAX = 4
"""Jobs that may share a GPU, as under Horus's policies."""
LEAST_THROUGHPUT = 1.5
"""Least throughput of a shared GPU, in jobs at full speed, for sharing to pay: that of ``least-slowdown``."""


def adapted(scheduling: Scheduling, setting: Setting) -> Scheduling:
    """
    Return what a policy does in a setting; the same policy unless it ``adapts``.

    Each mechanism is used where the setting states what it costs. Jobs share GPUs by the fractions that they ask for
    or, if all ask for whole GPUs, where utilisations or slowdowns by neighbours are stated under which a shared GPU
    gets more done. Running jobs are resized where jobs are elastic, and stopped where a restart has a stated price;
    inference stops others where there are endpoints. Small clusters in which neighbours slow each other, and in which
    no job is shared, resized or stopped, are solved in whole rounds with look-ahead; all others job by job. What is in
    ``fixed`` is as the policy says.
    """
    if not scheduling.adapts:
        return scheduling
    fixed, policy = scheduling.fixed, scheduling.policy
    share_mode = policy.share_mode if "share_mode" in fixed else share_mode_for(setting)
    preempts = scheduling.preempts if "preempts" in fixed else Rule(rule=preemption_for(setting))
    elastic = scheduling.elastic if "elastic" in fixed else Rule(rule=resizing_for(setting))
    kept = {name: getattr(scheduling, name) for name in Scheduling.model_fields}
    if "rounds" not in fixed:
        looks_ahead = (
            any(_slows_without_sharing(slowdown) for slowdown in setting.beginning.slowdowns)
            and (share_mode, preempts.rule, elastic.rule) == ("exclusive", "never", "asked")
            and sum(setting.cluster.gpus_by_node.values()) <= LOOKAHEAD_GPUS
        )
        kept |= {"rounds": "whole", "method": "auto", "worth": "rate"} if looks_ahead else {"rounds": "each"}
        rule: Literal["lookahead", "none"] = "lookahead" if looks_ahead else "none"
        postpone = policy.postpone.model_copy(update={"rule": rule, "delays": "jobs"})
        policy = policy.model_copy(update={"postpone": postpone})
    jobs_max = policy.jobs_per_gpu_max or JOBS_PER_GPU_MAX if share_mode == "overcommit" else None
    kept["policy"] = policy.model_copy(update={"share_mode": share_mode, "jobs_per_gpu_max": jobs_max})
    if kept["rounds"] == "whole":
        preempts, elastic = Rule(rule="never"), Rule(rule="asked")
        kept |= {"order": None, "choice": Rule(rule="any"), "apart_max_thousandths": None}
    kept |= {"preempts": preempts, "elastic": elastic}
    if preempts.rule == "never":
        kept["restarts_max_thousandths"] = None
    return Scheduling.model_validate({**kept, "adapts": False, "fixed": ()})


def share_mode_for(setting: Setting) -> ShareMode:
    """Return how jobs share GPUs: by fractions, by slowdowns, or not at all."""
    demands = {option.demand for arrival in setting.known for option in arrival.job.options if option.demand.gpus}
    if any(demand.gpu_milli < 1000 for demand in demands):
        return "fraction"
    if any(demand.gpu_utilisation_percent for demand in demands) or _pairs_gain(setting):
        return "overcommit"
    return "exclusive"


def preemption_for(setting: Setting) -> str:
    """Return which jobs stop others."""
    if not setting.prorates:
        return "never"
    if setting.restart_ms:
        return "priced"
    return "host" if setting.serves else "never"


def resizing_for(setting: Setting) -> str:
    """Return how many workers elastic jobs get."""
    options = (option for arrival in setting.known for option in arrival.job.options)
    elastic = any(option.workers_min is not None for option in options)
    return "load" if elastic and setting.prorates else "asked"


def _pairs_gain(setting: Setting) -> bool:
    """Return whether two jobs of some stated profiles get more done on one GPU than one after the other."""
    excess = {(pair.profile, pair.beside): pair.gpu_thousandths for pair in setting.beginning.slowdowns}
    profiles = sorted({profile for profile, _ in excess})
    for one, other in combinations_with_replacement(profiles, 2):
        slower = excess.get((one, other), 0), excess.get((other, one), 0)
        if all(slower) and sum(1000 / (1000 + each) for each in slower) >= LEAST_THROUGHPUT:
            return True
    return False


def _slows_without_sharing(slowdown: Slowdown) -> bool:
    """Return whether a neighbour counts that has GPUs of its own; without such, no place is worth waiting for."""
    return any((slowdown.switch_thousandths, slowdown.socket_thousandths, slowdown.node_thousandths))
