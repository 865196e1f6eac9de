"""Reads the sample workloads of Sia's simulator (siasosp23/artifacts): one job a line."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

from placeopt.arguments import checked
from placeopt.errors import BadInput
from placeopt.formats.bounds import MAX_LINE, check_lines
from placeopt.formats.files import label, read_bytes
from placeopt.model.base import MAX_MS

COLUMNS = ("name", "time", "application", "num_replicas", "batch_size")


@dataclass(frozen=True)
class SiaJob:
    """A job: when it comes, what it trains, on how many GPUs with which global batch."""

    name: str
    arrival_ms: int
    application: str
    gpus: int
    batch: int


@checked
def read_sia(path: str | Path) -> list[SiaJob]:
    """
    Read a workload, in order of arrival.

    Parameters
    ----------
    path
        CSV with the columns name, time (s from the start), application, num_replicas, batch_size.

    Raises
    ------
    BadInput
        If the file cannot be read, a column is missing, or a row holds no numbers; names the line.
    """
    source = label(str(path))
    text = read_bytes(path).decode("utf-8", "replace")
    check_lines(text, source, longest=MAX_LINE)
    reader = csv.DictReader(io.StringIO(text))
    try:
        rows = list(reader)
    except csv.Error as error:
        raise BadInput(f"{source}, line {reader.line_num}: no CSV: {error}") from None
    missing = [column for column in COLUMNS if column not in (reader.fieldnames or ())]
    if missing:
        raise BadInput(f"{source}: no column {', '.join(missing)}; expected {', '.join(COLUMNS)}")
    jobs = []
    names: set[str] = set()
    for line, row in enumerate(rows, start=2):
        try:
            job = SiaJob(
                name=row["name"],
                arrival_ms=round(1000 * float(row["time"])),
                application=row["application"],
                gpus=int(row["num_replicas"]),
                batch=int(row["batch_size"]),
            )
        except (TypeError, ValueError, OverflowError) as error:
            raise BadInput(
                f"{source}, line {line}: {error}; expected a name, seconds, a word and two numbers"
            ) from None
        if min(job.arrival_ms, job.gpus - 1, job.batch - 1) < 0 or job.arrival_ms > MAX_MS:
            raise BadInput(f"{source}, line {line}: time, num_replicas or batch_size out of range")
        if job.name.split() != [job.name] or not job.name.isprintable() or len(job.name) > 253:
            raise BadInput(f"{source}, line {line}: {job.name!r}, expected 1 to 253 characters without white space")
        if job.name in names:
            raise BadInput(f"{source}, line {line}: {job.name!r} stands twice; names of jobs are unique")
        names.add(job.name)
        jobs.append(job)
    return sorted(jobs, key=lambda job: (job.arrival_ms, job.name))
