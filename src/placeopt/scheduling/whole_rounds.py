"""Rounds that place all waiting jobs together, and change running ones by the engine's own rules."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

from placeopt.edits import Step
from placeopt.live_cluster.engine import Engine
from placeopt.model import Assignment, Job, Placement
from placeopt.scheduling.decision import Decision, RoundView
from placeopt.scheduling.placement_amounts import workers_of
from placeopt.scheduling.policy import Scheduling
from placeopt.scheduling.queue_usage import QueueUsage
from placeopt.scheduling.scheduler import READ_ONCE, Scheduler, Stopped
from placeopt.scheduling.setting import Setting
from placeopt.solving.params import SolveParams


class WholeRounds(Scheduler):
    """All waiting jobs together, by any method; running ones change as ``policy.changes`` allows."""

    read_once = READ_ONCE

    def __init__(self, engine: Engine, setting: Setting, scheduling: Scheduling) -> None:
        super().__init__(engine, setting, scheduling, scheduling.policy)
        self._waiting: dict[str, None] = {}
        self._may_grow = scheduling.policy.changes.moves_max > 0
        self._elastic: set[str] = set()
        self._keeps_work = setting.keeps_work
        self._lost_work: set[str] = set()
        half_life_ms = scheduling.usage_half_life_ms
        self._usage = None if half_life_ms is None else QueueUsage(self.policy, half_life_ms)

    @property
    def num_waiting(self) -> int:
        return len(self._waiting)

    def waiting(self) -> Iterable[Job]:
        return (self._arrivals[name].job for name in self._waiting)

    @property
    def wants_round(self) -> bool:
        """Whether a round could change anything; elastic jobs may grow, by a move, while no job waits."""
        return bool(self._waiting) or (self._may_grow and bool(self._elastic))

    def arrive(self, job: Job) -> None:
        self._arriving[job.id] = self.engine_job(self.believes(job))
        self._waiting[job.id] = None

    def withdraw(self, job: str) -> None:
        self._withdraw(job)
        del self._waiting[job]

    def end(self, placement: Placement, now_ms: int) -> None:
        super().end(placement, now_ms)
        self._elastic.discard(placement.job)

    def edit(self, steps: Sequence[Step], view: RoundView) -> tuple[str, ...]:
        stopped = super().edit(steps, view)
        self.policy = self._engine.snapshot.policy
        self._wait_again(stopped, view)
        return stopped

    def decide(self, view: RoundView, params: SolveParams, cancel: threading.Event | None) -> Decision:
        """Decide what changes now, by one round of the engine."""
        self.catch_up(view.now_ms, view.expected_ends)
        self._prepare()
        plan = self._engine.place(
            method=self._scheduling.method,
            time_limit_s=params.time_limit_s,
            seed=params.seed,
            deterministic=params.deterministic,
            warm=False,
            prove=False,
            explain=False,
            brief=True,
            cancel=cancel,
        )
        if cancel is not None and cancel.is_set():
            raise Stopped
        self.rounds_cut += plan.limit == "time"
        running = {held.job: held for held in self._engine.snapshot.running} if plan.moved else {}
        moved = {change.job for change in plan.moved}
        resized = {change.job for change in plan.shrunk} - moved
        resized |= {
            placement.job
            for placement in plan.placements
            if placement.job in moved and only_grew(running[placement.job], placement)
        }
        decision = Decision(
            start=tuple(placement for placement in plan.placements if placement.job in self._waiting),
            stop=tuple(victim.job for victim in plan.preempted),
            move=tuple(placement for placement in plan.placements if placement.job in moved - resized),
            resize=tuple(placement for placement in plan.placements if placement.job in resized),
        ).with_placements(self.shares.requested)
        self._commit_plan(plan, decision.start)
        self._note(decision, view)
        return decision

    def _prepare(self) -> None:
        """State what queues have used, and hold room for the job that has waited longest, as the policy asks."""
        if self._usage is not None:
            self._engine.edit((self._usage.step_at(self._engine.snapshot),))
        self._hold_room()

    def _may_change(self, job: str) -> bool:
        """Return whether a job may change: where work is lost, once, or two jobs could stop each other forever."""
        return super()._may_change(job) and job not in self._lost_work

    def _note(self, decision: Decision, view: RoundView) -> None:
        for placement in decision.start:
            del self._waiting[placement.job]
            self._note_elastic(self._arrivals[placement.job].job)
        if decision.stop:
            self._report(remove_jobs=decision.stop)
        self._wait_again(decision.stop, view)

    def _note_elastic(self, job: Job) -> None:
        if any(option.workers_min for option in job.options):
            self._elastic.add(job.id)

    def _wait_again(self, jobs: Iterable[str], view: RoundView) -> None:
        """Let stopped jobs, which the engine no longer has, wait with the work that is left."""
        for job in jobs:
            if not self._keeps_work:
                self._lost_work.add(job)
            self._elastic.discard(job)
            self.arrive(view.if_stopped(job))


def only_grew(before: Placement, after: Placement) -> bool:
    """
    Return whether a job keeps its workers where they are, and gets more.

    To the engine that is a move; the simulation charges what a resize costs.
    """
    return (
        before.option == after.option
        and all(
            any(worker_gpus in _workers(assignment) for assignment in after.assignments if assignment.node == held.node)
            for held in before.assignments
            for worker_gpus in _workers(held)
        )
        and workers_of(after) > workers_of(before)
    )


def _workers(assignment: Assignment) -> list[tuple[int, ...]]:
    """Return the GPUs of each worker."""
    return [tuple(sorted(worker.gpus)) for worker in assignment.workers]
