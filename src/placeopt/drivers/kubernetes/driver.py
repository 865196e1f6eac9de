"""One turn of the driver: finish what is half done, look at outcomes, read, decide, act."""

from __future__ import annotations

import threading
import time
import uuid
from dataclasses import dataclass

from placeopt.actions import plan_actions
from placeopt.drivers.answers import Unreachable
from placeopt.drivers.decider import Decider
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
from placeopt.drivers.options import DriverOptions
from placeopt.drivers.round_report import RoundReport
from placeopt.errors import BadInput, Unsupported
from placeopt.importers import read_kubernetes
from placeopt.importers.kubernetes.snapshot import GPU
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance, Plan
from placeopt.model.policy import Changes

SOLVE_SHARE = 0.6
"""Share of an interval within which a round is read and decided; the rest is for its actions."""
CHANGES = Changes(moves_max=100, preemptions_max=100, move_price=1000, preemption_price=1000)
"""What a round may do to running jobs that allow it; each change must gain more than a GPU of priority 0 is worth."""


@dataclass(frozen=True, kw_only=True)
class KubernetesOptions(DriverOptions):
    """
    How to drive a cluster of Kubernetes; what a policy leaves out of changes is as `CHANGES` has it.

    ``resource``: The extended resource that counts GPUs. ``settle_s``: How long a gang that does not state its size
    must be without new pods. ``bind_s``: How long a started pod may be without a node. ``refused_s``: How long pods
    that request what a node refused are kept from it; twice as long at each further time.
    """

    max_actions: int = 500
    resource: str = GPU
    settle_s: float = 10.0
    bind_s: float = 60.0
    refused_s: float = 30.0


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

    def __init__(self, api: Api, engine: Engine, options: KubernetesOptions, stop: threading.Event) -> None:
        self._decider = Decider(engine, options, stop)
        self._options, self._stop = options, stop
        self.lease: Lease | None = None
        self.mirror = ClusterMirror(api, stop)
        self._calls = PodCalls(api, self.mirror.pods)
        self._outcomes = OutcomeWatch(options.bind_s)
        self._refusals = Refusals(options.refused_s)
        self._settling = Settling(options.settle_s, self._gang)
        self._applier = Applier(self._calls, self._outcomes, options.max_actions, self._may_act)

    def turn(self) -> RoundReport:
        """Do one turn and report it. What the server does not answer is left for the next turn."""
        began = time.monotonic()
        report = RoundReport(time.time())
        try:
            self._turn(report, began)
        except (ApiFault, Unreachable) as fault:
            report.silent = f"the API server: {fault}"
        except (BadInput, Unsupported) as fault:
            report.silent = str(fault)
        report.seconds = time.monotonic() - began
        return report

    def _turn(self, report: RoundReport, began: float) -> None:
        if not self.mirror.wait():
            report.notes.append(f"waiting for the first lists: {self.mirror.fault or 'they are being read'}")
            return
        if (fault := self.mirror.fault) is not None:
            report.silent = f"the API server: {fault}"
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
        self._decider.describe(instance, report)
        report.standings = dict(observed.standings)
        if others := observed.standings["others"]:
            report.notes.append(f"{others} pods wait for others")
        until = began + SOLVE_SHARE * self._options.every_s
        if (plan := self._decider.decide(instance, report, until, waiting_only=True)) is not None:
            self._carry_out(plan, observed, report)

    def _finish(self, report: RoundReport) -> None:
        """Finish or undo what earlier turns, perhaps of another process, left half done."""
        pods, nodes = self.mirror.pods.objects, usable_nodes(self.mirror.nodes.objects)
        report.notes += finish_half_lifted(self._calls, pods, nodes, self._outcomes)
        now = time.monotonic()
        seen = self._outcomes.look(self.mirror.pods.objects, now)
        report.outcomes = [outcome for _, outcome in seen.outcomes]
        for pod, outcome in seen.outcomes:
            if outcome.kind == "as-planned":
                self._refusals.taken(pod, *outcome.planned)
        for pod, outcome in seen.outcomes:
            if outcome.kind in ("refused", "not-started"):
                (node,) = outcome.planned
                seconds = self._refusals.refused(pod, node, now)
                report.notes.append(f"{node} closed for {seconds:.0f} s to pods as {pod['metadata']['name']}")
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
            previous=self._decider.live.before,
            rule=self._options.rule,
        )
        policy = instance.policy.model_copy(update={"changes": CHANGES})
        instance = instance.model_copy(update={"policy": policy})
        instance = self._refusals.keep_from_nodes(instance, pods, now)
        return observed, self._applier.with_changeable_jobs(instance, now)

    def _carry_out(self, plan: Plan, observed: Observed, report: RoundReport) -> None:
        report.id = uuid.uuid4().hex[:12]
        actions = plan_actions(self._decider.live.snapshot, plan)
        if self._options.dry_run:
            report.notes += [f"would {action.do} {action.job}" for action in actions]
        else:
            self._applier.apply(actions, observed.leaving, report)

    def _may_act(self) -> bool:
        return not self._stop.is_set() and (self.lease is None or self.lease.is_held)

    def _gang(self, pod: Object) -> Gang | None:
        return gang_of(pod, self.mirror.groups)
