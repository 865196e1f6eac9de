"""Constants of the scenarios that were chosen with a paper's figure in view can be scaled, to show what follows."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

Factors = Mapping[str, float]
"""Name of a constant -> the factor on it; constants without a factor stay as they are."""
UNCHANGED: Factors = MappingProxyType({})


def scaled(value: float, name: str, factors: Factors, *, most: float = float("inf")) -> float:
    """Return the constant ``name`` times its factor, at most ``most``."""
    return value if name not in factors else min(most, value * factors[name])
