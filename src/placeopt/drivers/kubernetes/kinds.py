"""The kinds of objects that the driver lists and watches, and the paths where the API server has them."""

from __future__ import annotations

from typing import NamedTuple

from placeopt.drivers.answers import Unreachable
from placeopt.drivers.kubernetes.api import Api, ApiFault


class Kind(NamedTuple):
    """A kind of objects."""

    name: str
    path: str
    """Where all of them are listed."""


NODES = Kind("Node", "/api/v1/nodes")
PODS = Kind("Pod", "/api/v1/pods")
CORE = (
    NODES,
    PODS,
    Kind("Namespace", "/api/v1/namespaces"),
    Kind("PersistentVolumeClaim", "/api/v1/persistentvolumeclaims"),
    Kind("PersistentVolume", "/api/v1/persistentvolumes"),
)
OPTIONAL = (
    ("scheduling.k8s.io", "podgroups", "PodGroup"),
    ("scheduling.k8s.io", "compositepodgroups", "CompositePodGroup"),
    ("scheduling.k8s.io", "workloads", "Workload"),
    ("scheduling.x-k8s.io", "podgroups", "PodGroup"),
    ("scheduling.volcano.sh", "podgroups", "PodGroup"),
    ("scheduling.run.ai", "podgroups", "PodGroup"),
    ("leaderworkerset.x-k8s.io", "leaderworkersets", "LeaderWorkerSet"),
    ("topology.volcano.sh", "hypernodes", "HyperNode"),
    ("resource.k8s.io", "resourceclaims", "ResourceClaim"),
    ("resource.k8s.io", "resourceclaimtemplates", "ResourceClaimTemplate"),
    ("resource.k8s.io", "resourceslices", "ResourceSlice"),
    ("resource.k8s.io", "deviceclasses", "DeviceClass"),
    ("storage.k8s.io", "storageclasses", "StorageClass"),
)
"""Group of the API, plural and kind of what the reader looks at where the cluster has it; at any served version."""


def watched_kinds(api: Api) -> tuple[Kind, ...]:
    """
    Return the kinds that this cluster has and lets the driver list; of each group the version that it prefers.

    Raises `Unreachable` where it may not list one of `CORE`: for seconds after its start, an API server forbids
    everything (403), and kinds that it forbids then would not be looked at any more.
    """
    if forbidden := [kind.name for kind in CORE if not _may_list(api, kind.path)]:
        raise Unreachable(f"it does not let this user list {', '.join(forbidden)}")
    found = list(CORE)
    versions: dict[str, list[str]] = {}
    for group in api.call("GET", "/apis").get("groups") or []:
        preferred = group.get("preferredVersion", {}).get("groupVersion")
        served = [version["groupVersion"] for version in group.get("versions") or []]
        versions[group["name"]] = [*([preferred] if preferred else []), *(v for v in served if v != preferred)]
    for group, plural, kind in OPTIONAL:
        for version in versions.get(group, []):
            resources = api.call("GET", f"/apis/{version}").get("resources") or []
            if any(resource.get("name") == plural and resource.get("kind") == kind for resource in resources):
                path = f"/apis/{version}/{plural}"
                if _may_list(api, path):
                    found.append(Kind(kind, path))
                break
    return tuple(found)


def _may_list(api: Api, path: str) -> bool:
    try:
        api.call("GET", path, query={"limit": "1"})
    except ApiFault as fault:
        if fault.status in (401, 403, 404, 405):
            return False
        raise
    return True
