"""What the papers print, from ``data/figures.csv``, and how our value of each figure follows from results."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from statistics import fmean, stdev
from typing import Any

from placeopt.systems.genie.scenarios import formula_error
from placeopt.systems.sc17.times import sc17_times
from placeopt.systems.soda.month import network_loss_percent, search_steps
from placeopt_papers.measures import MEASURES
from placeopt_papers.results import Results
from placeopt_papers.settings import read_data

KINDS = {
    "artifact": "the authors' public artifact gave the paper's value, or times of ours",
    "independent": "ours follows from what the paper or a public trace states; no constant was chosen for it",
    "fitted": "a constant of ours was chosen with this figure in view; the table of sensitivity varies it",
    "input": "the figure, or what alone decides it, is put into the scenario",
    "no data": "the paper's measurements are not public and ours has no model of it: no value of ours",
}
"""Where our value of a figure comes from."""
WORKED: dict[str, Callable[..., float]] = {
    "time_ratio": lambda one, other: sc17_times().run_time_ms[one] / sc17_times().run_time_ms[other],
    "formula_error": lambda models, part: formula_error(models, part),
    "network_loss_percent": lambda percent: network_loss_percent(float(percent)),
    "search_steps": search_steps,
}
"""Figures that are worked out without a simulation; their arguments stand in the column ``over``."""


@dataclass(frozen=True)
class Figure:
    """
    A figure that a paper prints.

    Attributes
    ----------
    paper, place, what, unit
        Key of ``PAPERS``; section, table or figure; description; unit.
    theirs, said
        The paper's value; None where it states none, and then what it says instead, such as ``< 5 %``.
    form, settings, policy, over, measure
        Our value: see ``FORMS``; an empty form where there is no data.
    kind, reason
        Key of ``KINDS``; what decides our value.
    constants, varied
        Constants of ours on which the value depends, and whether the table of sensitivity varies them for this figure;
        not where another figure of the same runs shows it.
    main
        Whether it stands in the short table of the page.
    """

    paper: str
    place: str
    what: str
    unit: str
    theirs: float | None
    said: str
    form: str
    settings: tuple[str, ...]
    policies: tuple[str, ...]
    over: tuple[str, ...]
    measure: str
    kind: str
    reason: str
    constants: tuple[str, ...]
    varied: bool
    main: bool

    @property
    def needs(self) -> list[tuple[str, str]]:
        """(setting, policy) of the rows that our value needs."""
        if self.form in ("", "worked"):
            return []
        return [(setting, policy) for setting in self.settings for policy in (*self.policies, *self.over)]

    def ours(self, results: Results) -> list[float] | None:
        """Return our value, one a seed or one alone; None where a row is missing."""
        if not self.form:
            return None
        if self.form == "worked":
            return [float(WORKED[self.measure](*self.over))]
        return FORMS[self.form](self, results)


@cache
def figures() -> tuple[Figure, ...]:
    """Return all figures, in the order of the papers."""
    text = files("placeopt_papers").joinpath("data", "figures.csv").read_text(encoding="utf-8")
    return tuple(
        Figure(
            paper=row["paper"],
            place=row["place"],
            what=row["what"],
            unit=row["unit"],
            theirs=float(row["theirs"]) if row["theirs"] else None,
            said=row["said"],
            form=row["form"],
            settings=tuple(row["settings"].split()),
            policies=tuple(row["policy"].split()),
            over=tuple(row["over"].split()),
            measure=row["measure"],
            kind=row["kind"],
            reason=row["reason"],
            constants=tuple(row["constants"].split()),
            varied=row["varied"] == "yes",
            main=row["main"] == "yes",
        )
        for row in csv.DictReader(text.splitlines())
    )


@dataclass(frozen=True)
class Order:
    """The order in which a paper ranks policies by a measure, best first; policies of one rank are equal."""

    paper: str
    place: str
    setting: str
    measure: str
    ranks: tuple[tuple[str, ...], ...]
    reason: str = ""
    """Key of ``reasons``: why it does not hold here, if it does not."""

    @property
    def neighbours(self) -> list[tuple[str, str]]:
        """(better, worse) for all policies of one rank and of the next."""
        return [(a, b) for rank, worse in zip(self.ranks, self.ranks[1:], strict=False) for a in rank for b in worse]


@cache
def orders() -> tuple[Order, ...]:
    """Return all orders."""
    return tuple(
        Order(**{**one, "ranks": tuple(map(tuple, one["ranks"]))}) for one in read_data("orders.toml")["orders"]
    )


def notes() -> dict[str, Any]:
    """Return ``constants``, each with its value and by what it was chosen, and ``reasons``, by key."""
    return read_data("notes.toml")


def _value(figure: Figure, results: Results) -> list[float] | None:
    (setting,), (policy,) = figure.settings, figure.policies
    return results.values(setting, policy, figure.measure)


def _deviation(figure: Figure, results: Results) -> list[float] | None:
    values = _value(figure, results)
    return [stdev(values)] if values is not None and len(values) > 1 else None


def _ratio(figure: Figure, results: Results) -> list[float] | None:
    (setting,), (policy,), (over,) = figure.settings, figure.policies, figure.over
    return _over(
        results.values(setting, policy, figure.measure, (over,)),
        results.values(setting, over, figure.measure, (policy,)),
    )


def _gain(figure: Figure, results: Results) -> list[float] | None:
    return _percent(_ratio(figure, results))


def _outermost(most: Callable[..., list[float]]) -> Callable[[Figure, Results], list[float] | None]:
    def outermost(figure: Figure, results: Results) -> list[float] | None:
        (setting,), (over,) = figure.settings, figure.over
        base = results.values(setting, over, figure.measure)
        gains = [_percent(_over(results.values(setting, one, figure.measure), base)) for one in figure.policies]
        found = [gain for gain in gains if gain is not None]
        return most(found, key=fmean) if len(found) == len(gains) else None

    return outermost


def _between(figure: Figure, results: Results) -> list[float] | None:
    (one, other), (policy,) = figure.settings, figure.policies
    ones, others = (results.values(setting, policy, figure.measure) or [] for setting in (one, other))
    many = min(len(ones), len(others))
    return _percent(_over(ones[:many], others[:many])) if many else None


def _best_change(figure: Figure, results: Results) -> list[float] | None:
    """The largest change over the settings, or the least where less is better; rivals without rows are left out."""
    more = MEASURES[figure.measure].more
    (policy,), best = figure.policies, None
    for setting in figure.settings:
        there = [name for name in figure.over if results.values(setting, name, figure.measure)]
        mine = results.values(setting, policy, figure.measure, there)
        found = [results.values(setting, name, figure.measure, (policy, *there)) for name in there]
        rivals = [values for values in found if values]
        if mine is None or not rivals:
            return None
        change = _percent(_over(mine, max(rivals, key=sum) if more else min(rivals, key=sum)))
        if change is None:
            return None
        if best is None or (sum(change) > sum(best)) == more:
            best = change
    return best


FORMS: dict[str, Callable[[Figure, Results], list[float] | None]] = {
    "value": _value,
    "deviation": _deviation,
    "ratio": _ratio,
    "gain": _gain,
    "least gain": _outermost(min),
    "largest gain": _outermost(max),
    "between": _between,
    "best change": _best_change,
}
"""
How our value follows from a measure of a policy, seed by seed.

``value``: itself; ``deviation``: over the seeds; ``ratio``: over that of the policy ``over``; ``gain``: the same as a
change in percent; ``least gain``, ``largest gain``: of several policies; ``between``: the change in percent from the
second setting to the first; ``best change``: from the best of the rivals ``over``, the largest of some settings.
"""


def _over(ones: list[float] | None, others: list[float] | None) -> list[float] | None:
    """Return the quotients; None where one is divided by 0, or values are missing."""
    if not ones or not others or len(ones) != len(others) or not all(others):
        return None
    return [one / other for one, other in zip(ones, others, strict=True)]


def _percent(quotients: list[float] | None) -> list[float] | None:
    return None if quotients is None else [100 * (quotient - 1) for quotient in quotients]
