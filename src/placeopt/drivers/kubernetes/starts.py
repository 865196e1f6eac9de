"""
Starting the pods of an action: all of their gates are lifted, or none stays lifted.

A gang's mark is written on every pod first, then gates are lifted in the order of ranks. So the API server holds the
whole action before the first gate is lifted, and whoever finds the gang half lifted can finish it.
"""

from __future__ import annotations

from collections.abc import Sequence

from placeopt.drivers.answers import Unreachable
from placeopt.drivers.kubernetes.api import ApiFault, Object
from placeopt.drivers.kubernetes.marks import Mark, gates, has_controller, is_leaving, mark_of, waits_for_placeopt
from placeopt.drivers.kubernetes.patches import lift_patch, record_patch
from placeopt.drivers.kubernetes.pods import PodCalls
from placeopt.drivers.round_report import DONE, Applied

MOST_TRIES = 8
"""Of one patch, where other writers change the pod at the same time."""


class _Lost(Exception):
    """A pod of the action cannot be lifted as planned."""


def start_pods(calls: PodCalls, pods: Sequence[tuple[Object, Mark]]) -> Applied:
    """
    Lift the gates of all pods of an action; it is ``undone`` where some were lifted, and these pods were evicted.

    ``pods``: In the order of ranks. Raises `Unreachable` where the server does not answer; what was lifted until then
    is found by its marks.
    """
    try:
        for pod, _ in pods:
            if not waits_for_placeopt(pod):
                raise _Lost(f"pod {pod['metadata']['name']} no longer waits behind the gate alone")
        if len(pods) > 1:
            pods = [(_recorded(calls, pod, mark), mark) for pod, mark in pods]
    except _Lost as lost:
        return Applied("refused", str(lost))
    return lift_all(calls, pods, [])


def lift_all(calls: PodCalls, pods: Sequence[tuple[Object, Mark]], lifted: list[Object]) -> Applied:
    """Lift the gates of these pods, which go with those in ``lifted``; where one fails for good, evict all of these."""
    try:
        for pod, mark in pods:
            lifted.append(_lifted(calls, pod, mark))
    except _Lost as lost:
        if not lifted:
            return Applied("refused", str(lost))
        return Applied("undone", undo(calls, lifted, str(lost)))
    return DONE


def undo(calls: PodCalls, lifted: Sequence[Object], why: str) -> str:
    """Evict pods whose gates were lifted and that something makes again, gated; return what was done and why."""
    kept = []
    for pod in lifted:
        refused = calls.evict(pod) if has_controller(pod) else "it has no controller"
        if refused is not None:
            kept.append(f"{pod['metadata']['name']} stays: {refused}")
    return "; ".join([why, *kept])


def _recorded(calls: PodCalls, pod: Object, mark: Mark) -> Object:
    """Write the mark of a pod that waits."""
    for _ in range(MOST_TRIES):
        try:
            return calls.patch(pod, record_patch(pod, mark))
        except ApiFault as fault:
            pod = _again(calls, pod, fault)
            if not waits_for_placeopt(pod):
                raise _Lost(f"pod {pod['metadata']['name']} no longer waits behind the gate alone") from None
    raise _Lost(f"pod {pod['metadata']['name']} changed at every try")


def _lifted(calls: PodCalls, pod: Object, mark: Mark) -> Object:
    """
    Lift the gate of a pod, and return it.

    A conflict means that another client wrote to the pod since. It is read again: if it still waits, for this action or
    unmarked, it is patched again; if this action has lifted it already, because an answer was lost or another
    driver finished it, that is what was wanted.
    """
    alone = mark.pods == 1
    for _ in range(MOST_TRIES):
        try:
            return calls.patch(pod, lift_patch(pod, mark))
        except ApiFault as fault:
            pod = _again(calls, pod, fault)
        if mark_of(pod) == mark and not gates(pod) and not is_leaving(pod):
            return pod
        if not waits_for_placeopt(pod):
            raise _Lost(f"pod {pod['metadata']['name']} no longer waits behind the gate alone")
        if not alone and mark_of(pod) != mark:
            raise _Lost(f"pod {pod['metadata']['name']} is part of another round since")
    raise _Lost(f"pod {pod['metadata']['name']} changed at every try")


def _again(calls: PodCalls, pod: Object, fault: ApiFault) -> Object:
    """Return a pod as it is now after a conflict; raise `_Lost` for any other fault, or if it is gone."""
    if fault.status == 429:  # the server is overloaded: what is lifted so far is finished in the next round
        raise Unreachable(str(fault)) from None
    if fault.status not in (404, 409):
        raise _Lost(f"pod {pod['metadata']['name']}: {fault}") from None
    found = calls.read(pod)
    if found is None:
        raise _Lost(f"pod {pod['metadata']['name']} is gone") from None
    return found
