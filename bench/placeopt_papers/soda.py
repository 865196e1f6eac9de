"""SODA: figures and orders that its evaluation reports, and settings that reproduce them."""

from __future__ import annotations

from pathlib import Path

from placeopt.model.scenario import Scenario
from placeopt_papers.metrics import Value
from placeopt_papers.records import WHOLE_ROUND_POLICIES, Ordering, PaperSetting, ReportedFigure
from placeopt_papers.scenarios.soda_month import soda_month

KEY = "soda"
PLAYED = ("kelp-fifo", "kelp-drf", "coda", "soda", *WHOLE_ROUND_POLICIES)
SMALL_NODES, SMALL_DAYS = 16, 4


def _month(seed: int, folder: Path, whole: bool) -> Scenario:
    del folder
    return soda_month(seed=seed) if whole else soda_month(seed=seed, nodes=SMALL_NODES, days=SMALL_DAYS)


SETTINGS = (
    PaperSetting(
        "soda-month",
        "SODA VI: CPU and GPU jobs on 80 nodes with 400 GPUs for a month",
        _month,
        PLAYED,
        ("utilisation_of_active_percent", "active_percent", "gpu_at_once_percent", "completion_s", "wait_s"),
        reduced=f"{SMALL_NODES} nodes for {SMALL_DAYS} days, with as many jobs a node and day",
        whole_seeds=3,
    ),
)
CURVES = (
    "GPU utilisation of jobs and their core curves are not published (bench/placeopt_papers/scenarios/soda_month.py "
    "says what is): 70 percent at the best number of cores here, for all jobs alike."
)
MORE_WORK = (
    "Utilisation x active GPUs is the work that is done: in the paper 41.0, 40.5, 48.0 and 49.9 %, a fifth more under "
    "SODA than under KELP, whose month must have left as much undone. Here all policies do the same work, so GPUs that "
    "are used better are fewer: a load that makes 90 % active under KELP leaves 60 to CODA. On the reduced cluster "
    "KELP too has less room to choose from."
)
CORES = (
    "A service on cores takes 16 of a node's 28 (table III's largest; the smallest that do, V-D, are not published): "
    "the 12 that are left do for three of its five GPUs."
)
UTILISATIONS = (("kelp-fifo", 45.5, 90.2), ("kelp-drf", 45.1, 89.7), ("coda", 59.8, 80.3), ("soda", 65.4, 76.3))


def _figures() -> list[ReportedFigure]:
    figures = []
    for policy, used, active in UTILISATIONS:
        for measure, what, reported, reason in (
            ("utilisation_of_active_percent", "GPU utilisation", used, CURVES),
            ("active_percent", "GPUs active", active, MORE_WORK),
        ):
            metric = Value("soda-month", policy, measure)
            name = f"soda-{policy}-{measure}"
            figures.append(ReportedFigure(name, KEY, "VI-B", f"{policy}: {what}", "%", reported, metric, reason))
    for policy, reported in (("coda", 82.2), ("soda", 88.2)):
        metric = Value("soda-month", policy, "gpu_at_once_percent")
        what = f"{policy}: GPU jobs that start at once"
        figures.append(ReportedFigure(f"soda-{policy}-at-once", KEY, "VI-C", what, "%", reported, metric, CORES))
    return figures


ALIKE = "What is used follows from cores and bandwidth alone, which KELP treats alike under either order."
FIGURES = tuple(_figures())
ORDERINGS = (
    Ordering(
        KEY,
        "VI-B",
        "soda-month",
        "utilisation_of_active_percent",
        (("soda",), ("coda",), ("kelp-fifo",), ("kelp-drf",)),
        more=True,
        reason=ALIKE,
    ),
    Ordering(KEY, "VI-C", "soda-month", "gpu_at_once_percent", (("soda",), ("coda",)), more=True, reason=CORES),
)
