"""A table of jobs with named columns as jobs: what is not understood is left out and counted, never guessed."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from placeopt.arguments import checked
from placeopt.errors import BadInput
from placeopt.importers.import_notes import ImportNotes
from placeopt.importers.job_table.column_choice import (
    SPAN_FIELDS,
    SUMS,
    TIME_FIELDS,
    Column,
    amount,
    missing_fields,
    models,
    moment_ms,
    parse_columns,
    span_ms,
)
from placeopt.importers.job_table.rows import Rows, Values, read_rows
from placeopt.model.base import MAX_JOBS, MAX_MS, one_line
from placeopt.model.group import MAX_WORKERS
from placeopt.model.instance import NAMES_SHOWN
from placeopt.model.job import MAX_PRIORITY

DATES_FROM_MS = 1000 * 946_684_800
"""The year 2000: a table whose times go beyond has dates; others count from its begin, and take less than 30 years."""
_NEEDED = ("id", "state", "submit", "start", "end", "duration")
"""Fields that each row has to state where they have a column."""
MOST = {"gpus": 100_000, "cpu": 100_000, "memory": 10**9, "share": 1000, "priority": MAX_PRIORITY}
MOST |= dict.fromkeys(("workers", "nodes"), MAX_WORKERS)
"""Most of an amount: whole GPUs, cores, MiB, workers, nodes."""
_CACHED = 4096
"""Texts of a field whose value is kept: tables repeat few."""
_WORD = re.compile(r"[^\s\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]{1,253}\Z")


@dataclass(frozen=True, slots=True)
class TableJob:
    """
    A job of the table.

    ``gpus``, ``cpu`` (cores) and ``memory`` (MiB) are of the whole job; with ``workers`` of each of its workers. With
    ``nodes`` the job is divided evenly over so many. ``duration_ms``: None where no column has it. ``estimate_ms``: the
    run time that its user expected.
    """

    id: str
    submit_ms: int
    duration_ms: int | None
    gpus: Fraction
    cpu: Fraction
    memory: Fraction
    workers: int | None
    nodes: int | None
    estimate_ms: int | None
    models: tuple[str, ...]
    user: str | None
    queue: str | None
    priority: int
    profile: str | None


class _Left(Exception):
    """A row that becomes no job, with the reason."""


@checked
def read_jobs(path: str | Path, columns: str, *, waiting: bool = False) -> tuple[list[TableJob], ImportNotes]:
    """
    Return the jobs of a table, in the order of submission, and notes about the rows that were left out.

    Parameters
    ----------
    path
        CSV, JSON lines, a JSON list or Parquet; gzip or not; ``-`` is standard input.
    columns
        As `parse_columns` reads it. A table may lack columns of a published form that no job needs.
    waiting
        Whether the jobs only wait: run times and states are not read, and without a column all are submitted at 0.

    Returns
    -------
    tuple of list of TableJob and ImportNotes
        The jobs, and what was left out by reason, with the lines concerned.

    Raises
    ------
    BadArgument
        If ``columns`` is wrong.
    BadInput
        If the file cannot be read, lacks a column, or has no row of which a job can be made.
    """
    choice = parse_columns(columns, waiting=waiting)
    names: dict[bool, dict[str, None]] = {False: {}, True: {}}
    for column in chain.from_iterable(choice.values()):
        names[column.published] |= dict.fromkeys(column.needs)
    table = read_rows(path, names[False], names[True].keys() - names[False].keys())
    notes = ImportNotes()
    there = {field: [one for one in of if table.lacking.isdisjoint(one.needs)] for field, of in choice.items()}
    wanted = {field: found[0] for field, found in there.items() if found}
    lacking = sorted({name for field in choice.keys() - wanted for one in choice[field] for name in one.needs})
    if missing := missing_fields(wanted, waiting=waiting):
        raise BadInput(f"{path}: no column for {'; '.join(missing)}: it lacks {', '.join(lacking)}")
    if lacking:
        notes.assume(f"Columns of the form that the table lacks: {', '.join(lacking)}.")
    if "duration" in wanted or not {"start", "end"} <= wanted.keys():
        wanted = {field: column for field, column in wanted.items() if field not in ("start", "end")}
    values = {field: lru_cache(_CACHED)(partial(_value, field, column)) for field, column in wanted.items()}
    jobs: dict[str, TableJob] = {}
    seen: set[tuple[str, int]] = set()
    copies: dict[str, int] = {}
    for name, row in _rows(table, wanted, notes):
        try:
            job = _job(name, row, values)
        except _Left as reason:
            notes.leave_out(str(reason), name)
            continue
        if (job.id, job.submit_ms) in seen:
            notes.leave_out("its id and submission stand on an earlier row", name)
            continue
        seen.add((job.id, job.submit_ms))
        if job.id in jobs:
            job = replace(job, id=_next_id(job.id, jobs, copies))
        jobs[job.id] = job
        if len(jobs) > MAX_JOBS:
            raise BadInput(f"{path}: more than {MAX_JOBS:,} jobs, expected at most that many")
    if copies:
        again = ", ".join(f"{name}-2" for name in islice(copies, NAMES_SHOWN))
        notes.assume(f"Ids that come again with another submission are other jobs: {len(copies)} ({again}).")
    return _without_unset_times(path, sorted(jobs.values(), key=lambda job: job.submit_ms), notes), notes


def _next_id(name: str, known: Collection[str], copies: dict[str, int]) -> str:
    """Return the id with the next number behind it: resource managers recycle ids."""
    while True:
        copies[name] = copies.get(name, 1) + 1
        if (numbered := f"{name[:240]}-{copies[name]}") not in known:
            return numbered


def _without_unset_times(path: str | Path, jobs: list[TableJob], notes: ImportNotes) -> list[TableJob]:
    """Leave out jobs submitted at 0 among dates: databases write 0 for a time that is not known."""
    if jobs and jobs[-1].submit_ms > DATES_FROM_MS:
        for job in jobs:
            if job.submit_ms == 0:
                notes.leave_out("submit is 0 in a table of dates: not known", job.id)
        jobs = [job for job in jobs if job.submit_ms]
    if not jobs:
        raise BadInput(f"{path}: no row of which a job can be made. {notes.text()}".rstrip().replace("\n", " "))
    return jobs


def _getter(table: Rows, column: Column) -> Callable[[Any], Values]:
    parts = [table.column(name) for name in column.names]
    get = parts[0] if len(parts) == 1 else partial(_joined, parts)
    if column.by is None:
        return get
    by, values = table.column(column.by), frozenset(column.values)
    return lambda row: get(row) if values.intersection(by(row)) else ()


def _joined(parts: list[Callable[[Any], Values]], row: Any) -> Values:
    """Return the texts of several columns as one; none where one of them is empty."""
    texts = [get(row) for get in parts]
    return ("-".join(text[0] for text in texts),) if all(texts) else ()


def _rows(table: Rows, wanted: Mapping[str, Column], notes: ImportNotes) -> Iterator[tuple[str, Mapping[str, Values]]]:
    """Yield the texts of each field by row, or by key: each field then has all that the rows of the key state."""
    getters = {field: _getter(table, column) for field, column in wanted.items()}
    joined: dict[str, dict[str, dict[Values, None]]] = {}
    for number, row in table.rows:
        if row is None:
            notes.leave_out("the row has more or fewer fields than the header, or is not an object", f"row {number}")
        elif "key" not in wanted:
            yield f"row {number}", {field: get(row) for field, get in getters.items()}
        elif key := getters["key"](row):
            held = joined.setdefault(key[0], {})
            for field, get in getters.items():
                if texts := get(row):
                    held.setdefault(field, {})[texts] = None
        else:
            notes.leave_out("the row has no key", f"row {number}")
    for name, held in joined.items():
        twice = next((field for field, stated in held.items() if len(stated) > 1 and field != "state"), None)
        if twice is not None:
            notes.leave_out(f"its rows state different {twice}", name)
            continue
        yield name, {field: tuple(stated)[-1] for field, stated in held.items()}


def _value(field: str, column: Column, texts: Values) -> Any:
    """Return the value of a field; None where no text states it. Amounts of several containers add up."""
    if not texts and field in _NEEDED:
        raise _Left(f"no {field}")
    if len(set(texts)) > 1 and field not in (*SUMS, "end"):
        raise _Left(f"it states different {field}")
    if not texts:
        return None
    text, form = texts[0], column.form
    try:
        if field in TIME_FIELDS:
            return max(moment_ms(one, form) for one in texts)
        if field in SPAN_FIELDS:
            return round(span_ms(text, form) * column.factor)
        if field in ("id", "key", "queue") and not _WORD.match(text):
            raise _Left(f"its {field} has blanks or is longer than 253 characters")
        if field == "state" and not {text, text.split()[0]} & {*form.split("|")}:
            raise _Left(f"state {text.split()[0][:40]}")
        if field == "model":
            return tuple(label for model in models(text, form) if (label := one_line(model)[:253]))
        if field not in MOST:
            return one_line(text)[:253]
        return _amount(field, column, texts)
    except ValueError as error:
        raise _Left(f"{field} {error}") from None


def _amount(field: str, column: Column, texts: Values) -> Fraction | int | None:
    value = sum((amount(text, field, column.form) for text in texts), Fraction(0)) * column.factor
    if not (-MOST[field] if field == "priority" else 0) <= value <= MOST[field]:
        raise ValueError(f"is below 0 or beyond {MOST[field]:,}")
    if field in (*SUMS, "share"):
        return value
    if not value and column.form == "tres":  # lists of resources leave out what is not counted
        return None
    least = -MAX_PRIORITY if field == "priority" else 1
    if value.denominator != 1 or value < least:
        raise ValueError(f"is not a whole number of at least {least}")
    return int(value)


def _job(name: str, row: Mapping[str, Values], values: Mapping[str, Callable[[Values], Any]]) -> TableJob:
    def of(field: str) -> Any:
        return values[field](row.get(field, ())) if field in values else None

    of("state")
    submit, start, duration = of("submit") or 0, of("start"), of("duration")
    if start is not None:
        if start < submit:
            raise _Left("it starts before its submission" if start else "start is 0: not known")
        duration = of("end") - start
    if duration is not None and not 0 <= duration <= MAX_MS:
        raise _Left(
            "it ends before it starts" if duration < 0 else "it runs for more than 300 years; is the unit right?"
        )
    gpus, cpu, memory = (of(field) or Fraction(0) for field in SUMS)
    share = of("share")
    if share is not None and not (share == 1 if gpus > 1 else 0 < share <= 1 if gpus else share == 0):
        raise _Left("its share is not that of one GPU, above 0 and up to 1, or of none, 0, or of several, 1")
    gpus *= share or 1
    if not gpus and not cpu:
        raise _Left("it asks for neither GPUs nor CPU")
    if gpus > 1 and gpus.denominator != 1:
        raise _Left("its GPUs are neither whole nor a part of one")
    estimate = of("estimate")
    return TableJob(
        id=of("id") or of("key") or name.replace("row ", "job-"),
        submit_ms=submit,
        duration_ms=duration,
        gpus=gpus,
        cpu=cpu,
        memory=memory,
        workers=of("workers"),
        nodes=of("nodes"),
        estimate_ms=estimate if estimate is None or estimate <= MAX_MS else None,
        models=(of("model") or ()) if gpus else (),
        user=of("user"),
        queue=of("queue"),
        priority=of("priority") or 0,
        profile=of("profile"),
    )
