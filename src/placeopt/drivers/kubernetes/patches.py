"""The merge patches of a pod: its mark alone, or its mark, the planned node and the end of its gate in one."""

from __future__ import annotations

from placeopt.drivers.kubernetes.api import Object
from placeopt.drivers.kubernetes.marks import HOSTNAME_FIELD, WHOLE, Mark


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


def whole_patch(pod: Object) -> Object:
    """Return the patch that records of a pod, in any version, that all pods of its action were taken."""
    return {"metadata": {"uid": pod["metadata"]["uid"], "annotations": {WHOLE: "true"}}}


def as_submitted(pod: Object, mark: Mark) -> Object:
    """
    Return a copy of a pod whose gate was lifted, with the node affinity that it had before.

    It says where its job may run; with the node in it, every node would have pods with rules of their own, which the
    reader holds against all nodes.
    """
    affinity = pod["spec"].get("affinity") or {}
    node_affinity = affinity.get("nodeAffinity") or {}
    required = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms = [_loosened(term, mark.node) for term in required.get("nodeSelectorTerms") or []]
    required = {} if terms == [None] else {**required, "nodeSelectorTerms": [term or {} for term in terms]}
    node_affinity = {**node_affinity, "requiredDuringSchedulingIgnoredDuringExecution": required}
    kept = {key: value for key, value in node_affinity.items() if value}
    affinity = {key: value for key, value in {**affinity, "nodeAffinity": kept}.items() if value}
    spec = {key: value for key, value in {**pod["spec"], "affinity": affinity}.items() if key != "affinity" or value}
    return {**pod, "spec": spec}


def _tightened(term: Object, node: str) -> Object:
    """Return a term that also requires the node; an empty one selects nothing, and must stay so."""
    return {**term, "matchFields": [*(term.get("matchFields") or []), _only(node)]} if term else term


def _loosened(term: Object, node: str) -> Object | None:
    """Return a term without the node that `_tightened` added; None if the whole term was added."""
    fields = term.get("matchFields") or []
    if not fields or fields[-1] != _only(node):
        return term
    if fields[:-1]:
        return {**term, "matchFields": fields[:-1]}
    return {key: value for key, value in term.items() if key != "matchFields"} or None


def _only(node: str) -> Object:
    return {"key": HOSTNAME_FIELD, "operator": "In", "values": [node]}


def _precondition(pod: Object) -> Object:
    return {"uid": pod["metadata"]["uid"], "resourceVersion": pod["metadata"]["resourceVersion"]}
