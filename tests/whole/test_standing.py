"""
What runs beyond a limit, or on what is gone, stands.

One odd thing never stops a round: it is listed, gets no worse, and is in the way of new starts only where they would
add to it.
"""

from __future__ import annotations

import pytest

from helpers.plan_records import plan_of
from placeopt import BadInput, Instance, Plan, audit, solve
from placeopt.build import instance, job, machine, node, option, running
from placeopt.check import judge
from placeopt.model import Changes, Policy, Queue, Quota, Weights
from placeopt.problem import compile_problem

NO_COST = Policy(name="plain", weights=Weights(communication=0, interference=0, fragmentation=0))


def solved(round_: Instance, **more: object) -> Plan:
    """Solve, and let referee and audit read the plan."""
    plan = solve(round_, time_limit_s=5, **more)  # type: ignore[arg-type]
    assert judge(round_, plan).violations == []
    assert audit(round_, plan) == []
    return plan


def rules(plan: Plan) -> list[tuple[str | None, str, str | None]]:
    """Return what the plan says stands: job, rule, node."""
    return [(one.job, one.rule, one.node) for one in plan.standing]


class TestEachLimit:
    """By hand: what stands, who starts all the same, and who does not."""

    def test_a_quota_below_what_its_queue_uses(self) -> None:
        """Queue q holds 2 GPUs and may now hold 1: nobody of q starts, others do."""
        held = job("held", gpus=2, queue="q")
        jobs = [held, job("mine", queue="q"), job("other", queue="r")]
        queues = (Queue(id="q", quota=Quota(gpu_milli=1000)), Queue(id="r"))
        policy = NO_COST.model_copy(update={"queues": queues})
        round_ = instance([node("n0")], jobs, running=[running(held, [("n0", [0, 1])])], policy=policy)
        plan = solved(round_)
        assert [placed.job for placed in plan.placements] == ["held", "other"]
        assert rules(plan) == [("held", "queue_quota", None)]
        assert plan.standing[0].detail == "queue 'q': 2000 gpu_milli, quota 1000 and 0 borrowed"
        assert plan.status == "optimal"

    def test_a_share_of_a_smaller_cluster(self) -> None:
        """Half of 8 GPUs was 4; of the 4 that are left it is 2, and the queue holds 3."""
        held = job("held", gpus=3, queue="q")
        policy = NO_COST.model_copy(update={"queues": (Queue(id="q", dominant_share_percent=50),)})
        jobs = [held, job("mine", queue="q")]
        round_ = instance([node("n0")], jobs, running=[running(held, [("n0", [0, 1, 2])])], policy=policy)
        plan = solved(round_)
        assert [placed.job for placed in plan.placements] == ["held"]
        assert rules(plan) == [("held", "queue_share", None)]

    def test_cores_of_a_node_that_shrank(self) -> None:
        """10 of 8 cores are held: a job that needs a core waits, one that needs none starts beside."""
        wide = option(cpu_millicores=10_000)
        held = job("held", options=(wide,))
        jobs = [held, job("core", options=(option(cpu_millicores=1),)), job("none")]
        machines = [machine(cpu_millicores=8000)]
        round_ = instance([node("n0")], jobs, machines=machines, running=[running(held, [("n0", [0])])], policy=NO_COST)
        plan = solved(round_)
        assert [placed.job for placed in plan.placements] == ["held", "none"]
        assert rules(plan) == [("held", "cpu", "n0")]

    def test_a_gpu_that_is_gone(self) -> None:
        """The job holds GPU 4 of a node that lists 0 to 3; it keeps its place by that name, and the four are free."""
        held = job("held", gpus=2)
        jobs = [held, job("pair", gpus=2), job("other"), job("late")]
        round_ = instance([node("n0")], jobs, running=[running(held, [("n0", [3, 4])])], policy=NO_COST)
        plan = solved(round_)
        assert plan.placements[0].assignments[0].gpus == {"3": 1000, "4": 1000}
        assert len(plan.placements) == 3
        assert rules(plan) == [("held", "gpu_indexes", "n0")]
        assert plan.facts["gpu_milli_capacity"] == 4000

    def test_a_node_that_is_gone(self) -> None:
        """One worker is on a node that is not listed; the other holds what it holds."""
        held = job("held", workers=2, gpus=2)
        jobs = [held, job("pair", gpus=2), job("four", gpus=4)]
        round_ = instance(
            [node("n0")], jobs, running=[running(held, [("n0", [0, 1]), ("gone", [6, 7])])], policy=NO_COST
        )
        plan = solved(round_)
        assert [placed.job for placed in plan.placements] == ["held", "pair"]
        assert [part.gpus for part in plan.placements[0].assignments] == [
            {"0": 1000, "1": 1000},
            {"6": 1000, "7": 1000},
        ]
        assert rules(plan) == [("held", "unknown_node", "gone")]

    def test_a_policy_that_lets_fewer_share_a_gpu(self) -> None:
        """Two halves of a GPU stand under a policy of one job a GPU; a third job gets another GPU."""
        half = (option(gpu_milli=500),)
        a, b, new = job("a", options=half), job("b", options=half), job("new", options=half)
        policy = NO_COST.model_copy(update={"share_mode": "exclusive"})
        runs = [running(one, [("n0", [0])], milli=500) for one in (a, b)]
        plan = solved(instance([node("n0")], [a, b, new], running=runs, policy=policy))
        assert plan.placements[2].assignments[0].gpus.keys() == {"1"}
        assert rules(plan) == [(None, "gpu_exclusive", "n0")]

    def test_what_contradicts_itself_is_bad_input(self) -> None:
        """Two jobs cannot each hold all of one GPU without sharing it, in whatever mode shares bind."""
        a, b = job("a"), job("b")
        runs = [running(one, [("n0", [0])]) for one in (a, b)]
        for mode in ("fraction", "exclusive"):
            policy = NO_COST.model_copy(update={"share_mode": mode})
            with pytest.raises(BadInput, match=r"running placements: gpu_(share|exclusive)"):
                solve(instance([node("n0")], [a, b], running=runs, policy=policy))


class TestChanges:
    """Where policy and jobs allow it, what stands may be changed as anything else; and then room is room."""

    def test_a_stopped_job_makes_room_within_the_limit(self) -> None:
        """Held are 10 of 8 cores in two halves. Stopping one leaves 5, so a job of 3 cores starts, and none of 4."""
        half = (option(cpu_millicores=5000, value=1),)
        a, b = job("a", options=half), job("b", options=half)
        runs = [running(a, [("n0", [0])], preemptible=True), running(b, [("n0", [1])])]
        policy = NO_COST.model_copy(update={"changes": Changes(preemptions_max=1)})
        for cores, starts in ((3000, True), (4000, False)):
            new = job("new", options=(option(cpu_millicores=cores, value=9),))
            machines = [machine(cpu_millicores=8000)]
            round_ = instance([node("n0")], [a, b, new], machines=machines, running=runs, policy=policy)
            plan = solved(round_)
            assert plan.status == "optimal"
            assert [one.job for one in plan.preempted] == (["a"] if starts else [])
            assert bool(plan.standing) is not starts

    def test_a_start_that_adds_to_what_stands_is_a_violation(self) -> None:
        """The same plan with the new job beside both is refused: what stands would get worse."""
        half = (option(cpu_millicores=5000),)
        a, b, new = job("a", options=half), job("b", options=half), job("new", options=(option(cpu_millicores=1),))
        runs = [running(a, [("n0", [0])]), running(b, [("n0", [1])])]
        machines = [machine(cpu_millicores=8000)]
        round_ = instance([node("n0")], [a, b, new], machines=machines, running=runs, policy=NO_COST)
        problem = compile_problem(round_)
        started = compile_problem(instance([node("n0")], [new], running=[running(new, [("n0", [2])])])).running[0]
        options = dict(enumerate(problem.options.job_class.tolist()))
        mine = next(o for o, k in options.items() if k == int(problem.job_class[2]))
        placement = type(started)(mine, started.nodes, started.gpus)
        found = judge(round_, plan_of(problem, (*(problem.running[j] for j in (0, 1)), placement)))
        assert [(one.rule, one.node) for one in found.violations] == [("cpu", "n0")]
        assert found.standing == []

    def test_jobs_beyond_what_may_share_a_gpu_stay(self) -> None:
        """No model has a form for leaving such a GPU, so the referee refuses what the engine cannot offer."""
        half = (option(gpu_milli=500, value=1),)
        a, b = job("a", options=half), job("b", options=half)
        runs = [running(one, [("n0", [0])], milli=500, preemptible=True) for one in (a, b)]
        changes = Changes(preemptions_max=2)
        policy = NO_COST.model_copy(update={"share_mode": "exclusive", "changes": changes})
        new = job("new", gpus=4, options=(option(gpus=4, value=100),))
        round_ = instance([node("n0")], [a, b, new], running=runs, policy=policy)
        plan = solved(round_)
        assert plan.preempted == ()
        problem = compile_problem(round_)
        stopped = judge(round_, plan_of(problem, (None, problem.running[1], None)))
        assert [(one.rule, one.where) for one in stopped.violations] == [("running", "job 'a'")]


class TestPlanSaysSo:
    """The list in the plan."""

    def test_a_false_entry_is_a_violation(self) -> None:
        """Whoever says that something stands must be right."""
        held = job("held")
        round_ = instance([node("n0")], [held], running=[running(held, [("n0", [0])])], policy=NO_COST)
        plan = solved(round_)
        assert plan.standing == ()
        entry = {"job": "held", "rule": "cpu", "node": "n0", "detail": "is said to stand"}
        told = Plan.model_validate({**plan.model_dump(by_alias=True), "standing": (entry,)})
        assert [one.rule for one in judge(round_, told).violations] == ["standing"]

    def test_a_plan_that_does_not_list_them_is_lawful(self) -> None:
        """Whoever makes plans for others may not know the limits."""
        held = job("held", options=(option(cpu_millicores=9000),))
        machines = [machine(cpu_millicores=8000)]
        runs = [running(held, [("n0", [0])])]
        round_ = instance([node("n0")], [held], machines=machines, running=runs, policy=NO_COST)
        silent = solved(round_).model_copy(update={"standing": ()})
        assert judge(round_, silent).violations == []
        assert [one.rule for one in judge(round_, silent).standing] == ["cpu"]
