"""The rules of the referee, in the order in which they complain."""

from collections.abc import Callable

from placeopt.check.account import check_account, check_reference
from placeopt.check.case import CheckCase
from placeopt.check.changes import check_changes
from placeopt.check.form import check_form
from placeopt.check.gpus import check_gpus
from placeopt.check.grants import check_grants
from placeopt.check.links import check_links
from placeopt.check.nodes import check_nodes
from placeopt.check.queues import check_queues
from placeopt.check.shape import check_shape
from placeopt.check.standing import check_standing
from placeopt.check.utility import check_utility
from placeopt.check.where import check_where

RULES: tuple[Callable[[CheckCase], None], ...] = (
    check_reference,
    check_account,
    check_form,
    check_where,
    check_gpus,
    check_grants,
    check_nodes,
    check_links,
    check_shape,
    check_queues,
    check_changes,
    check_utility,
    check_standing,
)

BY_THEMSELVES: tuple[Callable[[CheckCase], None], ...] = (
    check_form,
    check_where,
    check_gpus,
    check_nodes,
    check_links,
    check_shape,
    check_queues,
)
"""Those of them that what runs must keep by itself, without any plan."""
