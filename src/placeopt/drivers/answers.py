"""Answers of host systems: that there is none, or what it has to be."""

from __future__ import annotations

import json
from typing import Any

from placeopt.errors import PlaceoptError


class Unreachable(PlaceoptError):
    """
    The host system did not answer, was busy, or answered what cannot be read.

    Whether a request took effect is unknown; the next reading shows it.
    """


def json_object(text: str | bytes, source: str) -> dict[str, Any]:
    """Return the object that an answer states; raises `Unreachable`, naming ``source``, for anything else."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Unreachable(f"{source}: the answer is not a JSON object: {text[:80]!r}")
    return found
