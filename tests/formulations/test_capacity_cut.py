"""The cut by prices of patterns: against every plan of small rounds, and what it adds to the bound on cost."""

import numpy as np
from hypothesis import assume, given, reject
from hypothesis import strategies as st

from helpers.brute_force import Enumeration
from placeopt import Engine, Instance, Unsupported, generate
from placeopt.build import instance, job, machine, running
from placeopt.formulations import CapacityCut
from placeopt.formulations.cost_relaxation import build_cost_relaxation
from placeopt.formulations.node_patterns import (
    PatternPricing,
    bundle_groups_of,
    capacity_model,
    capacity_prices,
    job_groups_of,
    merged_bundles_of,
    most_busy,
    node_states_of,
)
from placeopt.model import Policy, Weights
from placeopt.problem import IntArray, Problem, State, compile_problem
from placeopt.solvers import SolveOptions, load
from placeopt.terms import weighted_costs
from strategies import rounds

solve = load("highs")


def cut_at(problem: Problem, rng: np.random.Generator) -> tuple[CapacityCut, IntArray]:
    """Return the cut at prices drawn at random, and the GPUs of each node that may become busy."""
    state = State(problem)
    bundle_groups = bundle_groups_of(problem, merged_bundles_of(state))
    states, job_groups = node_states_of(state, bundle_groups), job_groups_of(state, bundle_groups)
    pricing = PatternPricing(bundle_groups, states, "down", lambda: None)
    price = rng.integers(0, 3 * job_groups.scale, len(bundle_groups))
    price[pricing.free_of_charge] = 0
    best = pricing.price(price, patterns=False)
    pays = problem.options.bundles * price[bundle_groups.of_option]
    most = most_busy(pricing, bundle_groups, states)
    return CapacityCut.of_prices(pays, best.pays, states.count, job_groups.scale), most


@given(rounds(changes=False), st.integers(0, 2**32))
def test_no_plan_is_cut_off(round_: Instance, seed: int) -> None:
    """Whatever the prices; and no plan costs less than the bound with the cut says."""
    problem = compile_problem(round_)
    assume(weighted_costs(problem))
    try:
        cut, most = cut_at(problem, np.random.default_rng(seed))
    except Unsupported:
        reject()
    everything = Enumeration(problem)
    rows, values = everything.rows()
    for row in rows[:: max(1, len(rows) // 200)]:
        starts = [p for j, p in enumerate(everything.allocation(row)) if p and j not in problem.running]
        assert sum(int(cut.pays[start.option]) for start in starts) <= cut.most
    least = int(np.median(values))
    for busy in (None, most):
        relaxation = build_cost_relaxation(State(problem), weighted_costs(problem), least, cut=cut, most_busy=busy)
        solution = solve(relaxation.model, SolveOptions(time_limit_s=30, relax=True))
        assert solution.bound is not None
        assert solution.bound <= everything.costs(rows)[values >= least].min()


def test_gpus_beside_a_job_that_takes_all_cpu_stay_idle() -> None:
    """No job can make them busy: the bound counts them, on that node alone."""
    greedy_for_cpu, waiting = job("r", cpu_millicores=8000), [job(f"w{i}", cpu_millicores=1000) for i in range(6)]
    here = [running(greedy_for_cpu, [("n0", [0])])]
    policy = Policy(weights=Weights(communication=0, interference=0, fragmentation=1000))
    round_ = instance(
        2, [greedy_for_cpu, *waiting], machines=[machine(gpus=4, cpu_millicores=8000)], running=here, policy=policy
    )
    problem = compile_problem(round_)
    state, weighted, bundle_groups = State(problem), weighted_costs(problem), bundle_groups_of(problem)
    states = node_states_of(state, bundle_groups)
    most = most_busy(PatternPricing(bundle_groups, states, "down", lambda: None), bundle_groups, states)
    assert most[0] == 0
    assert most[1] >= 4
    everything = Enumeration(problem)
    rows, values = everything.rows()
    least = everything.costs(rows)[values == values.max()].min()
    bounds = [
        solve(
            build_cost_relaxation(state, weighted, int(values.max()), most_busy=busy).model,
            SolveOptions(time_limit_s=30, relax=True),
        ).bound
        for busy in (None, most)
    ]
    assert bounds[0] == 0
    assert bounds[1] == least > 0


def test_it_raises_the_bound_where_cpu_is_short(engine: Engine) -> None:
    """Jobs that cost less could not run in their place: patterns know, flows do not."""
    problem = compile_problem(generate("varied", jobs=600, nodes=60, gpus=4, seed=3))
    plan = engine.solve(problem.given, method="node-patterns", time_limit_s=60, deterministic=True)
    weighted, worth = weighted_costs(problem), plan.levels[0].objective
    bundle_groups, state = bundle_groups_of(problem), State(problem)
    states, job_groups = node_states_of(state, bundle_groups), job_groups_of(state, bundle_groups)
    without = solve(build_cost_relaxation(state, weighted, worth).model, SolveOptions(time_limit_s=30, relax=True))
    model = capacity_model(bundle_groups, states, job_groups)
    duals = solve(model, SolveOptions(time_limit_s=30, relax=True)).duals
    assert duals is not None
    price = capacity_prices(bundle_groups, job_groups, model, duals)
    best = PatternPricing(bundle_groups, states, "down", lambda: None).price(price, patterns=False)
    pays = problem.options.bundles * price[bundle_groups.of_option]
    cut = CapacityCut.of_prices(pays, best.pays, states.count, job_groups.scale)
    with_it = solve(
        build_cost_relaxation(state, weighted, worth, cut=cut).model, SolveOptions(time_limit_s=30, relax=True)
    )
    assert without.bound is not None
    assert with_it.bound is not None
    assert without.bound < with_it.bound <= plan.levels[1].objective
