"""The utility of a job: the greatest minimum that the audit accepts, and the rules of the engine as well."""

import re
from collections.abc import Mapping
from typing import Any

from helpers.plans import plan_for
from helpers.referee_messages import rules_of
from placeopt import audit
from placeopt.build import Where
from placeopt.model import Communication, Instance, Placement, Plan, Policy, Running, Weights
from placeopt.problem import State, compile_problem
from placeopt.terms.rules import fits

TRAFFIC = Communication(weight=1)


def utility_policy(
    *, communication: int = 0, interference: int = 0, fragmentation: int = 0, utility: str = "sum", **fields: Any
) -> Policy:
    """Return a policy that postpones by utility, with these weights in the sum of eq. 2."""
    weights = Weights(communication=communication, interference=interference, fragmentation=fragmentation)
    values = {"postpone": {"rule": "utility", "utility": utility}, "weights": weights, **fields}
    return Policy.model_validate(values)


def utility_of(round_: Instance, placed: Mapping[str, Where | Placement], name: str = "a", **changes: Any) -> int:
    """
    Return the greatest minimum, in thousandths, with which job ``name`` may start there: its utility, rounded down.

    ``changes`` go to ``plan_for``. No other rule may be broken, and a minimum of 0 is always accepted. The rules of the
    engine allow the job to start there with that minimum, and with no greater one.
    """

    def accepts(least: int) -> bool:
        asked = with_minimum(round_, name, least)
        plan = plan_for(asked, placed, **changes)
        assert rules_of(asked, plan) == []
        short = below_minimum(asked, plan)
        assert short in ([], [name])
        return not short

    assert accepts(0)
    low, high = 0, 1001
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if accepts(middle) else (low, middle)
    if not changes:
        assert engine_allows(round_, placed, name, low)
        assert low == 1000 or not engine_allows(round_, placed, name, low + 1)
    return low


def below_minimum(round_: Instance, plan: Plan) -> list[str]:
    """Return the jobs that the audit finds below their minimal utility."""
    found = (re.match(r"minimal utility: job '([^']*)'", fault) for fault in audit(round_, plan))
    return [one[1] for one in found if one]


def with_minimum(round_: Instance, name: str, least: int) -> Instance:
    """Return the round in which job ``name`` has this minimal utility."""
    jobs = (job.model_copy(update={"utility_min_thousandths": least}) if job.id == name else job for job in round_.jobs)
    return round_.model_copy(update={"jobs": tuple(jobs)})


def engine_allows(round_: Instance, placed: Mapping[str, Where | Placement], name: str, least: int) -> bool:
    """Return whether the engine's rules let the job start there, with this minimum, beside the others."""
    plan = plan_for(round_, placed)
    held = [Running(job=p.job, option=p.option, assignments=p.assignments) for p in plan.placements]
    everything = compile_problem(round_.model_copy(update={"running": tuple(held)}))
    j = everything.job_ids.index(name)
    rest = tuple(one for one in held if one.job != name)
    problem = compile_problem(with_minimum(round_, name, least).model_copy(update={"running": rest}))
    return fits(State(problem), j, everything.running[j])
