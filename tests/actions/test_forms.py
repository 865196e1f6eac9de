"""Actions as Slurm and Kubernetes take them, from rounds that were imported."""

from pathlib import Path
from typing import Any

import pytest

from helpers.kubernetes_objects import node, pod, read
from placeopt import BadInput, plan_actions, solve
from placeopt.actions import Action, ActionPart, as_bindings, as_scontrol
from placeopt.explain import explain
from placeopt.importers import read_slurm
from placeopt.model import Instance, JobOrigin, Origin

DATA = Path(__file__).resolve().parents[2] / "examples"
GANG = {"labels": {"kueue.x-k8s.io/pod-group-name": "g"}}


def slurm() -> Instance:
    """Read the small cluster."""
    return read_slurm(DATA / "slurm_nodes.json", DATA / "slurm_jobs.json", DATA / "topology.conf")


def pods() -> Instance:
    """Read a gang of two pods and a pod that runs."""
    waiting = [pod(f"p{i}", namespace="team", uid=f"uid-{i}", **GANG) for i in range(2)]
    return read(node("n0"), node("n1"), *waiting, pod("old", "n0", namespace="team", uid="uid-old"))


def test_slurm_jobs_keep_their_names() -> None:
    """Jobs have Slurm's id and name; tasks of an array each their own id."""
    origins = {job.id: job.origin for job in slurm().jobs}
    assert origins["501"] == JobOrigin(name="job501", id="501")
    assert origins["507_1"] == JobOrigin(name="job507", id="507_1")


def test_pods_keep_their_names() -> None:
    """Pods by rank, each with its UID; nodes with theirs."""
    first = node("n0")
    first["metadata"]["uid"] = "uid-n0"
    found = read(first, *(pod(f"p{i}", namespace="team", uid=f"uid-{i}", **GANG) for i in range(2)))
    assert found.cluster.nodes[0].origin == Origin(name="n0", id="uid-n0")
    (gang,) = found.jobs
    workers = (Origin(name="team/p0", id="uid-0"), Origin(name="team/p1", id="uid-1"))
    assert gang.origin == JobOrigin(name="team/g", workers=workers)


def test_scontrol() -> None:
    """Jobs that start are told their nodes and released; what runs stays and has no command."""
    round_ = slurm()
    plan = solve(round_, isolation="thread", time_limit_s=5)
    lines = as_scontrol(plan_actions(round_, plan)).splitlines()
    running = {held.job for held in round_.running}
    started = [placement for placement in plan.placements if placement.job not in running]
    assert started
    assert lines == [
        line
        for placement in started
        for line in (
            f"scontrol update JobId={placement.job} ReqNodeList={','.join(at.node for at in placement.assignments)}",
            f"scontrol release {placement.job}",
        )
    ]


def part(rank: int, at: str) -> ActionPart:
    """Return a worker that is a pod."""
    return ActionPart(rank=rank, node=at, origin=Origin(name=f"team/p{rank}", id=f"uid-{rank}"))


def action(do: Any, parts: tuple[ActionPart, ...], leaves: tuple[ActionPart, ...] = ()) -> Action:
    """Return an action on job 7 of Slurm."""
    return Action(do=do, job="j", revision=0, origin=Origin(name="train", id="7"), parts=parts, leaves=leaves)


@pytest.mark.parametrize(
    ("one", "lines"),
    [
        (action("preempt", (), (part(0, "a"),)), ["scontrol requeuehold 7"]),
        (
            action("move", (part(0, "b"), part(1, "c")), (part(0, "a"),)),
            ["scontrol requeuehold 7", "scontrol update JobId=7 ReqNodeList=b,c", "scontrol release 7"],
        ),
        (action("shrink", (part(0, "a"),), (part(1, "b"),)), ["scontrol update JobId=7 ReqNodeList=a"]),
        (
            action("shrink", (part(0, "a"),), (part(1, "a"),)),
            ["# job 7 keeps some of its workers on a node: Slurm gives up whole nodes only"],
        ),
    ],
)
def test_scontrol_of_changes(one: Action, lines: list[str]) -> None:
    assert as_scontrol([one]).splitlines() == lines


def test_bindings() -> None:
    """Both pods of the gang are bound, by namespace, name and UID."""
    round_ = pods()
    plan = solve(round_, isolation="thread", time_limit_s=5)
    items = as_bindings(plan_actions(round_, plan))["items"]
    assert [item["metadata"] for item in items] == [
        {"namespace": "team", "name": f"p{i}", "uid": f"uid-{i}"} for i in range(2)
    ]
    (gang,) = (placement for placement in plan.placements if placement.job == "team/g")
    nodes = [at.node for at in gang.assignments for _ in at.workers]
    assert [(item["kind"], item["target"]["name"]) for item in items] == [("Binding", name) for name in nodes]


def test_evictions() -> None:
    """What stops or moves is evicted; a pod that moves is made anew, so it is not bound."""
    items = as_bindings([action("move", (part(0, "b"),), (part(0, "a"),))])["items"]
    assert items == [
        {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"namespace": "team", "name": "p0"},
            "deleteOptions": {"preconditions": {"uid": "uid-0"}},
        }
    ]
    ring = [action("preempt", (), (part(0, "a"),)), action("start", (part(0, "b"),))]
    assert [item["kind"] for item in as_bindings(ring)["items"]] == ["Eviction"]


def test_jobs_without_origin_are_refused() -> None:
    bare = Action(do="start", job="j", revision=0, parts=(ActionPart(rank=0, node="a"),))
    with pytest.raises(BadInput, match="job 'j': no origin with an id"):
        as_scontrol([bare])
    with pytest.raises(BadInput, match="worker 0 has no origin NAMESPACE/NAME"):
        as_bindings([bare])


def test_jobs_are_found_by_either_name() -> None:
    """By id, by name and by pod; a name that several jobs have is refused with their ids."""
    round_ = pods()
    plan = solve(round_, isolation="thread", time_limit_s=5)
    assert {explain(round_, plan, name).job for name in ("team/g", "team/p1", "uid-0")} == {"team/g"}
    with pytest.raises(BadInput, match=r"no job 'p9'.*its ids look like"):
        explain(round_, plan, "p9")
    twice = slurm()
    with pytest.raises(BadInput, match=r"2 jobs of 'slurm' are called 'job507'.*'507_0', '507_1'"):
        explain(twice, solve(twice, isolation="thread", time_limit_s=5), "job507")
