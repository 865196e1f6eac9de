"""Kubernetes pods: what each requests, where it runs, what it asks of its node, and its gang."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping

from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.kubernetes.devices import Devices
from placeopt.importers.kubernetes.makers import KAI, KUEUE, YUNIKORN, gang_membership, pod_topology
from placeopt.importers.kubernetes.node_conditions import asked_of_nodes
from placeopt.importers.kubernetes.objects import time_ms
from placeopt.importers.kubernetes.resources import NANO, PODS, in_units, is_infeasible, may_be_gpu, requested_amounts
from placeopt.importers.priority_rule import annotation_marks
from placeopt.model import NodeConditions, Relation
from placeopt.model.base import MAX_AMOUNT, MAX_GPUS
from placeopt.model.conditions import ANY_NODE

QUEUES = (
    *(f"{KUEUE}queue-name", f"{KUEUE}local-queue-name", f"{KAI}queue"),
    *("scheduling.volcano.sh/queue-name", f"{YUNIKORN}queue"),
)
"""Labels or annotations with a pod's queue (Kueue, KAI, Volcano, YuniKorn)."""
FRACTIONS = ("gpu-fraction", "gpu-memory", "runai-gpu-memory")
"""Annotations that request a part of a GPU (KAI, run:ai)."""
GPU_GROUP = "runai-gpu-group"
"""Label that a pod with a part of a GPU shares with the pod that reserves the whole of it (KAI, run:ai)."""
DAEMONS = ("DaemonSet", "Node")
"""Kinds of owners whose pods are daemons."""
ONE_NODE_VOLUMES = ("gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd")
"""Volumes named in the pod itself that the scheduler keeps off a node where another pod holds them."""
NAMESPACE = "metadata.namespace"
"""Label of a pod, and of a job, that is its namespace."""
Specification = tuple[Mapping[str, int], frozenset["Port"], NodeConditions]
"""What a pod requests in nano units, which ports of the node it takes, and what it asks of nodes."""
SPECIFIED = ("nodeSelector", "affinity", "tolerations", "resources", "overhead")
OF_CONTAINERS = {
    "spec": (("containers", "initContainers"), ("name", "resources", "restartPolicy", "ports")),
    "status": (("containerStatuses", "initContainerStatuses"), ("name", "resources", "allocatedResources")),
}
Port = tuple[str, str, int]
"""Address, protocol, number of a port of the node."""


def read_pod(entry: JsonEntry, resource: str, devices: Devices, known: dict[str, Specification]) -> Pod | None:
    """
    Return a pod; None if it has ended, or is terminating without a node.

    ``resource``: The extended resource that counts GPUs. ``devices``: What claims take. ``known``: What specifications
    say, by their text: read once, and one object, for pods of one template; grows.
    """
    waits = not entry.entry("spec").text("nodeName", "")
    ending = waits and "deletionTimestamp" in entry.entry("metadata")
    ended = entry.entry("status").text("phase", "Pending") in ("Succeeded", "Failed")
    return None if ended or ending else Pod(entry, resource, devices, known)


class Pod:
    """One pod that holds resources or waits for them."""

    def __init__(self, entry: JsonEntry, resource: str, devices: Devices, known: dict[str, Specification]) -> None:
        metadata, spec, status = entry.entry("metadata"), entry.entry("spec"), entry.entry("status")
        labels, annotations = metadata.texts("labels"), metadata.texts("annotations")
        name = metadata.text("name")
        self.entry = entry
        self.namespace = metadata.text("namespace", "default")
        self.id = f"{self.namespace}/{name}"
        self.uid = metadata.text("uid", "") or None
        self.labels: Mapping[str, str] = {**labels, NAMESPACE: self.namespace}
        self.node = spec.text("nodeName", "") or None
        self.queue = next((said[key] for key in QUEUES for said in (labels, annotations) if said.get(key)), None)
        exact = Counter({PODS: NANO})
        requested, self.ports, asked = _specified(spec, status, known)
        for key, amount in requested.items():
            exact[devices.resource(key)] += amount
        gpus, part = divmod(exact.pop(resource, 0), NANO)
        if part or gpus > MAX_GPUS:
            raise spec.bad("containers", f"whole numbers of {resource}, up to {MAX_GPUS} together")
        shares = [key for key in exact if may_be_gpu(key, resource)]
        for key in shares:
            del exact[key]
        taken = devices.of(entry, [*exact, *([resource] if gpus else [])], resource)
        self.gpus = gpus + taken.amounts.pop(resource, 0)
        self.profile, self.parts = taken.profile, tuple(taken.parts)
        """Name of the profile of its part of a GPU, and how many thousandths; where its GPUs and parts of them are."""
        if self.profile is not None:
            taken.unknown += ["a part of a GPU beside whole ones"] * (self.gpus > 0)
            self.gpus = 1
        exact.update({key: NANO * count for key, count in taken.amounts.items()})
        self.exact = exact
        """Amount of each resource but GPUs, in nano units; ``amounts``: in those of records."""
        self.amounts: Mapping[str, int] = in_units(self.exact, up=self.node is None)
        if any(amount > MAX_AMOUNT for amount in self.amounts.values()):
            raise spec.bad("containers", "amounts that a node can have")
        self.shares = (*shares, *(f"annotation {key}" for key in FRACTIONS if key in annotations), *taken.unknown)
        """Resources, annotations and claims that may be counted GPUs or parts of them."""
        self.gpu_groups = tuple([value for key, value in labels.items() if key.partition("/")[0] == GPU_GROUP])
        self.claims: Mapping[str, str | None] = dict(_claims(spec, name))
        """Names of its volume claims; of one that is made for the pod, its storage class."""
        self.conditions = asked if taken.conditions is ANY_NODE else asked & taken.conditions
        """On its node, also by devices that it has already."""
        self.relations: tuple[Relation, ...] = ()
        """Its affinity and anti-affinity; a level is a label of nodes, the ``topologyKey``."""
        self.doubtful: frozenset[str] = frozenset()
        """Namespaces that its relations select, although their labels would decide and are not listed."""
        self.gates = frozenset([gate.text("name") for gate in spec.entries("schedulingGates")])
        self.topology, unread = pod_topology(metadata)
        if any(key in volume for volume in spec.entries("volumes") for key in ONE_NODE_VOLUMES):
            unread = f"with a volume in the pod itself of {', '.join(ONE_NODE_VOLUMES)}"
        self.unsupported = unread
        """A placement rule that is not read; it matters while the pod waits."""
        constraints = spec.entries("topologySpreadConstraints")
        self.spread = tuple([one for one in constraints if one.text("whenUnsatisfiable", "") != "ScheduleAnyway"])
        """Topology spread constraints that must hold (DoNotSchedule)."""
        self.group = gang_membership(entry)
        self.daemon = any(owner.text("kind", "") in DAEMONS for owner in metadata.entries("ownerReferences"))
        self.ending = "deletionTimestamp" in metadata
        """Whether it is being deleted: it holds its resources, and is no member of its gang any more."""
        self.placeholder = annotations.get(f"{YUNIKORN}placeholder") == "true"
        """Whether it keeps room for a pod of its task group (YuniKorn)."""
        nominated = status.text("nominatedNodeName", "")
        self.nominated = "" if self.ending or self.placeholder else nominated
        """Node whose room it is promised."""
        self.scheduler = spec.text("schedulerName", "default-scheduler")
        self.priority = spec.integer("priority", -(2**31), 2**31, 0)
        self.priority_class = spec.text("priorityClassName", "")
        self.preempts = spec.text("preemptionPolicy", "") != "Never"
        """Whether other pods may go for it."""
        self.marks = annotation_marks(annotations)
        self.created_ms, self.started_ms = time_ms(metadata, "creationTimestamp"), time_ms(status, "startTime")

    @property
    def node_labels(self) -> set[str]:
        """Labels of nodes that its selector or its affinity names."""
        return {*self.conditions.node_selector, *(one.key for term in self.conditions.node_affinity for one in term)}

    @property
    def kind(self) -> Hashable:
        """What alike pods have in common."""
        return self.gpus, self.profile, frozenset(self.amounts.items()), self.ending


def _specified(spec: JsonEntry, status: JsonEntry, known: dict[str, Specification]) -> Specification:
    """Return what the specification of a pod says, and what its node has allocated to it."""
    said: list[object] = [spec.raws(SPECIFIED), is_infeasible(status)]
    for entry, (lists, fields) in zip((spec, status), OF_CONTAINERS.values(), strict=True):
        said += [[one.raws(fields) for one in entry.entries(key)] for key in lists]
    text = repr(said)
    if text not in known:
        known[text] = requested_amounts(spec, status), frozenset(_ports(spec)), asked_of_nodes(spec)
    return known[text]


def _ports(spec: JsonEntry) -> Iterator[Port]:
    """Yield the ports of the node that containers and sidecars take."""
    for container in [*spec.entries("containers"), *spec.entries("initContainers")]:
        for port in container.entries("ports"):
            number = port.integer("hostPort", 0, 65535, 0)
            if number:
                yield port.text("hostIP", ""), port.text("protocol", "TCP"), number


def _claims(spec: JsonEntry, pod: str) -> Iterator[tuple[str, str | None]]:
    """Yield a pod's volume claims, as `Pod.claims`."""
    for volume in spec.entries("volumes"):
        if "persistentVolumeClaim" in volume:
            yield volume.entry("persistentVolumeClaim").text("claimName"), None
        elif "ephemeral" in volume:
            template = volume.entry("ephemeral").entry("volumeClaimTemplate").entry("spec")
            yield f"{pod}-{volume.text('name')}", template.text("storageClassName", "")
