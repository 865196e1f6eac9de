"""Profiling runs: those that GENIE's lightweight profiling needs, and a reader of Sia's."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from placeopt import BadInput
from placeopt.systems.genie.rate import ProfiledRun

COLUMNS = ("placement", "local_bsz", "step_time")


def lightweight(runs: Iterable[ProfiledRun]) -> list[ProfiledRun]:
    """
    Choose the runs of GENIE's lightweight profiling (5.1.5): B + N + G of B x N x G.

    These are all runs on one GPU, and at one global batch those on one node and those on several nodes with the most
    frequent number of GPUs per node. The batch is the one with most runs on several GPUs, the smallest if tied.

    Parameters
    ----------
    runs
        Measured runs: batch, nodes, GPUs per node, rate.

    Returns
    -------
    list of ProfiledRun
        The chosen runs, those on one GPU first.
    """
    runs = list(runs)
    alone = [run for run in runs if run.nodes * run.gpus == 1]
    several = [run for run in runs if run.nodes * run.gpus > 1]
    if not several:
        return alone
    batches = [run.batch for run in several]
    batch = max(sorted(set(batches)), key=batches.count)
    at_batch = [run for run in several if run.batch == batch]
    wide = [run.gpus for run in at_batch if run.nodes > 1]
    gpus = max(sorted(set(wide)), key=wide.count) if wide else 0
    return alone + [run for run in at_batch if run.nodes == 1 or run.gpus == gpus]


def sia_runs(text: str, *, where: str = "profile") -> tuple[list[ProfiledRun], int]:
    """
    Return the runs of a profile of Sia's simulator: ``placement`` (a digit per node), ``local_bsz``, ``step_time`` (s).

    Returns
    -------
    tuple of list of ProfiledRun and int
        Runs on equally used nodes, and the number of rows left out because their nodes are not equally used.

    Raises
    ------
    BadInput
        If a column is missing or a row holds no numbers.
    """
    runs, uneven = [], 0
    rows = csv.DictReader(io.StringIO(text))
    try:
        table = list(rows)
    except csv.Error as error:
        raise BadInput(f"{where}, line {rows.line_num}: no CSV: {error}") from None
    missing = [column for column in COLUMNS if column not in (rows.fieldnames or ())]
    if missing:
        raise BadInput(f"{where}: no column {', '.join(missing)}; expected {', '.join(COLUMNS)}")
    for number, row in enumerate(table, start=2):
        try:
            digits, local, step = row["placement"].strip(), int(float(row["local_bsz"])), float(row["step_time"])
            gpus = {int(digit) for digit in digits}
            if not (local >= 1 and 0 < step < float("inf")):
                raise ValueError(f"local_bsz {local}, step_time {step}")
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
            raise BadInput(
                f"{where}, line {number}: {error}; expected placement, local_bsz, step_time, with numbers above 0"
            ) from error
        if len(gpus) != 1 or min(gpus) < 1:
            uneven += 1
            continue
        total = len(digits) * min(gpus)
        runs.append(ProfiledRun(len(digits), min(gpus), total * local, total * local / step))
    return runs, uneven
