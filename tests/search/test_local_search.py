"""The local search: plans are lawful, and worth and cost what it says; small rounds end at their optimum."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from helpers.brute_force import optimum
from helpers.night import nightly
from helpers.plan_records import plan_of
from helpers.relation_oracle import RelationOracle
from helpers.tree_oracle import TreeOracle
from placeopt import violations
from placeopt.generators import generate
from placeopt.model import Instance
from placeopt.problem import Allocation, Problem, compile_problem
from placeopt.search import LocalSearch, what_is_judged, what_is_missing
from placeopt.terms import cost, value, weighted_costs
from placeopt.terms.rules import without_broken
from strategies.choice import Choice, seeded
from strategies.relation_rounds import make_relation_round
from strategies.rounds import make_gang_round, make_round
from strategies.tree_rounds import make_tree_round

PLAIN = "nothing is judged"
KINDS: dict[str, Callable[[Choice], Instance]] = {
    PLAIN: lambda choice: make_round(choice, minima=False, changes=False),
    "any": lambda choice: make_round(choice, changes=False),
    "changes": make_round,
    "gangs": make_gang_round,
    "relations": make_relation_round,
    "running relations": lambda choice: make_relation_round(choice, running=True),
    "trees": make_tree_round,
    "running trees": lambda choice: make_tree_round(choice, running=True),
}
"""Rounds small enough for brute force. The state has differences of what is `PLAIN`; of the others a part is judged."""
ROUNDS, STEPS = 30, 120


@cache
def rounds_of(kind: str) -> list[tuple[int, Instance, Problem]]:
    """Rounds of a kind that the search handles, with their seeds."""
    found = []
    for seed in range(4 * ROUNDS):
        round_ = KINDS[kind](seeded(f"judged {seed}"))
        problem = compile_problem(round_)
        weighted = weighted_costs(problem)
        is_plain = what_is_judged(problem, weighted) is None
        if is_plain == (kind == PLAIN) and what_is_missing(problem, weighted) is None:
            found.append((seed, round_, problem))
    assert len(found) > ROUNDS // 2
    return found[:ROUNDS]


def running_alone(problem: Problem) -> Allocation:
    """The running jobs where they are, and nothing else."""
    return tuple(problem.running.get(job) for job in range(problem.num_jobs))


def searched(problem: Problem, seed: int, steps: int = STEPS) -> LocalSearch:
    """A search from what runs, after some steps."""
    search = LocalSearch(problem, running_alone(problem), weighted_costs(problem), seed=seed)
    for _ in range(10):
        search.advance(steps // 10)
    return search


def figures(problem: Problem, allocation: Allocation) -> tuple[int, int]:
    """Value and cost by the objective."""
    return value(problem, allocation), cost(problem, allocation, weighted_costs(problem))


@pytest.mark.parametrize("kind", KINDS)
def test_plans_are_lawful_and_cost_what_is_said(kind: str) -> None:
    """Value and cost are those of the objective, and no rule has anything to take out."""
    for seed, _, problem in rounds_of(kind):
        search = searched(problem, seed)
        allocation = search.allocation()
        worth = sum(int(problem.options.value[held.option]) for held in allocation if held is not None)
        assert (search.value, search.cost) == (worth, figures(problem, allocation)[1]), seed
        assert without_broken(problem, allocation) == allocation, seed


@pytest.mark.parametrize("kind", nightly(KINDS, "any", "trees", "relations"))
def test_nodes_of_more_gpus_than_a_set_holds(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each search sees some GPUs of a node, beside each other; jobs on others stay, and cost what they cost."""
    monkeypatch.setattr("placeopt.search.hardware.MOST_GPUS", 1)
    stayed = 0
    for seed, _, problem in rounds_of(kind):
        weighted = weighted_costs(problem)
        if not np.diff(problem.node_gpu_start).max() > 1:
            continue
        before = running_alone(problem)
        for turn in range(3):
            search = LocalSearch(problem, before, weighted, seed=seed + turn)
            search.advance(STEPS)
            allocation = search.allocation()
            assert search.cost == cost(problem, allocation, weighted), (seed, turn)
            assert without_broken(problem, allocation) == allocation, (seed, turn)
            assert figures(problem, allocation)[0] >= figures(problem, before)[0], (seed, turn)
            stays = [job for job in range(problem.num_jobs) if search.state.fixed[job] and before[job] is not None]
            assert [allocation[job] for job in stays] == [before[job] for job in stays]
            stayed += len(stays)
            before = allocation
    assert stayed


@pytest.mark.parametrize("kind", ["relations", "trees"])
def test_the_best_value_is_found(kind: str) -> None:
    """In nearly all rounds of up to four jobs that must be near, apart, or together; trees have one option each."""
    missed = []
    for seed, round_, problem in rounds_of(kind):
        if any(len(tree.forms) > 1 for tree in problem.trees):
            continue
        best, _ = (TreeOracle(round_) if kind == "trees" else RelationOracle(round_)).best()
        found = searched(problem, seed, 300).value
        assert found <= best, seed
        if found < best:
            missed.append(seed)
    assert len(missed) <= 2, missed


@pytest.mark.parametrize(("kind", "most"), [(PLAIN, 2), ("any", 4)])
def test_small_rounds_end_at_their_optimum(kind: str, most: int) -> None:
    """
    Never above it, and nearly always at it: each move can reach every plan of so few jobs.

    Any round: queues, several splits, minimal utilities and every form of the costs.
    """
    missed = []
    for seed, _, problem in rounds_of(kind):
        search = searched(problem, seed, 300)
        best = optimum(problem)[:2]
        assert (search.value, -search.cost) <= (best[0], -best[1])
        if (search.value, search.cost) != best:
            missed.append(seed)
    assert len(missed) <= most, missed


LARGER = [
    generate("uniform", jobs=30, nodes=6, gpus=8, seed=1),
    generate("gangs", jobs=30, nodes=6, gpus=8, seed=2),
    generate("fractions", jobs=30, nodes=6, gpus=4, seed=3),
    generate("uniform", jobs=12, nodes=3, gpus=16, seed=4),
    generate("uniform", jobs=90, nodes=2, gpus=64, seed=5),
]


@pytest.mark.parametrize("instance", LARGER, ids=lambda instance: instance.name)
def test_larger_rounds_are_lawful(instance: Instance) -> None:
    """What thousands of differences leave is what the objective says, and the referee accepts it."""
    problem = compile_problem(instance)
    search = searched(problem, 0, 600)
    allocation = search.allocation()
    assert (search.value, search.cost) == figures(problem, allocation)
    assert violations(problem.given, plan_of(problem, allocation)) == []
    assert search.value > value(problem, running_alone(problem))


def test_the_same_seed_makes_the_same_plan() -> None:
    """Other seeds make other plans."""
    problem = compile_problem(LARGER[0])
    plans = [searched(problem, seed, 200).allocation() for seed in (1, 1, 2)]
    assert plans[0] == plans[1] != plans[2]


def test_more_steps_are_no_worse() -> None:
    """The best plan is kept, whatever the search does after it."""
    problem = compile_problem(LARGER[1])
    search = LocalSearch(problem, running_alone(problem), weighted_costs(problem), seed=3)
    before = (search.value, -search.cost)
    for _ in range(20):
        search.advance(20)
        assert (search.value, -search.cost) >= before
        before = (search.value, -search.cost)
    assert search.steps == 400


def test_no_step_raises_the_cost_above_its_limit() -> None:
    """Not for more value either; without a limit it goes on to more value."""
    problem = compile_problem(generate("uniform", jobs=40, nodes=8, gpus=8, seed=3))
    found: list[int] = []
    for limit in (0, None):
        search = LocalSearch(problem, running_alone(problem), weighted_costs(problem), seed=3)
        began = search.cost
        search.limit_cost(None if limit is None else began)
        search.advance(2_000)
        assert limit is None or search.cost <= began
        found.append(search.value)
    assert found[0] < found[1]
