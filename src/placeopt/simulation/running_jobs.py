"""The running jobs of a simulation: where they are, how fast they progress, and when they end."""

from __future__ import annotations

from placeopt.model import Job, Placement
from placeopt.model.scenario import Scenario
from placeopt.model.scheduling import Scheduling
from placeopt.simulation.event_queue import EventQueue
from placeopt.simulation.gpu_memory import GpuMemory
from placeopt.simulation.job_state import NEVER_MS, JobState
from placeopt.simulation.performance_model import PerformanceModel
from placeopt.simulation.progress import ByRate, LongestObserved, ProgressRule
from placeopt.simulation.scheduling.decision import Decision
from placeopt.simulation.scheduling.elastic import ELASTIC_RULES
from placeopt.simulation.scheduling.placement_amounts import workers_of
from placeopt.simulation.shares import Shares

Jobs = dict[str, None]
"""Jobs in a fixed order."""


class RunningJobs:
    """
    The running jobs of a simulation and their placements.

    After every change the ends of the jobs with changed neighbours are computed anew and added to the event queue.
    """

    def __init__(
        self, scenario: Scenario, scheduling: Scheduling, states: dict[str, JobState], events: EventQueue
    ) -> None:
        self._physics, self._assembles = scenario.physics, ELASTIC_RULES[scheduling.elastic].assembles
        self._states, self._events = states, events
        self._shares = Shares(scenario, scheduling.policy.share_mode)
        self._performance = PerformanceModel(scenario, throttle=scheduling.bandwidth == "throttle", shares=self._shares)
        self._rule: ProgressRule = (
            LongestObserved(self._performance)
            if self._physics.rule == "sc17"
            else ByRate(self._performance, self._physics.interference)
        )
        states_memory = any(arrival.actual_gpu_memory_mib is not None for arrival in scenario.arrivals)
        self._memory = GpuMemory(scenario) if states_memory else None
        self.running: dict[str, JobState] = {}

    def apply(self, decision: Decision, now_ms: int) -> None:
        """Carry out a decision: first all jobs leave their old placements, then all take their new ones."""
        affected: Jobs = {}
        for job in decision.stop:
            state = self._states[job]
            affected |= self._vacate(state, now_ms)
            state.lose(self._physics)
            state.stops += 1
        for placement in decision.move:
            state = self._states[placement.job]
            affected |= self._vacate(state, now_ms)
            state.lose(self._physics)
            state.moves += 1
        for placement in decision.resize:
            state = self._states[placement.job]
            affected |= self._vacate(state, now_ms)
            state.resizes += 1
        resized = {placement.job for placement in decision.resize}
        for placement in (*decision.resize, *decision.move, *decision.start):
            affected |= self._occupy(placement, now_ms, resized=placement.job in resized)
        self._refresh(affected, now_ms)

    def granted(self, decision: Decision) -> Decision:
        """Return a decision, which is not carried out yet, with the shares that are granted after it."""
        if not self._shares.granting:
            return decision
        changed = (*decision.start, *decision.move, *decision.resize)
        leaving = {*decision.stop, *(one.job for one in changed)}
        stay = [state.standing()[1] for job, state in self.running.items() if job not in leaving]
        share = {one.job: one for one in self._shares.granted(changed, stay)}
        return decision.with_placements(lambda one: share[one.job])

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
        Let a job fail that gets less GPU memory than it needs; it asks for more from then on.

        Returns
        -------
        tuple or None
            Where it was, and how much memory was left to it, in MiB; None if it gets what it needs by now, and stays.
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
        for job, state in self.running.items():
            run, placement = state.standing()
            option = next(one for one in state.arrival.job.options if one.id == placement.option)
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
        run, _ = state.standing()
        self._performance.end(run.held)
        placement = state.leave(now_ms)
        del self.running[state.job.id]
        if self._memory is not None:
            self._memory.end(placement)
        return self._performance.neighbours(run.held)

    def _occupy(self, placement: Placement, now_ms: int, *, resized: bool) -> Jobs:
        """Put a job into a placement; return it and the jobs whose pace that may change."""
        state, physics = self._states[placement.job], self._physics
        pause = physics.resize_ms if resized else physics.restart_ms if state.restarts else 0
        held = self._performance.held(placement)
        option = next(one for one in state.job.options if one.id == placement.option)
        incomplete = self._assembles and workers_of(placement) < state.arrival.asked(option)
        state.begin(held, placement, now_ms, pause, idle=incomplete)
        self.running[placement.job] = state
        self._performance.start(held)
        if self._memory is not None:
            self._memory.start(state.arrival, placement)
            if self._memory.left_to(placement) is not None:
                state.fails_at = self._events.on_step(now_ms + physics.memory_failure_ms)
                self._events.failure(placement.job, state.fails_at)
        return {**self._performance.neighbours(held), placement.job: None}  # a job without GPUs has no neighbours

    def _refresh(self, jobs: Jobs, now_ms: int) -> None:
        """Compute anew when jobs end whose neighbours changed."""
        for job in jobs:
            state = self.running.get(job)
            if state is None or state.run is None:
                continue  # it left in the same round
            run = state.run
            self._rule.refresh(run, now_ms)
            noticed = None if run.end_ms >= NEVER_MS else self._events.noticed(run.start_ms, run.end_ms)
            if state.ends_at != noticed:
                state.ends_at = noticed
                if noticed is not None:
                    self._events.end(job, noticed)
