"""The sample workloads of Sia's simulator (siasosp23/artifacts): one job a line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from placeopt.arguments import checked
from placeopt.formats.csv_table import MAX_INTEGER_DIGITS, read_csv_table
from placeopt.model.base import MAX_MS

COLUMNS = ("name", "time", "application", "num_replicas", "batch_size")
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
    """
    Return a workload in the order of arrival.

    Parameters
    ----------
    path
        CSV with the columns name, time (s from the start), application, num_replicas, batch_size.

    Raises
    ------
    BadInput
        If the file is not a table of these columns (see `read_csv_table`), or a field is malformed; names the line.
    """
    jobs = [
        SiaJob(
            name=row.text("name"),
            arrival_ms=round(1000 * row.number("time", 0, MAX_MS / 1000)),
            application=row.text("application"),
            gpus=row.integer("num_replicas", 1, MAX_COUNT),
            batch=row.integer("batch_size", 1, MAX_COUNT),
        )
        for row in read_csv_table(path, COLUMNS, key="name")
    ]
    return sorted(jobs, key=lambda job: (job.arrival_ms, job.name))
