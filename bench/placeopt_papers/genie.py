"""GENIE: figures and orders that its evaluation reports, and settings that reproduce them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from placeopt.model import Scenario
from placeopt_papers.genie_figures import (
    BASELINES,
    DENSE,
    DENSITIES,
    HOURS,
    KEY,
    MIXES,
    MORE_DENSITIES,
    NODES,
    OURS,
    WHOLE,
    figures,
)
from placeopt_papers.records import COMPARED, Ordering, PaperSetting
from placeopt_papers.scenarios.factors import UNCHANGED, Factors
from placeopt_papers.scenarios.genie import CLASSES, genie_tasks

PLAYED = (*BASELINES, OURS)
FEW = 10
"""Tasks per hour up to which ``COMPARED`` are played too: at 20 a round solved whole takes a second."""
MEASURES = ("in_time_percent", "makespan_h", "normalised")


def _tasks(
    per_hour: float,
    hours: float,
    nodes: int,
    classes: tuple[int, int, int],
    seed: int,
    folder: Path,
    whole: bool,
    factors: Factors = UNCHANGED,
    every_placement: bool = False,
) -> Scenario:
    del folder, whole
    return genie_tasks(
        seed,
        per_hour=per_hour,
        hours=hours,
        nodes=nodes,
        classes=classes,
        factors=factors,
        every_placement=every_placement,
    )


def _setting(
    name: str,
    title: str,
    per_hour: float,
    hours: float,
    nodes: int,
    classes: tuple[int, int, int],
    *,
    main: bool = False,
) -> PaperSetting:
    """Return a setting; those of the main comparison have our own policies too."""
    return PaperSetting(
        name,
        f"GENIE {title}",
        partial(_tasks, per_hour, hours, nodes, classes),
        (*PLAYED, *COMPARED) if main and per_hour <= FEW else PLAYED,
        MEASURES,
    )


SETTINGS = (
    *(
        _setting(
            f"genie-{density}", f"7.2.1: {density} tasks an hour for 24 h, 16 GPUs", density, 24, 4, CLASSES, main=True
        )
        for density in DENSITIES
    ),
    *(
        _setting(f"genie-{density}", f"figure 14a: {density} tasks an hour", density, 24, 4, CLASSES)
        for density in MORE_DENSITIES
    ),
    *(
        _setting(
            f"genie-classes-{'-'.join(map(str, mix))}",
            f"figure 14c: {'/'.join(map(str, mix))} % urgent/prior/normal, 15 tasks an hour",
            15,
            24,
            4,
            mix,
        )
        for mix in MIXES
    ),
    *(
        _setting(f"genie-hours-{hours}", f"figure 14e: 15 tasks an hour for {hours} h", 15, hours, 4, CLASSES)
        for hours in HOURS
    ),
    *(
        _setting(f"genie-gpus-{4 * nodes}", f"7.3: 20 tasks an hour on {4 * nodes} GPUs", 20, 24, nodes, CLASSES)
        for nodes in NODES
    ),
    *(
        PaperSetting(
            name,
            f"GENIE 7.2.1: {density} tasks an hour, 16 GPUs, every placement of 1 to 4 nodes and 1 to 4 GPUs of each",
            partial(_tasks, density, 24, 4, CLASSES, every_placement=True),
            PLAYED,
            MEASURES,
        )
        for density, name in WHOLE.items()
    ),
)
FIGURES = tuple(figures())
SHAPES = (
    "In which shapes FIFO, capacity, min-min and weighted fair place is not told: here in the fastest that fits, which "
    "helps them where GPUs are idle. A part closed to other tasks (capacity) loses against the same order without "
    "it. Load and rates are not the paper's; all work is done, so makespans of all that waste little are alike."
)
RIVALS = ("capacity", "tetris-cer")
OTHERS = ("fcfs", "min-min", "weighted-fair", "tetris-perf")
ORDERINGS = tuple(
    Ordering(
        KEY,
        "7.2.1, figure 13",
        setting,
        measure,
        ((OURS,), RIVALS, OTHERS),
        more=measure == "in_time_percent",
        reason=SHAPES,
    )
    for setting in DENSE
    for measure in ("in_time_percent", "makespan_h")
)
