"""The bound on the cost of large rounds, by hand; `properties/test_every_route.py` has every plan of small ones."""

import numpy as np
import pytest

from helpers.brute_force import Enumeration
from helpers.relaxations import relaxed, solved
from placeopt import Unsupported
from placeopt.build import instance, job, machine, node, running
from placeopt.formulations import build_capacity_relaxation
from placeopt.formulations.cost_relaxation import (
    CostRelaxation,
    build_cost_relaxation,
    make_job_set_model,
    with_whole_jobs,
)
from placeopt.model import Changes, Communication, Domain, Instance, Job, Policy, Split, Weights
from placeopt.problem import Placement, State, compile_problem
from placeopt.solvers import Solution, dual_bound
from placeopt.terms import value, weighted_costs


def bound_of(round_: Instance, least: int) -> int:
    """Return what the relaxation proves of plans worth ``least`` or more."""
    problem = compile_problem(round_)
    state = State(problem)
    capacity, held = build_capacity_relaxation(state), value(problem, state.allocation())
    relaxation = build_cost_relaxation(state, weighted_costs(problem), least)
    solution = relaxed(relaxation.model)
    found, duals = [solution.bound], duals_of(solution, relaxation)
    for _ in range(3):
        whole = with_whole_jobs(relaxation, duals)
        found.append(dual_bound(whole.model, whole.multipliers))
        if problem.shares_bind and relaxation.value_rows:
            job_set = make_job_set_model(relaxation, whole, capacity, least - held)
            relaxation, whole = job_set.bound_with(relaxation, solved(job_set.model).bound)
            found.append(dual_bound(whole.model, whole.multipliers))
        duals = duals_of(relaxed(whole.raised_costs), relaxation)
    whole = with_whole_jobs(relaxation, duals + np.random.default_rng(least).normal(0, 100, len(duals)))
    return max(*found, dual_bound(whole.model, whole.multipliers))  # any prices prove something that holds


def duals_of(solution: Solution, relaxation: CostRelaxation) -> np.ndarray:
    return np.zeros(relaxation.model.num_rows) if solution.duals is None else solution.duals


def cost_policy(**weights: int) -> Policy:
    """Return the policy with these weights and no others."""
    return Policy(weights=Weights(**{"communication": 0, "interference": 0, "fragmentation": 0, **weights}))


def racked(of_rack: int, nodes: int, jobs: list[Job], **fields: object) -> Instance:
    """Return a round on racks of so many nodes each, where paths alone cost."""
    domains = tuple(Domain(id=f"r{i}") for i in range(-(-nodes // of_rack)))
    lying = tuple(node(f"n{i}", domain=f"r{i // of_rack}") for i in range(nodes))
    return instance(lying, jobs, domains=domains, policy=cost_policy(communication=1000), **fields)


def test_a_node_beside_a_domain_is_inside_what_holds_both() -> None:
    """A gang over a node of an inner rack and one that stands in the outer rack itself never leaves the outer one."""
    racks = (Domain(id="outer", level="zone"), Domain(id="inner", parent="outer"))
    nodes = (node("n0", domain="inner"), node("n1", domain="outer"))
    gang = job("gang", workers=6, gpus=1, value=9, communication=Communication(weight=1))
    round_ = instance(nodes, [gang], domains=racks, policy=cost_policy(communication=1000))
    best, least, _ = Enumeration(compile_problem(round_)).best()
    assert best == 9
    assert 0 < bound_of(round_, 9) <= least


def test_a_gang_by_hand() -> None:
    """Four workers of two GPUs in two racks of two nodes, one of them busy: 2 + 2 + 2 in one rack is too few."""
    busy, gang = job("busy", gpus=2), job("gang", workers=4, gpus=2, value=9, communication=Communication(weight=3))
    round_ = racked(2, 4, [busy, gang], running=[running(busy, [("n3", [0, 1])])])
    problem = compile_problem(round_)
    (weighted,), everything = weighted_costs(problem), Enumeration(problem)
    plans = map(everything.allocation, everything.rows()[0])
    least = weighted.weight * min(weighted.cost.score(problem, plan) for plan in plans if plan[1] is not None)
    assert least * 9 // 10 <= bound_of(round_, 9) <= least
    assert bound_of(round_, 0) == 0


def test_halves_in_two_racks_cost_what_they_must() -> None:
    """Four workers find room in one rack, and may not lie there."""
    fields = {"workers": 4, "value": 5, "communication": Communication(weight=1)}
    free, split = (
        racked(4, 8, [job("gang", **fields, **lies)], machines=[machine(gpus=1)])
        for lies in ({}, {"splits": (Split(level="rack", domains=2, workers=2),)})
    )
    assert bound_of(free, 5) < bound_of(split, 5) == Enumeration(compile_problem(split)).best()[1]


def test_whole_jobs_lie_in_parts() -> None:
    """Sixteen workers in racks of seven: seven, seven and two, and not sixteen sevenths of seven."""
    gang = job("gang", workers=16, value=5, communication=Communication(weight=3))
    round_ = racked(7, 28, [gang], machines=[machine(gpus=1)])
    problem = compile_problem(round_)
    (weighted,), at = weighted_costs(problem), tuple(range(16))
    least = weighted.weight * weighted.cost.score(problem, (Placement(0, at, at),))
    flows = relaxed(build_cost_relaxation(State(problem), (weighted,), 5).model).bound
    assert max(flows, least - 100) < bound_of(round_, 5) <= least


def test_free_gpus_of_used_domains() -> None:
    """Eight GPUs on two nodes, one busy: a job of one GPU leaves two free beside it, or opens the other node."""
    busy, small = job("busy"), job("small", value=4)
    runs = [running(busy, [("n0", [0])])]
    round_ = instance(2, [busy, small], running=runs, policy=cost_policy(fragmentation=1000))
    assert bound_of(round_, 4) == Enumeration(compile_problem(round_)).best()[1]


def test_running_jobs_that_may_be_changed_are_refused() -> None:
    """Their cost is not fixed."""
    here = job("here")
    policy = Policy(changes=Changes(preemptions_max=1))
    runs = [running(here, [("n0", [0])], preemptible=True)]
    problem = compile_problem(instance(1, [here], running=runs, policy=policy))
    with pytest.raises(Unsupported, match="stay as they are"):
        build_cost_relaxation(State(problem), weighted_costs(problem), 0)


def test_sets_of_jobs_that_reach_the_value() -> None:
    """Of gangs worth 4 and 3 that cost 4 and 1 a bundle, value 4 needs the dear one; a price of value allows 4 / 3."""
    gangs = [
        job(name, workers=4, gpus=1, value=worth, communication=Communication(weight=weight))
        for name, worth, weight in (("dear", 4, 4), ("cheap", 3, 1), ("other", 3, 1))
    ]
    problem = compile_problem(instance(6, gangs, machines=[machine(gpus=1)], policy=cost_policy(communication=1000)))
    state = State(problem)
    relaxation = build_cost_relaxation(state, weighted_costs(problem), 4)
    whole = with_whole_jobs(relaxation, relaxed(relaxation.model).duals)
    job_set = make_job_set_model(relaxation, whole, build_capacity_relaxation(state), 4)
    cut = job_set.bound_with(relaxation, solved(job_set.model).bound)[1]
    best, least, _ = Enumeration(problem).best()
    assert best == 4
    assert dual_bound(whole.model, whole.multipliers) < least * 3 // 4
    assert least * 999 // 1000 <= dual_bound(cut.model, cut.multipliers) <= least
