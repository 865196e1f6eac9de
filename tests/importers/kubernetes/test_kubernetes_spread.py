"""Topology spread constraints that must hold (DoNotSchedule): the skew of a gang, where only its own pods count."""

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from helpers.imported_rounds import left_out
from helpers.kubernetes_objects import HOSTNAME, node, pod, read
from helpers.night import seeds
from helpers.solved import planned

ZONE, KIND = "topology.kubernetes.io/zone", "example.com/kind"
MINE = {"matchLabels": {"app": "mine"}}


def constraint(skew: int = 1, key: str = ZONE, **more: Any) -> dict[str, Any]:
    return {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": MINE, **more}


def gang(count: int, *constraints: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    labels = {"jobset.sigs.k8s.io/jobset-name": "g", "app": "mine"}
    return [pod(f"p{i}", labels=labels, topologySpreadConstraints=list(constraints), **more) for i in range(count)]


def reachable(room: Sequence[int], count: int, skew: int) -> set[tuple[int, ...]]:
    """
    Return the numbers of pods in each zone to which the filter PodTopologySpread leads, pod by pod.

    ``room``: Of each zone with a node that the pods select, schedulable or not.
    """
    reached = {(0,) * len(room)}
    for _ in range(count):
        grown = {(*at[:i], at[i] + 1, *at[i + 1 :]) for at in reached for i in range(len(room)) if at[i] < room[i]}
        before = {at: [(*at[:i], at[i] - 1, *at[i + 1 :]) for i in range(len(room))] for at in grown}
        reached = {
            at
            for at, some in before.items()
            if any(one in reached and at[i] - min(one) <= skew for i, one in enumerate(some))
        }
    return reached


@pytest.mark.parametrize("seed", seeds(40))
def test_a_gang_starts_where_the_filter_lets_all_of_its_pods_start(seed: int) -> None:
    """Zones of cordoned or tainted nodes count, those that the pods do not select do not, nor do nodes without zone."""
    draw = random.Random(seed)
    nodes, zones, room = [], [f"z{i}" for i in range(draw.randint(1, 4))], Counter[str]()
    for zone in [*zones, *draw.choices([*zones, None], k=3)]:
        kind, gpus = draw.choice("aaaab"), draw.randint(0, 3)
        labels = {KIND: kind} | ({ZONE: zone} if zone else {})
        closed = draw.choice(({}, {}, {"unschedulable": True}, {"taints": [{"key": "k", "effect": "NoSchedule"}]}))
        nodes.append(node(f"n{len(nodes)}", str(gpus), labels=labels, **closed))
        if zone and kind == "a":
            room[zone] += 0 if closed else gpus
    count, skew = draw.randint(1, 6), draw.randint(1, 2)
    found = read(*nodes, *gang(count, constraint(skew), nodeSelector={KIND: "a"}))
    assert [spread.skew_max for spread in found.jobs[0].options[0].spread] == [skew]
    plan = planned(found)
    assert plan.status == "optimal"
    can = reachable(list(room.values()), count, skew)
    assert bool(plan.placements) == bool(can)
    zone_of = {one["metadata"]["name"]: one["metadata"]["labels"].get(ZONE) for one in nodes}
    for placement in plan.placements:
        inside = Counter(zone_of[held.node] for held in placement.assignments for _ in held.workers)
        assert tuple(inside[zone] for zone in room) in can


def test_nodes_by_hostname() -> None:
    """Every node counts."""
    nodes = [node(name, labels={HOSTNAME: name}) for name in "abc"]
    found = read(*nodes, *gang(6, constraint(key=HOSTNAME)))
    (placement,) = planned(found).placements
    assert Counter(held.node for held in placement.assignments for _ in held.workers) == dict.fromkeys("abc", 2)


AB = [node("a", labels={ZONE: "a"}), node("b", labels={ZONE: "b"})]
RACK = "topology.kubernetes.io/rack"
OTHER = pod("other", labels={"app": "mine"})


@pytest.mark.parametrize(
    "objects",
    [
        [*AB, *gang(2, constraint()), OTHER],
        [*AB, *gang(2, constraint()), pod("other", "a", labels={"app": "mine"})],
        [*AB, *gang(2, constraint()), pod("unreadable", "a", labels={"app": "mine"}, asks={"cpu": "many"})],
        [*AB, *gang(2, constraint(labelSelector=None))],
        [*AB, *gang(2, constraint(labelSelector={"matchLabels": {"app": "theirs"}}))],
        [*AB, *gang(2, constraint(minDomains=2))],
        [*AB, *gang(2, constraint(matchLabelKeys=["pod-template-hash"]))],
        [*AB, *gang(2, constraint(nodeAffinityPolicy="Ignore"))],
        [*AB, *gang(2, constraint(nodeTaintsPolicy="Honor"))],
        [*AB, *gang(2, constraint(), constraint(key=HOSTNAME))],
        [*AB, *gang(2, constraint(key="example.com/no-level"))],
        [*AB, *gang(2, constraint(key=HOSTNAME))],  # no node has the label
        [node(zone, labels={ZONE: zone, RACK: "r1"}) for zone in "ab"] + gang(2, constraint(key=RACK)),
        [*AB, *gang(1, constraint()), *[{**one, "metadata": {**one["metadata"], "name": "q"}} for one in gang(1)]],
    ],
)
def test_what_else_counts_leaves_the_gang_out(objects: list[dict[str, Any]]) -> None:
    """Other pods, other nodes, values of labels that are no domains, or pods of one gang with different constraints."""
    found = read(*objects)
    assert not any(job.id == "default/g" for job in found.jobs)
    assert any("default/g" in line and "topology spread constraint" in line for line in left_out(found))


def test_other_namespaces_and_pods_that_have_ended_do_not_count() -> None:
    done = pod("done", "a", labels={"app": "mine"}, status={"phase": "Succeeded"})
    found = read(*AB, *gang(2, constraint()), pod("theirs", labels={"app": "mine"}, namespace="other"), done)
    assert next(job for job in found.jobs if job.id == "default/g").options[0].spread[0].skew_max == 1


@pytest.mark.parametrize("skew", [0, -1, "1", None])
def test_a_skew_that_is_none(skew: Any) -> None:
    found = read(*AB, *gang(2, constraint(skew)))
    assert not found.jobs
    assert any("maxSkew" in line for line in left_out(found))
