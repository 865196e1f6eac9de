"""Gangs that do not state how many pods they have."""

from __future__ import annotations

from collections.abc import Collection

from placeopt.drivers.kubernetes.api import Object
from placeopt.errors import BadInput
from placeopt.formats.json_entry import JsonEntry
from placeopt.formats.kubernetes.pod_groups import gang_membership


def gang_without_size(pod: Object, groups: Collection[str]) -> str | None:
    """
    Return the gang of a pod; None if it is alone, or its gang states its size.

    ``groups``: Namespace and name of the PodGroups that are listed: these state how many pods start together.
    """
    entry = JsonEntry("pod", pod)
    metadata = entry.entry("metadata")
    try:
        gang = gang_membership(
            entry.entry("spec"),
            metadata,
            metadata.text("namespace", "default"),
            metadata.texts("labels"),
            metadata.texts("annotations"),
        )
    except BadInput:
        return None  # the reader leaves it out, and says why
    if gang is None or gang.count is not None or gang.pods_min is not None or gang.source in groups:
        return None
    return gang.id
