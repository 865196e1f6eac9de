"""What greedy keeps and computes node by node changes no decision: it places as if it scored all nodes every time."""

import numpy as np
import pytest

from helpers.plain_greedy import plain_chooser
from helpers.small_rounds import random_round
from placeopt.build import instance, job, machine, node
from placeopt.generators import SPECS, generate
from placeopt.heuristics import SCORES, Candidates, candidates, greedy, narrow_rows, order_jobs, score_named
from placeopt.model import Instance, Policy
from placeopt.problem import Move, Problem, State, compile_problem

LIMITS = [(0, 32, 0), (4, 4, 8), (1000, 32, 64)]
"""Nodes scored one at a time, the part of the nodes that is looked for among all, rows taken by column."""


@pytest.fixture(params=LIMITS, ids=["arrays", "both", "single"])
def limits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one way of scoring gives way to the other."""
    few, many, rows = request.param
    monkeypatch.setattr(candidates, "FEW_NODES", few)
    monkeypatch.setattr(candidates, "MANY_CHANGES", many)
    monkeypatch.setattr(narrow_rows, "MANY_ROWS", rows)


def odd_round(seed: int) -> Instance:
    """Nodes of none, three, eight and nine GPUs; shares that no float holds exactly."""
    rng = np.random.default_rng([11, seed])
    sizes = {"none": 0, "three": 3, "eight": 8, "nine": 9}
    machines = [machine(name, gpus=gpus, cpu_millicores=32_000) for name, gpus in sizes.items()]
    nodes = [node(f"n{i:02}", str(rng.choice(list(sizes)))) for i in range(15)]
    jobs = []
    for i in range(120):
        gpus = int(rng.choice([0, 1, 1, 1, 1, 2, 3]))
        share = int(rng.choice([70, 130, 330, 410, 590, 1000])) if gpus == 1 else 1000
        needs = {"cpu_millicores": int(rng.integers(0, 12)) * 300, "memory_mib": int(rng.integers(0, 40)) * 700}
        jobs.append(job(f"j{i:03}", gpus=gpus, gpu_milli=share, workers=int(rng.choice([1, 1, 2])), **needs))
    return instance(nodes, jobs, machines=machines, policy=Policy(share_mode="fraction"))


def assert_same(problem: Problem, score: str, order: str = "value_density") -> None:
    """Greedy and plain greedy place every job alike."""
    jobs = order_jobs(problem, order)
    plain = greedy(problem, jobs, chooser=plain_chooser(score))
    assert greedy(problem, jobs, score) == plain


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("order", ["value_density", "fcfs"])
@pytest.mark.usefixtures("limits")
def test_generated_rounds(spec: str, order: str) -> None:
    """Every family of rounds, by the score that large rounds are placed with."""
    for seed in range(2):
        assert_same(compile_problem(generate(spec, jobs=100, nodes=25, gpus=8, seed=seed)), "stranding", order)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.usefixtures("limits")
def test_odd_nodes_and_shares(seed: int) -> None:
    """The order in which shares of a GPU are added up is that of the arrays, to the last bit."""
    assert_same(compile_problem(odd_round(seed)), "stranding")


@pytest.mark.parametrize("score", [name for name, spec in SCORES.items() if not spec.needs_seed])
def test_every_score(score: str) -> None:
    """On random rounds with every feature, and on generated ones."""
    for seed in range(15):
        assert_same(compile_problem(random_round(np.random.default_rng([12, seed]))), score, "fcfs")
    for spec in ("varied", "gangs"):
        assert_same(compile_problem(generate(spec, jobs=40, nodes=10, gpus=4, seed=3)), score)


@pytest.mark.parametrize("seed", range(6))
def test_single_nodes_score_as_arrays_do(seed: int) -> None:
    """The very same numbers, on nodes as greedy leaves them half way, and after jobs were taken away."""
    problem = compile_problem(odd_round(seed))
    state = State(problem)
    kept = Candidates(state, score_named("stranding", problem))
    for option in range(len(problem.options)):
        kept.scores(option)
    rng, placed = np.random.default_rng(seed), greedy(problem, order_jobs(problem, "fcfs")).allocation
    for one in rng.permutation(problem.num_jobs).tolist():
        kept.apply(Move(one, placed[one]))
        if rng.random() < 0.2:
            kept.apply(Move(one, None))
        option = int(rng.integers(len(problem.options)))
        fresh = Candidates(state, score_named("stranding", problem))
        assert kept.scores(option).tolist() == fresh.scores(option).tolist()
        assert kept.free_rooms(option).tolist() == fresh.free_rooms(option).tolist()
