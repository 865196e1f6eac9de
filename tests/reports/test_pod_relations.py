"""Rules between pods in questions about capacity: variants of c01g, and of nodes that fail or are to be emptied."""

import json
from pathlib import Path
from typing import Any

import pytest

from helpers.kubernetes_objects import HOSTNAME, apart, near, node, pod, read, term
from placeopt import solve
from placeopt.check import violations
from placeopt.documents import dumps
from placeopt.importers import read_kubernetes
from placeopt.whatif import Limits, add, defrag, fail

REPORTS = Path(__file__).parents[1] / "data" / "reports" / "kubernetes"
ZONE = "topology.kubernetes.io/zone"
WEB, DB = {"app": "web"}, {"app": "db"}
LIMITS = Limits(time_limit_s=30)


def zoned(*names: str) -> list[dict[str, Any]]:
    """Return nodes ``a1``, ``b2`` in the zones of their first letters."""
    return [node(name, labels={ZONE: name[0], HOSTNAME: name}) for name in names]


def selector(*expressions: tuple[str, str, list[str]]) -> dict[str, Any]:
    """Return a selector of expressions."""
    return {"matchExpressions": [{"key": key, "operator": how, "values": values} for key, how, values in expressions]}


@pytest.mark.parametrize(
    ("key", "chosen", "more"),
    [  # c01g, nine more nodes, in other words, by other selectors, and by other labels of nodes
        (HOSTNAME, selector(("app", "In", ["r", "s"])), 9),
        (HOSTNAME, selector(("app", "NotIn", ["s"])), 9),
        (HOSTNAME, selector(("app", "Exists", []), ("tier", "DoesNotExist", [])), 9),
        (HOSTNAME, selector(("app", "NotIn", ["r"])), 1),  # eight GPUs for ten replicas that exclude others alone
        (HOSTNAME, selector(("app", "In", ["r"]), ("tier", "Exists", [])), 1),
        ("nvidia.com/gpu.product", selector(("app", "In", ["r"])), None),  # all such nodes are one domain
        (ZONE, selector(("app", "In", ["r"])), 1),  # a label that no node has: in no domain, apart from all
    ],
)
def test_replicas_that_exclude_each_other_in_other_words(key: str, chosen: dict[str, Any], more: int | None) -> None:
    items = json.loads((REPORTS / "c01g.json").read_text(encoding="utf-8"))["items"]
    for item in items[1:]:
        item["spec"]["affinity"] = apart({"topologyKey": key, "labelSelector": chosen})
    found = read_kubernetes({"kind": "List", "items": items})
    assert len(found.jobs) == 10
    (answer,) = add(found, found.cluster.machines[0].id, limits=LIMITS).types
    assert (answer.found, answer.impossible) == (more, more is None)


@pytest.mark.parametrize(
    ("objects", "like", "more"),
    [  # the node like which more are added -> how many let all start
        ([*zoned("a1"), pod("p", "a1", labels=WEB), pod("q", affinity=apart(term(WEB, ZONE)))], "a1", None),
        (
            [
                *zoned("a1"),
                node("b1", labels={ZONE: "b", HOSTNAME: "b1"}, unschedulable=True),
                pod("p", "a1", labels=WEB),
                pod("q", affinity=apart(term(WEB, ZONE))),
            ],
            "b1",
            1,
        ),
        (
            [
                *zoned("a1"),
                pod("p", "a1", labels=DB),
                pod("d", labels=DB),
                *(pod(f"q{i}", labels=WEB, affinity=apart(term(DB))) for i in range(2)),
            ],
            "a1",
            1,
        ),
        (
            [
                *zoned("a1"),
                *(pod(f"q{i}", labels=WEB, affinity=near(term(WEB)), asks={"nvidia.com/gpu": "2"}) for i in range(3)),
            ],
            "a1",
            None,
        ),
    ],
)
def test_one_more_node_for_pods_with_relations(objects: list[dict[str, Any]], like: str, more: int | None) -> None:
    """No number of nodes helps where the zone is the same, or one node cannot hold all that must share it."""
    (answer,) = add(read(*objects), like, limits=LIMITS).types
    assert (answer.found, answer.impossible) == (more, more is None)


def test_failures_and_empty_nodes() -> None:
    """Two replicas apart by zone: what fails, or would be emptied, finds a place in a third zone, or in none."""
    own = {"labels": WEB, "affinity": apart(term(WEB, ZONE))}
    two = [pod("p", "a1", **own), pod("q", "b1", **own)]
    assert fail(read(*zoned("a1", "b1"), *two), "node", limits=LIMITS).answer == "no"
    assert fail(read(*zoned("a1", "a2", "b1", "b2"), *two), "node", limits=LIMITS).answer == "yes"
    assert fail(read(*zoned("a1", "b1", "c1"), *two), "node", limits=LIMITS).answer == "yes"
    assert defrag(read(*zoned("a1", "a2", "b1"), *two), "node", everyone=True, limits=LIMITS).front == ()


def test_many_pods_with_one_anti_affinity() -> None:
    """2,500 nodes and 10,000 pods, of which most exclude the others by hostname: no list of nodes, a lawful plan."""
    nodes = [node(f"n{i}", labels={HOSTNAME: f"n{i}", ZONE: f"z{i % 10}"}) for i in range(2500)]
    pods = [
        pod(f"p{i}", labels=WEB, affinity=apart(term(DB))) if i % 5 else pod(f"p{i}", labels=DB) for i in range(10_000)
    ]
    round_ = read(*nodes, *pods)
    assert len(round_.jobs) == 10_000
    assert len(dumps(round_)) < 20 * 2**20
    plan = solve(round_, time_limit_s=5, isolation="thread", method="stranding")
    assert plan.placements
    assert not violations(round_, plan)
