"""Plans of an earlier revision: what still fits goes in, what does not is named, and nothing else happens."""

from __future__ import annotations

import pytest
from hypothesis import event, given, settings

from helpers.live_engine import engine_of, refuses, runs, step, update
from helpers.plan_records import at_request, standing
from helpers.plans import plan_for
from placeopt import Plan, StaleSnapshot, generate, violations
from placeopt.build import instance, job, machine, placement, running
from placeopt.model import Changes, Instance, JobOrigin, Origin, Placement, Policy
from strategies import Choice, choices, rounds


def workers(held: Placement) -> list[object]:
    """Return where the workers of a job are."""
    return [at.workers for at in held.assignments]


@settings(max_examples=settings().max_examples * 2)
@given(rounds() | rounds(changes=True), choices)
def test_what_goes_in_is_lawful_and_nothing_else_changes(loaded: Instance, choice: Choice) -> None:
    """After jobs ended, came, started elsewhere and stopped, and nodes were drained, failed and came."""
    with engine_of(loaded) as engine:
        plan = engine.place(method="stranding", deterministic=True)
        for _ in range(choice.number(2, 6)):
            step(choice, engine)
        before = engine.snapshot
        if before.policy != loaded.policy:
            refuses(engine, [("under another policy", lambda one: one.commit(plan, rebase=True))])
            return
        done = engine.commit(plan, rebase=True)
        after = engine.snapshot
    ran, run, then = ({held.job: held for held in one.running} for one in (before, after, loaded))
    acted, where = set(done.committed), {placement.job: placement for placement in plan.placements}
    assert acted.isdisjoint(entry.job for entry in done.refused)
    for name in ran.keys() - acted:
        assert run[name].model_copy(update={"assignments": ()}) == ran[name].model_copy(update={"assignments": ()})
        assert workers(run[name]) == workers(ran[name])
    assert run.keys() - ran.keys() <= acted
    for name in acted & run.keys():
        assert workers(run[name]) == workers(where[name])
    assert standing(after) <= standing(before)
    changed = {entry.job for entry in (*plan.moved, *plan.shrunk, *plan.preempted)}
    assert (where.keys() - then.keys()) | changed == acted | {entry.job for entry in done.refused}
    for entry in done.refused:
        event(f"refused: {entry.why}")
        waits = entry.job in {job.id for job in after.jobs} - run.keys()
        if entry.job in where and waits and not changed:
            assert_does_not_fit(plan, where[entry.job], after)


def assert_does_not_fit(plan: Plan, held: Placement, after: Instance) -> None:
    """A start that was refused could not go in after all: the whole referee refuses it too."""
    alone = plan.model_copy(
        update={
            "instance": plan.instance.model_copy(update={"revision": after.revision, "digest": None}),
            "asked": (held.job,),
            "placements": (at_request(after, held),),
            "unplaced": (),
            "standing": (),
        }
    )
    assert [found for found in violations(after, alone) if found.rule != "gpu_grant"] != []


def test_a_stop_that_nothing_needs_any_more_is_left_out() -> None:
    """The job for which another was to stop is cancelled: that one goes on."""
    with engine_of(generate("preempt", jobs=12, nodes=4, gpus=4, seed=0)) as engine:
        plan, before = engine.place(time_limit_s=2, threads=1), runs(engine)
        stopped = {entry.job for entry in plan.preempted}
        starting = [placement.job for placement in plan.placements if placement.job not in before]
        assert len(stopped) > 1
        update(engine, remove_jobs=starting)
        done = engine.commit(plan, rebase=True)
        assert done.committed == ()
        assert {entry.job for entry in done.refused} == {*starting, *stopped}
        assert {entry.why for entry in done.refused if entry.job in stopped} == {"nothing that is left needs its room"}
        assert runs(engine) == before


def test_plans_of_other_clusters_are_refused() -> None:
    """A revision that this cluster never had; without ``rebase`` an earlier one too."""
    with engine_of(2, [job("a")]) as engine:
        plan = engine.place(method="stranding")
        update(engine, nodes={"n1": "drain"})
        with pytest.raises(StaleSnapshot):
            engine.commit(plan)
        later = plan.model_copy(update={"instance": plan.instance.model_copy(update={"revision": 9})})
        refuses(engine, [("so the plan is of another", lambda one: one.commit(later, rebase=True))])
        assert engine.commit(plan, rebase=True).committed


@pytest.mark.parametrize(("nodes", "words"), [(1, "node 'n0' changed"), (7, "nodes 'n0', .*, 'n4' and 2 more changed")])
def test_what_changed_since_is_named(nodes: int, words: str) -> None:
    """The first five nodes, and how many more."""
    with engine_of(nodes, [job("a")]) as engine:
        plan = engine.place(method="stranding")
        update(engine, nodes={f"n{number}": "drain" for number in range(nodes)})
        with pytest.raises(StaleSnapshot, match=words):
            engine.commit(plan)


def test_workers_keep_their_names_when_others_go() -> None:
    """Of three pods the one in the middle goes: the third has rank 1 then, and is still called the same."""
    pods = tuple(Origin(name=f"team/pod-{rank}") for rank in range(3))
    gang = job("a", workers=3, workers_min=1, origin=JobOrigin(name="train", workers=pods))
    held = running(gang, [("n0", [gpu]) for gpu in range(3)], shrinkable=True)
    policy = Policy(changes=Changes(shrinks_max=1))
    loaded = instance(1, [gang], running=[held], policy=policy, machines=[machine(gpus=3)])
    with engine_of(loaded) as engine:
        engine.commit(plan_for(loaded, {"a": placement(gang, [("n0", [0]), ("n0", [2])])}, shrunk=["a"]))
        origin = engine.snapshot.jobs[0].origin
    assert origin is not None
    assert [worker.name for worker in origin.workers] == ["team/pod-0", "team/pod-2", "team/pod-1"]
