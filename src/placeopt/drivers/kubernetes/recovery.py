"""Actions that are half done: a gang with some gates lifted is finished; one that cannot be complete is undone."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence

from placeopt.drivers.kubernetes.api import ApiFault, Object
from placeopt.drivers.kubernetes.marks import (
    GATE,
    by_action,
    gates,
    has_controller,
    is_lifted,
    is_whole,
    mark_of,
    waits_for_placeopt,
)
from placeopt.drivers.kubernetes.outcomes import OutcomeWatch
from placeopt.drivers.kubernetes.patches import whole_patch
from placeopt.drivers.kubernetes.pods import PodCalls
from placeopt.drivers.kubernetes.starts import lift_all, undo


def finish_half_lifted(
    calls: PodCalls, pods: Sequence[Object], nodes: Collection[str], outcomes: OutcomeWatch
) -> list[str]:
    """
    Lift the other gates of gangs of which some are lifted, or evict those pods; return what was done.

    Such a gang is left by a driver that ended, or lost the server, between two patches. It is finished as its marks
    say, if all of its pods are there and their nodes are usable (``nodes``). Raises `Unreachable`.
    """
    notes = []
    for action, members in by_action(pods).items():
        gated = [pod for pod in members if GATE in gates(pod)]
        lifted = [pod for pod in members if is_lifted(pod)]
        if not gated or not lifted:
            continue
        marks = [mark for pod in gated if (mark := mark_of(pod)) is not None]
        lost = [mark.node for mark in marks if mark.node not in nodes]
        if len(members) < marks[0].pods or not all(waits_for_placeopt(pod) for pod in gated):
            why = f"{action[1]} undone: some of its pods are gone"
        elif lost:
            why = f"{action[1]} undone: node {lost[0]} cannot be used any more"
        else:
            came = lift_all(calls, list(zip(gated, marks, strict=True)), list(lifted))
            if came.result == "done":
                outcomes.started(action, time.monotonic())
                notes.append(f"{action[1]}: finished a half-lifted gang")
            else:
                outcomes.dropped(action)
                notes.append(f"{action[1]} {came.result}: {came.why}")
            continue
        outcomes.dropped(action)
        notes.append(undo(calls, lifted, why))
    return notes


def evict_incomplete(calls: PodCalls, pods: Sequence[Object]) -> list[str]:
    """
    Evict what is left of an action of which a pod does not run: it begins again, on other nodes.

    A single pod without a node is evicted only if none has been found for it meanwhile. Returns what was done.
    """
    notes = []
    for pod in pods:
        name = pod["metadata"]["name"]
        if not has_controller(pod):
            notes.append(f"{name} stays: it has no controller, so nothing creates it again")
            continue
        why = calls.evict(pod, this_version=is_whole(pod))  # which it is by itself, if alone
        if why is not None:
            notes.append(f"{name} stays: {why}")
    return notes


def record_whole(calls: PodCalls, pods: Sequence[Object]) -> None:
    """Write into pods that their gangs are whole; one that is gone needs none. Raises `ApiFault`, `Unreachable`."""
    for pod in pods:
        try:
            calls.patch(pod, whole_patch(pod))
        except ApiFault as fault:
            if fault.status not in (404, 409):
                raise
