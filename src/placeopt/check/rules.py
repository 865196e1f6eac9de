"""The rules of the referee, in the order in which they complain."""

from collections.abc import Callable

from placeopt.check.capacity import check_amounts, check_grants, check_slots
from placeopt.check.case import CheckCase
from placeopt.check.changes import check_changes, check_standing
from placeopt.check.form import check_account, check_form, check_reference
from placeopt.check.place import check_shape, check_where
from placeopt.check.priority import check_priorities
from placeopt.check.relations import check_relations

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
