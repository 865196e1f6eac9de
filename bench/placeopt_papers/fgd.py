"""FGD: figures that its simulator reports for openb, and the setting that plays its protocol."""

from __future__ import annotations

from pathlib import Path

from placeopt_papers.measures import ALLOCATED_AT
from placeopt_papers.metrics import Value
from placeopt_papers.one_at_a_time.protocol import OneAtATime
from placeopt_papers.records import Ordering, PaperSetting, ReportedFigure
from placeopt_papers.scenarios.factors import UNCHANGED, Factors

KEY = "fgd"
SETTING = "fgd-openb"
SEEDS = tuple(range(42, 52))
"""The authors' ten seeds."""
ALLOCATED = (
    ("random", 86.30, 87.47),
    ("dot_product:points", 90.62, 90.85),
    ("gpu_clustering:points", 91.65, 91.88),
    ("gpu_packing:points", 91.78, 92.00),
    ("best_fit:points", 92.86, 93.08),
    ("fgd:points", 95.23, 95.39),
)
OWN_SCORES = ("stranding", "prices")
"""Scores of placeopt. Moves and quotas are compared in ``bench/online.py``: FGD's rules neither move nor refuse."""
SAME_ORDERS = (
    "Values of the authors' simulator; its ten orders of pods and nodes, its rules and whole points of scores are used "
    "here, which repeats its runs to 0.02 points (random: drawn by another generator)."
)


def _default(seed: int, folder: Path, whole: bool, factors: Factors = UNCHANGED) -> OneAtATime:
    del whole, factors
    return OneAtATime(folder, "default", seed)


SETTINGS = (
    PaperSetting(
        SETTING,
        "openb's default list one pod at a time, none leaving, in the authors' ten orders",
        _default,
        (*(score for score, *_ in ALLOCATED), *OWN_SCORES),
        tuple(f"allocated_{at}_percent" for at in ALLOCATED_AT),
        seeds=SEEDS,
        one_at_a_time=True,
    ),
)
FIGURES = tuple(
    ReportedFigure(
        name=f"fgd-{score.partition(':')[0]}-{at}",
        paper=KEY,
        place="openb, default",
        what=f"{score.partition(':')[0].replace('_', '-')}: GPUs allocated at {at} %",
        unit="%",
        reported=value,
        metric=Value(SETTING, score, f"allocated_{at}_percent"),
        kind="artifact",
        reason=SAME_ORDERS,
        headline=(score, at) in (("fgd:points", 100), ("best_fit:points", 100)),
    )
    for score, *values in ALLOCATED
    for at, value in zip(ALLOCATED_AT, values, strict=True)
)
ORDERINGS = tuple(
    Ordering(
        KEY,
        f"openb, default, at {at} %",
        SETTING,
        f"allocated_{at}_percent",
        tuple((score,) for score, *_ in reversed(ALLOCATED)),
        more=True,
        reason="The published means of the two are 0.13 points apart, over the same ten orders.",
    )
    for at in ALLOCATED_AT
)
