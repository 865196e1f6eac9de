"""Gangs: the label, annotation or field that names the gang of a pod, and the rules of its PodGroup or Workload."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from placeopt.errors import BadInput
from placeopt.formats.json_entry import JsonEntry

GROUP_ANNOTATIONS = (
    "scheduling.k8s.io/group-name",  # Volcano
    "scheduling.volcano.sh/group-name",
    "gang.scheduling.koordinator.sh/name",
    "pod-group-name",  # KAI, run:ai
)
GROUP_LABELS = (
    "scheduling.x-k8s.io/pod-group",  # coscheduling of scheduler-plugins
    "pod-group.scheduling.sigs.k8s.io",
    "pod-group.scheduling.sigs.k8s.io/name",
    "kueue.x-k8s.io/pod-group-name",
    "grove.io/podgang",
)
WORKLOAD_LABELS = (
    "jobset.sigs.k8s.io/jobset-name",  # JobSet, and Kubeflow's Trainer, which makes JobSets
    "training.kubeflow.org/job-name",  # PyTorchJob, MPIJob, TFJob, XGBoostJob, PaddleJob, JAXJob
    "ray.io/cluster",
)
"""Labels of controllers whose pods work together; they name a gang where no PodGroup does."""
LWS = "leaderworkerset.sigs.k8s.io/"
COUNTS = ("kueue.x-k8s.io/pod-group-total-count", "gang.scheduling.koordinator.sh/total-number")
"""Annotations: how many pods a group has in all."""
MINIMUM = "gang.scheduling.koordinator.sh/min-available"
TOGETHER = (
    "kueue.x-k8s.io/podset-required-topology",
    "kai.scheduler/topology-required-placement",
)
"""Annotations: the label of nodes whose value all pods of a gang must share."""
UNREAD_TOPOLOGY = ("podset-slice-required-topology", "podset-group-name", "exclusive-topology")
"""Stands in the names of annotations with rules about parts of a gang (Kueue, JobSet, LeaderWorkerSet)."""
NAMES_A_GANG = frozenset({*GROUP_LABELS, *WORKLOAD_LABELS, f"{LWS}name"})
"""Labels of which each pod of a gang has one, if no annotation or field names it."""
MAX_PODS = 100_000


@dataclass(frozen=True)
class GangMembership:
    """The gang of a pod, as the pod names it."""

    id: str
    """Namespace and name; for a pod of the Workload API of Kubernetes 1.35 also the pod group and its replica."""
    count: int | None = None
    """Number of all its pods."""
    pods_min: int | None = None
    """Number of pods that must start together."""
    source: str | None = None
    """Id of the PodGroup, or Workload and pod group, that may be listed; None where there is none of the kind."""


@dataclass(frozen=True)
class PodGroupRules:
    """Rules of a PodGroup."""

    pods_min: int | None = None
    gang: bool = True
    """False: its pods start one by one."""
    topology_key: str | None = None
    """Node label whose value all its pods must share."""
    unsupported: str | None = None
    """Why its pods are left out."""


def gang_membership(
    spec: JsonEntry, metadata: JsonEntry, namespace: str, labels: Mapping[str, str], annotations: Mapping[str, str]
) -> GangMembership | None:
    """
    Return the gang of a pod, None if it is alone.

    A PodGroup comes first, of whichever scheduler, then the labels of controllers whose pods work together.
    """
    if (
        not annotations
        and spec.raws(("schedulingGroup", "workloadRef")) == (None, None)
        and NAMES_A_GANG.isdisjoint(labels)
    ):
        return None
    named = spec.entry("schedulingGroup").text("podGroupName", "")
    if named:
        return GangMembership(f"{namespace}/{named}", source=f"{namespace}/{named}")
    workload = spec.entry("workloadRef")
    if "name" in workload:
        source = f"{namespace}/{workload.text('name')}/{workload.text('podGroup')}"
        replica = workload.text("podGroupReplicaKey", "")
        return GangMembership(f"{source}/{replica}" if replica else source, source=source)
    gang_names = [annotations[key] for key in GROUP_ANNOTATIONS if annotations.get(key)]
    gang_names += [labels[key] for key in GROUP_LABELS if labels.get(key)]
    count = next((_number(metadata, key) for key in COUNTS if key in annotations), None)
    if gang_names:
        least = _number(metadata, MINIMUM) if MINIMUM in annotations else None
        return GangMembership(f"{namespace}/{gang_names[0]}", count, least, f"{namespace}/{gang_names[0]}")
    if labels.get(f"{LWS}name"):
        size = _number(metadata, f"{LWS}size") if f"{LWS}size" in annotations else None
        return GangMembership(f"{namespace}/{labels[f'{LWS}name']}-{labels.get(f'{LWS}group-index', '0')}", size)
    gang_names = [labels[key] for key in WORKLOAD_LABELS if labels.get(key)]
    return GangMembership(f"{namespace}/{gang_names[0]}") if gang_names else None


def unread_topology(annotations: Mapping[str, str]) -> str | None:
    """Return an annotation with a placement rule that is not read, None if there is none."""
    unread = [key for key in annotations if any(part in key for part in UNREAD_TOPOLOGY)]
    return min(unread) if unread else None


def _number(metadata: JsonEntry, key: str) -> int:
    text = metadata.entry("annotations").text(key)
    if not (text.isdecimal() and text.isascii() and 1 <= int(text[:9]) <= MAX_PODS):
        raise metadata.entry("annotations").bad(key, "a number of pods")
    return int(text)


def pod_group_rules(groups: Iterable[JsonEntry], workloads: Iterable[JsonEntry]) -> Mapping[str, PodGroupRules]:
    """
    Return the rules of the listed PodGroups and Workloads, by `GangMembership.source`.

    The rules of an unreadable group state that; a group without a readable name counts as not listed.
    """
    rules_of: dict[str, PodGroupRules] = {}
    for entry in groups:
        with suppress(BadInput):
            rules_of[_id(entry)] = _read(entry, _pod_group)
    for entry in workloads:
        with suppress(BadInput):
            if not entry.text("apiVersion", "").startswith("scheduling.k8s.io/"):
                continue  # Kueue's Workload is another
            for part in entry.entry("spec").entries("podGroups"):
                rules = _read(part, lambda group: _policy(group.entry("policy"), group))
                rules_of[f"{_id(entry)}/{part.text('name', '')}"] = rules
    return rules_of


def _id(entry: JsonEntry) -> str:
    metadata = entry.entry("metadata")
    return f"{metadata.text('namespace', 'default')}/{metadata.text('name')}"


def _read(entry: JsonEntry, read: Callable[[JsonEntry], PodGroupRules]) -> PodGroupRules:
    try:
        return read(entry)
    except BadInput as error:
        return PodGroupRules(
            unsupported=f"of a PodGroup that cannot be read ({str(error).removeprefix(entry.where + '.')})"
        )


def _pod_group(entry: JsonEntry) -> PodGroupRules:
    spec = entry.entry("spec")
    if "schedulingPolicy" in spec:
        if "parentCompositePodGroupName" in spec or "resourceClaims" in spec:
            return PodGroupRules(unsupported="of a PodGroup with a parent, or with resource claims")
        return _policy(spec.entry("schedulingPolicy"), spec)
    for key in ("subGroupPolicy", "subGroups"):
        if spec.entries(key):
            return PodGroupRules(unsupported=f"of a PodGroup with {key}")
    if len(spec.entry("minTaskMember").names()) > 1:
        return PodGroupRules(unsupported="of a PodGroup with minTaskMember")
    if "networkTopology" in spec and spec.entry("networkTopology").text("mode", "hard") != "soft":
        return PodGroupRules(unsupported="of a PodGroup with a hard networkTopology")
    together = spec.entry("topologyConstraint").text("requiredTopologyLevel", "") or None
    return PodGroupRules(max(1, spec.integer("minMember", 0, MAX_PODS, 1)), topology_key=together)


def _policy(policy: JsonEntry, owner: JsonEntry) -> PodGroupRules:
    """Read ``schedulingPolicy`` (Kubernetes 1.36 and later) or ``policy`` (1.35), with the constraints beside it."""
    topology = owner.entry("schedulingConstraints").entries("topology")
    together = topology[0].text("key") if topology else None
    if "gang" not in policy:
        return PodGroupRules(gang=False, topology_key=together)
    return PodGroupRules(policy.entry("gang").integer("minCount", 1, MAX_PODS), topology_key=together)
