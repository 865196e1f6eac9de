"""The running jobs of a simulation: where they are, how fast they progress, and the GPU memory they actually use."""

from __future__ import annotations

from collections.abc import Mapping

from placeopt.model import Job, Placement
from placeopt.scheduling.decision import Decision
from placeopt.scheduling.host_rules import Throttle
from placeopt.scheduling.occupancy import Occupancy
from placeopt.scheduling.placement_amounts import Shares, gpus_of, workers_of
from placeopt.scheduling.policy import Scheduling
from placeopt.scheduling.rules import ELASTIC_RULES
from placeopt.simulation.event_queue import EventQueue
from placeopt.simulation.held_resources import HeldResources
from placeopt.simulation.job_state import NEVER_MS, ByRate, JobState, LongestObserved, ProgressRule
from placeopt.simulation.performance_model import PerformanceModel
from placeopt.simulation.records.scenario import Scenario, largest_gpu_mib


class GpuMemory:
    """
    The memory of every GPU that jobs actually use.

    The last job that does not fit fails; earlier jobs get what they need.
    """

    def __init__(self, scenario: Scenario, occupancy: Occupancy[HeldResources]) -> None:
        self._cluster, self._physics, self._occupancy = scenario.hardware, scenario.physics, occupancy
        self._size = {
            (node.id, str(index)): gpu.memory_mib
            for node in scenario.hardware.nodes
            for index, gpu in enumerate(scenario.hardware.machine_of(node).gpus)
        }

    def left_to(self, placement: Placement) -> int | None:
        """Return how much is left to a job on the fullest of its GPUs, in MiB, if it needs more; None otherwise."""
        short: int | None = None
        for gpu in gpus_of(placement):
            left = self._size[gpu]
            for job, held in self._occupancy.on_gpu[gpu].items():
                if job == placement.job:
                    if held.gpu_memory_mib > left:
                        short = max(0, left) if short is None else min(short, max(0, left))
                    break
                left -= held.gpu_memory_mib
        return short

    def with_larger_request(self, job: Job, left_mib: int) -> Job:
        """
        Return a job that failed with so much memory left to it, as it is submitted again.

        It requests more than that, at least ``physics.memory_retry_percent`` of its earlier request, and at most the
        memory of the largest GPU that it may use.
        """
        options = []
        for option in job.options:
            before = option.demand.gpu_memory_mib
            more = max(left_mib + 1, -(-before * self._physics.memory_retry_percent // 100))
            demand = option.demand.model_copy(
                update={"gpu_memory_mib": max(before, min(more, largest_gpu_mib(self._cluster, option)))}
            )
            options.append(option.model_copy(update={"demand": demand}))
        return job.model_copy(update={"options": tuple(options)})


Jobs = dict[str, None]
"""Jobs in a fixed order."""


class RunningJobs:
    """
    The running jobs of a simulation and their placements.

    After every change the ends of the jobs with changed neighbours are recomputed and added to the event queue.
    ``search_ms``: time that a job loses after its first start, while numbers of cores are tried for it.
    """

    def __init__(
        self,
        scenario: Scenario,
        scheduling: Scheduling,
        states: dict[str, JobState],
        events: EventQueue,
        search_ms: Mapping[str, int],
    ) -> None:
        self._search_ms = search_ms
        self._physics, self._assembles = scenario.physics, ELASTIC_RULES[scheduling.elastic].assembles
        self._states, self._events = states, events
        self._shares = Shares(scheduling.policy.share_mode, (arrival.job for arrival in scenario.arrivals))
        rule = scheduling.bandwidth
        throttle = rule if isinstance(rule, Throttle) and rule.by == "bandwidth" else None
        self._occupancy = Occupancy[HeldResources]()
        self._performance = PerformanceModel(
            scenario, self._occupancy, throttle=throttle, shares=self._shares, in_parts=self._assembles
        )
        self._rule: ProgressRule = (
            LongestObserved(self._performance)
            if self._physics.rule == "sc17"
            else ByRate(self._performance, self._physics.interference)
        )
        states_memory = any(
            arrival.actual_gpu_memory_mib is not None
            or any(estimate.gpu_memory_mib is not None for estimate in arrival.estimates)
            for arrival in scenario.arrivals
        )
        self._memory = GpuMemory(scenario, self._occupancy) if states_memory else None
        self._num_gpus = scenario.hardware.amounts[0] // 1000

    @property
    def num_running(self) -> int:
        """Jobs that run."""
        return len(self._occupancy.running)

    def num_idle_gpus(self) -> int:
        """Return the number of GPUs that no job holds."""
        return self._num_gpus - sum(map(bool, self._occupancy.on_gpu.values()))

    def apply(self, decision: Decision, now_ms: int) -> None:
        """Carry out a decision: first all jobs leave their old placements, then all take their new ones."""
        affected: Jobs = {}
        stopped = dict.fromkeys(decision.stop)
        moved, resized = (
            dict.fromkeys(placement.job for placement in placements) for placements in (decision.move, decision.resize)
        )
        for job in (*stopped, *moved, *resized):
            state = self._states[job]
            affected |= self._vacate(state, now_ms)
            state.stops += job in stopped
            state.moves += job in moved
            state.resizes += job in resized
            if job not in resized:
                state.lose(self._physics)
        for placement in (*decision.resize, *decision.move, *decision.start):
            affected |= self._occupy(placement, now_ms, resized=placement.job in resized)
        self._refresh(affected, now_ms)

    def granted(self, decision: Decision) -> Decision:
        """Return a decision, which is not carried out yet, with the shares that are granted after it."""
        if not self._shares.granting:
            return decision
        changed = (*decision.start, *decision.move, *decision.resize)
        leaving = {*decision.stop, *(placement.job for placement in changed)}
        stay = [held.placement for job, held in self._occupancy.running.items() if job not in leaving]
        share = {placement.job: placement for placement in self._shares.granted(changed, stay)}
        return decision.with_placements(lambda placement: share[placement.job])

    def requested(self, decision: Decision) -> Decision:
        """Return a decision with the request as share of each GPU."""
        return decision.with_placements(self._shares.requested)

    def end(self, state: JobState, now_ms: int) -> Placement:
        """Remove a job that has ended; return where it was."""
        _, placement = state.standing()
        self._refresh(self._vacate(state, now_ms), now_ms)
        return placement

    def fail(self, state: JobState, now_ms: int) -> tuple[Placement, int] | None:
        """
        Let a job fail that gets less GPU memory than it needs; it requests more from then on.

        Returns where it was, and how much memory was left to it, in MiB; None if it gets what it needs by now, and
        stays.
        """
        _, placement = state.standing()
        left = None if self._memory is None else self._memory.left_to(placement)
        if left is None or self._memory is None:
            state.fails_at = None
            return None
        before = state.done_ns, state.of_ms
        self._refresh(self._vacate(state, now_ms), now_ms)
        state.done_ns, state.of_ms = before
        state.failures += 1
        state.job = self._memory.with_larger_request(state.job, left)
        return placement, left

    def expected_ends(self) -> dict[str, int]:
        """Return when running jobs would end if their predictions were true, as look-ahead assumes."""
        out: dict[str, int] = {}
        for job in self._occupancy.running:
            state = self._states[job]
            run, placement = state.standing()
            option = state.job.option(placement.option)
            if option.run_time_ms is not None and run.end_ms < NEVER_MS:
                actual = state.arrival.actual_ms(option.id)
                out[job] = run.start_ms + (run.end_ms - run.start_ms) * option.run_time_ms // actual
        return out

    def slowdown(self, job: str) -> int:
        """Return how much longer than alone and well placed a running job takes now, in thousandths."""
        return self._states[job].standing()[0].slowdown

    def if_stopped(self, job: str, now_ms: int) -> Job:
        """Return a running job as it would wait if it were stopped now."""
        return self._states[job].if_stopped(now_ms, self._physics)

    def _vacate(self, state: JobState, now_ms: int) -> Jobs:
        """Remove a job from its placement; return the jobs whose pace that may change."""
        state.leave(now_ms)
        return self._performance.neighbours(self._occupancy.end(state.job.id, now_ms))

    def _occupy(self, placement: Placement, now_ms: int, *, resized: bool) -> Jobs:
        """Put a job into a placement; return it and the jobs whose pace that may change."""
        state, physics = self._states[placement.job], self._physics
        pause = physics.restart_ms if state.restarts else 0
        if resized and state.placement is not None and not self._incomplete(state.placement):
            pause = physics.resize_ms if workers_of(placement) != workers_of(state.placement) else 0
        if state.start_ms is None:
            pause += self._search_ms.get(placement.job, 0)
        held = self._performance.held(placement)
        state.begin(held, placement, now_ms, pause, idle=self._incomplete(placement))
        self._occupancy.start(held)
        if self._memory is not None and self._memory.left_to(placement) is not None:
            state.fails_at = self._events.on_step(now_ms + physics.memory_failure_ms)
            self._events.add("failure", placement.job, state.fails_at)
        return {**self._performance.neighbours(held), placement.job: None}  # a job without GPUs has no neighbours

    def _incomplete(self, placement: Placement) -> bool:
        """Return whether the placed workers of a job wait for others that are not placed yet."""
        arrival = self._states[placement.job].arrival
        return self._assembles and workers_of(placement) < arrival.asked(arrival.job.option(placement.option))

    def _refresh(self, jobs: Jobs, now_ms: int) -> None:
        """Recompute when jobs with changed neighbours end."""
        for job in jobs:
            state = self._states[job]
            run = state.run
            if run is None:
                continue  # it left in the same round
            self._rule.refresh(run, now_ms)
            noticed = None if run.end_ms >= NEVER_MS else self._events.noticed(run.start_ms, run.end_ms)
            if state.ends_at != noticed:
                state.ends_at = noticed
                if noticed is not None:
                    self._events.end(job, noticed)
