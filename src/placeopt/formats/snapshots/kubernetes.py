"""What ``kubectl get nodes,pods --all-namespaces --output json`` shows, as a round."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from placeopt.errors import BadInput, Unsupported
from placeopt.formats.snapshots.entries import Entry, read_json
from placeopt.formats.snapshots.found import Notes, Seen, Worker, instance_of, made, snapshot_policy
from placeopt.formats.snapshots.kubernetes_nodes import EMPTY, Capacity, cluster_of, read_node
from placeopt.formats.snapshots.kubernetes_pods import KUEUE_GATES, Pod, mib, millicores, read_pod
from placeopt.formats.snapshots.selectors import affinity, tolerated
from placeopt.model import Demand, Instance, Job, Option, Split
from placeopt.model.base import MAX_JOBS, MAX_NODES

GPU = "nvidia.com/gpu"


def read_kubernetes(
    paths: Sequence[str | Path],
    *,
    resource: str = GPU,
    levels: Sequence[str] | None = None,
    name: str | None = None,
) -> Instance:
    """
    Read what Kubernetes shows at one moment.

    Parameters
    ----------
    paths
        Lists of nodes, pods and, where there are gangs, pod groups, in one file or several.
    resource
        The extended resource that counts GPUs.
    levels
        Labels of nodes that tell domains, from the top down; by default those of region, zone, block and rack that are
        known (`LEVEL_LABELS`).
    name
        Of the instance, ``kubernetes`` by default.

    Returns
    -------
    Instance
        What is allocatable on a node, less what its daemons (pods of a DaemonSet, static pods) ask for. Cordoned nodes
        and those that are not ready are ``drained``. A pod is one worker, by what it requests; pods on a node run,
        those without wait. Pods that are alike and of one group (Volcano's and coscheduling's PodGroup, Kueue's pod
        group) are one gang; all of them, or as many as its ``minMember`` says. A job is worth 1000 a GPU, without one
        1; ``priority`` is the rank of Kubernetes'.

    Raises
    ------
    BadInput
        If a file cannot be read, or a field is not what Kubernetes writes; the field is named. Also if no node knows
        the resource; names those of GPUs that nodes have.
    Unsupported
        If no node has the resource, but some have MIG instances; names theirs.

    Notes
    -----
    The API server does not tell which GPUs a pod has: the lowest free ones are taken. With time slicing every replica
    counts as a GPU, as it does for Kubernetes' scheduler, and so does every MIG instance where all are alike (NVIDIA's
    strategy ``single``). Where profiles are resources of their own (``mixed``), ``resource`` names one of them;
    pods that wait for another are left out, those that run hold CPU and memory only. Affinity between pods, spread
    constraints and volumes are not read. CPU and memory of pods that run are rounded down, of those that wait up, to
    millicores and MiB.
    """
    items = [item for path in paths for item in _items(read_json(path))]
    where = ", ".join(Path(path).name for path in paths)
    by_kind: dict[str, list[Entry]] = defaultdict(list)
    for item in items:
        by_kind[item.text("kind", "")].append(item)
    if not 1 <= len(by_kind["Node"]) <= MAX_NODES:
        raise BadInput(f"{where}: {len(by_kind['Node'])} nodes, expected 1 to {MAX_NODES}; list nodes,pods together")
    if len(by_kind["Pod"]) > MAX_JOBS:
        raise BadInput(f"{where}: {len(by_kind['Pod'])} pods, expected at most {MAX_JOBS}")
    nodes: dict[str, Capacity] = {}
    for one in by_kind["Node"]:
        node = read_node(one, resource)
        if nodes.setdefault(node.name, node) is not node:
            raise one.entry("metadata").bad("name", "names of nodes to be unique")
    _refuse_mig(nodes.values(), resource, where)
    _refuse_other_resources(by_kind["Node"], resource, where)
    pods = [pod for pod in (read_pod(one, resource) for one in by_kind["Pod"]) if pod is not None]
    minimum = {
        f"{one.entry('metadata').text('namespace', 'default')}/{one.entry('metadata').text('name')}": one.entry(
            "spec"
        ).integer("minMember", 0, 100_000, 1)
        for one in by_kind["PodGroup"]
    }
    notes = Notes()
    if held := sorted({name for pod in pods if pod.node is not None for name in pod.mig}):
        notes.assume(f"Of pods with {', '.join(held)} only CPU and memory are read: GPUs are counted by {resource}.")
    work = [pod for pod in pods if not _taken_by_daemon(pod, nodes)]
    cluster, level_of = cluster_of(list(nodes.values()), levels, where)
    seen = _Gangs(nodes, level_of, minimum, notes).read(work)
    if any(worker.gpus is None for one in seen for worker in one.workers):
        notes.assume("The API server does not tell which GPUs a pod holds: the lowest free ones were taken.")
    return instance_of(
        name or "kubernetes",
        f"Kubernetes: {where}.",
        notes,
        max([0, *(max(pod.created_ms, pod.started_ms) for pod in pods)]),
        cluster,
        seen,
        snapshot_policy("kubernetes", dict.fromkeys(domain.level for domain in cluster.domains)),
    )


def _items(document: Entry) -> list[Entry]:
    """Return the objects of a list, or the one object."""
    if "items" in document:
        return document.entries("items")
    if document.text("kind", "") in ("Node", "Pod", "PodGroup"):
        return [document]
    raise BadInput(f"{document.where}: no 'items'; expected the output of kubectl get nodes,pods -A -o json")


def _refuse_other_resources(nodes: Iterable[Entry], resource: str, where: str) -> None:
    """Say what GPUs are called here, where no node knows ``resource``: it would be a cluster without any."""
    there: set[str] = set()
    for node in nodes:
        status = node.entry("status")
        room = status.raw("allocatable" if "allocatable" in status else "capacity")
        there.update(name for name in (room if isinstance(room, dict) else ()) if "/" in name)
    gpus = sorted(name for name in there if "gpu" in name)
    if resource not in there and (gpus or resource != GPU):
        known = ", ".join(gpus or sorted(there)) or "no resource of a vendor"
        raise BadInput(f"{where}: no node has {resource}; there are: {known}; --resource names what counts GPUs")


def _refuse_mig(nodes: Iterable[Capacity], resource: str, where: str) -> None:
    """Say what to do where all GPUs are cut into MIG instances that are resources of their own."""
    nodes = list(nodes)
    found = sorted({name for node in nodes for name in node.mig})
    if found and resource not in found and not any(node.gpus for node in nodes):
        raise Unsupported(
            f"{where}: no node has {resource}, but there are MIG instances: {', '.join(found)}; they are read one "
            f"profile at a time, each instance as a GPU: --resource {found[0]}"
        )


def _taken_by_daemon(pod: Pod, nodes: Mapping[str, Capacity]) -> bool:
    """Take what a daemon asks for from its node; tell whether the pod is one."""
    if not pod.daemon or pod.gpus:
        return False
    node = nodes.get(pod.node or "")
    if node is not None:
        node.taken[0] += millicores(pod.cpu, up=True)
        node.taken[1] += mib(pod.memory, up=True)
    return True


class _Gangs:
    """Makes jobs of pods: one of each, or one of all that are alike in a group."""

    def __init__(
        self, nodes: Mapping[str, Capacity], levels: Mapping[str, str], minimum: Mapping[str, int], notes: Notes
    ) -> None:
        self._nodes, self._levels, self._minimum, self._notes = nodes, levels, minimum, notes
        self._taints = tuple(dict.fromkeys(taint for node in nodes.values() for taint in node.taints))

    def read(self, pods: Iterable[Pod]) -> list[Seen]:
        """Return the jobs, in the order of their first pods."""
        groups: dict[tuple[object, ...], list[Pod]] = {}
        for pod in pods:
            if pod.node is None and set(pod.gates) - set(KUEUE_GATES):
                self._notes.leave_out("behind a scheduling gate", pod.id)
                continue
            if pod.node is None and pod.mig:
                self._notes.leave_out(f"waiting for {', '.join(pod.mig)} (--resource reads one profile)", pod.id)
                continue
            groups.setdefault((pod.group,) if pod.group else (None, pod.id), []).append(pod)
        return [one for (group, *_), members in groups.items() for one in self._jobs(group, members)]

    def _jobs(self, group: object, members: list[Pod]) -> list[Seen]:
        """Split a group by shape, and by whether its pods run; most groups stay one."""
        parts: dict[tuple[object, ...], list[Pod]] = {}
        for pod in members:
            up = pod.node is None
            shape = (pod.gpus, millicores(pod.cpu, up=up), mib(pod.memory, up=up), up)
            parts.setdefault(shape, []).append(pod)
        if group is None:
            return [self._job(pods[0].id, pods, len(pods)) for pods in parts.values()]
        running = sum(pod.node is not None for pod in members)
        total = members[0].group_count
        if total is not None and len(members) < total and not running:
            self._notes.leave_out(f"a group of which some pods are missing ({len(members)} of {total})", str(group))
            return []
        least = self._minimum.get(str(group), len(members))
        found = []
        for number, pods in enumerate(parts.values()):
            name = str(group) if not number else f"{group}+{number}"
            waits = pods[0].node is None
            alone = len({pod.node is None for pod in members}) == 1 and len(parts) == 1
            need = least if alone else max(1, least - running) if waits else len(pods)
            found.append(self._job(name, pods, max(1, min(len(pods), need))))
        if len(parts) > 1:
            self._notes.assume("Groups of pods that are not alike, or of which some run, are a job for each kind.")
        return found

    def _job(self, name: str, pods: list[Pod], least: int) -> Seen:
        first, count = pods[0], len(pods)
        up = first.node is None
        if not up:
            least = count
        spec = first.entry.entry("spec")
        demand = made(
            Demand,
            first.entry.where,
            gpus=first.gpus,
            cpu_millicores=millicores(first.cpu, up=up),
            memory_mib=mib(first.memory, up=up),
        )
        worth = 1000 * first.gpus or 1
        level = self._levels.get(first.topology or "")
        if first.topology and level is None and first.topology != "kubernetes.io/hostname":
            self._notes.assume(f"No node tells {first.topology}: jobs that must stay within one such domain may not.")
        option = made(
            Option,
            first.entry.where,
            workers=count,
            workers_min=least if least < count else None,
            demand=demand,
            splits=(Split(level=level, domains=1),) if level else (),
            value=worth * least,
            value_per_extra_worker=worth if least < count else 0,
        )
        accepts = affinity(spec)
        allowed = None
        if accepts is not None:
            allowed = tuple(node.name for node in self._nodes.values() if accepts(node.name, node.labels))
        job = made(
            Job,
            first.entry.where,
            id=name,
            kind="training" if first.gpus else "cpu",
            user=first.namespace,
            queue=first.queue,
            arrival_ms=min(pod.created_ms for pod in pods),
            options=(option,),
            node_selector={key: value or EMPTY for key, value in spec.texts("nodeSelector").items()},
            nodes_allowed=allowed,
            tolerations=tolerated(spec, self._taints),
        )
        workers = tuple(Worker(pod.node, () if not pod.gpus else None) for pod in pods if pod.node is not None)
        return Seen(
            job,
            workers,
            started_ms=max((pod.started_ms for pod in pods), default=0),
            priority=first.priority,
            where=first.entry.where,
        )
