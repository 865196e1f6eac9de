"""Rounds that place one job after the other, in the order of a queue."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable, Mapping, Sequence

from placeopt.edits import Step
from placeopt.live_cluster.engine import Engine
from placeopt.model import Hold, Job, Node, Placement, Running
from placeopt.problem.classes import class_key
from placeopt.scheduling.attained_service import quantum_of
from placeopt.scheduling.decision import Decision, RoundView
from placeopt.scheduling.division import NodeDivision
from placeopt.scheduling.evictions import PreemptionPolicy
from placeopt.scheduling.placement_amounts import requested_amounts
from placeopt.scheduling.policy import Scheduling
from placeopt.scheduling.preemption_policy import PreemptionContext, Request
from placeopt.scheduling.queue_state import QueueState
from placeopt.scheduling.rules import PREEMPTION_RULES
from placeopt.scheduling.scheduler import Stopped
from placeopt.scheduling.setting import Setting
from placeopt.scheduling.spread import Spread
from placeopt.scheduling.urgency_queue import UrgencyQueue
from placeopt.solving.params import SolveParams


class JobByJob(QueueState):
    """
    One job after the other, in the order of a queue, by a method of greedy.

    Where the policy lets running jobs be evicted, a job that does not fit is tried again after evictions.
    """

    def __init__(self, engine: Engine, setting: Setting, scheduling: Scheduling) -> None:
        super().__init__(engine, setting, scheduling)
        self._spread: Spread | None = None
        if scheduling.apart_max_thousandths is not None:
            jobs = (arrival.job for arrival in setting.known)
            usual = setting.spread_slowdown_thousandths
            self._spread = Spread(setting.hardware, jobs, usual, in_parts=self._in_parts)
        rule = PREEMPTION_RULES[scheduling.preempts]
        self._reads_expected_ends = rule.reads_expected_ends
        takes_workers = self._elastic_rule.follows_load
        self._preemption: PreemptionPolicy | None = None
        if rule.stops_jobs or takes_workers:
            context = PreemptionContext(self._restart_ms, self._service, self._queue, self._resources, self.waiting)
            self._preemption = PreemptionPolicy(rule, context, takes_workers=takes_workers)
        self._quantum_ms = quantum_of(scheduling)
        self._sets_cores = setting.sets_cores
        self._no_evictions: dict[Hashable, Hashable] = {}
        """Kinds of jobs for which no evictions made room, and what these depended on."""
        self._classes: dict[Hashable, int] = {}
        """Classes of jobs by number, since their records take long to hash."""
        self._least_milli: dict[Hashable, int] = {}
        """GPU-milli that jobs of a shape need at least."""
        queue = self._queue
        self._by_urgency = queue if isinstance(queue, UrgencyQueue) and scheduling.choice.rule == "urgency" else None
        self._overcommits = self.policy.share_mode == "overcommit"  # jobs may hold more than there is

    @property
    def wants_round(self) -> bool:
        """Whether a round could change anything; while no job waits, running ones may grow, or be examined."""
        monitored = self._monitor is not None and self._monitor.next_ms is not None
        held_back = self._core_throttle is not None and self._core_throttle.holds_any
        return bool(self._queue.num_jobs or monitored or held_back or self._resizable())

    @property
    def looks_ahead(self) -> bool:
        """Whether decisions read when running jobs are expected to end."""
        return self._reads_expected_ends or super().looks_ahead

    def wake_ms(self, now_ms: int) -> int | None:
        """Return when a newcomer is examined, or the next quantum begins while a job waits."""
        if self._monitor is not None:
            return self._monitor.next_ms
        quantum = self._quantum_ms
        if quantum is None or not self._queue.num_jobs:
            return None
        return now_ms - now_ms % quantum + quantum

    def arrive(self, job: Job) -> None:
        job = self.believes(job)
        if self._sets_cores and self._divided_nodes is not None:
            job = self._divided_nodes.fitted(job)
        self._jobs[job.id] = job
        if self._spread is not None:
            self._spread.learn(self._arrivals[job.id].job)
        self._engine_jobs[job.id] = self.engine_job(self.queued(job))
        gang = self._gang(job.id)
        self._arriving[job.id] = gang
        shape: Hashable = self._classes.setdefault(class_key(gang, self.policy), len(self._classes))
        if self._preemption is not None:
            shape = shape, self._preemption.key(job, self._now_ms)
        if shape not in self._least_milli:
            self._least_milli[shape] = min(requested_amounts(option, option.workers)[0] for option in gang.options)
        self._retry_filter.learn(shape, gang)
        self._shape_of[job.id] = shape
        self._queue.add(job, shape)

    def withdraw(self, job: str) -> None:
        self._withdraw(job)
        self._queue.take(job, self._shape_of.pop(job))
        del self._jobs[job]

    def end(self, placement: Placement, now_ms: int) -> None:
        super().end(placement, now_ms)
        self._now_ms = now_ms
        self._vacate(placement.job)
        self._service.forget(placement.job)
        self._retry_filter.reopen(placement)

    def edit(self, steps: Sequence[Step], view: RoundView) -> tuple[str, ...]:
        self._now_ms = view.now_ms
        stopped = super().edit(steps, view)
        for job in stopped:
            self._vacate(job)
        self._recount()
        self._requeue(stopped, view)
        return stopped

    def renew(self, nodes: Mapping[str, Node | None], holds: tuple[Hold, ...]) -> None:
        """Take nodes that came, changed or, with None, went, and all room that is held, as a host reports them."""
        self._report(nodes=dict(nodes), holds=holds)
        self._held_for = ""
        self._recount()

    def _recount(self) -> None:
        """Count what is free anew, since the nodes are others."""
        self._resources.use(self._engine.snapshot.cluster)
        for held in self._running.values():
            self._resources.started(held)
        self._retry_filter.forget()
        self._no_evictions.clear()

    def adopt(self, held: Running, now_ms: int) -> None:
        """Account for a known job that runs, wherever others started it; it waits, or is new."""
        job, self._now_ms = held.job, now_ms
        if job in self._shape_of:
            self._withdraw(job)
            self._queue.take(job, self._shape_of.pop(job))
        self._jobs[job] = self._arrivals[job].job
        self._engine_jobs[job] = self.queued(self._estimator.of_running(self._jobs[job]))
        placement = self.shares.requested(held.placement)
        self._report(add_jobs=(self._sized(placement),), adopt=(held,))
        self._occupy(placement, held.started_ms)

    def requeue(self, job: Job, now_ms: int) -> None:
        """Let a job wait that was decided to run, or ran, and does not."""
        self._now_ms = now_ms
        self._report(release=(job.id,))
        self._vacate(job.id)
        self.arrive(job)

    def decide(self, view: RoundView, params: SolveParams, cancel: threading.Event | None) -> Decision:
        """Decide what changes now; a kind of job that did not fit is tried again once a job has ended."""
        del params
        self._begin(view)
        if self.policy.postpone.rule != "none":  # a place may become good enough
            self._retry_filter.open_all()
        elif self._preemption is not None:  # a job may be evicted
            depends = self._evictions_depend_on(self._preemption)
            self._retry_filter.open_where(
                lambda shape: self._no_evictions.get(shape) != depends and self._may_evict_for(shape)
            )
        if self._hold_room_anew():
            self._recount()
        disturbing = self._disturbing(view)
        for job in disturbing:
            self._stop(job)
        self._set_cores()
        self._grow()
        self._place_queue(view, cancel, with_evictions=True)
        ran = [job for job, before in self._placed_before.items() if before is not None]
        stopped = [job for job in ran if job not in self._running and job not in disturbing]
        self._requeue(stopped, view)
        if stopped:  # they may fit elsewhere
            self._retry_filter.open_all()
            self._place_queue(view, None, with_evictions=False)
        while self._set_cores():  # others may start on the cores that are left
            self._place_queue(view, None, with_evictions=False)
        self._requeue(disturbing, view, at_the_end=True)
        self._grow()
        decision = self._decision(view)
        self._num_stops.update(decision.stop)
        return decision

    # -- the queue

    def _place_queue(self, view: RoundView, cancel: threading.Event | None, *, with_evictions: bool) -> None:
        """Place the jobs of the queue, one after the other."""
        strict, held = self._scheduling.strict, self._held_for
        if held in self._shape_of and (placement := self._try(held)) is not None:  # others of its kind find no room
            self._start(placement)
        for job, shape in self._in_order(set() if strict else self._retry_filter.closed):
            if cancel is not None and cancel.is_set() and not self._placed_before:
                raise Stopped
            if self._monitor is not None and self._monitor.holds_back(
                self._running[new].placement for new in self._started
            ):
                break
            placement = self._place(job, shape)
            if placement is None and with_evictions and self._preemption is not None and self._may_evict_for(shape):
                depends = None if self._placed_before else self._evictions_depend_on(self._preemption)
                placement = self._place_with_evictions(job, self._preemption, view)
                self._no_evictions[shape] = depends  # jobs that this round has touched are no candidates in it
            if placement is not None:
                self._start(placement)
                if self._elastic_rule.assembles:
                    self._grow()
            else:
                self._retry_filter.closed.add(shape)
                if strict:
                    break

    def _place(self, job: str, shape: Hashable) -> Placement | None:
        if self._by_urgency is not None and len(self._engine_jobs[job].options) > 1:
            return self._place_by_urgency(job, self._by_urgency)
        full = not self._overcommits and self._least_milli[shape] > self._resources.gpu_milli
        if shape in self._retry_filter.closed or full or self._retry_filter.cannot_fit(shape):
            return self._place_smaller(job)
        placement = self._place_at_home(job, self._divided_nodes) if self._divided_nodes is not None else None
        placement = placement or self._try(job)
        if placement is None:
            self._retry_filter.failed(shape)
        return placement or self._place_smaller(job)

    def _place_at_home(self, job: str, nodes_divided: NodeDivision) -> Placement | None:
        """Place a job within its own part, on nodes that are of it."""
        record = self._engine_jobs[job]
        for nodes in filter(None, nodes_divided.homes(record, self._resources)):
            there = record.with_conditions(nodes_allowed=nodes)
            if any(self._resources.fits(there, option, option.workers) for option in record.options):
                # not as a job of these nodes alone: each set of nodes would be a class of jobs
                placement = self._try(job, nodes)
                if placement is not None:
                    return placement
        return None

    def _place_by_urgency(self, job: str, queue: UrgencyQueue) -> Placement | None:
        """Place a job in the option that costs the goals least, of those that find room."""
        record = self._engine_jobs[job]
        options = {option.id: option for option in record.options}
        for name in queue.options_in_order(self._jobs[job]):
            option = options[name]
            if self._resources.fits(record, option, option.workers):
                placement = self._try_as(job, record.model_copy(update={"options": (option,)}))
                if placement is not None:
                    return placement
        return None

    def _try(self, job: str, nodes: tuple[str, ...] | None = None) -> Placement | None:
        """Start a job where the engine places it, on some nodes or, with None, on any."""
        plan = self._engine.place([job], nodes=nodes, method=self._scheduling.method, explain=False)
        if not plan.placements or self._too_far_apart(plan.placements[0]):
            return None
        self._engine.commit(plan)
        return self.shares.requested(plan.placements[0])

    def _too_far_apart(self, placement: Placement) -> bool:
        """Return whether the GPUs are so far apart that the job waits instead; not on nodes that are idle otherwise."""
        most = self._scheduling.apart_max_thousandths
        if most is None or self._spread is None:
            return False
        if all(self._resources.is_idle(assignment.node) for assignment in placement.assignments):
            return False  # no end brings GPUs that are closer
        return self._spread.thousandths(placement.job, self._spread.indexed(placement)) > most

    def _place_smaller(self, job: str) -> Placement | None:
        """Place an elastic job with fewer workers than it requests, where the policy allows that."""
        if not self._elastic_rule.follows_load:
            return None
        record = self._engine_jobs[job]
        for option in record.options:
            asked = self._arrivals[job].asked(option)
            for workers in range(asked - 1, (option.workers_min or asked) - 1, -1):
                if self._resources.fits(record, option, workers):
                    placement = self._try_as(job, self._gang(job, {option.id: workers}))
                    if placement is not None:
                        return placement
        return None

    def _try_as(self, job: str, record: Job) -> Placement | None:
        """Place a waiting job in another form; on failure the engine has it as before."""
        self._report(remove_jobs=(job,), add_jobs=(record,))
        placement = self._try(job)
        if placement is None:
            self._report(remove_jobs=(job,), add_jobs=(self._gang(job),))
        return placement

    def _place_with_evictions(self, job: str, preemption: PreemptionPolicy, view: RoundView) -> Placement | None:
        """Place a job after evictions; they are undone if the referee refuses the placement all the same."""
        record = self._jobs[job]
        fewest = {option.id: option.workers_min for option in record.options if option.workers_min is not None}
        takes_workers = self._elastic_rule.follows_load  # a job that takes workers from others starts with its fewest
        gang = self._gang(job, fewest if takes_workers else {})
        options = [option for option in gang.options if preemption.may_claim(record, option)]
        candidates = self._candidates() if options else []
        for option in sorted(options, key=lambda option: -option.value):
            request = Request(record, option, view.now_ms, view.expected_ends, preemption.context)
            evictions = preemption.choose(request, candidates)
            if evictions is None:
                continue
            before = [self._running[eviction.job].placement for eviction in evictions]
            done = []
            for eviction in evictions:
                if eviction.kept is None:
                    self._stop(eviction.job)
                done.append(eviction.kept is None or self._resize(eviction.kept))
            placement = self._try_as(job, gang) if all(done) else None
            if placement is not None:
                return placement
            for placement_before, evicted in zip(before, done, strict=True):
                if evicted:
                    self._restore(placement_before)
        return None

    # -- evictions

    def _evictions_depend_on(self, preemption: PreemptionPolicy) -> tuple[int, int | None]:
        """Return what evictions for a kind of job depend on: as long as it stays, none that were not found are."""
        return self._occupancy.num_changes, preemption.constant_until(self._now_ms)

    def _may_evict_for(self, shape: Hashable) -> bool:
        """Return whether a running job might be evicted for a kind of job."""
        return self._preemption is not None and isinstance(shape, tuple) and self._preemption.may_evict_for(shape[1])

    def _requeue(self, jobs: Iterable[str], view: RoundView, *, at_the_end: bool = False) -> None:
        """Let stopped jobs wait, with the work that is left."""
        for job in jobs:
            record = view.if_stopped(job)
            self.arrive(record.model_copy(update={"arrival_ms": view.now_ms}) if at_the_end else record)
        if self._arriving:
            self.catch_up()
