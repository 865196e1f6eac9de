"""What is allowed: ``fits`` by hand where the books work numbers out, and against the referee everywhere else."""

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from numpy.random import Generator

from helpers.plan_records import plan_of
from placeopt.build import instance, job, machine, node
from placeopt.check import violations
from placeopt.model import Domain, Instance, Policy, Queue, Quota, Split, Usable
from placeopt.problem import Move, Placement, Problem, State, compile_problem
from placeopt.terms.rules import RULES, fits
from strategies import rounds


@pytest.mark.parametrize(("mbps", "allowed"), [(750, True), (751, False)])
def test_an_uplink_by_hand(mbps: int, allowed: bool) -> None:
    """Three workers in rack r0 and one in r1: min(3, 1) = 1 worker's worth on uplinks of 1000, of which 75 % usable."""
    domains = (Domain(id="r0", uplink_mbps=1000), Domain(id="r1", uplink_mbps=1000))
    nodes = (node("n0", domain="r0"), node("n1", domain="r1"))
    problem = compile_problem(instance(nodes, [job("a", workers=4, network_bandwidth_mbps=mbps)], domains=domains))
    state = State(problem)
    assert fits(state, 0, Placement(0, (0, 0, 0, 1), (0, 1, 2, 4))) is allowed
    assert not fits(state, 0, Placement(0, (0, 0, 1, 1), (0, 1, 4, 5)))  # min(2, 2) = 2: 1500
    assert fits(state, 0, Placement(0, (0, 0, 0, 0), (0, 1, 2, 3)))  # all in a rack: nothing leaves it


def test_cpu_jobs_have_a_part_of_the_uplink_to_themselves() -> None:
    """SODA V-E: 75 % for GPU jobs, 25 % for CPU jobs; neither takes from the other."""
    jobs = [job("gpu", workers=2, network_bandwidth_mbps=75), job("cpu", workers=2, gpus=0, network_bandwidth_mbps=25)]
    problem = compile_problem(instance(2, jobs, machines=[machine(network_bandwidth_mbps=100)]))
    state = State(problem)
    state.apply(Move(0, Placement(0, (0, 1), (0, 4))))
    assert fits(state, 1, Placement(1, (0, 1), ()))


def test_splits_by_hand() -> None:
    """Four workers, two in each of two racks, each rack's two on one node or on two."""
    nodes = [node(f"n{i}", domain=f"r{i // 2}") for i in range(4)] + [node("out")]
    split = Split(level="rack", domains=2, workers=2)
    problem = compile_problem(
        instance(nodes, [job("a", workers=4, gpus=0, splits=(split,))], domains=[Domain(id="r0"), Domain(id="r1")])
    )
    state = State(problem)
    assert fits(state, 0, Placement(0, (0, 1, 2, 2), ()))
    assert not fits(state, 0, Placement(0, (0, 0, 1, 2), ()))
    assert not fits(state, 0, Placement(0, (0, 0, 1, 1), ()))
    assert not fits(state, 0, Placement(0, (0, 0, 2, 4), ()))
    assert not fits(state, 0, Placement(0, (0, 0, 4, 4), ()))  # no rack is no second rack


def test_a_queue_may_hold_its_quota_and_what_it_borrows() -> None:
    """2000 + 500 of GPU share: two whole GPUs and one half."""
    policy = Policy(queues=(Queue(id="q", quota=Quota(gpu_milli=2000), borrow=Quota(gpu_milli=500)),))
    jobs = [job("a", gpus=2, queue="q"), job("half", gpu_milli=500, queue="q"), job("more", gpu_milli=501, queue="q")]
    problem = compile_problem(instance(1, jobs, policy=policy))
    state = State(problem)
    state.apply(Move(0, Placement(0, (0,), (0, 1))))
    assert fits(state, 1, Placement(1, (0,), (2,)))
    assert not fits(state, 2, Placement(2, (0,), (2,)))


def test_an_unknown_uplink_is_no_limit_even_where_nothing_of_a_link_is_usable() -> None:
    """0 % of unlimited once came out as 0, so ``fits`` refused what formulations and referee allow."""
    policy = Policy(usable=Usable(network_cpu_jobs_percent=0))
    spread = job("a", workers=2, gpus=0, network_bandwidth_mbps=1)
    for mbps, allowed in ((None, True), (1000, False)):
        machines = [machine(network_bandwidth_mbps=mbps)]
        problem = compile_problem(instance(2, [spread], machines=machines, policy=policy))
        assert fits(State(problem), 0, Placement(0, (0, 1), ())) is allowed


@given(round_=rounds(minima=False), seed=st.integers(0, 2**32 - 1))
def test_fits_agrees_with_the_referee(round_: Instance, seed: int) -> None:
    """
    Both directions: what fits breaks no rule, and what does not fit breaks one. They share no line of code.

    Without minimal utilities, which `audit` judges.
    """
    rng = np.random.default_rng(seed)
    problem = compile_problem(round_)
    state = State(problem)
    for _ in range(20 * problem.num_jobs):
        job = int(rng.integers(problem.num_jobs))
        if state.placements[job] is not None:
            continue
        placement = anywhere(problem, job, rng)
        if placement is None:
            continue
        allocation = list(state.allocation())
        allocation[job] = placement
        found = violations(problem.instance, plan_of(problem, tuple(allocation)))
        refusing = [type(rule).__name__ for rule in RULES if not rule.fits(state, job, placement)]
        assert bool(refusing) == bool(found), (placement, refusing, [str(v) for v in found])
        assert fits(state, job, placement) == (not refusing)
        event("refused" if refusing else "fits")
        if not refusing and rng.random() < 0.6:
            state.apply(Move(job, placement))


def anywhere(problem: Problem, job: int, rng: Generator) -> Placement | None:
    """Some placement of the job, mostly near to what is allowed; now and then it holds a GPU twice."""
    options = problem.options_of(job)
    if not len(options):
        return None
    option = int(rng.choice(options))
    workers, gpus = int(problem.options.workers[option]), int(problem.options.gpus[option])
    nodes = rng.integers(problem.num_nodes, size=1 if rng.random() < 0.4 else workers)
    nodes = np.resize(nodes, workers)
    held: list[int] = []
    for n in nodes:
        here = np.arange(problem.node_gpu_start[n], problem.node_gpu_start[n + 1])
        left = here if rng.random() < 0.03 else np.setdiff1d(here, held)
        if len(left) < gpus:
            return None
        held.extend(int(gpu) for gpu in rng.choice(left, size=gpus, replace=False))
    return Placement(option, tuple(int(n) for n in nodes), tuple(held))
