"""Kubernetes pods: requests, node, and gang of each."""

from __future__ import annotations

import json
import marshal
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from hashlib import sha256
from math import ceil, floor
from typing import Any

from placeopt.errors import BadInput
from placeopt.formats.json_entry import JsonEntry
from placeopt.formats.kubernetes.node_selectors import NodeConditions, node_affinity, tolerations
from placeopt.formats.kubernetes.pod_groups import (
    NO_TOPOLOGY,
    YUNIKORN,
    GangMembership,
    Topology,
    gang_membership,
    pod_topology,
    unread_topology,
)
from placeopt.formats.kubernetes.resources import MIB, NONE, kind_of, named_amounts, requested_amounts
from placeopt.formats.observed_round import is_plain
from placeopt.formats.priority_rule import annotation_marks
from placeopt.model import Toleration

QUEUES = ("kueue.x-k8s.io/queue-name", "kai.scheduler/queue")
FRACTIONS = ("gpu-fraction", "gpu-memory", "runai-gpu-memory")
"""Annotations that request a part of a GPU (KAI, run:ai)."""
PLACEHOLDER = f"{YUNIKORN}placeholder"
DAEMONS = ("DaemonSet", "Node")
"""Kinds of owners whose pods are daemons."""
NO_MARKS: Mapping[str, str] = {}
GPU_GROUP = "runai-gpu-group"
"""Label that a pod with a part of a GPU shares with the pod that reserves the whole of it (KAI, run:ai)."""
NOT_GPU_DRIVERS = ("compute-domain.nvidia.com", "dra.net")
"""DRA drivers whose devices are channels and network cards."""
ONE_NODE_VOLUMES = ("gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd")
"""Volumes named in the pod itself that the scheduler keeps off a node where another pod holds them."""

NO_CLAIM = frozenset({"persistentVolumeClaim", "ephemeral", *ONE_NODE_VOLUMES})
"""Volumes that have none of these need no reading."""
CONTAINER_FIELDS = ("name", "resources", "ports", "restartPolicy")
STATUS_FIELDS = ("name", "allocatedResources")
RULE_FIELDS = (
    *("nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "schedulingGates"),
    *("priority", "priorityClassName", "preemptionPolicy", "schedulerName"),
)
"""What is read of containers, of their status, and of the specification beside them."""
MAX_ID = 253
ONE_POD = Fraction(1)

Port = tuple[str, str, int]
"""Address, protocol, number of a port of the node."""


@dataclass(eq=False, slots=True)
class PodAmounts:
    """What the containers of a pod request; one object for all pods with equal requests."""

    gpus: int
    cpu: Fraction
    """Cores."""
    memory: Fraction
    """Bytes."""
    named: Mapping[str, int]
    """Extended resources that the round counts."""
    other_resources: Mapping[str, Fraction]
    """Other resources of which a node has an amount; each pod takes one of its node's ``pods``."""
    devices: tuple[str, ...]
    """Accelerators other than the counted GPUs."""
    shares: tuple[str, ...]
    """Resources that may be a counted GPU or a part of one."""
    ports: frozenset[Port]
    floats: tuple[float, float, float]
    """GPUs, millicores, MiB."""
    below_units: tuple[Fraction, Fraction]
    """Parts of CPU and memory below a whole millicore and MiB."""
    rounded_down: tuple[int, int]
    """Millicores and MiB."""
    rounded_up: tuple[int, int]


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
    other_resources: Mapping[str, Fraction]
    devices: tuple[str, ...]
    shares: tuple[str, ...]
    """Of its amounts, and annotations and claims that may be parts of GPUs, too."""
    gpu_groups: tuple[str, ...]
    ports: frozenset[Port]
    claims: tuple[str, ...]
    """Names of its volume claims."""
    group: GangMembership | None
    daemon: bool
    scheduling_gates: tuple[str, ...]
    unsupported: str | None
    """A placement rule that is not read; it matters while the pod waits."""
    topology: Topology
    ending: bool
    """Whether it is being deleted: it holds its resources, and is no member of its gang any more."""
    placeholder: bool
    """Whether it keeps room for a pod of its task group (YuniKorn)."""
    created_ms: int
    started_ms: int
    priority: int
    priority_class: str
    preempts: bool
    marks: Mapping[str, str]
    """What `annotation_marks` returns."""
    queue: str | None
    scheduler: str
    rules: str
    spec_rules: PodRules
    has_affinity: bool
    plain: bool
    """Whether name, UID, namespace and queue are names that every record takes."""


class PodReader:
    """
    Reads pods. What equal parts of their specifications say is read once and kept, as long as the reader is.

    ``resource``: The extended resource that counts GPUs. ``drivers``: Of ResourceClaims that are allocated, by
    namespace and name: the drivers of their devices.
    """

    def __init__(self, resource: str, drivers: Mapping[str, frozenset[str]]) -> None:
        self._resource, self._drivers = resource, drivers
        self._amounts: dict[bytes, PodAmounts] = {}
        self._rules: dict[bytes, PodRules] = {}

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
        amounts = self._read_amounts(spec, status)
        shares = amounts.shares
        if annotations:
            shares += tuple(f"annotation {key}" for key in FRACTIONS if key in annotations)
        rules = self._read_rules(spec)
        if "resourceClaims" in spec or "extendedResourceClaimStatus" in status:
            shares += tuple(_device_claims(entry, namespace, node is not None, self._drivers))
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
            amounts.other_resources,
            amounts.devices,
            shares,
            tuple([value for key, value in labels.items() if key.partition("/")[0] == GPU_GROUP]),
            amounts.ports,
            claims,
            gang_membership(spec, metadata, namespace, labels, annotations),
            any([owner.text("kind", "") in DAEMONS for owner in metadata.entries("ownerReferences")]),  # noqa: C419
            rules.scheduling_gates,
            unsupported,
            topology,
            "deletionTimestamp" in metadata,
            annotations.get(PLACEHOLDER) == "true",
            time_ms(metadata, "creationTimestamp"),
            time_ms(status, "startTime"),
            rules.priority,
            rules.priority_class,
            rules.preempts,
            annotation_marks(annotations) if annotations else NO_MARKS,
            queue,
            rules.scheduler,
            rules.text,
            rules,
            rules.has_affinity,
            bool(namespace) and is_plain(f"{pod_id}{uid or ''}{queue or ''}"),
        )

    def _read_amounts(self, spec: JsonEntry, status: JsonEntry) -> PodAmounts:
        containers, init, resources, overhead = spec.raws(("containers", "initContainers", "resources", "overhead"))
        held = status.raw("containerStatuses")
        parts = [picked(some, CONTAINER_FIELDS) for some in (containers, init)]
        key = content_key((*parts, resources, overhead, picked(held, STATUS_FIELDS)))
        known = None if key is None else self._amounts.get(key)
        if known is None:
            known = _amounts(spec, status, self._resource)
            if key is not None:
                self._amounts[key] = known
        return known

    def _read_rules(self, spec: JsonEntry) -> PodRules:
        key = content_key(spec.raws(RULE_FIELDS))
        known = None if key is None else self._rules.get(key)
        if known is None:
            selector, conditions = spec.texts("nodeSelector"), node_affinity(spec)
            known = PodRules(
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
            if key is not None:
                self._rules[key] = known
        return known


def content_key(parts: Any) -> bytes | None:
    """Return the content of plain objects as bytes; None where others are among them."""
    try:
        return marshal.dumps(parts, 2)  # of later versions the bytes depend on which objects are shared
    except ValueError:
        return None


def picked(listed: Any, fields: tuple[str, ...]) -> Any:
    """Return some fields of the objects of a list; what is not a list of objects as it is."""
    if not isinstance(listed, list):
        return listed
    return [tuple(map(one.get, fields)) if isinstance(one, dict) else one for one in listed]


def _amounts(spec: JsonEntry, status: JsonEntry, resource: str) -> PodAmounts:
    requested = dict(requested_amounts(spec, status))
    gpus = requested.pop(resource, NONE)
    if gpus.denominator != 1 or gpus > 1024:
        raise spec.bad("containers", f"whole numbers of {resource}, up to 1024 together")
    cpu, memory = requested.pop("cpu", NONE), requested.pop("memory", NONE)
    named = named_amounts(requested, resource)
    kinds = {key: kind_of(key, resource) for key in requested if key not in named}
    thousandths, mib = 1000 * cpu, memory / MIB
    return PodAmounts(
        gpus=int(gpus),
        cpu=cpu,
        memory=memory,
        named=named,
        other_resources={"pods": ONE_POD, **{key: requested[key] for key, kind in kinds.items() if kind == "counter"}},
        devices=tuple(key for key, kind in kinds.items() if kind == "device"),
        shares=tuple(key for key, kind in kinds.items() if kind == "share"),
        ports=_ports(spec),
        floats=(float(gpus), float(thousandths), float(memory) / 2**20),
        below_units=(thousandths % 1, mib % 1),
        rounded_down=(floor(thousandths), floor(mib)),
        rounded_up=(ceil(thousandths), ceil(mib)),
    )


def _device_claims(entry: JsonEntry, namespace: str, runs: bool, drivers: Mapping[str, frozenset[str]]) -> list[str]:
    """Return the requests to DRA; nothing for devices of a running pod that are known not to be GPUs."""
    spec, status = entry.entry("spec"), entry.entry("status")
    made = {
        claim_status.text("name"): claim_status.text("resourceClaimName", "")
        for claim_status in status.entries("resourceClaimStatuses")
    }
    claims = []
    for claim in spec.entries("resourceClaims"):
        name = claim.text("resourceClaimName", "") or made.get(claim.text("name"), "")
        known = drivers.get(f"{namespace}/{name}", frozenset())
        if not runs or not known or not known <= set(NOT_GPU_DRIVERS):
            claims.append("a ResourceClaim")
    if "extendedResourceClaimStatus" in status:  # an extended resource that DRA serves
        claims.append("a ResourceClaim")
    return list(dict.fromkeys(claims))


def _ports(spec: JsonEntry) -> frozenset[Port]:
    """Return the ports of the node that containers and sidecars take."""
    ports = []
    for container in [*spec.entries("containers"), *spec.entries("initContainers")]:
        for port in container.entries("ports"):
            number = port.integer("hostPort", 0, 65535, 0)
            if number:
                ports.append((port.text("hostIP", ""), port.text("protocol", "TCP"), number))
    return frozenset(ports)


def _volumes(spec: JsonEntry, pod: str) -> tuple[tuple[str, ...], str | None]:
    """Return the names of a pod's volume claims, and a reason why one of its volumes is not read."""
    volumes = spec.raw("volumes")
    if volumes is None:
        return (), None
    if isinstance(volumes, list) and all(isinstance(one, dict) and NO_CLAIM.isdisjoint(one) for one in volumes):
        return (), None
    claims, unsupported = [], None
    for volume in spec.entries("volumes"):
        if "persistentVolumeClaim" in volume:
            claims.append(volume.entry("persistentVolumeClaim").text("claimName"))
        elif "ephemeral" in volume:
            claims.append(f"{pod}-{volume.text('name')}")
        if any(key in volume for key in ONE_NODE_VOLUMES):
            unsupported = f"with a volume in the pod itself of {', '.join(ONE_NODE_VOLUMES)}"
    return tuple(claims), unsupported


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
