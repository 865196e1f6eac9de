"""Plans with something changed, past what the validators of the records let through."""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel

from placeopt.model import Instance, Plan
from strategies.choice import Choice
from strategies.plans import make_plan

NUMBERS = (-1, 0, 1, 2, 7, 999, 1000, 1023, 10**9, 10**12, 10**30)
TEXTS = ("", " ", "nowhere", "stranger", "n0", "n1", "j0", "j1", "o0", "0", "1", "x", "9" * 5000)
FLOATS = (0.0, -1.0, float("nan"), float("inf"))


def make_any_plan(choice: Choice, round_: Instance) -> Plan:
    """Draw a lawful plan and change up to four places of it, now and then to one for some of the jobs."""
    plan = make_plan(choice, round_)
    if choice.chance(0.2):
        asked = choice.some([*(job.id for job in round_.jobs), "stranger"])
        kept: dict[str, Any] = {"asked": tuple(asked)}
        if choice.chance(0.7):
            for name in ("placements", "unplaced"):
                kept[name] = tuple(entry for entry in getattr(plan, name) if entry.job in asked)
        reference = plan.instance.model_copy(update={"digest": None})
        plan = plan.model_copy(update={**kept, "instance": reference})
    for _ in range(choice.pick((0, 1, 1, 2, 3, 4))):
        plan = changed(choice, plan)
    return plan


def changed(choice: Choice, value: Any) -> Any:
    """Return a value with one place in it changed: an entry dropped, doubled or that of another, a number, a text."""
    if isinstance(value, Plan) and choice.chance(0.6):
        return value.model_copy(update={"placements": changed(choice, value.placements)})
    if isinstance(value, BaseModel):
        name = choice.pick(list(type(value).model_fields))
        kind = type(value).model_fields[name].annotation
        words = get_args(kind) if get_origin(kind) is Literal else ()
        return value.model_copy(update={name: choice.pick(words) if words else changed(choice, getattr(value, name))})
    if isinstance(value, tuple) and value:
        at, other = (choice.number(0, len(value) - 1) for _ in range(2))
        inside = (*value[:at], changed(choice, value[at]), *value[at + 1 :])
        dropped, doubled = value[:at] + value[at + 1 :], (*value, value[at])
        swapped = (*value[:at], value[other], *value[at + 1 :])
        return choice.pick((inside, inside, inside, inside, dropped, doubled, swapped, ()))
    if isinstance(value, dict) and value:
        key = choice.pick(list(value))
        rest = {name: held for name, held in value.items() if name != key}
        inside = {**rest, key: changed(choice, value[key])}
        return choice.pick((inside, inside, rest, {**rest, choice.pick(TEXTS): value[key]}, {**value, "77": 1000}, {}))
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return choice.pick((*NUMBERS, value + 1, value - 1))
    if isinstance(value, float):
        return choice.pick((None, *FLOATS))
    if isinstance(value, str):
        return choice.pick(TEXTS)
    return value
