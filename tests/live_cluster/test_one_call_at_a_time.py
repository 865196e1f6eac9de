"""An engine takes one call at a time: overlapping ones are refused with a typed error."""

import inspect
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import placeopt
from helpers.live_engine import engine_of
from placeopt import BadInput, Engine, EngineInUse, generate, violations
from placeopt.build import instance, job
from placeopt.live_cluster import ClusterChanges

ALLOWED = {"solver_pid", "solver_pids"}
"""What may be read during a call: process ids."""


def public_members() -> list[str]:
    """Names of all public methods and properties of ``Engine``."""
    return sorted(
        name
        for name, value in inspect.getmembers(Engine)
        if not name.startswith("_") and (callable(value) or isinstance(value, property))
    )


def calls(engine: Engine) -> dict[str, Callable[[], Any]]:
    """A call of every public member, by name."""
    plan = placeopt.solve(instance(1, [job("a")]), isolation="thread")
    return {
        "solve": lambda: engine.solve(instance(1, [job("a")])),
        "start": engine.start,
        "close": engine.close,
        "load": lambda: engine.load(instance(1, [job("a")])),
        "place": engine.place,
        "commit": lambda: engine.commit(plan),
        "rank": lambda: engine.rank("a"),
        "job": lambda: engine.job("a"),
        "numbers": lambda: engine.numbers,
        "apply": lambda: engine.apply(ClusterChanges()),
        "edit": lambda: engine.edit(()),
        "snapshot": lambda: engine.snapshot,
        "revision": lambda: engine.revision,
    }


@pytest.mark.parametrize("first", ["solve", "place"])
def test_every_public_call_is_refused_during_another(first: str) -> None:
    """Also from ``on_progress``, in the thread of the first call, where waiting would never end."""
    refused: dict[str, EngineInUse] = {}
    with engine_of(2, [job("a"), job("b")]) as engine:
        before = engine.snapshot
        others = calls(engine)
        assert sorted(others) == sorted(set(public_members()) - ALLOWED)

        def on_progress(_: object) -> None:
            for name, call in others.items():
                with pytest.raises(EngineInUse) as error:
                    call()
                refused[name] = error.value
            assert isinstance(engine.solver_pids, tuple)

        solve = partial(engine.solve, before) if first == "solve" else engine.place
        plan = solve(on_progress=on_progress)
        assert set(refused) == set(others)
        assert (refused["edit"].called, refused["edit"].running) == ("edit", first)
        assert "one call at a time" in str(refused["close"])
        assert engine.snapshot == before  # nothing of what was refused has happened
        assert violations(before, plan) == []


def test_two_threads_on_one_engine() -> None:
    """One solves, the other is refused by name, not by a fault; afterwards the engine is free."""
    round_, outcomes = generate("uniform", jobs=20, nodes=4, gpus=4, seed=0), []
    with Engine(isolation="thread") as engine, Engine(isolation="thread") as another:

        def second(_: object) -> None:
            def solve() -> None:
                with pytest.raises(EngineInUse):
                    engine.solve(round_)
                outcomes.append(another.solve(round_))  # the refusal is by engine

            if not outcomes:
                thread = threading.Thread(target=solve)
                thread.start()
                thread.join(60)

        plan = engine.solve(round_, on_progress=second)
        assert [violations(round_, one) for one in (plan, *outcomes, engine.solve(round_))] == [[], [], []]


def test_cancel_from_another_thread_ends_the_first_call() -> None:
    """The event is how a second thread reaches a call at work."""
    round_ = generate("uniform", jobs=20, nodes=4, gpus=4, seed=0)
    cancel = threading.Event()

    def from_outside(_: object) -> None:
        other = threading.Thread(target=cancel.set)
        other.start()
        other.join()

    with Engine(isolation="thread") as engine:
        plan = engine.solve(round_, cancel=cancel, on_progress=from_outside, time_limit_s=60)
    assert plan.limit in ("user", "none")


@pytest.mark.parametrize("error", [BadInput, KeyboardInterrupt, RuntimeError])
def test_an_engine_is_free_after_whatever_ended_a_call(error: type[BaseException]) -> None:
    """Errors, Ctrl-C and what ``on_progress`` raises give the engine back."""

    def fail(_: object) -> None:
        raise error("stop")

    with Engine(isolation="thread") as engine:
        with pytest.raises((error, KeyboardInterrupt)):
            engine.solve(instance(1, [job("a")]), on_progress=fail)
        assert engine.solve(instance(1, [job("a")])).status == "optimal"
        with pytest.raises(BadInput, match="no cluster is loaded"):
            _ = engine.revision
        engine.load(instance(1, [job("a")]))
        assert engine.revision == 0
