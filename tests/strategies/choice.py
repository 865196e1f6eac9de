"""Random choices, each in one word, and how a function that makes something by them becomes a strategy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any, Concatenate, ParamSpec, TypeVar

from hypothesis import strategies as st
from hypothesis.control import current_build_context
from hypothesis.strategies import SearchStrategy

T = TypeVar("T")
P = ParamSpec("P")


class Choice:
    """
    Random choices, each in one word, by the primitives of the example that Hypothesis makes.

    Not through ``st.integers`` and the like: each of some 200 choices a round would be a span, and Hypothesis spends
    four examples of five on copying one span over another of the same kind, so that 25 examples are five rounds.
    """

    def __init__(self, data: Any = None) -> None:
        self.data = current_build_context().data if data is None else data

    def of(self, strategy: SearchStrategy[T]) -> T:
        """Return an example of a strategy."""
        return self.data.draw(strategy)

    def chance(self, p: float) -> bool:
        """Return True with probability ``p``."""
        return self.data.draw_boolean(p)

    def number(self, low: int, high: int, step: int = 1) -> int:
        """Return ``low`` and some multiple of ``step``, at most ``high``."""
        return low + step * self.data.draw_integer(0, (high - low) // step)

    def pick(self, among: Sequence[T]) -> T:
        """Return one of ``among``."""
        return among[self.number(0, len(among) - 1)]

    def some(self, among: Sequence[T], p: float = 0.5) -> list[T]:
        """Return a part of ``among``, maybe empty, in order."""
        return [item for item in among if self.chance(p)]

    def shuffled(self, among: Iterable[T]) -> list[T]:
        """Return ``among`` in another order."""
        left = list(among)
        return [left.pop(self.number(0, len(left) - 1)) for _ in range(len(left))]

    def maybe(self, p: float, low: int, high: int, step: int = 1) -> int | None:
        """Return a number with probability ``p``, else None."""
        return self.number(low, high, step) if self.chance(p) else None


class Seeded:
    """The primitives by a seed, for whoever draws outside of a property."""

    def __init__(self, seed: str) -> None:
        self.rng = Random(seed)

    def draw_boolean(self, p: float) -> bool:
        """Return True with probability ``p``."""
        return self.rng.random() < p

    def draw_integer(self, low: int, high: int) -> int:
        """Return a number from ``low`` to ``high``."""
        return self.rng.randint(low, high)


def seeded(seed: object) -> Choice:
    """Return the choices of a seed."""
    return Choice(Seeded(str(seed)))


def strategy(make: Callable[Concatenate[Choice, P], T]) -> Callable[P, SearchStrategy[T]]:
    """Turn a function that makes something by choices into a strategy."""

    def made(*args: P.args, **kwargs: P.kwargs) -> SearchStrategy[T]:
        return st.builds(lambda: make(Choice(), *args, **kwargs))

    made.__doc__ = make.__doc__
    return made
