"""Why it does not fit: an irreducible set of groups of constraints."""

from __future__ import annotations

from collections.abc import Sequence

from placeopt.errors import InternalFault
from placeopt.feasibility.fit import FOREVER, fit
from placeopt.feasibility.free_capacity import FreeCapacity
from placeopt.feasibility.requirement import DROP_ORDER, Requirement


def conflict(room: FreeCapacity, asks: Sequence[Requirement], deadline: float = FOREVER) -> tuple[str, ...]:
    """
    Return groups of constraints that cannot hold together, while without any one of them the job fits.

    A group is dropped from all options at once. Groups outside the set may be dropped: it is infeasible by itself.
    Found by deletion: one group after the other is dropped for good if the job still does not fit. Both halves of the
    promise are then verified anew.

    Parameters
    ----------
    room
        In which none of ``asks`` fits.

    Raises
    ------
    InternalFault
        If the result is not what it should be, for instance because the job fits after all.
    """
    order = [group.split(":")[0] for group in dict.fromkeys(DROP_ORDER)]
    groups = {group for ask in asks for group in ask.groups()}
    kept = sorted(groups, key=lambda group: (order.index(group.split(":")[0]), group))
    dropped: list[str] = []
    for group in list(kept):
        if fit(room, without(asks, [*dropped, group]), deadline) is None:
            dropped.append(group)
            kept.remove(group)
    if fit(room, without(asks, dropped), deadline) is not None:
        raise InternalFault(f"the conflict {kept} is none: the job fits with all of it")
    for group in kept:
        if fit(room, without(asks, [*dropped, group]), deadline) is None:
            raise InternalFault(f"the conflict {kept} is not irreducible: {group!r} can be dropped from it")
    return tuple(reversed(kept))


def without(asks: Sequence[Requirement], groups: Sequence[str]) -> list[Requirement]:
    """Return what is asked without these groups."""
    out = []
    for ask in asks:
        for group in groups:
            ask = ask.without(group)
        out.append(ask)
    return out
