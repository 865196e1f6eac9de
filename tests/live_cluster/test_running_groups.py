"""Clusters that stay in which jobs of groups run or wait: what runs stays, and plain jobs are placed beside it."""

from itertools import combinations, product
from typing import Any

import pytest

from helpers.live_engine import engine_of, places
from helpers.night import nightly
from helpers.plans import plan_for
from placeopt import Engine, Instance, build
from placeopt.check import violations
from placeopt.live_cluster import changes_between, without_groups
from placeopt.model import BlockSize, Domain, Group, Job, Option
from strategies import make_tree_round, seeded


def ways(round_: Instance, job: Job) -> list[Any]:
    """Return all ways to run a plain job, lawful or not; None: it waits."""
    sizes, option = round_.cluster.gpus_by_node, job.options[0]
    of_worker = [(node, gpus) for node, size in sizes.items() for gpus in combinations(range(size), option.demand.gpus)]
    found: list[Any] = [None]
    for way in product(of_worker, repeat=option.workers):
        held = [(node, gpu) for node, gpus in way for gpu in gpus]
        if len(set(held)) == len(held):
            found.append([(node, list(gpus)) for node, gpus in way])
    return found


def is_lawful(round_: Instance, placed: dict[str, Any]) -> bool:
    """Whether the referee of the round itself, in which groups run, takes the plan."""
    return not violations(round_, plan_for(round_, {job: way for job, way in placed.items() if way}))


@pytest.mark.parametrize("seed", nightly(range(100), *range(12)))
def test_plain_jobs_beside_groups_that_run(engine: Engine, seed: int) -> None:
    """The best of all plans that the referee takes of the round with its groups, of which nothing is changed."""
    choice = seeded(f"running-groups-{seed}")
    made = make_tree_round(choice, running=True)
    if not made.running:
        return
    plain = [
        build.job(
            f"p{i}",
            gpus=choice.number(0, 2),
            workers=choice.number(1, 2),
            cpu_millicores=choice.pick((0, 1000, 2000)),
            value=choice.number(1, 9),
        )
        for i in range(2)
    ]
    flags = {flag: choice.chance(0.6) for flag in ("movable", "shrinkable", "preemptible")}
    changes = made.policy.changes.model_copy(update=dict.fromkeys(("moves_max", "preemptions_max", "shrinks_max"), 3))
    fields = {
        "jobs": (made.jobs[0], *plain),
        "running": tuple(held.model_copy(update=flags) for held in made.running),
        "policy": made.policy.model_copy(update={"changes": changes}),
    }
    round_ = made.model_copy(update=fields)
    engine.load(without_groups(round_)[0])
    plan = engine.place(time_limit_s=5)
    assert (plan.moved, plan.shrunk, plan.preempted) == ((), (), ())
    placed = {one.job: one for one in plan.placements if one.job in ("p0", "p1")}
    assert is_lawful(round_, placed)
    worth = {job.id: job.options[0].value for job in plain}
    alone = [[way for way in ways(round_, job) if not way or is_lawful(round_, {job.id: way})] for job in plain]
    best = max(
        sum(worth[job] for job, way in zip(worth, chosen, strict=True) if way)
        for chosen in product(*alone)
        if is_lawful(round_, dict(zip(worth, chosen, strict=True)))
    )
    assert sum(worth[job] for job in placed) == best
    assert is_lawful(round_, {one.job: one for one in engine.place(["p0", "p1"]).placements})


def test_blocks_bind_plain_jobs_before_and_after_groups_wait() -> None:
    """Four nodes in two blocks: a gang of two lies in one, in a reading with groups and in the next without."""
    domains = [Domain(id=f"b{i}", level="block") for i in range(2)]
    nodes = [build.node(f"n{i}", domain=f"b{i % 2}") for i in range(4)]
    cluster = build.cluster(nodes, domains=domains).model_copy(
        update={"block_sizes": (BlockSize(level="block", nodes=2),)}
    )
    gang, full = build.job("gang", gpus=4, workers=2), [build.job(f"full-{i}", gpus=4) for i in (0, 3)]
    tree = Job(id="tree", options=(Option(id="o", groups=(Group(id="a", workers=1), Group(id="b", workers=1))),))
    runs = [build.running(job, [(f"n{job.id[-1]}", [0, 1, 2, 3])]) for job in full]
    after = build.instance(cluster, [*full, gang], running=runs)  # one node of each block is free
    before = after.model_copy(update={"jobs": (*after.jobs, tree)})
    flat, left = without_groups(before)
    assert (left, flat.cluster, flat.jobs) == (("tree",), after.cluster, after.jobs)
    with engine_of(flat) as engine:
        assert not engine.place(["gang"]).placements
        engine.apply(changes_between(engine.snapshot, after))
        assert not engine.place(["gang"]).placements
        freed = build.instance(cluster, [full[1], gang], running=runs[1:])
        engine.apply(changes_between(engine.snapshot, freed))
        assert places(engine.place(["gang"])) == {"gang": [("n0", [0, 1, 2, 3]), ("n2", [0, 1, 2, 3])]}
        anywhere = freed.model_copy(update={"cluster": cluster.model_copy(update={"block_sizes": ()})})
        assert changes_between(freed, anywhere).reload == ("cluster.block_sizes: they changed",)
