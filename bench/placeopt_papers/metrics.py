"""Metrics that compute a figure from the rows of a campaign."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Self

from placeopt_papers.records import SeedValues


@dataclass(frozen=True)
class Value:
    """A measure of one policy."""

    setting: str
    policy: str
    measure: str

    @property
    def needs(self) -> tuple[tuple[str, str], ...]:
        """See ``FigureMetric``."""
        return ((self.setting, self.policy),)

    def renamed(self, setting_of: Callable[[str], str]) -> Self:
        """See ``FigureMetric``."""
        return replace(self, setting=setting_of(self.setting))

    def of(self, results: SeedValues) -> list[float] | None:
        """See ``FigureMetric``."""
        return results.values(self.setting, self.policy, self.measure)


@dataclass(frozen=True)
class Deviation(Value):
    """The standard deviation of a measure over the seeds."""

    def of(self, results: SeedValues) -> list[float] | None:
        """See ``FigureMetric``; one value, and none of fewer than two seeds."""
        values = results.values(self.setting, self.policy, self.measure)
        return [stdev(values)] if values is not None and len(values) > 1 else None


@dataclass(frozen=True)
class Ratio:
    """A measure of one policy over that of another, of the same seed."""

    setting: str
    policy: str
    over: str
    measure: str

    @property
    def needs(self) -> tuple[tuple[str, str], ...]:
        """See ``FigureMetric``."""
        return ((self.setting, self.policy), (self.setting, self.over))

    def renamed(self, setting_of: Callable[[str], str]) -> Self:
        """See ``FigureMetric``."""
        return replace(self, setting=setting_of(self.setting))

    def of(self, results: SeedValues) -> list[float] | None:
        """See ``FigureMetric``; None where one is divided by 0."""
        return _each(
            results.values(self.setting, self.policy, self.measure, (self.over,)),
            results.values(self.setting, self.over, self.measure, (self.policy,)),
            lambda one, other: one / other if other else None,
        )


@dataclass(frozen=True)
class Gain(Ratio):
    """Difference of a measure of one policy from that of another, of the same seed, in percent of the latter."""

    def of(self, results: SeedValues) -> list[float] | None:
        """See ``FigureMetric``; None where one is divided by 0."""
        ratio = super().of(results)
        return None if ratio is None else [100 * (quotient - 1) for quotient in ratio]


@dataclass(frozen=True)
class OutermostGain:
    """The largest, or the least, mean gain (`Gain`) of some policies over another one."""

    setting: str
    policies: tuple[str, ...]
    over: str
    measure: str
    largest: bool

    @property
    def needs(self) -> tuple[tuple[str, str], ...]:
        """See ``FigureMetric``."""
        return tuple((self.setting, policy) for policy in (*self.policies, self.over))

    def renamed(self, setting_of: Callable[[str], str]) -> Self:
        """See ``FigureMetric``."""
        return replace(self, setting=setting_of(self.setting))

    def of(self, results: SeedValues) -> list[float] | None:
        """See ``FigureMetric``; None unless all of them were run."""
        gains = [Gain(self.setting, policy, self.over, self.measure).of(results) for policy in self.policies]
        found = [gain for gain in gains if gain is not None]
        if len(found) < len(gains):
            return None
        return max(found, key=fmean) if self.largest else min(found, key=fmean)


@dataclass(frozen=True)
class BetweenSettings:
    """A measure of one policy in a setting over that in another, in percent of the latter less 100, by seed."""

    setting: str
    over: str
    policy: str
    measure: str

    @property
    def needs(self) -> tuple[tuple[str, str], ...]:
        """See ``FigureMetric``."""
        return ((self.setting, self.policy), (self.over, self.policy))

    def renamed(self, setting_of: Callable[[str], str]) -> Self:
        """See ``FigureMetric``."""
        return replace(self, setting=setting_of(self.setting), over=setting_of(self.over))

    def of(self, results: SeedValues) -> list[float] | None:
        """See ``FigureMetric``; None where one is divided by 0."""
        ones = results.values(self.setting, self.policy, self.measure)
        others = results.values(self.over, self.policy, self.measure)
        many = min(len(ones or ()), len(others or ()))
        return _each((ones or [])[:many], (others or [])[:many], _gain) if many else None


@dataclass(frozen=True)
class Worked:
    """A figure that is worked out without a simulation."""

    worked: Callable[[], float]
    measure: str = ""

    @property
    def needs(self) -> tuple[tuple[str, str], ...]:
        """See ``FigureMetric``; none."""
        return ()

    def renamed(self, setting_of: Callable[[str], str]) -> Self:
        """See ``FigureMetric``; it has no setting."""
        del setting_of
        return self

    def of(self, results: SeedValues) -> list[float]:
        """See ``FigureMetric``; one value."""
        del results
        return [self.worked()]


@dataclass(frozen=True)
class Change:
    """
    Difference of a policy from the best of its rivals, in percent of it; the largest (or least) over some settings.

    ``more``: more is better, so the best rival has the largest mean over seeds, and "up to" is the largest change.
    """

    settings: tuple[str, ...]
    policy: str
    rivals: tuple[str, ...]
    measure: str
    more: bool

    @property
    def needs(self) -> tuple[tuple[str, str], ...]:
        """See ``FigureMetric``."""
        return tuple((setting, policy) for setting in self.settings for policy in (self.policy, *self.rivals))

    def renamed(self, setting_of: Callable[[str], str]) -> Self:
        """See ``FigureMetric``."""
        return replace(self, settings=tuple(map(setting_of, self.settings)))

    def of(self, results: SeedValues) -> list[float] | None:
        """See ``FigureMetric``. Rivals that were not run are left out; None if none was run."""
        best: list[float] | None = None
        for setting in self.settings:
            there = [name for name in self.rivals if results.values(setting, name, self.measure)]
            mine = results.values(setting, self.policy, self.measure, there)
            beside = (self.policy, *there)
            rivals = [theirs for name in there if (theirs := results.values(setting, name, self.measure, beside))]
            if mine is None or not rivals:
                return None
            rival = max(rivals, key=sum) if self.more else min(rivals, key=sum)
            change = _each(mine, rival, _gain)
            if change is None:
                return None
            if best is None or (sum(change) > sum(best)) == self.more:
                best = change
        return best


def _gain(one: float, other: float) -> float | None:
    return 100 * (one / other - 1) if other else None


def _each(
    ones: list[float] | None, others: list[float] | None, of: Callable[[float, float], float | None]
) -> list[float] | None:
    if ones is None or others is None or len(ones) != len(others):
        return None
    values = [of(one, other) for one, other in zip(ones, others, strict=True)]
    return None if any(value is None for value in values) else [value for value in values if value is not None]
