"""
Situations of Kueue's own tests of topology-aware scheduling, rebuilt: what it can place, a plan places.

A tree is written ``block/rack/host:cpu`` or ``block/rack/host:cpu,gpus`` for each node, a PodSet ``count x cpu,gpus
level slices group``: ``6x1 block host/2`` are six pods of one core within one block, in slices of two a host. Kueue
chooses among lawful places by rules of its own, and may find none where there is one; a plan is right if it places all
PodSets of the Workload wherever Kueue does.
"""

from typing import Any

import pytest

from placeopt import solve
from placeopt.importers import read_kubernetes

LEVELS = ("zone", "block", "rack", "host")
KEYS = {level: f"example.com/{level}" for level in LEVELS} | {"host": "kubernetes.io/hostname"}
KUEUE = "kueue.x-k8s.io/"
PLAIN = "b1/r1/a:1 b1/r2/b:1 b1/r2/c:1 b1/r2/d:1 b2/r1/e:1 b2/r2/f:2"
SCATTERED = "b1/r1/a:4 b1/r1/b:1 b1/r1/c:1 b2/r1/d:2 b2/r1/e:1"
LARGE = "b1/r1/a:10 b1/r2/b:10 b1/r2/c:10 b1/r2/d:10 b2/r1/e:10 b2/r2/f:20"
BINARY = "b1/r1/a:1 b1/r1/b:1 b1/r2/c:1 b1/r2/d:1 b2/r1/e:1 b2/r1/f:1 b2/r2/g:1 b2/r2/h:1"
DEEP = "z/b1/r1/a:4 z/b1/r1/b:4 z/b1/r2/c:4 z/b1/r2/d:4 z/b2/r3/e:4 z/b2/r3/f:4 z/b2/r4/g:1 z/b2/r4/h:1"
LEADER = "b1/s/a:2.8 b1/s/b:2.8 b1/l/c:6"


def read(tree: str, pod_sets: str) -> Any:
    """Return the round of a Workload that waits for admission."""
    items: list[dict[str, Any]] = []
    for text in tree.split():
        path, amounts = text.split(":")
        cpu, gpus = (amounts + ",0").split(",")[:2]
        places = path.split("/")
        labels = {KEYS[level]: place for level, place in zip(LEVELS[-len(places) :], places, strict=True)}
        has = {"cpu": cpu, "memory": "1Gi", "pods": "110", "nvidia.com/gpu": gpus}
        name = "-".join(places)
        items.append({"kind": "Node", "metadata": {"name": name, "labels": labels}, "status": {"allocatable": has}})
    levels = [{"nodeLabel": KEYS[level]} for level in LEVELS[-len(places) :]]
    items.append({"kind": "Topology", "metadata": {"name": "t"}, "spec": {"levels": levels}})
    parts = []
    for number, text in enumerate(pod_sets.split("; ")):
        (count, amounts), *rules = text.split()[0].split("x"), *text.split()[1:]
        cpu, gpus = (amounts + ",0").split(",")[:2]
        marks: dict[str, str] = {}
        slices = [rule.split("/") for rule in rules if "/" in rule]
        for rule in rules:
            if rule.startswith("+"):
                marks[f"{KUEUE}podset-group-name"] = rule
            elif "/" not in rule:
                marks[f"{KUEUE}podset-required-topology"] = KEYS[rule]
        if len(slices) == 1:
            marks[f"{KUEUE}podset-slice-required-topology"] = KEYS[slices[0][0]]
            marks[f"{KUEUE}podset-slice-size"] = slices[0][1]
        elif slices:
            nested = ", ".join(f'{{"topology": "{KEYS[level]}", "size": {size}}}' for level, size in slices)
            marks[f"{KUEUE}podset-slice-required-topology-constraints"] = f"[{nested}]"
        asked = {"cpu": cpu, "nvidia.com/gpu": gpus}
        template = {"metadata": {"annotations": marks}, "spec": {"containers": [{"resources": {"requests": asked}}]}}
        parts.append({"name": f"p{number}", "count": int(count), "template": template})
    workload = {"kind": "Workload", "apiVersion": f"{KUEUE}v1beta1"}
    items.append({**workload, "metadata": {"name": "w"}, "spec": {"podSets": parts}})
    return read_kubernetes({"kind": "List", "items": items})


@pytest.mark.parametrize(
    ("tree", "pod_sets", "fits"),
    [
        # no level, a host, a rack, a block
        (SCATTERED, "6x1", True),
        (PLAIN, "1x1", True),
        (BINARY, "4x1 block", True),
        ("b1/r1/a:2 b1/r2/b:2 b1/r3/c:1 b1/r3/d:1 b1/r3/e:1 b1/r3/f:1", "4x1 block", True),
        ("b1/r1/a:2 b1/r1/b:1 b1/r1/c:1", "2x1 block", True),
        (PLAIN, "1x1 host", True),
        (PLAIN, "2x1 host", True),
        (PLAIN, "3x1 host", False),
        (PLAIN, "1x1 rack", True),
        (PLAIN, "2x1 rack", True),
        (PLAIN, "3x1 rack", True),
        (PLAIN, "4x1 rack", False),
        (PLAIN, "1x1 block", True),
        (PLAIN, "4x1 block", True),
        (PLAIN, "5x1 block", False),
        (PLAIN, "1x4 block", False),
        (PLAIN, "7x1", True),
        (PLAIN, "10x1", False),
        # slices on hosts and in racks
        ("b1/r1/a:3 b1/r1/b:3 b1/r1/c:3", "6x1 block host/2", True),
        ("b1/r1/a:3 b1/r1/b:3 b1/r1/c:3", "8x1 block host/2", False),
        ("b1/r1/a:6 b1/r1/b:5 b1/r1/c:4 b1/r1/d:2", "12x1 block host/2", True),
        ("b1/r1/a:3 b1/r1/b:2 b1/r1/c:2", "4x1 block host/2", True),
        ("b1/r1/a:4 b1/r1/b:3 b1/r1/c:2", "6x1 block host/2", True),
        ("b1/r1/a:1 b1/r1/b:1 b1/r2/c:1 b1/r2/d:1 b1/r2/e:1 b2/r1/f:1 b2/r1/g:1", "4x1 block rack/2", True),
        (PLAIN, "4x1 rack/2", True),
        (PLAIN, "6x1 rack/2", False),
        ("b1/r1/a:3 b1/r1/b:3 b1/r1/c:3 b2/r1/d:6", "12x1 host/3", True),
        ("b1/r1/a:2 b1/r2/b:2 b1/r3/c:2", "6x1 block rack/3", False),
        ("b1/r1/a:3 b1/r2/b:1 b1/r3/c:1 b1/r4/d:1", "6x1 block rack/3", False),
        ("b1/r1/a:2 b1/r2/b:2 b1/r3/c:2 b2/r4/d:3 b2/r5/e:3", "6x1 block rack/3", True),
        ("b1/r1/a:3 b1/r1/b:3 b1/r1/c:3", "6x1 host/2", True),
        (SCATTERED, "6x1 host/2", True),
        (SCATTERED, "8x1 host/2", False),
        ("a:2 b:1 c:2 d:2 e:1", "4x1 host/2", True),
        # nested slices
        ("b1/r1/a:1 b1/r1/b:4 b1/r2/c:3 b1/r2/d:4", "8x1 block rack/4 host/2", True),
        ("b1/r1/a:1 b1/r1/b:4 b1/r2/c:3 b1/r2/d:4", "8x1 block rack/4", True),
        ("b1/r1/a:3 b1/r1/b:3 b1/r1/c:0", "6x1 block rack/6 host/2", False),
        ("b1/r1/a:7 b1/r1/b:4 b1/r2/c:7 b1/r2/d:3", "16x1 block rack/8 host/4", False),
        ("b1/r1/a:4 b1/r2/b:4 b1/r3/c:4", "12x1 block rack/6 host/2", False),
        (DEEP, "24x1 zone block/12 rack/6 host/3", False),
        (DEEP, "12x1 zone block/12 rack/6 host/3", True),
        # several PodSets, each with its level, or in groups that share a domain
        (LARGE, "2x1 rack; 1x10 rack", True),
        (LARGE, "8x1 block; 2x1", True),
        (LARGE, "30x1 block; 30x1 block", True),
        (LARGE, "31x1 block; 31x1 block", False),
        ("r/a:2", "1x1 host; 1x1 host", True),
        ("r/a:1", "1x1 host; 1x1 host", False),
        ("b1/r/a:2,2 b2/r/b:5,4 b3/r/c:2,4", "1x1 block +g; 4x1,1 block +g", True),
        ("b1/r/a:1 b2/r/b:4,4", "1x1 block +g; 4x1,1 block +g", False),
        ("b1/r/a:1 b2/r/b:4,4", "1x1 block; 4x1,1 block", True),
        ("b1/r/a:11,4 b2/r/b:4,4", "1x1 block +g; 4x1,1 block +g", True),
        ("b1/r/a:4,4 b2/r/b:4,4", "1x10 block +g; 4x1,1 block +g", False),
        ("b1/r1/a:2,2 b1/r1/b:2,2 b2/r4/c:1,1 b2/r5/d:2,1", "1x2 block +g; 2x1,1 block +g", True),
        ("r1/a:2 r1/b:4 r1/c:3", "1x1 rack +g; 4x2 rack +g", True),
        ("r1/a:2 r1/b:4 r1/c:3", "1x1 rack +g; 8x1 rack host/2 +g", True),
        ("r1/a:2 r1/b:4 r1/c:2", "1x1 rack +g; 8x1 rack host/2 +g", False),
        (LEADER, "1x2.5 rack +g; 1x2.5 rack +g", True),
        (LEADER, "1x2.5 rack +g; 2x0.5 rack +g", True),
        (LEADER, "1x2.5 rack +g; 3x2.5 rack +g", False),
        ("b1/r1/a:20 b1/r1/b:20 b1/r1/c:20 b1/r1/d:20", "1x1 block +g; 6x1 block host/2 +g", True),
        (BINARY, "1x1 block +g; 2x1 block +g", True),
        (BINARY, "1x1 block +g; 4x1 block +g", False),
    ],
)
def test_a_plan_places_what_kueue_places(tree: str, pod_sets: str, fits: bool) -> None:
    """All PodSets of the Workload start, or none."""
    round_ = read(tree, pod_sets)
    assert [job.id for job in round_.jobs] == ["default/w"]
    plan = solve(round_, isolation="thread", time_limit_s=20)
    assert (len(plan.placements), plan.status) == (int(fits), "optimal")
