"""The utility of a job by the referee, found as the greatest minimum that it accepts."""

from collections.abc import Mapping
from typing import Any

from helpers.plans import plan_for
from placeopt.build import Where
from placeopt.check import violations
from placeopt.model import Communication, Instance, Placement, Policy, Weights

TRAFFIC = Communication(weight=1)


def utility_policy(
    *, communication: int = 0, interference: int = 0, fragmentation: int = 0, utility: str = "sum", **fields: Any
) -> Policy:
    """Return a policy that postpones by utility, with these weights in the sum of eq. 2."""
    weights = Weights(communication=communication, interference=interference, fragmentation=fragmentation)
    values = {"postpone": {"rule": "utility", "utility": utility}, "weights": weights.model_dump(), **fields}
    return Policy.model_validate(values)


def utility_of(round_: Instance, placed: Mapping[str, Where | Placement], name: str = "a", **changes: Any) -> int:
    """
    Return the greatest minimum, in thousandths, with which job ``name`` may start there: its utility, rounded down.

    ``changes`` go to ``plan_for``. No other rule may be broken, and a minimum of 0 is always accepted.
    """

    def accepts(least: int) -> bool:
        jobs = tuple(
            job.model_copy(update={"utility_min_thousandths": least}) if job.id == name else job for job in round_.jobs
        )
        asked = round_.model_copy(update={"jobs": jobs})
        broken = violations(asked, plan_for(asked, placed, **changes))
        assert [violation.where for violation in broken if violation.rule != "minimal_utility"] == []
        assert {violation.where for violation in broken} <= {f"job {name!r}"}
        return not broken

    assert accepts(0)
    low, high = 0, 1001
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if accepts(middle) else (low, middle)
    return low
