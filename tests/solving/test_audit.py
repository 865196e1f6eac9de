"""The audit takes scores that are known only for the allocation that the plan itself writes."""

import numpy as np
import pytest

from placeopt import Engine, audit
from placeopt.generators import generate
from placeopt.model import Instance, Plan
from placeopt.problem import Problem, compile_problem
from placeopt.solving.audit import Scored, allocation_of
from placeopt.terms.objective import value, weighted_costs


@pytest.fixture(scope="module")
def solved() -> tuple[Instance, Plan]:
    """A round with running jobs, gangs and shares, and a plan of it."""
    round_ = generate("uniform", jobs=60, nodes=10, gpus=8, seed=3)
    with Engine(isolation="thread") as engine:
        return round_, engine.solve(round_, method="stranding")


def scored(plan: Plan, problem: Problem) -> Scored:
    """Score a plan's allocation by the terms."""
    allocation, weighted = allocation_of(plan, problem), weighted_costs(problem)
    raw = tuple(w.cost.score(problem, allocation) for w in weighted)
    return Scored(allocation, value(problem, allocation), weighted, raw)


def test_known_scores_are_those_of_the_terms(solved: tuple[Instance, Plan]) -> None:
    """With and without them, a right plan is right."""
    round_, plan = solved
    problem = compile_problem(round_, round_.policy)
    assert audit(round_, plan, problem) == []
    assert audit(round_, plan, problem, scored=scored(plan, problem)) == []


def test_a_plan_that_states_other_figures_than_the_known_scores(solved: tuple[Instance, Plan]) -> None:
    """What is stated is compared with them."""
    round_, plan = solved
    problem = compile_problem(round_, round_.policy)
    known = scored(plan, problem)
    worse = known._replace(value=known.value - 1, raw=(known.raw[0] + 1, *known.raw[1:]))
    found = audit(round_, plan, problem, scored=worse)
    assert any("value is stated as" in fault for fault in found)
    assert any(f"{known.weighted[0].cost.name} should be raw {known.raw[0] + 1}" in fault for fault in found)


def test_a_plan_that_writes_another_allocation_is_scored_anew(solved: tuple[Instance, Plan]) -> None:
    """A plan from which a placed job is dropped, with the figures of the plan before: its value is missed."""
    round_, plan = solved
    problem = compile_problem(round_, round_.policy)
    runs = {held.job for held in round_.running}
    started = next(held for held in plan.placements if held.job not in runs)
    less = plan.model_copy(update={"placements": tuple(held for held in plan.placements if held is not started)})
    found = audit(round_, less, problem, scored=scored(plan, problem))
    assert any("value is stated as" in fault for fault in found)


def test_known_scores_make_no_difference_for_any_plan(solved: tuple[Instance, Plan]) -> None:
    """A plan changed in one place is told the same with the scores of the former one as without."""
    round_, plan = solved
    problem = compile_problem(round_, round_.policy)
    known, rng = scored(plan, problem), np.random.default_rng(5)
    options = sorted({option.id for job in round_.jobs for option in job.options})
    differ = 0
    for _ in range(300):
        placements = list(plan.placements)
        one = int(rng.integers(len(placements)))
        placement = placements[one]
        first, *others = placement.assignments
        worker, *rest = first.workers
        match int(rng.integers(6)):
            case 0:
                placements[one], placements[one - 1] = placements[one - 1], placements[one]
            case 1:
                del placements[one]
            case 2:
                node = problem.node_ids[int(rng.integers(problem.num_nodes))]
                first = first.model_copy(update={"node": node})
                placements[one] = placement.model_copy(update={"assignments": (first, *others)})
            case 3:
                gpus = tuple((gpu + 1) % 8 for gpu in worker.gpus)
                shares = dict.fromkeys(map(str, gpus), 1000)
                workers = (worker.model_copy(update={"gpus": gpus}), *rest)
                first = first.model_copy(update={"gpus": shares, "workers": workers})
                placements[one] = placement.model_copy(update={"assignments": (first, *others)})
            case 4:
                placements[one] = placement.model_copy(update={"option": str(rng.choice(options))})
            case _:
                placements[one] = placement.model_copy(update={"job": placements[one - 1].job})
        changed = plan.model_copy(update={"placements": tuple(placements)})
        told = audit(round_, changed, problem)
        assert audit(round_, changed, problem, scored=known) == told
        differ += bool(told)
    assert differ > 100
