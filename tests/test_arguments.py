"""What public calls are given by mistake is refused in words, never by whatever fails first inside."""

from collections.abc import Callable
from typing import Any

import pytest

from placeopt import BadInput, Engine, generate, solve, solve_in_parts

ROUND = generate("uniform", jobs=4, nodes=2, gpus=2, seed=0)

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
    "seed below 0": (lambda x: solve(ROUND, seed=x), -1, "seed: -1, expected 0 or more"),
    "previous": (lambda x: solve(ROUND, previous=x), "plan.json", "previous: str, expected a Plan"),
    "cancel": (lambda x: solve(ROUND, cancel=x), True, "cancel: bool, expected a threading.Event"),
    "on_progress": (lambda x: solve(ROUND, on_progress=x), 5, "on_progress: int, expected a function"),
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
