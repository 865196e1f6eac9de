"""Plans from the relaxation over GPU patterns: what greedy misses, and valid whatever the round is like."""

import time
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest

from helpers.small_rounds import random_round
from placeopt import build, solve
from placeopt.formulations import build_gpu_patterns
from placeopt.formulations.node_rows import fullness, with_class_limits
from placeopt.linear import LinearModel
from placeopt.model import Instance, Policy, Weights
from placeopt.problem import State, compile_problem
from placeopt.solvers import Progress, Solution, SolveOptions, highs
from placeopt.solving import SolveParams
from placeopt.solving.budget import Budget
from placeopt.solving.context import SolveContext
from placeopt.solving.greedy_rule import GreedyRule, has_many_fractions
from placeopt.solving.stage import run_stages
from placeopt.solving.stages.bound import Bound
from placeopt.solving.stages.gpu_patterns import GpuPatternPlans

SHARES = Policy(share_mode="fraction", weights=Weights(communication=0, interference=0, fragmentation=0))


def shares(*milli: int, gpus: int = 2, **fields: object) -> Instance:
    """Build one node, and a job for each share, worth as much."""
    jobs = [
        build.job(f"j{i}", gpu_milli=share, gpu_memory_mib=0, value=share, **fields) for i, share in enumerate(milli)
    ]
    return build.instance(1, jobs, machines=[build.machine(gpus=gpus)], policy=SHARES)


def in_this_process(
    solver: str, model: LinearModel, options: SolveOptions, on_progress: Callable[[Progress], None] | None = None
) -> Solution:
    """Solve with HiGHS."""
    del solver, on_progress
    return highs.solve(model, options)


def started(of: Instance, seconds: float = 60.0) -> SolveContext:
    now = time.monotonic()
    params = SolveParams(time_limit_s=seconds, deterministic=True)
    return SolveContext(
        compile_problem(of),
        Budget(params, started=now, deadline=now + seconds),
        greedy=GreedyRule("stranding", "fcfs"),
        solvers=SimpleNamespace(solve=in_this_process),  # type: ignore[arg-type]  # all that stages call
    )


def test_gpus_are_filled_where_greedy_leaves_parts() -> None:
    """500 + 500 and 400 + 300 + 300 fill two GPUs; greedy puts 400 beside a 500."""
    of = shares(500, 500, 400, 300, 300)
    assert solve(of, method="stranding").levels[0].objective == 1700
    plan = solve(of, method="fillings")
    assert plan.levels[0].objective == 2000
    assert plan.status == "optimal"
    assert [stage.name for stage in plan.stages] == ["heuristic", "bound", "fillings"]


@pytest.mark.parametrize("seed", range(40))
def test_whatever_the_round_is_like_no_plan_is_refused(seed: int) -> None:
    """Gangs, GPU memory, mixed machines, queues, running jobs: the referee has nothing to say."""
    context = started(random_round(np.random.default_rng(seed)))
    run_stages(context, (Bound(), GpuPatternPlans()))
    assert [stage.outcome for stage in context.stages if stage.outcome == "failed"] == []
    assert context.incumbent.value <= context.bounds.value


@pytest.mark.parametrize("share", [0.0, 0.25])
def test_a_plan_beside_no_other_is_completed_by_class_after_the_deadline(share: float) -> None:
    """Time for it is a share of what is reserved for the end; without one nothing more is placed."""
    problem, now = compile_problem(shares(500, 500, 400, 300, 300)), time.monotonic()
    budget = Budget(SolveParams(time_limit_s=60.0), started=now - 30.0, deadline=now - 10.0)
    grace_s = share * budget.reserve_s
    result = GreedyRule("stranding", "fcfs").complete(problem, budget, State(problem).allocation(), grace_s=grace_s)
    assert (result.by_class, len(result.not_reached)) == ((5, 0) if share else (0, 5))


def test_prices_of_full_nodes_leave_the_bound_alone() -> None:
    """Three jobs need 90 % of the cores: the bound is their value. A limit of 70 % is kept."""
    of = shares(300, 400, 300, gpus=1, cpu_millicores=9_600)
    problem = compile_problem(of)
    gpu_patterns = build_gpu_patterns(State(problem))
    options = SolveOptions(time_limit_s=10, relax=True)
    assert highs.solve(gpu_patterns.model, options).bound == 1000
    priced = with_class_limits(gpu_patterns.model, gpu_patterns.loads, problem, np.ones(1), np.array([1000]))
    relaxed = highs.solve(priced, options).relaxed_values
    assert relaxed is not None
    loads = relaxed[gpu_patterns.loads.column]
    assert loads.sum() == pytest.approx(300, abs=1)  # from 60 to 90 %, in thousandths
    assert fullness(gpu_patterns.loads, relaxed, 1) == pytest.approx([900], abs=1)
    narrow = with_class_limits(gpu_patterns.model, gpu_patterns.loads, problem, np.ones(1), np.array([700]))
    relaxed = highs.solve(narrow, options).relaxed_values
    assert relaxed is not None
    assert fullness(gpu_patterns.loads, relaxed, 1) == pytest.approx([700], abs=1)


def test_only_rounds_of_many_fractions_suit() -> None:
    """Two shares are not enough, three are."""
    two, three = (compile_problem(shares(*milli)) for milli in ((500, 300), (500, 300, 200)))
    assert not has_many_fractions(two)
    assert has_many_fractions(three)
