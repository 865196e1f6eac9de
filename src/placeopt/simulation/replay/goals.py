"""Goals of capacity questions about traces, such as ``p95_wait<=30m``, and the measures that they name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from placeopt.errors import BadArgument, BadInput
from placeopt.simulation import History, summarise
from placeopt.simulation.job_columns import JobColumns
from placeopt.simulation.records.scenario import Scenario

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


PERCENT = {"median": 50, "p90": 90, "p95": 95, "p99": 99, "max": 100}


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
        If it is not a goal, or bounds the measure on the wrong side.
    """
    match = FORM.fullmatch(text)
    if match is None or match[1] not in measures():
        raise BadArgument(f"goal {text!r}: expected a goal such as p95_wait<=30m; measures: {', '.join(measures())}")
    measure, sign, number, unit = match[1], match[2], float(match[3]), match[4] or ""
    wanted = unit_of(measure)
    if (wanted == "s") != (unit in TIMES) or (wanted != "s" and unit not in ("", wanted)):
        units = "a unit of s, m, h or d" if wanted == "s" else f"a number{' in %' if wanted else ''}"
        raise BadArgument(f"goal {text!r}: {measure} needs {units}")
    higher_is_better = wanted == "%"
    if (sign == ">=") != higher_is_better:
        raise BadArgument(f"goal {text!r}: expected {measure} {'>=' if higher_is_better else '<='} a limit")
    return Goal(measure, ">=" if higher_is_better else "<=", number * TIMES.get(unit, 1.0), text.replace(" ", ""))


def measures_of(history: History) -> dict[str, float | None]:
    """
    Return every measure of a finished run, see `placeopt.simulation.replay.goals`.

    Jobs that never start wait without end; services do not count.
    """
    table = JobColumns.of(history)
    of_jobs = {"wait": table.wait / 1000, "completion": table.completion / 1000, "slowdown": table.slowdown_with_wait}
    measured = {
        f"{statistic}_{name}": _statistic(np.where(np.isnan(values), np.inf, values).tolist(), statistic)
        for name, values in of_jobs.items()
        for statistic in STATISTICS
    }
    in_time, at_once = table.in_time, table.at_once(history.scenario.physics.step_ms)
    summary = summarise(history, reasons=False)
    measured["makespan"] = summary.makespan_s if not history.stranded else None
    measured["in_time"] = 100 * int(in_time.sum()) / len(in_time) if len(in_time) else None
    measured["at_once"] = 100 * int(at_once.sum()) / len(at_once) if len(at_once) else None
    for name, count in (("slowed", summary.slowed), ("delayed", summary.delayed)):
        measured[name] = None if history.stranded else float(count)  # unknown for jobs that never end
    return measured


def _statistic(values: Sequence[float], name: str) -> float | None:
    """Return a statistic, with linearly interpolated percentiles; None where it is infinite, or without values."""
    if not values:
        return None
    if name == "mean":
        return None if max(values) == float("inf") else sum(values) / len(values)
    ordered = sorted(values)
    at = PERCENT[name] * (len(ordered) - 1) / 100
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    part = at - low
    if ordered[high if part else low] == float("inf"):
        return None
    return ordered[low] + part * (ordered[high] - ordered[low]) if part else ordered[low]
