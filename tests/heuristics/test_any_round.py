"""What every heuristic promises of any round: lawful, repeatable, and decided as if all nodes were looked at anew."""

import math
import time
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.plan_records import plan_of
from made_rounds import SPECS, generate
from placeopt import Instance, Policy, violations
from placeopt.build import instance, job, machine, node
from placeopt.heuristics import (
    CHOOSERS,
    SCORES,
    Candidates,
    Stranding,
    greedy,
    make_room,
    order_jobs,
    place,
    place_again,
    score_named,
)
from placeopt.problem import CPU, MEMORY, Allocation, IntArray, Placement, Problem, State, compile_problem
from placeopt.solving import METHODS
from placeopt.terms import cost, value, weighted_costs
from placeopt.terms.rules import fits
from strategies import make_round, rounds, seeded
from strategies.choice import Choice
from strategies.search_rounds import make_search_round

UNDRAWN = [name for name, spec in SCORES.items() if not spec.needs_seed]
OF_METHODS = {method.greedy.score for method in METHODS.values()}


def placed_again(problem: Problem, allocation: Allocation) -> Allocation:
    """Place three of all jobs again that have started."""
    jobs = [job for job, held in enumerate(allocation) if held is not None and job not in problem.running]
    return place_again(problem, allocation, jobs, weighted_costs(problem), 3, deadline=math.inf)[0]


HEURISTICS: dict[str, Callable[[Problem, IntArray], Allocation]] = {
    **{
        name: lambda p, o, name=name: greedy(p, o, name, seed=7).allocation for name in SCORES if name not in OF_METHODS
    },
    "room": lambda p, o: make_room(p, greedy(p, o).allocation, o),
    "again": lambda p, o: placed_again(p, greedy(p, o).allocation),
    "by class": lambda p, o: greedy(p, o, deadline=time.monotonic(), fill=True, grace_s=60.0).allocation,
}


@given(rounds())
def test_lawful_and_repeatable(round_: Instance) -> None:
    """Of what no method names (`properties/test_every_method.py`); what makes room never makes the plan worse."""
    problem = compile_problem(round_)
    order = order_jobs(problem, "fcfs")
    found = {name: run(problem, order) for name, run in HEURISTICS.items()}
    for name, allocation in found.items():
        assert violations(round_, plan_of(problem, allocation)) == [], name
        assert HEURISTICS[name](problem, order) == allocation, name
    first, weighted = greedy(problem, order).allocation, weighted_costs(problem)
    assert value(problem, found["room"]) >= value(problem, first)
    assert value(problem, found["again"]) >= value(problem, first)
    assert cost(problem, found["again"], weighted) + (found["again"] != first) <= cost(problem, first, weighted)


def assert_plain(problem: Problem, score: str, order: str = "value_density") -> None:
    """Greedy places every job as it does where nothing is remembered and every node is scored anew."""

    class Afresh:
        def __init__(self, state: State) -> None:
            self._state = state

        def place(self, job: int) -> Placement | None:
            return place(Candidates(self._state, score_named(score, problem)), job)

        def changed(self, node: int) -> None:
            pass

    jobs = order_jobs(problem, order)
    assert greedy(problem, jobs, score) == greedy(problem, jobs, chooser=Afresh)


@given(rounds(changes=False), st.sampled_from(UNDRAWN))
def test_nothing_remembered_changes_a_decision(round_: Instance, score: str) -> None:
    assert_plain(compile_problem(round_), score, "fcfs")


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize(("jobs", "nodes"), [(40, 3), (150, 80)])
@pytest.mark.parametrize("score", ["stranding", "close_fit"])
def test_nor_on_few_nodes_or_many(spec: str, jobs: int, nodes: int, score: str) -> None:
    assert_plain(compile_problem(generate(spec, jobs=jobs, nodes=nodes, gpus=8, seed=1)), score)


def uneven(seed: int) -> Problem:
    """Nodes of none, three, eight and nine GPUs, and jobs of shares that no float holds exactly."""
    rng = np.random.default_rng([11, seed])
    sizes = {"none": 0, "three": 3, "eight": 8, "nine": 9}
    nodes = [node(f"n{i:02}", str(rng.choice(list(sizes)))) for i in range(15)]
    jobs = []
    for i in range(120):
        gpus = int(rng.choice([0, 1, 1, 1, 1, 2, 3]))
        share = int(rng.choice([70, 130, 330, 410, 590, 1000])) if gpus == 1 else 1000
        needs = {"cpu_millicores": int(rng.integers(0, 12)) * 300, "memory_mib": int(rng.integers(0, 40)) * 700}
        jobs.append(job(f"j{i:03}", gpus=gpus, gpu_milli=share, workers=int(rng.choice([1, 1, 2])), **needs))
    machines = [machine(name, gpus=gpus) for name, gpus in sizes.items()]
    return compile_problem(instance(nodes, jobs, machines=machines, policy=Policy(share_mode="fraction")))


@pytest.mark.parametrize("seed", range(4))
def test_shares_that_no_float_holds_exactly(seed: int) -> None:
    """Shares of a GPU are added up in one order, to the last bit."""
    assert_plain(uneven(seed), "stranding")


def stranding_by_definition(state: State, means: Stranding, option: int, node: int) -> tuple[int, float]:
    """Bundles that a node has room for and, if any, its score (docs/heuristics.md), from plain numbers."""
    problem, o = state.problem, state.problem.options
    workers, gpus, share = (int(part[option]) for part in (o.bundle_workers, o.bundle_gpus, o.milli))
    here = range(int(problem.node_gpu_start[node]), int(problem.node_gpu_start[node + 1]))
    usable = [
        g
        for g in here
        if problem.gpu_ok(option)[g]
        and (state.gpu_free_milli[g] >= share or not problem.shares_bind)
        and (problem.jobs_per_gpu is None or state.gpu_jobs[g] < problem.jobs_per_gpu)
        and state.gpu_free_memory[g] >= o.gpu_memory_mib[option]
    ]
    needs = (workers * o.demand[option]).tolist()
    limits = [int(free) // need for free, need in zip(state.node_free[node], needs, strict=True) if need]
    limits += [int(o.bundles[option]), int(o.workers_per_node[option]) // workers]
    room = max(0, min([*limits, len(usable) // gpus] if gpus else limits)) if problem.node_ok(option)[node] else 0
    if not room:
        return 0, np.inf
    free = {g: max(int(state.gpu_free_milli[g]), 0) / 1000 for g in here}
    cpu, memory = int(state.node_free[node, CPU]), int(state.node_free[node, MEMORY])

    def stranded(idle: float, cpu: int, memory: int) -> float:
        beyond = (idle - cpu / means.cpu_per_gpu, idle - memory / means.memory_per_gpu)
        return sum(0.3 * float(np.logaddexp(0, x / 0.3)) for x in beyond)

    idle = sum(free.values())
    after = stranded(idle - gpus * share / 1000, cpu - needs[CPU], memory - needs[MEMORY])
    untouched, left = sum(part >= 1 for part in free.values()), 0.0
    if gpus and share < 1000:
        smallest = min(free[g] for g in usable)
        left, untouched = smallest - share / 1000, untouched - (smallest >= 1)
    else:
        untouched -= gpus
    return room, 3 * (after - stranded(idle, cpu, memory)) + left + 0.1 / 8 * untouched


def assert_scored(problem: Problem) -> None:
    """The room and the score of every node, of a cluster that greedy filled in part, are those of the definition."""
    state, means = State(problem), Stranding(problem)
    for j in order_jobs(problem, "fcfs")[::2].tolist():
        state = State(problem, greedy(problem, np.array([j]), start=state.allocation()).allocation)
    candidates = Candidates(state, means)
    for option in range(len(problem.options)):
        expected = [stranding_by_definition(state, means, option, n) for n in range(problem.num_nodes)]
        assert candidates.free_rooms(option).tolist() == [room for room, _ in expected]
        assert candidates.scores(option).tolist() == pytest.approx([score for _, score in expected])


@given(rounds(changes=False))
def test_room_and_stranding_by_their_definitions(round_: Instance) -> None:
    assert_scored(compile_problem(round_))


def test_room_and_stranding_of_uneven_nodes() -> None:
    assert_scored(uneven(0))


def places_on_one_node(state: State, job: int) -> list[Placement]:
    """Of a job that waits, the places on one node that every rule allows, found by trying all sets of GPUs."""
    problem, o = state.problem, state.problem.options
    return [
        placement
        for option in problem.options_of(job)
        if o.bundles[option] == 1
        for n in range(problem.num_nodes)
        for gpus in combinations(range(problem.first_gpu[n], problem.first_gpu[n + 1]), int(o.bundle_gpus[option]))
        if fits(state, job, placement := Placement(option, (n,) * int(o.bundle_workers[option]), gpus))
    ]


@pytest.mark.parametrize("chooser", [None, *CHOOSERS])
@pytest.mark.parametrize("make", [make_round, make_search_round])
def test_what_waits_has_no_place_on_one_node(make: Callable[[Choice], Instance], chooser: str | None) -> None:
    """Whatever binds it: what runs, holds, quotas of queues and of flavors, amounts of racks."""
    for seed in range(40):
        problem = compile_problem(make(seeded(f"waits {seed}")))
        found = greedy(problem, order_jobs(problem, "fcfs"), chooser=None if chooser is None else CHOOSERS[chooser])
        state = State(problem, found.allocation)
        for number, placement in enumerate(found.allocation):
            assert placement is not None or places_on_one_node(state, number) == [], (seed, problem.job_ids[number])
