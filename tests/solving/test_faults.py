"""Exceptions that nothing foresees: the plan of the other stages stands, or the call ends with ``InternalFault``."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any
from unittest.mock import Mock

import pytest

from placeopt import Engine, Instance, InternalFault, Policy, Progress, SolverFault, audit, violations
from placeopt.build import instance, job
from placeopt.edits import RemoveJobs
from placeopt.errors import OutOfTime
from placeopt.live_cluster import ClusterChanges
from placeopt.model import Weights
from placeopt.solving import METHODS

SOLVING = "placeopt.solving."
BEGIN = [
    f"stages.{name}"
    for name in ("lookahead.LookAhead", "bound.BeginBound", "annealing.BeginSearch", "first_plan.TrivialProof")
]
"""What the first plan begins and ends with."""


def with_parts(stages: Iterable[Any]) -> Iterator[str]:
    """Name the classes of stages and of their parts, as they stand below `SOLVING`."""
    for stage in stages:
        kind = type(stage)
        yield f"{kind.__module__.removeprefix(SOLVING)}.{kind.__name__}"
        yield from with_parts(getattr(stage, "parts", ()))
        yield from with_parts(getattr(stage, "heuristics", ()))


BUG = IndexError("index 4 is out of bounds")


def knapsack(policy: Policy | None = None) -> Instance:
    """Three jobs of two GPUs, worth 1, 2, 3, on one node of four."""
    jobs = [job(name, gpus=2, value=i + 1, run_time_ms=1000) for i, name in enumerate("abc")]
    free = Policy(weights=Weights(communication=0, interference=0, fragmentation=0))
    return instance(1, jobs, policy=policy or free)


def failing(error: Exception) -> Mock:
    return Mock(side_effect=error)


@pytest.mark.usefixtures("survived_faults")
@pytest.mark.parametrize(
    ("name", "error"),
    [
        *((name, BUG) for name in dict.fromkeys((*BEGIN, *with_parts(METHODS["auto"].stages)))),
        *(("stages.bound.Bound", e) for e in (SolverFault("a"), OutOfTime("b"), MemoryError())),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_the_best_plan_of_the_other_stages_is_returned(
    name: str, error: Exception, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the optimum all the same, and says which stage failed, by what and where; memory is a limit."""
    monkeypatch.setattr(f"{SOLVING}{name}.run", failing(error))
    round_ = knapsack(Policy())
    plan = engine.solve(round_, time_limit_s=10)
    assert violations(round_, plan) == []
    assert audit(round_, plan) == []
    assert plan.levels[0].objective == 5
    for stage in plan.stages:
        if stage.outcome == "failed":
            words = "out of memory" if isinstance(error, MemoryError) else f"internal fault: {type(error).__name__}: "
            assert stage.detail.startswith(words)
            assert stage.detail.endswith("; what was held is kept")
    if isinstance(error, MemoryError) and plan.status != "optimal":
        assert plan.limit == "memory"
    if name in ("stages.first_plan.FirstPlan", "stages.greedy.Greedy", "stages.bound.Bound"):
        assert "failed" in [stage.outcome for stage in plan.stages]


@pytest.mark.parametrize("place", ["placeopt.solving.api.compile_problem", "placeopt.solving.api.finish"])
def test_outside_stages_it_is_an_internal_fault(place: str, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the cause chained."""
    cause = KeyError("n7")
    monkeypatch.setattr(place, failing(cause))
    with pytest.raises(InternalFault, match=r"solve: KeyError: 'n7'") as caught:
        engine.solve(knapsack())
    assert caught.value.__cause__ is cause


def test_every_call_of_a_live_engine_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever below the calls fails."""
    with Engine(isolation="thread") as engine:
        engine.load(knapsack())
        plan = engine.place(["a"])
        cause = ZeroDivisionError("by 0")
        below = (
            "LiveCluster._place_jobs",
            "history.History.refuse_stale",
            "edits.Edits._edit",
            "edits.Edits._change",
        )
        for name in below:
            monkeypatch.setattr("placeopt.live_cluster." + name, failing(cause))
        calls: list[Callable[[], object]] = [
            lambda: engine.apply(ClusterChanges(now_ms=1)),
            lambda: engine.place(["a"]),
            lambda: engine.commit(plan),
            lambda: engine.edit([RemoveJobs(do="remove_jobs", jobs=("a",))]),
        ]
        for call in calls:
            with pytest.raises(InternalFault, match="ZeroDivisionError: by 0") as caught:
                call()
            assert caught.value.__cause__ is cause


@pytest.mark.parametrize("error", [LookupError("mine"), MemoryError("mine"), SolverFault("mine")])
@pytest.mark.usefixtures("survived_faults")
def test_the_callers_own_exception_is_not_touched(error: Exception, engine: Engine) -> None:
    """What ``on_progress`` raises ends the call, though it is raised inside a stage; the engine is free again."""

    def on_progress(_: Progress) -> None:
        raise error

    with pytest.raises(type(error), match="mine") as caught:
        engine.solve(knapsack(), on_progress=on_progress)
    assert caught.value is error
    assert engine.solve(knapsack()).status == "optimal"
    with Engine(isolation="thread") as live:
        live.load(knapsack())
        with pytest.raises(type(error), match="mine") as caught:
            live.place(on_progress=on_progress)
        assert caught.value is error
