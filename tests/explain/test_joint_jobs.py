"""Jobs with groups or relations in the explanation of a whole queue, and what would help them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from hypothesis import event, given

from helpers.relation_oracle import RelationOracle
from helpers.tree_oracle import TreeOracle
from placeopt import Engine, Instance, build, solve
from placeopt.edits import apply
from placeopt.explain import Explanation, QueueExplanation, explain, explain_all
from placeopt.model import Demand, Domain, Group, Job, LabelExpression, Option, Plan, Relation, Running, Split
from placeopt.whatif import plan_of
from strategies import relation_rounds, tree_rounds

APART_FROM_DB = Relation(
    kind="apart", level="node", selector=(LabelExpression(key="app", operator="In", values=("db",)),)
)


def held_by(plan: Plan, round_: Instance) -> Instance:
    """Return the round in which what the plan places runs."""
    running = tuple(Running(job=p.job, option=p.option, assignments=p.assignments) for p in plan.placements)
    return round_.model_copy(update={"running": running})


def explained(round_: Instance, plan: Plan) -> tuple[QueueExplanation, dict[str, Explanation]]:
    """Explain the queue and each job that waits: all proven, under the same reasons and the same conflicts."""
    queue = explain_all(round_, plan, time_limit_s=60)
    alone = {one.job: explain(round_, plan, one.job, time_limit_s=20, isolation="thread") for one in plan.unplaced}
    assert queue.proven
    assert all(one.proven for one in alone.values())
    counted = Counter((one.reason, frozenset(item.name for item in one.conflict)) for one in alone.values())
    assert counted == {(one.reason, frozenset(one.constraints)): one.jobs for one in queue.reasons}
    for (reason, conflict), jobs in counted.items():
        event(f"{reason}, {'a rule' if conflict else 'no rule'}", jobs)
    return queue, alone


@given(round_=tree_rounds())
def test_what_helps_trees_is_what_brute_force_finds(engine: Engine, round_: Instance) -> None:
    """
    Jobs that fit alone after a change, and the jobs of the plan that hold the room of one that is outvoted.

    A conflict just where a job fits nowhere beside the running jobs.
    """
    plan = engine.solve(round_, method="counts", time_limit_s=20)
    queue, alone = explained(round_, plan)
    held, jobs = held_by(plan, round_), {job.id: job for job in round_.jobs}
    without = [jobs[one.job] for one in plan.unplaced if not TreeOracle(held).fits_alone(jobs[one.job])]
    for change in queue.changes:
        after = TreeOracle(apply(held, change.steps))
        assert change.jobs_alone == sum(map(after.fits_alone, without)), change.change
        assert 1 <= change.jobs_together <= change.jobs_alone
        event("a change helps")
    for name, found in alone.items():
        assert (found.reason == "conflict") == (not TreeOracle(round_).fits_alone(jobs[name]))
        for change in found.remedies.changes if found.beside == "plan" else ():
            after = apply(held, change.steps)
            assert TreeOracle(after).fits_alone(next(job for job in after.jobs if job.id == name)), change.change
            event("a change helps one tree")
        if found.outvoted_by is None:
            continue
        gone = {rival.job for rival in found.outvoted_by.jobs}
        for stays in ((), *((name,) for name in gone)):
            left = tuple(one for one in held.running if one.job not in gone.difference(stays))
            free = held.model_copy(update={"running": left})
            assert TreeOracle(free).fits_alone(jobs[name]) == (not stays)
        event("jobs hold the room of a tree")


def fits_beside(round_: Instance, running: Iterable[Running], asked: str) -> bool:
    """Whether brute force finds a place for one job while the others run where they are."""
    held = tuple(one for one in running if one.job != asked)
    there = {one.job for one in held}
    worth = {name: int(name == asked) for name in (asked, *there)}
    jobs = tuple(
        job.model_copy(update={"options": tuple(option.valued(worth[job.id]) for option in job.options)})
        for job in round_.jobs
        if job.id in worth
    )
    fixed = tuple(Running(job=one.job, option=one.option, assignments=one.assignments) for one in held)
    return RelationOracle(round_.model_copy(update={"jobs": jobs, "running": fixed})).best()[0] == 1


@given(round_=relation_rounds(running=True))
def test_what_helps_related_jobs_is_what_brute_force_finds(engine: Engine, round_: Instance) -> None:
    """Who holds the room of a job, who could stop for it, and which changes let jobs start: all of them are needed."""
    plan = engine.solve(round_, method="counts", time_limit_s=20)
    queue, waiting = explained(round_, plan)
    placed = held_by(plan, round_)
    without = [one.job for one in plan.unplaced if not fits_beside(placed, placed.running, one.job)]
    for change in queue.changes:
        after = apply(placed, change.steps)
        alone = sum(fits_beside(after, after.running, name) for name in without)
        assert (change.jobs_alone, bool(change.jobs_together)) == (alone, True), change.change
        event("a change helps")
    for name in without:
        found = waiting[name]
        staying = tuple(one for one in round_.running if one.job in {held.job for held in placed.running})
        preempt, beside = found.remedies.preempt, staying if found.beside == "running" else placed.running
        for said, there in ((found.outvoted_by, placed.running), (preempt, beside)):
            gone = () if said is None else tuple(rival.job for rival in said.jobs)
            for stays in ((), *((one,) for one in gone)) if gone else ():
                left = [one for one in there if one.job not in gone or one.job in stays]
                assert fits_beside(placed, left, name) == (not stays)
                event("other jobs hold its room")


def test_what_another_job_keeps_off_starts_when_that_stops() -> None:
    """The running database may be stopped; a node more would do, too."""
    db = build.job("db", labels={"app": "db"}, value=1)
    web = build.job("web", gpus=2, relations=(APART_FROM_DB,), value=10)
    running = [build.running(db, [("n0", [0])], preemptible=True)]
    round_ = build.instance(1, [web, db], running=running)
    plan = solve(round_, isolation="thread", time_limit_s=5)
    found = explain(round_, plan, "web", isolation="thread", time_limit_s=60)
    assert found.remedies.preempt is not None
    assert ([one.job for one in found.remedies.preempt.jobs], found.remedies.preempt.price) == (["db"], 1)
    assert found.proven
    queue = explain_all(round_, plan)
    assert [(one.reason, one.constraints) for one in queue.reasons] == [("conflict", ("relation apart by node",))]
    assert [(one.change, one.jobs_alone) for one in queue.changes] == [("one more node of type 'm'", 1)]


def test_the_best_other_place_of_a_placed_tree() -> None:
    """By hand: the leader and its workers are split over two racks, and are worth 5 more as one option in one rack."""
    groups = (Group(id="lead"), Group(id="work", workers=2, demand=Demand(gpus=2)))
    wide = Option(id="wide", groups=groups, value=10)
    tight = Option(id="tight", groups=groups, value=15, splits=(Split(level="rack", domains=1),))
    job = Job(id="tree", options=(wide, tight))
    nodes = [build.node(f"n{i}", domain=f"r{i // 2}") for i in range(4)]
    machines, racks = [build.machine(gpus=4)], [Domain(id="r0"), Domain(id="r1")]
    round_ = build.instance(nodes, [job], machines=machines, domains=racks)
    there = build.placement(job, [("n0", [0], "lead"), ("n0", [1, 2], "work"), ("n3", [0, 1], "work")], option="wide")
    found = explain(round_, plan_of(round_, [there]), "tree", isolation="thread", time_limit_s=60)
    assert found.detail == "a better place exists while all other jobs stay"
    assert found.proven
    assert found.spot is not None
    assert (found.spot.value, found.spot.nodes) == (10, {"n0": 2, "n3": 1})
    assert found.best is not None
    assert found.best.spot is not None
    assert (found.best.gain_value, found.best.spot.option) == (5, "tight")


def test_a_bound_that_ignores_relations_says_so() -> None:
    """Of five jobs that keep apart on four GPUs a relaxation places four; without relations none is named."""
    for relations, said in (((APART_FROM_DB,), True), ((), False)):
        jobs = [build.job(name, labels={"app": "db"}, relations=relations) for name in "abcde"]
        plan = solve(build.instance(1, jobs), method="stranding", time_limit_s=5)
        assert ("relations between jobs" in plan.bound_relaxes) == said
