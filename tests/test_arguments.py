"""What public calls are given by mistake is refused in words, never by whatever fails first inside."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from placeopt import BadInput, Engine, generate, read_scenario, solve, solve_in_parts
from placeopt.scheduling import named_policy
from placeopt.simulation import simulate

ROUND = generate("uniform", jobs=4, nodes=2, gpus=2, seed=0)
TRACE = read_scenario(Path(__file__).parents[1] / "instances" / "papers" / "sc17-workloads-5.json")
FCFS = named_policy("fcfs")
Call = Callable[..., object]


def _brief(**arguments: Any) -> object:
    """Ask for a round that greedy settles by itself, before the stages of a round look at anything."""
    with Engine() as engine:
        engine.load(ROUND)
        return engine.place(method="random", warm=False, prove=False, brief=True, **arguments)


def _commit(plan: Any) -> None:
    with Engine() as engine:
        engine.load(ROUND)
        engine.commit(plan)


SOLVE: Call = partial(solve, ROUND)
PARTS: Call = partial(solve_in_parts, ROUND, parts=2)
PLAY: Call = partial(simulate, TRACE, FCFS)
WRONG: list[tuple[Call, dict[str, Any], str]] = [
    (solve, {"instance": {}}, "dict, expected an Instance"),
    (partial(solve_in_parts, parts=2, by="rack"), {"instance": None}, "NoneType"),
    (Engine().load, {"instance": "round.json"}, "str, expected an Instance"),
    (SOLVE, {"policy": "horus"}, "str, expected a Policy, or None"),
    (SOLVE, {"isolation": "thead"}, "'thead', expected process or thread"),
    (SOLVE, {"time_limit_s": "1"}, "str, expected a number of seconds"),
    (SOLVE, {"gap": None}, "NoneType, expected a number"),
    (SOLVE, {"threads": 1.5}, "float, expected a whole number"),
    (SOLVE, {"threads": True}, "bool, expected a whole number"),
    (SOLVE, {"seed": 1.5}, "float, expected a whole number"),
    (SOLVE, {"seed": -1}, "-1, expected 0 to 2147483647"),
    (SOLVE, {"seed": 2**31}, "2147483648, expected 0 to 2147483647"),  # no solver takes it
    (SOLVE, {"previous": "plan.json"}, "str, expected a Plan"),
    (SOLVE, {"cancel": True}, "bool, expected a threading.Event"),
    (SOLVE, {"on_progress": 5}, "int, expected a function"),
    (PARTS, {"time_limit_s": -1}, "-1, expected seconds"),
    (PARTS, {"seed": "1"}, "str, expected a whole number"),
    (PARTS, {"parts": "2"}, "str, expected a whole number"),
    (PARTS, {"jobs": "2"}, "str, expected a whole number"),
    (PARTS, {"policy": "horus"}, "str, expected a Policy"),
    (partial(simulate, scheduling=FCFS), {"scenario": "trace.json"}, "str, expected a Scenario"),
    (partial(simulate, TRACE), {"scheduling": "fcfs"}, "str, expected a Scheduling"),
    (PLAY, {"seed": -1}, "-1, expected 0 to"),
    (PLAY, {"time_limit_s": "3"}, "str, expected a number"),
    (_brief, {"time_limit_s": "3"}, "str, expected"),
    (_brief, {"seed": -1}, "-1, expected 0 to"),
    (_commit, {"plan": None}, r"NoneType, expected a Plan that place\(\) gave"),  # and not its id or nothing
]


@pytest.mark.parametrize(("call", "argument", "words"), WRONG)
def test_a_wrong_argument_is_named(call: Call, argument: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=f"{next(iter(argument))}: {words}"):
        call(**argument)
