"""
Traces with one job a line: Microsoft's Philly trace, and the sample workloads of Sia's simulator.

Source of both: siasosp23/artifacts. Its sia-simulator/traces/philly.csv is msr-fiddle/philly-traces (CC-BY-4.0; Jeon et
al., ATC'19) with the columns ``timestamp`` (submission), ``duration`` (s), ``num_gpus``, ``gpu_time``, ``cluster`` (the
virtual cluster). It has no CPU, memory or user column, and nothing about what the jobs computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from placeopt.arguments import checked
from placeopt.formats.csv_table import MAX_INTEGER_DIGITS, CsvRow, read_csv_table
from placeopt.model.base import MAX_MS

PHILLY_COLUMNS = ("timestamp", "duration", "num_gpus", "gpu_time", "cluster")
MAX_GPUS = 100_000


@dataclass(frozen=True)
class PhillyJob:
    """A job of the trace; ``line``, its line in the file, is its only name."""

    line: int
    submitted: datetime
    duration_ms: int
    gpus: int
    virtual_cluster: str


@checked
def read_philly(path: str | Path) -> list[PhillyJob]:
    """Return the jobs in the order of submission; ties are in the order of the file."""
    return sorted(map(_philly_job, read_csv_table(path, PHILLY_COLUMNS)), key=lambda job: job.submitted)


def _philly_job(row: CsvRow) -> PhillyJob:
    try:
        submitted = datetime.fromisoformat(row.text("timestamp"))
    except ValueError:
        submitted = None
    if submitted is None or submitted.tzinfo is not None:
        raise row.error("timestamp", "a date and time without a zone, such as 2017-10-09 07:01:55")
    cluster = row.text("cluster")
    if not (0 < len(cluster) < 254 and cluster.isprintable()):
        raise row.error("cluster", "a virtual cluster of 1 to 253 printable characters")
    duration_ms = round(1000 * row.number("duration", 0, MAX_MS / 1000))
    return PhillyJob(row.line, submitted, duration_ms, row.integer("num_gpus", 1, MAX_GPUS), cluster)


SIA_COLUMNS = ("name", "time", "application", "num_replicas", "batch_size")
MAX_COUNT = 10**MAX_INTEGER_DIGITS - 1


@dataclass(frozen=True)
class SiaJob:
    """A job: its arrival, the application that it trains, its number of GPUs and its global batch size."""

    name: str
    arrival_ms: int
    application: str
    gpus: int
    batch: int


@checked
def read_sia(path: str | Path) -> list[SiaJob]:
    """Return a workload in the order of arrival; times in the file are seconds from the start."""
    jobs = [
        SiaJob(
            name=row.text("name"),
            arrival_ms=round(1000 * row.number("time", 0, MAX_MS / 1000)),
            application=row.text("application"),
            gpus=row.integer("num_replicas", 1, MAX_COUNT),
            batch=row.integer("batch_size", 1, MAX_COUNT),
        )
        for row in read_csv_table(path, SIA_COLUMNS, key="name")
    ]
    return sorted(jobs, key=lambda job: (job.arrival_ms, job.name))
