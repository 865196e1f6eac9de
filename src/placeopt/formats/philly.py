"""
Reads Microsoft's Philly trace in the form in which Sia's simulator keeps it: one job a line.

Source: msr-fiddle/philly-traces (CC-BY-4.0; Jeon et al., ATC'19), by way of siasosp23/artifacts,
sia-simulator/traces/philly.csv: columns ``timestamp`` (submission), ``duration`` (s), ``num_gpus``, ``gpu_time``,
``cluster`` (the virtual cluster). It has no CPU, memory or user column, and nothing of what the jobs computed.
"""

import csv
import io
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from placeopt.arguments import checked
from placeopt.errors import BadInput
from placeopt.formats.bounds import MAX_LINE, check_lines
from placeopt.formats.files import read_bytes
from placeopt.model.base import MAX_MS

COLUMNS = ("timestamp", "duration", "num_gpus", "gpu_time", "cluster")


@dataclass(frozen=True)
class PhillyJob:
    """A job of the trace; ``line`` is its line in the file, which has no other name for it."""

    line: int
    submitted: datetime
    duration_ms: int
    gpus: int
    virtual_cluster: str


@checked
def read_philly(path: str | Path) -> list[PhillyJob]:
    """
    Return the jobs in the order of their submission, of equal times in that of the file.

    Raises
    ------
    BadInput
        If the file cannot be read, has other columns, or a field that is not what it should be; names the line.
    """
    try:
        text = read_bytes(path).decode()
    except UnicodeDecodeError:
        raise BadInput(f"{path}: not UTF-8") from None
    check_lines(text, str(path), longest=MAX_LINE)
    rows = csv.reader(io.StringIO(text), strict=True)
    try:
        if tuple(next(rows, ())) != COLUMNS:
            raise BadInput(f"{path}: line 1: expected the columns {', '.join(COLUMNS)}")
        jobs = [_job(row, rows.line_num) for row in rows if row]  # the file ends in an empty line
    except (ValueError, OverflowError, csv.Error) as error:
        raise BadInput(f"{path}: line {rows.line_num}: {error}") from None
    return sorted(jobs, key=lambda job: job.submitted)


def _job(row: list[str], line: int) -> PhillyJob:
    if len(row) != len(COLUMNS):
        raise ValueError(f"{len(row)} fields, expected {len(COLUMNS)}")
    submitted, duration, gpus, _, cluster = row
    at = datetime.fromisoformat(submitted)
    if at.tzinfo is not None:
        raise ValueError(f"{submitted}, expected a time without a zone")
    job = PhillyJob(line, at, round(1000 * float(duration)), int(gpus), cluster)
    if (
        not 0 <= job.duration_ms <= MAX_MS
        or not 1 <= job.gpus <= 100_000
        or not (0 < len(cluster) < 254 and cluster.isprintable())
    ):
        raise ValueError(f"{row}, expected a duration from 0 on, 1 GPU or more, and a virtual cluster")
    return job
