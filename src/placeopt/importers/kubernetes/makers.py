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
    """Rules of a gang, or of a part of one."""

    pods_min: int | None = None
    """Number of pods that run together; None: all of them."""
    count: int | None = None
    """Number of pods that exist before any starts."""
    gang: bool = True
    """False: its pods, or its groups, start one by one."""
    topology: Topology = NO_TOPOLOGY
    parts: Mapping[str, GroupRules] = field(default_factory=dict)
    """Role -> its rules."""
    parent: str | None = None
    """Group, or role, of which this is a part."""
    parts_min: int | None = None
    """Number of groups that run together."""
    partners: tuple[str, ...] = ()
    """Gangs that start together, this one among them."""
    first: str | None = None
    """Role whose pods start before the others exist."""
    queue: str | None = None
    unsupported: str | None = None
    """Why its pods are left out."""


NO_RULES = GroupRules()


@dataclass(frozen=True)
class GangMembership:
    """The gang of a pod, as the pod names it."""

    id: str
    """Namespace and name; for a pod of the Workload API of Kubernetes 1.35 also the pod group and its replica."""
    source: str | None = None
    """Id of the object with the rules of the gang; None where its maker has none."""
    role: str = ""
    rules: GroupRules = NO_RULES
    """What the pod itself states."""


@dataclass(frozen=True)
class Maker:
    """Annotations or labels with which a maker of gangs marks pods; of ``name``, the value is the gang's name."""

    name: str
    role: str = ""
    kind: str = ""
    """Kind of the object with the rules."""
    count: str = ""
    least: str = ""
    partners: str = ""
    parts: str = ""
    """List of roles; pods without a role are alone."""
    index: str = ""
    """Ends the name, where one object has several gangs."""
    gated: bool = False
    """Whether pods that wait without a gate of Kueue are no members any more."""


KUEUE, KAI, LWS = "kueue.x-k8s.io/", "kai.scheduler/", "leaderworkerset.sigs.k8s.io/"
KOORDINATOR, YUNIKORN = "gang.scheduling.koordinator.sh/", "yunikorn.apache.org/"
SIGS, TASK = "pod-group.scheduling.sigs.k8s.io", "volcano.sh/task-spec"
KUEUE_GATES = frozenset({f"{KUEUE}admission", f"{KUEUE}topology"})
"""Scheduling gates that mean waiting for free capacity; a pod behind any other gate is left out."""


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
    Maker(f"{KUEUE}workload", gated=True),
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
TOPOLOGY = frozenset({*REQUIRED, *PREFERRED, *SLICES, NESTED_SLICES})
MARKS = frozenset(maker.name for maker in MAKERS)
UNREAD_TOPOLOGY = "exclusive-topology"
"""Stands in the names of annotations with which JobSet and LeaderWorkerSet keep other jobs out of a domain."""
TIER = "topology.volcano.sh/tier-"
"""Label that stands for the HyperNodes of a tier; its number or name follows."""


def gang_membership(
    spec: JsonEntry, metadata: JsonEntry, namespace: str, labels: Mapping[str, str], annotations: Mapping[str, str]
) -> GangMembership | None:
    """
    Return the gang of a pod, None if it is alone.

    The fields of Kubernetes come first, then the marks of `MAKERS`.
    """
    fields = spec.raws(("schedulingGroup", "workloadRef"))
    if fields == (None, None) and MARKS.isdisjoint(labels) and MARKS.isdisjoint(annotations):
        return None
    named = spec.entry("schedulingGroup").text("podGroupName", "")
    if named:
        return GangMembership(f"{namespace}/{named}", f"{namespace}/{named}")
    workload = spec.entry("workloadRef")
    if "name" in workload:
        source = f"{namespace}/{workload.text('name')}/{workload.text('podGroup')}"
        replica = workload.text("podGroupReplicaKey", "")
        return GangMembership(f"{source}/{replica}" if replica else source, source)
    said = {**labels, **annotations}
    for maker in MAKERS:
        if not said.get(maker.name) or (maker.parts and not said.get(maker.role)):
            continue
        if maker.gated and "nodeName" not in spec and not _gates(spec) & KUEUE_GATES:
            continue
        own = f"{namespace}/{said[maker.name]}"
        source = own if maker.kind == "PodGroup" else f"{maker.kind}/{own}"
        return GangMembership(
            f"{own}-{said.get(maker.index, '0')}" if maker.index else own,
            source if maker.kind else None,
            next((said[key] for key in (*PODSETS, maker.role) if said.get(key)), ""),
            _stated(maker, said, metadata, namespace),
        )
    return None


def _gates(spec: JsonEntry) -> frozenset[str]:
    return frozenset(gate.text("name") for gate in spec.entries("schedulingGates"))


def _stated(maker: Maker, said: Mapping[str, str], metadata: JsonEntry, namespace: str) -> GroupRules:
    """Return the rules of a gang that a pod states in its marks."""
    least, count = (_number(metadata, key) if said.get(key) else None for key in (maker.least, maker.count))
    groups = _listed(metadata, maker.parts) if said.get(maker.parts) else []
    if not (least or count or groups or said.get(maker.partners)):
        return NO_RULES
    parts = {one.text("name"): GroupRules(one.integer("minMember", 0, MAX_PODS, 0) or None) for one in groups}
    count = max(least or 0, count or 0, sum(rules.pods_min or 0 for rules in parts.values()))
    partners = _partners(metadata, maker.partners, namespace) if said.get(maker.partners) else ()
    return GroupRules(least, count or None, parts=parts, partners=partners)


def pod_topology(metadata: JsonEntry, annotations: Mapping[str, str]) -> Topology:
    """Return the rules about domains in the annotations of a pod."""
    if TOPOLOGY.isdisjoint(annotations):
        return NO_TOPOLOGY
    slices = [(annotations[level], _number(metadata, size)) for level, size in SLICES.items() if level in annotations]
    if NESTED_SLICES in annotations:
        slices += [(one.text("topology"), _whole(one, "size")) for one in _listed(metadata, NESTED_SLICES)]
    required, preferred = (
        next((annotations[key] for key in keys if annotations.get(key)), None) for keys in (REQUIRED, PREFERRED)
    )
    whole = not any(key.startswith(KUEUE) for key in TOPOLOGY & annotations.keys())
    return Topology(required, tuple(slices), whole, preferred)


def unread_topology(annotations: Mapping[str, str]) -> str | None:
    """Return an annotation with a placement rule that is not read, None if there is none."""
    return min((key for key in annotations if UNREAD_TOPOLOGY in key), default=None)


def _of(metadata: JsonEntry, key: str) -> JsonEntry:
    """Return the labels of an object if they have the key, else its annotations."""
    return metadata.entry("labels" if key in metadata.entry("labels") else "annotations")


def _number(metadata: JsonEntry, key: str) -> int:
    return _whole(_of(metadata, key), key)


def _whole(entry: JsonEntry, key: str) -> int:
    """Return a number of pods; Kueue writes it as text or as a number."""
    value = entry.raw(key)
    text = str(value) if isinstance(value, int) else entry.text(key)
    if not (text.isdecimal() and text.isascii() and 1 <= int(text[:9]) <= MAX_PODS):
        raise entry.bad(key, "a number of pods")
    return int(text)


def _json(metadata: JsonEntry, key: str) -> object:
    try:
        return json.loads(_of(metadata, key).text(key))
    except (ValueError, RecursionError):
        raise _of(metadata, key).bad(key, "a list, as JSON") from None


def _listed(metadata: JsonEntry, key: str) -> list[JsonEntry]:
    """Return the objects of a list that an annotation has as JSON."""
    return JsonEntry("", {key: _json(metadata, key)}, _of(metadata, key)).entries(key)


def _partners(metadata: JsonEntry, key: str, namespace: str) -> tuple[str, ...]:
    """Return the gangs of a gang group, by namespace and name."""
    names = JsonEntry("", {key: _json(metadata, key)}, _of(metadata, key)).words(key)
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
                    rules = _read(part, lambda group: _policy(group.entry("policy"), group))
                    rules_of[f"{object_id(entry)}/{part.text('name', '')}"] = rules
    return rules_of


def _read(entry: JsonEntry, read: Callable[[JsonEntry], GroupRules]) -> GroupRules:
    try:
        return read(entry)
    except BadInput as error:
        return GroupRules(
            unsupported=f"of a PodGroup that cannot be read ({str(error).removeprefix(entry.where + '.')})"
        )


def _pod_group(entry: JsonEntry) -> GroupRules:
    """Read a PodGroup: Kubernetes' own, or one of the four whose common field is ``minMember``."""
    metadata, spec = entry.entry("metadata"), entry.entry("spec")
    namespace = metadata.text("namespace", "default")
    if "resourceClaims" in spec:
        return GroupRules(unsupported="of a PodGroup with resource claims")
    if "schedulingPolicy" in spec:
        return _policy(spec.entry("schedulingPolicy"), spec, namespace)
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
    key = f"{KOORDINATOR}groups"
    return GroupRules(
        max(1, spec.integer("minMember", 0, MAX_PODS, 1)),
        topology=_constraint(spec),
        parts=parts,
        parts_min=spec.integer("minSubGroup", 0, MAX_PODS, 0) or None,
        partners=_partners(metadata, key, namespace) if key in metadata.entry("annotations") else (),
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


def _policy(policy: JsonEntry, owner: JsonEntry, namespace: str | None = None) -> GroupRules:
    """Read ``schedulingPolicy`` (Kubernetes 1.36 and later) or ``policy`` (1.35), with the constraints beside it."""
    constraints = owner.entry("schedulingConstraints").entries("topology")
    topology = Topology(constraints[0].text("key")) if constraints else NO_TOPOLOGY
    above = owner.text("parentCompositePodGroupName", "")
    rules = GroupRules(topology=topology, parent=f"CompositePodGroup/{namespace}/{above}" if above else None)
    gang = policy.entry("gang")
    if "gang" not in policy:
        return replace(rules, gang=False)
    if "minGroupCount" in gang:
        return replace(rules, parts_min=gang.integer("minGroupCount", 1, MAX_PODS))
    return replace(rules, pods_min=gang.integer("minCount", 1, MAX_PODS))


def _composite(entry: JsonEntry) -> GroupRules:
    spec = entry.entry("spec")
    return _policy(spec.entry("schedulingPolicy"), spec, entry.entry("metadata").text("namespace", "default"))


def _leader_worker_set(entry: JsonEntry) -> GroupRules:
    leader_first = entry.entry("spec").text("startupPolicy", "") == "LeaderReady"
    return GroupRules(first="0" if leader_first else None)


READERS: Mapping[str, tuple[str, Callable[[JsonEntry], GroupRules]]] = {
    "PodGroup": ("", _pod_group),
    "CompositePodGroup": ("CompositePodGroup/", _composite),
    "LeaderWorkerSet": ("LeaderWorkerSet/", _leader_worker_set),
}
"""Kind of objects -> what begins the ids of their rules, and how they are read."""
