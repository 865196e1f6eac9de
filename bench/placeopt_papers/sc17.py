"""SC'17: settings that reproduce its evaluation, and the orders that it reports."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from placeopt import BadInput, read_scenario
from placeopt.model import Physics, Scenario
from placeopt_papers.records import COMPARED, ONCE, Ordering, PaperSetting
from placeopt_papers.sc17_figures import ARTIFACT, KEY, PRINTED, WHOLE, figures, pair_name
from placeopt_papers.scenarios.factors import UNCHANGED, Factors
from placeopt_papers.scenarios.sc17 import mixed_jobs, pair, small_jobs, table_1

FOUR = ("fcfs", "best-fit", "topo-aware", "topo-aware-p")
QUEUES = (*FOUR, "srtf", "placeopt-queue")
PLAYED = (*QUEUES, *COMPARED)
MEASURES = ("completion_s", "wait_s", "slowdown", "slowed", "last_end_s")
PAIRS = (("1", None), ("4", None), ("64", None), ("128", None), ("1", "1"), ("1", "128"), ("4", "128"))


def _stored(name: str, seed: int, folder: Path, whole: bool, factors: Factors = UNCHANGED) -> Scenario:
    del seed, whole, factors
    path = folder / "papers" / f"{name}.json"
    if not path.exists():
        raise BadInput(f"{path}: no such file; expected a stored scenario in papers/ of the folder --instances")
    return read_scenario(path)


def _rated(name: str, seed: int, folder: Path, whole: bool, factors: Factors = UNCHANGED) -> Scenario:
    """Return a stored list of jobs under the rule ``rate``."""
    del factors
    stored = _stored(name, seed, folder, whole)
    return stored.model_copy(
        update={"name": f"{name}-rate", "physics": Physics(rule="rate", interference="worst"), "note": stored.note}
    )


def _table_1(seed: int, folder: Path, whole: bool, factors: Factors = UNCHANGED) -> Scenario:
    del seed, folder, whole, factors
    return table_1()


def _small(seed: int, folder: Path, whole: bool, factors: Factors = UNCHANGED) -> Scenario:
    del folder, whole, factors
    return small_jobs(seed)


def _weighted(seed: int, folder: Path, whole: bool, factors: Factors = UNCHANGED) -> Scenario:
    del folder, whole, factors
    return small_jobs(seed, weighted=True)


def _mixed(load: float | None, seed: int, folder: Path, whole: bool, factors: Factors = UNCHANGED) -> Scenario:
    del folder, factors
    return mixed_jobs(seed, load=load) if whole else mixed_jobs(seed, jobs=1_000, machines=100, load=load)


def _whole(seed: int, folder: Path, whole: bool, factors: Factors = UNCHANGED) -> Scenario:
    del whole, factors
    return _mixed(None, seed, folder, whole=True)


def _pair(
    batch: str, beside: str | None, seed: int, folder: Path, whole: bool, factors: Factors = UNCHANGED
) -> Scenario:
    del seed, folder, whole, factors
    return pair(batch, apart=True, beside=beside)


TENTH = "1,000 jobs on 100 machines, a tenth of the paper's, at the same load"
SETTINGS = (
    PaperSetting(
        "sc17-table-1", "SC'17 table 1 as printed, one Minsky", _table_1, PLAYED, MEASURES, seeds=ONCE, timeline=True
    ),
    PaperSetting(
        "sc17-workloads-5",
        "SC'17 table 1 as the artifact has it, one Minsky",
        partial(_rated, "sc17-workloads-5"),
        PLAYED,
        MEASURES,
        seeds=ONCE,
        timeline=True,
    ),
    PaperSetting(
        "sc17-artifact-5",
        "SC'17's artifact: workloads-5 by its rule and clock",
        partial(_stored, "sc17-workloads-5"),
        (*ARTIFACT, *COMPARED),
        MEASURES,
        seeds=ONCE,
    ),
    PaperSetting(
        "sc17-artifact-100",
        "SC'17's artifact: workloads-100 on 5 machines by its rule and clock",
        partial(_stored, "sc17-workloads-100"),
        (*ARTIFACT, *COMPARED),
        MEASURES,
        seeds=ONCE,
    ),
    *(
        PaperSetting(
            pair_name(batch, beside),
            f"SC'17 figure {'4' if beside is None else '6'}: AlexNet, 2 GPUs across sockets, batch {batch}"
            + ("" if beside is None else f", beside one of batch {beside}"),
            partial(_pair, batch, beside),
            ("fcfs",),
            (),
            seeds=ONCE,
        )
        for batch, beside in PAIRS
    ),
    PaperSetting("sc17-100x5", "SC'17 5.5.1: 100 jobs on 5 machines", _small, PLAYED, MEASURES, whole_seeds=3),
    PaperSetting(
        "sc17-100x5-weights",
        "SC'17 5.1, 5.5.1: the same with communication weights 4 to 1 by batch",
        _weighted,
        ("topo-aware", "topo-aware-p"),
        (),
    ),
    PaperSetting(
        "sc17-10kx1k",
        "SC'17 5.5.2: 10,000 jobs on 1,000 machines, ten a minute",
        partial(_mixed, None),
        PLAYED,
        MEASURES,
        reduced=TENTH,
    ),
    PaperSetting(
        WHOLE,
        "SC'17 5.5.3: 10,000 jobs on 1,000 machines, for the time that decisions take",
        _whole,
        FOUR,
        (),
    ),
    PaperSetting(
        "sc17-10kx1k-90",
        "SC'17 5.5.2 at 90 % load: arrivals some eleven times as frequent",
        partial(_mixed, 0.9),
        QUEUES,
        MEASURES,
        reduced=TENTH,
    ),
)

FIGURES = tuple(figures())
GREEDY_WORSE = "Only under FCFS does no job overtake another; BF lets jobs overtake, as the artifact does."
NO_WAITING = "At the paper's rate a mean of 8 % of the GPUs is in use, so no job ever waits."
HARDLY_WAITING = (
    "Of hundreds of GPUs arrivals at random rarely find too few free at 90 %: hardly a job waits, and places alone "
    "make the difference."
)
ORDERINGS = (
    Ordering(
        KEY,
        "5.2.2",
        "sc17-workloads-5",
        "last_end_s",
        (("topo-aware-p",), ("topo-aware",), ("fcfs",), ("best-fit",)),
        reason="Best fit and first come take the same places on one machine.",
    ),
    Ordering(
        KEY,
        "5.2.2",
        "sc17-table-1",
        "last_end_s",
        (("topo-aware-p",), ("topo-aware",), ("fcfs",), ("best-fit",)),
        reason=PRINTED,
    ),
    Ordering(
        KEY,
        "figure 10a",
        "sc17-100x5",
        "slowdown",
        (("topo-aware-p",), ("topo-aware", "best-fit"), ("fcfs",)),
        reason=GREEDY_WORSE,
    ),
    Ordering(
        KEY,
        "figure 10b",
        "sc17-100x5",
        "wait_s",
        (("topo-aware-p",), ("topo-aware",), ("best-fit", "fcfs")),
        reason=(
            "Here BF overtakes too, and TOPO-AWARE finds nearly every pair a socket: half a percent of slowdown is "
            "left for -P to gain, and waiting costs it more."
        ),
    ),
    Ordering(
        KEY,
        "figure 11",
        "sc17-10kx1k",
        "slowdown_with_wait",
        (("topo-aware-p", "topo-aware"), ("best-fit",), ("fcfs",)),
        reason=NO_WAITING,
    ),
    Ordering(
        KEY,
        "figure 11, at 90 %",
        "sc17-10kx1k-90",
        "slowdown_with_wait",
        (("topo-aware-p", "topo-aware"), ("best-fit",), ("fcfs",)),
        reason=HARDLY_WAITING,
    ),
)
