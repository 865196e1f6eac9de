"""Runs of scenarios under policies, and what they are measured by."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass

from placeopt.deadline import Deadline
from placeopt.live_cluster.engine import Engine
from placeopt.model.cluster import Cluster
from placeopt.scheduling.policy import Scheduling
from placeopt.simulation import simulate
from placeopt.simulation.records.scenario import Scenario
from placeopt.simulation.replay.goals import Goal, measures_of
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
        """A digest of the run: by one version, runs of equal keys have equal results."""
        parts = (
            self.scenario.digest,
            self.scheduling.digest,
            str(self.draw),
            str(self.params.seed),
            f"{self.params.time_limit_s:g}",
        )
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def play(_: Engine, setup: RunSetup, deadline: Deadline) -> MeasuredRun | None:
    """Carry out a run, by an engine of its own; None if the time ended before it."""
    began = time.monotonic()
    scenario = setup.scenario if setup.draw is None else with_drawn_arrivals(setup.scenario, setup.draw)
    history = simulate(
        scenario, setup.scheduling, seed=setup.params.seed, time_limit_s=setup.params.time_limit_s, cancel=deadline
    )
    if not history.finished:
        return None
    return MeasuredRun(
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
