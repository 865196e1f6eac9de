"""Rounds without a choice: proven without a solver, and what is proven is the optimum."""

import time

import numpy as np
import pytest

from helpers.brute_force import optimum
from helpers.small_rounds import random_round
from placeopt import solve
from placeopt.build import instance, job, running
from placeopt.heuristics.lookahead import LookaheadDecision
from placeopt.model import Instance, Policy, Weights
from placeopt.problem import Placement, compile_problem
from placeopt.solving import SolveParams
from placeopt.solving.budget import Budget
from placeopt.solving.context import SolveContext
from placeopt.solving.greedy_rule import GreedyRule
from placeopt.solving.stage import run_stages
from placeopt.solving.stages.first_plan import MakeRoom
from placeopt.solving.stages.greedy import Greedy
from placeopt.solving.stages.trivial_proof import TrivialProof, decides_all

FRAGMENTATION = Policy(weights=Weights(communication=0, interference=0, fragmentation=1000))


def tried(of: Instance) -> SolveContext:
    """Return a round after greedy and the stage."""
    now = time.monotonic()
    budget = Budget(SolveParams(time_limit_s=60), started=now, deadline=now + 60)
    context = SolveContext(compile_problem(of), budget, greedy=GreedyRule("stranding", "fcfs"))
    run_stages(context, (Greedy(), MakeRoom(), TrivialProof()))
    return context


def proves(of: Instance) -> bool:
    return "forced" in [stage.name for stage in tried(of).stages]


def crowded(*waiting: object, free: int = 2) -> Instance:
    """Return a node of four GPUs of which so many are free, and a second one that is full."""
    held = job("held", gpus=4 - free), job("full", gpus=4)
    runs = [running(held[0], [("n0", list(range(4 - free)))]), running(held[1], [("n1", [0, 1, 2, 3])])]
    return instance(2, [*held, *waiting], running=runs, policy=FRAGMENTATION)


def test_what_is_proven() -> None:
    """A job with one place and one with none: both levels, without any solver."""
    context = tried(crowded(job("fits", gpus=2, value=5), job("large", gpus=3, value=9)))
    assert context.proven
    assert context.incumbent.value == 5 + sum(option.value for held in ("held", "full") for option in job(held).options)
    assert [stage.outcome for stage in context.stages if stage.name == "forced"] == ["proved"]


@pytest.mark.parametrize(
    "waiting",
    [
        [job("one", gpus=1)],  # two GPUs to choose from
        [job("a", gpus=2), job("b", gpus=2)],  # who gets them
        [job("worthless", gpus=2, value=0)],  # it need not start
        [job("parts", workers=2, gpus=1)],  # as a gang it may lie in more than one way
    ],
)
def test_a_choice_is_left_to_others(waiting: list) -> None:
    """Nothing is proven where there is anything to decide."""
    assert not proves(crowded(*waiting))


def test_changes_of_running_jobs_are_choices() -> None:
    """A job that may be moved could make more of the round."""
    there = crowded(job("fits", gpus=2))
    assert proves(there)
    policy = FRAGMENTATION.model_copy(update={"changes": FRAGMENTATION.changes.model_copy(update={"moves_max": 1})})
    movable = tuple(one.model_copy(update={"movable": True}) for one in there.running)
    assert not proves(there.model_copy(update={"policy": policy, "running": movable}))


def test_no_solver_is_started_for_it() -> None:
    """The plan of the whole round is optimal, and no stage of it solved a model."""
    plan = solve(crowded(job("fits", gpus=2)), deterministic=True, time_limit_s=30)
    assert plan.status == "optimal"
    assert not [stage for stage in plan.stages if stage.name.startswith("counts")]


def test_what_is_proven_is_the_optimum() -> None:
    """On random rounds with every rule and cost: wherever the stage proves, brute force agrees."""
    proven = 0
    for seed in range(150):
        context = tried(random_round(np.random.default_rng([11, seed])))
        if context.proven and "forced" in [stage.name for stage in context.stages]:
            proven += 1
            value, cost, _ = optimum(context.problem)
            assert (context.incumbent.value, context.incumbent.cost) == (value, cost), seed
    assert proven > 5


@pytest.mark.parametrize(("worths", "decided"), [((2, 3), True), ((2, 4), False), ((9,), False)])
def test_what_is_worth_less_than_any_start_changes_nothing(worths: tuple[int, ...], decided: bool) -> None:
    """The start is worth 6; others have room only in its place, and together are worth less, or as much, or more."""
    rivals = [job(f"rival{i}", gpus=2, value=worth) for i, worth in enumerate(worths)]
    problem = compile_problem(crowded(job("starts", gpus=2, value=6), *rivals))
    start = problem.job_ids.index("starts")
    placement = Placement(next(iter(problem.options_of(start))), (0,), (2, 3))
    ahead = LookaheadDecision({}, {}, {start: placement}, frozenset([start]))
    assert decides_all(problem, ahead, lambda same, _: same) is decided
