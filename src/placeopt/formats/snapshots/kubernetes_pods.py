"""Kubernetes' pods: what each asks for, where it is, and which gang it belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from placeopt.formats.snapshots.entries import Entry
from placeopt.formats.snapshots.quantities import MIB, quantity

VOLCANO_GROUP = "scheduling.k8s.io/group-name"
"""Annotation: the PodGroup of a pod (Volcano)."""
COSCHEDULING_GROUP = "scheduling.x-k8s.io/pod-group"
"""Label: the PodGroup of a pod (scheduler-plugins' coscheduling)."""
KUEUE_GROUP = "kueue.x-k8s.io/pod-group-name"
"""Label: the group of plain pods that Kueue admits together; the annotation below says how many they are."""
KUEUE_COUNT = "kueue.x-k8s.io/pod-group-total-count"
KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
KUEUE_TOPOLOGY = "kueue.x-k8s.io/podset-required-topology"
KUEUE_GATES = ("kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology")
"""Scheduling gates behind which a pod waits for room; any other gate is somebody else's business."""

MIG = "nvidia.com/mig-"
"""Begins the resources of MIG instances where profiles are told apart (NVIDIA's strategy ``mixed``)."""


@dataclass(frozen=True)
class Pod:
    """One pod that holds room or waits for it."""

    entry: Entry
    id: str
    namespace: str
    node: str | None
    gpus: int
    cpu: Fraction
    """Cores."""
    memory: Fraction
    """Bytes."""
    group: str | None
    group_count: int | None
    """Of all pods of the group, where the pod says it."""
    daemon: bool
    gates: tuple[str, ...]
    created_ms: int
    started_ms: int
    priority: int
    queue: str | None
    topology: str | None
    mig: tuple[str, ...]
    """MIG instances it asks for, of other resources than the one that counts GPUs."""


def read_pod(entry: Entry, resource: str) -> Pod | None:
    """
    Read a pod; None if it has ended, or is on its way out without a node.

    Raises
    ------
    BadInput
        If a field is not of Kubernetes' form.
    """
    metadata, spec, status = entry.entry("metadata"), entry.entry("spec"), entry.entry("status")
    node = spec.text("nodeName", "") or None
    if status.text("phase", "Pending") in ("Succeeded", "Failed") or (node is None and "deletionTimestamp" in metadata):
        return None
    labels, annotations = metadata.texts("labels"), metadata.texts("annotations")
    namespace = metadata.text("namespace", "default")
    group = annotations.get(VOLCANO_GROUP) or labels.get(COSCHEDULING_GROUP) or labels.get(KUEUE_GROUP)
    count = annotations.get(KUEUE_COUNT)
    if count is not None and not (count.isdecimal() and 1 <= int(count[:9]) <= 100_000):
        raise metadata.entry("annotations").bad(KUEUE_COUNT, "a number of pods")
    gpus = _asked(spec, resource)
    if gpus.denominator != 1 or gpus > 1024:
        raise spec.bad("containers", f"whole numbers of {resource}, up to 1024 together")
    return Pod(
        entry=entry,
        id=f"{namespace}/{metadata.text('name')}",
        namespace=namespace,
        node=node,
        gpus=int(gpus),
        cpu=_asked(spec, "cpu"),
        memory=_asked(spec, "memory"),
        group=f"{namespace}/{group}" if group else None,
        group_count=int(count) if count else None,
        daemon=any(owner.text("kind", "") in ("DaemonSet", "Node") for owner in metadata.entries("ownerReferences")),
        gates=tuple(gate.text("name") for gate in spec.entries("schedulingGates")),
        created_ms=time_ms(metadata, "creationTimestamp"),
        started_ms=time_ms(status, "startTime"),
        priority=spec.integer("priority", -(2**31), 2**31, 0),
        queue=labels.get(KUEUE_QUEUE),
        topology=annotations.get(KUEUE_TOPOLOGY),
        mig=tuple(name for name in _mig_resources(spec) if name != resource),
    )


def _asked(spec: Entry, resource: str) -> Fraction:
    """
    Return what a pod holds of a resource, by Kubernetes' rule.

    The larger of what its containers, with the sidecars (init containers that are restarted always), hold together, and
    what one init container needs beside the sidecars begun before it; and the overhead of its runtime.
    """
    sidecars = most = Fraction(0)
    for one in spec.entries("initContainers"):
        need = _of(one, resource)
        if one.text("restartPolicy", "") == "Always":
            sidecars += need
            most = max(most, sidecars)
        else:
            most = max(most, sidecars + need)
    together = sidecars + sum((_of(one, resource) for one in spec.entries("containers")), Fraction(0))
    return max(most, together) + quantity(spec.entry("overhead"), resource)


def _mig_resources(spec: Entry) -> list[str]:
    """Return the MIG profiles that any container names, as resources."""
    found: dict[str, None] = {}
    for key in ("initContainers", "containers"):
        for container in spec.entries(key):
            resources = container.entry("resources")
            for part in ("requests", "limits"):
                found |= dict.fromkeys(mig_keys(resources.raw(part)))
    return sorted(found)


def mig_keys(amounts: object) -> list[str]:
    """Return the names of MIG profiles among resources, such as ``nvidia.com/mig-1g.5gb``."""
    return [name for name in amounts if str(name).startswith(MIG)] if isinstance(amounts, dict) else []


def _of(container: Entry, resource: str) -> Fraction:
    resources = container.entry("resources")
    requests = resources.entry("requests")
    return quantity(requests if resource in requests else resources.entry("limits"), resource)


def time_ms(entry: Entry, key: str) -> int:
    """Return a time as ``2026-11-22T02:41:55Z``, in ms since 1970; 0 where it is left out."""
    text = entry.text(key, "")
    if not text:
        return 0
    try:
        found = datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError):
        raise entry.bad(key, "a time such as 2026-11-22T02:41:55Z") from None
    if not 0 <= found < 10**10:
        raise entry.bad(key, "a time since 1970")
    return int(1000 * found)


def mib(memory: Fraction, *, up: bool) -> int:
    """Return bytes in MiB, rounded up or down."""
    return -int(-memory // MIB) if up else int(memory // MIB)


def millicores(cpu: Fraction, *, up: bool) -> int:
    """Return cores in millicores, rounded up or down."""
    return -int(-1000 * cpu // 1) if up else int(1000 * cpu // 1)
