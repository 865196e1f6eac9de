"""The pods of a listing: those that run, those that wait, and those that run with unreadable requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from placeopt.documents.faults import make_record
from placeopt.errors import BadInput
from placeopt.importers.import_notes import ImportNotes
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.kubernetes.devices import Devices
from placeopt.importers.kubernetes.makers import KUEUE_GATES, GangMembership, gang_membership
from placeopt.importers.kubernetes.nodes import KubernetesNode
from placeopt.importers.kubernetes.objects import Listed, job_id, object_id, unreadable_field
from placeopt.importers.kubernetes.pod_affinity import AffinityReader, PodRelations, Selection, namespace_labels
from placeopt.importers.kubernetes.pods import Memo, Pod, read_pod
from placeopt.importers.kubernetes.workloads import workload_pods
from placeopt.importers.observed_round import ObservedJob, ObservedWorker
from placeopt.model import Demand, Job, Option


@dataclass
class PodList:
    """The readable pods, and what is known of the others."""

    running: list[Pod] = field(default_factory=list)
    """On nodes, daemons among them."""
    waiting: list[Pod] = field(default_factory=list)
    work: list[Pod] = field(default_factory=list)
    """Those of both that become jobs, in the order of the list."""
    unreadable: list[ObservedJob] = field(default_factory=list)
    """Jobs of one running pod that may hold GPUs of its node, in unknown number."""
    relations: dict[str, PodRelations] = field(default_factory=dict)
    """Affinity and anti-affinity by pod, of pods that have any."""
    ended: list[GangMembership] = field(default_factory=list)
    """Gangs of pods that succeeded."""

    @property
    def readable(self) -> list[Pod]:
        """Those that run, then those that wait."""
        return [*self.running, *self.waiting]


def read_pods(
    listed: Listed, nodes: Mapping[str, KubernetesNode], resource: str, devices: Devices, notes: ImportNotes
) -> PodList:
    """Return the listed pods, and those that Workloads of Kueue would start; ``resource`` counts GPUs."""
    found = PodList()
    pods: dict[str, Pod] = {}
    memo = Memo()
    for entry in [*listed.get("Pod", []), *workload_pods(listed.get("Workload", []), notes)]:
        try:
            pod = read_pod(entry, resource, devices, memo)
            if pod is None:
                found.ended += _ended(entry)
            elif _is_new(pod, pods, notes):
                pods[pod.id] = pod
        except BadInput as error:
            _keep_unreadable(entry, unreadable_field(entry, error), found, notes)
    _read_relations(listed, pods, found, notes)
    found.running = [pod for pod in pods.values() if pod.node is not None]
    reserved = {(pod.node, group) for pod in found.running if pod.gpus for group in pod.gpu_groups}
    concerned = _concerned_daemons(pods, found)
    for pod in pods.values():
        is_daemon = pod.daemon and not pod.gpus and pod.id not in concerned
        if pod.node is None and is_daemon:
            notes.leave_out("a daemon that waits", pod.id)
        elif pod.node is None:
            found.waiting.append(pod)
            found.work.append(pod)
        elif not is_daemon:
            reason = _unknown_gpus(pod, nodes.get(pod.node), reserved)
            if reason is None:
                found.work.append(pod)
            else:
                found.unreadable.append(unreadable_job(job_id(pod.id), [pod.node], reason, pod.entry.where))
            if reason is None and pod.shares:
                notes.keep(f"with {', '.join(pod.shares)}: only CPU and memory are read", pod.id)
    _note_what_is_not_read(found.waiting, listed, devices, notes)
    return found


def _read_relations(listed: Listed, pods: dict[str, Pod], found: PodList, notes: ImportNotes) -> None:
    """Read the relations of pods, and take out of ``pods`` those of which they are not readable."""
    names = frozenset([pod.namespace for pod in pods.values()])
    reader = AffinityReader(namespace_labels(listed.get("Namespace", [])), names)
    for pod in list(pods.values()):
        try:
            relations = reader.read(pod)
        except BadInput as error:
            del pods[pod.id]
            _keep_unreadable(pod.entry, unreadable_field(pod.entry, error), found, notes)
        else:
            if relations.relations:
                found.relations[pod.id] = relations


def _concerned_daemons(pods: Mapping[str, Pod], found: PodList) -> set[str]:
    """Return running daemons that required affinity selects, or that have some: they are jobs, as relations need."""
    selection = Selection(pod for pod in pods.values() if pod.daemon and pod.node is not None)
    required = {one for own in found.relations.values() for one in own.relations if one.weight is None}
    selected = {pod.id for relation in required for pod in selection.of(relation)}
    return selected | {name for name in found.relations if pods[name].daemon and pods[name].node is not None}


def _ended(entry: JsonEntry) -> list[GangMembership]:
    """Return the gang of a pod that has ended, if it succeeded."""
    with suppress(BadInput):
        metadata = entry.entry("metadata")
        marks = metadata.texts("labels"), metadata.texts("annotations")
        group = gang_membership(entry.entry("spec"), metadata, metadata.text("namespace", "default"), *marks)
        if group is not None and entry.entry("status").text("phase", "") == "Succeeded":
            return [group]
    return []


def _is_new(pod: Pod, pods: Mapping[str, Pod], notes: ImportNotes) -> bool:
    """Return whether a pod counts; of two entries of one pod, the one on a node counts."""
    other = pods.get(pod.id)
    if other is None:
        return True
    if pod.node is None or pod.node == other.node:
        notes.assume("A pod that appears twice counts once, where it runs if it does.")
        return False
    if other.node is not None:
        notes.drain(f"nodes of a pod that appears twice, on two of them ({pod.id})", other.node)
    return True


def _unknown_gpus(pod: Pod, node: KubernetesNode | None, reserved: Container[tuple[str | None, str]]) -> str | None:
    """
    Return why a running pod may hold GPUs of its node in unknown number, None if it does not.

    A part of a GPU that another pod reserves whole (KAI, run:ai) counts there. On a node without GPUs of the counted
    kind nothing is unknown.
    """
    is_reserved = bool(pod.gpu_groups) and all((pod.node, group) in reserved for group in pod.gpu_groups)
    parts = [share for share in pod.shares if not (is_reserved and share.startswith("annotation "))]
    if parts and node is not None and node.gpus:
        return f"with {', '.join(parts)}, which may be GPUs of their node"
    return None


def _keep_unreadable(entry: JsonEntry, reason: str, found: PodList, notes: ImportNotes) -> None:
    """Record an unreadable pod; keep it if it is on a node."""
    name, node = entry.where.rpartition(".")[2], ""
    with suppress(BadInput):
        node = entry.entry("spec").text("nodeName", "")
    with suppress(BadInput):
        name = job_id(object_id(entry))
    if node:
        found.unreadable.append(unreadable_job(name, [node], reason, entry.where))
    else:
        notes.leave_out(reason, name)


def unreadable_job(name: str, nodes: Sequence[str], reason: str, where: str) -> ObservedJob:
    """Return a running job whose amounts on its nodes are unknown."""
    job = make_record(Job, where, id=name, kind="cpu", options=(Option(workers=len(nodes), demand=Demand(gpus=0)),))
    return ObservedJob(job, tuple(map(ObservedWorker, nodes)), where=where, unreadable_reason=reason)


def _note_what_is_not_read(waiting: list[Pod], listed: Listed, devices: Devices, notes: ImportNotes) -> None:
    others = Counter(pod.scheduler for pod in waiting if pod.scheduler != "default-scheduler")
    if others:
        named = ", ".join(f"{name[:60]} ({count})" for name, count in sorted(others.items())[:10])
        unread = "their fair shares are" if listed.get("Queue") else "queues and quotas of theirs are"
        notes.assume(f"Pods wait for other schedulers: {named}; {unread} not read.")
    if not listed.get("ClusterQueue") and any(gate in KUEUE_GATES for pod in waiting for gate in pod.gates):
        notes.assume("Pods wait for Kueue; its quotas are not read.")
    if devices.uncounted:
        notes.assume(
            f"Devices other than GPUs that claims name are not counted: {', '.join(sorted(devices.uncounted)[:10])}."
        )
    if any(pod.claims for pod in waiting):
        notes.assume("How many volumes a node may attach is not read.")
