"""The cut by prices of patterns: against every plan of small rounds, and what it adds to the bound on cost."""

import numpy as np
import pytest

from helpers.brute_force import Enumeration
from helpers.small_rounds import random_round
from placeopt import Engine, generate
from placeopt.errors import Unsupported
from placeopt.formulations.capacity_cut import CapacityCut
from placeopt.formulations.cost_relaxation import build_cost_relaxation
from placeopt.formulations.node_patterns import (
    PatternPricing,
    bundle_groups_of,
    capacity_model,
    capacity_prices,
    job_groups_of,
    node_states_of,
)
from placeopt.problem import Problem, State, compile_problem
from placeopt.solvers.highs import solve
from placeopt.solvers.result import SolveOptions
from placeopt.terms.objective import weighted_costs


def cut_at(problem: Problem, rng: np.random.Generator) -> CapacityCut:
    """Return the cut at prices drawn at random."""
    state, bundle_groups = State(problem), bundle_groups_of(problem)
    states, job_groups = node_states_of(state, bundle_groups), job_groups_of(state, bundle_groups)
    pricing = PatternPricing(bundle_groups, states, "down", lambda: None)
    price = rng.integers(0, 3 * job_groups.scale, len(bundle_groups))
    price[pricing.free_of_charge] = 0
    best = pricing.price(price, patterns=False)
    pays = problem.options.bundles * price[bundle_groups.of_option]
    return CapacityCut.of_prices(pays, best.pays, states.count, job_groups.scale)


@pytest.mark.parametrize("first", range(0, 160, 40))
def test_no_plan_is_cut_off(first: int) -> None:
    """Whatever the prices; and no plan costs less than the bound with the cut says."""
    tight = looked = 0
    for number in range(first, first + 40):
        rng = np.random.default_rng(61_000 + number)
        problem = compile_problem(random_round(rng))
        if problem.changeable or not weighted_costs(problem):
            continue
        try:
            cut = cut_at(problem, rng)
        except Unsupported:
            continue
        everything = Enumeration(problem)
        rows, values = everything.rows()
        paid = [
            sum(
                int(cut.pays[p.option])
                for j, p in enumerate(everything.allocation(row))
                if p and j not in problem.running
            )
            for row in rows[:: max(1, len(rows) // 200)]
        ]
        assert max(paid) <= cut.most, number
        tight += max(paid) == cut.most
        least = int(np.median(values))
        relaxation = build_cost_relaxation(State(problem), weighted_costs(problem), least, cut=cut)
        solution = solve(relaxation.model, SolveOptions(time_limit_s=30, relax=True))
        assert solution.bound is not None
        assert solution.bound <= everything.costs(rows)[values >= least].min(), number
        looked += 1
    assert looked >= 8
    assert tight


def test_it_raises_the_bound_where_cpu_is_short() -> None:
    """Jobs that cost less could not run in their place: patterns know, flows do not."""
    problem = compile_problem(generate("varied", jobs=600, nodes=60, gpus=4, seed=3))
    with Engine() as engine:
        plan = engine.solve(problem.given, method="patterns", time_limit_s=60, deterministic=True)
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
