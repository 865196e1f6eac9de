"""Durations as people write them on a command line."""

from __future__ import annotations

import re

from placeopt.errors import BadArgument

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_PATTERN = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(s|m|min|h|)")
LEAST_S, MOST_S = 1.0, 86_400.0


def seconds_of(name: str, text: str) -> float:
    """
    Return seconds: ``15``, ``15s``, ``2.5m`` or ``1h``, from a second to a day.

    Raises
    ------
    BadArgument
        If it is anything else; ``name``: the argument, for the message.
    """
    found = _PATTERN.fullmatch(text.strip())
    seconds = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if not LEAST_S <= seconds <= MOST_S:
        raise BadArgument(f"{name}: {text!r}, expected a time from 1s to 24h such as 15s or 2m")
    return seconds
