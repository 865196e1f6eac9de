"""Runs of scenarios under policies side by side, and a file from which finished ones are read."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from placeopt import __version__
from placeopt.deadline import Deadline
from placeopt.documents.json_lines import JsonLinesFile
from placeopt.model.cluster import Cluster
from placeopt.parallel import run_parallel
from placeopt.scheduling.policy import Scheduling
from placeopt.simulation import simulate
from placeopt.simulation.records.scenario import Scenario
from placeopt.simulation.replay.goals import Goal, measures, measures_of
from placeopt.simulation.replay.series import MeasuredRun, ReplayPoint
from placeopt.simulation.replay.variations import with_drawn_arrivals
from placeopt.simulation.statistics import t_interval
from placeopt.solving.params import SolveParams

PARAMS = SolveParams(time_limit_s=60.0)
"""Seed and time limit of every round of every run, unless a question states others."""


@dataclass(frozen=True)
class RunSetup:
    """A run to carry out; arrivals are drawn in the process that carries it out."""

    scenario: Scenario
    scheduling: Scheduling
    draw: int | None
    params: SolveParams

    @property
    def key(self) -> str:
        """A digest of the run: runs of equal keys have equal results."""
        parts = (
            self.scenario.digest,
            self.scheduling.digest,
            str(self.draw),
            str(self.params.seed),
            f"{self.params.time_limit_s:g}",
            __version__,
        )
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def play(setup: RunSetup, cancel: threading.Event | None = None) -> MeasuredRun | None:
    """Carry out a run; None if it was cancelled."""
    began = time.monotonic()
    scenario = setup.scenario if setup.draw is None else with_drawn_arrivals(setup.scenario, setup.draw)
    history = simulate(
        scenario, setup.scheduling, seed=setup.params.seed, time_limit_s=setup.params.time_limit_s, cancel=cancel
    )
    if not history.finished:
        return None
    return MeasuredRun(
        key=setup.key,
        scenario=setup.scenario.name,
        policy=setup.scheduling.name,
        draw=setup.draw,
        nodes=len(scenario.cluster.nodes),
        jobs=len(history.jobs),
        stranded=len(history.stranded),
        cut=history.rounds.cut,
        measures=measures_of(history),
        seconds=time.monotonic() - began,
    )


OnRun = Callable[[MeasuredRun], None]


class RunCampaign(JsonLinesFile[MeasuredRun]):
    """
    Runs of scenarios, each carried out once; a context manager that locks the file.

    Finished runs are appended to the file ``rows``, and runs of earlier calls read from it; None: no file. ``jobs``
    runs are carried out side by side, in processes; None: as ``joblib.parallel_config`` says, dask and ray included.
    Once ``cancel`` is set no run is begun any more, and an interrupted one does not count. ``on_news`` is called after
    every run that is carried out here. ``num_known`` counts the runs that were requested and stood in the file.
    """

    def __init__(
        self,
        rows: Path | None = None,
        *,
        jobs: int | None = 1,
        cancel: threading.Event | None = None,
        on_news: OnRun | None = None,
    ) -> None:
        super().__init__(rows, MeasuredRun, "a run of a scenario")
        self._jobs, self._cancel, self._on_news = jobs, cancel, on_news
        self._done = {row.key: row for row in self.found if row.measures.keys() >= set(measures())}
        self._known = frozenset(self._done)
        self.num_known = 0

    @property
    def over(self) -> bool:
        """Whether it was cancelled."""
        return self._cancel is not None and self._cancel.is_set()

    def rows_of(self, setups: Sequence[RunSetup]) -> list[MeasuredRun | None]:
        """Carry out the runs that have no row, and return the rows; None for interrupted ones."""
        wanted = {setup.key: setup for setup in setups}
        self.num_known += sum(key in self._known for key in wanted)
        to_do = [setup for key, setup in wanted.items() if key not in self._done]
        task = partial(play, cancel=Deadline(cancel=self._cancel))
        for row in run_parallel(task, to_do, self._jobs, cancelled=lambda: self.over):
            if row is None:
                continue
            self._done[row.key] = row
            self.append(row)
            if self._on_news is not None:
                self._on_news(row)
        return [self._done.get(setup.key) for setup in setups]


def point_of(
    setting: str, cluster: Cluster, rows: Sequence[MeasuredRun | None], measure: str, goal: Goal | None
) -> tuple[ReplayPoint, float] | None:
    """Return a setting over all draws, and the longest wait of any job; None if a run of it was interrupted."""
    whole = [row for row in rows if row is not None]
    if len(whole) < len(rows):
        return None
    values = [row.measures[measure] for row in whole]
    known = [value for value in values if value is not None]
    interval = t_interval(known) if len(known) == len(values) else None
    mean = sum(known) / len(known) if len(known) == len(values) else None
    low, high = (max(0.0, interval.low), interval.high) if interval is not None else (mean, mean)  # none is negative
    met = None
    if goal is not None and goal.meets(low) == goal.meets(high):
        met = goal.meets(low)
    waits = [row.measures["max_wait"] for row in whole]
    point = ReplayPoint(
        setting=setting,
        nodes=whole[0].nodes,
        values=tuple(values),
        mean=mean,
        low=low,
        high=high,
        stranded=max(row.stranded for row in whole),
        met=met,
        cut=sum(row.cut for row in whole),
        price_milli_per_hour=sum(map(cluster.price_of, cluster.nodes)),
        gpus=sum(cluster.gpus_by_node.values()),
    )
    return point, max((float("inf") if wait is None else wait for wait in waits), default=0.0)
