"""Plans made of the relaxations: first where GPU shares alone bind, later by prices, never worse than what is there."""

import numpy as np
import pytest

import placeopt
from placeopt import generate
from placeopt.check import violations
from placeopt.model import Instance, Plan, Stage, Weights
from placeopt.problem import compile_problem
from placeopt.solving.stages import rounding
from placeopt.terms.cost_alone import cost_alone
from placeopt.terms.objective import weighted_costs


def stages_of(plan: Plan, name: str) -> list[Stage]:
    return [stage for stage in plan.stages if stage.name == name]


def names(plan: Plan) -> list[str]:
    return [stage.name for stage in plan.stages]


def without_costs(of: Instance) -> Instance:
    weights = Weights(communication=0, interference=0, fragmentation=0)
    return of.model_copy(update={"policy": of.policy.model_copy(update={"weights": weights})})


@pytest.mark.parametrize("seed", [5, 6])
def test_the_first_plan_is_one_of_the_roster(seed: int) -> None:
    """Of the greatest value, and far cheaper than greedy's, which is not asked for."""
    round_ = generate("gangs", jobs=500, nodes=64, gpus=4, seed=seed)
    greedy = placeopt.solve(round_, method="stranding", time_limit_s=60)
    plan = placeopt.solve(round_, time_limit_s=3, deterministic=True)
    assert violations(round_, plan) == []
    assert names(plan)[:2] == ["roster", "rounding"]
    assert "heuristic" not in names(plan)
    assert plan.levels[0].objective >= greedy.levels[0].objective
    assert plan.levels[1].objective < 0.7 * greedy.levels[1].objective


def test_greedy_comes_first_where_anything_else_binds() -> None:
    """CPU and memory, or no cost at all; or where the round is small."""
    varied = generate("varied", jobs=200, nodes=64, gpus=4, seed=5)
    gangs = generate("gangs", jobs=200, nodes=64, gpus=4, seed=5)
    small = generate("gangs", jobs=20, nodes=16, gpus=4, seed=5)
    for round_ in (varied, without_costs(gangs), small):
        assert names(placeopt.solve(round_, time_limit_s=1, deterministic=True))[0] == "heuristic"


def test_a_plan_that_lags_a_little_is_left_to_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that lags by more is dropped, with the rankings after it."""
    round_ = generate("varied", jobs=400, nodes=40, gpus=4, seed=9)
    made = {}
    for lag in (0.0, 1.0):
        monkeypatch.setattr(rounding, "LAG", lag)
        plan = placeopt.solve(round_, method="search", time_limit_s=3, deterministic=True)
        assert violations(round_, plan) == []
        made[lag] = [stage.detail for stage in stages_of(plan, "rounding")]
    assert made[0.0] == ["nodes by close_fit"]
    assert made[1.0] == ["nodes by close_fit", "nodes by marginal_cost, filled_cost"]


def test_what_jobs_cost_alone() -> None:
    """Path of GPUs side by side: of jobs without traffic nothing."""
    problem = compile_problem(generate("gangs", jobs=20, nodes=16, gpus=4, seed=1))
    weighted = weighted_costs(problem)
    alone = cost_alone(problem, weighted)
    silent = np.array([not c.weight and not c.edges for c in problem.class_communication])[problem.options.job_class]
    assert (alone[silent] == 0).all()
    assert (alone >= 0).all()
    assert alone.any()
