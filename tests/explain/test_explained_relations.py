"""Why a job with relations to others waits: each rule that is named is needed, and dropping any lets it start."""

import pytest

from placeopt import Instance, build, solve
from placeopt.explain import explain
from placeopt.model import Job, LabelExpression, Relation

WEB, DB = {"app": "web"}, {"app": "db"}


def related(kind: str, labels: dict[str, str], level: str = "node") -> Relation:
    """Return a relation to jobs with these labels."""
    selector = tuple(LabelExpression(key=k, operator="In", values=(v,)) for k, v in labels.items())
    return Relation(kind=kind, level=level, selector=selector)


def conflict(round_: Instance, name: str = "j") -> list[str]:
    """Return the rules that keep a job from starting, proven."""
    found = explain(round_, solve(round_), name, time_limit_s=60)
    assert found.proven, found.detail
    return [constraint.name for constraint in found.conflict]


def beside(job: Job, *others: Job, nodes: int = 2) -> Instance:
    """Return a round in which the others run, one on each node."""
    held = [build.running(one, [(f"n{i}", [0])]) for i, one in enumerate(others)]
    return build.instance(nodes, [job, *others], machines=[build.machine(gpus=2)], running=held)


@pytest.mark.parametrize(
    ("job", "others", "rules"),
    [
        ({"relations": (related("apart", WEB),)}, [{"labels": WEB}] * 2, ["relation apart by node"]),
        ({"relations": (related("near", DB),)}, [{"labels": WEB}] * 2, ["relation near by node"]),
        ({"labels": WEB}, [{"relations": (related("apart", WEB),)}] * 2, ["relations of other jobs"]),
        (
            {"relations": (related("near", DB, "zone"), related("apart", DB))},
            [{"labels": DB}, {"labels": WEB}],
            ["relation near by zone", "relation apart by node"],
        ),
        (
            {"relations": (related("apart", WEB),), "nodes_allowed": ("n0",)},
            [{"labels": WEB}, {}],
            ["nodes allowed", "relation apart by node"],
        ),
        ({"relations": (related("apart", WEB),), "labels": WEB}, [{}, {}], []),
    ],
)
def test_the_rules_that_keep_a_job_off(
    job: dict[str, object], others: list[dict[str, object]], rules: list[str]
) -> None:
    """Each alone, two that only hold together, and none where it starts."""
    made = build.job("j", **job)
    round_ = beside(made, *(build.job(f"o{i}", **fields) for i, fields in enumerate(others)))
    zoned = [node.model_copy(update={"labels": {"zone": node.id}}) for node in round_.cluster.nodes]
    round_ = round_.model_copy(update={"cluster": round_.cluster.model_copy(update={"nodes": tuple(zoned)})})
    plan = solve(round_)
    if not rules:
        assert "j" in [held.job for held in plan.placements]
        return
    assert [(one.job, one.reason) for one in plan.unplaced] == [("j", "conflict")]
    assert conflict(round_) == rules


def test_near_replicas_of_which_some_run_in_two_zones() -> None:
    """What runs is open ground: another replica starts beside it, and waits only where these nodes are full."""
    web = {"labels": WEB, "relations": (related("near", WEB),)}
    full = build.instance(
        3,
        [build.job(name, **web) for name in ("a", "b", "j")],
        machines=[build.machine(gpus=1)],
        running=[build.running(build.job(name, **web), [(node, [0])]) for name, node in (("a", "n0"), ("b", "n1"))],
    )
    assert conflict(full) == ["relation near by node"]
    room = full.model_copy(
        update={"cluster": full.cluster.model_copy(update={"machines": (build.machine(gpus=2),)})},
    )
    assert len(solve(room).placements) == 3
