"""Who is where, how everybody gets on there, and when that will have come to an end."""

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
from placeopt.simulation.scheduling.free_resources import workers_of
from placeopt.simulation.shares import Shares

Jobs = dict[str, None]
"""Jobs in a fixed order."""


class RunningJobs:
    """
    The running jobs of a simulation in their places.

    Every change of places asks those whose neighbours are others now when they end, and puts that into the agenda.
    """

    def __init__(
        self, scenario: Scenario, scheduling: Scheduling, stories: dict[str, JobState], agenda: EventQueue
    ) -> None:
        self._physics, self._pods = scenario.physics, scheduling.elastic == "pods"
        self._stories, self._agenda = stories, agenda
        self._shares = Shares(scenario, scheduling.policy.share_mode)
        self._ground = PerformanceModel(scenario, throttle=scheduling.bandwidth == "throttle", shares=self._shares)
        self._rule: ProgressRule = (
            LongestObserved(self._ground)
            if self._physics.rule == "sc17"
            else ByRate(self._ground, self._physics.interference)
        )
        states_memory = any(arrival.actual_gpu_memory_mib is not None for arrival in scenario.arrivals)
        self._memory = GpuMemory(scenario) if states_memory else None
        self.running: dict[str, JobState] = {}

    def apply(self, decision: Decision, now_ms: int) -> None:
        """Do what was decided: first all that leave their places, then all that come to one."""
        beside: Jobs = {}
        for job in decision.stop:
            story = self._stories[job]
            beside |= self._vacate(story, now_ms)
            story.lose(self._physics)
            story.stops += 1
        for placement in decision.move:
            story = self._stories[placement.job]
            beside |= self._vacate(story, now_ms)
            story.lose(self._physics)
            story.moves += 1
        for placement in decision.resize:
            story = self._stories[placement.job]
            beside |= self._vacate(story, now_ms)
            story.resizes += 1
        resized = {placement.job for placement in decision.resize}
        for placement in (*decision.resize, *decision.move, *decision.start):
            beside |= self._occupy(placement, now_ms, resized=placement.job in resized)
        self._refresh(beside, now_ms)

    def granted(self, decision: Decision) -> Decision:
        """Return a decision, not applied yet, with the shares granted after it."""
        if not self._shares.granting:
            return decision
        anew = (*decision.start, *decision.move, *decision.resize)
        gone = {*decision.stop, *(one.job for one in anew)}
        stay = [story.standing()[1] for job, story in self.running.items() if job not in gone]
        share = {one.job: one for one in self._shares.granted(anew, stay)}
        return decision.with_placements(lambda one: share[one.job])

    def requested(self, decision: Decision) -> Decision:
        """Return a decision with the request as share of each GPU."""
        return decision.with_placements(self._shares.requested)

    def end(self, story: JobState, now_ms: int) -> Placement:
        """Take a job away for good; return where it was."""
        _, placement = story.standing()
        self._refresh(self._vacate(story, now_ms), now_ms)
        return placement

    def fail(self, story: JobState, now_ms: int) -> tuple[Placement, int] | None:
        """
        Let a job fail that finds less GPU memory than it needs; it asks for more then.

        Returns
        -------
        tuple or None
            Where it was, and how much was left to it, in MiB; None if it has what it needs by now, and stays.
        """
        _, placement = story.standing()
        left = None if self._memory is None else self._memory.left_to(placement)
        if left is None or self._memory is None:
            story.fails_at = None
            return None
        before = story.done_ns, story.of_ms
        self._refresh(self._vacate(story, now_ms), now_ms)
        story.done_ns, story.of_ms = before
        story.failures += 1
        story.job = self._memory.asks_more(story.job, left)
        return placement, left

    def expected_ends(self) -> dict[str, int]:
        """Return when running jobs would end if their predictions were true: what look-ahead goes by."""
        out: dict[str, int] = {}
        for job, story in self.running.items():
            run, placement = story.standing()
            option = next(one for one in story.arrival.job.options if one.id == placement.option)
            if option.run_time_ms is not None and run.end_ms < NEVER_MS:
                actual = story.arrival.actual_ms(option.id)
                out[job] = run.start_ms + (run.end_ms - run.start_ms) * option.run_time_ms // actual
        return out

    def slowdown(self, job: str) -> int:
        """Return how much longer than alone and well placed a running job takes now, in thousandths."""
        return self._stories[job].standing()[0].slowdown

    def again(self, job: str, now_ms: int) -> Job:
        """Return a running job as it would wait if it were stopped now."""
        return self._stories[job].again(now_ms, self._physics)

    def _vacate(self, story: JobState, now_ms: int) -> Jobs:
        """Take a job from its place; return who was beside it."""
        run, _ = story.standing()
        self._ground.end(run.held)
        placement = story.leave(now_ms)
        del self.running[story.job.id]
        if self._memory is not None:
            self._memory.end(placement)
        return self._ground.beside(run.held)

    def _occupy(self, placement: Placement, now_ms: int, *, resized: bool) -> Jobs:
        """Put a job somewhere; return it and who is beside it."""
        story, physics = self._stories[placement.job], self._physics
        pause = physics.resize_ms if resized else physics.restart_ms if story.restarts else 0
        held = self._ground.held(placement)
        option = next(one for one in story.job.options if one.id == placement.option)
        short = self._pods and workers_of(placement) < story.arrival.asked(option)
        story.begin(held, placement, now_ms, pause, stands=short)
        self.running[placement.job] = story
        self._ground.start(held)
        if self._memory is not None:
            self._memory.start(story.arrival, placement)
            if self._memory.left_to(placement) is not None:
                story.fails_at = self._agenda.on_step(now_ms + physics.memory_failure_ms)
                self._agenda.failure(placement.job, story.fails_at)
        return {**self._ground.beside(held), placement.job: None}  # one without GPUs stands beside nobody

    def _refresh(self, jobs: Jobs, now_ms: int) -> None:
        """Ask for jobs whose neighbours changed when they end now."""
        for job in jobs:
            story = self.running.get(job)
            if story is None or story.run is None:
                continue  # it has left in the same round
            run = story.run
            self._rule.refresh(run, now_ms)
            noticed = None if run.end_ms >= NEVER_MS else self._agenda.noticed(run.start_ms, run.end_ms)
            if story.ends_at != noticed:
                story.ends_at = noticed
                if noticed is not None:
                    self._agenda.end(job, noticed)
