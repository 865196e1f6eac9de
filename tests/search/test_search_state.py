"""The state of the local search: value and cost by differences are those of the objective, whatever was done before."""

import random
from collections.abc import Iterator

from helpers.brute_force import placements
from helpers.search_checks import standing
from placeopt import build, search
from placeopt.generators import generate
from placeopt.model import Domain
from placeopt.problem import Placement, Problem, compile_problem
from placeopt.problem import State as ProblemState
from placeopt.terms import Weighted, cost, value, weighted_costs
from placeopt.terms.rules import fits
from strategies.choice import seeded
from strategies.rounds import make_round

ROUNDS, STEPS = 120, 25


def covered_rounds(count: int) -> Iterator[tuple[int, Problem, tuple[Weighted, ...]]]:
    """Yield seeds and rounds that the local search handles, at least half of those asked for."""
    found = 0
    for seed in range(3 * count):
        problem = compile_problem(make_round(seeded(f"state {seed}"), minima=False))
        weighted = weighted_costs(problem)
        if search.what_is_missing(problem, weighted) is None and search.what_is_judged(problem, weighted) is None:
            found += 1
            yield seed, problem, weighted
        if found == count:
            return
    assert found > count / 2


def test_differences_are_the_objective() -> None:
    """Jobs are placed where rules allow it and taken away in any order; what is free is compared, too."""
    compared = 0
    for seed, problem, weighted in covered_rounds(ROUNDS):
        rng = random.Random(seed)
        other = ProblemState(problem)
        state = search.state_of(problem, weighted, other.allocation())
        waiting = [job for job in range(problem.num_jobs) if job not in problem.running]
        held: dict[int, Placement] = {}
        for _ in range(STEPS if waiting else 0):
            job = rng.choice(waiting)
            if job in held:
                search.take_away(state, job)
                other.take(job, held[job], -1)
                del held[job]
                other.placements[job] = None
            else:
                ways = [way for way in placements(problem, job) if fits(fresh(problem, held), job, way)]
                if not ways:
                    continue
                held[job] = rng.choice(ways)
                search.put(state, problem, job, held[job])
                other.place(job, held[job])
            allocation = tuple(other.placements)
            expected = value(problem, allocation), cost(problem, allocation, weighted)
            assert (state.value, state.cost) == expected, seed
            for n in range(problem.num_nodes):
                assert [state.node_free[n, r] for r in range(state.resources)] == other.node_free[n].tolist()
            for g in range(problem.num_gpus):
                assert state.gpu_jobs[g] == other.gpu_jobs[g]
            for link in range(len(problem.link_mbps)):
                assert [state.link_load[link, side] for side in (0, 1)] == other.link_load[link].tolist()
            compared += 1
        assert alike(problem, standing(state, problem, other.allocation()), other.allocation())
    assert compared > ROUNDS


def fresh(problem: Problem, held: dict[int, Placement]) -> ProblemState:
    """Return a state with the running jobs and ``held``."""
    state = ProblemState(problem)
    for job, placement in held.items():
        state.place(job, placement)
    return state


def alike(problem: Problem, one: tuple[Placement | None, ...], other: tuple[Placement | None, ...]) -> bool:
    """Return whether two allocations are equal but for the order of workers."""

    def plain(held: Placement | None) -> object:
        return held and (held.option, sorted(held.nodes), sorted(held.gpus))

    return [plain(held) for held in one] == [plain(held) for held in other]


def test_what_a_node_takes_is_what_rules_allow() -> None:
    """Of every placement on one node, beside what runs: resources, GPUs and uplinks as the rules say."""
    seen = set()
    for _, problem, weighted in covered_rounds(ROUNDS):
        base = ProblemState(problem)
        state = search.state_of(problem, weighted, base.allocation())
        for job in set(range(problem.num_jobs)) - set(problem.running):
            for way in placements(problem, job):
                if len(set(way.nodes)) == 1:
                    node, first = way.nodes[0], problem.first_gpu[way.nodes[0]]
                    mask = sum(1 << gpu - first for gpu in way.gpus)
                    open_to = search.open_gpus(state, node, way.option)
                    mine = search.has_room(state, node, way.option, len(way.nodes)) and not mask & ~open_to
                    allowed = fits(base, job, way)
                    assert mine >= allowed
                    if not problem.options.splits[way.option]:
                        assert mine == (allowed or len(way.nodes) > problem.options.workers_per_node[way.option])
                    seen.add(allowed)
    assert seen == {True, False}


def test_what_has_no_differences_is_named() -> None:
    """Some random round is judged for each of these."""
    named = set()
    for seed in range(300):
        problem = compile_problem(make_round(seeded(f"named {seed}")))
        judged = search.what_is_judged(problem, weighted_costs(problem))
        if judged is not None:
            named |= {type(rule).__name__ for rule in judged.rules} | {type(w.cost).__name__ for w in judged.weighted}
            named |= {f"edges in {type(w.cost).__name__}" for w in judged.paths}
    rules = {"Spread", "MinimalUtility"}
    assert named >= rules | {"HorusCost", "Fgd", "Interference", "edges in Communication"}


def test_nodes_of_more_gpus_than_bits_are_named() -> None:
    """A set of 63 GPUs has no room for a bit more in a signed integer of 64 bits."""
    for gpus, reason in ((62, None), (63, "nodes of more than 62 GPUs")):
        problem = compile_problem(generate("uniform", jobs=1, nodes=1, gpus=gpus, seed=1))
        assert search.what_is_missing(problem, weighted_costs(problem)) == reason


def test_a_node_outside_of_all_racks_leaves_others_inside() -> None:
    """Fragmentation of racks counts on nodes of the same machine that lie in one."""
    machines = [build.machine("m", gpus=4)]
    nodes = [build.node("apart", "m"), build.node("inside", "m", domain="r")]
    round_ = build.instance(nodes, [build.job("j", gpus=2)], machines=machines, domains=[Domain(id="r")])
    problem = compile_problem(round_)
    weighted = weighted_costs(problem)
    for way in placements(problem, 0):
        state = search.state_of(problem, weighted, (None,))
        search.put(state, problem, 0, way)
        assert state.cost == cost(problem, (way,), weighted)
