"""What an API server makes of updates: merge patches, and the rules of updates of pods."""

from __future__ import annotations

import copy
from typing import Any

Object = dict[str, Any]


class Refusal(Exception):
    """A request is answered with an error status."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.answer = {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "code": status,
            "reason": reason,
            "message": message,
        }


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
    before = [gate["name"] for gate in old["spec"].get("schedulingGates") or []]
    after = [gate["name"] for gate in new["spec"].get("schedulingGates") or []]
    if not set(after) <= set(before):
        raise Refusal(422, "Invalid", "spec.schedulingGates: Forbidden: only deletion is allowed")
    rest = [
        {k: v for k, v in spec.items() if k not in ("schedulingGates", "affinity")}
        for spec in (old["spec"], new["spec"])
    ]
    if rest[0] != rest[1]:
        raise Refusal(422, "Invalid", "spec: Forbidden: pod updates may not change other fields")
    affinity, wanted = old["spec"].get("affinity") or {}, new["spec"].get("affinity") or {}
    if affinity == wanted:
        return
    if not before:
        raise Refusal(422, "Invalid", "spec.affinity: Forbidden: only pods with scheduling gates may change it")
    others = [{k: v for k, v in one.items() if k != "nodeAffinity"} for one in (affinity, wanted)]
    if others[0] != others[1]:
        raise Refusal(422, "Invalid", "spec.affinity: Forbidden: only node affinity may change")
    old_terms, new_terms = (
        ((one.get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get(
            "nodeSelectorTerms"
        )
        or []
        for one in (affinity, wanted)
    )
    if old_terms and len(old_terms) != len(new_terms):
        raise Refusal(422, "Invalid", "nodeSelectorTerms: no additions or deletions are allowed")
    for one, other in zip(old_terms, new_terms, strict=False):
        if not one and other:
            raise Refusal(422, "Invalid", "nodeSelectorTerms: an empty term stays empty")
        for key in ("matchExpressions", "matchFields"):
            had, has = one.get(key) or [], other.get(key) or []
            if has[: len(had)] != had:
                raise Refusal(422, "Invalid", "nodeSelectorTerms: only additions are allowed")
