"""Room that is held without a job: by nominated pods, placeholders of YuniKorn, and reservations of Koordinator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import ceil, floor

from placeopt.errors import BadInput
from placeopt.importers.import_notes import ImportNotes
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.kubernetes.node_conditions import label_selector
from placeopt.importers.kubernetes.objects import Listed, job_id
from placeopt.importers.kubernetes.pods import Pod
from placeopt.importers.kubernetes.resources import NONE, in_units, quantity
from placeopt.importers.observed_round import ObservedHold, ObservedJob


def read_holds(
    listed: Listed,
    pods: Iterable[Pod],
    jobs: Sequence[ObservedJob],
    resource: str,
    notes: ImportNotes,
) -> list[ObservedHold]:
    """
    Return the holds of a listing.

    A nominated pod's room counts against jobs of at most its priority, as for kube-scheduler, whatever the pod becomes
    in the round. A reservation's counts against all pods that are not its owners', and that of a placeholder which is
    no job against all but the job of the pods that wait for it. ``resource`` counts GPUs.
    """
    running = {worker.name for job in jobs if job.workers and job.job.origin for worker in job.job.origin.workers}
    holders = [pod for pod in pods if pod.placeholder and pod.node is not None and pod.id not in running]
    pods = [pod for pod in pods if pod.node is None]
    job_of = {
        worker.name: job.job.id
        for job in jobs
        if not job.workers and job.job.origin is not None
        for worker in job.job.origin.workers
    }
    holds = [_nominated(pod, node, job_of) for pod in pods if (node := _nomination(pod))]
    for pod in holders:
        group = {job_of[one.id] for one in pods if one.id in job_of and _gang(one) == _gang(pod)}
        holds.append(_held(f"placeholder:{pod.id}", pod, pod.node or "", jobs=tuple(sorted(group))))
    for entry in listed.get("Reservation", ()):
        try:
            holds += _reserved(entry, pods, job_of, resource, notes)
        except BadInput as error:
            notes.assume(f"A reservation cannot be read, so its room counts as free: {error}")
    return holds


def _nomination(pod: Pod) -> str:
    status = pod.entry.entry("status")
    return "" if pod.ending or pod.placeholder else status.text("nominatedNodeName", "")


def _nominated(pod: Pod, node: str, job_of: Mapping[str, str]) -> ObservedHold:
    own = (job_of[pod.id],) if pod.id in job_of else ()
    return _held(f"nominated:{pod.id}", pod, node, priority=pod.priority, jobs=own)


def _held(name: str, pod: Pod, node: str, *, jobs: tuple[str, ...], priority: int | None = None) -> ObservedHold:
    named = dict(pod.amounts)
    cpu, memory = named.pop("cpu", 0), named.pop("memory", 0)
    return ObservedHold(job_id(name), node, pod.gpus, cpu, memory, named, priority=priority, jobs=jobs)


def _gang(pod: Pod) -> str | None:
    return None if pod.group is None else pod.group.id


def _reserved(
    entry: JsonEntry, pods: Sequence[Pod], job_of: Mapping[str, str], resource: str, notes: ImportNotes
) -> Iterator[ObservedHold]:
    """Yield what an available reservation has left: what it can give, less what its pods took."""
    status, name = entry.entry("status"), entry.entry("metadata").text("name")
    node = status.text("nodeName", "")
    if status.text("phase", "") != "Available" or not node:
        return
    there, taken = status.entry("allocatable"), status.entry("allocated")
    exact = {key: quantity(there, key) - quantity(taken, key) for key in there.names()}
    gpus = max(0, floor(exact.pop(resource, NONE)))
    left = {key: max(0, ceil(amount)) for key, amount in in_units(exact).items()}
    asked = {key for pod in pods for key in pod.amounts} - {"cpu", "memory"}
    owns = [_owner(owner, f"reservation {name}", notes) for owner in entry.entry("spec").entries("owners")]
    own = [job_of[pod.id] for pod in pods if pod.id in job_of and any(owner(pod) for owner in owns)]
    yield ObservedHold(
        job_id(f"reservation:{name}"),
        node,
        gpus,
        left.get("cpu", 0),
        left.get("memory", 0),
        {key: amount for key, amount in left.items() if key in asked},
        jobs=tuple(dict.fromkeys(own)),
    )


def _owner(owner: JsonEntry, whose: str, notes: ImportNotes) -> Callable[[Pod], bool]:
    """Return whether a pod is the owner's, by its labels, its name, or its namespace."""
    if "controller" in owner or not owner.names():
        notes.assume(f"Owners of {whose} by controller are not read: its room is kept from their pods, too.")
        return lambda _: False
    chosen = label_selector(owner.entry("labelSelector")) if "labelSelector" in owner else None
    of = owner.entry("object")
    name, namespace, uid = (of.text(key, "") for key in ("name", "namespace", "uid"))

    def owns(pod: Pod) -> bool:
        return (
            (chosen is None or chosen(pod.labels))
            and name in ("", pod.id.rpartition("/")[2])
            and namespace in ("", pod.namespace)
            and uid in ("", pod.uid)
        )

    return owns
