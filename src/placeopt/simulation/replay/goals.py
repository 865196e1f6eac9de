"""Goals of capacity questions about traces: ``p95_wait<=30m``, ``in_time>=95%``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from placeopt.errors import BadArgument, BadInput
from placeopt.model.scenario import Scenario

TIMES = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
STATISTICS = ("mean", "median", "p90", "p95", "p99", "max")
OVER_JOBS = {"wait": "s", "completion": "s", "slowdown": ""}
"""Measures of each job, and their units; ``slowdown`` is (end - arrival) / run time alone."""
OF_ALL = {"makespan": "s", "in_time": "%", "at_once": "%", "slowed": "", "delayed": ""}
"""
Measures of a whole run: time from the first arrival to the last end; part of the jobs with a deadline that met it; part
that did not wait; number of jobs slowed beyond the scenario's limit in their placements, or from first start to end.
"""
FORM = re.compile(r"\s*([a-z0-9_]+)\s*(<=|>=)\s*([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*(s|m|h|d|%)?\s*")


@dataclass(frozen=True)
class Goal:
    """A measure and its limit, an upper or a lower one."""

    measure: str
    sign: Literal["<=", ">="]
    limit: float
    """Seconds, percent, or a plain number, by the measure."""
    text: str

    def meets(self, value: float | None) -> bool:
        """Return whether a value meets the limit; None, a time without end, never does."""
        if value is None:
            return False
        return value <= self.limit if self.sign == "<=" else value >= self.limit


def measures() -> tuple[str, ...]:
    """Return the names of all measures."""
    return (*(f"{statistic}_{name}" for name in OVER_JOBS for statistic in STATISTICS), *OF_ALL)


def unit_of(measure: str) -> str:
    """Return ``s``, ``%`` or nothing."""
    return OF_ALL[measure] if measure in OF_ALL else OVER_JOBS[measure.partition("_")[2]]


def refuse_unmeasured(scenario: Scenario, measure: str) -> None:
    """Raise `BadInput` if no job of the scenario has the measure."""
    if measure != "in_time":
        return
    jobs = [arrival.job for arrival in scenario.arrivals if not arrival.service]
    if all(job.deadline_ms is None and job.expected_completion_ms is None for job in jobs):
        raise BadInput(
            f"in_time: no job of {scenario.name!r} has a deadline or an expected completion time (deadline_ms, "
            "expected_completion_ms); ask for another measure, such as p95_wait"
        )


def parse_goal(text: str) -> Goal:
    """
    Read a goal: a measure, ``<=`` or ``>=``, a number with its unit (s, m, h, d; %).

    Parameters
    ----------
    text
        Such as ``p95_wait<=10m``.

    Returns
    -------
    Goal
        The measure, the side and the number, in seconds or as a part of 1.

    Raises
    ------
    BadInput
        If it is no goal, or bounds the measure on the wrong side.
    """
    found = FORM.fullmatch(text)
    if found is None or found[1] not in measures():
        raise BadArgument(f"goal {text!r}: expected such as p95_wait<=30m; measures: {', '.join(measures())}")
    measure, sign, number, unit = found[1], found[2], float(found[3]), found[4] or ""
    wanted = unit_of(measure)
    if (wanted == "s") != (unit in TIMES) or (wanted != "s" and unit not in ("", wanted)):
        units = "a unit of s, m, h or d" if wanted == "s" else f"a number{' in %' if wanted else ''}"
        raise BadArgument(f"goal {text!r}: {measure} is measured with {units}")
    higher_is_better = wanted == "%"
    if (sign == ">=") != higher_is_better:
        raise BadArgument(f"goal {text!r}: expected {measure} {'>=' if higher_is_better else '<='} a limit")
    return Goal(measure, ">=" if higher_is_better else "<=", number * TIMES.get(unit, 1.0), text.replace(" ", ""))
