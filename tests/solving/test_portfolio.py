"""The first plan of ``auto`` is the best of three heuristics, each of which runs only where it may win."""

import time
from dataclasses import replace

import pytest

from placeopt import solve, violations
from placeopt.build import instance, job, option
from placeopt.generators import generate
from placeopt.model import Communication, Instance, Policy, Weights
from placeopt.problem import compile_problem
from placeopt.solving import SolveParams
from placeopt.solving.budget import Budget
from placeopt.solving.context import SolveContext
from placeopt.solving.greedy_rule import GreedyRule
from placeopt.solving.stage import run_stages
from placeopt.solving.stages.greedy import Greedy
from placeopt.solving.stages.portfolio import DrbPlan, SwafPlan


def tried(of: Instance, params: SolveParams | None = None) -> SolveContext:
    """Return a round after the three heuristics."""
    now = time.monotonic()
    budget = Budget(params or SolveParams(time_limit_s=600), started=now, deadline=now + 600)
    while budget.begin_slice():
        pass
    context = SolveContext(compile_problem(of), budget, greedy=GreedyRule("auto"))
    run_stages(context, (Greedy(), DrbPlan(), SwafPlan()))
    return context


def outcomes(context: SolveContext) -> dict[str, str]:
    return {stage.name: stage.outcome for stage in context.stages}


def test_drb_wins_where_gpus_of_a_mesh_matter() -> None:
    """Cube meshes with random GPUs taken: the same value at less communication, and the referee accepts it."""
    context = tried(generate("cubemesh", jobs=160, nodes=20, gpus=8, seed=0))
    first, drb = (stage for stage in context.stages)
    assert (first.name, drb.name, drb.outcome) == ("heuristic", "drb", "improved")
    assert first.objective == drb.objective
    assert context.handover.first_pass == context.incumbent.allocation


def test_swaf_wins_where_many_more_jobs_wait_than_fit() -> None:
    """1,000 jobs on 64 GPUs: the shapes that greedy takes, the most valuable ones, leave room for fewer jobs."""
    context = tried(generate("elastic", jobs=1000, nodes=8, gpus=8, seed=0))
    assert outcomes(context) == {"heuristic": "improved", "swaf": "improved"}
    assert ("drb", "communication costs nothing") in context.skipped


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("spec", ["elastic", "gangs", "cubemesh", "uniform"])
def test_the_best_goes_on(spec: str, seed: int) -> None:
    """No alternative makes the first plan worse, by value, then by cost."""
    of = generate(spec, jobs=320, nodes=8, gpus=8, seed=seed)
    alone = SolveContext(compile_problem(of), tried(of).budget, greedy=GreedyRule("auto"))
    run_stages(alone, (Greedy(),))
    best = tried(of).incumbent
    assert (best.value, -best.cost) >= (alone.incumbent.value, -alone.incumbent.cost)


def test_no_alternative_without_a_reason() -> None:
    """Jobs of one GPU that all fit: nothing communicates, the value is proven."""
    policy = Policy(weights=Weights(communication=500, interference=500, fragmentation=0))
    alike = [job(f"j{i}", gpus=1, communication=Communication(weight=4)) for i in range(3)]
    context = tried(instance(1, alike, policy=policy))
    reasons = dict(context.skipped)
    assert set(reasons) == {"drb", "swaf"}
    assert "heuristic" in outcomes(context)


def test_deterministic_mode_limits_the_jobs() -> None:
    """1,000 waiting jobs a second of the limit: with a limit of half a second 1,000 jobs are too many."""
    of = generate("elastic", jobs=1000, nodes=8, gpus=8, seed=0)
    few = SolveParams(time_limit_s=0.5, deterministic=True)
    assert dict(tried(of, few).skipped)["swaf"] == "too many jobs for its work"
    assert "swaf" in outcomes(tried(of, replace(few, time_limit_s=1.0)))


def test_auto_names_what_it_tried() -> None:
    """Elastic jobs of shapes of their own: the plan states greedy and SWAF, and the referee accepts it."""
    shapes = tuple(option(id=f"{k}", gpus=k, value=v) for k, v in ((1, 10), (2, 16), (4, 22)))
    round_ = instance(30, [job(f"j{i}", options=shapes) for i in range(180)])
    plan = solve(round_, time_limit_s=60, deterministic=True)
    assert {"heuristic", "swaf"} <= {stage.name for stage in plan.stages}
    assert violations(round_, plan) == []
