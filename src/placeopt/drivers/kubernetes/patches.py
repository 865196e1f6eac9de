"""The merge patches of a pod: its mark alone, or its mark, the planned node and the end of its gate in one."""

from __future__ import annotations

from placeopt.drivers.kubernetes.api import Object
from placeopt.drivers.kubernetes.marks import HOSTNAME_FIELD, Mark


def record_patch(pod: Object, mark: Mark) -> Object:
    """Return the patch that writes a mark, for this version of the pod alone."""
    return {"metadata": {**_precondition(pod), "annotations": mark.annotations()}}


def lift_patch(pod: Object, mark: Mark) -> Object:
    """
    Return the patch that lifts the gate, binds the pod to its node and writes the mark, for this version alone.

    The API server accepts only what tightens the rules of a gated pod: where there are terms of required node affinity,
    each gets the node besides, since any of them would do; where there are none, one is added.
    """
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms = [_tightened(term, mark.node) for term in required.get("nodeSelectorTerms") or [{"matchFields": []}]]
    return {
        "metadata": {**_precondition(pod), "annotations": mark.annotations()},
        "spec": {
            "schedulingGates": None,
            "affinity": {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
            },
        },
    }


def _tightened(term: Object, node: str) -> Object:
    """Return a term that also requires the node; an empty one selects nothing, and must stay so."""
    if not term:
        return term
    fields = [*(term.get("matchFields") or []), {"key": HOSTNAME_FIELD, "operator": "In", "values": [node]}]
    return {**term, "matchFields": fields}


def _precondition(pod: Object) -> Object:
    return {"uid": pod["metadata"]["uid"], "resourceVersion": pod["metadata"]["resourceVersion"]}
