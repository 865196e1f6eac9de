"""Jobs of a real Kubernetes behind the driver's gate, in as many shapes as pods can state."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from helpers.kubelets import GPU
from helpers.kubernetes_client import RealApi
from helpers.kubernetes_cluster import GATE
from helpers.real_kubelets import LATE_S, PERCENT, RUN_S, TOGETHER

Object = dict[str, Any]
LWS, JOBSET, POD_GROUP = "leaderworkerset.sigs.k8s.io/", "jobset.sigs.k8s.io/", "scheduling.x-k8s.io"
PRIORITIES = {"urgent": 1000, "scavenger": -20}
"""Priority classes; running pods of the second are preemptible, as the importer's rule is."""
MARK = "placeopt.io/"
MAY_STOP = {f"{MARK}preemptible": "true"}
TALKS = {f"{MARK}communication_weight": "4", f"{MARK}utility_min_thousandths": "600"}
"""Of a gang that waits for one node under a policy that judges utility."""


@dataclass(frozen=True)
class Shape:
    """
    Jobs of one kind: pods, GPUs and cores of each, ``least`` pods that start together; 0: all.

    ``gang``: What says that they are one, ``lws`` (with their number), ``jobset`` (without) or ``group`` (an object
    that states the least).
    """

    pods: int = 1
    gpus: int = 0
    cores: int = 1
    least: int = 0
    gang: str = ""
    priority: str = ""
    marks: dict[str, str] = field(default_factory=dict)

    @property
    def together(self) -> int:
        """How many pods start together."""
        return self.least or self.pods


def profile_of(shape: Shape) -> str:
    """Return the profile of the jobs of a shape."""
    return f"{shape.gpus} GPUs"


SERVICE = "a service"
SHAPES = {
    "one GPU": Shape(gpus=1),
    "one GPU that may move": Shape(gpus=1, marks={**MAY_STOP, f"{MARK}movable": "true"}),
    "two GPUs": Shape(gpus=2, marks={f"{MARK}utility_min_thousandths": "600"}),
    "a whole node": Shape(gpus=4, cores=8),
    "gang of two": Shape(2, 2, gang="lws", marks=TALKS),
    "gang of three nodes": Shape(3, 4, gang="lws"),
    "gang of four without a number": Shape(4, 1, gang="jobset"),
    "one to three pods": Shape(3, 1, least=1, gang="group", marks=MAY_STOP),
    "cores": Shape(cores=8, priority="scavenger"),
    "most cores of a node": Shape(cores=24, marks=MAY_STOP),
    "two GPUs that may be stopped": Shape(gpus=2, priority="scavenger"),
    SERVICE: Shape(gpus=2, priority="urgent", marks={f"{MARK}kind": "inference"}),
}


def prepare(api: RealApi) -> None:
    """Make the priority classes, and the kind of objects that state the least of a gang (coscheduling)."""
    for name, value in PRIORITIES.items():
        api.create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": value})
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "podgroups", "singular": "podgroup", "kind": "PodGroup", "listKind": "PodGroupList"}
    spec = {"group": POD_GROUP, "names": names, "scope": "Namespaced", "versions": [version]}
    note = {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/scheduler-plugins/pull/52"}
    metadata = {"name": f"podgroups.{POD_GROUP}", "annotations": note}
    api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {"metadata": metadata, "spec": spec})


def submit(api: RealApi, name: str, shape: Shape, run_s: float, dice: random.Random) -> None:
    """
    Create a job that runs so long; some of its pods take seconds to end when they are deleted.

    Its owner states a run time that is half to twice of what is true, and for its GPUs another use than is measured.
    """
    labels, notes = _gang(name, shape)
    notes[f"{MARK}run_time_ms"] = str(round(1000 * run_s * dice.uniform(0.5, 2.0)))
    if shape.gpus:
        notes |= {
            f"{MARK}gpu_utilisation_percent": str(dice.randrange(10, 100)),
            f"{MARK}profile": profile_of(shape),
        }
    if shape.gang == "group":
        group = {"apiVersion": f"{POD_GROUP}/v1alpha1", "kind": "PodGroup", "metadata": {"name": name}}
        group["spec"] = {"minMember": shape.least}
        api.create_once(f"/apis/{POD_GROUP}/v1alpha1/namespaces/default/podgroups", group)
    notes |= {RUN_S: f"{run_s:.1f}", TOGETHER: str(shape.together), PERCENT: str(dice.randrange(10, 100))}
    notes |= {LATE_S: str(dice.choice((0, 0, 1, 4)))} | shape.marks
    asks = {"cpu": str(shape.cores), "memory": "1Gi"} | ({GPU: str(shape.gpus)} if shape.gpus else {})
    container = {"name": "main", "image": "none", "resources": {"limits": asks, "requests": asks}}
    spec = {"schedulingGates": [{"name": GATE}], "restartPolicy": "Never", "containers": [container]}
    spec |= {"terminationGracePeriodSeconds": 2} | ({"priorityClassName": shape.priority} if shape.priority else {})
    ignored = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
    job = {
        "parallelism": shape.pods,
        "completions": shape.pods,
        "completionMode": "Indexed",
        "backoffLimit": 100,
        "podReplacementPolicy": "Failed",
        "podFailurePolicy": {"rules": ignored},
        "template": {"metadata": {"labels": labels, "annotations": notes}, "spec": spec},
    }
    made = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": job}
    api.create_once("/apis/batch/v1/namespaces/default/jobs", made)


def _gang(name: str, shape: Shape) -> tuple[dict[str, str], dict[str, str]]:
    """Return labels and annotations that say of which gang a pod is."""
    if shape.gang == "lws":
        return {f"{LWS}name": name, f"{LWS}group-index": "0"}, {f"{LWS}size": str(shape.pods)}
    if shape.gang == "jobset":
        return {f"{JOBSET}jobset-name": name}, {}
    return ({f"{POD_GROUP}/pod-group": name} if shape.gang == "group" else {}), {}
