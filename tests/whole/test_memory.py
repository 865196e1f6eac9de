"""A library leaves its host's garbage collector alone, and a process that lives long does not grow."""

import gc
from collections.abc import Callable
from unittest.mock import Mock

import pytest

from placeopt import Engine, Instance, build, generate, solve
from placeopt.documents import dumps, loads
from placeopt.explain import explain
from placeopt.scheduling import named_policy
from placeopt.simulation import Scenario, simulate
from placeopt.whatif import Limits, fail

CONTROLS = ["collect", "disable", "enable", "freeze", "set_threshold", "unfreeze"]
ROUND = generate("uniform", jobs=20, nodes=4, gpus=4, seed=1)


def read() -> None:
    loads(Instance, dumps(ROUND))


def place() -> None:
    with Engine(isolation="thread") as engine:
        engine.load(ROUND)
        engine.commit(engine.place(deterministic=True))


def ask() -> None:
    plan = solve(ROUND, isolation="thread", deterministic=True)
    for waiting in plan.unplaced[:1]:
        explain(ROUND, plan, waiting.job)
    fail(ROUND, "node", limits=Limits(time_limit_s=5))


def play() -> None:
    made: Scenario = build.scenario(1, [build.job(f"j{i}", run_time_ms=1000) for i in range(2)])
    simulate(made, named_policy("fcfs"))


@pytest.mark.parametrize("call", [read, place, ask, play])
def test_nothing_touches_the_collector(call: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """It was frozen, unfrozen and paused: the host's young objects aged, and no automatic collection ever came."""
    touched = Mock()
    for name in CONTROLS:
        monkeypatch.setattr(gc, name, getattr(touched, name))
    call()
    assert touched.mock_calls == []


def test_rounds_leave_nothing_behind() -> None:
    """After a warm-up, further rounds, explanations and questions add no objects that the collector cannot free."""

    def rounds(number: int) -> int:
        for _ in range(number):
            read()
            place()
            ask()
        gc.collect()
        return len(gc.get_objects())

    before = rounds(2)
    assert rounds(4) - before < 200
