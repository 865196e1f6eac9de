"""Plans of an earlier revision: what still fits goes in, what does not is named, and nothing else happens."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.plan_records import plan_of
from helpers.small_rounds import random_round
from placeopt import BadInput, Engine, Instance, PlaceoptError, Plan, StaleSnapshot, generate, violations
from placeopt.check import Ledger, Violation, judge
from placeopt.check.case import Reference
from placeopt.live_cluster import Committed
from placeopt.model import (
    Assignment,
    Changes,
    Cluster,
    Gpu,
    Job,
    JobOrigin,
    Machine,
    Node,
    Option,
    Origin,
    Placement,
    Policy,
    Running,
    Shrunk,
    WorkerGpus,
)
from placeopt.problem import compile_problem

SEEDS = 60


def disturb(engine: Engine, rng: np.random.Generator) -> None:
    """Let jobs end, come, start elsewhere and stop, and nodes drain and fail."""
    for _ in range(int(rng.integers(1, 4))):
        now = engine.snapshot
        running = [held.job for held in now.running]
        waiting = [job.id for job in now.jobs if job.id not in running]
        try:
            match int(rng.integers(8)):
                case 4 if running:
                    engine.undo(running[int(rng.integers(len(running)))])
                case 5:
                    engine.fail_node(now.cluster.nodes[int(rng.integers(len(now.cluster.nodes)))].id)
                case 6 if running:
                    held = now.running[int(rng.integers(len(running)))]
                    engine.undo(held.job)
                    engine.adopt(held, preemptible=True)
                case 7 if waiting:
                    name = waiting[int(rng.integers(len(waiting)))]
                    engine.commit(engine.place([name], method="best-fit"))
                    engine.undo(name)
                case 0 if running:
                    engine.release(running[int(rng.integers(len(running)))])
                case 1 if waiting:
                    engine.update(remove_jobs=[waiting[int(rng.integers(len(waiting)))]])
                case 2 if waiting:
                    name = waiting[int(rng.integers(len(waiting)))]
                    engine.commit(engine.place([name], method="best-fit"), preemptible=True)
                case _:
                    node = now.cluster.nodes[int(rng.integers(len(now.cluster.nodes)))].id
                    engine.update(nodes={node: "drain" if rng.random() < 0.5 else "undrain"})
        except PlaceoptError:
            pass  # a round in which that cannot be done


def standing(instance: Instance) -> set[tuple[str | None, str, str | None]]:
    """Return the limits that what runs breaks; the referee finds nothing else wrong."""
    problem = compile_problem(instance)
    judged = judge(instance, plan_of(problem, tuple(problem.running.get(job) for job in range(problem.num_jobs))))
    assert judged.violations == []
    return {(entry.job, entry.rule, entry.node) for entry in judged.standing}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_goes_in_is_lawful_and_nothing_else_changes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    with Engine(isolation="thread") as engine:
        engine.load(random_round(rng, changes=bool(seed % 2)))
        plan = engine.place(time_limit_s=0.2, threads=1)
        planned = engine.snapshot
        disturb(engine, rng)
        before = engine.snapshot
        done = engine.commit(plan, rebase=True)
        after = engine.snapshot
    ran, run = ({held.job: held for held in one.running} for one in (before, after))
    acted = set(done.committed)
    assert acted.isdisjoint(entry.job for entry in done.refused)
    for job in ran.keys() - acted:
        assert run[job].model_copy(update={"assignments": ()}) == ran[job].model_copy(update={"assignments": ()})
        assert [at.workers for at in run[job].assignments] == [at.workers for at in ran[job].assignments]
    assert run.keys() - ran.keys() <= acted
    where = {placement.job: placement for placement in plan.placements}
    for job in acted & run.keys():
        assert [at.workers for at in run[job].assignments] == [at.workers for at in where[job].assignments]
    assert standing(after) <= standing(before)
    then = {held.job for held in planned.running}
    wanted = {job for job in where if job not in then}
    wanted |= {entry.job for entry in (*plan.moved, *plan.shrunk, *plan.preempted)}
    assert wanted == acted | {entry.job for entry in done.refused}
    _refused_do_not_fit(plan, done, after)


def _refused_do_not_fit(plan: Plan, done: Committed, after: Instance) -> None:
    """No start that was refused could go in after all: the whole referee refuses it too."""
    running = {held.job for held in after.running}
    known = {job.id for job in after.jobs}
    for entry in done.refused:
        placement = plan.placement_of(entry.job)
        if placement is None or entry.job in running or entry.job not in known:
            continue
        if plan.moved or plan.shrunk or plan.preempted:
            continue
        alone = plan.model_copy(
            update={
                "instance": plan.instance.model_copy(update={"revision": after.revision, "digest": None}),
                "asked": (entry.job,),
                "placements": (at_request(after, placement),),
                "unplaced": (),
                "standing": (),
            }
        )
        assert [found for found in violations(after, alone) if found.rule != "gpu_grant"] != []


def at_request(instance: Instance, placement: Placement) -> Placement:
    """Return a placement with the shares that its option requests."""
    job = next(job for job in instance.jobs if job.id == placement.job)
    share = next(option.demand.gpu_milli for option in job.options if option.id == placement.option)
    assignments = tuple(at.model_copy(update={"gpus": dict.fromkeys(at.gpus, share)}) for at in placement.assignments)
    return placement.model_copy(update={"assignments": assignments})


def test_starts_on_drained_nodes_are_judged_alone_and_the_others_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a plan of many starts only those on nodes that changed are looked at twice."""
    judged: list[int] = []
    violations_of = Ledger.violations

    def count(ledger: Ledger, instance: Reference, plan: Plan) -> list[Violation]:
        judged.append(len(plan.placements))
        return violations_of(ledger, instance, plan)

    with Engine(isolation="thread") as engine:
        engine.load(generate("uniform", jobs=60, nodes=40, gpus=8, seed=1))
        plan = engine.place(method="stranding", prove=False, explain=False)
        drained = {node.id for node in engine.snapshot.cluster.nodes[:3]}
        engine.update(nodes=dict.fromkeys(drained, "drain"))
        monkeypatch.setattr(Ledger, "violations", count)
        done = engine.commit(plan, rebase=True)
        ran = {held.job for held in engine.snapshot.running} - set(done.committed)
    starts = [entry for entry in plan.placements if entry.job not in ran]
    late = [entry.job for entry in starts if any(at.node in drained for at in entry.assignments)]
    assert [entry.job for entry in done.refused] == late != []
    assert judged == [*[1] * len(late), len(starts) - len(late)]


def test_a_stop_that_nothing_needs_any_more_is_left_out() -> None:
    """The job for which another was to stop is cancelled: that one goes on."""
    with Engine(isolation="thread") as engine:
        engine.load(generate("preempt", jobs=12, nodes=4, gpus=4, seed=0))
        plan = engine.place(time_limit_s=2, threads=1)
        stopped = {entry.job for entry in plan.preempted}
        running = {held.job for held in engine.snapshot.running}
        starting = [placement.job for placement in plan.placements if placement.job not in running]
        assert len(stopped) > 1
        engine.update(remove_jobs=starting)
        done = engine.commit(plan, rebase=True)
        assert done.committed == ()
        assert {entry.job for entry in done.refused} == {*starting, *stopped}
        assert {entry.why for entry in done.refused if entry.job in stopped} == {"nothing that is left needs its room"}
        assert {held.job for held in engine.snapshot.running} == running


def test_plans_of_other_clusters_are_refused() -> None:
    """A revision that this cluster never had; without ``rebase`` an earlier one too."""
    with Engine(isolation="thread") as engine:
        engine.load(generate("uniform", jobs=4, nodes=2, gpus=4, seed=0))
        plan = engine.place(time_limit_s=1, threads=1)
        engine.update(nodes={"node-00001": "drain"})
        with pytest.raises(StaleSnapshot):
            engine.commit(plan)
        later = plan.model_copy(update={"instance": plan.instance.model_copy(update={"revision": 9})})
        with pytest.raises(BadInput, match="so the plan is of another"):
            engine.commit(later, rebase=True)
        assert engine.commit(plan, rebase=True).committed


def test_workers_keep_their_names_when_others_go() -> None:
    """Of three pods the one in the middle goes: the third has rank 1 then, and is still called the same."""
    machine = Machine(id="m", gpus=tuple(Gpu(model="a") for _ in range(3)), cpu_millicores=0, memory_mib=0)
    pods = tuple(Origin(name=f"team/pod-{rank}") for rank in range(3))
    job = Job(id="a", options=(Option(workers=3, workers_min=1),), origin=JobOrigin(name="train", workers=pods))
    held = Running(job="a", option="default", assignments=(assignment(0, 1, 2),), shrinkable=True)
    policy = Policy(changes=Changes(shrinks_max=1))
    cluster = Cluster(machines=(machine,), nodes=(Node(id="n0", machine="m"),))
    instance = Instance(cluster=cluster, jobs=(job,), running=(held,), policy=policy)
    problem = compile_problem(instance)
    plan = plan_of(problem, (problem.running[0],))
    kept = Placement(job="a", option="default", assignments=(assignment(0, 2),))
    plan = plan.model_copy(update={"placements": (kept,), "shrunk": (Shrunk(job="a", workers=2),)})
    with Engine(isolation="thread") as engine:
        engine.load(instance)
        engine.commit(plan)
        origin = engine.snapshot.jobs[0].origin
    assert origin is not None
    assert [worker.name for worker in origin.workers] == ["team/pod-0", "team/pod-2", "team/pod-1"]


def assignment(*gpus: int) -> Assignment:
    """Return what a worker on each of these GPUs holds."""
    workers = tuple(WorkerGpus(rank=rank, gpus=(gpu,)) for rank, gpu in enumerate(gpus))
    return Assignment(node="n0", gpus=dict.fromkeys(map(str, gpus), 1000), workers=workers)
