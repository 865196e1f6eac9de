"""Random rounds that branch and price can take, and the stage on them with brute force as its judge."""

from __future__ import annotations

import math
import time
from types import SimpleNamespace

import numpy as np
from numpy.random import Generator

from helpers.brute_force import Enumeration
from helpers.plan_records import plan_of
from helpers.small_rounds import Dice, random_round
from placeopt import BadInput
from placeopt.check import violations
from placeopt.linear import LinearModel
from placeopt.model import Changes, Instance, Interference, Job, Option, Slowdown, Weights
from placeopt.problem import compile_problem
from placeopt.solvers.reading import OnProgress
from placeopt.solvers.registry import load
from placeopt.solvers.result import Solution, SolveOptions
from placeopt.solving.budget import Budget
from placeopt.solving.context import SolveContext
from placeopt.solving.params import SolveParams
from placeopt.solving.stage import run_stage
from placeopt.solving.stages.branch_and_price import BranchAndPrice

SHARES = (1000, 500, 250, 125)


def branch_and_price_round(rng: Generator) -> Instance:
    """Make a small random round, without most of what branch and price refuses; some of it stays."""
    instance, dice = random_round(rng, minima=False), Dice(rng)
    weights = {name: dice.number(0, 5) for name in ("communication", "interference", "fragmentation", "resource")}
    if not any(weights.values()):
        weights["fragmentation"] = 1
    parts = {name: 1000 * weight // sum(weights.values()) for name, weight in weights.items()}
    first = next(name for name, weight in weights.items() if weight)
    parts[first] += 1000 - sum(parts.values())
    policy = instance.policy.model_copy(
        update={
            "weights": Weights(horus=0, **parts),
            "interference": Interference(model="pairwise"),
            "fragmentation": instance.policy.fragmentation.model_copy(update={"form": "partial", "target": ()}),
            "changes": Changes(),
            "share_mode": "exclusive" if instance.policy.share_mode == "exclusive" else "fraction",
            "jobs_per_gpu_max": None,
        }
    )
    everywhere = dice.chance(0.2)
    slowdowns = tuple(_flat(slowdown, everywhere=everywhere) for slowdown in instance.slowdowns)
    running = {held.job for held in instance.running}
    kept = [job for job in instance.jobs if job.id in running or any(option.demand.gpus for option in job.options)]
    jobs = tuple(_simple(dice, job, running=job.id in running) for job in kept)
    return instance.model_copy(update={"policy": policy, "slowdowns": slowdowns, "jobs": jobs})


def _flat(slowdown: Slowdown, *, everywhere: bool) -> Slowdown:
    excess = slowdown.socket_thousandths
    return slowdown.model_copy(
        update={
            "gpu_thousandths": excess,
            "switch_thousandths": excess,
            "node_thousandths": excess if everywhere else 0,
        }
    )


def _simple(dice: Dice, job: Job, *, running: bool) -> Job:
    with_gpus = tuple(option for option in job.options if option.demand.gpus or running) or job.options
    options = tuple(_simple_option(dice, option) for option in with_gpus)
    return job.model_copy(
        update={"options": options, "communication": job.communication.model_copy(update={"edges": ()})}
    )


def _simple_option(dice: Dice, option: Option) -> Option:
    demand = option.demand
    milli = next(share for share in SHARES if share <= demand.gpu_milli)
    keep = dice.chance(0.3)
    return option.model_copy(
        update={
            "splits": (),
            "single_node": option.single_node or dice.chance(0.7),
            "demand": demand.model_copy(
                update={
                    "gpu_milli": milli,
                    "gpu_memory_mib": demand.gpu_memory_mib if keep else 0,
                    "cpu_millicores": demand.cpu_millicores if keep else 0,
                    "memory_mib": demand.memory_mib if keep else 0,
                    "network_bandwidth_mbps": 0,
                }
            ),
        }
    )


def solve(solver: str, model: LinearModel, options: SolveOptions, on_progress: OnProgress | None = None) -> Solution:
    """Solve in this process."""
    del on_progress
    return load(solver)(model, options)


def examine_branch_and_price(instance: Instance) -> tuple[str, list[str]]:
    """
    Let the stage prove the cost from the dearest plan of the best value; brute force says whether it is right.

    Returns (``proved``, ``bounded``, ``refused: ...`` or ``unfit``, mismatches).
    """
    problem = compile_problem(instance)
    everything = Enumeration(problem)
    rows, values = everything.rows()
    if not len(values):  # what runs breaks a rule since it was simplified
        return "unfit", []
    best = int(values.max())
    rows = rows[values == best]
    costs = everything.costs(rows)
    if violations(instance, plan_of(problem, everything.allocation(rows[0]))):
        return "unfit", []
    now = time.monotonic()
    context = SolveContext(
        problem,
        Budget(SolveParams(time_limit_s=math.inf), started=now, deadline=math.inf),
        solvers=SimpleNamespace(solve=solve),  # type: ignore[arg-type]  # all that stages call
    )
    try:
        context.incumbent.offer(everything.allocation(rows[int(costs.argmax())]))
    except BadInput:  # what runs no longer matches its job since that was simplified
        return "unfit", []
    context.bounds.prove_value(best)
    if not context.weighted or context.incumbent.value != best:
        return "unfit", []
    run_stage(context, BranchAndPrice())
    if not context.stages:
        return "unfit", []
    stage, least, cost = context.stages[-1], int(costs.min()), context.incumbent.cost
    wrong = []
    if context.bounds.cost is not None and context.bounds.cost > least:
        wrong.append(f"bound {context.bounds.cost} above the least cost {least}")
    if cost < least:
        wrong.append(f"cost {cost} below the least cost {least}")
    if stage.outcome == "skipped":
        return f"refused: {stage.detail}", wrong
    if not context.proven:
        return "bounded", wrong
    return "proved", wrong


def main(first: int, last: int) -> None:
    """Count outcomes over seeds."""
    outcomes: dict[str, int] = {}
    for seed in range(first, last):
        outcome, wrong = examine_branch_and_price(branch_and_price_round(np.random.default_rng(seed)))
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        for text in wrong:
            print(f"seed {seed}: {text}")
        if outcome == "bounded":
            print(f"seed {seed}: bounded")
    for outcome, count in sorted(outcomes.items(), key=lambda item: -item[1]):
        print(f"{count:6} {outcome}")


if __name__ == "__main__":
    import sys

    main(int(sys.argv[1]), int(sys.argv[2]))
