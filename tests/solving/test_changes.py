"""Running jobs that may be moved, shrunk or preempted: rounds worked out by hand, through every exact route."""

from typing import Any

import pytest

from placeopt import Engine, Instance, Plan, Policy, audit, violations
from placeopt.build import instance, job, machine, node, option, running
from placeopt.model import Changes, Placement, Queue, Weights

every_route = pytest.mark.parametrize("method", ["counts", "counts-cpsat", "assignment", "assignment-highs"])


def policy(**changes: Any) -> Policy:
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
    """One node of 4 GPUs, held by victims of 2, 1 and 1 GPUs worth 5, 3 and 4; two GPUs are wanted."""

    def round(self, worth: int = 9, *, arrive: bool = False, fixed: bool = False, **changes: Any) -> Instance:
        """``arrive``: One after the other; ``fixed``: The first may not be preempted."""
        sizes = {"two": (2, 5), "cheap": (1, 3), "dear": (1, 4), "w": (2, worth)}
        jobs = [
            job(name, gpus=gpus, value=value, arrival_ms=i if arrive else 0)
            for i, (name, (gpus, value)) in enumerate(sizes.items())
        ]
        runs = [
            running(one, [("n0", gpus)], preemptible=not fixed or one.id != "two")
            for one, gpus in zip(jobs, ([0, 1], [2], [3]), strict=False)
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
    @pytest.mark.parametrize(
        ("fields", "gone", "value"),
        [
            ({"preemption_price": 3}, {"two"}, 13),  # ``two`` costs 8 of 9
            ({"preemption_price": 5}, set(), 12),  # and 10
            ({"fixed": True}, {"cheap", "dear"}, 14),  # 7 of 9
            ({"fixed": True, "preemptions_max": 1}, set(), 12),
            ({"worth": 13, "arrive": True, "last_submitted_first": True}, {"cheap", "dear"}, 18),
            # ``two`` came first: it may go only with both others, 12 of 13; those two alone cost 7
        ],
    )
    def test_prices_and_limits(
        self, fields: dict[str, Any], gone: set[str], value: int, method: str, engine: Engine
    ) -> None:
        plan = best(engine, self.round(**fields), method)
        assert ({p.job for p in plan.preempted}, plan.levels[0].objective) == (gone, value)
        if "preemptions_max" in fields:
            assert plan.unplaced[0].reason == "outvoted"
            assert "only if running jobs make room" in plan.unplaced[0].detail

    @every_route
    def test_queues_go_apart(self, method: str, engine: Engine) -> None:
        """``two`` is the only one of its queue, so nobody came after it."""
        round_ = self.round(arrive=True, last_submitted_first=True)
        jobs = (round_.jobs[0].model_copy(update={"queue": "q"}), *round_.jobs[1:])
        rules = round_.policy.model_copy(update={"queues": (Queue(id="q"),)})
        plan = best(engine, round_.model_copy(update={"jobs": jobs, "policy": rules}), method)
        assert [p.job for p in plan.preempted] == ["two"]


class TestShrink:
    """An elastic job of 1 to 4 workers holds all 4 GPUs of a node, chief on GPU 2; worth 10, and 2 a worker more."""

    def round(self, wanted: int, worth: int, **changes: Any) -> Instance:
        """Another job of one worker wants so many GPUs."""
        a = job("a", workers=4, workers_min=1, value=16, value_per_worker=2)
        runs = [running(a, [("n0", [gpu]) for gpu in (2, 0, 1, 3)], shrinkable=True)]
        rules = policy(**{"shrinks_max": 1, **changes})
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
        """Four GPUs cannot be had at any price; three can: the chief stays on GPU 2. The policy may allow no shrink."""
        assert best(engine, self.round(4, 1000), method).shrunk == ()
        assert where(best(engine, self.round(3, 1000), method), "a") == {"n0": (2,)}
        assert best(engine, self.round(2, 100, shrinks_max=0), method).shrunk == ()

    @every_route
    def test_shares_are_granted_anew(self, method: str, engine: Engine) -> None:
        """Half a GPU is asked for, 700 are held: 500 count, so a 400 fits beside; 600 are granted then."""
        a = job("a", workers=2, workers_min=1, gpu_milli=500, gpu_milli_limit=900, value=2, value_per_worker=1)
        runs = [running(a, [("n0", [0]), ("n0", [1])], milli=700, shrinkable=True)]
        jobs = [a, *(job(f"w{i}", gpu_milli=400, value=5) for i in range(3))]
        round_ = instance(1, jobs, running=runs, policy=policy(shrinks_max=1), machines=[machine(gpus=2)])
        plan = best(engine, round_, method)
        assert plan.levels[0].objective == 1 + 3 * 5
        held = plan.placement_of("a")
        assert isinstance(held, Placement)
        assert held.assignments[0].gpus == {"0": 600}


class TestMove:
    """Two nodes of 8 GPUs with two jobs of 4 GPUs, one on either: no room for 8 GPUs until one of them moves."""

    def round(self, *, drained: bool = False, **changes: Any) -> Instance:
        """Job ``b`` is fixed; ``drained``: Its node takes no other."""
        jobs = [job("a", gpus=4, value=3), job("b", gpus=4, value=3), job("w", gpus=8, value=5)]
        runs = [running(jobs[0], [("n0", [0, 1, 2, 3])], movable=True), running(jobs[1], [("n1", [0, 1, 2, 3])])]
        nodes, rules = [node("n0"), node("n1", drained=drained)], policy(**{"moves_max": 1, **changes})
        return instance(nodes, jobs, running=runs, policy=rules, machines=[machine(gpus=8)])

    @every_route
    def test_a_move_that_defragments(self, method: str, engine: Engine) -> None:
        """``a`` goes beside ``b``, for 2; worth 3 + 3 + 5 - 2."""
        plan = best(engine, self.round(move_price=2), method)
        assert plan.levels[0].objective == 9
        assert [(m.job, m.from_nodes, m.to_nodes) for m in plan.moved] == [("a", ("n0",), ("n1",))]
        assert where(plan, "a") == {"n1": (4, 5, 6, 7)}
        assert set(where(plan, "w")) == {"n0"}

    @every_route
    @pytest.mark.parametrize("fields", [{"move_price": 6}, {"drained": True}])
    def test_not_worth_its_price_or_not_allowed(self, fields: dict[str, Any], method: str, engine: Engine) -> None:
        """At 6 it is left alone; onto a drained node nothing may move, and what runs on one stays."""
        plan = best(engine, self.round(**fields), method)
        assert (plan.moved, plan.levels[0].objective, plan.levels[0].bound) == ((), 6, 6)
        assert plan.unplaced[0].reason == "outvoted"
        assert set(where(plan, "b")) == {"n1"}

    @every_route
    def test_a_restart_in_another_shape(self, method: str, engine: Engine) -> None:
        """
        With 1 of 3 workers a job runs; with 3 it is worth 4 more, for 1.

        On the CPU another one is worth nearly as much, and its GPU is free for a third. Where only moves are allowed,
        a job without its second worker was moved, and the plan says so.
        """
        grows = job("a", workers=3, workers_min=1, value=5, value_per_worker=2)
        either = job("a", options=(option("gpu", value=5), option("cpu", gpus=0, cpu_millicores=1000, value=4)))
        pair = job("a", workers=2, workers_min=1, value=4, value_per_worker=1)
        for a, worth, gpus, price, value in (
            (grows, 0, 4, 1, 4),
            (either, 3, 1, 0, 7),
            (pair, 5, 2, 0, 8),
        ):
            held = [("n0", [gpu]) for gpu in range(2 if a is pair else 1)]
            jobs = [a, *([job("w", value=worth)] if worth else [])]
            runs, rules = [running(a, held, movable=True)], policy(moves_max=1, move_price=price)
            plan = best(engine, instance(1, jobs, running=runs, policy=rules, machines=[machine(gpus=gpus)]), method)
            assert (plan.levels[0].objective, [m.job for m in plan.moved], plan.shrunk) == (value, ["a"], ())
            assert a is not either or next(p.option for p in plan.placements if p.job == "a") == "cpu"


@pytest.mark.parametrize("allowed", [1, 2])
def test_limits_count_jobs(allowed: int, engine: Engine) -> None:
    """Three GPUs are held by jobs worth 1; each that may go makes room for one worth 5."""
    old, new = [job(f"old{i}") for i in range(3)], [job(f"new{i}", value=5) for i in range(3)]
    runs = [running(one, [("n0", [i])], preemptible=True) for i, one in enumerate(old)]
    rules = policy(preemptions_max=allowed)
    plan = best(engine, instance(1, [*old, *new], running=runs, policy=rules, machines=[machine(gpus=3)]))
    assert len(plan.preempted) == allowed
    assert plan.levels[0].objective == 5 * allowed + (3 - allowed)
