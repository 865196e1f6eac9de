"""Logs of simulations: who waits and who holds GPUs over time, how long jobs waited, and which job was where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from placeopt.errors import BadInput
from placeopt.readable import plural
from placeopt.report.views.simulation_log import SimulationLog, labels_of
from placeopt.simulation import Scenario, fragments_over_time, slots_over_time
from placeopt.view import Chart, Column, Table, View
from placeopt.view.records import Kind

MOST_GANTT_GPUS, MOST_GANTT_JOBS = 64, 400
"""Numbers of GPUs and jobs up to which bars by GPU are drawn."""
MOST_POINTS = 600
"""Points of a curve that are drawn one by one; of more, means of as many groups."""
Points = Sequence[tuple[float, float]]
TIME = Column(name="time", unit="s")


class _Curve(NamedTuple):
    """What one picture shows of every log."""

    title: str
    note: str
    kind: Kind
    x: Column
    y: Column
    points: Callable[[SimulationLog], Points]


def log_views(logs: Sequence[SimulationLog], scenario: Scenario | None = None) -> list[View]:
    """
    Return what logs show over time, and bars by GPU for each small log.

    Parameters
    ----------
    logs
        Of one scenario, a curve for each in every picture.
    scenario
        Theirs: the cluster and the run times. With it there are also idle GPUs on nodes partly in use, slots for jobs
        to come, and slowdowns.

    Returns
    -------
    list of View
        A picture each.

    Raises
    ------
    BadInput
        If a log has nodes that the scenario lacks.
    """
    labels = labels_of(logs)
    curves = _curves() if scenario is None else [*_curves(), *_curves_of(scenario)]
    if scenario is not None:
        _check_nodes(logs, scenario)
    views = [_view(curve, {labels[log.name]: curve.points(log) for log in logs}) for curve in curves]
    small = [log for log in logs if 0 < len(log.held) <= MOST_GANTT_GPUS and len(log.starts) <= MOST_GANTT_JOBS]
    return views + [_bars(log, labels[log.name]) for log in small]


def _check_nodes(logs: Sequence[SimulationLog], scenario: Scenario) -> None:
    known = scenario.cluster.gpus_by_node
    for log in logs:
        strange = next((node for node, _ in log.held if node not in known), None)
        if strange is not None:
            raise BadInput(f"log {log.name!r}: node {strange!r} is not in the scenario; name the scenario of the log")


def _view(curve: _Curve, drawn: Mapping[str, Points]) -> View:
    rows = tuple((label, *point) for label, points in drawn.items() for point in grouped(points))
    columns = (Column(name="policy"), curve.x, curve.y)
    long = max(map(len, drawn.values()), default=0) > MOST_POINTS
    note = f"{curve.note} Means of {MOST_POINTS} groups of points." if long else curve.note
    return View(
        title=curve.title,
        tables=(Table(name="Points", columns=columns, rows=rows, keys=2, note=note, shown=0),),
        chart=Chart(kind=curve.kind, table="Points", x=curve.x.name, y=(curve.y.name,), label="policy"),
    )


def _curves() -> list[_Curve]:
    """Return what logs alone show."""
    return [
        _Curve(
            "Jobs waiting over time",
            "Jobs that have arrived, or were stopped, and hold nothing.",
            "steps",
            TIME,
            Column(name="jobs waiting"),
            lambda log: _seconds(log.queue.items()),
        ),
        _Curve(
            "GPUs held over time",
            "Sum of the shares that jobs hold.",
            "steps",
            TIME,
            Column(name="GPUs", unit="gpu_milli"),
            lambda log: _steps(
                (at, sign * milli)
                for spans in log.held.values()
                for start, end, _, milli in spans
                for at, sign in ((start, 1), (end, -1))
            ),
        ),
        _Curve(
            "Waiting",
            "Part of the arrived jobs that waited at most this long; a curve that ends below 100 % has jobs that never "
            "started.",
            "steps",
            Column(name="wait", unit="s"),
            Column(name="part of the jobs", unit="fraction"),
            _waits,
        ),
    ]


def _curves_of(scenario: Scenario) -> list[_Curve]:
    """Return what needs the cluster and run times."""
    gpus_of = scenario.cluster.gpus_by_node
    largest = max(gpus_of.values(), default=0)
    return [
        _Curve(
            "Idle GPUs on nodes partly in use, over time",
            "Idle GPUs on nodes of which other GPUs are held.",
            "steps",
            TIME,
            Column(name="idle GPUs"),
            lambda log: _seconds(fragments_over_time(log.stays(), gpus_of)),
        ),
        *(_slots(size, gpus_of) for size in sorted({largest, largest // 2} - {0})),
        _Curve(
            "Slowdown with waiting",
            "Time from arrival to end over the run time alone and well placed, from the worst job on; a curve begins "
            "after the jobs that never end.",
            "steps",
            Column(name="jobs"),
            Column(name="slowdown"),
            lambda log: _slowdowns(log, scenario),
        ),
    ]


def _slots(size: int, gpus_of: Mapping[str, int]) -> _Curve:
    """Return the curve of the number of slots of so many idle GPUs on one node."""
    return _Curve(
        f"Slots of {plural(size, 'idle GPU')} on one node, over time",
        "Number of jobs of one worker with that many GPUs that would fit at once.",
        "steps",
        TIME,
        Column(name="slots"),
        lambda log: _seconds(slots_over_time(log.stays(), gpus_of, size)),
    )


def _seconds(steps: Iterable[tuple[int, int]]) -> Points:
    return [(at / 1000, float(value)) for at, value in steps]


def _steps(changes: Iterable[tuple[int, int]]) -> Points:
    """Return the running sum of changes (milliseconds, by how much), by seconds."""
    change = Counter[int]()
    for at, by in changes:
        change[at] += by
    times = sorted(change)
    return [(at / 1000, total) for at, total in zip(times, accumulate(change[at] for at in times), strict=True)]


def _waits(log: SimulationLog) -> Points:
    """Return the part of the arrived jobs that waited at most so many seconds."""
    waits = sorted((log.starts[job] - log.arrivals[job]) / 1000 for job in log.starts.keys() & log.arrivals.keys())
    return [(wait, (i + 1) / len(log.arrivals)) for i, wait in enumerate(waits)]


def _slowdowns(log: SimulationLog, scenario: Scenario) -> Points:
    """
    Return (end - arrival) / run time alone of the jobs of the scenario that ended, the largest first.

    Jobs that never end come before them and have no ratio.
    """
    known = {arrival.job.id: arrival for arrival in scenario.arrivals if not arrival.service}
    ratios = []
    for job in log.ends.keys() & known.keys():
        options = {option.id: option for option in known[job].job.options}
        option = options.get(log.options.get(job, ""), known[job].job.options[0])
        ratios.append((log.ends[job] - known[job].job.arrival_ms) / max(1, known[job].alone_ms(option)))
    first = len(known.keys() & set(log.stranded))
    return [(float(first + i), ratio) for i, ratio in enumerate(sorted(ratios, reverse=True))]


def grouped(points: Points) -> Points:
    """
    Return at most ``MOST_POINTS`` points: the mean y of groups of points that follow each other.

    A point holds until the next one; the mean is weighted by how long each holds.
    """
    if len(points) <= MOST_POINTS:
        return points
    x, y = np.asarray(points, dtype=float).T
    starts = np.linspace(0, len(x), MOST_POINTS, endpoint=False).astype(int)
    long = np.append(np.diff(x), 0.0)
    total, held = np.add.reduceat(long, starts), np.add.reduceat(long * y, starts)
    last = y[np.append(starts[1:], len(y)) - 1]
    mean = np.where(total > 0, held / np.where(total > 0, total, 1.0), last)
    mean[-1] = y[-1]
    return list(zip(x[starts].tolist(), mean.tolist(), strict=True))


def _bars(log: SimulationLog, label: str) -> View:
    """Return bars by GPU, as SC'17 figure 8."""
    columns = (
        Column(name="GPU"),
        Column(name="start", unit="ms"),
        Column(name="end", unit="ms"),
        Column(name="job"),
        Column(name="held", unit="gpu_milli"),
    )
    rows = tuple(
        (f"{node} {gpu}", start, end, job, milli)
        for (node, gpu), spans in sorted(log.held.items())
        for start, end, job, milli in sorted(spans)
    )
    return View(
        title=f"Jobs by GPU: {label}",
        tables=(Table(name="Bars", columns=columns, rows=rows, keys=2, note="from start to end", shown=0),),
        chart=Chart(kind="gantt", table="Bars", x="start", until="end", lane="GPU", label="job"),
    )
