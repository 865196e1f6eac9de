"""The pods of a listing: those that run, those that wait, and those that run with unreadable requests."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Container, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction

from placeopt.errors import BadInput
from placeopt.importers.import_notes import ImportNotes
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.kubernetes.devices import Devices
from placeopt.importers.kubernetes.gangs import unreadable_job
from placeopt.importers.kubernetes.nodes import NodeCapacity
from placeopt.importers.kubernetes.pod_affinity import (
    NO_TERMS,
    PodAffinity,
    PodSelection,
    namespace_labels,
    read_pod_affinity,
)
from placeopt.importers.kubernetes.pod_groups import (
    KUEUE_GATES,
    GangMembership,
    GroupRules,
    gang_membership,
    group_rules,
)
from placeopt.importers.kubernetes.pods import Pod, PodReader, job_id, unreadable_field
from placeopt.importers.kubernetes.resources import PODS
from placeopt.importers.kubernetes.workloads import workload_pods
from placeopt.importers.observed_round import ObservedJob


@dataclass
class ExclusiveAmounts:
    """``limits``: Name -> amount of every node. ``taken``: Pod -> what it takes. ``terms``: Those counted, by text."""

    limits: dict[str, int] = field(default_factory=dict)
    taken: dict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))
    terms: set[str] = field(default_factory=set)


class PodList:
    """
    The listed pods, with their affinity terms and PodGroups.

    ``running``, ``waiting``: Readable pods, daemons among the running ones; ``listed``: both; ``selection``: whom terms
    select of them. ``job_pods``: Those of them that become jobs. ``unsupported``: Jobs of one running pod that may hold
    GPUs of its node, in unknown number. ``terms``: Required affinity and anti-affinity by pod, of pods that have any.
    ``rules``: Rules of PodGroups and the like. ``ended``: Gangs of pods that succeeded. ``missing``: Waiting pods that
    ask for what no node states, with the reason why they are left out (`name_amounts`).
    """

    def __init__(
        self,
        listed: Mapping[str, list[JsonEntry]],
        nodes: Mapping[str, NodeCapacity],
        resource: str,
        devices: Devices,
        notes: ImportNotes,
    ) -> None:
        self._resource, self._devices, self._notes = resource, devices, notes
        self.unsupported: list[ObservedJob] = []
        self.missing: dict[str, str] = {}
        self.terms: dict[str, PodAffinity] = {}
        namespaces = namespace_labels(listed.get("Namespace", []))
        pods: dict[str, Pod] = {}
        self.ended: list[GangMembership] = []
        reader = PodReader(resource, devices)
        for entry in [*listed.get("Pod", []), *workload_pods(listed.get("Workload", []), notes)]:
            try:
                pod = reader.read(entry)
                if pod is None:
                    self._count_ended(entry)
                elif self._is_new(pod, pods):
                    terms = read_pod_affinity(pod, namespaces)
                    pods[pod.id] = pod
                    self.terms.pop(pod.id, None)
                    if terms != NO_TERMS:
                        self.terms[pod.id] = terms
            except BadInput as error:
                self._unreadable(entry, unreadable_field(entry, error))
        self.running = [pod for pod in pods.values() if pod.node is not None]
        self.waiting = [pod for pod in pods.values() if pod.node is None and not self._is_waiting_daemon(pod)]
        self.listed = [*self.running, *self.waiting]
        self.selection = PodSelection(self.listed)
        waiting = {pod.id for pod in self.waiting}
        reserved = {(pod.node, group) for pod in self.running if pod.gpus for group in pod.gpu_groups}
        self.job_pods = [
            pod
            for pod in pods.values()
            if pod.id in waiting or (pod.node is not None and self._is_work(pod, nodes, reserved))
        ]
        self.rules: Mapping[str, GroupRules] = group_rules(listed)
        self._tell_of_schedulers()

    @property
    def levels(self) -> list[str]:
        """Labels of nodes that waiting pods and their gangs use as levels of the network."""
        rules = [rules for group in self.rules.values() for rules in (group, *group.parts.values())]
        topologies = [pod.topology for pod in self.waiting] + [one.topology for one in rules]
        return [key for topology in topologies for key in topology.levels]

    def _count_ended(self, entry: JsonEntry) -> None:
        """Count a pod that succeeded as a member of its gang."""
        with suppress(BadInput):
            metadata = entry.entry("metadata")
            marks = metadata.texts("labels"), metadata.texts("annotations")
            group = gang_membership(entry.entry("spec"), metadata, metadata.text("namespace", "default"), *marks)
            if group is not None and entry.entry("status").text("phase", "") == "Succeeded":
                self.ended.append(group)

    def _is_new(self, pod: Pod, pods: Mapping[str, Pod]) -> bool:
        """Return whether a pod counts; of two entries of one pod, the one on a node counts."""
        other = pods.get(pod.id)
        if other is None:
            return True
        if pod.node is None or pod.node == other.node:
            self._notes.assume("A pod that appears twice counts once, where it runs if it does.")
            return False
        if other.node is not None:
            self._notes.drain(f"nodes of a pod that appears twice, on two of them ({pod.id})", other.node)
        return True

    def _is_waiting_daemon(self, pod: Pod) -> bool:
        if pod.daemon and not pod.gpus:
            self._notes.leave_out("a daemon that waits", pod.id)
            return True
        return False

    def _is_work(
        self, pod: Pod, nodes: Mapping[str, NodeCapacity], reserved: Container[tuple[str | None, str]]
    ) -> bool:
        """
        Return whether a running pod becomes a job; others are daemons, or hold an unknown amount.

        A part of a GPU that another pod reserves whole (KAI, run:ai) counts there. On a node without GPUs of the
        counted kind nothing is unknown.
        """
        if pod.daemon and not pod.gpus:
            return False
        is_reserved = bool(pod.gpu_groups) and all((pod.node, group) in reserved for group in pod.gpu_groups)
        parts = [share for share in pod.shares if not (is_reserved and share.startswith("annotation "))]
        node = nodes.get(pod.node or "")
        if parts and node is not None and node.gpus:
            reason = f"with {', '.join(parts)}, which may be GPUs of their node"
            self.unsupported.append(unreadable_job(job_id(pod.id), (node.name,), reason, pod.entry.where))
            return False
        if pod.shares:
            self._notes.keep(f"with {', '.join(pod.shares)}: only CPU and memory are read", pod.id)
        return True

    def name_amounts(
        self, stated: Collection[str], exclusive: ExclusiveAmounts, known: Container[str] | None = None
    ) -> None:
        """
        State in named amounts what pods take of their nodes.

        ``stated``: Names that nodes state. ``known``: Names that jobs may have; None: those that nodes state.
        """
        counted = stated if known is None else known
        for pod in self.job_pods:
            if not all([name in counted for name in pod.named]):  # noqa: C419 - half the time of a generator
                pod.named = {name: amount for name, amount in pod.named.items() if name in counted}
            if pod.id in exclusive.taken:
                pod.named = {**pod.named, **exclusive.taken[pod.id]}
        for pod in self.waiting:
            asked = [*pod.amounts.exact, *([self._resource] if pod.gpus else [])]
            missing = [name for name in asked if name not in stated and name not in ("cpu", "memory", PODS)]
            if missing:
                self.missing[pod.id] = f"asking for {', '.join(missing)}, which no node states"

    def take_from(self, nodes: Mapping[str, NodeCapacity], exclusive: ExclusiveAmounts) -> None:
        """Take from nodes what no job may have: what daemons hold, and what others hold below whole units."""
        jobs = {pod.id for pod in self.job_pods}
        for holder, taken in self._devices.taken().items():
            if (node := nodes.get(holder)) is not None:
                node.gpus -= min(node.gpus, taken.pop(self._resource, 0))
                node.take({name: Fraction(count) for name, count in taken.items()})
        for pod in self.running:
            if (node := nodes.get(pod.node or "")) is None:
                continue
            if pod.id in jobs:
                node.take(pod.amounts.below_units)
            else:
                node.take(pod.amounts.exact)
                node.exclusive.update(exclusive.taken.get(pod.id, {}))

    def _unreadable(self, entry: JsonEntry, reason: str) -> None:
        """Record an unreadable pod; keep it if it is on a node."""
        name, node = entry.where.rpartition(".")[2], ""
        with suppress(BadInput):
            node = entry.entry("spec").text("nodeName", "")
        with suppress(BadInput):
            metadata = entry.entry("metadata")
            name = job_id(f"{metadata.text('namespace', 'default')}/{metadata.text('name')}")
        if node:
            self.unsupported.append(unreadable_job(name, (node,), reason, entry.where))
        else:
            self._notes.leave_out(reason, name)

    def _tell_of_schedulers(self) -> None:
        others = Counter(pod.rules.scheduler for pod in self.waiting if pod.rules.scheduler != "default-scheduler")
        if others:
            named = ", ".join(f"{name[:60]} ({count})" for name, count in sorted(others.items())[:10])
            self._notes.assume(f"Pods wait for other schedulers: {named}; queues and quotas of theirs are not read.")
        if any(gate in KUEUE_GATES for pod in self.waiting for gate in pod.rules.scheduling_gates):
            self._notes.assume("Pods wait for Kueue; its quotas are not read.")
        if self._devices.uncounted:
            uncounted = ", ".join(sorted(self._devices.uncounted)[:10])
            self._notes.assume(f"Devices other than GPUs that claims name are not counted: {uncounted}.")
        if any(pod.claims for pod in self.waiting):
            self._notes.assume("How many volumes a node may attach is not read.")
