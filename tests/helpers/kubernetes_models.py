"""Objects of Kubernetes held against the models of its client."""

from __future__ import annotations

import json
from typing import Any

from kubernetes import client


def as_model(found: object, model: str) -> object:
    """Return an object read into the client's model and written again: what the model lacks is missing."""
    api_client = client.ApiClient()
    read = api_client.deserialize(json.dumps(found), model, "application/json")
    return api_client.sanitize_for_serialization(read)


def differences(one: Any, other: Any, path: str = "") -> list[str]:
    """Return the paths at which two JSON values differ; empty collections and times in other forms are the same."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = one.keys() | other.keys()
        return [d for key in sorted(keys) for d in differences(one.get(key), other.get(key), f"{path}.{key}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [d for i, pair in enumerate(zip(one, other, strict=True)) for d in differences(*pair, f"{path}[{i}]")]
    if (one or None) == (other or None) or "Time" in path:
        return []
    return [f"{path}: {one!r} is {other!r}"]
