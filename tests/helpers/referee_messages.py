"""What the referee says of a plan, without its prose: rule, place, and the numbers and names in the message."""

import re

from placeopt.check import Violation, violations
from placeopt.model import Instance, Plan

Told = tuple[str, str, list[str]]


def told(instance: Instance, plan: Plan, *, since: Plan | None = None) -> list[Told]:
    """List (rule, where, numbers and quoted names of the message after that) of every violation, in order."""
    return [facts(violation) for violation in violations(instance, plan, since=since)]


def facts(violation: Violation) -> Told:
    """Take a violation apart; its message begins with the place, its text ends with the rule."""
    assert str(violation) == f"{violation.message} [{violation.rule}]"
    assert violation.message.startswith(f"{violation.where}: ")
    rest = violation.message.removeprefix(f"{violation.where}: ")
    return violation.rule, violation.where, re.findall(r"'[^']*'|-?\d+", rest)
