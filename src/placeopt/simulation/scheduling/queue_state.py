"""What a scheduler that decides job by job knows: who waits, who is where, what is free; and putting jobs elsewhere."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from placeopt.errors import BadInput
from placeopt.live_cluster.engine import Engine
from placeopt.model import Job, Option, Placement
from placeopt.model.scenario import Scenario
from placeopt.model.scheduling import Scheduling
from placeopt.simulation.scheduling.attained_service import AttainedService
from placeopt.simulation.scheduling.decision import Decision, RoundView
from placeopt.simulation.scheduling.elastic import with_workers
from placeopt.simulation.scheduling.free_resources import FreeResources, workers_of
from placeopt.simulation.scheduling.interference_monitor import InterferenceMonitor
from placeopt.simulation.scheduling.job_arrays import ArrayDivision
from placeopt.simulation.scheduling.queue_orders import make_queue
from placeopt.simulation.scheduling.retry_filter import RetryFilter
from placeopt.simulation.scheduling.scheduler import Scheduler, milli_of

BY_THE_MIX = frozenset({"stranding", "prices", "fgd"})
"""Methods that go by the mix of jobs, which is known as of some time before: a log could not be repeated."""


class QueueState(Scheduler):
    """
    The books of a round that places job by job, and the moves that keep them and the engine in step.

    The engine has every job as a gang of the workers that it is to have: elastic jobs are resized by taking them out
    and putting them in again. What a round has changed is found by comparing with what was touched.
    """

    def __init__(self, engine: Engine, scenario: Scenario, scheduling: Scheduling) -> None:
        self._division = None if scheduling.arrays is None else ArrayDivision(scenario, scheduling.arrays)
        policy = scheduling.policy
        if self._division is not None:
            policy = policy.model_copy(update={"queues": self._division.queues})
        super().__init__(engine, scenario, scheduling, policy)
        if scheduling.changes_jobs and scheduling.method in BY_THE_MIX:
            raise BadInput(
                f"policy {scheduling.name!r}: method {scheduling.method!r} goes by the mix of jobs, so changes of "
                "running jobs could not be repeated from a log; take 'best-fit', 'fcfs', 'obp' or another"
            )
        self._service = AttainedService(scheduling.levels_gpu_s)
        self._now = 0
        self._queue = make_queue(scheduling, scenario, self._division, self._level)
        self._jobs: dict[str, Job] = {}
        """Jobs that wait or run, as they were submitted last."""
        self._asked: dict[str, Job] = {}
        """The same as the engine is asked about them, but for the number of workers."""
        self._shape: dict[str, Hashable] = {}
        self._running: dict[str, Placement] = {}
        self._before: dict[str, Placement | None] = {}
        """Of jobs that were touched in this round: where they were when it began."""
        self._begun: set[str] = set()
        """Jobs that start in this round."""
        self._steps = 0
        """How often anything of ``_running`` and ``_before`` has changed."""
        self._watcher = None if scheduling.watch is None else InterferenceMonitor(scheduling.watch)
        self._room = FreeResources(scenario.cluster, policy) if scheduling.changes_jobs else None
        self._openings = RetryFilter(
            scenario.cluster, policy, by_amounts=scheduling.elastic == "asked" and scheduling.watch is None
        )
        self._elastic: dict[str, None] = {}
        """Running jobs that may have more or fewer workers, in order of start."""
        gpus = {machine.id: len(machine.gpus) for machine in scenario.cluster.machines}
        self._free_milli = 1000 * sum(gpus[node.machine] for node in scenario.cluster.nodes)
        self._number = {name: number for number, name in enumerate(self._arrivals)}
        self._fixed = {held.job for held in scenario.running if not held.preemptible}
        for held in scenario.running:
            self._jobs[held.job] = self._arrivals[held.job].job
            self._asked[held.job] = self._belief.of_running(self._arrivals[held.job].job)
            begun = Placement(job=held.job, option=held.option, assignments=held.assignments)
            self._occupy(self._shares.requested(begun))

    @property
    def num_waiting(self) -> int:
        """See ``Scheduler``."""
        return self._queue.number

    # -- a round

    def _begin(self, scene: RoundView) -> None:
        self._now = scene.now_ms
        self._catch_up(scene.now_ms, {})
        self._before.clear()
        self._begun.clear()
        self._steps += 1

    def _decision(self, scene: RoundView) -> Decision:
        """Return what is different since the round began."""
        start: list[Placement] = []
        stop: list[str] = []
        resize: list[Placement] = []
        for job, before in self._before.items():
            now = self._running.get(job)
            if now is None or before is None or job in self._begun:
                stop += [] if before is None else [job]
                start += [] if now is None else [now]
            elif now != before:
                resize.append(now)
        if self._watcher is not None:
            for placement in start:
                self._watcher.start(placement, set(self._before), scene.now_ms, scene.slowdown)
        return Decision(start=tuple(start), stop=tuple(stop), resize=tuple(resize))

    def _stopped(self) -> list[str]:
        return [job for job, before in self._before.items() if before is not None and job not in self._running]

    def _touch(self, job: str) -> None:
        self._before.setdefault(job, self._running.get(job))
        self._steps += 1

    # -- moves

    def _start(self, placement: Placement) -> None:
        """Note that a waiting job starts."""
        job = placement.job
        self._touch(job)
        self._begun.add(job)
        self._queue.take(job, self._shape.pop(job))
        self._occupy(placement)

    def _stop(self, job: str) -> None:
        self._touch(job)
        self._engine.release(job)
        self._vacate(job)

    def _resize(self, placement: Placement) -> bool:
        """Give a running job another number of workers; false, and all as it was, if the referee refuses."""
        job = placement.job
        before = self._running[job]
        self._touch(job)
        self._engine.release(job)
        self._vacate(job)
        self._engine.update(add_jobs=[self._sized(placement)])
        try:
            self._put((placement,))
        except BadInput:
            self._engine.update(remove_jobs=[job], add_jobs=[self._sized(before)])
            self._put((before,))
            placement = before
        self._occupy(placement)
        return placement is not before

    def _give_back(self, placement: Placement) -> None:
        """Put a job back where it was before it gave."""
        job = placement.job
        if job in self._running:
            self._engine.release(job)
            self._vacate(job)
        self._engine.update(add_jobs=[self._sized(placement)])
        self._put((placement,))
        self._occupy(placement)

    def _occupy(self, placement: Placement) -> None:
        job = placement.job
        record = self._jobs[job]
        option = self._option(placement)
        self._running[job] = placement
        self._steps += 1
        self._queue.holds(record, placement, 1)
        self._service.start(job, milli_of(placement), self._now)
        self._free_milli -= milli_of(placement)
        self._openings.take(placement)
        if self._room is not None:
            self._room.take(placement, option.demand)
        if option.workers_min is not None and self._scheduling.elastic != "asked":
            self._elastic[job] = None
        if self._watcher is not None:
            self._watcher.occupy(placement)

    def _vacate(self, job: str) -> None:
        placement, record = self._running.pop(job), self._jobs[job]
        self._steps += 1
        self._queue.holds(record, placement, -1)
        self._service.stop(job, self._now)
        self._free_milli += milli_of(placement)
        self._openings.take(placement, -1)
        if self._room is not None:
            self._room.take(placement, self._option(placement).demand, -1)
        self._elastic.pop(job, None)
        if self._watcher is not None:
            self._watcher.vacate(placement)

    # -- what is known of jobs

    def _may_change(self, job: str) -> bool:
        return self._arrivals[job].may_change and job not in self._fixed

    def _by_arrival(self, job: str) -> tuple[int, int]:
        return self._jobs[job].arrival_ms, self._number[job]

    def _told(self, job: str, sizes: Mapping[str, int] | None = None) -> Job:
        """Return a job as the engine has it while it waits; ``sizes``: unusual numbers of workers, by option."""
        record = self._asked[job]
        for option in record.options:
            if option.workers_min is not None:
                pods = self._scheduling.elastic == "pods"
                usual = option.workers_min if pods else self._arrivals[job].asked(option)
                record = with_workers(record, option.id, (sizes or {}).get(option.id, usual))
        return record

    def _option(self, placement: Placement) -> Option:
        """Return the option of a placement, with what the engine was asked for."""
        return next(option for option in self._asked[placement.job].options if option.id == placement.option)

    def _sized(self, placement: Placement) -> Job:
        """Return a job as the engine is to have it in a placement."""
        return self._told(placement.job, {placement.option: workers_of(placement)})

    def _level(self, job: str) -> int:
        """Return the level of attained service of a job."""
        return self._service.level(job, self._now)
