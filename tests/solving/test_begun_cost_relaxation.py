"""The relaxation of the cost that is solved beside the first plan: its bound is that of one after the plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import pytest

from placeopt import Engine, Plan, generate
from placeopt.check import violations
from placeopt.model import Instance
from placeopt.solving.context import SolveContext
from placeopt.solving.stages import cost_relaxation, rounding


def by_paths_alone(of: Instance) -> Instance:
    """Return a round without interference: where much of a plan's cost is, the relaxation is one that counts it."""
    weights = of.policy.weights.model_copy(update={"interference": 0})
    return of.model_copy(update={"policy": of.policy.model_copy(update={"weights": weights})})


ROUNDS = {
    "uniform": by_paths_alone(generate("uniform", jobs=1000, nodes=100, gpus=4, seed=3)),
    "gangs": by_paths_alone(generate("gangs", jobs=120, nodes=100, gpus=8, seed=3)),
}
Begin = Callable[[SolveContext, int], None]


@pytest.fixture
def waited_for(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each solve of the relaxation was one that had begun before."""
    seen: list[bool] = []
    taken = cost_relaxation._taken_cost_relaxation

    def note(context: SolveContext) -> object:
        begun = taken(context)
        seen.append(begun is not None)
        return begun

    monkeypatch.setattr(cost_relaxation, "_taken_cost_relaxation", note)
    return seen


def placed(round_: Instance) -> Plan:
    """Place it; the first pricing of whole jobs ends the stage, which else goes on as long as there is time."""
    with Engine() as engine:
        engine.load(round_)
        plan = engine.place(time_limit_s=4, threads=2, gap=0.5)
    assert violations(round_, plan) == []
    return plan


def bound_of_flows(plan: Plan) -> float:
    """Return the bound on cost that the first relaxation proved."""
    bound = next(stage.bound for stage in plan.stages if stage.name == "flows")
    assert bound is not None
    return bound


@pytest.mark.parametrize("name", ROUNDS)
def test_the_bound_is_that_of_a_solve_after_the_plan(
    name: str, waited_for: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cost_relaxation, "MOST_PRICES", 0)  # how often whole jobs are priced depends on the time
    beside = placed(ROUNDS[name])
    assert waited_for[0]
    monkeypatch.setattr(cost_relaxation, "BESIDE_PER_S", 0.001)
    waited_for.clear()
    after = placed(ROUNDS[name])
    assert not any(waited_for)
    assert beside.levels[0].objective == after.levels[0].objective
    assert bound_of_flows(beside) == bound_of_flows(after)


@pytest.mark.parametrize("more", [-1, 1])
def test_a_plan_of_another_value_needs_another_relaxation(
    more: int, waited_for: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is solved anew: at a greater value its bound would not hold, at a smaller one it would be weaker."""
    monkeypatch.setattr(cost_relaxation, "MOST_PRICES", 0)
    after = bound_of_flows(placed(ROUNDS["uniform"]))
    begin = cost_relaxation.begin_cost_relaxation
    monkeypatch.setattr(rounding, "begin_cost_relaxation", lambda context, value: begin(context, value + more * 1000))
    waited_for.clear()
    assert bound_of_flows(placed(ROUNDS["uniform"])) == after
    assert not any(waited_for)


def test_where_interference_matters_it_is_another(waited_for: list[bool]) -> None:
    placed(generate("uniform", jobs=1000, nodes=100, gpus=4, seed=3))
    assert not any(waited_for)


def test_it_is_waited_for_where_no_time_is_left(waited_for: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound comes with the first plan, and whole jobs are not priced any more."""

    def late(*_: object) -> object:
        raise cost_relaxation.OutOfTime("no time")

    monkeypatch.setattr(cost_relaxation, "with_whole_jobs", late)
    plan = placed(ROUNDS["uniform"])
    assert waited_for[0]
    assert bound_of_flows(plan) > 0
    assert "no time left to price whole jobs" in next(s.detail for s in plan.stages if s.name == "flows")


@pytest.mark.parametrize("more", [0, 1])
def test_a_round_that_ends_before_its_stage_takes_what_is_proven(more: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of plans of its value alone."""
    begin, solved = cost_relaxation.begin_cost_relaxation, bound_of_flows(placed(ROUNDS["uniform"]))

    def begin_and_wait(context: SolveContext, value: int) -> None:
        begin(context, value + more * 1000)
        assert context.handover.begun_cost_relaxation is not None
        context.handover.begun_cost_relaxation.beside.wait(20.0)

    monkeypatch.setattr(rounding, "begin_cost_relaxation", begin_and_wait)
    monkeypatch.setattr(cost_relaxation.CostRelaxationBound, "skip_reason", lambda *_: "no time is left")
    plan = placed(ROUNDS["uniform"])
    assert "flows" not in [stage.name for stage in plan.stages]
    bound = plan.levels[1].bound
    if more:
        assert not bound
    else:
        assert bound is not None
        assert 0 < bound <= solved  # whole jobs were not priced


@pytest.mark.parametrize(("threads", "isolation"), [(1, "process"), (2, "thread")])
def test_without_a_thread_for_it_nothing_begins(
    threads: int, isolation: Literal["process", "thread"], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[object] = []
    monkeypatch.setattr(cost_relaxation, "BegunCostRelaxation", lambda *fields: begun.append(fields))
    with Engine(isolation=isolation) as engine:
        engine.load(ROUNDS["uniform"])
        engine.place(time_limit_s=4, threads=threads, gap=0.5)
    assert begun == []
