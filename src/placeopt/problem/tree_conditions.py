"""What the groups of a tree ask of their nodes, as conditions of the members that their leaves are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from placeopt.model import Group, Job, LabelExpression, NodeConditions, Option

Stated = tuple[NodeConditions, ...]
"""The conditions of the groups that a leaf is in, from the root down."""
Terms = tuple[tuple[LabelExpression, ...], ...]
"""Alternatives, of each of which all expressions are met."""


def stated_of_leaves(option: Option) -> list[Stated]:
    """Return what the groups above each leaf of an option state, and the leaf itself, in the order of the leaves."""
    return list(_stated(option, ()))


def _stated(group: Group, above: Stated) -> Iterator[Stated]:
    here = above if group.conditions is None else (*above, group.conditions)
    for part in group.groups:
        yield from _stated(part, here)
    if not group.groups:
        yield here


def positions(drafts: Sequence[Sequence[Stated]]) -> tuple[list[list[int]], list[Stated]]:
    """
    Return a position in the tree for each member of each option, and what is stated of each position.

    A member is one job in all options that have it, so what it asks of nodes is the same in all of them.
    """
    slots: list[Stated] = []
    found: list[list[int]] = []
    for draft in drafts:
        free, mine = list(range(len(slots))), list[int]()
        for stated in draft:
            position = next((slot for slot in free if slots[slot] == stated), len(slots))
            if position == len(slots):
                slots.append(stated)
            else:
                free.remove(position)
            mine.append(position)
        found.append(mine)
    return found, slots


def conditions_with(job: Job, stated: Stated) -> dict[str, object]:
    """Return the fields of a member about nodes: what its job asks, and what its groups do."""
    terms = job.node_affinity
    for own in stated:
        labels = tuple(LabelExpression(key=k, operator="In", values=(v,)) for k, v in own.node_selector.items())
        terms = _conjoined(_conjoined(terms, own.node_affinity), (labels,) if labels else ())
    return {
        "node_affinity": terms,
        "nodes_excluded": (*job.nodes_excluded, *(name for own in stated for name in own.nodes_excluded)),
        "tolerations": (*job.tolerations, *(one for own in stated for one in own.tolerations)),
    }


def _conjoined(terms: Terms, others: Terms) -> Terms:
    """Return terms that are met where one of each is met: no terms are met by every node, one that is empty by none."""
    if not terms or not others:
        return terms or others
    return tuple((*one, *other) for one, other in product(filter(None, terms), filter(None, others))) or ((),)
