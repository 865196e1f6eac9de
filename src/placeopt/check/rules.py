"""The rules of the referee, in the order in which they complain."""

from collections.abc import Callable

from placeopt.check.capacity import check_amounts, check_grants, check_slots
from placeopt.check.case import CheckCase
from placeopt.check.changes import check_changes, check_standing
from placeopt.check.form import check_account, check_form, check_reference
from placeopt.check.place import check_shape, check_where
from placeopt.check.priority import check_priorities
from placeopt.check.relations import check_relations
from placeopt.model import Plan

Rules = tuple[Callable[[CheckCase], None], ...]

RULES: Rules = (
    check_reference,
    check_account,
    check_form,
    check_where,
    check_amounts,
    check_slots,
    check_grants,
    check_shape,
    check_relations,
    check_changes,
    check_priorities,
    check_standing,
)

BY_THEMSELVES: Rules = (check_form, check_where, check_amounts, check_slots, check_shape)
"""Those of them that running jobs must keep by themselves, without any plan."""

PLACES = ("placements", "moved", "shrunk", "preempted", "standing", "policy")
"""Fields of a plan that all rules but ``reference`` and ``account`` look at."""


def rules_since(plan: Plan, since: Plan | None) -> Rules:
    """
    Return the rules that a plan has to be read by.

    ``since``: A plan that breaks none, of which ``plan`` may be a copy with other words to it. Where all placements and
    changes are the same objects, which cannot have changed, only what else stands in the plan is read.
    """
    if since is None or any(getattr(plan, field) is not getattr(since, field) for field in PLACES):
        return RULES
    if plan.preempted or (plan.asked is None) != (since.asked is None):  # what is preempted must stand in `unplaced`
        return RULES
    if plan.asked != since.asked and plan.policy.values.priorities == "strict":  # which look at who waits
        return RULES
    return (check_reference, check_account)
