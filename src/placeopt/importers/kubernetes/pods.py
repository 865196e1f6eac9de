"""Kubernetes pods: requests, node, and gang of each."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from hashlib import sha256
from math import ceil, floor
from typing import Any

from placeopt.errors import BadInput
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.kubernetes.devices import Devices
from placeopt.importers.kubernetes.node_selectors import EVERY_NODE, NodeConditions, node_affinity, tolerations
from placeopt.importers.kubernetes.pod_groups import (
    NO_TOPOLOGY,
    YUNIKORN,
    GangMembership,
    Topology,
    gang_membership,
    pod_topology,
    unread_topology,
)
from placeopt.importers.kubernetes.resources import MAX_AMOUNT, NONE, PODS, in_units, may_be_gpu, requested_amounts
from placeopt.importers.observed_round import MAX_GPUS
from placeopt.importers.priority_rule import annotation_marks
from placeopt.model import Toleration

QUEUES = ("kueue.x-k8s.io/queue-name", "kai.scheduler/queue")
FRACTIONS = ("gpu-fraction", "gpu-memory", "runai-gpu-memory")
"""Annotations that request a part of a GPU (KAI, run:ai)."""
PLACEHOLDER = f"{YUNIKORN}placeholder"
DAEMONS = ("DaemonSet", "Node")
"""Kinds of owners whose pods are daemons."""
NO_MARKS: Mapping[str, str] = {}
NO_CLAIMS: Mapping[str, str | None] = {}
GPU_GROUP = "runai-gpu-group"
"""Label that a pod with a part of a GPU shares with the pod that reserves the whole of it (KAI, run:ai)."""
ONE_NODE_VOLUMES = ("gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd")
"""Volumes named in the pod itself that the scheduler keeps off a node where another pod holds them."""

NO_CLAIM = frozenset({"persistentVolumeClaim", "ephemeral", *ONE_NODE_VOLUMES})
"""Volumes that have none of these need no reading."""
CONTAINER_FIELDS = ("name", "resources", "restartPolicy")
STATUS_FIELDS = ("name", "allocatedResources", "resources")
RULE_FIELDS = (
    *("nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "schedulingGates"),
    *("priority", "priorityClassName", "preemptionPolicy", "schedulerName"),
)
"""What is read of containers, of their status, and of the specification beside them."""
content_key: Callable[[object], object] = repr
"""Of plain objects: equal for equal content."""
MAX_ID = 253
ONE_POD = Fraction(1)

Port = tuple[str, str, int]
"""Address, protocol, number of a port of the node."""


@dataclass(eq=False, slots=True)
class PodAmounts:
    """What the containers of a pod request; one object for all pods with equal requests."""

    gpus: int
    cpu_millicores: int
    memory_mib: int
    named: Mapping[str, int]
    """Other amounts of its node, such as its one of the node's ``pods``."""
    exact: Mapping[str, Fraction]
    """All amounts but GPUs, not rounded to whole units."""
    below_units: Mapping[str, Fraction]
    """By how much they exceed the whole units, where they do."""
    shares: tuple[str, ...]
    """Resources that may be a counted GPU or a part of one."""

    def plus(self, devices: Mapping[str, int], resource: str) -> PodAmounts:
        """Return these amounts with devices beside; ``resource``: the one that counts GPUs."""
        others = {name: count for name, count in devices.items() if name != resource}
        return replace(
            self,
            gpus=self.gpus + devices.get(resource, 0),
            named={**self.named, **{name: self.named.get(name, 0) + count for name, count in others.items()}},
            exact={**self.exact, **{name: self.exact.get(name, NONE) + count for name, count in others.items()}},
        )


@dataclass(eq=False, slots=True)
class PodRules:
    """What the specification of a pod says but for its containers; one object for all pods with equal rules."""

    text: str
    """All rules about its node; pods with equal text may run on the same nodes."""
    node_selector: dict[str, str]
    conditions: NodeConditions
    labels: frozenset[str]
    """Labels of nodes that the selector or the conditions name."""
    tolerations: tuple[Toleration, ...]
    scheduling_gates: tuple[str, ...]
    unsupported: str | None
    priority: int
    priority_class: str
    preempts: bool
    """Whether its preemptionPolicy lets other pods go for it."""
    scheduler: str
    has_affinity: bool
    """Whether it names an affinity of any kind."""


@dataclass(eq=False, slots=True)
class Pod:
    """One pod that holds resources or waits for them."""

    entry: JsonEntry
    id: str
    uid: str | None
    namespace: str
    labels: Mapping[str, str]
    node: str | None
    amounts: PodAmounts
    gpus: int
    named: Mapping[str, int]
    """Of its amounts; with what it takes alone of its node, such as ports."""
    shares: tuple[str, ...]
    """Of its amounts, and annotations and claims that may be parts of GPUs, too."""
    gpu_groups: tuple[str, ...]
    ports: frozenset[Port]
    claims: Mapping[str, str | None]
    """Names of its volume claims; of one that is made for the pod, its storage class."""
    conditions: NodeConditions
    """On its node, by devices that it has already."""
    group: GangMembership | None
    daemon: bool
    unsupported: str | None
    """A placement rule that is not read; it matters while the pod waits."""
    topology: Topology
    ending: bool
    """Whether it is being deleted: it holds its resources, and is no member of its gang any more."""
    placeholder: bool
    """Whether it keeps room for a pod of its task group (YuniKorn)."""
    created_ms: int
    started_ms: int
    marks: Mapping[str, str]
    """What `annotation_marks` returns."""
    queue: str | None
    rules: PodRules


class PodReader:
    """
    Reads pods. What equal parts of their specifications say is read once and kept, as long as the reader is.

    ``resource``: The extended resource that counts GPUs. ``devices``: What claims take.
    """

    def __init__(self, resource: str, devices: Devices) -> None:
        self._resource, self._devices = resource, devices
        self._amounts: dict[object, PodAmounts] = {}
        self._rules: dict[object, PodRules] = {}

    def read(self, entry: JsonEntry) -> Pod | None:
        """Return a pod; None if it has ended, or is terminating without a node."""
        metadata, spec, status = entry.entry("metadata"), entry.entry("spec"), entry.entry("status")
        node = spec.text("nodeName", "") or None
        if status.text("phase", "Pending") in ("Succeeded", "Failed") or (
            node is None and "deletionTimestamp" in metadata
        ):
            return None
        labels, annotations = metadata.texts("labels"), metadata.texts("annotations")
        namespace, name = metadata.text("namespace", "default"), metadata.text("name")
        pod_id, uid = f"{namespace}/{name}", metadata.text("uid", "") or None
        queue = labels.get(QUEUES[0]) or labels.get(QUEUES[1]) or None
        amounts = self._read_amounts(spec, status, runs=node is not None)
        shares = amounts.shares
        if annotations:
            shares += tuple(f"annotation {key}" for key in FRACTIONS if key in annotations)
        rules, conditions = self._read_rules(spec), EVERY_NODE
        if "resourceClaims" in spec or "extendedResourceClaimStatus" in status:
            requested = [*amounts.exact, *([self._resource] if amounts.gpus else [])]
            devices = self._devices.of(entry, requested, gpus=amounts.gpus)
            amounts, conditions = amounts.plus(devices.amounts, self._resource), devices.conditions
            shares += tuple(devices.unknown)
        claims, unsupported = _volumes(spec, name)
        unsupported = rules.unsupported or unsupported
        topology = NO_TOPOLOGY
        if annotations:
            try:
                topology = pod_topology(metadata, annotations)
                unread = unread_topology(annotations)
            except BadInput as error:
                unread = str(error).removeprefix(f"{entry.where}.")
            unsupported = unsupported or (unread and f"with {unread}")
        return Pod(
            entry,
            pod_id,
            uid,
            namespace,
            labels,
            node,
            amounts,
            amounts.gpus,
            amounts.named,
            shares,
            tuple([value for key, value in labels.items() if key.partition("/")[0] == GPU_GROUP]),
            _ports(spec),
            claims,
            conditions,
            gang_membership(spec, metadata, namespace, labels, annotations),
            any([owner.text("kind", "") in DAEMONS for owner in metadata.entries("ownerReferences")]),  # noqa: C419
            unsupported,
            topology,
            "deletionTimestamp" in metadata,
            annotations.get(PLACEHOLDER) == "true",
            time_ms(metadata, "creationTimestamp"),
            time_ms(status, "startTime"),
            annotation_marks(annotations) if annotations else NO_MARKS,
            queue,
            rules,
        )

    def _read_amounts(self, spec: JsonEntry, status: JsonEntry, *, runs: bool) -> PodAmounts:
        containers, init, resources, overhead = spec.raws(("containers", "initContainers", "resources", "overhead"))
        held = status.raws(("containerStatuses", "initContainerStatuses"))
        parts = [picked(some, CONTAINER_FIELDS) for some in (containers, init)]
        kept = [picked(some, STATUS_FIELDS) for some in held]
        conditions = picked(status.raw("conditions"), ("type", "reason"))
        key = content_key((*parts, resources, overhead, *kept, conditions, runs))
        if key not in self._amounts:
            self._amounts[key] = self._count(spec, status, runs=runs)
        return self._amounts[key]

    def _count(self, spec: JsonEntry, status: JsonEntry, *, runs: bool) -> PodAmounts:
        """Return what a pod requests; amounts of one that waits are rounded up, of one that runs down."""
        requested = {PODS: ONE_POD}
        for name, amount in requested_amounts(spec, status).items():
            name = self._devices.resource(name)
            requested[name] = requested.get(name, NONE) + amount
        gpus = requested.pop(self._resource, NONE)
        if gpus.denominator != 1 or gpus > MAX_GPUS:
            raise spec.bad("containers", f"whole numbers of {self._resource}, up to {MAX_GPUS} together")
        shares = tuple(name for name in requested if may_be_gpu(name, self._resource))
        exact = in_units({name: amount for name, amount in requested.items() if name not in shares})
        units = {name: floor(amount) if runs else ceil(amount) for name, amount in exact.items()}
        if any(amount > MAX_AMOUNT for amount in units.values()):
            raise spec.bad("containers", "amounts that a node can have")
        return PodAmounts(
            gpus=int(gpus),
            cpu_millicores=units.pop("cpu", 0),
            memory_mib=units.pop("memory", 0),
            named=units,
            exact=exact,
            below_units={name: amount % 1 for name, amount in exact.items() if amount % 1},
            shares=shares,
        )

    def _read_rules(self, spec: JsonEntry) -> PodRules:
        key = content_key(spec.raws(RULE_FIELDS))
        if key not in self._rules:
            selector, conditions = spec.texts("nodeSelector"), node_affinity(spec)
            self._rules[key] = PodRules(
                _rules(spec),
                selector,
                conditions,
                frozenset([*selector, *(one.key for term in conditions.node_affinity for one in term)]),
                tolerations(spec),
                tuple(gate.text("name") for gate in spec.entries("schedulingGates")),
                _unread_spread(spec),
                spec.integer("priority", -(2**31), 2**31, 0),
                spec.text("priorityClassName", ""),
                spec.text("preemptionPolicy", "") != "Never",
                spec.text("schedulerName", "default-scheduler"),
                bool(spec.entry("affinity").names()),
            )
        return self._rules[key]


def picked(listed: Any, fields: tuple[str, ...]) -> Any:
    """Return some fields of the objects of a list; what is not a list of objects as it is."""
    if not isinstance(listed, list):
        return listed
    return [tuple(map(one.get, fields)) if isinstance(one, dict) else one for one in listed]


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
    volumes = spec.raw("volumes")
    if volumes is None:
        return NO_CLAIMS, None
    if isinstance(volumes, list) and all(isinstance(one, dict) and NO_CLAIM.isdisjoint(one) for one in volumes):
        return NO_CLAIMS, None
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


def _rules(spec: JsonEntry) -> str:
    """Return the rules about a pod's node, as text."""
    chosen = spec.entry("affinity")
    required = {key: chosen.entry(key).raw("requiredDuringSchedulingIgnoredDuringExecution") for key in chosen.names()}
    parts = [spec.raw("nodeSelector"), required, spec.raw("tolerations")]
    return json.dumps(parts, sort_keys=True)


def job_id(name: str) -> str:
    """Return a name of at most 253 characters; a longer one is cut and hashed."""
    return name if len(name) <= MAX_ID else f"{name[: MAX_ID - 17]}~{sha256(name.encode()).hexdigest()[:16]}"


def unreadable_field(entry: JsonEntry, error: BadInput) -> str:
    """Return the text of an error without the place of the object in its file."""
    return f"of which {str(error).removeprefix(entry.where).removeprefix('.')}"


def time_ms(entry: JsonEntry, key: str) -> int:
    """Return a time as ``2026-11-22T02:41:55Z``, in ms since 1970; 0 where it is left out."""
    text = entry.text(key, "")
    if not text:
        return 0
    try:
        seconds = datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError):
        raise entry.bad(key, "a time such as 2026-11-22T02:41:55Z") from None
    if not 0 <= seconds < 10**10:
        raise entry.bad(key, "a time since 1970")
    return int(1000 * seconds)
