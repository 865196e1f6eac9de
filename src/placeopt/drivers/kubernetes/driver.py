"""One turn of the driver: finish what is half done, look at outcomes, read, decide, act."""

from __future__ import annotations

import threading
import time
import uuid
from dataclasses import dataclass, field

from placeopt.actions import plan_actions
from placeopt.drivers.kubernetes.api import Api, ApiFault, Object
from placeopt.drivers.kubernetes.apply import Applier
from placeopt.drivers.kubernetes.cluster_mirror import ClusterMirror
from placeopt.drivers.kubernetes.gang_size import Gang, gang_of
from placeopt.drivers.kubernetes.lease import Lease
from placeopt.drivers.kubernetes.observe import Observed, Settling, observe, usable_nodes
from placeopt.drivers.kubernetes.outcomes import OutcomeWatch
from placeopt.drivers.kubernetes.pods import PodCalls
from placeopt.drivers.kubernetes.recovery import evict_incomplete, finish_half_lifted, record_whole
from placeopt.drivers.kubernetes.refusals import Refusals
from placeopt.drivers.plan_line import plan_digest, value_gap
from placeopt.drivers.round_line import RoundReport
from placeopt.drivers.unreachable import Unreachable
from placeopt.errors import BadInput, Unsupported
from placeopt.importers import read_kubernetes
from placeopt.importers.kubernetes.snapshot import GPU
from placeopt.importers.priority_rule import DEFAULT_RULE, PriorityRule
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance, Plan
from placeopt.model.policy import Changes
from placeopt.scheduling import LiveScheduler, Scheduling, Telemetry, named_policy

SOLVE_SHARE = 0.6
"""Share of an interval within which a round is read and decided; the rest is for its actions."""
LEAST_SOLVE_S = 0.2
CHANGES = Changes(moves_max=100, preemptions_max=100, move_price=1000, preemption_price=1000)
"""What a round may do to running jobs that allow it; each change must gain more than a GPU of priority 0 is worth."""


@dataclass(frozen=True)
class DriverOptions:
    """
    How to drive a cluster.

    ``every_s``: Seconds from the beginning of one turn to that of the next. ``max_actions``: Most actions of one turn.
    ``dry_run``: Decide, and write nothing. ``resource``: The extended resource that counts GPUs. ``settle_s``: How long
    a gang that does not state its size must be without new pods. ``bind_s``: How long a started pod may be without a
    node. ``refused_s``: How long pods that request what a node refused are kept from it; twice as long at each further
    time.
    ``policy``: Who runs where; what it leaves out is as the reader says, with `CHANGES`. ``rule``: What priorities and
    classes are worth, and which may be preempted.
    """

    every_s: float = 15.0
    max_actions: int = 500
    dry_run: bool = False
    resource: str = GPU
    settle_s: float = 10.0
    bind_s: float = 60.0
    refused_s: float = 30.0
    policy: Scheduling = field(default_factory=lambda: named_policy("rounds"))
    telemetry: Telemetry | None = None
    rule: PriorityRule = DEFAULT_RULE


class Driver:
    """
    Carries placeopt's rounds out in one cluster.

    Parameters
    ----------
    api
        The cluster.
    engine
        Solves the rounds; the driver loads it, its caller closes it.
    options
        How.
    stop
        Ends threads, a solve, and a turn between two actions.

    Attributes
    ----------
    lease
        Held while it acts; None where no other driver can be.
    mirror
        The cluster's objects.

    Raises
    ------
    Unreachable, ApiFault
        If the API server cannot be asked which kinds it has.
    """

    def __init__(self, api: Api, engine: Engine, options: DriverOptions, stop: threading.Event) -> None:
        self._live = LiveScheduler(engine, options.policy, telemetry=options.telemetry, overcommits=False)
        self._options, self._stop = options, stop
        self.lease: Lease | None = None
        self.mirror = ClusterMirror(api, stop)
        self._calls = PodCalls(api, self.mirror.pods)
        self._outcomes = OutcomeWatch(options.bind_s)
        self._refusals = Refusals(options.refused_s)
        self._settling = Settling(options.settle_s, self._gang)
        self._applier = Applier(self._calls, self._outcomes, options.max_actions, self._may_act)
        self._said: frozenset[str] = frozenset()

    def turn(self) -> RoundReport:
        """Do one turn and report it. What the server does not answer is left for the next turn."""
        began = time.monotonic()
        report = RoundReport(time.time())
        try:
            self._turn(report, began)
        except (ApiFault, Unreachable) as fault:
            report.notes.insert(0, f"the API server: {fault}")
        except (BadInput, Unsupported) as fault:
            report.notes.insert(0, f"no round: {fault}")
        report.seconds = time.monotonic() - began
        return report

    def _turn(self, report: RoundReport, began: float) -> None:
        if not self.mirror.wait():
            report.notes.append(f"waiting for the first lists: {self.mirror.fault or 'they are being read'}")
            return
        if (fault := self.mirror.fault) is not None:
            report.notes.append(f"the API server: {fault}")
            return
        if self._options.dry_run:
            report.notes.append("dry run")
        elif not self._may_act():
            holder = self.lease.other if self.lease is not None else ""
            report.notes.append(f"another driver is active: {holder}" if holder else "waiting for the Lease")
            return
        else:
            self._finish(report)
        observed, instance = self._read()
        self._live.follow(instance)
        if self._live.usage.fault:
            report.notes.append(f"nothing is measured: {self._live.usage.fault}")
        running = len(instance.running)
        report.running, report.waiting = running, len(instance.jobs) - running
        report.notes += self._news(instance)
        if observed.others:
            report.notes.append(f"{observed.others} pods wait for others")
        if self._live.wants_round and not self._stop.is_set():
            limit = max(LEAST_SOLVE_S, SOLVE_SHARE * self._options.every_s - (time.monotonic() - began))
            self._carry_out(self._live.decide(limit, self._stop, waiting_only=True), observed, report)
        report.fired = dict(sorted(self._live.fired.items()))

    def _finish(self, report: RoundReport) -> None:
        """Finish or undo what earlier turns, perhaps of another process, left half done."""
        pods, nodes = self.mirror.pods.objects, usable_nodes(self.mirror.nodes.objects)
        report.notes += finish_half_lifted(self._calls, pods, nodes, self._outcomes)
        now = time.monotonic()
        seen = self._outcomes.look(self.mirror.pods.objects, now)
        for outcome in seen.outcomes:
            if outcome.result == "bound":
                self._refusals.taken(outcome.pod, outcome.node)
        for outcome in seen.outcomes:
            if outcome.result in ("refused", "unbound"):
                seconds = self._refusals.refused(outcome.pod, outcome.node, now)
                name = outcome.pod["metadata"]["name"]
                report.notes.append(f"{outcome.node} closed for {seconds:.0f} s to pods as {name}: {outcome.why}")
        for pods_left in seen.incomplete:
            report.notes += evict_incomplete(self._calls, pods_left)
        record_whole(self._calls, seen.whole)

    def _read(self) -> tuple[Observed, Instance]:
        pods = self.mirror.pods.objects
        now = time.monotonic()
        observed = observe(
            self.mirror.nodes.objects,
            pods,
            self.mirror.others,
            evicted=self._applier.evicted(now),
            unsettled=self._settling.unsettled(pods, now),
            now_s=time.time(),
        )
        instance = read_kubernetes(
            {"kind": "List", "items": observed.objects},
            resource=self._options.resource,
            previous=self._live.before,
            rule=self._options.rule,
        )
        policy = instance.policy.model_copy(update={"changes": CHANGES})
        instance = instance.model_copy(update={"policy": policy})
        instance = self._refusals.keep_from_nodes(instance, pods, now)
        return observed, self._applier.with_changeable_jobs(instance, now)

    def _carry_out(self, plan: Plan, observed: Observed, report: RoundReport) -> None:
        report.round_id, report.plan, report.gap = uuid.uuid4().hex[:12], plan_digest(plan), value_gap(plan)
        running = {held.job for held in self._live.snapshot.running}
        report.placed = sum(placement.job not in running for placement in plan.placements)
        actions = plan_actions(self._live.snapshot, plan)
        if self._options.dry_run:
            report.notes += [f"would {action.do} {action.job}" for action in actions]
        else:
            self._applier.apply(actions, observed.leaving, report)

    def _news(self, instance: Instance) -> list[str]:
        """Return what the reader left out, drained or assumed, where it did not say so in the turn before."""
        lines = [str(note) for note in instance.reading]
        new = [line for line in lines if line not in self._said]
        self._said = frozenset(lines)
        return new

    def _may_act(self) -> bool:
        return not self._stop.is_set() and (self.lease is None or self.lease.is_held)

    def _gang(self, pod: Object) -> Gang | None:
        return gang_of(pod, self.mirror.groups)
