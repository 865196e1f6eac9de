"""Rounds that place one job after the other, in the order of a queue."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Hashable, Iterable

from placeopt.live_cluster.engine import Engine
from placeopt.model import Job, Placement
from placeopt.model.scenario import Scenario
from placeopt.model.scheduling import Scheduling
from placeopt.problem.classes import class_key
from placeopt.simulation.performance_model import PerformanceModel
from placeopt.simulation.scheduling.decision import Decision, RoundView
from placeopt.simulation.scheduling.elastic import ElasticJob, grow_jobs
from placeopt.simulation.scheduling.job_arrays import JobArrayQueue
from placeopt.simulation.scheduling.preemption_policy import Candidate, PreemptionPolicy
from placeopt.simulation.scheduling.queue_state import QueueState
from placeopt.simulation.scheduling.scheduler import RoundLimits, Stopped, least_milli


class JobByJob(QueueState):
    """
    One job after the other, in the order of a queue, by a method of greedy.

    Where the policy lets running jobs give room, one that found none is tried again with that.
    """

    def __init__(self, engine: Engine, scenario: Scenario, scheduling: Scheduling) -> None:
        super().__init__(engine, scenario, scheduling)
        self._restart_ms = scenario.physics.restart_ms
        if scheduling.apart_max_thousandths is not None:
            self._told_ground = PerformanceModel(scenario)
        self._giving = self._make_giving()
        self._givers: tuple[int, list[Candidate]] = (-1, [])
        self._classes: dict[Hashable, int] = {}
        """Classes of jobs by number, since their records take long to hash."""
        self._stops: Counter[str] = Counter()
        self._least: dict[Hashable, int] = {}
        self._overcommitted = self.policy.share_mode == "overcommit"  # more may be granted than there is

    @property
    def wants_round(self) -> bool:
        """See ``Scheduler``. Elastic jobs may grow, and newcomers are looked at, where nobody waits."""
        watched = self._watcher is not None and self._watcher.next_ms is not None
        return bool(self._queue.number or self._elastic or watched)

    @property
    def looks_ahead(self) -> bool:
        """See ``Scheduler``."""
        return self._scheduling.preempts in ("srtf", "srsf") or super().looks_ahead

    def wake_ms(self, now_ms: int) -> int | None:
        """See ``Scheduler``."""
        if self._watcher is not None:
            return self._watcher.next_ms
        quantum = self._scheduling.quantum_ms
        return None if quantum is None or not self._queue.number else now_ms - now_ms % quantum + quantum

    def arrive(self, job: Job) -> None:
        """See ``Scheduler``."""
        self._jobs[job.id] = job
        array = None if self._division is None else self._division.of(job)
        self._asked[job.id] = self.told(job if array is None else job.model_copy(update={"queue": array}))
        told = self._told(job.id)
        self._coming[job.id] = told
        shape: Hashable = self._classes.setdefault(class_key(told, self.policy), len(self._classes))
        if self._giving is not None:
            shape = shape, self._giving.key(job, self._now)
        if shape not in self._least:
            self._least[shape] = min(least_milli(option) for option in told.options)
        self._openings.learn(shape, told)
        self._shape[job.id] = shape
        self._queue.add(job, shape)

    def withdraw(self, job: str) -> None:
        """See ``Scheduler``."""
        self._withdraw(job)
        self._queue.take(job, self._shape.pop(job))
        del self._jobs[job]

    def end(self, placement: Placement, now_ms: int) -> None:
        """See ``Scheduler``."""
        super().end(placement, now_ms)
        self._now = now_ms
        self._vacate(placement.job)
        self._service.forget(placement.job)
        self._openings.ended(placement)

    def decide(self, scene: RoundView, limits: RoundLimits, cancel: threading.Event | None) -> Decision:
        """See ``Scheduler``. A kind of job that found no room is asked again when something has ended."""
        del limits
        self._begin(scene)
        if self.policy.postpone.rule != "none":  # a place may become good enough
            self._openings.open_all()
        elif self._giving is not None:  # somebody may give
            self._openings.open_where(self._takes)
        disturbers = self._disturbers(scene)
        for job in disturbers:
            self._stop(job)
        self._grow()
        self._pass(scene, cancel, gifts=True)
        stopped = [job for job in self._stopped() if job not in disturbers]
        self._wait_again(stopped, scene)
        if stopped:  # they may find room elsewhere
            self._openings.open_all()
            self._pass(scene, None, gifts=False)
        self._wait_again(disturbers, scene, at_the_end=True)
        self._grow()
        decision = self._decision(scene)
        self._stops.update(decision.stop)
        return decision

    def repeat(self, scene: RoundView, decision: Decision) -> None:
        """See ``Scheduler``."""
        self._begin(scene)
        disturbers = self._disturbers(scene)
        for job in decision.stop:
            self._stop(job)
        for placement in decision.resize:
            self._touch(placement.job)
            self._engine.release(placement.job)
            self._vacate(placement.job)
        again = [job for job in decision.stop if job not in disturbers]
        self._wait_again(again, scene)
        start = decision.start
        if self._scheduling.elastic != "asked":
            sizes = [self._sized(one) for one in start]
            self._engine.update(remove_jobs=[one.job for one in start], add_jobs=sizes)
        self._engine.update(add_jobs=[self._sized(one) for one in decision.resize])
        self._put((*decision.resize, *start))
        for placement in decision.resize:
            self._occupy(placement)
        for placement in start:
            self._start(placement)
        self._wait_again([job for job in decision.stop if job in disturbers], scene, at_the_end=True)
        self._decision(scene)
        self._stops.update(decision.stop)

    # -- the pass over the queue

    def _pass(self, scene: RoundView, cancel: threading.Event | None, *, gifts: bool) -> None:
        """Go through the queue; with ``gifts`` running jobs may give room."""
        strict = self._scheduling.strict
        for job, shape in self._queue.in_order(set() if strict else self._openings.closed, scene.now_ms):
            if cancel is not None and cancel.is_set() and not self._before:
                raise Stopped
            if self._watcher is not None and self._watcher.holds_back(self._running[new] for new in self._begun):
                break
            placement = self._place(job, shape)
            if placement is None and gifts and self._giving is not None and self._takes(shape):
                placement = self._place_with_gifts(job, self._giving, scene)
            if placement is not None:
                self._start(placement)
                if self._scheduling.elastic == "pods":
                    self._grow()
            else:
                self._openings.closed.add(shape)
                if strict:
                    break

    def _place(self, job: str, shape: Hashable) -> Placement | None:
        full = not self._overcommitted and self._least[shape] > self._free_milli
        if shape in self._openings.closed or full or self._openings.has_no_room(shape):
            return self._place_smaller(job)
        placement = self._try(job)
        if placement is None:
            self._openings.failed(shape)
        return placement or self._place_smaller(job)

    def _try(self, job: str) -> Placement | None:
        plan = self._engine.place([job], method=self._scheduling.method, explain=False)
        if not plan.placements or self._too_far_apart(plan.placements[0]):
            return None
        self._engine.commit(plan)
        return self._shares.requested(plan.placements[0])

    def _too_far_apart(self, placement: Placement) -> bool:
        """Tell whether a job had better wait than run so much longer with its GPUs apart."""
        most = self._scheduling.apart_max_thousandths
        if most is None:
            return False
        return self._told_ground.held(placement).apart_thousandths > most

    def _place_smaller(self, job: str) -> Placement | None:
        """Try an elastic job with fewer workers than it asks for."""
        if self._scheduling.elastic != "load" or self._room is None:
            return None
        record = self._asked[job]
        for option in record.options:
            asked = self._arrivals[job].asked(option)
            for workers in range(asked - 1, (option.workers_min or asked) - 1, -1):
                if self._room.fits(record, option, workers):
                    placement = self._try_as(job, self._told(job, {option.id: workers}))
                    if placement is not None:
                        return placement
        return None

    def _try_as(self, job: str, record: Job) -> Placement | None:
        """Try a waiting job in another form; where that fails the engine has it as before."""
        self._engine.update(remove_jobs=[job], add_jobs=[record])
        placement = self._try(job)
        if placement is None:
            self._engine.update(remove_jobs=[job], add_jobs=[self._told(job)])
        return placement

    def _place_with_gifts(self, job: str, giving: PreemptionPolicy, scene: RoundView) -> Placement | None:
        """Place a job where others give room; what they gave is given back if the referee refuses it all the same."""
        record = self._jobs[job]
        sizes = {option.id: option.workers_min for option in record.options if option.workers_min is not None}
        takes_workers = self._scheduling.elastic == "load"  # then the fewest will do for one that takes from others
        told = self._told(job, sizes if takes_workers else {})
        options = [one for one in told.options if giving.may_claim(record, one)]
        candidates = self._candidates() if options else []
        for option in sorted(options, key=lambda one: -one.value):
            gifts = giving.choose(record, option, candidates, scene.now_ms, scene.ends)
            if gifts is None:
                continue
            before = [self._running[gift.job] for gift in gifts]
            done = [self._give(gift.job, gift.left) for gift in gifts]
            placement = self._try_as(job, told) if all(done) else None
            if placement is not None:
                return placement
            for placement_before, gave in zip(before, done, strict=True):
                if gave:
                    self._give_back(placement_before)
        return None

    def _takes(self, shape: Hashable) -> bool:
        """Tell whether others might give room to a kind of job."""
        return self._giving is not None and isinstance(shape, tuple) and self._giving.takes(shape[1])

    def _may_give(self, job: str) -> bool:
        """Whether a running job may be changed now: not one that was touched in this round."""
        return job not in self._before and self._may_change(job)

    def _candidates(self) -> list[Candidate]:
        """Return the running jobs that may be changed now, in order of arrival; the same until a job is touched."""
        if self._givers[0] != self._steps:
            names = sorted(filter(self._may_give, self._running), key=self._by_arrival)
            held = ((self._jobs[name], self._running[name]) for name in names)
            found = [
                Candidate(record, placement, self._option(placement), self._may_stop(placement))
                for record, placement in held
            ]
            self._givers = self._steps, found
        return self._givers[1]

    def _may_stop(self, placement: Placement) -> bool:
        """Tell whether one more restart would leave the job's restarts within the part of its run time allowed."""
        most, name = self._scheduling.restarts_max_thousandths, placement.job
        if most is None:
            return True
        options = self._arrivals[name].job.options  # as it came: what waits again has the run time that is left
        whole = next(option.run_time_ms for option in options if option.id == placement.option)
        return whole is None or 1000 * self._restart_ms * (self._stops[name] + 1) <= most * whole

    # -- changes of running jobs

    def _give(self, job: str, left: Placement | None) -> bool:
        """Let a running job be what is left of it; false if the referee refuses."""
        if left is None:
            self._stop(job)
            return True
        return self._resize(left)

    def _grow(self) -> None:
        """Give elastic jobs the workers that they lack (pods), or that nobody else asks for (load)."""
        rule = self._scheduling.elastic
        if rule == "asked" or self._room is None or (rule == "load" and self._queue.number):
            return
        growing = []
        for job in sorted(self._elastic, key=self._by_arrival):
            record, placement = self._jobs[job], self._running[job]
            option = self._option(placement)
            if rule == "pods":
                growing.append(ElasticJob(record, placement, option, self._arrivals[job].asked(option)))
            elif self._may_change(job) and (job not in self._before or job in self._begun):
                growing.append(ElasticJob(record, placement, option, option.workers))
        for larger in grow_jobs(self._room, growing, spread=rule == "pods"):
            self._resize(larger)

    def _disturbers(self, scene: RoundView) -> list[str]:
        """Return those that are to be stopped because others lose too much by them."""
        if self._watcher is None:
            return []
        found = []
        for job, before in self._watcher.due(scene.now_ms):
            beside = {other: then for other, then in before.items() if other in self._running}
            if self._may_change(job) and self._watcher.disturbs(beside, scene.slowdown):
                found.append(job)
        return found

    def _wait_again(self, jobs: Iterable[str], scene: RoundView, *, at_the_end: bool = False) -> None:
        """Let jobs that were stopped wait, with what is left of them."""
        for job in jobs:
            record = scene.again(job)
            self.arrive(record.model_copy(update={"arrival_ms": scene.now_ms}) if at_the_end else record)
        if self._coming:
            self._engine.update(add_jobs=self._coming.values())
            self._coming.clear()

    def _make_giving(self) -> PreemptionPolicy | None:
        """Return the rule by which running jobs give room; None if they do not."""
        scheduling = self._scheduling
        if self._room is None or (scheduling.preempts == "never" and scheduling.elastic != "load"):
            return None
        return PreemptionPolicy(
            scheduling.preempts,
            restart_ms=self._restart_ms,
            workers=scheduling.elastic == "load",
            room=self._room,
            service=self._service,
            turns=self._queue if isinstance(self._queue, JobArrayQueue) else None,
        )
