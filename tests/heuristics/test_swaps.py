"""Swaps of bundles between nodes: the same jobs, every rule, less cost."""

import numpy as np
import pytest

from helpers.small_rounds import random_round
from placeopt.build import instance, job, machine, node
from placeopt.heuristics.swaps import gathered
from placeopt.model import Communication, Domain
from placeopt.problem import Placement, Problem, State, compile_problem
from placeopt.terms.objective import cost, value, weighted_costs
from placeopt.terms.rules import fits


def test_two_gangs_change_places() -> None:
    """Each has a worker in either rack, and both racks are full: in the end each has a rack."""
    gangs = [job(name, workers=2, gpus=2, communication=Communication(weight=1)) for name in "ab"]
    nodes = [node(f"n{i}", domain=f"r{i // 2}") for i in range(4)]
    round_ = instance(nodes, gangs, machines=[machine(gpus=2)], domains=[Domain(id="r0"), Domain(id="r1")])
    problem, o = compile_problem(round_), 0
    first, second = problem.options_of(0)[o], problem.options_of(1)[o]
    apart = (Placement(first, (0, 2), (0, 1, 4, 5)), Placement(second, (1, 3), (2, 3, 6, 7)))
    weighted = weighted_costs(problem)
    after = gathered(problem, apart, weighted)
    assert sorted(sorted(p.nodes) for p in after if p is not None) == [[0, 1], [2, 3]]
    assert cost(problem, after, weighted) < cost(problem, apart, weighted)
    assert gathered(problem, apart, weighted, lambda: True) == apart


@pytest.mark.parametrize("first", range(0, 120, 40))
def test_rules_and_value_are_kept(first: int) -> None:
    """On random rounds, from random plans: no more cost, the same jobs and options, running jobs as they are."""
    for number in range(first, first + 40):
        rng = np.random.default_rng(90_000 + number)
        problem = compile_problem(random_round(rng))
        if problem.changeable:
            continue
        state = State(problem)
        for j in rng.permutation(problem.num_jobs).tolist():
            for _ in range(20 if state.placements[j] is None and problem.options_of(j) else 0):
                option = int(rng.choice(problem.options_of(j)))
                found = _drawn(problem, option, rng)
                if found is not None and fits(state, j, found):
                    state.place(j, found)
                    break
        before, weighted = state.allocation(), weighted_costs(problem)
        after = gathered(problem, before, weighted)
        assert [p and p.option for p in after] == [p and p.option for p in before], number
        assert all(after[j] == before[j] for j in problem.running), number
        assert value(problem, after) == value(problem, before), number
        assert cost(problem, after, weighted) <= cost(problem, before, weighted), number
        rest = State(problem)
        for j, placement in enumerate(after):
            if placement is not None and j not in problem.running:
                assert fits(rest, j, placement), number
                rest.place(j, placement)


def _drawn(problem: Problem, option: int, rng: np.random.Generator) -> Placement | None:
    """Draw nodes and GPUs for a job; None where a node has too few."""
    options = problem.options
    workers, gpus = int(options.workers[option]), int(options.gpus[option])
    nodes = rng.integers(0, problem.num_nodes, workers).tolist()
    if options.bundles[option] == 1:
        nodes = nodes[:1] * workers
    held: list[int] = []
    for n in nodes:
        here = [g for g in range(problem.first_gpu[n], problem.first_gpu[n + 1]) if g not in held]
        if len(here) < gpus:
            return None
        held.extend(rng.choice(here, gpus, replace=False).tolist() if gpus else [])
    return Placement(option, tuple(nodes), tuple(held))
