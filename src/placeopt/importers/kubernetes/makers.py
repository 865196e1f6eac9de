"""What the makers of gangs say: marks on their pods, and the rules of their objects."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from placeopt.errors import BadInput
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.kubernetes.objects import Listed, object_id

MAX_PODS = 100_000


@dataclass(frozen=True)
class Topology:
    """Rules about the domains in which pods lie; a level is a label of nodes."""

    required: str | None = None
    """Level of which one domain holds all pods."""
    slices: tuple[tuple[str, int], ...] = ()
    """Level and size: the number of pods in a domain of the level is a multiple of the size."""
    whole: bool = False
    """Whether the rules are about the whole gang, not about the role of the pod that states them."""
    preferred: str | None = None
    """Level of which one domain should hold all pods; else one domain of the lowest level above it that can."""

    @property
    def hard_levels(self) -> tuple[str, ...]:
        """Levels of the rules that must hold."""
        return (*filter(None, [self.required]), *(level for level, _ in self.slices))

    @property
    def levels(self) -> tuple[str, ...]:
        """All levels of the rules."""
        return (*self.hard_levels, *filter(None, [self.preferred]))


NO_TOPOLOGY = Topology()


@dataclass(frozen=True)
class GroupRules:
    """
    Rules of a gang, or of a part of one.

    ``pods_min``: Number of pods that run together; None: all of them. ``count``: Number of pods that exist before any
    starts. ``gang``: False: its pods, or its groups, start one by one. ``parts``: Role -> its rules. ``parent``: Group,
    or role, of which this is a part. ``parts_min``: Number of groups that run together. ``partners``: Gangs that start
    together, this one among them. ``first``: Role whose pods start before the others exist. ``unsupported``: Why its
    pods are left out.
    """

    pods_min: int | None = None
    count: int | None = None
    gang: bool = True
    topology: Topology = NO_TOPOLOGY
    parts: Mapping[str, GroupRules] = field(default_factory=dict)
    parent: str | None = None
    parts_min: int | None = None
    partners: tuple[str, ...] = ()
    first: str | None = None
    queue: str | None = None
    unsupported: str | None = None


NO_RULES = GroupRules()


@dataclass(frozen=True)
class GangMembership:
    """
    The gang of a pod, as the pod names it.

    ``id``: Namespace and name; for a pod of the Workload API of Kubernetes 1.35 also the pod group and its replica.
    ``source``: Id of the object with the rules of the gang; None where its maker has none. ``rules``: What the pod
    itself states.
    """

    id: str
    source: str | None = None
    role: str = ""
    rules: GroupRules = NO_RULES


@dataclass(frozen=True)
class Maker:
    """
    Annotations or labels with which a maker of gangs marks pods; of ``name``, the value is the gang's name.

    ``kind``: Of the object with the rules. ``parts``: List of roles; pods without a role are alone. ``index``: Ends the
    name, where one object has several gangs. ``gated``: Whether pods that wait without a gate of Kueue are no members
    any more.
    """

    name: str
    role: str = ""
    kind: str = ""
    count: str = ""
    least: str = ""
    partners: str = ""
    parts: str = ""
    index: str = ""
    gated: bool = False


KUEUE, KAI, LWS = "kueue.x-k8s.io/", "kai.scheduler/", "leaderworkerset.sigs.k8s.io/"
KOORDINATOR, YUNIKORN = "gang.scheduling.koordinator.sh/", "yunikorn.apache.org/"
SIGS, TASK = "pod-group.scheduling.sigs.k8s.io", "volcano.sh/task-spec"
KUEUE_GATES = frozenset({f"{KUEUE}admission", f"{KUEUE}topology"})
"""Scheduling gates that mean waiting for free capacity; a pod behind any other gate is not eligible."""


def _numbers(prefix: str) -> tuple[str, str, str]:
    return f"{prefix}total-number", f"{prefix}min-available", f"{prefix}groups"


_YUNIKORN = Maker(f"{YUNIKORN}app-id", f"{YUNIKORN}task-group-name", parts=f"{YUNIKORN}task-groups")
MAKERS = (
    Maker("scheduling.k8s.io/group-name", TASK, "PodGroup"),  # Volcano
    Maker("scheduling.volcano.sh/group-name", TASK, "PodGroup"),
    Maker(f"{KOORDINATOR}name", "", "PodGroup", *_numbers(KOORDINATOR)),
    Maker("pod-group-name", f"{KAI}subgroup-name", "PodGroup"),  # KAI, run:ai
    Maker("scheduling.x-k8s.io/pod-group", "", "PodGroup"),  # coscheduling of scheduler-plugins
    Maker(SIGS, "", "PodGroup", *_numbers(f"{SIGS}/")),
    Maker(f"{SIGS}/name", "", "PodGroup", *_numbers(f"{SIGS}/")),
    Maker(f"{KUEUE}pod-group-name", f"{KUEUE}role-hash", "", f"{KUEUE}pod-group-total-count"),
    Maker("grove.io/podgang", "grove.io/podclique", "PodGroup"),
    _YUNIKORN,
    replace(_YUNIKORN, name="applicationId"),
    Maker(f"{KUEUE}workload", least=f"{KUEUE}workload-min-count", gated=True),
    Maker(f"{LWS}name", f"{LWS}worker-index", "LeaderWorkerSet", f"{LWS}size", index=f"{LWS}group-index"),
    Maker("jobset.sigs.k8s.io/jobset-name", "jobset.sigs.k8s.io/replicatedjob-name"),  # Kubeflow's Trainer, too
    Maker("training.kubeflow.org/job-name", "training.kubeflow.org/replica-type"),  # PyTorchJob, MPIJob and the like
)
"""
The first whose mark a pod bears names its gang: schedulers, queues, then controllers of jobs that need all of their
pods. A Ray cluster works with those of its pods that run, so it is a gang only where a scheduler is asked for one.
"""
PODSETS = (f"{KUEUE}podset-group-name", f"{KUEUE}podset")
"""Roles of Kueue; PodSets with one group name share their domain."""
REQUIRED = (f"{KUEUE}podset-required-topology", f"{KAI}topology-required-placement")
PREFERRED = (f"{KUEUE}podset-preferred-topology", f"{KAI}topology-preferred-placement")
SLICES = {
    f"{KUEUE}podset-slice-required-topology": f"{KUEUE}podset-slice-size",
    f"{KAI}segment-topology-required-placement": f"{KAI}segment-size",
}
"""Annotation with the level of slices -> annotation with their size."""
NESTED_SLICES = f"{KUEUE}podset-slice-required-topology-constraints"
TOPOLOGY_REQUEST = {
    "required": REQUIRED[0],
    "preferred": PREFERRED[0],
    "podSetGroupName": PODSETS[0],
    "podSetSliceRequiredTopology": f"{KUEUE}podset-slice-required-topology",
    "podSetSliceSize": f"{KUEUE}podset-slice-size",
    "podsetSliceRequiredTopologyConstraints": NESTED_SLICES,
}
"""Field of a PodSet of Kueue -> the annotation that says the same."""
TOPOLOGY = frozenset({*REQUIRED, *PREFERRED, *SLICES, NESTED_SLICES})
MARKS = frozenset(maker.name for maker in MAKERS)
UNREAD_TOPOLOGY = "exclusive-topology"
"""Stands in the names of annotations with which JobSet and LeaderWorkerSet keep other jobs out of a domain."""
TIER = "topology.volcano.sh/tier-"
"""Label that stands for the HyperNodes of a tier; its number or name follows."""


def gang_membership(pod: JsonEntry) -> GangMembership | None:
    """
    Return the gang of a pod, None if it is alone.

    The fields of Kubernetes come first, then the marks of `MAKERS`.
    """
    spec, metadata = pod.entry("spec"), pod.entry("metadata")
    namespace = metadata.text("namespace", "default")
    named = spec.entry("schedulingGroup").text("podGroupName", "")
    if named:
        return GangMembership(f"{namespace}/{named}", f"{namespace}/{named}")
    workload = spec.entry("workloadRef")
    if "name" in workload:
        source = f"{namespace}/{workload.text('name')}/{workload.text('podGroup')}"
        replica = workload.text("podGroupReplicaKey", "")
        return GangMembership(f"{source}/{replica}" if replica else source, source)
    said = {**metadata.texts("labels"), **metadata.texts("annotations")}
    for maker in () if MARKS.isdisjoint(said) else MAKERS:
        if not said.get(maker.name) or (maker.parts and not said.get(maker.role)):
            continue
        gates = (gate.text("name") for gate in spec.entries("schedulingGates"))
        if maker.gated and "nodeName" not in spec and KUEUE_GATES.isdisjoint(gates):
            continue
        own = f"{namespace}/{said[maker.name]}"
        return GangMembership(
            f"{own}-{said.get(maker.index, '0')}" if maker.index else own,
            own if maker.kind == "PodGroup" else f"{maker.kind}/{own}" if maker.kind else None,
            next((said[key] for key in (*PODSETS, maker.role) if said.get(key)), ""),
            _stated(maker, metadata, namespace),
        )
    return None


def _stated(maker: Maker, metadata: JsonEntry, namespace: str) -> GroupRules:
    """Return the rules of a gang that a pod states in its marks."""
    marks = metadata.texts("labels").keys() | metadata.texts("annotations").keys()
    least, count = (_number(metadata, key) if key in marks else 0 for key in (maker.least, maker.count))
    groups = parsed(metadata, maker.parts).entries(maker.parts)
    parts = {one.text("name"): GroupRules(one.integer("minMember", 0, MAX_PODS, 0) or None) for one in groups}
    count = max(least, count, sum(rules.pods_min or 0 for rules in parts.values()))
    partners = _partners(metadata, maker.partners, namespace)
    rules = GroupRules(least or None, count or None, parts=parts, partners=partners)
    return NO_RULES if rules == NO_RULES else rules


def pod_topology(metadata: JsonEntry) -> tuple[Topology, str | None]:
    """Return the rules about domains in the annotations of a pod, and why some of them are not read."""
    said = metadata.texts("annotations")
    unread = min((f"with {key}" for key in said if UNREAD_TOPOLOGY in key), default=None)
    stated = TOPOLOGY & said.keys()
    if not stated:
        return NO_TOPOLOGY, unread
    required, preferred = (next((said[key] for key in keys if said.get(key)), None) for keys in (REQUIRED, PREFERRED))
    try:
        slices = [(said[level], _number(metadata, size)) for level, size in SLICES.items() if level in said]
        nested = parsed(metadata, NESTED_SLICES).entries(NESTED_SLICES)
        slices += [(one.text("topology"), one.integer("size", 1, MAX_PODS)) for one in nested]
    except BadInput as error:
        return NO_TOPOLOGY, f"with metadata{str(error).removeprefix(metadata.where)}"
    return Topology(required, tuple(slices), not any(key.startswith(KUEUE) for key in stated), preferred), unread


def parsed(metadata: JsonEntry, key: str) -> JsonEntry:
    """Return an entry with what a label or an annotation says, parsed as JSON; without it, an empty one."""
    holder = metadata.entry("labels" if key in metadata.entry("labels") else "annotations")
    text = holder.text(key, "")
    try:
        return JsonEntry("", {key: json.loads(text) if text else None}, holder)
    except (ValueError, RecursionError):
        raise holder.bad(key, "a number, or a list as JSON") from None


def _number(metadata: JsonEntry, key: str) -> int:
    return parsed(metadata, key).integer(key, 1, MAX_PODS)


def _partners(metadata: JsonEntry, key: str, namespace: str) -> tuple[str, ...]:
    """Return the gangs of a gang group, by namespace and name."""
    names = parsed(metadata, key).words(key)
    return tuple(sorted(name if "/" in name else f"{namespace}/{name}" for name in names))


def group_rules(listed: Listed) -> Mapping[str, GroupRules]:
    """
    Return the rules of the listed objects, by `GangMembership.source` and `GroupRules.parent`.

    The rules of an unreadable group state that; a group without a readable name counts as not listed.
    """
    rules_of: dict[str, GroupRules] = {}
    for kind, (prefix, read) in READERS.items():
        for entry in listed.get(kind, ()):
            with suppress(BadInput):
                rules_of[prefix + object_id(entry)] = _read(entry, read)
    for entry in listed.get("Workload", ()):
        with suppress(BadInput):
            if entry.text("apiVersion", "").startswith("scheduling.k8s.io/"):  # Kueue's Workload is another
                for part in entry.entry("spec").entries("podGroups"):
                    key = f"{object_id(entry)}/{part.text('name', '')}"
                    rules_of[key] = _read(part, lambda group: _policy(group, "policy"))
    return rules_of


def _read(entry: JsonEntry, read: Callable[[JsonEntry], GroupRules]) -> GroupRules:
    try:
        return read(entry)
    except BadInput as error:
        said = str(error).removeprefix(f"{entry.where}.")
        return GroupRules(unsupported=f"of a PodGroup that cannot be read ({said})")


def _pod_group(entry: JsonEntry) -> GroupRules:
    """Read a PodGroup: Kubernetes' own, or one of the four whose common field is ``minMember``."""
    metadata, spec = entry.entry("metadata"), entry.entry("spec")
    namespace = metadata.text("namespace", "default")
    if "resourceClaims" in spec:
        return GroupRules(unsupported="of a PodGroup with resource claims")
    if "schedulingPolicy" in spec:
        return _policy(spec, "schedulingPolicy", namespace)
    if spec.entries("subGroupPolicy"):
        return GroupRules(unsupported="of a PodGroup with subGroupPolicy")
    if "MustGather" in str(metadata.texts("annotations").get(f"{KOORDINATOR}network-topology-spec", "")):
        return GroupRules(unsupported="of a PodGroup with a network-topology-spec that must gather")
    tasks = spec.entry("minTaskMember")
    parts = {task: GroupRules(tasks.integer(task, 0, MAX_PODS) or None) for task in tasks.names()}
    for one in spec.entries("subGroups"):
        parts[one.text("name")] = GroupRules(
            one.integer("minMember", 0, MAX_PODS, 0) or None,
            topology=_constraint(one),
            parent=one.text("parent", "") or None,
            parts_min=one.integer("minSubGroup", 0, MAX_PODS, 0) or None,
        )
    return GroupRules(
        max(1, spec.integer("minMember", 0, MAX_PODS, 1)),
        topology=_constraint(spec),
        parts=parts,
        parts_min=spec.integer("minSubGroup", 0, MAX_PODS, 0) or None,
        partners=_partners(metadata, f"{KOORDINATOR}groups", namespace),
        queue=spec.text("queue", "") or None,
    )


def _constraint(spec: JsonEntry) -> Topology:
    """Read ``topologyConstraint`` of KAI, or ``networkTopology`` of Volcano."""
    network = spec.entry("networkTopology")
    if "networkTopology" in spec:
        tier = network.text("highestTierName", "") or network.integer("highestTierAllowed", 0, 10**6, 0)
        hard = network.text("mode", "hard") == "hard"
        return Topology(f"{TIER}{tier}") if hard else Topology(preferred=f"{TIER}{tier}")
    stated = spec.entry("topologyConstraint")
    required, preferred = (stated.text(f"{word}TopologyLevel", "") or None for word in ("required", "preferred"))
    return Topology(required, preferred=preferred)


def _policy(owner: JsonEntry, field: str, namespace: str | None = None) -> GroupRules:
    """Read ``schedulingPolicy`` (Kubernetes 1.36 and later) or ``policy`` (1.35), with the constraints beside it."""
    constraints = owner.entry("schedulingConstraints").entries("topology")
    topology = Topology(constraints[0].text("key")) if constraints else NO_TOPOLOGY
    above = owner.text("parentCompositePodGroupName", "")
    parent = f"CompositePodGroup/{namespace}/{above}" if above else None
    gang = owner.entry(field).entry("gang")
    if "gang" not in owner.entry(field):
        return GroupRules(gang=False, topology=topology, parent=parent)
    if "minGroupCount" in gang:
        return GroupRules(parts_min=gang.integer("minGroupCount", 1, MAX_PODS), topology=topology, parent=parent)
    return GroupRules(gang.integer("minCount", 1, MAX_PODS), topology=topology, parent=parent)


def _composite(entry: JsonEntry) -> GroupRules:
    return _policy(entry.entry("spec"), "schedulingPolicy", entry.entry("metadata").text("namespace", "default"))


def _leader_worker_set(entry: JsonEntry) -> GroupRules:
    return GroupRules(first="0" if entry.entry("spec").text("startupPolicy", "") == "LeaderReady" else None)


READERS: Mapping[str, tuple[str, Callable[[JsonEntry], GroupRules]]] = {
    "PodGroup": ("", _pod_group),
    "CompositePodGroup": ("CompositePodGroup/", _composite),
    "LeaderWorkerSet": ("LeaderWorkerSet/", _leader_worker_set),
}
"""Kind of objects -> what begins the ids of their rules, and how they are read."""
