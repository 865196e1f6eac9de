"""Lists that Slurm's commands print as JSON: their fields and numbers, and jobs that are left out of them."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from placeopt.documents.files import read_bytes
from placeopt.errors import BadInput, Unsupported
from placeopt.importers.import_notes import ImportNotes
from placeopt.importers.json_entry import JsonEntry, read_json
from placeopt.importers.slurm.fields import expand_hosts
from placeopt.model.base import MAX_MS


@cache
def known(of: str, *uses: str) -> frozenset[str]:
    """
    Return the words of Slurm's lists whose use is one of some, by the file ``known_words.csv``.

    Fields ``of`` a ``job`` (``squeue --json``), its ``flag`` or a ``node`` (``scontrol show nodes --json``), of data
    parsers v0.0.37 to v0.0.46: ``read``; ``harmless``: no request for places, no limit of what a node takes;
    ``request``: one that a round cannot state, also where all jobs make it.

    ``node state``: those that take new work, by the manual pages of sinfo and scontrol. Slurm starts jobs on nodes that
    it has powered down (it resumes them) and while they power up, not while they power down; a node that completes a
    job gives away the rest of itself; one that is to be rebooted need not take jobs. ``job state``: suspended and
    stopped jobs keep GPUs and memory. ``reason`` to wait that ``room`` ends, or ``no room``: holds, dependencies and
    times; what limits of accounts admit depends on what runs.
    """
    text = files("placeopt.importers.slurm").joinpath("known_words.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    return frozenset(row["word"] for row in rows if row["of"] == of and row["use"] in uses)


UNSET_TEXTS = frozenset(("", "(null)", "N/A", "None", "none"))
UNSET_NUMBERS = frozenset((0, 0x7FFE, 0xFFFE, 0xFFFF, 0xFFFFFFFE, 0xFFFFFFFF, 2**64 - 2, 2**64 - 1))
"""What Slurm writes for 'none' and 'no limit' in numbers of 16, 32 and 64 bits, and for no specialized cores."""


def is_set(value: object) -> bool:
    """Return whether a field of Slurm's JSON states anything."""
    if isinstance(value, dict):
        if "set" in value:
            return bool(value["set"]) and not value.get("infinite") and is_set(value.get("number"))
        return any(map(is_set, value.values()))
    if isinstance(value, str):
        return value not in UNSET_TEXTS
    return bool(value) and not (isinstance(value, int | float) and value is not True and value in UNSET_NUMBERS)


TEXT = re.compile(r"\s*(NodeName=|JobId=|JOBID\b|NODELIST\b|PARTITION\b|LicenseName=|ReservationName=)")
"""How the output of scontrol, squeue and sinfo begins without ``--json``."""
KEYS = ("jobs", "nodes", "partitions", "sinfo", "licenses", "reservations")


def read_list(source: str | Path | dict[str, Any], key: str, command: str) -> tuple[JsonEntry, list[JsonEntry]]:
    """Return a document, a file or parsed, and the entries of its list; ``command``: what prints it, for messages."""
    if not isinstance(source, dict) and str(source) != "-":
        match = TEXT.match(read_bytes(source)[:4096].decode(errors="replace"))
        if match is not None:
            begins = f"{source}: begins with {match[1]!r}: Slurm's plain text, which is not read"
            raise Unsupported(f"{begins}; give the output of {command}")
    document = read_json(source, key)
    return document, entries_of(document, key, command)


def entries_of(document: JsonEntry, key: str, command: str) -> list[JsonEntry]:
    """Return the entries of a list; raises `Unsupported` where a document has another of Slurm's lists instead."""
    if isinstance(document.raw(key), list):
        return document.entries(key)
    if other := next((other for other in KEYS if other in document), None):
        raise Unsupported(
            f"{document.where}: no list {key!r}, but Slurm's list of {other}; give the output of {command}"
        )
    raise BadInput(f"{document.where}: no list {key!r}; expected the output of {command}")


def fields_read(
    entries: Sequence[JsonEntry], read: frozenset[str], requests: frozenset[str], notes: ImportNotes, called: str
) -> frozenset[str]:
    """
    Return the fields that are read, and those that all entries set alike, which ``notes`` name once.

    Those count as the cluster's own setting, but for ``requests``. One entry alone is no evidence of that.
    """
    first = entries[0] if len(entries) > 1 else JsonEntry("", {})
    alike = [
        name
        for name in first.others(read | requests)
        if is_set(value := first.raw(name)) and all(entry.raw(name) == value for entry in entries)
    ]
    for name in alike:
        notes.assume(f"All {called} state the same {name[:60]}, which is not read.")
    return read.union(alike)


def first_set(entry: JsonEntry, read: frozenset[str]) -> str | None:
    """Return the first field, or flag of a job, that an entry sets and that is not read, if any."""
    names = (name for name in entry.others(read) if is_set(entry.raw(name)))
    return next(names, None) or next((word for word in entry.words("flags") if word in known("flag", "request")), None)


class JobLeftOut(Exception):
    """A waiting job has a request that is not read; the text is the reason."""


class NotEligible(JobLeftOut):
    """A waiting job is held, or waits for a time or for other jobs, whatever it asks for."""


def reason_of(entry: JsonEntry, error: JobLeftOut | BadInput) -> str:
    """Return the reason for a job that is not read: the text, or the name of the field that cannot be read."""
    text = str(error)
    if isinstance(error, JobLeftOut):
        return text
    text = text[text.index(entry.where) + len(entry.where) :] if entry.where in text else text
    return f"cannot be read: {text.lstrip('.: ').split(':')[0][:60]}"


def leave_out(notes: ImportNotes, entry: JsonEntry, error: JobLeftOut | BadInput, jobs: Iterable[str]) -> None:
    """Record that jobs are left out for an error."""
    note = notes.not_eligible if isinstance(error, NotEligible) else notes.leave_out
    for job in jobs:
        note(reason_of(entry, error), job)


def slurm_number(entry: JsonEntry, key: str) -> int | None:
    """Return a number as Slurm writes it: plain, or ``{"set": ..., "infinite": ..., "number": ...}``; None if unset."""
    value = entry.raw(key)
    if isinstance(value, dict):
        inner = entry.entry(key)
        return inner.integer("number", 0, 2**64) if inner.flag("set") and not inner.flag("infinite") else None
    if value is None:
        return None
    count = entry.integer(key, 0, 2**64)
    return None if count in (0xFFFFFFFE, 0xFFFFFFFF, 2**64 - 2, 2**64 - 1) else count


def expand_node_list(entry: JsonEntry, key: str) -> list[str]:
    """Return the names of a list of nodes; `BadInput` where it cannot be read."""
    return entry.parsed(key, lambda text: [] if text in ("(null)", "N/A", "None assigned") else expand_hosts(text))


def milliseconds(entry: JsonEntry, key: str, unit: int) -> int | None:
    """Return a time in ms, from a number of ``unit`` ms each; None if it is unset or beyond the model's range."""
    count = slurm_number(entry, key)
    return None if count is None or unit * count > MAX_MS else unit * count
