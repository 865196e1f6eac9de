"""A queue over readings: each reading becomes events for a scheduler, which goes on from earlier ones."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping

from placeopt.live_cluster.changes import changed_nodes
from placeopt.live_cluster.cluster_record import without_groups
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance, Job, Plan, Running
from placeopt.model.base import MAX_JOBS
from placeopt.model.plan import UnplacedReason
from placeopt.model.policy import Changes
from placeopt.scheduling.decision import Decision, RoundView
from placeopt.scheduling.decision_plan import plan_of_decision
from placeopt.scheduling.fired import HELD_ROOM
from placeopt.scheduling.job_by_job import JobByJob
from placeopt.scheduling.policy import Scheduling
from placeopt.scheduling.scheduler import Stopped
from placeopt.scheduling.setting import Setting, SubmittedJob
from placeopt.scheduling.telemetry import UTILISATION, Usage
from placeopt.solving.params import SolveParams

ANY_CHANGE = Changes(moves_max=MAX_JOBS, preemptions_max=MAX_JOBS, shrinks_max=MAX_JOBS)
"""Of the policy of rounds, by which plans are judged: which running jobs change is the scheduling policy's to say."""


LEAST_PERCENT = 1.0
"""Utilisation below which a job is not slower still."""


class LiveQueue:
    """
    A policy that places job by job, on readings of one cluster.

    Jobs with groups of workers wait, and what runs of them stays: no such policy says how they are placed.
    ``setting``: The first reading without these. ``first``: The whole of it. ``earlier``: What was there before it.
    """

    def __init__(
        self, engine: Engine, setting: Setting, scheduling: Scheduling, first: Instance, earlier: LiveQueue | None
    ) -> None:
        self.usage = Usage()
        self._engine, self._scheduling = engine, scheduling
        self.scheduler = JobByJob(engine, setting, scheduling)
        if earlier is not None:
            self.scheduler.learn_from(earlier.scheduler, first.now_ms)
        self._before = of_alike_workers(first)
        for job in self._before.jobs:
            if job.id not in self.scheduler.running:
                self.scheduler.arrive(job)
        self._show(first)

    @property
    def snapshot(self) -> Instance:
        """The round that plans are of: the last reading under the policy."""
        return self._round

    @property
    def wants_round(self) -> bool:
        """Whether a round could change anything."""
        return self.scheduler.wants_round

    @property
    def fired(self) -> Counter[str]:
        """What acted in the last round and shows in the queue alone."""
        order = self._scheduling.order
        name = "fcfs" if order is None else order.rule
        overtook = self.scheduler.num_overtaken
        return Counter({f"order {name}: overtook": overtook, HELD_ROOM: self.scheduler.holds_room})

    def follow(self, now: Instance) -> None:
        """Take a reading."""
        plain = of_alike_workers(now)
        _take_over(self.scheduler, self._before, plain)
        self._before = plain
        self._show(now)

    def _show(self, now: Instance) -> None:
        self.scheduler.catch_up(now.now_ms)
        jobs = tuple(map(self.scheduler.queued, now.jobs))
        policy = self.scheduler.policy.model_copy(update={"changes": ANY_CHANGE})
        self._round = now.model_copy(update={"policy": policy, "jobs": jobs})

    def decide(
        self, time_limit_s: float, cancel: threading.Event, *, waiting_only: bool = False, deterministic: bool = False
    ) -> Plan:
        """Return the plan of a round; nothing is proven by it."""
        del waiting_only
        now = self._round
        jobs = {job.id: job for job in self._before.jobs}
        view = RoundView(
            now_ms=now.now_ms,
            expected_ends=_expected_ends(self._before.running, jobs) if self.scheduler.looks_ahead else {},
            slowdown=lambda job: self._slowdown(jobs[job]),
            if_stopped=jobs.__getitem__,
        )
        params = SolveParams(time_limit_s=time_limit_s, deterministic=deterministic)
        try:
            decision = self.scheduler.decide(view, params, cancel)
        except Stopped:
            decision = Decision()
        return plan_of_decision(decision, now, self.scheduler.shares, self._why_waiting)

    def _why_waiting(self, job: str) -> tuple[UnplacedReason, str]:
        name, rule = self._scheduling.name, self.scheduler.policy.postpone.rule
        if not self.scheduler.waits(job):
            why = f"it has groups of workers, which policy {name!r} does not place; take one of whole rounds"
            return "policy", why
        if rule != "none" and self.scheduler.finds_room(job):
            return "postponed", f"there is room for it, and by {rule!r} of policy {name!r} it waits for better"
        return "outvoted", f"no room for it in the order of policy {name!r}"

    def _slowdown(self, job: Job) -> int:
        """Return how slow a job is, as far as its GPUs are idle; only what it was before is compared with it."""
        percent = self.usage.of(job, UTILISATION)
        return 0 if percent is None else round(100_000 / max(percent, LEAST_PERCENT))


def of_alike_workers(now: Instance) -> Instance:
    """Return a reading without waiting workers of jobs with groups; what runs of these stays where it is."""
    plain, _ = without_groups(now)
    if plain is now:
        return now
    own = {job.id for job in now.jobs if not any(option.is_tree for option in job.options)}
    stays = {"movable": False, "shrinkable": False, "preemptible": False}
    running = (held if held.job in own else held.model_copy(update=stays) for held in plain.running)
    return plain.model_copy(update={"running": tuple(running)})


def _take_over(scheduler: JobByJob, before: Instance, now: Instance) -> None:
    """Bring a scheduler from one reading, and what it decided since, to the next one: first what frees room."""
    jobs = {job.id: job for job in now.jobs}
    held = {running.job: running for running in now.running}
    known = {job.id: job for job in before.jobs}
    changeable = {running.job: running.preemptible for running in before.running}
    for job, placement in [(job, one.placement) for job, one in scheduler.running.items()]:
        there = held.get(job)
        moved = there is None or placement != scheduler.shares.requested(there.placement)
        if job not in jobs:
            scheduler.end(placement, now.now_ms)
        elif not moved and scheduler.watches(job):
            scheduler.announce(submitted(jobs[job], there))  # queued again, it would not be watched any more
        elif moved or jobs[job] != known.get(job) or there is None or changeable.get(job) != there.preemptible:
            scheduler.announce(submitted(jobs[job], there))
            scheduler.requeue(jobs[job], now.now_ms)
    for job, record in known.items():
        if scheduler.waits(job) and (job not in jobs or (job not in held and jobs[job] != record)):
            scheduler.withdraw(job)
    scheduler.renew(changed_nodes(before, now), now.holds)
    for job, record in jobs.items():
        there = held.get(job)
        if job in scheduler.running or (there is None and scheduler.waits(job)):
            continue
        scheduler.announce(submitted(record, there))
        if there is None:
            scheduler.arrive(record)
        else:
            scheduler.adopt(there, now.now_ms)


def submitted(job: Job, held: Running | None) -> SubmittedJob:
    """Return a job as a scheduler learns of it; what runs may change where the host lets it."""
    return SubmittedJob(job, may_change=held is not None and (held.preemptible or held.movable))


def _expected_ends(running: tuple[Running, ...], jobs: Mapping[str, Job]) -> dict[str, int]:
    """Return when running jobs end if their run times are true, as far as these are known."""
    ends: dict[str, int] = {}
    for held in running:
        run_time_ms = jobs[held.job].option(held.option).run_time_ms
        if held.expected_end_ms is not None:
            ends[held.job] = held.expected_end_ms
        elif run_time_ms is not None:
            ends[held.job] = held.started_ms + run_time_ms
    return ends
