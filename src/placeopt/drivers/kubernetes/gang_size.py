"""The gang of a pod, and whether it states how many pods it has."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from placeopt.drivers.kubernetes.api import Object
from placeopt.errors import BadInput
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.kubernetes.makers import gang_membership


class Gang(NamedTuple):
    """``id``: Namespace and name. ``has_size``: It states how many pods it has, or how many start together."""

    id: str
    has_size: bool


def gang_of(pod: Object, groups: Collection[str]) -> Gang | None:
    """
    Return the gang of a pod; None if it is alone.

    ``groups``: Namespace and name of the PodGroups that are listed: these state how many pods start together.
    """
    try:
        gang = gang_membership(JsonEntry("pod", pod))
    except BadInput:
        return None  # the reader leaves it out, and says why
    if gang is None:
        return None
    return Gang(gang.id, gang.rules.count is not None or gang.source in groups)
