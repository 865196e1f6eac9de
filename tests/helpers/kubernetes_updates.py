"""What an API server makes of updates: merge patches, and the rules of updates of pods."""

from __future__ import annotations

import copy
from typing import Any

Object = dict[str, Any]


class Refusal(Exception):
    """A request is answered with an error status."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.answer = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}
        self.answer |= {"code": status, "reason": reason, "message": message}


def merged(target: Any, patch: Any) -> Any:
    """JSON merge patch, RFC 7386."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = copy.deepcopy(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def refuse_pod_update(old: Object, new: Object) -> None:
    """The rules of pod updates about gates and node affinity; everything else in a spec stays as it is."""
    had, has = old["spec"], new["spec"]
    gates = [{gate["name"] for gate in spec.get("schedulingGates") or []} for spec in (had, has)]
    _allow(gates[1] <= gates[0], "spec.schedulingGates: only deletion is allowed")
    same = _without(had, "schedulingGates", "affinity") == _without(has, "schedulingGates", "affinity")
    _allow(same, "spec: pod updates may not change other fields")
    affinity, wanted = had.get("affinity") or {}, has.get("affinity") or {}
    if affinity == wanted:
        return
    _allow(bool(gates[0]), "spec.affinity: only pods with scheduling gates may change it")
    same = _without(affinity, "nodeAffinity") == _without(wanted, "nodeAffinity")
    _allow(same, "spec.affinity: only node affinity may change")
    before, after = _terms(affinity), _terms(wanted)
    _allow(not before or len(before) == len(after), "nodeSelectorTerms: no additions or deletions are allowed")
    for one, other in zip(before, after, strict=False):
        _allow(bool(one) or not other, "nodeSelectorTerms: an empty term stays empty")
        for key in ("matchExpressions", "matchFields"):
            first = one.get(key) or []
            _allow((other.get(key) or [])[: len(first)] == first, "nodeSelectorTerms: only additions are allowed")


def _allow(holds: bool, words: str) -> None:
    if not holds:
        raise Refusal(422, "Invalid", f"Forbidden: {words}")


def _without(found: Object, *names: str) -> Object:
    return {name: value for name, value in found.items() if name not in names}


def _terms(affinity: Object) -> list[Object]:
    required = (affinity.get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return required.get("nodeSelectorTerms") or []
