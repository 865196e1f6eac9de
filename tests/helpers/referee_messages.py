"""The facts in the messages of the referee: rule, place, and the numbers and names; the prose is left out."""

import re
from collections.abc import Mapping
from typing import Any

from helpers.plans import plan_for
from placeopt.build import Where
from placeopt.check import Violation, violations
from placeopt.model import Instance, Placement, Plan

Finding = tuple[str, str, list[str]]


def findings(instance: Instance, plan: Plan, *, since: Plan | None = None) -> list[Finding]:
    """List (rule, where, numbers and quoted names of the message after that) of every violation, in order."""
    return [facts_of(violation) for violation in violations(instance, plan, since=since)]


def faults(instance: Instance, placed: Mapping[str, Where | Placement], **fields: Any) -> list[Finding]:
    """List the findings of the plan that places these jobs; ``fields`` are those of `plan_for`."""
    return findings(instance, plan_for(instance, placed, **fields))


def rules_of(instance: Instance, plan: Plan, *, since: Plan | None = None) -> list[str]:
    return [rule for rule, *_ in findings(instance, plan, since=since)]


def places_of(instance: Instance, plan: Plan) -> list[tuple[str, str]]:
    return [(rule, where) for rule, where, _ in findings(instance, plan)]


def rules(instance: Instance, placed: Mapping[str, Where | Placement], **fields: Any) -> list[str]:
    """List the rules that the plan breaks which places these jobs."""
    return rules_of(instance, plan_for(instance, placed, **fields))


def places(instance: Instance, placed: Mapping[str, Where | Placement], **fields: Any) -> list[tuple[str, str]]:
    """List the rules that it breaks, and where."""
    return places_of(instance, plan_for(instance, placed, **fields))


def facts_of(violation: Violation) -> Finding:
    """Take a violation apart; its message begins with the place, its text ends with the rule."""
    assert str(violation) == f"{violation.message} [{violation.rule}]"
    assert violation.message.startswith(f"{violation.where}: ")
    rest = violation.message.removeprefix(f"{violation.where}: ")
    return violation.rule, violation.where, re.findall(r"'[^']*'|-?\d+", rest)
