"""GPUs that have failed: holds that no job may use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count

from placeopt.edits.records import changed
from placeopt.model import Hold, Instance
from placeopt.model.instance import FAILED_GPU


def with_failed_gpus(instance: Instance, failed: Mapping[str, Iterable[int]]) -> Instance:
    """
    Return the round in which GPUs of nodes have failed (`Instance.failed_gpus`); what runs on them waits.

    No job is placed on them until the hold of each goes; indices, CPU and memory of the nodes stay.
    """
    gone = {(node, gpu) for node, gpus in failed.items() for gpu in gpus}
    taken = {hold.id for hold in instance.holds}
    free = (name for name in map(f"{FAILED_GPU}{{}}".format, count()) if name not in taken)
    holds = (Hold(id=name, node=node, gpus=(gpu,)) for (node, gpu), name in zip(sorted(gone), free, strict=False))
    running = tuple(
        held
        for held in instance.running
        if not any((part.node, int(gpu)) in gone for part in held.assignments for gpu in part.gpus)
    )
    return changed(instance, holds=(*instance.holds, *holds), running=running)


def without_gone_gpus(instance: Instance) -> Instance:
    """Return the round without the holds of failed GPUs that are no longer there."""
    failed, sizes = instance.failed_gpus, instance.cluster.gpus_by_node if instance.holds else {}
    gone = {hold.id for (node, gpu), hold in failed.items() if gpu >= sizes.get(node, 0)}
    return changed(instance, holds=tuple(hold for hold in instance.holds if hold.id not in gone)) if gone else instance
