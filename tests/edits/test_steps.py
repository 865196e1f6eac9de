"""Steps change a copy, one after the other; what cannot be is named with step and field."""

import json
from typing import Any

import pytest

from helpers.plans import plan_for
from placeopt import BadInput, solve
from placeopt.build import instance, job, machine, node, running
from placeopt.documents import dumps, loads
from placeopt.edits import ChangeQueue, Fail, Patch, RemoveHolds, Stop, added, apply, displaced
from placeopt.explain import explain_all
from placeopt.model import Domain, Hold, Instance, Policy, Queue, Quota, Taint
from placeopt.whatif import Limits, after_plan, fail

WIDE = {"job": "wide", "option": "default", "assignments": [{"node": "n0", "workers": [{"rank": 0}]}]}


def racks() -> Instance:
    """Two racks in a row, two nodes of four GPUs in each; ``wide`` runs in both, ``small`` on n3, ``late`` waits."""
    wide, small = job("wide", workers=2, gpus=2), job("small", gpus=1)
    late = job("late", gpus=4, nodes_allowed=("n0", "n3"))
    return instance(
        [node(f"n{i}", domain=f"rack-{i // 2}") for i in range(4)],
        [wide, small, late],
        domains=[Domain(id="row", level="row"), *(Domain(id=f"rack-{i}", parent="row") for i in range(2))],
        running=[running(wide, [("n0", (0, 1)), ("n2", (0, 1))]), running(small, [("n3", (0,))])],
        policy=Policy(queues=(Queue(id="q", quota=Quota(gpu_milli=4000)),)),
    )


def patched(*steps: dict[str, Any]) -> Instance:
    """Apply a patch as it is read from a file."""
    return apply(racks(), loads(Patch, json.dumps({"name": "test", "steps": steps})).steps)


def test_the_base_stays_as_it_is() -> None:
    """Every step at once; the base's content has the same digest as before."""
    base = racks()
    before = base.digest
    steps: tuple[dict[str, Any], ...] = (
        {"do": "fail", "level": "rack", "domains": ("rack-1",)},
        {"do": "add_nodes", "like": "n0", "count": 2},
        {"do": "set_policy", "fields": {"share_mode": "exclusive"}},
        {"do": "scale_demand", "percent": 200},
    )
    changed = apply(base, Patch.model_validate({"steps": steps}).steps)
    assert base.digest == before
    assert Instance.model_validate(base.model_dump()).digest == before
    assert changed.digest != before


def test_a_failed_rack_takes_its_jobs_along() -> None:
    """``wide`` has a worker there, so it waits; ``late`` names the same nodes as before, gone ones included."""
    changed = patched({"do": "fail", "level": "rack", "domains": ["rack-1"]})
    assert [node.id for node in changed.cluster.nodes] == ["n0", "n1"]
    assert displaced(racks(), changed) == ("wide", "small")
    assert changed.running == ()
    assert changed.jobs[2].conditions.nodes_allowed == ("n0", "n3")


@pytest.mark.parametrize(
    ("level", "told"),
    [("node", {"n0": 1, "n1": 1, "n2": 1, "n3": 1}), ("rack", {"rack-0": 2, "rack-1": 2}), ("row", {"row": 4})],
)
def test_levels(level: str, told: dict[str, int]) -> None:
    """A row is over racks, and so over their nodes."""
    found = fail(racks(), level, limits=Limits(time_limit_s=2.0, threads=1))
    assert {one.domains[0]: one.nodes for one in found.scenarios} == told


def test_nodes_come_and_go() -> None:
    """Copied with domain, of a new machine type, replaced, removed."""
    big = machine("big", gpus=8).model_dump(mode="json")
    changed = patched(
        {"do": "add_machines", "machines": [big]},
        {"do": "add_nodes", "machine": "big", "count": 2, "domain": "rack-0", "prefix": "new"},
        {"do": "add_nodes", "like": "n3", "count": 1},
        {"do": "replace_nodes", "nodes": ["n0"], "machine": "big"},
        {"do": "remove_nodes", "nodes": ["n1"]},
    )
    nodes = {node.id: node for node in changed.cluster.nodes}
    assert list(nodes) == ["n0", "n2", "n3", "new-0", "new-1", "added-0"]
    assert (nodes["new-1"].machine, nodes["new-1"].domain) == ("big", "rack-0")
    assert (nodes["added-0"].machine, nodes["added-0"].domain) == ("m", "rack-1")
    assert nodes["n0"].machine == "big"
    assert displaced(racks(), changed) == ("wide",)
    assert added(racks(), changed) == ("new-0", "new-1", "added-0")


def test_jobs_and_policy_change() -> None:
    """Fields inside records are merged, others kept; a running job that is changed waits."""
    changed = patched(
        {"do": "change_job", "job": "small", "fields": {"priority": 7, "communication": {"weight": 3}}},
        {"do": "set_policy", "fields": {"changes": {"moves_max": 3}}},
        {"do": "change_queue", "queue": "q", "fields": {"quota": {"gpu_milli": 9000}}},
        {"do": "add_jobs", "jobs": [{"id": "more"}]},
        {"do": "remove_jobs", "jobs": ["wide"]},
    )
    jobs = {one.id: one for one in changed.jobs}
    assert list(jobs) == ["small", "late", "more"]
    assert (jobs["small"].priority, jobs["small"].communication.weight) == (7, 3)
    assert jobs["small"].options == racks().jobs[1].options
    assert displaced(racks(), changed) == ("small",)
    policy = changed.policy
    assert (policy.changes.moves_max, policy.queues[0].quota.gpu_milli) == (3, 9000)
    assert policy.weights == racks().policy.weights


def test_what_a_host_does_is_said_by_steps() -> None:
    """A node fails and comes back as another record, its gang waits and is started elsewhere, time goes on."""
    late = running(job("late"), [("n0", (0, 1, 2, 3))], started_ms=5).model_dump(mode="json", by_alias=True)
    bigger = {"id": "n1", "machine": "m", "domain": "rack-1", "labels": {"new": "yes"}}
    changed = patched(
        {"do": "drain", "nodes": ["n0"], "stop": True},
        {"do": "put_nodes", "nodes": [bigger, {"id": "n4", "machine": "m"}]},
        {"do": "undrain", "nodes": ["n0"]},
        {"do": "start", "running": [late]},
        {"do": "change_running", "job": "small", "fields": {"expected_end_ms": 9, "movable": True}},
        {"do": "change_job", "job": "small", "fields": {"priority": 3}},
        {"do": "set_time", "now_ms": 7},
    )
    assert displaced(racks(), changed) == ("wide",)
    assert [held.job for held in changed.running] == ["small", "late"]
    assert (changed.running[0].expected_end_ms, changed.running[0].movable, changed.jobs[1].priority) == (9, True, 3)
    assert [(one.id, one.domain, one.drained) for one in changed.cluster.nodes][1::3] == [
        ("n1", "rack-1", False),
        ("n4", None, False),
    ]
    assert changed.now_ms == 7


@pytest.mark.parametrize("percent", [0, 50, 100, 300])
def test_demand_is_scaled_to_a_share_of_the_gpus(percent: int) -> None:
    """16 GPUs; jobs ask for 4 + 1, running, and 4. The next job would pass the mark, or the waiting ones are gone."""
    changed = patched({"do": "scale_demand", "percent": percent, "seed": 5})
    asked = sum(one.options[0].workers * one.options[0].demand.gpus for one in changed.jobs)
    mark = 16 * percent / 100
    assert asked == 5 if percent == 0 else mark - 4 < asked <= mark
    assert len(changed.running) == 2
    again = patched({"do": "scale_demand", "percent": percent, "seed": 5})
    assert again.digest == changed.digest


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ({"do": "fail", "level": "leaf", "domains": ["x"]}, "no level 'leaf'"),
        ({"do": "fail", "level": "rack", "domains": ["x"]}, "no rack 'x'.*there are: rack-0, rack-1"),
        ({"do": "fail", "level": "row", "domains": ["row"]}, "no node would be left"),
        ({"do": "remove_nodes", "nodes": ["x"]}, "no node 'x'"),
        ({"do": "add_nodes", "count": 1}, "expected a machine type"),
        ({"do": "add_nodes", "count": 1, "like": "x"}, "no node 'x'"),
        ({"do": "add_nodes", "count": 1, "machine": "x"}, "no machine type 'x'; there are: m; .*add_machines"),
        ({"do": "replace_nodes", "of": "m", "machine": "x"}, "no machine type 'x'; there are: m; .*add_machines"),
        ({"do": "fail", "level": "leaf", "domains": ["x"]}, "there are: node, row, rack, gpu, switch, numa, socket"),
        ({"do": "add_nodes", "count": 1, "machine": "m", "domain": "x"}, "no domain 'x'"),
        ({"do": "replace_nodes", "of": "x", "machine": "m"}, "no node is of machine type 'x'"),
        ({"do": "replace_nodes", "machine": "m"}, "expected 'nodes' or 'of'"),
        ({"do": "replace_nodes", "of": "m", "machine": "m"}, "the nodes are of type 'm' already"),
        ({"do": "set_policy", "fields": {"share_mode": "none"}}, "share_mode"),
        ({"do": "set_policy", "fields": {"sharing": 1}}, "sharing"),
        ({"do": "change_queue", "queue": "x", "fields": {}}, "no queue 'x'.*there are: q"),
        ({"do": "change_job", "job": "x", "fields": {}}, "no job 'x'"),
        ({"do": "change_job", "job": "late", "fields": {"id": "y"}}, "keeps its id"),
        ({"do": "change_job", "job": "late", "fields": {"priority": "high"}}, "priority"),
        ({"do": "add_jobs", "jobs": [{"id": "late"}]}, "'late' appears twice"),
        ({"do": "remove_jobs", "jobs": ["x"]}, "no job 'x'"),
        ({"do": "put_nodes", "nodes": [{"id": "n9", "machine": "x"}]}, "no machine type 'x'"),
        ({"do": "start", "running": [WIDE]}, "no waiting job 'wide'"),
        ({"do": "change_running", "job": "late", "fields": {}}, "no running job 'late'"),
        (
            {"do": "change_running", "job": "wide", "fields": {"option": "x"}},
            "fields.option: expected one of exp",
        ),
        ({"do": "change_running", "job": "wide", "fields": {"movable": 1}}, "movable"),
    ],
)
def test_what_cannot_be_is_named(step: dict[str, Any], words: str) -> None:
    """With the step's number."""
    with pytest.raises(BadInput, match=f"(?s)steps.1. .{step['do']}.: .*{words}"):
        patched({"do": "add_jobs", "jobs": [{"id": "fine"}]}, step)


def test_a_step_that_is_none_is_named() -> None:
    """By the path inside the file."""
    with pytest.raises(BadInput, match=r'steps\[0\]\.do: "explode", expected one of add_machines, add_domains'):
        patched({"do": "explode"})


def test_after_a_plan_what_it_places_runs() -> None:
    """And what it leaves out waits; a job that ran keeps its start."""
    base = racks()
    plan = plan_for(base, {"late": [("n3", (0, 1, 2, 3))]}, preempted=["small"])
    with pytest.raises(BadInput, match="expected a valid plan"):
        after_plan(base, plan)
    free = patched({"do": "remove_jobs", "jobs": ["small"]})
    after = after_plan(free, plan_for(free, {"late": [("n3", (0, 1, 2, 3))]}))
    assert [held.job for held in after.running] == ["wide", "late"]
    assert free.running[0] == after.running[0]
    assert len(free.running) == 1


def test_nodes_are_drained_tainted_and_labelled() -> None:
    """Some or all; what is taken back leaves no trace."""
    taint = {"key": "pool", "value": "a"}
    there = ({"do": "drain", "nodes": ["n1"]}, {"do": "taint", "taint": taint}, {"do": "label", "labels": {"x": "1"}})
    back = ({"do": "undrain"}, {"do": "untaint", "taint": taint}, {"do": "label", "labels": {"x": None}})
    changed = patched(*there)
    assert [one.drained for one in changed.cluster.nodes] == [False, True, False, False]
    assert all([one.taints[0].text, one.labels] == ["pool=a:NoSchedule", {"x": "1"}] for one in changed.cluster.nodes)
    assert patched(*there, *back).digest == racks().digest


def test_amounts_change() -> None:
    """Of machine types, of domains, of the cluster; null takes a limit away."""
    changed = patched(
        {"do": "set_amount", "resource": "memory_mib", "amount": 7, "at": "machine", "of": ["m"]},
        {"do": "set_amount", "resource": "port", "amount": 2, "at": "machine"},
        {"do": "set_amount", "resource": "power", "amount": 3, "at": "domain", "of": ["rack-1"]},
        {"do": "set_amount", "resource": "licence", "amount": 4, "at": "cluster"},
        {"do": "set_amount", "resource": "seat", "amount": 5, "at": "cluster"},
        {"do": "set_amount", "resource": "seat", "amount": None, "at": "cluster"},
    )
    (kind,) = changed.cluster.machines
    assert (kind.memory_mib, dict(kind.resources)) == (7, {"port": 2})
    assert [dict(one.resources) for one in changed.cluster.domains] == [{}, {}, {"power": 3}]
    assert dict(changed.cluster.resources) == {"licence": 4}


def test_jobs_stop_and_holds_are_released() -> None:
    """A stopped job waits; a released hold is gone."""
    held = racks().model_copy(update={"holds": (Hold(id="h", node="n0", gpus=(2,)), Hold(id="other", node="n1"))})
    changed = apply(held, [Stop(do="stop", jobs=("small",)), RemoveHolds(do="remove_holds", holds=("h",))])
    assert displaced(held, changed) == ("small",)
    assert [hold.id for hold in changed.holds] == ["other"]


def test_a_fault_says_where_and_what() -> None:
    """As fields; what null means is the default of the field."""
    with pytest.raises(BadInput) as refused:
        apply(racks(), [Fail(do="fail", level="rack", domains=("x",))])
    assert [(fault.where, fault.what[:14]) for fault in refused.value.faults] == [
        ("steps[0].domains", "no rack 'x' wi")
    ]
    lifted = ChangeQueue(do="change_queue", queue="q", fields={"quota": None})
    assert apply(racks(), [lifted]).policy.queues == (Queue(id="q"),)


def test_what_explain_proposes_can_be_applied() -> None:
    """A drained node, a taint, a quota, a hold, an amount: each change goes through a file and starts the job."""
    nodes = [
        node("n0", "full", drained=True),
        node("n1", "full", taints=(Taint(key="t"),)),
        node("n2"),
        node("n3", "full"),
    ]
    jobs = [job("one", gpus=2, queue="q"), job("two", gpus=1, cpu_millicores=10**6), job("three", gpus=2)]
    kinds = [machine("full", gpus=2), machine("m", gpus=1)]
    queues = (Queue(id="q", quota=Quota(gpu_milli=1000)),)
    base = instance(nodes, jobs, machines=kinds, policy=Policy(queues=queues))
    base = base.model_copy(update={"holds": (Hold(id="h", node="n3", gpus=(0,)),)})
    plan = solve(base, time_limit_s=10)
    said = set()
    for change in explain_all(base, plan).changes:
        patch = loads(Patch, dumps(Patch(steps=change.steps)))
        placed = solve(apply(base, patch.steps), time_limit_s=10).placements
        assert len(placed) >= len(plan.placements) + change.jobs_together > len(plan.placements), change
        said.add(patch.steps[0].do)
    assert said == {"undrain", "untaint", "remove_holds", "set_amount", "add_nodes"}
