"""Lists of which a field or two are odd: read, or refused as bad input; never anything else."""

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from helpers.kubernetes_objects import apart, near, pod, read, term
from placeopt import BadInput

DATA = Path(__file__).resolve().parents[3] / "examples" / "kubernetes.json"
ODD: list[Any] = [None, 7, -1, True, "", [], {}, "x", "1e3", "500m", [1], {"a": 1}, [{}], [None], 1e300, "\u202e"]
CASES = 150
"""7,000 more were run once: the refused ones had lost a node's name or the kind of an object."""


def objects() -> list[dict[str, Any]]:
    """Return the small cluster, and objects of every kind beside it."""
    claim = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]}
    gang = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    rules = {
        **near(term({"app": "x"}, namespaceSelector={"matchExpressions": [{"key": "a", "operator": "Exists"}]})),
        **apart(term({"app": "y"})),
    }
    found: list[dict[str, Any]] = json.loads(DATA.read_text())["items"]
    return [
        *found,
        {"kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": {"volumeName": "pv"}},
        {"kind": "PersistentVolume", "metadata": {"name": "pv"}, "spec": {"nodeAffinity": {"required": terms}}},
        {"kind": "Namespace", "metadata": {"name": "ml", "labels": {"a": "b"}}},
        {"kind": "PodGroup", "metadata": {"name": "pg"}, "spec": gang},
        *(pod(f"pg{i}", schedulingGroup={"podGroupName": "pg"}) for i in range(2)),
        pod("volume", volumes=[claim]),
        pod("claim", "gpu-a1", resourceClaims=[{"name": "x", "resourceClaimName": "rc"}]),
        pod("near", labels={"app": "x"}, affinity=rules),
        pod("port", "gpu-a2", containers=[{"name": "c", "ports": [{"hostPort": 80, "containerPort": 80}]}]),
    ]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path to every field and element."""
    yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield from places(inner, (*path, key))


def test_odd_fields(tmp_path: Path) -> None:
    """A field replaced or taken away."""
    rng, whole = random.Random(16), objects()
    paths = [path for path in places(whole) if len(path) > 1]
    refused = 0
    for _ in range(CASES):
        items = copy.deepcopy(whole)
        *above, last = rng.choice(paths)
        holder: Any = items
        for key in above:
            holder = holder[key]
        if isinstance(holder, dict) and rng.random() < 0.2:
            del holder[last]
        else:
            holder[last] = copy.deepcopy(rng.choice(ODD))
        try:
            read(tmp_path, *items)
        except BadInput:
            refused += 1
    assert refused < CASES / 10
