"""A host system in memory that carries out what a live scheduler decides, whole or with faults, and gives readings."""

import random
import threading
from dataclasses import dataclass, field

from placeopt.actions import plan_actions
from placeopt.model import Cluster, Instance, Job, Plan, Running
from placeopt.scheduling import LiveScheduler


@dataclass
class Host:
    """
    Jobs that wait and run on a cluster.

    ``counts``: Actions that were carried out, by kind. ``faults``: Draws starts that fail, and jobs that are placed
    elsewhere or stopped by hand; None: all goes as decided.
    """

    cluster: Cluster
    now_ms: int = 0
    jobs: dict[str, Job] = field(default_factory=dict)
    running: dict[str, Running] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    faults: random.Random | None = None

    def reading(self) -> Instance:
        """Return what a reader of the host shows."""
        jobs, running = tuple(self.jobs.values()), tuple(self.running.values())
        return Instance(name="host", cluster=self.cluster, jobs=jobs, running=running, now_ms=self.now_ms)

    def turn(self, live: LiveScheduler) -> Plan:
        """Let the scheduler read, decide and act once; every plan passes the referee."""
        live.follow(self.reading())
        plan = live.decide(5.0, threading.Event(), deterministic=True)
        placed = {placement.job: placement for placement in plan.placements}
        left: set[int] = set()
        for number, action in enumerate(plan_actions(live.snapshot, plan)):
            if left.intersection(action.after) or (self.faults is not None and self.faults.random() < 0.2):
                left.add(number)
                continue
            self.counts[action.do] = self.counts.get(action.do, 0) + 1
            if action.do == "preempt":
                del self.running[action.job]
                continue
            before, now = self.running.get(action.job), placed[action.job]
            assert (before is None) == (action.do == "start")
            started_ms = self.now_ms if before is None or action.do == "move" else before.started_ms
            self.running[action.job] = Running(
                job=now.job,
                option=now.option,
                assignments=now.assignments,
                started_ms=started_ms,
                movable=True,
                shrinkable=True,
                preemptible=True,
            )
        return plan

    def end(self, job: str) -> None:
        """Let a job end, whether it runs or waits."""
        del self.jobs[job]
        self.running.pop(job, None)
