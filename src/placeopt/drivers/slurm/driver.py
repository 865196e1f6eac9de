"""The loop: read, take back, hold, decide, start; once every interval."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from placeopt.actions import Action, ActionPart, plan_actions
from placeopt.drivers.answers import Unreachable
from placeopt.drivers.backoff import pause_s
from placeopt.drivers.decider import Decider
from placeopt.drivers.options import DriverOptions
from placeopt.drivers.round_report import Applied, Outcome, RoundReport
from placeopt.drivers.slurm.ageing import Worth
from placeopt.drivers.slurm.apply import JobChanges, range_to_pin, taken_back
from placeopt.drivers.slurm.commands import Slurm
from placeopt.drivers.slurm.job_view import JobView, Ownership, Standing
from placeopt.drivers.slurm.note import STOPPED, Note
from placeopt.drivers.slurm.outcomes import OutcomeWatch
from placeopt.drivers.slurm.reading import make_round, view_jobs
from placeopt.drivers.slurm.score import Gpus, gpus_advised, gpus_held, running_costs
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance, Placement, Plan

TRIES_MAX = 5
"""Failed starts of a job after which it is left held."""
LONGEST_PAUSE_S = 1800.0
"""Of a node that refuses jobs, and of a job that does not start."""
NODE_PAUSES = 4
"""First pause of a node that refuses, in intervals: longer than that of the job, which is to try another one."""
RAN_LONG = 10
"""Intervals after which a job that was requeued has run for long: that was no failed start."""
SOLVE_PART = 1 / 3
"""Part of the interval that a round may take to solve: what it decides should start soon."""

Views = Mapping[str, JobView]
"""By job."""


@dataclass(frozen=True, kw_only=True)
class SlurmOptions(DriverOptions):
    """
    How to drive a Slurm cluster.

    ``own``: Whose jobs it may touch. ``patience_s``: How long a released job may take to run, None: two intervals, at
    least 20 s. ``worth``: What waiting jobs are worth by the rule, see `ageing.aged`.
    """

    own: Ownership = field(default_factory=Ownership)
    patience_s: float | None = None
    worth: Worth = "jobs"


class SlurmDriver:
    """
    Places jobs of a Slurm cluster, round after round.

    ``engine`` decides the rounds; its caller closes it. ``stop`` ends the driver between two actions. ``on_command`` is
    called with every command that changes a job before it is sent. ``clock``: Seconds since 1970.
    """

    def __init__(
        self,
        slurm: Slurm,
        engine: Engine,
        options: SlurmOptions,
        *,
        stop: threading.Event | None = None,
        on_command: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._slurm, self._options, self._clock = slurm, options, clock
        self.stop = threading.Event() if stop is None else stop
        patience = max(20.0, 2 * options.every_s) if options.patience_s is None else options.patience_s
        self._watch = OutcomeWatch(patience, NODE_PAUSES * max(1.0, options.every_s), LONGEST_PAUSE_S)
        self._changes = JobChanges(slurm, on_command, dry_run=options.dry_run)
        self._decider = Decider(engine, options, self.stop)
        self._advised: dict[str, Gpus] = {}
        self._name, self._number = f"{int(clock()):x}", 0

    def run_round(self) -> RoundReport:
        """
        Read the cluster, and do what one round decides.

        Raises `Unreachable` if the lists cannot be read; a controller that goes later ends the round's actions.
        `BadInput` if the lists are none that the importer reads.
        """
        began, now_s = time.monotonic(), self._clock()
        self._number += 1
        report = RoundReport(now_s, f"{self._name}-{self._number}")
        reading = self._slurm.read()
        views = view_jobs(reading, self._options.own, now_s)
        report.outcomes = self._watch.observe(views, now_s)
        also = self._unheld(views) if self._options.dry_run else ()
        closed = self._watch.nodes.paused(now_s)
        instance = make_round(
            reading,
            views,
            now_s,
            closed=closed,
            also=also,
            previous=self._decider.live.before,
            rule=self._options.rule,
            worth=self._options.worth,
        )
        standings = Counter(view.standing for view in views.values())
        report.standings = {standing.value: count for standing, count in standings.items()}
        report.closed = tuple(sorted(closed))
        self._decider.describe(instance, report)
        report.waiting += standings[Standing.DELAYED] + standings[Standing.GIVEN_UP]
        self._score(report, instance)
        try:
            self._take_back(report, views)
            plan = self._decider.decide(instance, report, began + SOLVE_PART * self._options.every_s)
            if plan is not None:
                self._carry_out(report, views, plan)
            self._hold(report, views)
        except Unreachable as error:
            report.silent = str(error)
        report.seconds = time.monotonic() - began
        return report

    def _score(self, report: RoundReport, instance: Instance) -> None:
        """Compare the GPUs that Slurm gave with the plan's, and score what runs, where starts have come out."""
        came = [outcome for outcome in report.outcomes if outcome.kind in ("as-planned", "elsewhere")]
        advised = {outcome.job: self._advised.pop(outcome.job, None) for outcome in report.outcomes}
        held = {running.job: running for running in instance.running}
        for outcome in came:
            if (planned := advised[outcome.job]) is not None and outcome.job in held:
                report.gpus_known += 1
                report.gpus_as_advised += gpus_held(held[outcome.job]) == planned
        if came:
            report.costs_obtained = running_costs(instance, self._decider.live.policy_in(instance))

    @staticmethod
    def _unheld(views: dict[str, JobView]) -> tuple[str, ...]:
        """Return the jobs that would be held, were this no dry run: they count as waiting."""
        return tuple(job for job, view in views.items() if view.standing is Standing.TO_HOLD and view.note is None)

    def _may_act(self, report: RoundReport) -> bool:
        if len(report.actions) >= self._options.max_actions:
            report.deferred += 1
            return False
        return not self.stop.is_set()

    def _take_back(self, report: RoundReport, views: Views) -> None:
        """Hold again what did not start, what was requeued or stopped, and what was given its nodes only."""
        outcomes = {outcome.job: outcome for outcome in report.outcomes}
        for job, view in views.items():
            note, outcome = view.note, outcomes.get(job)
            if note is None or note.kind not in ("start", "stop"):
                continue
            released = view.standing is Standing.STARTING and outcome is not None and outcome.kind == "not-started"
            if not (released or view.standing in (Standing.HALF_DONE, Standing.TO_HOLD)) or not self._may_act(report):
                continue
            after = self._after_failure(note, view, outcome, report.at_s)
            done = self._changes.take_back(view, after, hold=view.standing is not Standing.HALF_DONE)
            report.add("take-back" if after.kind == "wait" else "give-up", job, done, why=after.why)

    def _after_failure(self, note: Note, view: JobView, outcome: Outcome | None, now_s: float) -> Note:
        """Return the note of a job whose start came to nothing; a job that had run for long begins to count again."""
        if note.kind == "stop":  # no start failed
            return replace(taken_back(note, STOPPED, 0, 0), restarts=view.restarts)
        if view.standing is Standing.HALF_DONE and view.restarts == note.restarts:
            return taken_back(note, "not_released", note.tries, 0)  # no start was tried
        why = view.reason if outcome is None or not outcome.why else outcome.why
        ran = view.restarts > note.restarts
        pause = max(1.0, self._options.every_s)
        ran_long = ran and now_s - note.at_s > RAN_LONG * pause
        if ran and not ran_long:
            for node in set(note.nodes):
                self._watch.nodes.fail(node, now_s)
        tries = 1 if ran_long else note.tries + 1
        if tries >= TRIES_MAX:
            return replace(taken_back(note, why, tries, 0), kind="given-up", at_s=int(now_s))
        retry_s = int(now_s + pause_s(tries, pause, LONGEST_PAUSE_S))
        return replace(taken_back(note, "requeued" if ran else why, tries, retry_s), restarts=view.restarts)

    def _hold(self, report: RoundReport, views: Views) -> None:
        """Place holds on the jobs that wait in the driver's partition, so that Slurm does not start them."""
        jobs: dict[str, list[tuple[JobView, Note]]] = {}
        for view in views.values():
            if view.standing is Standing.TO_HOLD and (view.note is None or view.note.kind != "start"):
                at_s, restarts = int(report.at_s), view.restarts
                note = Note("hold", view.job, round=report.id, at_s=at_s, restarts=restarts, own_hold=True)
                jobs.setdefault(view.whole, []).append((view, note))
        for job, held in jobs.items():
            if self._may_act(report):
                report.add("hold", job, self._changes.hold(held))

    def _carry_out(self, report: RoundReport, views: Views, plan: Plan) -> None:
        """Stop what a plan preempts, and start what it places; what takes the room of the former waits for it."""
        snapshot = self._decider.live.snapshot
        every = [node.id for node in snapshot.cluster.nodes]
        placed = {placement.job: placement for placement in plan.placements}
        for action in plan_actions(snapshot, plan):
            if action.do == "preempt":
                self._stop(report, action.job, views)
            elif action.do == "start" and action.after:
                report.deferred += 1
            elif starts := self._starts(placed[action.job], action, views) if action.do == "start" else []:
                if self._may_act(report):
                    self._start(report, action, starts, every)
            else:
                report.not_done[action.do] = report.not_done.get(action.do, 0) + 1

    def _stop(self, report: RoundReport, job: str, views: Views) -> None:
        """Stop a job, unless an earlier round has done it and Slurm is at it."""
        view = views[job]
        note = view.note
        if note is None or (note.kind == "stop" and "RUNNING" not in view.states):
            return
        if self._may_act(report):
            now = replace(note, kind="stop", round=report.id, at_s=int(self._clock()), nodes=(), own_hold=True)
            done = self._changes.stop(view, replace(now, restarts=view.restarts, tries=0, why=STOPPED))
            report.add("preempt", job, done, nodes=tuple(sorted(view.nodes)))

    def _start(
        self,
        report: RoundReport,
        action: Action,
        starts: Sequence[tuple[JobView, str, list[ActionPart]]],
        every: Sequence[str],
    ) -> None:
        """Start a job, or all components of one, on the nodes of the plan."""
        begun = [(replace(view, job=job), self._note(view, job, parts, report)) for view, job, parts in starts]
        done = self._changes.start(begun, every)
        for (_, job, parts), (view, note) in zip(starts, begun, strict=True):
            if done.result == "refused":
                self._count_refusal(view, note, done)
            elif done.result == "done" and not self._options.dry_run:
                self._watch.expect(note)
                self._advised[job] = gpus_advised(parts)
        nodes = tuple(node for _, note in begun for node in note.nodes)
        report.add("start", action.job, done, nodes=nodes, parts=action.parts)

    def _starts(
        self, placement: Placement, action: Action, views: Views
    ) -> list[tuple[JobView, str, list[ActionPart]]]:
        """
        Return the entry that starts, its job and workers by rank; of a heterogeneous job those of its components.

        Of a task that waits with others of its array it is the entry of these. None where one of them may not start.
        """
        leaf_of = {worker.rank: there.group for there in placement.assignments for worker in there.workers}
        by_job: dict[str, list[ActionPart]] = {}
        for part in sorted(action.parts, key=lambda part: part.rank):
            component = views.get(leaf_of[part.rank] or "")
            job = component.job if component is not None and component.whole == action.job else action.job
            by_job.setdefault(job, []).append(part)
        found = [(self._view_of(job, views), job, parts) for job, parts in by_job.items()]
        starts = [(view, job, parts) for view, job, parts in found if view is not None]
        return starts if len(starts) == len(found) else []

    def _note(self, view: JobView, job: str, parts: Sequence[ActionPart], report: RoundReport) -> Note:
        """Return the note of a start."""
        former, nodes = view.note, tuple(part.node for part in parts)
        own = view.fields.get("excluded_nodes" if view.is_component else "required_nodes")
        return Note(
            kind="start",
            job=job,
            round=report.id,
            plan=report.plan,
            at_s=int(self._clock()),
            nodes=nodes,
            restarts=view.restarts,
            tries=former.tries if former is not None else 0,
            was="" if view.is_component else range_to_pin(view, len(set(nodes))),
            required=str(own or "") if view.job == job else "",
            own_hold=former is not None and former.own_hold,
            why=STOPPED if view.stopped_by_driver else "",
        )

    def _count_refusal(self, view: JobView, note: Note, done: Applied) -> None:
        """Note that Slurm refused a start, so that the job waits before the next one; its hold is still there."""
        now_s = self._clock()
        for node in set(note.nodes):
            self._watch.nodes.fail(node, now_s)
        tries = note.tries + 1
        retry_s = int(now_s + pause_s(tries, max(1.0, self._options.every_s), LONGEST_PAUSE_S))
        after = taken_back(note, done.why, tries, retry_s)
        if tries >= TRIES_MAX:
            after = replace(after, kind="given-up")
        self._changes.take_back(replace(view, note=note), after, hold=False)

    @staticmethod
    def _view_of(job: str, views: Views) -> JobView | None:
        """Return the entry of a job; of a task that waits with others of its array, the entry of these."""
        view = views.get(job)
        if view is None and "_" in job:
            view = views.get(job.partition("_")[0])
        if view is None or view.standing not in (Standing.WAITS, Standing.TO_HOLD):
            return None
        return view
