"""Simulations of one scenario side by side: a row for each policy, and what lies behind its means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from placeopt.readable import plural
from placeopt.simulation import Distribution, Summary
from placeopt.view import Cell, Chart, Column, Figure, Table, View

NAMED = 3
"""Jobs that never end, named among the warnings before the rest is counted."""
SPREAD = ("mean", "median", "p95", "max")
COLUMNS = (
    Column(name="policy"),
    Column(name="ended", better="more"),
    Column(name="never end", better="less"),
    Column(name="last end", unit="s", better="less"),
    Column(name="completion", unit="s", better="less"),
    Column(name="wait", unit="s", better="less"),
    Column(name="slowdown", better="less"),
    Column(name="slowed", better="less"),
    Column(name="delayed", better="less"),
    Column(name="in time", unit="fraction", better="more"),
    Column(name="GPUs held", unit="fraction", better="more"),
    Column(name="p95 wait", unit="s", better="less"),
    Column(name="decision", unit="ms"),
)
COUNTS = ("jobs", "services", "stops", "moves", "resizes", "failures", "rounds", "rounds_cut")


def simulation_view(summaries: Sequence[Summary]) -> View:
    """
    Return the simulations of one scenario side by side.

    Parameters
    ----------
    summaries
        One for each policy, at least one.

    Returns
    -------
    View
        A row for each policy with the means of the jobs that ended; below it what a mean leaves out: percentiles,
        users, requests, jobs that never end.
    """
    first = summaries[0]
    partial = [one.policy for one in summaries if one.ended < one.jobs]
    any_ended = any(one.wait_s is not None for one in summaries)
    notes = ["Times and slowdowns are means of the jobs that ended; the part of GPUs is that of their time."]
    if partial:
        notes.append(f"Not all jobs ended under {', '.join(partial)}: means over other jobs do not compare.")
    tables = (
        _policies(summaries),
        _warnings(summaries),
        _spreads(summaries),
        _counts(summaries),
        _users(summaries),
        _requests(summaries),
        _never_ending(summaries),
    )
    return View(
        title=f"{first.scenario}: {plural(first.jobs, 'job')}, {plural(first.occupancy.gpus, 'GPU')}",
        verdict="bad" if partial else "",
        figures=_figures(first) if len(summaries) == 1 else (),
        notes=tuple(notes),
        tables=tuple(table for table in tables if table.rows),
        chart=Chart(kind="bars", table="Policies", x="policy", y=("wait", "p95 wait")) if any_ended else None,
    )


def _policies(summaries: Sequence[Summary]) -> Table:
    """Return a row for each policy, with the columns that say something, and something else than the one before."""
    rows = [_row(summary) for summary in summaries]
    said = [i for i in range(len(COLUMNS)) if any(row[i] is not None for row in rows)]
    if all(summary.delayed == summary.slowed for summary in summaries):  # no job was stopped for long
        said.remove([column.name for column in COLUMNS].index("delayed"))
    cells = tuple(tuple(row[i] for i in said) for row in rows)
    return Table(name="Policies", columns=tuple(COLUMNS[i] for i in said), rows=cells)


def _figures(summary: Summary) -> tuple[Figure, ...]:
    """Return the row of a single policy, which compares with another one whatever their names."""
    row = _row(summary)
    pairs = zip(COLUMNS[1:], row[1:], strict=True)
    return tuple(Figure(name=column.name, value=cell, unit=column.unit, better=column.better) for column, cell in pairs)


def _row(summary: Summary) -> tuple[Cell, ...]:
    return (
        summary.policy,
        summary.ended,
        summary.stranded if summary.finished else None,
        summary.last_end_s,
        _mean(summary.completion_s),
        _mean(summary.wait_s),
        _mean(summary.slowdown),
        summary.slowed,
        summary.delayed,
        summary.in_time,
        summary.occupancy.allocation,
        None if summary.wait_s is None else summary.wait_s.p95,
        _mean(summary.decision_ms),
    )


def _mean(spread: Distribution | None) -> float | None:
    return None if spread is None else spread.mean


def _warnings(summaries: Sequence[Summary]) -> Table:
    rows = tuple((summary.policy, note) for summary in summaries for note in _notes(summary))
    return Table(name="Beware", columns=(Column(name="policy"), Column(name="what")), rows=rows, keys=2)


def _notes(summary: Summary) -> Iterator[str]:
    if not summary.finished:
        yield f"stopped: {summary.ended:,} of {plural(summary.jobs, 'job')} had ended"
    if summary.stranded:
        yield f"{plural(summary.stranded, 'job')} will never end:"
        for job in summary.never_ends[:NAMED]:
            yield f"{job.job}: {job.why}"
        if summary.stranded > NAMED:
            yield f"and {summary.stranded - NAMED:,} more"
    if summary.rounds_cut:
        yield f"{plural(summary.rounds_cut, 'round')} cut by --time-limit: another run may decide otherwise"


def _spreads(summaries: Sequence[Summary]) -> Table:
    """Return the mean and percentiles of each figure of the jobs that ended."""
    rows = []
    for summary in summaries:
        spreads = {
            "completion, s": summary.completion_s,
            "wait, s": summary.wait_s,
            "stopped, s": summary.stopped_s,
            "slowdown": summary.slowdown,
            "slowdown with waiting": summary.slowdown_with_wait,
            "decision, ms": summary.decision_ms,
        }
        rows += [
            (summary.policy, name, *(getattr(spread, figure) for figure in SPREAD))
            for name, spread in spreads.items()
            if spread is not None
        ]
    columns = (Column(name="policy"), Column(name="figure"), *(Column(name=name) for name in SPREAD))
    return Table(name="Spread over jobs", columns=columns, rows=tuple(rows), keys=2, shown=0)


def _counts(summaries: Sequence[Summary]) -> Table:
    """Return what else happened, a column for each figure."""
    columns = (
        Column(name="policy"),
        *(Column(name=name.replace("_", " ")) for name in COUNTS),
        Column(name="makespan", unit="s", better="less"),
        Column(name="started at once", unit="fraction", better="more"),
        Column(name="fairness", better="more"),
        Column(name="GPUs with a job", unit="fraction"),
        Column(name="GPUs used", unit="fraction"),
        Column(name="used of those with a job", unit="fraction"),
        Column(name="idle on nodes partly in use", unit="fraction", better="less"),
        Column(name="CPU of decisions", unit="s"),
        Column(name="jobs without an estimate that is read"),
    )
    rows = []
    for one in summaries:
        held = one.occupancy
        parts = (held.active_rate, held.utilisation, held.utilisation_of_active, held.fragmentation)
        missing = 0 if one.missing_estimates is None else one.missing_estimates.jobs
        times = (one.makespan_s, one.started_at_once, one.fairness)
        counts = (getattr(one, name) for name in COUNTS)
        rows.append((one.policy, *counts, *times, *parts, one.decision_cpu_s, missing))
    return Table(name="More of each policy", columns=columns, rows=tuple(rows), shown=0)


def _users(summaries: Sequence[Summary]) -> Table:
    columns = (
        Column(name="policy"),
        Column(name="user"),
        Column(name="ended", better="more"),
        Column(name="wait", unit="s", better="less"),
        Column(name="slowdown with waiting", better="less"),
    )
    rows = tuple(
        (one.policy, user.user, user.ended, user.wait_s, user.slowdown_with_wait)
        for one in summaries
        for user in one.users
    )
    return Table(name="Users", columns=columns, rows=rows, keys=2, shown=0)


def _requests(summaries: Sequence[Summary]) -> Table:
    columns = (
        Column(name="policy"),
        Column(name="requests"),
        Column(name="late", unit="fraction", better="less"),
        Column(name="time with late ones", unit="s", better="less"),
        Column(name="p95 latency", unit="ms", better="less"),
    )
    rows = tuple(
        (one.policy, one.serving.requests, one.serving.late_share, one.serving.late_s, one.serving.latency_p95_ms)
        for one in summaries
        if one.serving is not None
    )
    return Table(name="Requests", columns=columns, rows=rows)


def _never_ending(summaries: Sequence[Summary]) -> Table:
    columns = (Column(name="policy"), Column(name="job"), Column(name="why"))
    rows = tuple((one.policy, job.job, job.why) for one in summaries for job in one.never_ends)
    return Table(name="Jobs that never end", columns=columns, rows=rows, keys=2, shown=0)
