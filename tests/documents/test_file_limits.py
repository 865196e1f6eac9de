"""Files that are small and ask for much: each is refused in words, or solved within its limit."""

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from placeopt import BadInput, Instance, build, solve
from placeopt.documents import dumps, loads
from placeopt.edits import Patch, apply
from placeopt.model import Communication, Domain, Edge

STEPS = 200


def calls_of(call: Callable[[], object], name: str | None = None) -> int:
    """Count the calls of Python functions, or of those of one name, that a call makes."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call" and (name is None or frame.f_code.co_name == name)

    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(None)
    return calls


def test_a_wide_elastic_range_is_not_tried_number_by_number() -> None:
    """A job of 1 to 100,000 workers took 21.9 s of 3: all numbers for which there is no room were tried."""
    most, gpus = 20_000, 8
    made = build.instance(2, [build.job("wide", workers=most, workers_min=1, value=9 + most, value_per_worker=1)])
    plan = solve(made, method="stranding", isolation="thread")
    assert [sum(len(part.workers) for part in one.assignments) for one in plan.placements] == [gpus]
    calls = calls_of(lambda: solve(made, method="stranding", deterministic=True, isolation="thread"))
    assert calls < 50 * most  # 22 for each number, to compile it; trying each took 110 more


def test_a_path_of_levels_has_an_end() -> None:
    """A chain of 2,000 levels took 19.5 s: costs and bounds look at all nodes for every level."""
    chain = [Domain(id=f"d{i}", level=f"l{i}", parent=f"d{i - 1}" if i else None) for i in range(65)]
    build.instance([build.node("n0", domain="d63")], domains=chain[:64])
    with pytest.raises(
        ValueError, match=r"domains\[64\]\.parent: 'd64' is on level 65 of its path; expected at most 64"
    ):
        build.instance([build.node("n0", domain="d64")], domains=chain)


def test_edges_of_a_job_have_a_limit() -> None:
    """979,300 edges took 24 s and 1.4 GB to read."""
    pairs = [(a, b) for b in range(460) for a in range(b)]
    edges = tuple(Edge.model_construct(ranks=pair, weight=1) for pair in pairs)
    gang = build.job("gang", workers=460)
    traffic = Communication.model_construct(edges=edges)
    made = build.instance(1, [gang]).model_copy(update={"jobs": (gang.model_copy(update={"communication": traffic}),)})
    with pytest.raises(BadInput, match=r"jobs\[0\]\.communication\.edges.*100000"):
        loads(Instance, dumps(made))


def test_a_long_patch_is_checked_once() -> None:
    """2,000 replacements on 5,000 nodes took over a minute: every step checked all records anew."""
    machines = [build.machine(), build.machine("other")]
    made = build.instance(STEPS, [build.job("a")], machines=machines)
    steps = [{"do": "replace_nodes", "nodes": [f"n{i}"], "machine": "other"} for i in range(STEPS)]
    patch = Patch.model_validate({"steps": steps})
    assert calls_of(lambda: apply(made, patch.steps), "_references") < 10
    after = apply(made, patch.steps)
    assert {node.machine for node in after.cluster.nodes} == {"other"}


def test_a_wrong_step_of_a_patch_is_named() -> None:
    """The steps are checked together; where the result is wrong, the first wrong step is found."""
    made = build.instance(2, [build.job("a", nodes_allowed=("n0",))])
    steps = [
        {"do": "add_nodes", "count": 1, "like": "n0", "prefix": "more"},
        {"do": "add_nodes", "count": 1, "like": "n0", "domain": "nowhere", "prefix": "lost"},
    ]
    with pytest.raises(BadInput, match=r"steps\[1\] \(add_nodes\).*nowhere"):
        apply(made, Patch.model_validate({"steps": steps}).steps)
