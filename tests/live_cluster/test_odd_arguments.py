"""Arguments of the wrong kind are refused in words, whichever call they are given to, and change nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from helpers.live_engine import engine_of
from placeopt import Engine, PlaceoptError
from placeopt.build import job, running
from placeopt.live_cluster import ClusterChanges

ODD: list[Any] = [5, 1.5, True, "x", object(), [1], [None], [["a"]], {3: 4}, {"a": 1}]
ODD += [{name: value} for name in ("runs", "waits", "n0") for value in ([], 7, "drain?", {"movable": 1}, {3: True})]
RUNS, WAITS = job("runs", gpus=1), job("waits", gpus=1)
FIELDS = [
    "release",
    "remove_jobs",
    "nodes",
    "add_jobs",
    "adopt",
    "expected_end_ms",
    "flags",
    "priorities",
    "holds",
    "reading",
]
CALLS: dict[str, Callable[[Engine, Any], object]] = {
    **{name: lambda engine, value, name=name: engine.apply(ClusterChanges(**{name: value})) for name in FIELDS},
    **{
        name: lambda engine, value, name=name: getattr(engine, name)(value)
        for name in ("apply", "edit", "commit", "rank")
    },
    "now_ms": lambda engine, value: engine.apply(ClusterChanges(now_ms=value if value != 5 else "5")),
    "movable": lambda engine, value: engine.commit(engine.place(["waits"]), movable=value if value is not True else 1),
    "jobs": lambda engine, value: engine.place(value),
    "jobs[]": lambda engine, value: engine.place([value]),
    "nodes to rank": lambda engine, value: engine.rank("waits", value),
    "method to rank": lambda engine, value: engine.rank("waits", method=value),
}
TAKEN = {"priorities": ({"waits": 7}, {"runs": 7}), "expected_end_ms": ({"runs": 7},)}
"""What is not odd there: numbers are priorities and times."""
IDS = {"release", "remove_jobs", "jobs", "nodes to rank", "movable"}
"""Takes any collection of ids, mappings too."""


@pytest.mark.parametrize("call", CALLS)
def test_odd_values_are_refused(call: str) -> None:
    """Never an internal fault, as malformed containers were, and never half of it."""
    held = [running(RUNS, [("n0", [0])])]
    with engine_of(1, [RUNS, WAITS], running=held) as engine:
        for value in ODD:
            if value in TAKEN.get(call, ()) or (call in IDS and isinstance(value, dict)):
                continue
            if call == "movable" and isinstance(value, str | list):
                continue
            before, revision = engine.snapshot.model_dump(), engine.revision
            with pytest.raises(PlaceoptError) as refused:
                CALLS[call](engine, value)
            assert type(refused.value).__name__ in ("BadInput", "BadArgument"), (value, refused.value)
            assert (engine.snapshot.model_dump(), engine.revision) == (before, revision)
