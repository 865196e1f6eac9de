"""Horus: settings that reproduce its evaluation, and the orders that its tables report."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from placeopt.model import Scenario
from placeopt_papers.horus_figures import KEY, LISTS, MEMORY_BINDS, figures
from placeopt_papers.records import COMPARED, Ordering, PaperSetting
from placeopt_papers.scenarios.factors import UNCHANGED, Factors
from placeopt_papers.scenarios.horus import horus_testbed, horus_trace

TESTBED = ("fcfs", "pab", "obp", "horus", *COMPARED)
TRACE = ("fcfs", "obp", "horus", "horus-f", "horus-f-k4", "horus-f-k5", *COMPARED)


def _testbed(workload: str, seed: int, folder: Path, whole: bool, factors: Factors = UNCHANGED) -> Scenario:
    del folder, whole
    return horus_testbed(seed, workload, factors=factors)


def _trace(linear: bool, seed: int, folder: Path, whole: bool, factors: Factors = UNCHANGED) -> Scenario:
    del folder, whole
    return horus_trace(seed, linear=linear, factors=factors)


SETTINGS = (
    *(
        PaperSetting(
            f"horus-w-{workload}",
            f"Horus W-{workload.title()}: 100 single-GPU jobs on 12 RTX 2080",
            partial(_testbed, workload),
            TESTBED,
            ("makespan_min", "wait_min", "run_s", "slowdown", "utilisation_percent"),
        )
        for workload in ("large", "small")
    ),
    PaperSetting(
        "horus-trace",
        "Horus 6.2: 398 jobs on 128 nodes of 8 GPUs",
        partial(_trace, False),
        TRACE,
        ("wait_min", "wait_median_min", "makespan_h", "slowdown", "utilisation_percent"),
    ),
    PaperSetting(
        "horus-trace-linear",
        "Horus 6.2: the same, slowed in proportion to the utilisation of a shared GPU",
        partial(_trace, True),
        ("fcfs", "obp", "horus", "horus-f"),
        (),
    ),
)
FIGURES = tuple(figures())
ORDERINGS = (
    *(
        Ordering(
            KEY,
            "table 6",
            f"horus-w-{workload}",
            "makespan_min",
            (("horus",), ("obp",), ("pab",), ("fcfs",)),
            reason=LISTS,
        )
        for workload in ("large", "small")
    ),
    *(
        Ordering(
            KEY,
            "figure 7",
            f"horus-w-{workload}",
            "run_s",
            (("fcfs",), ("horus",), ("obp",)),
            reason=LISTS,
        )
        for workload in ("large", "small")
    ),
    Ordering(
        KEY,
        "table 7",
        "horus-trace",
        "wait_min",
        (("horus-f",), ("horus",), ("obp",), ("fcfs",)),
        reason=MEMORY_BINDS,
    ),
)
