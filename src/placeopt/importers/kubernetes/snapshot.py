"""What ``kubectl get nodes,pods --all-namespaces --output json`` shows, as a round; single pods beside its nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from placeopt.arguments import checked
from placeopt.errors import BadInput, Unsupported
from placeopt.importers.import_notes import ImportNotes
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.kubernetes.holds import read_holds
from placeopt.importers.kubernetes.jobs import JobReader
from placeopt.importers.kubernetes.listing import Listing, PodList
from placeopt.importers.kubernetes.nodes import KubernetesNode, Levels, cluster_of, topology_levels
from placeopt.importers.kubernetes.pod_relations import InterPodRules
from placeopt.importers.kubernetes.resources import MIG, NANO, is_accelerator, unit_of
from placeopt.importers.kubernetes.sources import read_objects
from placeopt.importers.observed_round import observed_instance, snapshot_policy
from placeopt.importers.priority_rule import PriorityRule, priority_rule
from placeopt.model import Cluster, Instance, Job

GPU = "nvidia.com/gpu"


@checked
def read_kubernetes(
    paths: Sequence[str | Path | dict[str, Any]] | dict[str, Any],
    *,
    resource: str = GPU,
    levels: Sequence[str] | None = None,
    name: str | None = None,
    previous: Instance | None = None,
    rule: PriorityRule | str | Path | None = None,
) -> Instance:
    """
    Return the nodes and pods that Kubernetes lists at one moment, as a round.

    Parameters
    ----------
    paths
        Lists of nodes and pods in one file or several; with pod groups where there are gangs, with
        volume claims, volumes, namespaces and resource claims where pods name them. In place of a file, a list or a
        single object as ``json.loads`` returns it (of the Python client, what ``sanitize_for_serialization`` returns);
        messages call them ``objects[0]`` and so on. Items of the API's own lists may lack ``kind``: a list of kind
        ``PodList`` holds pods. A file may be the ZIP that KAI's plugin ``snapshot`` serves: its pods have the priority
        of their PodGroup, and may be stopped (below 100, or as the group says) and moved (where the action
        ``consolidation`` is on) as KAI does.
    resource
        The extended resource that counts GPUs.
    levels
        Node labels that define domains, top level first; by default the known labels of clouds and of topology
        tools.
    name
        Of the instance, ``kubernetes`` by default.
    previous
        An earlier reading of the same cluster. Jobs that run on keep the GPUs that it gave them where the resource
        manager does not list them, and records that did not change are the same objects (`changes_between`).
    rule
        What priorities and priority classes decide; a file of it, or None: the defaults of `PriorityRule`.

    Returns
    -------
    Instance
        A node has its allocatable resources, less the requests of its daemons (pods of a DaemonSet, static pods).
        Other resources that pods ask for (``pods``, ``ephemeral-storage`` and huge pages in MiB, ``rdma/hca``), ports
        of the node and anti-affinity by hostname are named resources of nodes and demands.
        Cordoned nodes and those that are not ready are ``drained``. A pod is one worker, by what it requests; pods on a
        node run, those without wait. Pods of one group (a PodGroup of any scheduler, Kueue's pod group, a
        LeaderWorkerSet, JobSet, Kubeflow job or Ray cluster) are one gang of all of them, or of the number in its
        PodGroup. The value of a job follows from its priority or priority class (`PriorityRule`); ``priority`` is the
        rank of Kubernetes'. Running jobs are preemptible by rule, and movable by an annotation.

        The round omits what a plan could get wrong: waiting jobs with a rule that the model lacks are left out, the
        nodes of running pods with unreadable requests are drained, and so are unreadable nodes. The instance's note
        counts each by reason; docs/import.md lists the reasons.

    Raises
    ------
    BadInput
        If a file cannot be read, is no list of Kubernetes' objects, or a node appears twice. Also if no node has the
        resource; names the GPU resources that nodes have.
    Unsupported
        If no node has the resource, but some have MIG instances; names theirs.

    Notes
    -----
    The API server does not list the GPUs of a pod: the lowest free ones are assigned. With time slicing every replica
    counts as a GPU, as it does for Kubernetes' scheduler, and so does every MIG instance where all are equal (NVIDIA's
    strategy ``single``). Where profiles are resources of their own (``mixed``), ``resource`` names one of them.
    Amounts of pods that wait are rounded up to millicores and MiB; what those that run hold is exact.
    """
    listed, where = read_objects(paths)
    notes = ImportNotes()
    listing = Listing(listed, resource, priority_rule(rule), notes)
    nodes, resource, queues = listing.nodes, listing.resource, listing.queues
    _refuse_other_resources(nodes.values(), resource, where)
    pods = PodList(listing)
    rules = [one for group in listing.gangs.values() for one in (group, *group.parts.values())]
    topologies = [pod.topology for pod in pods.waiting] + [one.topology for one in rules]
    named = [*topology_levels(listed.get("Topology", [])), *([key] for one in topologies for key in one.levels)]
    for of, parted in nodes.items():
        parted.profiles = listing.devices.partitions.of_node(of)
        parted.gpus = max(parted.gpus, len(parted.profiles))
    known = Levels(nodes, levels, where, named, {label for pod in pods.readable for label in pod.node_labels})
    between = InterPodRules(pods.readable, known, None)
    jobs = JobReader(listing, pods, known, between).read()
    _take_from_nodes(listing, pods, between)
    cluster = cluster_of(nodes, known, {key for pod in pods.work for key in pod.amounts}, where)
    jobs += pods.unreadable
    if any(worker.gpus is None for job in jobs for worker in job.workers):
        notes.assume("The API server does not list the GPUs of a pod: the lowest free ones were taken.")
    return observed_instance(
        name or "kubernetes",
        f"Kubernetes: {where}.",
        notes,
        max((time for pod in pods.readable for time in (pod.created_ms, pod.started_ms)), default=0),
        cluster,
        jobs,
        snapshot_policy("kubernetes", cluster, queues.queues, queues.flavors),
        previous,
        read_holds(listed, pods.readable, jobs, resource, notes),
    )


class KubernetesObjects:
    """
    Reads single pods and gangs of a cluster, as `read_kubernetes` would read them in its lists.

    ``objects``: As for `read_kubernetes`: nodes, and the namespaces, volume claims, volumes, resource claims and pod
    groups that pods name; pods are not looked at. ``resource``, ``levels``, ``rule``: As for `read_kubernetes`.
    ``cluster``: Of the instance that was read of the same nodes. Raises as `read_kubernetes`.
    """

    @checked
    def __init__(
        self,
        objects: Sequence[str | Path | dict[str, Any]] | dict[str, Any],
        *,
        resource: str = GPU,
        levels: Sequence[str] | None = None,
        cluster: Cluster | None = None,
        rule: PriorityRule | str | Path | None = None,
    ) -> None:
        listed, where = read_objects(objects)
        self._listing = Listing(listed, resource, priority_rule(rule), ImportNotes())
        self._levels = Levels(self._listing.nodes, levels, where, topology_levels(listed.get("Topology", [])))
        cluster = cluster or cluster_of(self._listing.nodes, self._levels, self._listing.stated, where)
        self._limits = Counter[str]()
        """Most that a node of the cluster has of each name."""
        for machine in cluster.machines:
            self._limits |= Counter(machine.resources)

    @checked
    def job(self, *pods: dict[str, Any]) -> Job:
        """
        Return the job of one pod, or of all pods of one gang.

        Parameters
        ----------
        pods
            The objects, as ``json.loads`` returns them.

        Returns
        -------
        Job
            The job of the whole lists but for what depends on other pods: ``priority``, there a rank among all jobs, is
            0 here; amounts that the cluster does not state, as of a port that no pod asked for before, are not
            counted; nodes that running pods close (by volumes of one pod alone) are allowed; and it has all labels of
            its pods, at which relations of other jobs may look.

        Raises
        ------
        BadInput
            If there are no pods, they belong to several jobs, or none becomes one (it has ended, or is a daemon).
        Unsupported
            If `read_kubernetes` would leave it out, or keep it without knowing what it holds; says why.
        """
        entries = [JsonEntry("pod" if len(pods) == 1 else f"pods[{i}]", pod) for i, pod in enumerate(pods)]
        listing = self._listing.with_pods(entries)
        read = PodList(listing)
        rules = InterPodRules(read.readable, self._levels, self._limits)
        jobs = JobReader(listing, read, self._levels, rules).read()
        unknown = [job.unreadable_reason for job in [*jobs, *read.unreadable] if job.unreadable_reason is not None]
        reasons = [*unknown, *(reason for _, reason in listing.notes.names)]
        if unknown or (not jobs and reasons):
            raise Unsupported(f"pod: {reasons[0]}")
        if len(jobs) != 1:
            raise BadInput(f"pods: {len(jobs)} jobs, expected the pods of one")
        return jobs[0].job


def _take_from_nodes(listing: Listing, pods: PodList, rules: InterPodRules) -> None:
    """Take from nodes what no job may have: what daemons hold, and what others hold below whole units."""
    for node in listing.nodes.values():
        node.amounts |= {name: NANO * limit for name, limit in rules.limits.items()}
    for name, given in listing.devices.taken().items():
        if name in listing.nodes:
            if given[listing.resource] and listing.nodes[name].profiles:
                listing.notes.drain("nodes with parts of GPUs that no pod holds", name)
                given.pop(listing.resource)
            listing.nodes[name].gpus -= min(listing.nodes[name].gpus, given.pop(listing.resource, 0))
            listing.nodes[name].take({key: NANO * count for key, count in given.items()})
    jobs = {pod.id for pod in pods.work}
    for pod in pods.running:
        if pod.node in listing.nodes:
            below = {name: amount % unit_of(name) for name, amount in pod.exact.items()}
            apart = {name: NANO * amount for name, amount in rules.taken.get(pod.id, {}).items()}
            listing.nodes[pod.node].take(below if pod.id in jobs else {**pod.exact, **apart})


def _refuse_other_resources(nodes: Collection[KubernetesNode], resource: str, where: str) -> None:
    """Raise `Unsupported` if all GPUs are MIG instances of their own, `BadInput` if no node has ``resource``."""
    there = frozenset[str]().union(*(node.stated for node in nodes))
    profiles = sorted(name for name in there if name.startswith(MIG))
    if profiles and resource not in profiles and not any(node.gpus for node in nodes):
        raise Unsupported(
            f"{where}: no node has {resource}, but there are MIG instances: {', '.join(profiles)}; they are read one "
            f"profile at a time, each instance as a GPU: --resource {profiles[0]}"
        )
    gpus = sorted(name for name in there if is_accelerator(name))
    if resource not in there and (gpus or resource != GPU):
        known = ", ".join(gpus or sorted(name for name in there if "/" in name)) or "no resource of a vendor"
        raise BadInput(f"{where}: no node has {resource}; there are: {known}; --resource names what counts GPUs")
