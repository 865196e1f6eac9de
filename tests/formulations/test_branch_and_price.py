"""Branch and price: every column costs what the terms say, and the cost that they prove is that of brute force."""

import numpy as np
import pytest
from hypothesis import given

from helpers.brute_force import optimum
from helpers.machines import sockets
from made_rounds import generate
from placeopt import Engine, Unsupported
from placeopt.build import instance, job
from placeopt.formulations.branch_and_price import (
    Column,
    ColumnMaster,
    ColumnPricing,
    DualPrices,
    columns_of,
    make_bundle_groups,
    make_cross_group_patterns,
    make_gpu_groups,
)
from placeopt.formulations.branch_and_price.realise import bundles_of
from placeopt.model import Instance, Interference, Policy, Slowdown, Weights
from placeopt.problem import Allocation, IntArray, Placement, compile_problem, open_state
from placeopt.terms import cost, weighted_costs
from strategies import branch_and_price_rounds


def prepared(of: Instance) -> tuple[ColumnMaster, ColumnPricing]:
    """Rooms and patterns of a round, and what searches them."""
    problem = compile_problem(of)
    state, weighted = open_state(problem), weighted_costs(problem)
    gpu_groups = make_gpu_groups(state, make_bundle_groups(state, weighted))
    patterns = make_cross_group_patterns(gpu_groups)
    return ColumnMaster(gpu_groups, patterns, weighted, 0), ColumnPricing(gpu_groups, patterns, lambda: None)


def alone(master: ColumnMaster, column: Column) -> Allocation:
    """The running jobs, and jobs that make up one column."""
    bundle_groups, problem = master.gpu_groups.bundle_groups, master.gpu_groups.problem
    out = list(master.gpu_groups.state.allocation())
    for bundle_group, node, gpus in bundles_of(master, [column], np.ones(1, dtype=np.int64)):
        for number, placement in enumerate(out):
            options = [o for o in problem.options_of(number) if bundle_groups.option_bundle_group[o] == bundle_group]
            if placement is None and options:
                out[number] = Placement(options[0], (node,) * int(problem.options.workers[options[0]]), gpus)
                break
        else:
            raise AssertionError("more bundles than jobs")
    return tuple(out)


def prices_of(master: ColumnMaster, price: IntArray) -> DualPrices:
    """Return prices of bundle groups, and none of anything else."""
    gpu_groups = master.gpu_groups
    nothing = np.zeros(len(gpu_groups.open_groups), dtype=np.int64)
    node_groups = np.zeros(len(gpu_groups.node_groups) + 1, dtype=np.int64)
    scarce = np.zeros((len(node_groups), len(price)), dtype=np.int64)
    return DualPrices(price, nothing, node_groups, nothing, scarce)


@pytest.mark.parametrize(("spec", "jobs", "nodes", "seed"), [("cubemesh", 16, 5, 3), ("uniform", 24, 5, 4)])
def test_every_column_costs_what_the_terms_compute(spec: str, jobs: int, nodes: int, seed: int) -> None:
    """The terms are the one definition; the search adds up the same from tables."""
    master, pricing = prepared(generate(spec, jobs=jobs, nodes=nodes, gpus=8, seed=seed))
    gpu_groups = master.gpu_groups
    weighted = weighted_costs(gpu_groups.problem)
    single = gpu_groups.bundle_groups.total == gpu_groups.bundle_groups.gpus
    rng = np.random.default_rng(seed)
    seen = patterns = 0
    for _ in range(6):
        price = np.where(single, rng.integers(0, 60_000_000, len(gpu_groups.bundle_groups)), 0)
        priced = pricing.run(prices_of(master, price), 0, each=8)
        for column, reduced in zip(priced.columns, priced.reduced.tolist(), strict=True):
            uses = master.uses([column])[0]
            assert reduced == column.cost - int(uses @ price)
            if (uses > gpu_groups.bundle_groups.supply).any():
                continue
            whole = column.pattern >= 0
            opening = 0 if whole else int(master.opening[gpu_groups.node_group_of[column.open_group]])
            found = cost(gpu_groups.problem, alone(master, column), weighted)
            assert found - master.base == column.cost + opening
            again = columns_of(gpu_groups, master.patterns, alone(master, column))
            assert [(c.cost, c.pattern >= 0) for c in again] == [(column.cost, whole)]
            seen, patterns = seen + 1, patterns + whole
    assert seen > 100
    assert patterns > 5


@given(round_=branch_and_price_rounds())
def test_the_proven_cost_is_that_of_brute_force(engine: Engine, round_: Instance) -> None:
    """A round that is not refused is proven, and what is proven is the least cost at the best value."""
    plan = engine.solve(round_, method="branch-and-price", time_limit_s=60)
    value, cost, _ = optimum(compile_problem(round_))
    stages = {stage.name: stage.outcome for stage in plan.stages}
    if stages.get("branch-and-price", "skipped") != "skipped":
        assert plan.status == "optimal"
    if plan.status == "optimal":
        assert [level.objective for level in plan.levels] == [value, cost][: len(plan.levels)]


@pytest.mark.parametrize(("spec", "seed"), [("cubemesh", 0), ("cubemesh", 1), ("uniform", 0), ("uniform", 5)])
def test_other_formulations_prove_the_same(spec: str, seed: int, engine: Engine) -> None:
    """Rounds too large for brute force, small enough for ``counts``."""
    of = generate(spec, jobs=5, nodes=4, gpus=8, seed=seed)
    plans = [engine.solve(of, method=method, time_limit_s=60.0, threads=1) for method in ("branch-and-price", "counts")]
    assert [plan.status for plan in plans] == ["optimal", "optimal"]
    assert plans[0].levels == plans[1].levels


@pytest.mark.parametrize("seed", [1, 2])
def test_bounds_without_a_search_hold(seed: int) -> None:
    """No column gains more than the bound on its GPU group or group of nodes says."""
    master, pricing = prepared(generate("uniform", jobs=24, nodes=5, gpus=8, seed=seed))
    gpu_groups = master.gpu_groups
    rng = np.random.default_rng(seed)
    for _ in range(6):
        prices = prices_of(master, rng.integers(0, 60_000_000, len(gpu_groups.bundle_groups)))
        quick, exact = pricing.excess_bound(prices), pricing.run(prices, -1, each=12)
        assert exact.complete
        assert (quick.group_excess >= exact.group_excess).all()
        assert (quick.node_group_excess >= exact.node_group_excess).all()


def test_two_bad_neighbours_are_kept_apart(engine: Engine) -> None:
    """
    Worked by combination: one node, two sockets of two GPUs; a and b slow each other by 300 each in a socket, c nobody.

    Each of a and b in a socket of its own, c beside one of them: interference 0. Fragmentation: one GPU is free in its
    socket and node, 1 + 1 = 2 (no rack). All three in other ways: a and b together cost 600.
    """
    slow = Slowdown(profile="x", beside="x", gpu_thousandths=300, switch_thousandths=300, socket_thousandths=300)
    jobs = [job("a", profile="x", value=1), job("b", profile="x", value=1), job("c", value=1)]
    policy = Policy(weights=Weights(communication=0, interference=500, fragmentation=500))
    of = instance(1, jobs, machines=[sockets(2, 2)], policy=policy, slowdowns=(slow,))
    plan = engine.solve(of, method="branch-and-price")
    assert plan.status == "optimal"
    assert (plan.costs["interference"].raw, plan.costs["fragmentation"].raw) == (0, 2)
    assert plan.stages[-1].name == "branch-and-price"


def test_a_round_that_does_not_decompose_is_refused(engine: Engine) -> None:
    """It is left to the exact stages, which ``auto`` runs afterwards."""
    jobs = [job(name, profile="x", value=1) for name in "ab"]
    slow, policy = (
        Slowdown(profile="x", beside="x", gpu_thousandths=300),
        Policy(interference=Interference(model="worst")),
    )
    of = instance(1, jobs, policy=policy, slowdowns=(slow,))
    with pytest.raises(Unsupported, match="pairwise"):
        prepared(of)
    plan = engine.solve(of)
    assert plan.status == "optimal"
    assert any(stage.name == "branch-and-price" and stage.outcome == "skipped" for stage in plan.stages)


def test_deterministic_runs_are_equal(engine: Engine) -> None:
    """Work, not the clock, ends every solve; ties are broken by position."""
    of = generate("cubemesh", jobs=10, nodes=4, gpus=8, seed=2)
    plans = [engine.solve(of, method="branch-and-price", deterministic=True, time_limit_s=60.0) for _ in range(2)]
    assert plans[0].model_dump_json() == plans[1].model_dump_json()
    assert plans[0].status == "optimal"


def test_a_deadline_keeps_the_best_plan(engine: Engine) -> None:
    """pricing asks the clock too."""
    of = generate("uniform", jobs=60, nodes=12, gpus=8, seed=1)
    plan = engine.solve(of, method="branch-and-price", time_limit_s=0.3)
    assert len(plan.placements) + len(plan.unplaced) == len(of.jobs)
    assert plan.levels[1].bound is None or plan.levels[1].bound <= plan.levels[1].objective
