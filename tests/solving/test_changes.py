"""Running jobs that may be moved, shrunk or preempted: rounds worked out by hand, through every exact route."""

from typing import Any

import pytest

from placeopt import Engine, Instance, Plan, Policy, audit, violations
from placeopt.build import instance, job, machine, node, option, running
from placeopt.model import Changes, Placement, Queue, Weights

ROUTES = ("counts", "counts-cpsat", "assignment", "assignment-highs")
every_route = pytest.mark.parametrize("method", ROUTES)


def policy(**changes: Any) -> Policy:
    """No costs; changes as stated."""
    return Policy(weights=Weights(communication=0, interference=0, fragmentation=0), changes=Changes(**changes))


def best(engine: Engine, round_: Instance, method: str = "auto") -> Plan:
    """Solve, and insist on proof, referee and audit."""
    plan = engine.solve(round_, method=method, time_limit_s=20)
    assert violations(round_, plan) == []
    assert audit(round_, plan) == []
    assert plan.status == "optimal"
    return plan


def where(plan: Plan, name: str) -> dict[str, tuple[int, ...]]:
    """Node -> GPUs of a job, empty if it waits."""
    held = plan.placement_of(name)
    return {} if held is None else {a.node: tuple(int(gpu) for gpu in a.gpus) for a in held.assignments}


class TestPreemption:
    """One node of 4 GPUs, all held."""

    def round(self, worth: int = 9, **changes: Any) -> Instance:
        """Victims of 2, 1 and 1 GPUs worth 5, 3 and 4; two GPUs are wanted."""
        jobs = [job("two", gpus=2, value=5), job("cheap", value=3), job("dear", value=4), job("w", gpus=2, value=worth)]
        runs = [
            running(jobs[0], [("n0", [0, 1])], preemptible=True),
            running(jobs[1], [("n0", [2])], preemptible=True),
            running(jobs[2], [("n0", [3])], preemptible=True),
        ]
        return instance(1, jobs, running=runs, policy=policy(**{"preemptions_max": 3, **changes}))

    @every_route
    def test_the_cheapest_victims(self, method: str, engine: Engine) -> None:
        """``two`` costs 5, the other two together 7. Value: 9 + 3 + 4, and it is told with the share that is freed."""
        plan = best(engine, self.round(), method)
        assert plan.levels[0].objective == 16
        assert [(p.job, p.freed_gpu_milli) for p in plan.preempted] == [("two", 2000)]
        assert [(u.job, u.reason) for u in plan.unplaced] == [("two", "outvoted")]
        assert plan.facts["jobs_preempted"] == 1

    @every_route
    def test_a_price_per_victim(self, method: str, engine: Engine) -> None:
        """At 3 a victim ``two`` costs 8 of 9; at 4 it costs 9: no gain, and a tie leaves what runs alone or not."""
        assert best(engine, self.round(preemption_price=3), method).levels[0].objective == 5 + 3 + 4 + 1
        assert best(engine, self.round(preemption_price=5), method).preempted == ()

    @every_route
    def test_not_preemptible(self, method: str, engine: Engine) -> None:
        """Then the two others, 7 of 9; and if the policy allows one only, nobody."""
        round_ = self.round()
        fixed = round_.running[0].model_copy(update={"preemptible": False})
        round_ = round_.model_copy(update={"running": (fixed, *round_.running[1:])})
        plan = best(engine, round_, method)
        assert {p.job for p in plan.preempted} == {"cheap", "dear"}
        one = round_.policy.model_copy(update={"changes": Changes(preemptions_max=1)})
        plan = best(engine, round_.model_copy(update={"policy": one}), method)
        assert plan.preempted == ()
        assert plan.unplaced[0].reason == "outvoted"
        assert "only if running jobs make room" in plan.unplaced[0].detail

    @every_route
    def test_last_submitted_first(self, method: str, engine: Engine) -> None:
        """``two`` came first: it may go only with both others, 12 of 13. Those two alone cost 7."""
        jobs = [one.model_copy(update={"arrival_ms": i}) for i, one in enumerate(self.round(13).jobs)]
        round_ = self.round(13, last_submitted_first=True).model_copy(update={"jobs": tuple(jobs)})
        plan = best(engine, round_, method)
        assert {p.job for p in plan.preempted} == {"cheap", "dear"}
        assert plan.levels[0].objective == 13 + 5

    @every_route
    def test_queues_go_apart(self, method: str, engine: Engine) -> None:
        """``two`` is the only one of its queue, so nobody came after it."""
        round_ = self.round(last_submitted_first=True)
        queued = [round_.jobs[0].model_copy(update={"queue": "q"}), *round_.jobs[1:]]
        jobs = [one.model_copy(update={"arrival_ms": i}) for i, one in enumerate(queued)]
        rules = round_.policy.model_copy(update={"queues": (Queue(id="q"),)})
        plan = best(engine, round_.model_copy(update={"jobs": tuple(jobs), "policy": rules}), method)
        assert [p.job for p in plan.preempted] == ["two"]


class TestShrink:
    """An elastic job of 1 to 4 workers holds all 4 GPUs of a node, chief on GPU 2; worth 10, and 2 a worker more."""

    def round(self, wanted: int, worth: int, **changes: Any) -> Instance:
        """Another job of one worker wants so many GPUs."""
        a = job("a", workers=4, workers_min=1, value=10, value_per_extra_worker=2)
        home = [("n0", [2]), ("n0", [0]), ("n0", [1]), ("n0", [3])]
        rules = policy(**{"shrinks_max": 1, **changes})
        runs = [running(a, home, shrinkable=True)]
        return instance(1, [a, job("w", gpus=wanted, value=worth)], running=runs, policy=rules)

    @every_route
    def test_a_shrink_that_just_suffices(self, method: str, engine: Engine) -> None:
        """Two workers go, at 2 + 1 each: 16 - 6 + 7."""
        plan = best(engine, self.round(2, 7, shrink_price_per_worker=1), method)
        assert plan.levels[0].objective == 17
        assert [(s.job, s.workers) for s in plan.shrunk] == [("a", 2)]
        held = plan.placement_of("a")
        assert isinstance(held, Placement)
        assert next(w.gpus for a in held.assignments for w in a.workers if w.rank == 0) == (2,)

    @every_route
    def test_the_chief_is_never_taken(self, method: str, engine: Engine) -> None:
        """Four GPUs cannot be had at any price; three can: the chief stays on GPU 2."""
        assert best(engine, self.round(4, 1000), method).shrunk == ()
        assert where(best(engine, self.round(3, 1000), method), "a") == {"n0": (2,)}

    @every_route
    def test_shares_are_granted_anew(self, method: str, engine: Engine) -> None:
        """Half a GPU is asked for, 700 are held: 500 count, so a 400 fits beside; 600 are granted then."""
        a = job("a", workers=2, workers_min=1, gpu_milli=500, gpu_milli_limit=900, value_per_extra_worker=1)
        runs = [running(a, [("n0", [0]), ("n0", [1])], milli=700, shrinkable=True)]
        jobs = [a, *(job(f"w{i}", gpu_milli=400, value=5) for i in range(3))]
        round_ = instance(1, jobs, running=runs, policy=policy(shrinks_max=1), machines=[machine(gpus=2)])
        plan = best(engine, round_, method)
        assert plan.levels[0].objective == 1 + 3 * 5
        held = plan.placement_of("a")
        assert isinstance(held, Placement)
        assert held.assignments[0].gpus == {"0": 600}

    def test_no_shrinks_allowed(self, engine: Engine) -> None:
        """The limit counts jobs."""
        assert best(engine, self.round(2, 100, shrinks_max=0)).shrunk == ()


class TestMove:
    """Two nodes of 8 GPUs with two jobs of 4 GPUs, one on either: no room for 8 GPUs until one of them moves."""

    def round(self, **changes: Any) -> Instance:
        """The second is fixed."""
        jobs = [job("a", gpus=4, value=3), job("b", gpus=4, value=3), job("w", gpus=8, value=5)]
        runs = [running(jobs[0], [("n0", [0, 1, 2, 3])], movable=True), running(jobs[1], [("n1", [0, 1, 2, 3])])]
        rules = policy(**{"moves_max": 1, **changes})
        return instance(2, jobs, running=runs, policy=rules, machines=[machine(gpus=8)])

    @every_route
    def test_a_move_that_defragments(self, method: str, engine: Engine) -> None:
        """``a`` goes beside ``b``, for 2; worth 3 + 3 + 5 - 2."""
        plan = best(engine, self.round(move_price=2), method)
        assert plan.levels[0].objective == 9
        assert [(m.job, m.from_nodes, m.to_nodes) for m in plan.moved] == [("a", ("n0",), ("n1",))]
        assert where(plan, "a") == {"n1": (4, 5, 6, 7)}
        assert set(where(plan, "w")) == {"n0"}

    @every_route
    def test_not_worth_its_price(self, method: str, engine: Engine) -> None:
        """At 6 it is left alone, and the job that waits is told so."""
        plan = best(engine, self.round(move_price=6), method)
        assert (plan.moved, plan.levels[0].objective, plan.levels[0].bound) == ((), 6, 6)
        assert plan.unplaced[0].reason == "outvoted"

    @every_route
    def test_a_move_starts_anew(self, method: str, engine: Engine) -> None:
        """Onto a drained node nothing may move; what runs on one stays."""
        round_ = self.round()
        drained = tuple(n.model_copy(update={"drained": n.id == "n1"}) for n in round_.cluster.nodes)
        cluster = round_.cluster.model_copy(update={"nodes": drained})
        plan = best(engine, round_.model_copy(update={"cluster": cluster}), method)
        assert (plan.moved, plan.levels[0].objective) == ((), 6)
        assert set(where(plan, "b")) == {"n1"}

    @every_route
    def test_a_job_grows_by_moving(self, method: str, engine: Engine) -> None:
        """With 1 of 3 workers it runs; a restart with 3 is worth 4 more, for 1."""
        a = job("a", workers=3, workers_min=1, value=1, value_per_extra_worker=2)
        rules = policy(moves_max=1, move_price=1)
        round_ = instance(1, [a], running=[running(a, [("n0", [0])], movable=True)], policy=rules)
        plan = best(engine, round_, method)
        assert plan.levels[0].objective == 5 - 1
        assert [m.job for m in plan.moved] == ["a"]

    @every_route
    def test_another_option(self, method: str, engine: Engine) -> None:
        """On the CPU it is worth nearly as much, and its GPU is free for another."""
        a = job("a", options=(option("gpu", value=5), option("cpu", gpus=0, cpu_millicores=1000, value=4)))
        w = job("w", value=3)
        rules = policy(moves_max=1)
        runs = [running(a, [("n0", [0])], movable=True)]
        round_ = instance(1, [a, w], running=runs, policy=rules, machines=[machine(gpus=1)])
        plan = best(engine, round_, method)
        assert plan.levels[0].objective == 7
        assert next(p.option for p in plan.placements if p.job == "a") == "cpu"

    @every_route
    def test_a_restart_on_a_part_of_its_own_gpus(self, method: str, engine: Engine) -> None:
        """Only moves are allowed: without its second worker a job was moved, and the plan says so."""
        a = job("a", workers=2, workers_min=1, value=3, value_per_extra_worker=1)
        w = job("w", value=5)
        rules = policy(moves_max=1)
        runs = [running(a, [("n0", [0]), ("n0", [1])], movable=True)]
        round_ = instance(1, [a, w], running=runs, policy=rules, machines=[machine(gpus=2)])
        plan = best(engine, round_, method)
        assert plan.levels[0].objective == 8
        assert ([m.job for m in plan.moved], plan.shrunk) == (["a"], ())


@pytest.mark.parametrize("allowed", [1, 2])
def test_limits_count_jobs(allowed: int, engine: Engine) -> None:
    """Three GPUs are held by jobs worth 1; each that may go makes room for one worth 5."""
    old, new = [job(f"old{i}") for i in range(3)], [job(f"new{i}", value=5) for i in range(3)]
    runs = [running(one, [("n0", [i])], preemptible=True) for i, one in enumerate(old)]
    round_ = instance(
        [node("n0")], [*old, *new], running=runs, policy=policy(preemptions_max=allowed), machines=[machine(gpus=3)]
    )
    plan = best(engine, round_)
    assert len(plan.preempted) == allowed
    assert plan.levels[0].objective == 5 * allowed + (3 - allowed)
