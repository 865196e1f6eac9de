"""The referee on jobs of groups: who is missing, how groups lie, and what the plan says of preferred levels."""

from typing import Any

import pytest

from helpers.plans import plan_for
from placeopt import build, solve
from placeopt.check import violations
from placeopt.model import (
    Demand,
    Domain,
    Group,
    Hold,
    Job,
    NodeConditions,
    Option,
    Placement,
    Policy,
    Queue,
    Quota,
    Running,
    Split,
    Spread,
    Taint,
    Toleration,
)

NODES = [build.node(f"n{i}", domain=f"r{i // 2}") for i in range(4)]
DOMAINS = [Domain(id="r0"), Domain(id="r1")]
LEAD, WORK = Group(id="lead"), Group(id="work", workers=4, workers_min=2)
ANY = (Toleration(operator="Exists"),)
FREE = Group(id="free", demand=Demand(gpus=0))
SPARE = Group(id="spare", workers=2, optional=True)


def found(option: Option, *where: tuple[str, str, int], reached: dict[str, str | None] | None = None) -> set[str]:
    """Return the rules that a placement breaks; each worker is (leaf, node, first GPU)."""
    job = Job(id="j", options=(option,))
    held = build.placement(job, [(node, [gpu], leaf) for leaf, node, gpu in where])
    if reached is not None:
        held = Placement(job="j", option=option.id, assignments=held.assignments, reached=reached)
    round_ = build.instance(NODES, [job], domains=DOMAINS)
    return {violation.rule for violation in violations(round_, plan_for(round_, {"j": held}))}


ALL = (("lead", "n0", 0), ("work", "n0", 1), ("work", "n1", 0))


@pytest.mark.parametrize(
    ("fields", "where", "rules"),
    [
        ({}, ALL, set()),
        ({}, ALL[1:], {"workers"}),  # no leader
        ({}, ALL[:2], {"workers"}),  # one of at least two
        ({}, (*ALL, ("spare", "n2", 0), ("spare", "n2", 1)), set()),
        ({}, (*ALL, ("spare", "n2", 0)), {"workers"}),  # an optional group runs whole or not at all
        ({"single_node": True}, ALL, {"single_node"}),
        ({"workers_per_node_max": 1}, ALL, {"workers_per_node"}),
        ({"splits": (Split(level="rack", domains=1),)}, ALL, set()),
        ({"splits": (Split(level="rack", domains=2),)}, ALL, {"split"}),
        ({"spread": (Spread(level="rack", segment=3),)}, ALL, set()),
        ({"spread": (Spread(level="node", segment=2),)}, ALL, {"spread"}),
        ({"spread": (Spread(level="node", segment=2, remainder="smaller"),)}, ALL, set()),
        ({"spread": (Spread(level="rack", workers_max=2),)}, ALL, {"spread"}),
        ({"spread": (Spread(level="rack", skew_max=2),)}, ALL, {"spread"}),
        ({"spread": (Spread(level="rack", skew_max=3),)}, ALL, set()),
    ],
)
def test_rules_of_the_whole(
    fields: dict[str, object], where: tuple[tuple[str, str, int], ...], rules: set[str]
) -> None:
    assert found(Option(groups=(LEAD, WORK, SPARE), **fields), *where) == rules


@pytest.mark.parametrize(("level", "rules"), [("rack", set()), ("node", {"reached"}), (None, {"reached"})])
def test_the_level_that_is_reached(level: str | None, rules: set[str]) -> None:
    """One rack holds all, no node does."""
    option = Option(groups=(LEAD, WORK), prefer=("node", "rack"))
    assert found(option, *ALL, reached={"default": level}) == rules


def test_an_unknown_leaf_and_ranks_in_another_order() -> None:
    job = Job(id="j", options=(Option(groups=(LEAD, WORK)),))
    held = build.placement(job, [(node, [gpu], leaf) for leaf, node, gpu in ALL])
    strange = held.model_copy(update={"assignments": (held.assignments[0].model_copy(update={"group": "x"}),)})
    lead, *work = held.assignments
    turned = tuple(
        one.model_copy(update={"group": {"lead": "work", "work": "lead"}[one.group or ""]}) for one in (lead, *work)
    )
    round_ = build.instance(NODES, [job], domains=DOMAINS)
    for placement in (strange, held.model_copy(update={"assignments": turned})):
        assert "workers" in {one.rule for one in violations(round_, plan_for(round_, {"j": placement}))}


def test_a_group_has_conditions_of_its_own() -> None:
    """A launcher on a node of the pool cpu, which is tainted, and workers elsewhere."""
    tainted = build.node("c0", labels={"pool": "cpu"}, taints=(Taint(key="cpu"),))
    gpus = [build.node(f"n{i}", labels={"pool": "gpu"}) for i in range(2)]
    launcher = NodeConditions(node_selector={"pool": "cpu"}, tolerations=(Toleration(key="cpu", operator="Exists"),))
    workers = NodeConditions(nodes_excluded=("n0",))
    groups = (Group(id="launcher", demand=Demand(gpus=0), conditions=launcher), Group(id="work", conditions=workers))
    job = Job(id="j", options=(Option(groups=groups),))
    round_ = build.instance([tainted, *gpus], [job])
    plan = solve(round_, time_limit_s=20, isolation="thread")
    assert violations(round_, plan) == []
    assert [(a.group, a.node) for a in plan.placements[0].assignments] == [("launcher", "c0"), ("work", "n1")]
    found = {}
    for where in (("c0", "c0"), ("n1", "n1"), ("c0", "n0")):
        held = build.placement(job, [(where[0], [], "launcher"), (where[1], [0], "work")])
        found[where] = {violation.rule for violation in violations(round_, plan_for(round_, {"j": held}))}
    assert found == {("c0", "c0"): {"taints"}, ("n1", "n1"): {"node_selector"}, ("c0", "n0"): {"nodes_excluded"}}


@pytest.mark.parametrize(
    ("lead", "rule"),
    [
        ({"conditions": NodeConditions(nodes_allowed=("n1",), tolerations=ANY)}, "nodes_allowed"),
        ({}, "taints"),
        ({"demand": Demand(gpu_models=("another",)), "conditions": NodeConditions(tolerations=ANY)}, "gpu_model"),
    ],
)
def test_a_group_stays_where_it_may_not_start(lead: dict[str, Any], rule: str) -> None:
    """Another group of the job starts beside it on the node; a worker more of its own does not."""
    first = Group(id="lead", workers=2, workers_min=1, **lead)
    second = Group(id="work", conditions=NodeConditions(tolerations=ANY))
    job = Job(id="j", options=(Option(groups=(first, second)),))
    nodes = [build.node("n0", taints=(Taint(key="kept"),)), build.node("n1")]
    round_ = build.instance(nodes, [job], running=[build.running(job, [("n0", [0], "lead")])])
    for workers, expected in (([0], set()), ([0, 1], {rule})):
        held = build.placement(job, [*(("n0", [gpu], "lead") for gpu in workers), ("n0", [2], "work")])
        assert {one.rule for one in violations(round_, plan_for(round_, {"j": held}))} == expected


@pytest.mark.parametrize(("kept", "new", "rules"), [(500, 300, set()), (300, 300, set()), (500, 500, {"gpu_grant"})])
def test_a_share_stays_where_workers_are_added(kept: int, new: int, rules: set[str]) -> None:
    """A running worker may keep more than its request; one that starts has its request."""
    leaf = Group(id="work", workers=2, workers_min=1, demand=Demand(gpu_milli=300, gpu_milli_limit=700))
    job = Job(id="j", options=(Option(groups=(leaf, Group(id="lead"))),))
    runs = build.placement(job, [("n0", [0], "work")], milli=500)
    held = build.placement(job, [("n0", [0], "work"), ("n0", [1], "work"), ("n0", [2], "lead")])
    work, lead = held.assignments
    held = Placement(
        job="j", option=held.option, assignments=(work.model_copy(update={"gpus": {"0": kept, "1": new}}), lead)
    )
    running = Running(job="j", option=runs.option, assignments=runs.assignments)
    round_ = build.instance(1, [job], running=[running], policy=Policy(share_mode="exclusive"))
    assert {one.rule for one in violations(round_, plan_for(round_, {"j": held}))} == rules
    assert solve(round_, method="counts", time_limit_s=20, isolation="thread").levels[0].objective == 1


@pytest.mark.parametrize(
    ("lead", "gpu", "fields", "rule"),
    [
        ({"cpu_millicores": 40_000}, 0, {}, "cpu"),
        ({"gpu_memory_mib": 10**6}, 0, {}, "gpu_memory"),
        ({}, 9, {}, "gpu_indexes"),
        ({}, 0, {"holds": (Hold(id="h", node="n0", gpus=(0, 1)),)}, "hold"),
        ({}, 0, {"policy": Policy(queues=(Queue(id="q", quota=Quota(gpu_milli=500)),))}, "queue_quota"),
    ],
)
def test_what_stands_is_in_the_way_of_what_adds_to_it_alone(
    lead: dict[str, Any], gpu: int, fields: dict[str, Any], rule: str
) -> None:
    """A group that takes nothing of what is exceeded starts, also where its job holds too much; one that does not."""
    first = Group(id="lead", workers=2, workers_min=1, demand=Demand(**lead))
    job = Job(id="j", queue="q" if "policy" in fields else None, options=(Option(groups=(first, FREE)),))
    machine = build.machine(gpus=4, cpu_millicores=32_000)
    runs = [build.running(job, [("n0", [gpu], "lead")])]
    round_ = build.instance(1, [job], machines=[machine], running=runs)
    round_ = round_.model_copy(update=fields)
    for gpus, expected in (([gpu], set()), ([gpu, 1], {rule})):
        held = build.placement(job, [*(("n0", [one], "lead") for one in gpus), ("n0", [], "free")])
        assert {one.rule for one in violations(round_, plan_for(round_, {"j": held}))} == expected
    assert solve(round_, method="counts", time_limit_s=20, isolation="thread").levels[0].objective == 1
