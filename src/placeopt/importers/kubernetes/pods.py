"""Kubernetes pods: what each requests, where it runs, what it asks of its node, and its gang."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Any, NamedTuple, TypeVar

from placeopt.errors import BadInput
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.kubernetes.devices import Devices
from placeopt.importers.kubernetes.makers import (
    KAI,
    KUEUE,
    NO_TOPOLOGY,
    YUNIKORN,
    GangMembership,
    Topology,
    gang_membership,
    pod_topology,
    unread_topology,
)
from placeopt.importers.kubernetes.node_selectors import NodeConditions, node_affinity, tolerations
from placeopt.importers.kubernetes.objects import time_ms
from placeopt.importers.kubernetes.partitions import Part
from placeopt.importers.kubernetes.resources import MAX_AMOUNT, NONE, PODS, in_units, may_be_gpu, requested_amounts
from placeopt.importers.observed_round import MAX_GPUS
from placeopt.importers.priority_rule import annotation_marks
from placeopt.model import Toleration

QUEUES = (f"{KUEUE}queue-name", f"{KUEUE}local-queue-name", f"{KAI}queue", "scheduling.volcano.sh/queue-name")
"""Labels or annotations with a pod's queue (Kueue, KAI, Volcano)."""
FRACTIONS = ("gpu-fraction", "gpu-memory", "runai-gpu-memory")
"""Annotations that request a part of a GPU (KAI, run:ai)."""
GPU_GROUP = "runai-gpu-group"
"""Label that a pod with a part of a GPU shares with the pod that reserves the whole of it (KAI, run:ai)."""
DAEMONS = ("DaemonSet", "Node")
"""Kinds of owners whose pods are daemons."""
ONE_NODE_VOLUMES = ("gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd")
"""Volumes named in the pod itself that the scheduler keeps off a node where another pod holds them."""
Port = tuple[str, str, int]
"""Address, protocol, number of a port of the node."""
T = TypeVar("T")


class Memo:
    """
    What equal parts of specifications say, read once: pods of one template differ in little but their names.

    Reading 20,000 pods takes half the time with it.
    """

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}

    def get(self, content: object, read: Callable[[], T]) -> T:
        """Return what is read of some content, plain objects, and of what else is read with equal content."""
        key = repr(content)
        if key not in self._known:
            self._known[key] = read()
        found: T = self._known[key]
        return found


class Amounts(NamedTuple):
    """What the containers of a pod request."""

    gpus: int
    units: Mapping[str, int]
    """Whole units of all other resources: rounded up while it waits, down while it runs."""
    exact: Mapping[str, Fraction]
    """The same, not rounded."""
    shares: tuple[str, ...]
    """Resources that may be counted GPUs or parts of them."""


@dataclass(eq=False, slots=True)
class Pod:
    """One pod that holds resources or waits for them."""

    entry: JsonEntry
    id: str
    """Namespace and name."""
    uid: str | None
    namespace: str
    labels: Mapping[str, str]
    node: str | None
    queue: str | None
    gpus: int
    profile: tuple[str, int] | None
    """Name of the profile of its part of a GPU, and how many thousandths it is."""
    parts: tuple[Part, ...]
    """Where its GPUs and parts of GPUs are, as far as claims tell."""
    amounts: Mapping[str, int]
    """`Amounts.units`."""
    exact: Mapping[str, Fraction]
    shares: tuple[str, ...]
    """Resources, annotations and claims that may be counted GPUs or parts of them."""
    gpu_groups: tuple[str, ...]
    ports: frozenset[Port]
    claims: Mapping[str, str | None]
    """Names of its volume claims; of one that is made for the pod, its storage class."""
    node_selector: Mapping[str, str]
    conditions: NodeConditions
    """On its node, by its affinity and by devices that it has already."""
    tolerations: tuple[Toleration, ...]
    has_affinity: bool
    """Whether it names an affinity of any kind."""
    gates: tuple[str, ...]
    unsupported: str | None
    """A placement rule that is not read; it matters while the pod waits."""
    group: GangMembership | None
    topology: Topology
    daemon: bool
    ending: bool
    """Whether it is being deleted: it holds its resources, and is no member of its gang any more."""
    placeholder: bool
    """Whether it keeps room for a pod of its task group (YuniKorn)."""
    scheduler: str
    priority: int
    priority_class: str
    preempts: bool
    """Whether its preemptionPolicy lets other pods go for it."""
    marks: Mapping[str, str]
    """What `annotation_marks` returns."""
    created_ms: int
    started_ms: int

    @property
    def node_labels(self) -> set[str]:
        """Labels of nodes that its selector or its affinity names."""
        return {*self.node_selector, *(one.key for term in self.conditions.node_affinity for one in term)}

    @property
    def node_rules(self) -> str:
        """All that its specification says about its node; pods with equal text may run on the same nodes."""
        spec = self.entry.entry("spec")
        chosen = spec.entry("affinity")
        required = {
            key: chosen.entry(key).raw("requiredDuringSchedulingIgnoredDuringExecution") for key in chosen.names()
        }
        return json.dumps([spec.raw("nodeSelector"), required, spec.raw("tolerations")], sort_keys=True)

    @property
    def kind(self) -> object:
        """What alike pods have in common."""
        return self.gpus, self.profile, frozenset(self.amounts.items()), self.ending


def read_pod(entry: JsonEntry, resource: str, devices: Devices, memo: Memo) -> Pod | None:
    """
    Return a pod; None if it has ended, or is terminating without a node.

    ``resource``: The extended resource that counts GPUs. ``devices``: What claims take. ``memo``: Of pods with the same
    ``resource`` and ``devices``.
    """
    metadata, spec, status = entry.entry("metadata"), entry.entry("spec"), entry.entry("status")
    node = spec.text("nodeName", "") or None
    ending = "deletionTimestamp" in metadata
    if status.text("phase", "Pending") in ("Succeeded", "Failed") or (node is None and ending):
        return None
    labels, annotations = metadata.texts("labels"), metadata.texts("annotations")
    namespace, name = metadata.text("namespace", "default"), metadata.text("name")
    gpus, units, exact, shares = memo.get(
        _request_fields(spec, status, runs=node is not None),
        lambda: _requested(spec, status, resource, devices, runs=node is not None),
    )
    shares += tuple(f"annotation {key}" for key in FRACTIONS if key in annotations)
    conditions, tolerated = memo.get(
        spec.raws(("affinity", "tolerations")), lambda: (node_affinity(spec), tolerations(spec))
    )
    profile, parts = None, tuple[Part, ...]()
    if "resourceClaims" in spec or "extendedResourceClaimStatus" in status:
        taken = devices.of(entry, [*exact, *([resource] if gpus else [])], resource)
        gpus += taken.amounts.pop(resource, 0)
        units = {**units, **{key: units.get(key, 0) + count for key, count in taken.amounts.items()}}
        exact = {**exact, **{key: exact.get(key, NONE) + count for key, count in taken.amounts.items()}}
        conditions &= taken.conditions
        shares += tuple(taken.unknown)
        profile, parts = taken.profile, tuple(taken.parts)
        if profile is not None:
            shares += ("a part of a GPU beside whole ones",) * (gpus > 0)
            gpus = 1
    claims, unread_volume = _volumes(spec, name)
    topology, unread_mark = _topology(entry, metadata, annotations)
    return Pod(
        entry,
        f"{namespace}/{name}",
        metadata.text("uid", "") or None,
        namespace,
        labels,
        node,
        next((said[key] for key in QUEUES for said in (labels, annotations) if said.get(key)), None),
        gpus,
        profile,
        parts,
        units,
        exact,
        shares,
        tuple([value for key, value in labels.items() if key.partition("/")[0] == GPU_GROUP]),
        _ports(spec),
        claims,
        spec.texts("nodeSelector"),
        conditions,
        tolerated,
        bool(spec.entry("affinity").names()),
        tuple(gate.text("name") for gate in spec.entries("schedulingGates")),
        _unread_spread(spec) or unread_volume or unread_mark,
        gang_membership(spec, metadata, namespace, labels, annotations),
        topology,
        any(owner.text("kind", "") in DAEMONS for owner in metadata.entries("ownerReferences")),
        ending,
        annotations.get(f"{YUNIKORN}placeholder") == "true",
        spec.text("schedulerName", "default-scheduler"),
        spec.integer("priority", -(2**31), 2**31, 0),
        spec.text("priorityClassName", ""),
        spec.text("preemptionPolicy", "") != "Never",
        annotation_marks(annotations),
        time_ms(metadata, "creationTimestamp"),
        time_ms(status, "startTime"),
    )


def _request_fields(spec: JsonEntry, status: JsonEntry, *, runs: bool) -> object:
    """Return all that `_requested` reads, and no more than that: no two pods have the same mounts."""
    containers, init, resources, overhead = spec.raws(("containers", "initContainers", "resources", "overhead"))
    held, init_held, conditions = status.raws(("containerStatuses", "initContainerStatuses", "conditions"))
    return (
        *(_picked(some, ("name", "resources", "restartPolicy")) for some in (containers, init)),
        *(_picked(some, ("name", "allocatedResources", "resources")) for some in (held, init_held)),
        _picked(conditions, ("type", "reason")),
        resources,
        overhead,
        runs,
    )


def _picked(listed: Any, fields: tuple[str, ...]) -> Any:
    """Return some fields of the objects of a list; what is not a list of objects as it is."""
    if not isinstance(listed, list):
        return listed
    return [tuple(map(one.get, fields)) if isinstance(one, dict) else one for one in listed]


def _requested(spec: JsonEntry, status: JsonEntry, resource: str, devices: Devices, *, runs: bool) -> Amounts:
    """Return what the containers of a pod request, by the names that count devices, and its one of ``pods``."""
    requested = {PODS: Fraction(1)}
    for name, amount in requested_amounts(spec, status).items():
        name = devices.resource(name)
        requested[name] = requested.get(name, NONE) + amount
    gpus = requested.pop(resource, NONE)
    if gpus.denominator != 1 or gpus > MAX_GPUS:
        raise spec.bad("containers", f"whole numbers of {resource}, up to {MAX_GPUS} together")
    shares = tuple(name for name in requested if may_be_gpu(name, resource))
    exact = in_units({name: amount for name, amount in requested.items() if name not in shares})
    units = {name: floor(amount) if runs else ceil(amount) for name, amount in exact.items()}
    if any(amount > MAX_AMOUNT for amount in units.values()):
        raise spec.bad("containers", "amounts that a node can have")
    return Amounts(int(gpus), units, exact, shares)


def _topology(entry: JsonEntry, metadata: JsonEntry, annotations: Mapping[str, str]) -> tuple[Topology, str | None]:
    """Return the rules about domains in a pod's annotations, and why some of them are not read."""
    if not annotations:
        return NO_TOPOLOGY, None
    try:
        unread = unread_topology(annotations)
        return pod_topology(metadata, annotations), unread and f"with {unread}"
    except BadInput as error:
        return NO_TOPOLOGY, f"with {str(error).removeprefix(f'{entry.where}.')}"


def _ports(spec: JsonEntry) -> frozenset[Port]:
    """Return the ports of the node that containers and sidecars take."""
    ports = []
    for container in [*spec.entries("containers"), *spec.entries("initContainers")]:
        for port in container.entries("ports"):
            number = port.integer("hostPort", 0, 65535, 0)
            if number:
                ports.append((port.text("hostIP", ""), port.text("protocol", "TCP"), number))
    return frozenset(ports)


def _volumes(spec: JsonEntry, pod: str) -> tuple[Mapping[str, str | None], str | None]:
    """Return a pod's volume claims, as `Pod.claims`, and a reason why one of its volumes is not read."""
    claims: dict[str, str | None] = {}
    unsupported = None
    for volume in spec.entries("volumes"):
        if "persistentVolumeClaim" in volume:
            claims[volume.entry("persistentVolumeClaim").text("claimName")] = None
        elif "ephemeral" in volume:
            template = volume.entry("ephemeral").entry("volumeClaimTemplate").entry("spec")
            claims[f"{pod}-{volume.text('name')}"] = template.text("storageClassName", "")
        if any(key in volume for key in ONE_NODE_VOLUMES):
            unsupported = f"with a volume in the pod itself of {', '.join(ONE_NODE_VOLUMES)}"
    return claims, unsupported


def _unread_spread(spec: JsonEntry) -> str | None:
    if any(
        constraint.text("whenUnsatisfiable", "DoNotSchedule") != "ScheduleAnyway"
        for constraint in spec.entries("topologySpreadConstraints")
    ):
        return "with a topology spread constraint (DoNotSchedule)"
    return None
