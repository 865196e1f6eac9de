"""Room that is held without a job: by nominated pods, placeholders of YuniKorn, and reservations of Koordinator."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from placeopt.errors import BadInput
from placeopt.importers.import_notes import ImportNotes
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.kubernetes.node_conditions import label_selector
from placeopt.importers.kubernetes.objects import Listed, job_id
from placeopt.importers.kubernetes.pods import Pod
from placeopt.importers.kubernetes.resources import NANO, in_units, quantity
from placeopt.importers.observed_round import ObservedHold, ObservedJob


def read_holds(
    listed: Listed, pods: Sequence[Pod], jobs: Sequence[ObservedJob], resource: str, notes: ImportNotes
) -> list[ObservedHold]:
    """
    Return the holds of a listing.

    A nominated pod's room counts against jobs of at most its priority, as for kube-scheduler, whatever the pod becomes
    in the round. A reservation's counts against all pods that are not its owners', and that of a placeholder which is
    no job against all but the job of the pods that wait for it. ``resource`` counts GPUs.
    """
    job_of = {pod.name: job for job in jobs for pod in (job.job.origin.workers if job.job.origin else ())}
    waiting = [pod for pod in pods if pod.node is None]
    own = {pod.id: job_of[pod.id].job.id for pod in waiting if pod.id in job_of}
    gang_of = {pod.id: pod.group and pod.group.id for pod in pods}
    holds = []
    for pod in waiting:
        if pod.nominated:
            mine = {own[pod.id]} if pod.id in own else ()
            holds.append(_held(f"nominated:{pod.id}", pod, pod.nominated, mine, pod.priority))
    for pod in pods:
        if pod.placeholder and pod.node is not None and pod.id not in job_of:
            gang = {job for name, job in own.items() if gang_of[name] == gang_of[pod.id]}
            holds.append(_held(f"placeholder:{pod.id}", pod, pod.node, gang, None))
    for entry in listed.get("Reservation", ()):
        try:
            holds += _reserved(entry, waiting, own, resource, notes)
        except BadInput as error:
            notes.assume(f"A reservation cannot be read, so its room counts as free: {error}")
    return holds


def _held(name: str, pod: Pod, node: str, jobs: Collection[str], priority: int | None) -> ObservedHold:
    named = dict(pod.amounts)
    cpu, memory = named.pop("cpu", 0), named.pop("memory", 0)
    return ObservedHold(job_id(name), node, pod.gpus, cpu, memory, named, priority, tuple(sorted(jobs)))


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
    gpus = max(0, exact.pop(resource, 0) // NANO)
    left = {key: max(0, amount) for key, amount in in_units(exact, up=True).items()}
    cpu, memory = left.pop("cpu", 0), left.pop("memory", 0)
    asked = {key for pod in pods for key in pod.amounts}
    owns = [_owner(owner, f"reservation {name}", notes) for owner in entry.entry("spec").entries("owners")]
    own = dict.fromkeys(job_of[pod.id] for pod in pods if pod.id in job_of and any(owner(pod) for owner in owns))
    named = {key: amount for key, amount in left.items() if key in asked}
    yield ObservedHold(job_id(f"reservation:{name}"), node, gpus, cpu, memory, named, jobs=tuple(own))


def _owner(owner: JsonEntry, whose: str, notes: ImportNotes) -> Callable[[Pod], bool]:
    """Return whether a pod is the owner's, by its labels, its name, or its namespace."""
    if "controller" in owner or not owner.names():
        notes.assume(f"Owners of {whose} by controller are not read: its room is kept from their pods, too.")
        return lambda _: False
    meets, of = label_selector(owner.entry("labelSelector")), owner.entry("object")
    name, namespace, uid = (of.text(key, "") for key in ("name", "namespace", "uid"))

    def owns(pod: Pod) -> bool:
        stated = ((name, pod.id.rpartition("/")[2]), (namespace, pod.namespace), (uid, pod.uid))
        return meets(pod.labels) and all(wanted in ("", own) for wanted, own in stated)

    return owns
