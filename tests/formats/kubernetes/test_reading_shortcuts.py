"""What is read once for equal content, and records made without a second check, are what each pod alone would give."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.kubernetes_objects import node, pod
from placeopt import BadInput
from placeopt.formats import read_kubernetes

SNAPSHOT = Path(__file__).parents[3] / "examples" / "kubernetes.json"
ODD: list[Any] = [None, 0, -1, "x", "", [], {}, True, [1], {"a": 1}, "500m", [{"name": "a"}], 1.5, "two words"]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield from places(inner, (*path, key))


def mutated(seed: int) -> dict[str, Any]:
    """Return the snapshot, some pods twice under another name, with some values replaced."""
    draw = random.Random(seed)
    document = json.loads(SNAPSHOT.read_text())
    for item in draw.sample([item for item in document["items"] if item["kind"] == "Pod"], 8):
        twin = copy.deepcopy(item)
        twin["metadata"]["name"] += "-twin"
        document["items"].append(twin)
    for _ in range(draw.randrange(4)):
        path = draw.choice([path for path in places(document["items"]) if len(path) > 1])
        at = document["items"]
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = copy.deepcopy(draw.choice(ODD))
    return document


def outcome(document: dict[str, Any]) -> str:
    try:
        return read_kubernetes(document).model_dump_json()
    except BadInput as error:
        return str(error)


def test_shortcuts_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    documents = [mutated(seed) for seed in range(40)]
    quick = [outcome(document) for document in documents]
    assert sum(text.startswith("{") for text in quick) > 20
    for module in ("pods", "nodes"):
        monkeypatch.setattr(f"placeopt.formats.kubernetes.{module}.content_key", lambda _: None)
    for module in ("kubernetes.jobs", "kubernetes.pods", "observed_round"):
        monkeypatch.setattr(f"placeopt.formats.{module}.is_plain", lambda *_: False)
    for module in ("kubernetes.jobs", "observed_round"):
        monkeypatch.setattr(f"placeopt.formats.{module}.trusted", lambda kind, fields: kind(**fields))
    for document, text in zip(documents, quick, strict=True):
        assert outcome(document) == text


def test_a_pod_on_a_node_with_a_malformed_name() -> None:
    """It was an error of pydantic's."""
    with pytest.raises(BadInput, match='node: "two words"'):
        read_kubernetes([node("n"), pod("p", "two words")])
