"""A table of jobs with named columns as jobs: what is not understood is left out and counted, never guessed."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

from placeopt.arguments import checked
from placeopt.errors import BadInput
from placeopt.importers.import_notes import ImportNotes
from placeopt.importers.job_table.column_choice import Column, missing_fields, parse_columns
from placeopt.importers.job_table.forms import amount, models, moment_ms, span_ms
from placeopt.importers.job_table.rows import Rows, Values, read_rows
from placeopt.model.base import MAX_JOBS, MAX_MS, one_line
from placeopt.model.group import MAX_WORKERS
from placeopt.model.job import MAX_PRIORITY
from placeopt.model.reading_note import NAMES_SHOWN

MAX_GPUS = 100_000
MAX_CORES = 100_000
MAX_MIB = 10**9
MOST = {"gpus": MAX_GPUS, "cpu": MAX_CORES, "memory": MAX_MIB, "workers": MAX_WORKERS, "nodes": MAX_WORKERS}
_NAMES = re.compile(r"[^,;|]+")
DATES_FROM_MS = 1000 * 946_684_800
"""The year 2000: a table whose times go beyond has dates; others count from its begin, and take less than 30 years."""
_SUMS = ("gpus", "cpu", "memory")
"""Amounts that add up where a path leads through several containers."""
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
    wanted = parse_columns(columns, waiting=waiting)
    names: dict[bool, dict[str, None]] = {False: {}, True: {}}
    for column in wanted.values():
        names[column.published] |= dict.fromkeys(column.all_names())
    table = read_rows(path, names[False], names[True].keys() - names[False].keys())
    notes = ImportNotes()
    if table.lacking:
        present = {field: column.in_table(table.lacking) for field, column in wanted.items()}
        lacking = sorted({name for field in wanted if not present[field] for name in wanted[field].all_names()})
        wanted = {field: column for field, column in present.items() if column is not None}
        if missing := missing_fields(wanted, waiting=waiting):
            raise BadInput(f"{path}: no column for {'; '.join(missing)}: it lacks {', '.join(lacking)}")
        if lacking:
            notes.assume(f"Columns of the form that the table lacks: {', '.join(lacking)}.")
    jobs: dict[str, TableJob] = {}
    seen: set[tuple[str, int]] = set()
    copies: dict[str, int] = {}
    for name, fields in _by_key(table, wanted, notes) if "key" in wanted else _by_row(table, wanted, notes):
        try:
            job = _job(name, fields, wanted)
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


Fields = dict[str, Values]


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


def _by_row(table: Rows, wanted: dict[str, Column], notes: ImportNotes) -> Iterator[tuple[str, Fields]]:
    getters = [(field, _getter(table, column)) for field, column in wanted.items()]
    for number, row in table.rows:
        if row is None:
            notes.leave_out("the row has more or fewer fields than the header, or is not an object", f"row {number}")
            continue
        yield f"row {number}", {field: get(row) for field, get in getters}


def _by_key(table: Rows, wanted: dict[str, Column], notes: ImportNotes) -> Iterator[tuple[str, Fields]]:
    """Join the rows of a key: each field has all different values that they state."""
    getters = [(field, _getter(table, column)) for field, column in wanted.items()]
    key_of = _getter(table, wanted["key"])
    joined: dict[str, dict[str, dict[Values, None]]] = {}
    for number, row in table.rows:
        key = None if row is None else next(iter(key_of(row)), None)
        if row is None or key is None:
            notes.leave_out("the row has no key", f"row {number}")
            continue
        held = joined.setdefault(key, {})
        for field, get in getters:
            if values := get(row):
                held.setdefault(field, {})[values] = None
    for key, held in joined.items():
        twice = next((field for field, stated in held.items() if len(stated) > 1 and field != "state"), None)
        if twice is not None:
            notes.leave_out(f"its rows state different {twice}", key)
            continue
        yield key, {field: tuple(stated)[-1] for field, stated in held.items()}


def _job(name: str, fields: Fields, wanted: dict[str, Column]) -> TableJob:
    if "state" in wanted:
        _check_state(_one(fields, "state"), wanted["state"].form)
    submit = _time(fields, wanted, "submit") if "submit" in wanted else 0
    duration = _duration(fields, wanted, submit)
    gpus, cpu, memory = (_amount(fields, wanted, field) or Fraction(0) for field in _SUMS)
    share = _amount(fields, wanted, "share")
    if share is not None and not (share == 1 if gpus > 1 else 0 < share <= 1 if gpus else share == 0):
        raise _Left("its share is not that of one GPU, above 0 and up to 1, or of none, 0, or of several, 1")
    gpus *= share or 1
    if not gpus and not cpu:
        raise _Left("it asks for neither GPUs nor CPU")
    if gpus > 1 and gpus.denominator != 1:
        raise _Left("its GPUs are neither whole nor a part of one")
    identity = _one(fields, "id") if "id" in wanted else _one(fields, "key") if "key" in wanted else None
    if identity is None and "id" in wanted:
        raise _Left("no id")
    identity = name.replace("row ", "job-") if identity is None else identity
    if not _WORD.match(identity):
        raise _Left("its id has blanks or is longer than 253 characters")
    queue = _one(fields, "queue")
    if queue is not None and not _WORD.match(queue):
        raise _Left("its queue has blanks or is longer than 253 characters")
    estimate = _span(fields, wanted, "estimate") if "estimate" in wanted and fields.get("estimate") else None
    return TableJob(
        id=identity,
        submit_ms=submit,
        duration_ms=duration,
        gpus=gpus,
        cpu=cpu,
        memory=memory,
        workers=_whole(fields, wanted, "workers"),
        nodes=_whole(fields, wanted, "nodes"),
        estimate_ms=estimate if estimate is None or estimate <= MAX_MS else None,
        models=_models(fields, wanted) if gpus else (),
        user=_label(_one(fields, "user")),
        queue=queue,
        priority=_whole(fields, wanted, "priority", -MAX_PRIORITY) or 0,
        profile=_label(_one(fields, "profile")),
    )


def _duration(fields: Fields, wanted: dict[str, Column], submit: int) -> int | None:
    """Return the run time: what a column says or, where none does, from the start to the end."""
    if "duration" in wanted:
        duration = _span(fields, wanted, "duration")
    elif {"start", "end"} <= wanted.keys():
        start, end = _time(fields, wanted, "start"), _time(fields, wanted, "end", last=True)
        if start < submit:
            raise _Left("it starts before its submission" if start else "start is 0: not known")
        duration = end - start
    else:
        return None
    if duration < 0:
        raise _Left("it ends before it starts")
    if duration > MAX_MS:
        raise _Left("it runs for more than 300 years; is the unit right?")
    return duration


def _one(fields: Fields, field: str) -> str | None:
    values = fields.get(field, ())
    if len(set(values)) > 1:
        raise _Left(f"it states different {field}")
    return values[0] if values else None


def _needed(fields: Fields, field: str) -> str:
    text = _one(fields, field)
    if text is None:
        raise _Left(f"no {field}")
    return text


@lru_cache(4096)
def _is_state(text: str, states: str) -> bool:
    return text.split()[0] in states.split("|") or text in states.split("|")


def _check_state(text: str | None, states: str) -> None:
    if text is None:
        raise _Left("no state")
    if not _is_state(text, states):
        raise _Left(f"state {text.split()[0][:40]}")


def _time(fields: Fields, wanted: dict[str, Column], field: str, *, last: bool = False) -> int:
    """Return a time; of several containers the last one's where ``last``."""
    form, values = wanted[field].form, fields.get(field, ())
    try:
        if last and len(values) > 1:
            return max(moment_ms(text, form) for text in values)
        return moment_ms(_needed(fields, field), form)
    except ValueError as error:
        raise _Left(f"{field} {error}") from None


def _span(fields: Fields, wanted: dict[str, Column], field: str) -> int:
    column = wanted[field]
    try:
        return round(span_ms(_needed(fields, field), column.form) * column.factor)
    except ValueError:
        raise _Left(f"{field} is not a duration") from None


def _amount(fields: Fields, wanted: dict[str, Column], field: str) -> Fraction | None:
    if field not in wanted or not fields.get(field):
        return None
    column = wanted[field]
    texts = fields[field] if field in _SUMS else (_needed(fields, field),)
    if column.form == "count":
        texts, column = (str(sum(len(_NAMES.findall(text)) for text in texts)),), replace(column, form="")
    try:
        value = sum((amount(text, field, column.form) for text in texts), Fraction(0)) * column.factor
    except ValueError as error:
        raise _Left(f"{field} {error}") from None
    most = MOST.get(field, MAX_PRIORITY)
    if not (-most if field == "priority" else 0) <= value <= most:
        raise _Left(f"{field} is below 0 or beyond {most:,}")
    return value


def _whole(fields: Fields, wanted: dict[str, Column], field: str, least: int = 1) -> int | None:
    value = _amount(fields, wanted, field)
    if value is None or (
        not value and wanted[field].form == "tres"
    ):  # lists of resources leave out what is not counted
        return None
    if value.denominator != 1 or value < least:
        raise _Left(f"{field} is not a whole number of at least {least}")
    return int(value)


def _models(fields: Fields, wanted: dict[str, Column]) -> tuple[str, ...]:
    text = _one(fields, "model")
    if text is None:
        return ()
    try:
        return tuple(label for model in models(text, wanted["model"].form) if (label := _label(model)))
    except ValueError:
        raise _Left("model is none of Slurm's resources") from None


@lru_cache(65_536)
def _label(text: str | None) -> str | None:
    return None if text is None else one_line(text)[:253]
