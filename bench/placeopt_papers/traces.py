"""Real traces beside the papers: no figures to reproduce, but our policy beside the others."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from placeopt import read_scenario
from placeopt.formats.traces import read_philly, read_sia
from placeopt.generators.philly_scenario import philly_scenario
from placeopt.generators.sia_scenario import sia_scenario
from placeopt.model import Scenario
from placeopt_papers.records import COMPARED, ONCE, PaperSetting
from placeopt_papers.scenarios.factors import UNCHANGED, Factors

KEY = "traces"
QUEUES = ("fcfs", "best-fit", "topo-aware", "topo-aware-p", "srtf", "drf", "las", "placeopt-queue")
MEASURES = ("completion_s", "wait_s", "slowdown", "slowed", "delayed", "last_end_s")
WORKLOADS = {"newtrace": 10, "philly": 8}
"""Number of files of each kind; the seed selects one."""
PHILLY_FROM, PHILLY_DAYS = 40, 1


def _sia(kind: str, seed: int, folder: Path, whole: bool, factors: Factors = UNCHANGED) -> Scenario:
    del whole, factors
    number = seed % WORKLOADS[kind] + 1
    jobs = read_sia(folder / "traces" / "sia" / kind / f"workload-{number}.csv")
    return sia_scenario(jobs, name=f"sia-{kind}-{number}")


def _philly(seed: int, folder: Path, whole: bool, factors: Factors = UNCHANGED) -> Scenario:
    del whole, factors
    return philly_scenario(
        read_philly(folder / "traces" / "philly.csv.gz"),
        from_day=PHILLY_FROM,
        days=PHILLY_DAYS,
        load=0.9,
        seed=seed,
        interference="sc17",
    )


def _openb(seed: int, folder: Path, whole: bool, factors: Factors = UNCHANGED) -> Scenario:
    del seed, whole, factors
    return read_scenario(folder / "papers" / "openb-x77-load-90.json.gz")


SETTINGS = (
    PaperSetting(
        "openb",
        "openb's 8,152 pods with their run times on a twentieth of its nodes, at 90 % load",
        _openb,
        ("fcfs", "best-fit", "srtf", "placeopt-queue"),
        MEASURES,
        seeds=ONCE,
    ),
    *(
        PaperSetting(
            f"sia-{kind}",
            f"Sia's {kind} samples on 64 GPUs, a file a seed",
            partial(_sia, kind),
            (*QUEUES, *COMPARED) if kind == "philly" else QUEUES,
            MEASURES,
            whole_seeds=3,
            needs=f"traces/sia/{kind}",
        )
        for kind in WORKLOADS
    ),
    PaperSetting(
        "philly",
        "A day of Philly at 90 % load, kinds of jobs drawn by the seed",
        _philly,
        QUEUES,
        MEASURES,
        needs="traces/philly.csv.gz",
    ),
)
