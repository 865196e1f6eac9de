"""A listing: its nodes, groups and queues; its pods that run, that wait, and that run with unreadable requests."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy

from placeopt.errors import BadInput
from placeopt.importers.import_notes import ImportNotes
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.kubernetes.devices import Devices
from placeopt.importers.kubernetes.makers import (
    KUEUE,
    KUEUE_GATES,
    MAX_PODS,
    TOPOLOGY_REQUEST,
    GangMembership,
    gang_membership,
    group_rules,
)
from placeopt.importers.kubernetes.nodes import KubernetesNode, label_hyper_nodes, read_node
from placeopt.importers.kubernetes.objects import Listed, job_id, object_id, unreadable_field
from placeopt.importers.kubernetes.pod_relations import AffinityReader, Selection
from placeopt.importers.kubernetes.pods import Pod, Specification, read_pod
from placeopt.importers.kubernetes.queues import read_queues
from placeopt.importers.observed_round import ObservedJob, unreadable_job
from placeopt.importers.priority_rule import PriorityRule
from placeopt.model.base import MAX_JOBS


class PodTemplate(JsonEntry):
    """A pod that is not made yet."""

    __slots__ = ()


class Listing:
    """
    The listed objects, and what was read of them but pods.

    ``resource``: Counts GPUs. ``gangs``: Rules of PodGroups and the like. ``stated``: Names of the resources that any
    node states.
    """

    def __init__(self, listed: Listed, resource: str, rule: PriorityRule, notes: ImportNotes) -> None:
        self.listed, self.rule, self.notes = listed, rule, notes
        self.devices = Devices(listed)
        self.resource = self.devices.resource(resource)
        self.nodes: dict[str, KubernetesNode] = {}
        for entry in listed["Node"]:
            node = read_node(entry, self.resource, notes)
            if self.nodes.setdefault(node.name, node) is not node:
                raise entry.entry("metadata").bad("name", "names of nodes to be unique")
        label_hyper_nodes(listed.get("HyperNode", []), self.nodes, notes)
        for name, there in self.devices.on_nodes().items():
            if name in self.nodes:
                self.nodes[name].add_devices(there, self.resource)
        self.stated = frozenset().union(*(node.stated for node in self.nodes.values()))
        self.gangs, self.queues = group_rules(listed), read_queues(listed, self.nodes, self.resource, notes)

    def with_pods(self, pods: Sequence[JsonEntry]) -> Listing:
        """Return the same objects with other pods, and notes of their own."""
        other = copy(self)
        other.listed, other.notes = {**self.listed, "Pod": pods}, ImportNotes()
        return other


class PodList:
    """
    The listed pods, and those that Workloads of Kueue would start.

    ``running``: On nodes, daemons among them; and ``waiting``. ``work``: Those of both that become jobs, in the order
    of the list. ``unreadable``: Jobs of one running pod that may hold GPUs of its node, in unknown number. ``ended``:
    Gangs of pods that succeeded.
    """

    def __init__(self, listing: Listing) -> None:
        listed, nodes, notes = listing.listed, listing.nodes, listing.notes
        self.work: list[Pod] = []
        self.unreadable: list[ObservedJob] = []
        self.ended: list[GangMembership] = []
        self._notes = notes
        pods: dict[str, Pod] = {}
        known: dict[str, Specification] = {}
        for entry in [*listed.get("Pod", []), *self._of_workloads(listed.get("Workload", []))]:
            try:
                pod = read_pod(entry, listing.resource, listing.devices, known)
                if pod is None:
                    self.ended += _ended(entry)
                elif self._is_new(pod, pods):
                    pods[pod.id] = pod
            except BadInput as error:
                self._keep_unreadable(entry, error)
        reader = AffinityReader(listed.get("Namespace", []), {pod.namespace for pod in pods.values()})
        for pod in list(pods.values()):
            try:
                reader.read(pod)
            except BadInput as error:
                del pods[pod.id]
                self._keep_unreadable(pod.entry, error)
        self.running = [pod for pod in pods.values() if pod.node is not None]
        required = {one for pod in pods.values() for one in pod.relations if one.weight is None}
        selection = Selection(pod for pod in self.running if pod.daemon)
        concerned = {pod.id for relation in required for pod in selection.of(relation)}
        """Daemons that required affinity selects: they are jobs, as relations need, and so are those that have some."""
        reserved = {(pod.node, group) for pod in self.running if pod.gpus for group in pod.gpu_groups}
        for pod in pods.values():
            is_concerned = pod.node is not None and (pod.relations or pod.id in concerned)
            if pod.daemon and not pod.gpus and not is_concerned:
                if pod.node is None:
                    notes.leave_out("a daemon that waits", pod.id)
                continue
            shares = pod.shares
            if pod.gpu_groups and all((pod.node, group) in reserved for group in pod.gpu_groups):
                shares = tuple(share for share in shares if not share.startswith("annotation "))
            """A part of a GPU that another pod reserves whole (KAI, run:ai) counts there."""
            if pod.node is not None and shares and pod.node in nodes and nodes[pod.node].gpus:
                reason = f"with {', '.join(shares)}, which may be GPUs of their node"
                self.unreadable.append(unreadable_job(job_id(pod.id), [pod.node], reason, pod.entry.where))
                continue
            self.work.append(pod)
            if pod.node is not None and pod.shares:
                notes.keep(f"with {', '.join(pod.shares)}: only CPU and memory are read", pod.id)
        self.waiting = [pod for pod in self.work if pod.node is None]
        self._note_what_is_not_read(listing)

    @property
    def readable(self) -> list[Pod]:
        """Those that run, then those that wait."""
        return [*self.running, *self.waiting]

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

    def _keep_unreadable(self, entry: JsonEntry, error: BadInput) -> None:
        """Record an unreadable pod; keep it if it is on a node."""
        name, node, reason = entry.where.rpartition(".")[2], "", unreadable_field(entry, error)
        with suppress(BadInput):
            node = entry.entry("spec").text("nodeName", "")
        with suppress(BadInput):
            name = job_id(object_id(entry))
        if node:
            self.unreadable.append(unreadable_job(name, [node], reason, entry.where))
        else:
            self._notes.leave_out(reason, name)

    def _note_what_is_not_read(self, listing: Listing) -> None:
        listed, devices = listing.listed, listing.devices
        others = Counter(pod.scheduler for pod in self.waiting if pod.scheduler != "default-scheduler")
        if others:
            named = ", ".join(f"{name[:60]} ({count})" for name, count in sorted(others.items())[:10])
            unread = (
                "their fair shares are"
                if listed.get("Queue") or listing.queues.rules
                else "queues and quotas of theirs are"
            )
            self._notes.assume(f"Pods wait for other schedulers: {named}; {unread} not read.")
        if not listed.get("ClusterQueue") and any(pod.gates & KUEUE_GATES for pod in self.waiting):
            self._notes.assume("Pods wait for Kueue; its quotas are not read.")
        if prefer := sum(_prefers_nodes(pod.entry) for pod in self.waiting):
            self._notes.assume(
                f"Preferred node affinity is not read: no record of a round says it ({prefer} pods wait)."
            )
        if devices.uncounted:
            named = ", ".join(sorted(devices.uncounted)[:10])
            self._notes.assume(f"Devices other than GPUs that claims name are not counted: {named}.")
        if any(pod.claims for pod in self.waiting):
            self._notes.assume("How many volumes a node may attach is not read.")

    def _of_workloads(self, workloads: Sequence[JsonEntry]) -> list[PodTemplate]:
        """
        Return one pod for each that a Workload of Kueue would start.

        Not of a Workload that is admitted, finished or inactive, nor of one that was made for pods: the pods speak for
        themselves.
        """
        pods: list[PodTemplate] = []
        for workload in workloads:
            try:
                if workload.text("apiVersion", "").startswith(KUEUE) and _waits(workload):
                    pods += list(_templates(workload, MAX_JOBS - len(pods)))  # none of one that is read in part
            except BadInput as error:
                self._notes.leave_out("a Workload that cannot be read", str(error))
        if pods:
            self._notes.assume(
                "Workloads of Kueue that wait for admission count with the pods of their templates, all or none, or at "
                "least minCount."
            )
        return pods


def _prefers_nodes(pod: JsonEntry) -> bool:
    """Return whether a pod states preferred node affinity."""
    affinity = pod.entry("spec").entry("affinity").entry("nodeAffinity")
    return bool(affinity.raw("preferredDuringSchedulingIgnoredDuringExecution"))


def _ended(entry: JsonEntry) -> list[GangMembership]:
    """Return the gang of a pod that has ended, if it succeeded."""
    with suppress(BadInput):
        group = gang_membership(entry)
        if group is not None and entry.entry("status").text("phase", "") == "Succeeded":
            return [group]
    return []


def _waits(workload: JsonEntry) -> bool:
    """Return whether a Workload waits for admission, and was not made for pods."""
    spec, status = workload.entry("spec"), workload.entry("status")
    stated = {(one.text("type", ""), one.text("status", "")) for one in status.entries("conditions")}
    owners = {owner.text("kind", "") for owner in workload.entry("metadata").entries("ownerReferences")}
    ended = ("Finished", "True") in stated or "admission" in status
    return not ended and spec.raw("active") is not False and "Pod" not in owners


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _templates(workload: JsonEntry, most: int) -> Iterator[PodTemplate]:
    """Yield the pods of a Workload, at most so many."""
    metadata, spec = workload.entry("metadata"), workload.entry("spec")
    name, queue = metadata.text("name"), spec.text("queueName", "")
    podsets = {part: part.integer("count", 0, MAX_PODS, 1) for part in spec.entries("podSets")}
    if sum(podsets.values()) > most:
        raise spec.bad("podSets", f"with all other Workloads at most {MAX_JOBS} pods")
    priority = {"priority": spec.raw("priority")} if "priority" in spec else {}
    for part, count in podsets.items():
        template, podset = part.entry("template"), part.text("name", "main")
        said, inner, wanted = template.entry("metadata"), template.entry("spec"), part.entry("topologyRequest")
        least = part.integer("minCount", 0, MAX_PODS, 0)
        asked = {key: inner.raw(key) for key in inner.names()}
        gated = {**asked, **priority, "schedulingGates": [{"name": f"{KUEUE}admission"}]}
        own = {
            "namespace": metadata.text("namespace", "default"),
            "creationTimestamp": metadata.raw("creationTimestamp"),
            "labels": {
                **said.texts("labels"),
                f"{KUEUE}podset": podset,
                **({f"{KUEUE}queue-name": queue} if queue else {}),
            },
            "annotations": {
                **said.texts("annotations"),
                **{mark: _as_text(wanted.raw(key)) for key, mark in TOPOLOGY_REQUEST.items() if key in wanted},
                **({f"{KUEUE}workload-min-count": str(least)} if len(podsets) == 1 and 0 < least < count else {}),
                f"{KUEUE}workload": name,
            },
        }
        for number in range(count):
            named = {**own, "name": f"{name}-{podset}-{number}"}
            yield PodTemplate(".template", {"metadata": named, "spec": gated}, part)
