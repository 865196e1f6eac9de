"""Calls that a resource manager makes to a cluster that stays, with jobs that come and go between any two of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial

from placeopt import Engine, Instance, generate
from placeopt.edits import Drain, Fail, RemoveHolds
from placeopt.live_cluster import ClusterChanges
from placeopt.model import Job
from spec import BenchSpec, Row
from watch import Watch

REPEATS = 5
"""Of calls that take long."""


def calls(asked: dict[str, int]) -> Iterator[Row]:
    """Measure all calls on a busy cluster of so many nodes of 8 GPUs."""
    watch = Watch()
    with Engine(isolation="thread") as engine:
        busy = busy_cluster(engine, asked["nodes"])
        watch("load", lambda: engine.load(busy))
        single_jobs(watch, engine, asked["jobs"])
        for _ in range(REPEATS):
            rank(watch, engine)
            failures(watch, engine)
            rebase(watch, engine)
    yield from watch.rows()


def busy_cluster(engine: Engine, nodes: int) -> Instance:
    """Return a cluster on which greedy has started what it could."""
    engine.load(generate("uniform", jobs=6 * nodes, nodes=nodes, gpus=8, seed=1))
    engine.commit(engine.place(method="stranding", prove=False, explain=False))
    return engine.snapshot


def single_jobs(watch: Watch, engine: Engine, count: int) -> None:
    """Let jobs come, be placed and start, each in the place of another that ends."""
    snapshot = engine.snapshot
    records = {job.id: job for job in snapshot.jobs}
    running = [held.job for held in snapshot.running]
    draw = random.Random(1)
    for number in range(count):
        place = draw.randrange(len(running))
        gone = records[running[place]]
        watch("release a job", partial(engine.apply, ClusterChanges(release=(gone.id,))))
        job: Job = gone.model_copy(update={"id": f"new-{number}"})
        watch("add a job", partial(engine.apply, ClusterChanges(add_jobs=(job,))))
        plan = watch("place a job", partial(engine.place, [job.id], explain=False))
        watch("commit its plan", partial(engine.commit, plan))
        running[place], records[job.id] = job.id, job
        if not plan.placements:
            raise RuntimeError(f"{job.id}: has no place, but {gone.id}, which is like it, has just left one")


def rank(watch: Watch, engine: Engine) -> None:
    """Ask for the nodes that have room for a job, best first."""
    job = engine.snapshot.jobs[0].model_copy(update={"id": "ranked"})
    engine.apply(ClusterChanges(add_jobs=(job,)))
    watch("rank all nodes for a job", lambda: engine.rank(job.id))
    engine.apply(ClusterChanges(remove_jobs=(job.id,)))


def failures(watch: Watch, engine: Engine) -> None:
    """Let a GPU in use fail, and repair it."""
    held = engine.snapshot.running[100].assignments[0]
    gpu = int(next(iter(held.gpus)))
    fails = Fail(do="fail", level="gpu", domains=(f"{held.node}/gpu{gpu}",))
    watch("fail a GPU", lambda: engine.edit([fails]))
    repaired = RemoveHolds(do="remove_holds", holds=(engine.snapshot.failed_gpus[held.node, gpu].id,))
    watch("repair a GPU", lambda: engine.edit([repaired]))


def rebase(watch: Watch, engine: Engine) -> None:
    """Plan a round, change the cluster, and commit what still holds."""
    engine.apply(ClusterChanges(release=tuple(held.job for held in engine.snapshot.running[:50])))
    plan = watch("place a whole round by greedy", lambda: engine.place(method="stranding", prove=False, explain=False))
    engine.edit([Drain(do="drain", nodes=tuple(node.id for node in engine.snapshot.cluster.nodes[-20:]))])
    watch("commit it after a change, rebased", lambda: engine.commit(plan, rebase=True))


SPEC = BenchSpec(
    name="live",
    question="How long do the calls of a resource manager take, in milliseconds of the wall clock?",
    rounds={"250 nodes": {"nodes": 250, "jobs": 200}, "5,000 nodes": {"nodes": 5000, "jobs": 2000}},
    run=calls,
    columns=("round", "call", "calls", "p50_ms", "p99_ms", "load"),
    minutes=2,
)
