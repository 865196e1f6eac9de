"""Stage ``annealing``: lawful plans that are no worse, within the time; the same plan by the same work."""

import threading
import time
from collections.abc import Callable

import pytest

from helpers.counted_clock import counted_clock
from placeopt import Engine, solve, violations
from placeopt.generators import generate
from placeopt.model import Instance, Plan
from strategies.choice import Choice, seeded
from strategies.relation_rounds import make_relation_round
from strategies.rounds import make_round
from strategies.tree_rounds import make_tree_round

GANGS = generate("gangs", jobs=40, nodes=8, gpus=8, seed=3)


def stage(plan: Plan) -> tuple[str, str]:
    """Outcome and detail of the stage."""
    *_, one = (record for record in plan.stages if record.name == "annealing")
    return one.outcome, one.detail


def objective(plan: Plan) -> tuple[int, int]:
    """Value, and cost below zero."""
    assert plan.levels is not None
    return plan.levels[0].objective, -plan.levels[1].objective


def test_it_improves_greedys_plan_by_the_clock(engine: Engine) -> None:
    """Within the limit, and by more than one step."""
    before = engine.solve(GANGS, method="stranding", time_limit_s=5)
    started = time.monotonic()
    plan = engine.solve(GANGS, method="annealing", time_limit_s=2)
    assert time.monotonic() - started < 3
    assert violations(GANGS, plan) == []
    assert plan.limit == "time"
    assert objective(plan) > objective(before)
    outcome, detail = stage(plan)
    assert outcome == "improved"
    assert int(detail.split()[0]) > 10


def test_the_same_work_makes_the_same_plan(engine: Engine) -> None:
    """In deterministic mode steps end the stage, where the clock leaves it the time."""
    round_ = generate("uniform", jobs=12, nodes=3, gpus=4, seed=1)
    fields = {"method": "annealing", "time_limit_s": 0.3, "deterministic": True, "seed": 4, "threads": 1}
    plans = []
    for _ in range(2):
        with counted_clock(0):
            plans.append(engine.solve(round_, **fields))
    assert plans[0] == plans[1]
    assert stage(plans[0])[1].startswith("1228 steps")


def test_a_cancel_ends_it_and_keeps_what_it_found() -> None:
    """Soon, although far more time is left."""
    cancel = threading.Event()
    found = lambda news: cancel.set() if news.stage == "annealing" else None  # noqa: E731
    plan = solve(GANGS, method="annealing", time_limit_s=60, isolation="thread", cancel=cancel, on_progress=found)
    assert plan.limit == "user"
    assert stage(plan)[0] == "improved"
    assert violations(GANGS, plan) == []


MAKERS = 30 * [make_round] + 12 * [make_relation_round] + 12 * [make_tree_round]


@pytest.mark.parametrize(("seed", "make"), list(enumerate(MAKERS)))
def test_any_round_is_searched_or_the_reason_is_stated(
    seed: int, make: Callable[[Choice], Instance], engine: Engine
) -> None:
    """Running jobs, changes, minima, queues, relations and trees included."""
    round_ = make(seeded(f"annealing {seed}"))
    plan = engine.solve(round_, method="annealing", time_limit_s=0.2)
    assert violations(round_, plan) == []
    for record in plan.stages:
        if record.name == "annealing":
            assert record.outcome != "failed"
            assert record.outcome != "skipped" or record.detail.startswith("the local search does not handle ")
