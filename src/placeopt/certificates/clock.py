"""The clock of searches for proofs."""

from __future__ import annotations

import time

from placeopt.errors import OutOfTime


def check_time(deadline: float) -> bool:
    """Return true until ``deadline``, of ``time.monotonic()``; raise ``OutOfTime`` after it."""
    if time.monotonic() > deadline:
        raise OutOfTime("no time left to search proofs")
    return True
