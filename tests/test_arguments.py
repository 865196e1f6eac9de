"""What public calls are given by mistake is refused in words, never by whatever fails first inside."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from placeopt import BadInput, Engine, generate, read_scenario, solve, solve_in_parts
from placeopt.simulation import named_policy, simulate

ROUND = generate("uniform", jobs=4, nodes=2, gpus=2, seed=0)
TRACE = read_scenario(Path(__file__).parents[1] / "instances" / "papers" / "sc17-workloads-5.json")
FCFS = named_policy("fcfs")


def _brief(**arguments: Any) -> object:
    """Ask for a round that greedy settles by itself, before the stages of a round look at anything."""
    with Engine() as engine:
        engine.load(ROUND)
        return engine.place(method="random", warm=False, prove=False, brief=True, **arguments)


WRONG: dict[str, tuple[Callable[[Any], object], object, str]] = {
    "instance": (solve, {}, "instance: dict, expected an Instance"),
    "instance of parts": (lambda x: solve_in_parts(x, parts=2, by="rack"), None, "instance: NoneType"),
    "instance to keep": (lambda x: Engine().load(x), "round.json", "instance: str, expected an Instance"),
    "policy": (lambda x: solve(ROUND, policy=x), "horus", "policy: str, expected a Policy, or None"),
    "isolation": (lambda x: solve(ROUND, isolation=x), "thead", "isolation: 'thead', expected process or thread"),
    "time": (lambda x: solve(ROUND, time_limit_s=x), "1", "time_limit_s: str, expected a number of seconds"),
    "gap": (lambda x: solve(ROUND, gap=x), None, "gap: NoneType, expected a number"),
    "threads": (lambda x: solve(ROUND, threads=x), 1.5, "threads: float, expected a whole number"),
    "truth as threads": (lambda x: solve(ROUND, threads=x), True, "threads: bool, expected a whole number"),
    "seed": (lambda x: solve(ROUND, seed=x), 1.5, "seed: float, expected a whole number"),
    "seed below 0": (lambda x: solve(ROUND, seed=x), -1, "seed: -1, expected 0 to 2147483647"),
    "seed that no solver takes": (lambda x: solve(ROUND, seed=x), 2**31, "seed: 2147483648, expected 0 to 2147483647"),
    "previous": (lambda x: solve(ROUND, previous=x), "plan.json", "previous: str, expected a Plan"),
    "cancel": (lambda x: solve(ROUND, cancel=x), True, "cancel: bool, expected a threading.Event"),
    "on_progress": (lambda x: solve(ROUND, on_progress=x), 5, "on_progress: int, expected a function"),
    "time of parts": (
        lambda x: solve_in_parts(ROUND, parts=2, time_limit_s=x),
        -1,
        "time_limit_s: -1, expected seconds",
    ),
    "seed of parts": (lambda x: solve_in_parts(ROUND, parts=2, seed=x), "1", "seed: str, expected a whole number"),
    "number of parts": (lambda x: solve_in_parts(ROUND, parts=x), "2", "parts: str, expected a whole number"),
    "parts at a time": (lambda x: solve_in_parts(ROUND, parts=2, jobs=x), "2", "jobs: str, expected a whole number"),
    "policy of parts": (lambda x: solve_in_parts(ROUND, parts=2, policy=x), "horus", "policy: str, expected a Policy"),
    "scenario": (lambda x: simulate(x, FCFS), "trace.json", "scenario: str, expected a Scenario"),
    "scheduling": (lambda x: simulate(TRACE, x), "fcfs", "scheduling: str, expected a Scheduling"),
    "seed of a simulation": (lambda x: simulate(TRACE, FCFS, seed=x), -1, "seed: -1, expected 0 to"),
    "time of a simulation": (
        lambda x: simulate(TRACE, FCFS, time_limit_s=x),
        "3",
        "time_limit_s: str, expected a number",
    ),
    "time of a brief round": (lambda x: _brief(time_limit_s=x), "3", "time_limit_s: str, expected"),
    "seed of a brief round": (lambda x: _brief(seed=x), -1, "seed: -1, expected 0 to"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_argument_is_named(name: str) -> None:
    """With what it got and what was expected."""
    call, value, words = WRONG[name]
    with pytest.raises(BadInput, match=words):
        call(value)


def test_a_plan_to_commit_is_a_plan() -> None:
    """What place() gave, and not its id or nothing."""
    with Engine() as engine:
        engine.load(ROUND)
        with pytest.raises(BadInput, match=r"plan: NoneType, expected a Plan that place\(\) gave"):
            engine.commit(None)  # type: ignore[arg-type]
