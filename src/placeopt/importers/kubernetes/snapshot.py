"""What ``kubectl get nodes,pods --all-namespaces --output json`` shows, as a round."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from placeopt.arguments import checked
from placeopt.errors import BadInput, Unsupported
from placeopt.importers.import_notes import ImportNotes
from placeopt.importers.json_entry import JsonEntry, read_json
from placeopt.importers.kubernetes.devices import Devices
from placeopt.importers.kubernetes.exclusive_amounts import exclusive_amounts
from placeopt.importers.kubernetes.holds import read_holds
from placeopt.importers.kubernetes.jobs import build_jobs
from placeopt.importers.kubernetes.nodes import Known, NodeCapacity, NodeList, read_node
from placeopt.importers.kubernetes.pod_list import PodList
from placeopt.importers.kubernetes.resources import MIG, is_accelerator
from placeopt.importers.kubernetes.topologies import label_hyper_nodes, topology_levels
from placeopt.importers.kubernetes.volumes import Volumes
from placeopt.importers.observed_round import observed_instance, snapshot_policy
from placeopt.importers.priority_rule import PriorityRule, priority_rule
from placeopt.model import Instance
from placeopt.model.base import MAX_JOBS, MAX_NODES

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
        ``PodList`` holds pods.
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
    nodes, devices, resource = read_nodes(listed, resource, notes)
    _refuse_mig(nodes.values(), resource, where)
    _refuse_other_resources(nodes.values(), resource, where)
    pods = PodList(listed, nodes, resource, devices, notes)
    named = [*topology_levels(listed["Topology"]), *([level] for level in pods.levels)]
    labels = {label for pod in pods.listed for label in pod.rules.labels}
    node_list = NodeList(nodes, levels, where, named, labels)
    exclusive = exclusive_amounts(pods, node_list)
    pods.name_amounts(node_list.stated, exclusive)
    pods.take_from(nodes, exclusive)
    asked = {name for pod in pods.job_pods for name in pod.named}
    cluster = node_list.cluster(asked, exclusive.limits)
    jobs = build_jobs(pods, node_list, Volumes(listed, pods.listed, notes), exclusive.terms, notes, priority_rule(rule))
    jobs += pods.unsupported
    if any(worker.gpus is None for job in jobs for worker in job.workers):
        notes.assume("The API server does not list the GPUs of a pod: the lowest free ones were taken.")
    return observed_instance(
        name or "kubernetes",
        f"Kubernetes: {where}.",
        notes,
        max([0, *(max(pod.created_ms, pod.started_ms) for pod in pods.listed)]),
        cluster,
        jobs,
        snapshot_policy("kubernetes", dict.fromkeys(domain.level for domain in cluster.domains)),
        previous,
        read_holds(listed, pods.listed, jobs, resource, notes),
    )


def read_nodes(
    listed: Mapping[str, list[JsonEntry]], resource: str, notes: ImportNotes
) -> tuple[Mapping[str, NodeCapacity], Devices, str]:
    """Return the listed nodes by name, the devices that claims take, and the name of the resource that counts GPUs."""
    nodes: dict[str, NodeCapacity] = {}
    known: Known = {}
    devices = Devices(listed)
    resource = devices.resource(resource)
    for entry in listed["Node"]:
        node = read_node(entry, resource, notes, known)
        if nodes.setdefault(node.name, node) is not node:
            raise entry.entry("metadata").bad("name", "names of nodes to be unique")
    label_hyper_nodes(listed.get("HyperNode", []), nodes, notes)
    for name, there in devices.on_nodes().items():
        if name in nodes:
            nodes[name].add_devices(there, resource)
    return nodes, devices, resource


def read_objects(
    sources: Sequence[str | Path | dict[str, Any]] | dict[str, Any],
) -> tuple[Mapping[str, list[JsonEntry]], str]:
    """Return the listed objects by kind, and what messages call their files; raises as `read_kubernetes`."""
    sources = [sources] if isinstance(sources, dict) else list(sources)
    where = ", ".join(dict.fromkeys("objects" if isinstance(one, dict) else Path(one).name for one in sources))
    listed: dict[str, list[JsonEntry]] = defaultdict(list)
    for i, source in enumerate(sources):
        document = read_json(source, "objects" if len(sources) == 1 else f"objects[{i}]")
        for kind, item in _items(document):
            listed[kind].append(item)
    if not 1 <= len(listed["Node"]) <= MAX_NODES:
        raise BadInput(f"{where}: {len(listed['Node'])} nodes, expected 1 to {MAX_NODES}; list nodes,pods together")
    if len(listed["Pod"]) > MAX_JOBS:
        raise BadInput(f"{where}: {len(listed['Pod'])} pods, expected at most {MAX_JOBS}")
    return listed, where


def _items(document: JsonEntry) -> list[tuple[str, JsonEntry]]:
    """Return the objects of a list, or the one object, each with its kind."""
    own = document.text("kind", "")
    if "items" in document or own.endswith("List"):  # the API states the kind of a list's items in the list alone
        return [(item.text("kind", own.removesuffix("List")), item) for item in document.entries("items")]
    if own and "metadata" in document:
        return [(own, document)]
    raise BadInput(f"{document.where}: no 'items'; expected the output of kubectl get nodes,pods -A -o json")


def _refuse_other_resources(nodes: Iterable[NodeCapacity], resource: str, where: str) -> None:
    """Raise `BadInput` with the GPU resources of the nodes if none has ``resource``."""
    there = {name for node in nodes for name in node.stated if "/" in name}
    gpus = sorted(name for name in there if is_accelerator(name) and name != resource)
    if resource not in there and (gpus or resource != GPU):
        known = ", ".join(gpus or sorted(there)) or "no resource of a vendor"
        raise BadInput(f"{where}: no node has {resource}; there are: {known}; --resource names what counts GPUs")


def _refuse_mig(nodes: Iterable[NodeCapacity], resource: str, where: str) -> None:
    """Raise `Unsupported` with the remedy if all GPUs are MIG instances with resources of their own."""
    nodes = list(nodes)
    profiles = sorted({name for node in nodes for name in node.stated if name.startswith(MIG)})
    if profiles and resource not in profiles and not any(node.gpus for node in nodes):
        raise Unsupported(
            f"{where}: no node has {resource}, but there are MIG instances: {', '.join(profiles)}; they are read one "
            f"profile at a time, each instance as a GPU: --resource {profiles[0]}"
        )
