"""What one round of a driver did: a line for people at 100 columns with notes under it, or one line of JSON."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Literal

from placeopt.actions import ActionKind, ActionPart
from placeopt.importers.import_notes import LEFT_OUT, NOT_ELIGIBLE
from placeopt.model import Instance, Plan
from placeopt.readable import number, percent
from placeopt.solving.bounds import relative_gap

HEADER = "time      waiting  running   placed  started  evicted  refused     gap  seconds  note"
MOST_NOTES = 10
"""Lines under a round; the rest is counted. JSON has all."""

Did = ActionKind | Literal["hold", "take-back", "give-up"]
Result = Literal["done", "changed", "refused", "undone"]
OutcomeKind = Literal["as-planned", "elsewhere", "refused", "failed", "gone", "requeued", "not-started", "not-released"]


@dataclass(frozen=True)
class Applied:
    """
    What became of a change.

    ``changed``: What it was decided for is no longer as it was read, so nothing was done. ``refused``: The host did not
    do it, or not all of it. ``undone``: What was done of it was taken back. ``why``: The host's words.
    """

    result: Result
    why: str = ""


DONE, CHANGED = Applied("done"), Applied("changed")


@dataclass(frozen=True)
class DoneAction:
    """
    One change of a job that was tried.

    ``do``: An action of the plan, or a change of the driver's own: it takes a hold, takes a start back, or gives a job
    up. ``nodes``: Of a start, the node of each worker; of what stops workers, where they ran. ``gpus_advised``: Of a
    start, the GPUs of the plan by worker, where the host chooses them itself. ``why``: The host's words, or the reason.
    """

    do: Did
    job: str
    result: Result = "done"
    nodes: tuple[str, ...] = ()
    gpus_advised: tuple[tuple[int, ...], ...] = ()
    why: str = ""


@dataclass(frozen=True)
class Outcome:
    """
    What became of a start, or of one worker of it.

    ``planned``: Where it was to run; ``got``: where it runs or ran; ``why``: The host's reason. ``as-planned``,
    ``elsewhere``: It runs, or has run. ``refused``: By its node. ``failed``: It failed at once. ``gone``: It is no
    longer there. ``requeued``: It was started, and waits again. ``not-started``: It got no node in time.
    ``not-released``: It was given its nodes, and not released.
    """

    job: str
    kind: OutcomeKind
    planned: tuple[str, ...]
    got: tuple[str, ...] = ()
    why: str = ""

    def __str__(self) -> str:
        """Return it as a line."""
        got = f", has {','.join(self.got)}" if self.got else ""
        why = f": {self.why}" if self.why else ""
        return f"job {self.job} {self.kind}, planned on {','.join(dict.fromkeys(self.planned))}{got}{why}"


@dataclass
class RoundReport:
    """
    One round of a driver.

    ``at_s``: When it began, seconds since 1970. ``id``: Of the round, empty while none is decided. ``plan``: Digest of
    its plan; ``status``, ``gap``: the plan's, and by what share its value may be below the best, None without a bound.
    ``waiting``, ``running``: Jobs of the driver that wait, and jobs that hold nodes. ``placed``: Jobs that the plan
    starts. ``deferred``: Actions whose turn comes later, for room that is not free yet or for the most actions of a
    round. ``gpus_used``, ``gpus``: Held, and listed on nodes that take work or hold jobs. ``standings``: Number of jobs
    or pods by what the driver makes of them. ``left_out``: Reason -> number of waiting jobs that the reader leaves out.
    ``not_done``: Kind -> number of the plan's actions that the driver does not do. ``closed``: Nodes left alone because
    they refused. ``gpus_as_advised``: Of ``gpus_known`` jobs that began to run, those that have the very GPUs of the
    plan. ``costs_planned``: Of the plan; ``costs_obtained``: of what runs now, where starts have come out; by name, in
    the units of ``Plan.costs``. ``fired``: Mechanism of the policy -> how often it acted. ``silent``: Why the round
    ended early. ``unmeasured``: Why no use of GPUs is known. ``notes``: What else happened, most important first.
    """

    at_s: float
    id: str = ""
    plan: str = ""
    status: str = "idle"
    gap: float | None = None
    waiting: int = 0
    running: int = 0
    placed: int = 0
    deferred: int = 0
    gpus_used: int = 0
    gpus: int = 0
    standings: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    actions: list[DoneAction] = field(default_factory=list)
    not_done: dict[str, int] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)
    closed: tuple[str, ...] = ()
    gpus_known: int = 0
    gpus_as_advised: int = 0
    costs_planned: Mapping[str, int] = field(default_factory=dict)
    costs_obtained: Mapping[str, int] = field(default_factory=dict)
    fired: Mapping[str, int] = field(default_factory=dict)
    silent: str = ""
    unmeasured: str = ""
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def started(self) -> int:
        """Number of jobs that were started."""
        return self.count("start")

    @property
    def evicted(self) -> int:
        """Number of jobs that were stopped or moved, or of which workers were stopped."""
        return self.count("preempt") + self.count("move") + self.count("shrink")

    @property
    def refused(self) -> int:
        """Number of changes that could not be done."""
        return sum(action.result in ("refused", "undone") for action in self.actions)

    def count(self, do: Did, result: Result = "done") -> int:
        """Return the number of changes of a kind with a result."""
        return sum((action.do, action.result) == (do, result) for action in self.actions)

    def describe(self, instance: Instance) -> None:
        """Take the figures of a reading."""
        self.running, self.waiting = len(instance.running), len(instance.jobs) - len(instance.running)
        self.gpus_used = sum(len(part.gpus) for held in instance.running for part in held.assignments)
        self.gpus = _gpus_of(instance)
        self.left_out = {
            note.reason: len(note.names) for note in instance.reading if note.kind in (LEFT_OUT, NOT_ELIGIBLE)
        }

    def planned(self, plan: Plan, running: Collection[str]) -> None:
        """Take the figures of a plan; ``running``: Jobs that run before it."""
        text = "\n".join(placement.model_dump_json() for placement in plan.placements)
        self.plan = sha256(text.encode()).hexdigest()[:16]
        self.status, self.gap = plan.status, relative_gap(plan.levels[0].objective, plan.levels[0].bound)
        self.placed = sum(placement.job not in running for placement in plan.placements)
        self.costs_planned = {name: cost.raw for name, cost in plan.costs.items()}

    def add(
        self,
        do: Did,
        job: str,
        applied: Applied,
        *,
        nodes: tuple[str, ...] = (),
        parts: tuple[ActionPart, ...] = (),
        why: str = "",
    ) -> None:
        """Add a change; ``parts``: Workers of a start."""
        gpus = tuple(tuple(part.gpus) for part in parts)
        self.actions.append(DoneAction(do, job, applied.result, nodes, gpus, applied.why or why))

    def line(self) -> str:
        """Return it on a line of at most 100 columns under `HEADER`; remarks that do not fit follow, indented."""
        gap = "-" if self.gap is None else percent(self.gap)
        first = (
            f"{datetime.fromtimestamp(self.at_s).astimezone():%H:%M:%S}  {number(self.waiting):>7}  "
            f"{number(self.running):>7}  {number(self.placed):>7}  {number(self.started):>7}  "
            f"{number(self.evicted):>7}  {number(self.refused):>7}  {gap:>6}  {self.seconds:7.2f}"
        )
        remarks = [f"GPUs {self.gpus_used}/{self.gpus}"] * bool(self.gpus) + self.remarks
        if remarks and len(first) + 2 + len(remarks[0]) <= 100:
            first, remarks = f"{first}  {remarks[0]}", remarks[1:]
        shown = remarks if len(remarks) <= MOST_NOTES else remarks[: MOST_NOTES - 1]
        if len(shown) < len(remarks):
            shown = [*shown, f"and {len(remarks) - len(shown)} more"]
        return "\n".join([first, *(_cut(f"          {remark}") for remark in shown)])

    @property
    def remarks(self) -> list[str]:
        """What did not go as planned, and notes."""
        return list(self._remarks())

    def _remarks(self) -> Iterator[str]:
        if self.silent:
            yield f"the round ended early: {self.silent}"
        if self.unmeasured:
            yield f"nothing is measured: {self.unmeasured}"
        yield from self.notes
        for action in self.actions:
            if action.result in ("refused", "undone"):
                yield f"job {action.job}: {action.do} {action.result}: {action.why}"
            elif action.do == "give-up":
                yield f"job {action.job} is left held after {action.why}; its admin comment says more"
        yield from (str(outcome) for outcome in self.outcomes if outcome.kind != "as-planned")
        for what, count in self.not_done.items():
            yield f"{count} of the plan's actions are none of this driver's and were left out: {what}"
        if self.closed:
            yield f"nodes left alone for now: {', '.join(self.closed)}"
        if self.deferred:
            yield f"{self.deferred} actions wait for room that is not free yet, or were beyond --max-actions"

    def json(self) -> str:
        """Return it as one line of JSON."""
        at = datetime.fromtimestamp(self.at_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        counts = {"started": self.started, "evicted": self.evicted, "refused": self.refused}
        fields = {key: value for key, value in asdict(self).items() if key != "at_s"}
        return json.dumps({"at": at, **fields, **counts, "seconds": round(self.seconds, 3)})


def _gpus_of(instance: Instance) -> int:
    """Return the number of GPUs of nodes that take work or on which a job runs."""
    cluster = instance.cluster
    busy = {part.node for held in instance.running for part in held.assignments}
    return sum(cluster.gpus_by_node[node.id] for node in cluster.nodes if not node.drained or node.id in busy)


def _cut(text: str, columns: int = 100) -> str:
    return text if len(text) <= columns else f"{text[: columns - 3]}..."
