"""What methods promise of larger rounds, beside each other; `properties/test_every_method.py` has brute force."""

import pytest

from made_rounds import generate
from placeopt import Engine, Plan, audit, violations
from placeopt.build import instance, job, machine
from placeopt.model import Policy, Weights
from placeopt.solving import METHODS

pytestmark = pytest.mark.usefixtures("unhurried")
NO_COST = Policy(weights=Weights(communication=0, interference=0, fragmentation=0))


MEDIUM = {
    "gangs": generate("gangs", jobs=24, nodes=10, gpus=4, seed=7),
    "resources": generate("resources", jobs=60, nodes=8, gpus=8, seed=1),
    "varied": generate("varied", jobs=40, nodes=8, gpus=4, seed=2),
}
"""Rounds that no method proves within a second."""


def reached(plan: Plan) -> tuple[int, int]:
    """Return what plans are compared by: the value, then the cost."""
    return plan.levels[0].objective, -plan.levels[1].objective if len(plan.levels) > 1 else 0


@pytest.mark.parametrize("method", [name for name in METHODS if not METHODS[name].is_greedy and name != "counts-cbc"])
def test_the_same_plan_twice_and_none_worse_than_greedys(method: str, engine: Engine) -> None:
    """Byte for byte, cut by work and not by the clock; referee and audit have nothing to say."""
    round_ = MEDIUM["gangs"]
    one, two = (engine.solve(round_, method=method, time_limit_s=0.3, deterministic=True) for _ in range(2))
    assert one.model_dump_json() == two.model_dump_json()
    assert one.limit in ("work", "none")
    assert violations(round_, one) == []
    assert audit(round_, one) == []
    assert reached(one) >= reached(engine.solve(round_, method="stranding", deterministic=True))


@pytest.mark.parametrize("spec", MEDIUM)
def test_a_longer_limit_is_no_worse(spec: str, engine: Engine) -> None:
    """Deterministic work of every limit is a prefix of one sequence."""
    round_ = MEDIUM[spec]
    plans = [engine.solve(round_, time_limit_s=limit, deterministic=True) for limit in (0.3, 1.0)]
    assert [reached(plan) for plan in plans] == sorted(reached(plan) for plan in plans)
    bounds = [plan.levels[0].bound for plan in plans]
    assert bounds[0] >= bounds[1] >= plans[1].levels[0].objective


def test_a_proven_round_takes_no_more_work(engine: Engine) -> None:
    """One job on one node: nothing is repeated."""
    plans = [engine.solve(instance(1, [job("only")]), time_limit_s=limit, deterministic=True) for limit in (3.0, 30.0)]
    assert [plan.status for plan in plans] == ["optimal", "optimal"]
    assert plans[0].stages == plans[1].stages


def test_more_than_greedy_finds_where_resources_bind(engine: Engine) -> None:
    """By 5 % in all, on rounds on which nothing was tuned."""
    found = {"stranding": 0, "auto": 0}
    for seed in (70, 71):
        round_ = generate("resources", jobs=120, nodes=10, gpus=8, seed=seed)
        for method in found:
            plan = engine.solve(round_, method=method, time_limit_s=0.3, deterministic=True)
            found[method] += plan.levels[0].objective
    assert found["auto"] > 1.05 * found["stranding"]


def test_gpus_are_filled_where_greedy_leaves_parts(engine: Engine) -> None:
    """Twice 500 + 500 and 400 + 300 + 300 fill four GPUs; greedy puts 400 beside a 500."""
    sizes = enumerate((500, 500, 400, 300, 300) * 2)
    shares = [job(f"j{i}", gpu_milli=milli, gpu_memory_mib=0, value=milli) for i, milli in sizes]
    of = instance(1, shares, machines=[machine(gpus=4)], policy=NO_COST)
    assert engine.solve(of, method="stranding").levels[0].objective < 4000
    for method in ("gpu-patterns", "auto", "counts"):
        plan = engine.solve(of, method=method)
        assert (plan.status, plan.levels[0].objective) == ("optimal", 4000)


def test_cpu_that_binds_is_nearly_proven_by_fillings(engine: Engine) -> None:
    """Better than greedy, and bounded more closely than by single GPUs; jobs of up to 16 workers among others."""
    round_ = generate("varied", jobs=400, nodes=40, gpus=4, seed=9)
    options = {"time_limit_s": 60, "deterministic": True}
    greedy, plan = (engine.solve(round_, method=name, **options) for name in ("stranding", "fillings"))
    assert violations(round_, plan) == []
    assert reached(plan) > reached(greedy)
    bounds = [one.levels[0].bound or 0 for one in (plan, greedy)]
    assert 0 < bounds[0] <= min(plan.levels[0].objective / 0.99, bounds[1])


def test_gpu_groups_share_no_whole_node(engine: Engine) -> None:
    """Rows of single groups let two jobs across groups share one node (regression)."""
    round_ = generate("cubemesh", jobs=100, nodes=32, gpus=8, seed=0)
    plan = engine.solve(round_, method="filling-costs", time_limit_s=3)
    assert violations(round_, plan) == []
