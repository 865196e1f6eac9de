"""What the state has no differences of: the judge counts it exactly, lets nothing unlawful stand, and finds optima."""

from collections.abc import Callable
from functools import cache

import pytest

from helpers.brute_force import optimum
from helpers.relation_oracle import RelationOracle
from helpers.tree_oracle import TreeOracle
from placeopt.model import Instance
from placeopt.problem import Problem, compile_problem
from placeopt.search import LocalSearch, what_is_judged, what_is_missing
from placeopt.terms import cost, weighted_costs
from placeopt.terms.rules import without_broken
from strategies.choice import Choice, seeded
from strategies.relation_rounds import make_relation_round
from strategies.rounds import make_gang_round, make_round
from strategies.tree_rounds import make_tree_round

KINDS: dict[str, Callable[[Choice], Instance]] = {
    "any": lambda choice: make_round(choice, changes=False),
    "changes": make_round,
    "gangs": make_gang_round,
    "relations": make_relation_round,
    "running relations": lambda choice: make_relation_round(choice, running=True),
    "trees": make_tree_round,
    "running trees": lambda choice: make_tree_round(choice, running=True),
}
ROUNDS, STEPS = 30, 120


@cache
def judged_rounds(kind: str) -> list[tuple[int, Instance, Problem]]:
    """Rounds of a kind with something that is judged."""
    found = []
    for seed in range(2 * ROUNDS):
        round_ = KINDS[kind](seeded(f"judged {seed}"))
        problem = compile_problem(round_)
        weighted = weighted_costs(problem)
        if what_is_judged(problem, weighted) and not what_is_missing(problem, weighted):
            found.append((seed, round_, problem))
    assert len(found) > ROUNDS // 2
    return found[:ROUNDS]


def searched(problem: Problem, seed: int, steps: int = STEPS) -> LocalSearch:
    """A search from what runs, after some steps."""
    start = tuple(problem.running.get(job) for job in range(problem.num_jobs))
    search = LocalSearch(problem, start, weighted_costs(problem), seed=seed)
    for _ in range(10):
        search.advance(steps // 10)
    return search


@pytest.mark.parametrize("kind", KINDS)
def test_plans_are_lawful_and_cost_what_is_said(kind: str) -> None:
    """Value and cost are those of the objective, and no rule has anything to take out."""
    for seed, _, problem in judged_rounds(kind):
        search = searched(problem, seed)
        allocation = search.allocation()
        worth = sum(int(problem.options.value[held.option]) for held in allocation if held is not None)
        assert (search.value, search.cost) == (worth, cost(problem, allocation, weighted_costs(problem))), seed
        assert without_broken(problem, allocation) == allocation, seed


@pytest.mark.parametrize("kind", ["relations", "trees"])
def test_the_best_value_is_found(kind: str) -> None:
    """In nearly all rounds of up to four jobs that must be near, apart, or together; trees have one option each."""
    missed = []
    for seed, round_, problem in judged_rounds(kind):
        if any(len(tree.forms) > 1 for tree in problem.trees):
            continue
        best, _ = (TreeOracle(round_) if kind == "trees" else RelationOracle(round_)).best()
        found = searched(problem, seed, 300).value
        assert found <= best, seed
        if found < best:
            missed.append(seed)
    assert len(missed) <= 2, missed


def test_any_round_ends_at_its_optimum() -> None:
    """Queues, several splits, minimal utilities and every form of the costs."""
    missed = []
    for seed, _, problem in judged_rounds("any"):
        search = searched(problem, seed, 300)
        best = optimum(problem)[:2]
        assert (search.value, -search.cost) <= (best[0], -best[1])
        if (search.value, search.cost) != best:
            missed.append(seed)
    assert len(missed) <= 4, missed
