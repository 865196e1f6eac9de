"""Answers of host systems that have to be JSON objects."""

from __future__ import annotations

import json
from typing import Any

from placeopt.drivers.unreachable import Unreachable


def json_object(text: str | bytes, source: str) -> dict[str, Any]:
    """Return the object that an answer states; raises `Unreachable`, naming ``source``, for anything else."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Unreachable(f"{source}: the answer is not a JSON object: {text[:80]!r}")
    return found
