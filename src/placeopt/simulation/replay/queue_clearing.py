"""When each waiting job of a round starts, and when its queue is clear: the round played forward."""

from __future__ import annotations

import threading
from typing import Literal

from pydantic import ValidationError

from placeopt.arguments import checked
from placeopt.deadline import Deadline
from placeopt.documents.faults import validation_fault
from placeopt.edits import Answer, unread_in
from placeopt.errors import BadInput
from placeopt.model import Instance, Job, Running
from placeopt.model.base import Id, Record
from placeopt.readable import duration, plural
from placeopt.scheduling import named_policy
from placeopt.simulation import Arrival, JobHistory, Physics, Scenario, never_ending, simulate
from placeopt.view import Chart, Column, Figure, Table, View
from placeopt.view.records import Verdict
from placeopt.whatif import Limits

NOT_REACHED = "not reached in time"
NAMED = 5
"""Jobs named in a sentence; the others are counted."""


Answers = Literal["known", "never", "unknown"]


class QueuedJob(Record):
    """A job of the round; times in ms from the moment of the round, None: never, or not known."""

    job: Id
    start_ms: int | None
    end_ms: int | None
    nodes: tuple[Id, ...] = ()
    """Where it runs first."""
    runs: bool = False
    """Whether it runs already."""
    why: str = ""
    """Why it never starts, or what is not known."""


class Clear(Answer):
    """
    When the waiting jobs of a round start: by simulation, under its policy, with the run times that jobs state.

    ``unknown``: some run time is not stated, so that nothing after it is known. ``never``: some job never starts.
    """

    answer: Answers
    jobs: tuple[QueuedJob, ...]
    """Running ones first."""
    unknown: tuple[Id, ...] = ()
    """Jobs whose end is not known, since no run time is stated."""
    seconds: float

    @property
    def waiting(self) -> tuple[QueuedJob, ...]:
        """The jobs that wait."""
        return tuple(one for one in self.jobs if not one.runs)

    @property
    def last_start_ms(self) -> int | None:
        """Time from now to the start of the last waiting job; None: some do not start, or it is not known."""
        starts = [one.start_ms for one in self.waiting]
        return max((at for at in starts if at is not None), default=0) if None not in starts else None

    @property
    def clear_ms(self) -> int | None:
        """Time from now to the end of the last job; None: some do not end, or it is not known."""
        ends = [one.end_ms for one in self.jobs]
        return max((at for at in ends if at is not None), default=0) if None not in ends else None

    def view(self) -> View:
        """Return when each job starts and ends, with a Gantt chart of the nodes."""
        last, clear = self.last_start_ms, self.clear_ms
        queued = [(one.job, one.start_ms, one.end_ms, ", ".join(one.nodes), one.why) for one in self.waiting]
        bars = [
            (one.job, node, one.start_ms, one.end_ms)
            for one in self.jobs
            if one.start_ms is not None and one.end_ms is not None
            for node in one.nodes
        ]
        return View(
            title=self._words(),
            verdict=VERDICTS[self.answer],
            proof=self.about("simulated by whole rounds under the policy of the round, not proven"),
            figures=(
                Figure(name="last start in", value=last, unit="ms", better="less"),
                Figure(name="clear in", value=clear, unit="ms", better="less"),
                Figure(name="waiting", value=len(self.waiting)),
                Figure(name="seconds", value=self.seconds, unit="s"),
            ),
            notes=("jobs run as long as they state; none comes or fails",),
            tables=(
                Table(name="Queue", columns=QUEUE, rows=tuple(queued)),
                Table(name="Runs", columns=RUNS, rows=tuple(bars), keys=2, shown=0),
            ),
            chart=Chart(kind="gantt", table="Runs", x="from", until="until", lane="node", label="job"),
        )

    def _words(self) -> str:
        queue, last, clear = f"the queue of {plural(len(self.waiting), 'job')}", self.last_start_ms, self.clear_ms
        if last is not None and clear is not None:
            return f"{queue} is clear in {duration(clear / 1000)}, its last job starts in {duration(last / 1000)}"
        if self.answer == "unknown":
            why = f"no run time of {', '.join(self.unknown[:NAMED])}" if self.unknown else NOT_REACHED
            more = f" and {len(self.unknown) - NAMED:,} more" if len(self.unknown) > NAMED else ""
            return f"unknown when {queue} is clear: {why}{more}"
        never = sum(one.start_ms is None for one in self.waiting)
        return f"{queue} is never clear: {plural(never, 'job')} never start{'s' * (never == 1)}"


VERDICTS: dict[str, Verdict] = {"known": "good", "never": "bad", "unknown": "open"}
QUEUE = (
    Column(name="job"),
    Column(name="starts in", unit="ms", better="less"),
    Column(name="ends in", unit="ms", better="less"),
    Column(name="nodes"),
    Column(name="why not"),
)
RUNS = (Column(name="job"), Column(name="node"), Column(name="from", unit="ms"), Column(name="until", unit="ms"))


@checked
def clear(instance: Instance, *, limits: Limits | None = None, cancel: threading.Event | None = None) -> Clear:
    """
    Play a round forward, without new jobs, until its queue is clear.

    Parameters
    ----------
    instance
        The round. What runs ends as expected (``expected_end_ms``, else its start and run time), and waiting jobs run
        as long as they state; nothing slows them.
    limits
        ``time_limit_s`` applies to the whole answer.
    cancel
        Set it from another thread to stop; the answer is unknown then.

    Returns
    -------
    Clear
        When each job starts, or why it never does.

    Raises
    ------
    BadInput
        If the round holds room without a job, or has jobs that a simulation does not play: those of groups.
    """
    limits = limits or Limits()
    deadline = Deadline(limits.time_limit_s, cancel)
    if instance.holds:
        raise BadInput(
            f"holds: {instance.holds[0].id!r} holds room without a job, which is not played; release it by a patch"
        )
    records = {job.id: job for job in instance.jobs}
    remaining = {held.job: _remaining(instance, held, records[held.job]) for held in instance.running}
    unknown = tuple(
        job.id
        for job in instance.jobs
        if remaining.get(job.id, 0) is None or (job.id not in remaining and job.options[0].run_time_ms is None)
    )
    jobs: tuple[QueuedJob, ...] = ()
    answer: Answers = "unknown"
    if unknown:
        jobs = tuple(
            QueuedJob(
                job=job.id,
                start_ms=None,
                end_ms=None,
                runs=job.id in remaining,
                why="no run time is stated" if job.id in unknown else "",
            )
            for job in instance.jobs
        )
    else:
        scheduling = named_policy("rounds").model_copy(update={"policy": instance.policy})
        seed, seconds = limits.seed, limits.time_limit_s
        history = simulate(_scenario(instance, remaining), scheduling, seed=seed, time_limit_s=seconds, cancel=deadline)
        why = {one.job: one.why for one in never_ending(history)}
        jobs = tuple(_queued(one, one.job in remaining, why.get(one.job, "")) for one in history.jobs)
        if history.finished:
            answer = "never" if history.stranded else "known"
    unread = unread_in(instance)
    return Clear(
        answer=answer,
        jobs=tuple(sorted(jobs, key=lambda one: not one.runs)),
        unknown=unknown,
        seconds=deadline.spent_s,
        of="reading" if unread.names else "cluster",
        unread=unread.names,
    )


def _remaining(instance: Instance, held: Running, job: Job) -> int | None:
    """Return the time in ms until a running job is expected to end; None where it is not known."""
    run_time_ms = job.option(held.option).run_time_ms
    if held.expected_end_ms is not None:
        return max(1, held.expected_end_ms - instance.now_ms)
    return None if run_time_ms is None else max(1, held.started_ms + run_time_ms - instance.now_ms)


def _scenario(instance: Instance, remaining: dict[str, int | None]) -> Scenario:
    """Return the round as a trace that begins now, the jobs in the order in which they came."""
    held = (one.model_copy(update={"started_ms": 0, "expected_end_ms": None}) for one in instance.running)
    try:
        return Scenario(
            name=instance.name,
            cluster=instance.cluster,
            physics=Physics(spread_slowdown_thousandths=0),
            arrivals=tuple(
                Arrival(job=_from_now(job, instance.now_ms), actual_run_time_ms=remaining.get(job.id))
                for job in sorted(instance.jobs, key=lambda job: job.arrival_ms)
            ),
            running=tuple(held),
        )
    except ValidationError as error:
        raise validation_fault(Scenario, error, "the round as a trace") from None


def _from_now(job: Job, now_ms: int) -> Job:
    """Return a job with its times counted from now on."""
    due = {
        name: max(0, at - now_ms)
        for name in ("deadline_ms", "expected_completion_ms")
        for at in [getattr(job, name)]
        if at is not None
    }
    return job.model_copy(update={"arrival_ms": 0, **due})


def _queued(one: JobHistory, runs: bool, why: str) -> QueuedJob:
    nodes = dict.fromkeys(part.node for span in one.spans[:1] for part in span.placement.assignments)
    reason = why or (NOT_REACHED if one.start_ms is None else "")
    return QueuedJob(job=one.job, start_ms=one.start_ms, end_ms=one.end_ms, nodes=tuple(nodes), runs=runs, why=reason)
