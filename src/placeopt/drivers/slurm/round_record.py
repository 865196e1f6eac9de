"""What one round of the driver did, as a record: for the table at a terminal and for lines of JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from placeopt.actions import ActionPart
from placeopt.drivers.plan_line import value_gap
from placeopt.drivers.round_line import RoundReport
from placeopt.drivers.slurm.apply import Applied
from placeopt.drivers.slurm.outcomes import Outcome
from placeopt.drivers.slurm.reading import SlurmRound
from placeopt.model import Instance, Plan

Did = Literal["start", "take-back", "give-up", "hold", "stop"]


@dataclass(frozen=True)
class DoneAction:
    """One change of a job. ``parts``: Workers of a start with the GPUs of the plan; Slurm chooses them itself."""

    do: Did
    job: str
    applied: Applied
    nodes: tuple[str, ...] = ()
    parts: tuple[ActionPart, ...] = ()
    why: str = ""


@dataclass
class RoundRecord:
    """
    One round. ``standings``: Number of jobs by standing. ``left_out``: Jobs that cannot be read, by reason.

    ``left_out_changed``: Whether that differs from the round before. ``placed``: Jobs that the plan starts.
    ``gpus_used``, ``gpus``: Held, and listed on nodes that take work or hold jobs. ``closed``: Nodes left alone because
    they refused. ``postponed``: Actions beyond the limit, or for room that is not free yet. ``not_done``: Actions of
    the plan that are none of the driver's. ``silent``: Why the round's actions ended early. ``unmeasured``: Why no use
    of GPUs is known. ``gpus_as_advised``: Of ``gpus_known`` jobs that began to run, those that have the very GPUs of
    the plan. ``fired``: Mechanism of the policy -> how often it acted. ``costs_planned``: Of the round's plan;
    ``costs_obtained``: of what runs now, where starts have come out; by name, in the units of ``Plan.costs``.
    """

    id: str
    at_s: float
    seconds: float = 0.0
    outcomes: list[Outcome] = field(default_factory=list)
    actions: list[DoneAction] = field(default_factory=list)
    standings: Counter[str] = field(default_factory=Counter)
    left_out: Mapping[str, int] = field(default_factory=dict)
    left_out_changed: bool = False
    closed: tuple[str, ...] = ()
    running: int = 0
    waiting: int = 0
    gpus_used: int = 0
    gpus: int = 0
    status: str = "idle"
    gap: float | None = None
    placed: int = 0
    postponed: int = 0
    not_done: Counter[str] = field(default_factory=Counter)
    silent: str = ""
    unmeasured: str = ""
    gpus_known: int = 0
    gpus_as_advised: int = 0
    fired: Mapping[str, int] = field(default_factory=dict)
    costs_planned: Mapping[str, int] = field(default_factory=dict)
    costs_obtained: Mapping[str, int] = field(default_factory=dict)

    @property
    def num_actions(self) -> int:
        """Number of changes that were tried."""
        return len(self.actions)

    def describe(self, seen: SlurmRound, closed: Collection[str]) -> None:
        """Take the figures of a reading."""
        instance = seen.instance
        self.standings = Counter(view.standing.value for view in seen.views.values())
        self.left_out, self.closed = seen.left_out, tuple(sorted(closed))
        self.running, self.waiting = len(instance.running), len(instance.jobs) - len(instance.running)
        self.gpus_used = sum(len(part.gpus) for held in instance.running for part in held.assignments)
        self.gpus = gpus_of(instance)

    def planned(self, plan: Plan) -> None:
        """Take the figures of the plan."""
        self.status, self.gap = plan.status, value_gap(plan)
        self.placed = len(plan.placements) - self.running
        self.costs_planned = {name: cost.raw for name, cost in plan.costs.items()}

    def add(
        self,
        do: Did,
        job: str,
        applied: Applied,
        *,
        nodes: Sequence[str] = (),
        parts: tuple[ActionPart, ...] = (),
        why: str = "",
    ) -> None:
        """Add a change."""
        self.actions.append(DoneAction(do, job, applied, tuple(nodes), parts, why))

    def count(self, do: Did, result: str = "done") -> int:
        """Return the number of changes of a kind with a result."""
        return sum(action.do == do and action.applied.result == result for action in self.actions)

    def line(self) -> str:
        """Return it on a line under `round_line.HEADER`, with notes."""
        return RoundReport(
            self.at_s,
            self.id,
            waiting=self.waiting + self.standings["delayed"] + self.standings["given up"],
            running=self.running,
            placed=self.placed,
            started=self.count("start"),
            evicted=self.count("stop"),
            refused=sum(action.applied.result == "refused" for action in self.actions),
            deferred=self.postponed,
            gap=self.gap,
            seconds=self.seconds,
            notes=[f"GPUs {self.gpus_used}/{self.gpus}", *self._notes()],
        ).line()

    def _notes(self) -> Iterator[str]:
        """Yield what did not go as planned, and what cannot be read where that changed."""
        if self.silent:
            yield f"the round ended early: {self.silent}"
        if self.unmeasured:
            yield f"nothing is measured: {self.unmeasured}"
        for action in self.actions:
            if action.applied.result == "refused":
                yield f"job {action.job}: {action.do} refused: {action.applied.why}"
            elif action.do == "give-up":
                yield f"job {action.job} is left held after {action.why}; its admin comment says more"
        for outcome in self.outcomes:
            if outcome.kind != "as-planned":
                got = f", has {','.join(outcome.got)}" if outcome.got else ""
                why = f": {outcome.why}" if outcome.why else ""
                planned = ",".join(dict.fromkeys(outcome.nodes))
                yield f"job {outcome.job} {outcome.kind}, planned on {planned}{got}{why}"
        for what, count in self.not_done.items():
            yield f"{count} of the plan's actions are none of this driver's and were left out: {what}"
        if self.closed:
            yield f"nodes left alone for now: {', '.join(self.closed)}"
        if self.postponed:
            yield f"{self.postponed} actions wait for room that is not free yet, or were beyond --max-actions"
        if self.left_out_changed:
            yield from (f"left out, {reason}: {count}" for reason, count in self.left_out.items())

    def json(self) -> str:
        """Return it as one line of JSON."""
        return json.dumps(self._fields())

    def _fields(self) -> dict[str, Any]:
        return {
            "round": self.id,
            "at_s": round(self.at_s, 3),
            "seconds": round(self.seconds, 3),
            "jobs": dict(sorted(self.standings.items())),
            "running": self.running,
            "waiting": self.waiting,
            "left_out": dict(self.left_out),
            "gpus_used": self.gpus_used,
            "gpus": self.gpus,
            "status": self.status,
            "gap": self.gap,
            "actions": [
                {
                    "do": action.do,
                    "job": action.job,
                    "result": action.applied.result,
                    "nodes": list(action.nodes),
                    "gpus_advised": [list(part.gpus) for part in action.parts],
                    "why": action.why,
                }
                for action in self.actions
            ],
            "outcomes": [
                {
                    "job": outcome.job,
                    "outcome": outcome.kind,
                    "planned": list(dict.fromkeys(outcome.nodes)),
                    "got": list(outcome.got),
                    "why": outcome.why,
                }
                for outcome in self.outcomes
            ],
            "nodes_left_alone": list(self.closed),
            "actions_postponed": self.postponed,
            "actions_not_done": dict(self.not_done),
            "jobs_with_gpus_as_advised": [self.gpus_as_advised, self.gpus_known],
            "fired": dict(self.fired),
            "costs_planned": dict(self.costs_planned),
            "costs_obtained": dict(self.costs_obtained),
            "silent": self.silent,
            "unmeasured": self.unmeasured,
        }


def gpus_of(instance: Instance) -> int:
    """Return the number of GPUs of nodes that take work or on which a job runs."""
    cluster = instance.cluster
    busy = {part.node for held in instance.running for part in held.assignments}
    return sum(cluster.gpus_by_node[node.id] for node in cluster.nodes if not node.drained or node.id in busy)
