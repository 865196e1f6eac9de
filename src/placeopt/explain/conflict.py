"""Why it does not fit: an irreducible set of groups of constraints."""

from __future__ import annotations

from collections.abc import Sequence

from placeopt.errors import InternalFault
from placeopt.feasibility.fit import FOREVER, fit
from placeopt.feasibility.free_capacity import FreeCapacity
from placeopt.feasibility.requirement import DROP_ORDER, Requirement


def conflict(room: FreeCapacity, requirements: Sequence[Requirement], deadline: float = FOREVER) -> tuple[str, ...]:
    """
    Return groups of constraints that cannot hold together, while without any one of them the job fits.

    A group is dropped from all options at once. Groups outside the set may be dropped: it is infeasible by itself.
    fit by deletion: one group after the other is dropped for good if the job still does not fit. Both halves of the
    promise are then verified anew.

    Parameters
    ----------
    room
        In which none of ``requirements`` fits.

    Raises
    ------
    InternalFault
        If the result is not what it should be, for instance because the job fits after all.
    """
    order = [group.split(":")[0] for group in dict.fromkeys(DROP_ORDER)]
    groups = {group for requirement in requirements for group in requirement.groups()}
    kept = sorted(groups, key=lambda group: (order.index(group.split(":")[0]), group))
    dropped: list[str] = []
    for group in list(kept):
        if fit(room, without(requirements, [*dropped, group]), deadline) is None:
            dropped.append(group)
            kept.remove(group)
    if fit(room, without(requirements, dropped), deadline) is not None:
        raise InternalFault(f"the conflict {kept} is none: the job fits with all of it")
    for group in kept:
        if fit(room, without(requirements, [*dropped, group]), deadline) is None:
            raise InternalFault(f"the conflict {kept} is not irreducible: {group!r} can be dropped from it")
    return tuple(reversed(kept))


def without(requirements: Sequence[Requirement], groups: Sequence[str]) -> list[Requirement]:
    """Return what is asked without these groups."""
    out = []
    for requirement in requirements:
        for group in groups:
            requirement = requirement.without(group)
        out.append(requirement)
    return out
