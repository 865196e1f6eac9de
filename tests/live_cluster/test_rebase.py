"""Plans of an earlier revision: what still fits goes in, what does not is named, and nothing else happens."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.plan_records import plan_of
from helpers.plans import plan_for
from placeopt import BadInput, Engine, PlaceoptError, Plan, StaleSnapshot, generate, violations
from placeopt.build import instance, job, machine, placement, running
from placeopt.check import judge
from placeopt.live_cluster import Committed
from placeopt.model import Changes, Instance, JobOrigin, Origin, Placement, Policy
from placeopt.problem import compile_problem
from strategies import rounds


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


def standing(of: Instance) -> set[tuple[str | None, str, str | None]]:
    """Return the limits that what runs breaks; the referee finds nothing else wrong."""
    problem = compile_problem(of)
    judged = judge(of, plan_of(problem, tuple(problem.running.get(job) for job in range(problem.num_jobs))))
    assert judged.violations == []
    return {(entry.job, entry.rule, entry.node) for entry in judged.standing}


@given(rounds() | rounds(changes=True), st.integers(0, 2**32))
def test_what_goes_in_is_lawful_and_nothing_else_changes(loaded: Instance, seed: int) -> None:
    rng = np.random.default_rng(seed)
    with Engine(isolation="thread") as engine:
        engine.load(loaded)
        plan = engine.place(method="stranding", deterministic=True)
        planned = engine.snapshot
        disturb(engine, rng)
        before = engine.snapshot
        done = engine.commit(plan, rebase=True)
        after = engine.snapshot
    ran, run = ({held.job: held for held in one.running} for one in (before, after))
    acted = set(done.committed)
    assert acted.isdisjoint(entry.job for entry in done.refused)
    for name in ran.keys() - acted:
        assert run[name].model_copy(update={"assignments": ()}) == ran[name].model_copy(update={"assignments": ()})
        assert [at.workers for at in run[name].assignments] == [at.workers for at in ran[name].assignments]
    assert run.keys() - ran.keys() <= acted
    where = {placement.job: placement for placement in plan.placements}
    for name in acted & run.keys():
        assert [at.workers for at in run[name].assignments] == [at.workers for at in where[name].assignments]
    assert standing(after) <= standing(before)
    then = {held.job for held in planned.running}
    wanted = {job for job in where if job not in then}
    wanted |= {entry.job for entry in (*plan.moved, *plan.shrunk, *plan.preempted)}
    assert wanted == acted | {entry.job for entry in done.refused}
    _refused_do_not_fit(plan, done, after)


def _refused_do_not_fit(plan: Plan, done: Committed, after: Instance) -> None:
    """No start that was refused could go in after all: the whole referee refuses it too."""
    runs = {one.job for one in after.running}
    known = {job.id for job in after.jobs}
    for entry in done.refused:
        held = plan.placement_of(entry.job)
        if held is None or entry.job in runs or entry.job not in known:
            continue
        if plan.moved or plan.shrunk or plan.preempted:
            continue
        alone = plan.model_copy(
            update={
                "instance": plan.instance.model_copy(update={"revision": after.revision, "digest": None}),
                "asked": (entry.job,),
                "placements": (at_request(after, held),),
                "unplaced": (),
                "standing": (),
            }
        )
        assert [found for found in violations(after, alone) if found.rule != "gpu_grant"] != []


def at_request(of: Instance, held: Placement) -> Placement:
    """Return a placement with the shares that its option requests."""
    record = next(one for one in of.jobs if one.id == held.job)
    share = next(option.demand.gpu_milli for option in record.options if option.id == held.option)
    assignments = tuple(at.model_copy(update={"gpus": dict.fromkeys(at.gpus, share)}) for at in held.assignments)
    return held.model_copy(update={"assignments": assignments})


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
    pods = tuple(Origin(name=f"team/pod-{rank}") for rank in range(3))
    gang = job("a", workers=3, workers_min=1, origin=JobOrigin(name="train", workers=pods))
    held = running(gang, [("n0", [gpu]) for gpu in range(3)], shrinkable=True)
    loaded = instance(
        1, [gang], running=[held], policy=Policy(changes=Changes(shrinks_max=1)), machines=[machine(gpus=3)]
    )
    plan = plan_for(loaded, {"a": placement(gang, [("n0", [0]), ("n0", [2])])}, shrunk=["a"])
    with Engine(isolation="thread") as engine:
        engine.load(loaded)
        engine.commit(plan)
        origin = engine.snapshot.jobs[0].origin
    assert origin is not None
    assert [worker.name for worker in origin.workers] == ["team/pod-0", "team/pod-2", "team/pod-1"]
