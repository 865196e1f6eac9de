"""Random choices, each in one word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from numpy.random import Generator

T = TypeVar("T")


class Dice:
    """Random choices, each in one word."""

    def __init__(self, rng: Generator) -> None:
        self.rng = rng

    def chance(self, p: float) -> bool:
        """Return True with probability ``p``."""
        return bool(self.rng.random() < p)

    def number(self, low: int, high: int, step: int = 1) -> int:
        """Return a multiple of ``step`` above ``low``, at most ``high``."""
        return low + step * int(self.rng.integers(0, (high - low) // step + 1))

    def pick(self, among: Sequence[T]) -> T:
        """Return one of ``among``."""
        return among[int(self.rng.integers(len(among)))]

    def some(self, among: Sequence[T]) -> list[T]:
        """Return a random, maybe empty part of ``among``, in order."""
        return [item for item in among if self.chance(0.5)]

    def maybe(self, p: float, value: T) -> T | None:
        """Return ``value`` with probability ``p``, else None."""
        return value if self.chance(p) else None
