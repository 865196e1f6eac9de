"""The facts in the messages of the referee: rule, place, and the numbers and names; the prose is left out."""

import re

from placeopt.check import Violation, violations
from placeopt.model import Instance, Plan

Finding = tuple[str, str, list[str]]


def findings(instance: Instance, plan: Plan, *, since: Plan | None = None) -> list[Finding]:
    """List (rule, where, numbers and quoted names of the message after that) of every violation, in order."""
    return [facts_of(violation) for violation in violations(instance, plan, since=since)]


def facts_of(violation: Violation) -> Finding:
    """Take a violation apart; its message begins with the place, its text ends with the rule."""
    assert str(violation) == f"{violation.message} [{violation.rule}]"
    assert violation.message.startswith(f"{violation.where}: ")
    rest = violation.message.removeprefix(f"{violation.where}: ")
    return violation.rule, violation.where, re.findall(r"'[^']*'|-?\d+", rest)
