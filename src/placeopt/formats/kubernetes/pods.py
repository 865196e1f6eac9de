"""Kubernetes pods: requests, node, and gang of each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from functools import lru_cache
from hashlib import sha256

from placeopt.errors import BadInput
from placeopt.formats.json_entry import JsonEntry
from placeopt.formats.kubernetes.node_selectors import node_affinity, tolerations
from placeopt.formats.kubernetes.pod_groups import TOGETHER, GangMembership, gang_membership, unread_topology
from placeopt.formats.kubernetes.resources import MIB, NONE, kind_of, requested_amounts
from placeopt.formats.priority_rule import MARKS

QUEUES = ("kueue.x-k8s.io/queue-name", "kai.scheduler/queue")
KUEUE_GATES = ("kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology")
"""Scheduling gates that mean waiting for free capacity; a pod behind any other gate is left out."""
FRACTIONS = ("gpu-fraction", "gpu-memory", "runai-gpu-memory")
"""Annotations that request a part of a GPU (KAI, run:ai)."""
GPU_GROUP = "runai-gpu-group"
"""Label that a pod with a part of a GPU shares with the pod that reserves the whole of it (KAI, run:ai)."""
NOT_GPU_DRIVERS = ("compute-domain.nvidia.com", "dra.net")
"""DRA drivers whose devices are channels and network cards."""
ONE_NODE_VOLUMES = ("gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd")
"""Volumes named in the pod itself that the scheduler keeps off a node where another pod holds them."""

MAX_ID = 253
ONE_POD = Fraction(1)

Port = tuple[str, str, int]
"""Address, protocol, number of a port of the node."""


@dataclass(frozen=True)
class Pod:
    """One pod that holds resources or waits for them."""

    entry: JsonEntry
    id: str
    uid: str | None
    namespace: str
    labels: Mapping[str, str]
    node: str | None
    gpus: int
    cpu: Fraction
    """Cores."""
    memory: Fraction
    """Bytes."""
    other_resources: Mapping[str, Fraction]
    """Other resources of which a node has an amount; each pod takes one of its node's ``pods``."""
    devices: tuple[str, ...]
    """Accelerators other than the counted GPUs."""
    shares: tuple[str, ...]
    """Resources that may be a counted GPU or a part of one."""
    gpu_groups: tuple[str, ...]
    ports: frozenset[Port]
    claims: tuple[str, ...]
    """Names of its volume claims."""
    group: GangMembership | None
    daemon: bool
    scheduling_gates: tuple[str, ...]
    unsupported: str | None
    """A placement rule that is not read; it matters while the pod waits."""
    topology_key: str | None
    """Node label whose value the whole gang must share."""
    created_ms: int
    started_ms: int
    priority: int
    priority_class: str
    preempts: bool
    """Whether its preemptionPolicy lets other pods go for it."""
    marks: Mapping[str, str]
    """Annotations of `MARKS`."""
    queue: str | None
    scheduler: str
    rules: str = field(repr=False)
    """All rules about its node, as text; pods with equal text may run on the same nodes."""


def read_pod(
    entry: JsonEntry, resource: str, drivers: Mapping[str, frozenset[str]], known_rules: set[str]
) -> Pod | None:
    """
    Return a pod; None if it has ended, or is terminating without a node.

    ``resource``: The extended resource that counts GPUs. ``drivers``: Of ResourceClaims that are allocated, by
    namespace and name: the drivers of their devices. ``known_rules``: Texts of rules that were read; it grows.
    """
    metadata, spec, status = entry.entry("metadata"), entry.entry("spec"), entry.entry("status")
    node = spec.text("nodeName", "") or None
    if status.text("phase", "Pending") in ("Succeeded", "Failed") or (node is None and "deletionTimestamp" in metadata):
        return None
    labels, annotations = metadata.texts("labels"), metadata.texts("annotations")
    namespace, name = metadata.text("namespace", "default"), metadata.text("name")
    requested = dict(requested_amounts(spec, status))
    gpus = requested.pop(resource, NONE)
    if gpus.denominator != 1 or gpus > 1024:
        raise spec.bad("containers", f"whole numbers of {resource}, up to 1024 together")
    cpu, memory = requested.pop("cpu", NONE), requested.pop("memory", NONE)
    kinds = {key: kind_of(key, resource) for key in requested}
    shares = [key for key, kind in kinds.items() if kind == "share"]
    shares += [f"annotation {key}" for key in FRACTIONS if key in annotations]
    rules = _rules(spec)
    if rules not in known_rules:
        node_affinity(spec), tolerations(spec)  # refused here, so that no job is made of what cannot be read
        known_rules.add(rules)
    return Pod(
        entry=entry,
        id=f"{namespace}/{name}",
        uid=metadata.text("uid", "") or None,
        namespace=namespace,
        labels=labels,
        node=node,
        gpus=int(gpus),
        cpu=cpu,
        memory=memory,
        other_resources={
            "pods": ONE_POD,
            **{key: requested[key] for key, kind in kinds.items() if kind == "counter"},
        },
        devices=tuple(key for key, kind in kinds.items() if kind == "device"),
        shares=(*shares, *_device_claims(entry, namespace, node is not None, drivers)),
        gpu_groups=tuple(value for key, value in labels.items() if key.partition("/")[0] == GPU_GROUP),
        ports=_ports(spec),
        claims=_claims(spec, name),
        group=gang_membership(spec, metadata, namespace),
        daemon=any(owner.text("kind", "") in ("DaemonSet", "Node") for owner in metadata.entries("ownerReferences")),
        scheduling_gates=tuple(gate.text("name") for gate in spec.entries("schedulingGates")),
        unsupported=_unread(spec, annotations),
        topology_key=next((annotations[key] for key in TOGETHER if annotations.get(key)), None),
        created_ms=time_ms(metadata, "creationTimestamp"),
        started_ms=time_ms(status, "startTime"),
        priority=spec.integer("priority", -(2**31), 2**31, 0),
        priority_class=spec.text("priorityClassName", ""),
        preempts=spec.text("preemptionPolicy", "") != "Never",
        marks={key: annotations[key] for key in MARKS if key in annotations} if annotations else {},
        queue=next((labels[key] for key in QUEUES if labels.get(key)), None),
        scheduler=spec.text("schedulerName", "default-scheduler"),
        rules=rules,
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


def _claims(spec: JsonEntry, pod: str) -> tuple[str, ...]:
    claims = []
    for volume in spec.entries("volumes"):
        if "persistentVolumeClaim" in volume:
            claims.append(volume.entry("persistentVolumeClaim").text("claimName"))
        elif "ephemeral" in volume:
            claims.append(f"{pod}-{volume.text('name')}")
    return tuple(claims)


def _unread(spec: JsonEntry, annotations: Mapping[str, str]) -> str | None:
    if any(
        constraint.text("whenUnsatisfiable", "DoNotSchedule") != "ScheduleAnyway"
        for constraint in spec.entries("topologySpreadConstraints")
    ):
        return "with a topology spread constraint (DoNotSchedule)"
    if any(key in volume for volume in spec.entries("volumes") for key in ONE_NODE_VOLUMES):
        return f"with a volume in the pod itself of {', '.join(ONE_NODE_VOLUMES)}"
    if (key := unread_topology(annotations)) is not None:
        return f"with {key}"
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


@lru_cache(4096)
def mib(memory: Fraction, *, up: bool) -> int:
    """Return bytes in MiB, rounded up or down."""
    return -int(-memory // MIB) if up else int(memory // MIB)


@lru_cache(4096)
def float_amounts(cpu: Fraction, memory: Fraction) -> tuple[float, float]:
    """Return cores and bytes in millicores and MiB, as floats."""
    return float(1000 * cpu), float(memory) / 2**20


@lru_cache(4096)
def below_units(cpu: Fraction, memory: Fraction) -> tuple[Fraction, Fraction]:
    """Return the part of cores and bytes below a whole millicore and MiB."""
    return 1000 * cpu % 1, memory / MIB % 1


@lru_cache(4096)
def millicores(cpu: Fraction, *, up: bool) -> int:
    """Return cores in millicores, rounded up or down."""
    return -int(-1000 * cpu // 1) if up else int(1000 * cpu // 1)
