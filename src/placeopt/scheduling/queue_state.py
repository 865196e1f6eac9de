"""The state of a scheduler that places job by job: waiting and running jobs, free resources, and changes of both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping

from placeopt.errors import BadInput
from placeopt.live_cluster.engine import Engine
from placeopt.model import Job, Option, Placement
from placeopt.scheduling.attained_service import AttainedService, levels_of
from placeopt.scheduling.core_throttle import core_throttle
from placeopt.scheduling.decision import Decision, RoundView
from placeopt.scheduling.division import division_of
from placeopt.scheduling.elastic import ElasticJob, grow_jobs, with_workers
from placeopt.scheduling.free_resources import FreeResources
from placeopt.scheduling.occupancy import Follower, Held, Occupancy
from placeopt.scheduling.placement_amounts import with_cores, with_cores_each, workers_of
from placeopt.scheduling.policy import Scheduling
from placeopt.scheduling.preemption_policy import Candidate
from placeopt.scheduling.queue_orders import QueueContext, queue_order
from placeopt.scheduling.retry_filter import RetryFilter
from placeopt.scheduling.rules import ELASTIC_RULES, WATCHES
from placeopt.scheduling.scheduler import Scheduler
from placeopt.scheduling.setting import Setting
from placeopt.scheduling.spread import divisible


class QueueState(Scheduler):
    """
    Waiting and running jobs, and the changes that keep the engine consistent with them.

    The engine has every job as a gang of the workers that it gets: elastic jobs are resized by removing and adding them
    again. The decision of a round is the difference between the jobs that it touched and where they were before.
    """

    def __init__(self, engine: Engine, setting: Setting, scheduling: Scheduling) -> None:
        self._division = division_of(setting, scheduling)
        self._divided_nodes = None if self._division is None else self._division.nodes
        policy = scheduling.policy
        if self._division is not None:
            policy = policy.model_copy(update={"queues": self._division.queues})
        super().__init__(engine, setting, scheduling, policy)
        self._now_ms = setting.beginning.now_ms
        self._occupancy = Occupancy[Held]()
        self._running: Mapping[str, Held] = self._occupancy.running
        self._service = AttainedService(levels_of(scheduling), self._occupancy)
        context = QueueContext(
            setting=setting,
            scheduling=scheduling,
            division=self._division,
            service_level=lambda job: self._service.level(job, self._now_ms),
            is_service=lambda job: self._arrivals[job].service,
        )
        self._queue = queue_order(scheduling).make_queue(context)
        self._elastic_rule = ELASTIC_RULES[scheduling.elastic]
        self._jobs: dict[str, Job] = {}
        """Jobs that wait or run, as they were submitted last."""
        self._engine_jobs: dict[str, Job] = {}
        """The same as the engine gets them, but for the number of workers."""
        self._shape_of: dict[str, Hashable] = {}
        self._placed_before: dict[str, Placement | None] = {}
        """Jobs that this round has touched -> where they were when it began."""
        self._started: set[str] = set()
        """Jobs that start in this round."""
        watch = scheduling.watch
        self._monitor = None if watch is None else WATCHES[watch](watch, self._occupancy)
        self._resources = FreeResources(setting.cluster, policy)
        by_amounts = not self._elastic_rule.resizes and watch is None
        self._retry_filter = RetryFilter(self._resources, policy, by_amounts=by_amounts)
        self._in_parts = setting.in_parts and self._elastic_rule.assembles
        self._held_for = ""
        """The job for which room is held, as long as it waits; empty: none."""
        self._core_throttle = core_throttle(setting, scheduling, self._occupancy)
        self._restart_ms = setting.restart_ms
        self._num_stops: Counter[str] = Counter()
        self.num_overtaken = 0
        """How many jobs the order of the queue has let later ones start before, in the last round."""
        followers: tuple[Follower[Held] | None, ...] = (
            self._queue,
            self._service,
            self._resources,
            self._retry_filter,
            self._divided_nodes,
            self._core_throttle,
            self._monitor,
        )
        for follower in followers:
            if follower is not None:
                self._occupancy.follow(follower)
        self._fixed = {held.job for held in setting.beginning.running if not held.preemptible}
        for held in setting.beginning.running:
            self._jobs[held.job] = self._arrivals[held.job].job
            self._engine_jobs[held.job] = self.queued(self._estimator.of_running(self._jobs[held.job]))
            self._occupy(self.shares.requested(held.placement), held.started_ms)

    @property
    def num_waiting(self) -> int:
        return self._queue.num_jobs

    @property
    def running(self) -> Mapping[str, Held]:
        """Jobs that run."""
        return self._running

    def waits(self, job: str) -> bool:
        """Return whether a job waits."""
        return job in self._shape_of

    @property
    def holds_room(self) -> bool:
        """Whether room is held for a job that waits."""
        return self._held_for in self._shape_of

    def finds_room(self, job: str) -> bool:
        """Return whether what is free would do for a waiting job."""
        record = self._gang(job)
        return any(self._resources.fits(record, option, option.workers) for option in record.options)

    def waiting(self) -> Iterable[Job]:
        return (self._jobs[name] for name in self._shape_of)

    def queued(self, job: Job) -> Job:
        queue = job.queue if self._division is None else self._division.of(job)
        return job if queue == job.queue else job.model_copy(update={"queue": queue})

    def learn_from(self, earlier: QueueState, now_ms: int) -> None:
        """Take over what an earlier scheduler of the same jobs had learnt of them."""
        self._service.learn_from(earlier._service, now_ms)
        self._num_stops.update(earlier._num_stops)

    # -- a round

    def _begin(self, view: RoundView) -> None:
        self._now_ms = view.now_ms
        self.catch_up(view.now_ms)
        self._placed_before.clear()
        self._started.clear()
        self.num_overtaken = 0

    def _in_order(self, skipped: set[Hashable]) -> Iterator[tuple[str, Hashable]]:
        """Yield jobs as the queue does, and count those that later ones have been started before."""
        latest_ms = 0
        for job, shape in self._queue.in_order(skipped, self._now_ms):
            arrival_ms = self._jobs[job].arrival_ms
            self.num_overtaken += arrival_ms < latest_ms
            yield job, shape
            if job in self._started:
                latest_ms = max(latest_ms, arrival_ms)

    def _hold_room_anew(self) -> bool:
        """Hold room for another job once the one that had it waits no longer; return whether room was, or is, held."""
        had = self._held_for
        if had in self._shape_of or not (had or self._long_waits.any_of(self.waiting(), self._now_ms)):
            return False
        self._held_for = self._hold_room()
        return True

    def _decision(self, view: RoundView) -> Decision:
        """Return what differs since the round began."""
        start: list[Placement] = []
        stop: list[str] = []
        resize: list[Placement] = []
        for job, before in self._placed_before.items():
            now = self._placement(job)
            if now is None or before is None or job in self._started:
                stop += [] if before is None else [job]
                start += [] if now is None else [now]
            elif now != before:
                resize.append(now)
        if self._monitor is not None:
            for placement in start:
                self._monitor.newcomer(placement, set(self._placed_before), view.now_ms, view.slowdown)
        return Decision(start=tuple(start), stop=tuple(stop), resize=tuple(resize))

    def _touch(self, job: str) -> None:
        self._placed_before.setdefault(job, self._placement(job))

    def _placement(self, job: str) -> Placement | None:
        """Return where a job runs; None: it does not."""
        held = self._running.get(job)
        return None if held is None else held.placement

    # -- changes

    def _start(self, placement: Placement) -> None:
        """Account for a waiting job that starts."""
        job = placement.job
        self._touch(job)
        self._started.add(job)
        self._queue.take(job, self._shape_of.pop(job))
        self._occupy(placement)

    def _stop(self, job: str) -> None:
        self._touch(job)
        self._report(release=(job,))
        self._vacate(job)

    def _resize(self, placement: Placement) -> bool:
        """Give a running job another number of workers; return False, with nothing changed, if the referee refuses."""
        job = placement.job
        before = self._running[job].placement
        self._touch(job)
        self._report(release=(job,), add_jobs=(self._sized(placement),))
        self._vacate(job)
        try:
            self._put(placement)
        except BadInput:
            self._report(remove_jobs=(job,), add_jobs=(self._sized(before),))
            self._put(before)
            placement = before
        self._occupy(placement)
        return placement is not before

    def _resizable(self) -> list[Held]:
        """Return the running jobs that lack pods, or may have other numbers of workers, in order of arrival."""
        rule = self._elastic_rule
        if rule.assembles:
            found = [one for one in self._running.values() if workers_of(one.placement) < self._asked(one)]
        else:
            found = [one for one in self._running.values() if rule.follows_load and one.option.workers_min is not None]
        return sorted(found, key=lambda one: (one.job.arrival_ms, self._number[one.job.id]))

    def _asked(self, held: Held) -> int:
        """Return the number of workers that a running job asks for."""
        return self._arrivals[held.job.id].asked(held.option)

    def _grow(self) -> None:
        """Give jobs the pods that they lack, or elastic ones the workers that no waiting job needs."""
        rule = self._elastic_rule
        if not rule.resizes or (rule.follows_load and self._queue.num_jobs):
            return
        growing = []
        for held in self._resizable():
            job = held.job.id
            if rule.assembles:
                growing.append(ElasticJob(held.job, held.placement, held.option, self._asked(held)))
            elif self._may_change(job) and (job not in self._placed_before or job in self._started):
                growing.append(ElasticJob(held.job, held.placement, held.option, held.option.workers))
        for larger in grow_jobs(self._resources, growing, spread=rule.assembles):
            self._resize(larger)

    def _set_cores(self) -> bool:
        """Hold CPU jobs back by their cores where memory bandwidth runs short; return whether that left any cores."""
        left = False
        for job, millicores in self._core_throttle.changes().items() if self._core_throttle is not None else ():
            before = self._running[job].placement
            after = with_cores_each(before, millicores)
            more = {
                now.node: now.cpu_millicores - was.cpu_millicores
                for was, now in zip(before.assignments, after.assignments, strict=True)
            }
            if any(millicores > self._resources.cpu_millicores(node) for node, millicores in more.items()):
                continue  # others have started on the cores that it left
            self._touch(job)
            self._report(release=(job,))
            self._vacate(job)
            self._as_placed(after)
            self._report(add_jobs=(self._sized(after),))
            self._put(after)
            self._occupy(after)
            if any(millicores < 0 for millicores in more.values()):
                self._retry_filter.reopen(after)
                left = True
        return left

    def _as_placed(self, placement: Placement) -> None:
        """Let a job ask for the cores that it has in a placement."""
        job, at = self._engine_jobs[placement.job], placement.assignments[0]
        self._engine_jobs[placement.job] = with_cores(job, placement.option, at.cpu_millicores // len(at.workers))

    def _restore(self, placement: Placement) -> None:
        """Put an evicted job back where it was."""
        job = placement.job
        runs = job in self._running
        self._report(release=(job,) * runs, add_jobs=(self._sized(placement),))
        if runs:
            self._vacate(job)
        self._put(placement)
        self._occupy(placement)

    def _occupy(self, placement: Placement, since_ms: int | None = None) -> None:
        """Account for a job that holds its place; ``since_ms``: from when on, None: now."""
        job, option = placement.job, self._option(placement)
        since_ms = self._now_ms if since_ms is None else since_ms
        self._occupancy.start(Held(self._jobs[job], placement, option, since_ms))

    def _vacate(self, job: str) -> None:
        self._occupancy.end(job, self._now_ms)

    def watches(self, job: str) -> bool:
        """Return whether a job is a newcomer that is going to be examined."""
        return self._monitor is not None and self._monitor.watches(job)

    def _candidates(self) -> list[Candidate]:
        """Return the running jobs that may be evicted, the last submitted first; none that this round has touched."""
        may = [one for job, one in self._running.items() if job not in self._placed_before and self._may_change(job)]
        may.sort(key=lambda one: (-one.job.arrival_ms, self._number[one.job.id]))
        return [Candidate(one.job, one.placement, one.option, self._may_stop(one.placement)) for one in may]

    def _may_stop(self, placement: Placement) -> bool:
        """Return whether one more restart keeps the restarts within the allowed part of the job's run time."""
        most, name = self._scheduling.restarts_max_thousandths, placement.job
        if most is None:
            return True
        options = self._arrivals[name].job.options  # as it arrived: a job that waits again has the run time left
        whole = next(option.run_time_ms for option in options if option.id == placement.option)
        return whole is None or 1000 * self._restart_ms * (self._num_stops[name] + 1) <= most * whole

    # -- other changes of running jobs

    def _disturbing(self, view: RoundView) -> list[str]:
        """Return the newcomers that are stopped since they slow other jobs too much."""
        if self._monitor is None:
            return []
        disturbing = []
        for job, before in self._monitor.due(view.now_ms):
            neighbours = {other: slowdown for other, slowdown in before.items() if other in self._running}
            if self._may_change(job) and self._monitor.disturbs(neighbours, view.slowdown):
                disturbing.append(job)
        return disturbing

    # -- facts about jobs

    def _may_change(self, job: str) -> bool:
        return self._arrivals[job].may_change and job not in self._fixed

    def _gang(self, job: str, sizes: Mapping[str, int] | None = None) -> Job:
        """Return a job as the engine gets it while it waits; ``sizes``: other numbers of workers, by option."""
        record = self._engine_jobs[job]
        for option in record.options:
            workers = (sizes or {}).get(option.id) or self._first_workers(job, option)
            if option.workers_min is not None or workers != option.workers:
                record = with_workers(record, option.id, workers)
        return record

    def _first_workers(self, job: str, option: Option) -> int:
        """Return the number of workers with which a job starts where they find room."""
        if not self._elastic_rule.assembles:
            return self._arrivals[job].asked(option)
        return 1 if self._in_parts and divisible(option) else option.fewest

    def _sized(self, placement: Placement) -> Job:
        """Return a job as the engine gets it in a placement."""
        return self._gang(placement.job, {placement.option: workers_of(placement)})

    def _option(self, placement: Placement) -> Option:
        """Return the option of a placement, as the engine gets it."""
        return self._engine_jobs[placement.job].option(placement.option)
