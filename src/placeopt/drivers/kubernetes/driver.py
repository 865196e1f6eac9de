"""One turn of the driver: finish what is half done, look at outcomes, read, decide, act."""

from __future__ import annotations

import threading
import time
import uuid
from dataclasses import dataclass

from placeopt.actions import plan_actions
from placeopt.drivers.kubernetes.api import Api, Object, Unreachable
from placeopt.drivers.kubernetes.apply import Applier
from placeopt.drivers.kubernetes.cluster_mirror import ClusterMirror
from placeopt.drivers.kubernetes.gang_size import gang_without_size
from placeopt.drivers.kubernetes.lease import Lease
from placeopt.drivers.kubernetes.observe import Observed, Settling, observe, usable_nodes
from placeopt.drivers.kubernetes.outcomes import OutcomeWatch
from placeopt.drivers.kubernetes.pods import PodCalls
from placeopt.drivers.kubernetes.recovery import evict_incomplete, finish_half_lifted
from placeopt.drivers.node_backoff import NodeBackoff
from placeopt.drivers.resident import decide, follow, plan_digest
from placeopt.drivers.round_line import RoundReport
from placeopt.errors import BadInput, Unsupported
from placeopt.formats.kubernetes.snapshot import GPU
from placeopt.formats.snapshots import read_kubernetes
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance, Plan

SOLVE_SHARE = 0.6
"""Share of an interval within which a round is read and decided; the rest is for its actions."""
LEAST_SOLVE_S = 0.2


@dataclass(frozen=True)
class DriverOptions:
    """
    How to drive a cluster.

    ``every_s``: Seconds from the beginning of one turn to that of the next. ``max_actions``: Most actions of one turn.
    ``dry_run``: Decide, and write nothing. ``resource``: The extended resource that counts GPUs. ``settle_s``: How long
    a gang that does not state its size must be without new pods. ``bind_s``: How long a started pod may be without a
    node.
    """

    every_s: float = 15.0
    max_actions: int = 500
    dry_run: bool = False
    resource: str = GPU
    settle_s: float = 10.0
    bind_s: float = 60.0


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
    lease
        Held while it acts; None where no other driver can be.

    Raises
    ------
    Unreachable, ApiFault
        If the API server cannot be asked which kinds it has.
    """

    def __init__(
        self, api: Api, engine: Engine, options: DriverOptions, stop: threading.Event, lease: Lease | None = None
    ) -> None:
        self._engine, self._options, self._stop, self._lease = engine, options, stop, lease
        self._mirror = ClusterMirror(api, stop)
        self._calls = PodCalls(api, self._mirror.pods)
        self._outcomes = OutcomeWatch(options.bind_s)
        self._nodes = NodeBackoff()
        self._settling = Settling(options.settle_s, self._gang)
        self._applier = Applier(self._calls, self._outcomes, options.max_actions, self._may_act)
        self._loaded = False

    def turn(self) -> RoundReport:
        """Do one turn and report it. What the server does not answer is left for the next turn."""
        began = time.monotonic()
        report = RoundReport(time.time())
        try:
            self._turn(report, began)
        except Unreachable as fault:
            report.notes.insert(0, f"the API server does not answer: {fault}")
        except (BadInput, Unsupported) as fault:
            report.notes.insert(0, f"no round: {fault}")
        report.seconds = time.monotonic() - began
        return report

    def _turn(self, report: RoundReport, began: float) -> None:
        if not self._mirror.wait():
            report.notes.append(f"waiting for the first lists: {self._mirror.fault or 'they are being read'}")
            return
        if (fault := self._mirror.fault) is not None:
            report.notes.append(f"the API server does not answer: {fault}")
            return
        if self._options.dry_run:
            report.notes.append("dry run")
        elif not self._may_act():
            holder = self._lease.other if self._lease is not None else ""
            report.notes.append(f"another driver is active: {holder}" if holder else "waiting for the Lease")
            return
        else:
            self._finish(report)
        observed, instance = self._read()
        follow(self._engine, instance, loaded=self._loaded)
        self._loaded = True
        running = len(instance.running)
        report.running, report.waiting = running, len(instance.jobs) - running
        if observed.others:
            report.notes.append(f"{observed.others} pods wait for others")
        if report.waiting and not self._stop.is_set():
            limit = max(LEAST_SOLVE_S, SOLVE_SHARE * self._options.every_s - (time.monotonic() - began))
            self._carry_out(decide(self._engine, limit, self._stop), observed, report)

    def _finish(self, report: RoundReport) -> None:
        """Finish or undo what earlier turns, perhaps of another process, left half done."""
        pods, nodes = self._mirror.pods.objects, usable_nodes(self._mirror.nodes.objects)
        report.notes += finish_half_lifted(self._calls, pods, nodes, self._outcomes)
        now = time.monotonic()
        outcomes, incomplete = self._outcomes.look(self._mirror.pods.objects, now)
        for outcome in outcomes:
            if outcome.result in ("refused", "unbound"):
                seconds = self._nodes.refused(outcome.node, now)
                name = outcome.pod["metadata"]["name"]
                report.notes.append(f"{outcome.node} closed for {seconds:.0f} s: pod {name}: {outcome.why}")
            elif outcome.result == "bound":
                self._nodes.started(outcome.node)
        for pods_left in incomplete.values():
            report.notes += evict_incomplete(self._calls, pods_left)

    def _read(self) -> tuple[Observed, Instance]:
        pods = self._mirror.pods.objects
        now = time.monotonic()
        observed = observe(
            self._mirror.nodes.objects,
            pods,
            self._mirror.others,
            closed=self._nodes.closed(now),
            evicted=self._applier.evicted(now),
            unsettled=self._settling.unsettled(pods, now),
            now_s=time.time(),
        )
        instance = read_kubernetes(
            {"kind": "List", "items": observed.objects},
            resource=self._options.resource,
            previous=self._engine.snapshot if self._loaded else None,
        )
        return observed, self._applier.without_refused_victims(instance, now)

    def _carry_out(self, plan: Plan, observed: Observed, report: RoundReport) -> None:
        report.round_id, report.plan, report.gap = uuid.uuid4().hex[:12], plan_digest(plan), plan.gap
        running = {held.job for held in self._engine.snapshot.running}
        report.placed = sum(placement.job not in running for placement in plan.placements)
        actions = plan_actions(self._engine.snapshot, plan)
        if self._options.dry_run:
            report.notes += [f"would {action.do} {action.job}" for action in actions]
        else:
            self._applier.apply(actions, observed.leaving, report)

    def _may_act(self) -> bool:
        return not self._stop.is_set() and (self._lease is None or self._lease.is_held)

    def _gang(self, pod: Object) -> str | None:
        return gang_without_size(pod, self._mirror.groups)
