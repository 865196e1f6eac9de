"""Levels that makers of gangs only prefer: the plan keeps to them where it can, and says what it reached."""

from __future__ import annotations

from typing import Any

import pytest

from helpers.imported_rounds import notes_of
from helpers.kubernetes_objects import node, pod, read
from placeopt import solve, violations
from placeopt.model import Plan

ZONE, RACK, GANG = "topology.kubernetes.io/zone", "topology.kubernetes.io/rack", "scheduling.k8s.io/group-name"


def cluster(*free: int) -> list[dict[str, Any]]:
    """Racks of one node each with so many free GPUs, two racks to a zone; and what shows them as HyperNodes."""
    items: list[dict[str, Any]] = []
    for i, gpus in enumerate(free):
        items.append(node(f"n{i}", str(gpus), labels={ZONE: f"z{i // 2}", RACK: f"r{i}"}))
        members = [{"type": "Node", "selector": {"exactMatch": {"name": f"n{i}"}}}]
        items.append({"kind": "HyperNode", "metadata": {"name": f"h{i}"}, "spec": {"tier": 1, "members": members}})
    return items


def gang(size: int, group: dict[str, Any] | None = None, **annotations: str) -> list[dict[str, Any]]:
    listed = {"kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"minMember": size, **(group or {})}}
    return [listed, *(pod(f"p{i}", annotations={GANG: "g", **annotations}) for i in range(size))]


MAKERS = {
    "Kueue": ({}, {"kueue.x-k8s.io/podset-preferred-topology": RACK}),
    "KAI's pods": ({}, {"kai.scheduler/topology-preferred-placement": RACK}),
    "KAI's PodGroup": ({"topologyConstraint": {"preferredTopologyLevel": RACK}}, {}),
    "Volcano": ({"networkTopology": {"mode": "soft", "highestTierAllowed": 1}}, {}),
}


def placed(items: list[dict[str, Any]]) -> tuple[Plan, list[str]]:
    found = read(*items)
    plan = solve(found, time_limit_s=60)
    assert plan.status == "optimal"
    assert violations(found, plan) == []
    nodes = {held.node for placement in plan.placements for held in placement.assignments}
    return plan, sorted(nodes)


@pytest.mark.parametrize(("group", "marks"), MAKERS.values(), ids=MAKERS)
def test_one_rack_where_one_has_room(group: dict[str, Any], marks: dict[str, str]) -> None:
    plan, nodes = placed([*cluster(3, 2, 4), *gang(4, group, **marks)])
    assert nodes == ["n2"]
    assert list(plan.placements[0].reached.values()) != []


@pytest.mark.parametrize(("group", "marks"), MAKERS.values(), ids=MAKERS)
def test_several_racks_where_none_has_room(group: dict[str, Any], marks: dict[str, str]) -> None:
    _, nodes = placed([*cluster(3, 2, 3), *gang(4, group, **marks)])
    assert len(nodes) == 2


def test_the_lowest_level_above_it_is_next() -> None:
    """No rack holds five; one zone does, and the racks of another one would, too, with a third."""
    _, nodes = placed([*cluster(3, 1, 1, 3, 2, 3), *gang(5, **MAKERS["Kueue"][1])])
    assert nodes == ["n4", "n5"]


def test_levels_from_the_required_one_up_are_not_preferred() -> None:
    both = {"kueue.x-k8s.io/podset-required-topology": ZONE, "kueue.x-k8s.io/podset-preferred-topology": RACK}
    (option,) = read(*cluster(3, 3), *gang(4, None, **both)).jobs[0].options
    assert ([split.level for split in option.splits], option.prefer) == (["zone"], ("rack",))


def test_a_preferred_level_that_is_not_there() -> None:
    found = read(*cluster(4), *gang(2, None, **{"kueue.x-k8s.io/podset-preferred-topology": "example.com/spine"}))
    assert found.jobs[0].options[0].prefer == ()
    assert "A preferred level that no node has is not read: example.com/spine" in notes_of(found)


def test_what_runs_prefers_nothing() -> None:
    """It lies where it lies; one pod alone is in one domain anyway."""
    runs = [pod(f"p{i}", "n0", annotations={GANG: "g", **MAKERS["Kueue"][1]}) for i in range(2)]
    found = read(*cluster(8), *runs, pod("alone", annotations=MAKERS["Kueue"][1]))
    assert [job.options[0].prefer for job in found.jobs] == [(), ()]


def test_preferred_node_affinity_is_counted() -> None:
    """No record of a round says it: the pods are read without it, and the note says how many."""
    terms = [{"weight": 1, "preference": {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["z0"]}]}}]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}
    found = read(*cluster(4), pod("a", affinity=affinity), pod("b", affinity=affinity), pod("c"))
    assert len(found.jobs) == 3
    assert "Preferred node affinity is not read: no record of a round says it (2 pods wait)." in notes_of(found)
    assert "Preferred node affinity" not in notes_of(read(*cluster(4), pod("r", "n0", affinity=affinity)))
