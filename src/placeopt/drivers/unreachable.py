"""What drivers raise where their host system does not answer."""

from __future__ import annotations

from placeopt.errors import PlaceoptError


class Unreachable(PlaceoptError):
    """
    The host system did not answer, was busy, or answered what cannot be read.

    Whether a request took effect is unknown; the next reading shows it.
    """
