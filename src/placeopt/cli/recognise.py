"""The kind of document in a file, recognised by its content."""

from __future__ import annotations

from placeopt.errors import BadInput
from placeopt.formats.bounds import top_keys
from placeopt.formats.documents import loads
from placeopt.formats.files import label, read_bytes
from placeopt.model import Instance, Machine, Plan
from placeopt.model.scenario import Scenario

SIGNS: tuple[tuple[str, type[Instance] | type[Plan] | type[Machine] | type[Scenario]], ...] = (
    ("arrivals", Scenario),
    ("physics", Scenario),
    ("cluster", Instance),
    ("placements", Plan),
    ("levels", Plan),
    ("cpu_millicores", Machine),
    ("gpus", Machine),
)
"""A top-level key that identifies a kind of document, the most certain first."""


def read_any(path: str) -> Instance | Plan | Machine | Scenario:
    """Read an instance, a plan, a machine or a scenario."""
    data, source = read_bytes(path), label(path)
    keys = top_keys(data, source)
    if keys is None:
        return loads(Instance, data, source=source)  # its error states where the JSON is malformed
    kind = next((kind for key, kind in SIGNS if key in keys), None)
    if kind is None:
        held = f"has {', '.join(list(keys)[:6])}" if keys else "is no object with content"
        raise BadInput(
            f"{source}: {held}; expected an instance (cluster), a plan (placements), a machine "
            "(gpus) or a scenario (arrivals)"
        )
    return loads(kind, data, source=source)
