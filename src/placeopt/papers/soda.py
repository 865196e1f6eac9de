"""SODA: what its evaluation reports, and what is simulated for it."""

from __future__ import annotations

from pathlib import Path

from placeopt.generators.soda_month import soda_month
from placeopt.model.scenario import Scenario
from placeopt.papers.records import OWN, Figure, Ordering, Setting
from placeopt.papers.ways import Value

KEY = "soda"
PLAYED = ("kelp-fifo", "kelp-drf", "coda", "soda", *OWN)
SMALL_NODES, SMALL_DAYS = 16, 4


def _month(seed: int, folder: Path, whole: bool) -> Scenario:
    del folder
    return soda_month(seed=seed) if whole else soda_month(seed=seed, nodes=SMALL_NODES, days=SMALL_DAYS)


SETTINGS = (
    Setting(
        "soda-month",
        "SODA VI: CPU and GPU jobs on 80 nodes with 400 GPUs for a month",
        _month,
        PLAYED,
        ("utilisation_of_active_percent", "active_percent", "gpu_at_once_percent", "completion_s", "wait_s"),
        reduced=f"{SMALL_NODES} nodes for {SMALL_DAYS} days, with as many jobs a node and day",
    ),
)
UNPUBLISHED = (
    "Most of the month is not published, the core curves above all (placeopt.generators.soda_month says what is); a "
    "smaller cluster has less room to choose from, and ends with an empty cluster after a few days already."
)
UTILISATIONS = (("kelp-fifo", 45.5, 90.2), ("kelp-drf", 45.1, 89.7), ("coda", 59.8, 80.3), ("soda", 65.4, 76.3))


def _figures() -> list[Figure]:
    figures = []
    for policy, used, active in UTILISATIONS:
        for measure, what, reported in (
            ("utilisation_of_active_percent", "GPU utilisation", used),
            ("active_percent", "GPUs active", active),
        ):
            way = Value("soda-month", policy, measure)
            name = f"soda-{policy}-{measure}"
            figures.append(Figure(name, KEY, "VI-B", f"{policy}: {what}", "%", reported, way, UNPUBLISHED))
    for policy, reported in (("coda", 82.2), ("soda", 88.2)):
        way = Value("soda-month", policy, "gpu_at_once_percent")
        what = f"{policy}: GPU jobs that start at once"
        figures.append(Figure(f"soda-{policy}-at-once", KEY, "VI-C", what, "%", reported, way, UNPUBLISHED))
    return figures


FIGURES = tuple(_figures())
ORDERINGS = (
    Ordering(
        KEY,
        "VI-B",
        "soda-month",
        "utilisation_of_active_percent",
        (("soda",), ("coda",), ("kelp-fifo",), ("kelp-drf",)),
        more=True,
        reason=UNPUBLISHED,
    ),
    Ordering(KEY, "VI-C", "soda-month", "gpu_at_once_percent", (("soda",), ("coda",)), more=True, reason=UNPUBLISHED),
)
