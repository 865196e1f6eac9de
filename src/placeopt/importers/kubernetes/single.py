"""One pod, one gang or one node of Kubernetes, beside a cluster that is known already."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from placeopt.arguments import checked
from placeopt.errors import BadInput, Unsupported
from placeopt.importers.import_notes import ImportNotes
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.known_machines import known_machine
from placeopt.importers.kubernetes.exclusive_amounts import ANTI_AFFINITY, PORT, exclusive_amounts
from placeopt.importers.kubernetes.jobs import build_jobs
from placeopt.importers.kubernetes.nodes import NodeList
from placeopt.importers.kubernetes.pod_list import PodList
from placeopt.importers.kubernetes.snapshot import GPU, read_nodes, read_objects
from placeopt.importers.kubernetes.topologies import topology_levels
from placeopt.importers.kubernetes.volumes import Volumes
from placeopt.importers.observed_round import ObservedJob
from placeopt.importers.priority_rule import PriorityRule, priority_rule
from placeopt.model import Cluster, Job, Machine, Node


class KubernetesObjects:
    """
    Reads single pods, gangs and nodes of a cluster, as `read_kubernetes` would read them in its lists.

    ``objects``: As for `read_kubernetes`: nodes, and the namespaces, volume claims, volumes, resource claims and pod
    groups that pods name; pods are not looked at. ``resource``, ``levels``, ``rule``: As for `read_kubernetes`.
    ``cluster``: Of the instance that was read of the same nodes: machine types keep its ids. Raises as
    `read_kubernetes`.
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
        self._listed = {kind: entries for kind, entries in listed.items() if kind != "Pod"}
        self._levels, self._rule = levels, priority_rule(rule)
        nodes, self._devices, self._resource = read_nodes(listed, resource, ImportNotes())
        self._nodes = NodeList(nodes, levels, where, topology_levels(listed["Topology"]))
        self._cluster = cluster or self._nodes.cluster(self._nodes.stated, {})
        self._limits: dict[str, int] = {}
        """Most that a node of the cluster has of each name."""
        for machine in self._cluster.machines:
            for name, amount in machine.resources.items():
                self._limits[name] = max(amount, self._limits.get(name, 0))

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
            counted; nodes that running pods close (by anti-affinity, affinity, volumes of one pod alone) are allowed;
            what another waiting pod would exclude is not left out; and a running pod to which rules of others refer is
            not bound to its node.

        Raises
        ------
        BadInput
            If there are no pods, they belong to several jobs, or none becomes one (it has ended, or is a daemon).
        Unsupported
            If `read_kubernetes` would leave it out, or keep it without knowing what it holds; says why.
        """
        return self._read(pods).job

    @checked
    def flags(self, *pods: dict[str, Any]) -> dict[str, dict[str, bool]]:
        """
        Return what may be done to the running job of one pod or gang: ``flags`` of ``Engine.update``.

        Parameters
        ----------
        pods
            The objects, as ``json.loads`` returns them.

        Returns
        -------
        dict
            By id of the job: ``movable`` and ``preemptible``. Empty, where it does not run. Rules of other pods that
            refer to it, which make it neither in the whole lists, are not looked at.

        Raises
        ------
        BadInput, Unsupported
            As `job`.
        """
        one = self._read(pods)
        flags = {"movable": one.movable, "preemptible": one.preemptible}
        return {one.job.id: flags} if one.workers else {}

    def _read(self, pods: Sequence[dict[str, Any]]) -> ObservedJob:
        """Return the one job of some pods; raises as `job`."""
        notes = ImportNotes()
        entries = [JsonEntry("pod" if len(pods) == 1 else f"pods[{i}]", pod) for i, pod in enumerate(pods)]
        read = PodList({**self._listed, "Pod": entries}, self._nodes.by_name, self._resource, self._devices, notes)
        exclusive = exclusive_amounts(read, self._nodes, self._limits)
        read.name_amounts(self._nodes.stated, exclusive, self._limits)
        volumes = Volumes(self._listed, read.listed, notes)
        jobs = build_jobs(read, self._nodes, volumes, exclusive.terms, notes, self._rule)
        unknown = [job.unreadable_reason for job in [*jobs, *read.unsupported] if job.unreadable_reason is not None]
        reasons = [*unknown, *(reason for _, reason in notes.names)]
        if unknown or (not jobs and reasons):
            raise Unsupported(f"pod: {reasons[0]}")
        if len(jobs) != 1:
            raise BadInput(f"pods: {len(jobs)} jobs, expected the pods of one")
        return jobs[0]

    @checked
    def node(self, node: dict[str, Any], pods: Sequence[dict[str, Any]] = ()) -> tuple[Node, Machine]:
        """
        Return a node and its machine type.

        Parameters
        ----------
        node
            The object, as ``json.loads`` returns it.
        pods
            Those that run there: the requests of daemons are not for jobs.

        Returns
        -------
        tuple[Node, Machine]
            The machine type is the equal one of the known cluster, or one whose id is new there. The node's domain is
            named by its labels, as in the whole lists unless domains of two levels share a name. A node of the whole
            lists may be drained for more: jobs there hold what cannot be read, or it has as many pods as it takes.

        Raises
        ------
        BadInput
            If the node has no name.
        """
        notes = ImportNotes()
        entries = [JsonEntry(f"pods[{i}]", pod) for i, pod in enumerate(pods)]
        listed = defaultdict(list, {**self._listed, "Node": [JsonEntry("node", node)], "Pod": entries})
        read, devices, resource = read_nodes(listed, self._resource, notes)
        labels = {key for one in read.values() for key in one.labels}
        levels = None if self._levels is None else [key for key in self._levels if key in labels]
        nodes = NodeList(read, levels, "node")
        there = PodList(listed, nodes.by_name, resource, devices, notes)
        there.take_from(nodes.by_name, exclusive_amounts(there, self._nodes, self._limits))
        everywhere = {name: n for name, n in self._limits.items() if name.startswith((PORT, ANTI_AFFINITY))}
        cluster = nodes.cluster(self._limits, everywhere)
        machine = known_machine(cluster.machines[0], self._cluster)
        record = cluster.nodes[0]
        drained = record.drained or record.id in notes.drained
        return record.model_copy(update={"machine": machine.id, "drained": drained}), machine
