"""Exceptions that nothing foresees: the plan of the other stages stands, or the call ends with ``InternalFault``."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from placeopt import Engine, Instance, InternalFault, Policy, Progress, SolverFault, audit, solve, violations
from placeopt.build import instance, job, running
from placeopt.errors import OutOfTime
from placeopt.model import Plan, Postpone, Weights
from placeopt.problem import Problem
from placeopt.solving.stages.lookahead import hold_back

STAGES = (
    "greedy.Greedy",
    "bound.Bound",
    "first_plan.RankMapping",
    "trivial_proof.TrivialProof",
    "branch_and_price.BranchAndPrice",
    "exact.Exact",
    "gpu_patterns.GpuPatternPlans",
)


def knapsack(policy: Policy | None = None) -> Instance:
    """Three jobs of two GPUs, worth 1, 2, 3, on one node of four."""
    return instance(
        1,
        [job(name, gpus=2, value=i + 1, run_time_ms=1000) for i, name in enumerate("abc")],
        policy=policy or Policy(weights=Weights(communication=0, interference=0, fragmentation=0)),
    )


def failing(error: Exception) -> Callable[..., object]:
    """A function that raises, whatever it is called with."""

    def fail(*args: object, **options: object) -> object:
        del args, options
        raise error

    return fail


def checked(round_: Instance, plan: Plan) -> Plan:
    """Let referee and audit read the plan."""
    assert violations(round_, plan) == []
    assert audit(round_, plan) == []
    return plan


@pytest.mark.usefixtures("survived_faults")
class TestStagesThatFail:
    """Issue 16, A1: an exception in a stage is kept in the plan, and the plan of the other stages is returned."""

    @pytest.mark.parametrize("name", STAGES)
    def test_the_best_plan_of_the_others_is_returned(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """It says which stage failed, by what and where."""
        monkeypatch.setattr(f"placeopt.solving.stages.{name}.run", failing(IndexError("index 4 is out of bounds")))
        round_ = knapsack(Policy())
        plan = checked(round_, solve(round_, time_limit_s=5))
        assert plan.levels[0].objective == 5
        failed = [stage.detail for stage in plan.stages if stage.outcome == "failed"]
        if name in ("greedy.Greedy", "bound.Bound"):
            assert failed
        for detail in failed:
            assert detail.startswith("internal fault: IndexError: index 4 is out of bounds (test_stage_faults.py:")
            assert detail.endswith("; what was held is kept")

    @pytest.mark.parametrize("error", [SolverFault("a solver contradicts itself"), OutOfTime("too late")])
    def test_errors_that_leave_no_call_stay_inside(self, error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
        """Stages catch these two; one that forgets to costs no plan."""
        monkeypatch.setattr("placeopt.solving.stages.bound.Bound.run", failing(error))
        round_ = knapsack()
        assert checked(round_, solve(round_, time_limit_s=5)).levels[0].objective == 5

    def test_out_of_memory_is_the_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """As where a solver runs out of it."""
        monkeypatch.setattr("placeopt.solving.stages.bound.Bound.run", failing(MemoryError()))
        round_ = knapsack()
        plan = checked(round_, solve(round_, method="stranding", time_limit_s=5))
        assert (plan.levels[0].objective, plan.limit) == (5, "memory")
        assert "out of memory; what was held is kept" in [stage.detail for stage in plan.stages]

    def test_a_round_that_was_half_narrowed_is_whole_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Look-ahead hands on a problem that no cost can be worked out on: the round goes on without it."""

        def broken(problem: Problem, *rest: object) -> Problem:
            narrowed = hold_back(problem, *rest)  # type: ignore[arg-type]
            return replace(narrowed, gpu_type=narrowed.gpu_type + 1000)

        monkeypatch.setattr("placeopt.solving.stages.lookahead.hold_back", broken)
        monkeypatch.setattr("placeopt.solving.stages.lookahead.all_start", lambda *_: False)
        policy = Policy(postpone=Postpone(rule="lookahead"), fragmentation={"form": "fgd"})
        held = job("held", gpus=1, run_time_ms=5000)
        base = knapsack(policy)
        round_ = instance(
            1, [held, *base.jobs], policy=policy, running=[running(held, [("n0", [0])], expected_end_ms=5000)]
        )
        plan = checked(round_, solve(round_, time_limit_s=5))
        assert [stage.name for stage in plan.stages if stage.outcome == "failed"] == ["lookahead"]
        assert any(placement.job != "held" for placement in plan.placements)


class TestErrorsThatLeave:
    """Nothing but the documented exceptions leaves ``solve`` and ``Engine``."""

    @pytest.mark.parametrize(
        "place",
        ["solving.api.compile_problem", "solving.api.finish", "solving.greedy_rule.has_many_fractions"],
    )
    def test_outside_stages_it_is_an_internal_fault(self, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """Issue 16, A1: with the cause chained; before, it left as it was."""
        cause = KeyError("n7")
        monkeypatch.setattr(f"placeopt.{place}", failing(cause))
        with pytest.raises(InternalFault, match=r"solve: KeyError: 'n7'") as caught:
            solve(knapsack())
        assert caught.value.__cause__ is cause

    def test_the_resident_engine_too(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Every public method of it."""
        with Engine() as engine:
            engine.load(knapsack())
            plan = engine.place(["a"])
            cause = ZeroDivisionError("by 0")
            for name in ("live_cluster.LiveCluster.place_jobs", "live_cluster.LiveCluster.commit"):
                monkeypatch.setattr(f"placeopt.live_cluster.{name}", failing(cause))
            reports = ("update", "release", "undo", "fail_node", "set_policy", "adopt")
            for name in reports:
                monkeypatch.setattr(f"placeopt.live_cluster.host_reports.HostReports.{name}", failing(cause))
            calls: list[Callable[[], object]] = [
                lambda: engine.update(now_ms=1),
                lambda: engine.place(["a"]),
                lambda: engine.commit(plan),
                lambda: engine.release("a"),
                lambda: engine.undo("a"),
                lambda: engine.fail_node("n0"),
                lambda: engine.set_policy(Policy()),
                lambda: engine.adopt(plan.placements[0]),
            ]
            assert len(calls) == 2 + len(reports)
            for call in calls:
                with pytest.raises(InternalFault, match="ZeroDivisionError: by 0") as caught:
                    call()
                assert caught.value.__cause__ is cause

    @pytest.mark.parametrize("error", [LookupError("mine"), MemoryError("mine"), SolverFault("mine")])
    @pytest.mark.usefixtures("survived_faults")
    def test_the_callers_own_exception_is_not_touched(self, error: Exception) -> None:
        """What ``on_progress`` raises ends the call, though it is raised inside a stage."""

        def on_progress(_: Progress) -> None:
            raise error

        with Engine() as engine:
            with pytest.raises(type(error), match="mine") as caught:
                engine.solve(knapsack(), on_progress=on_progress)
            assert caught.value is error
            engine.load(knapsack())
            with pytest.raises(type(error), match="mine") as caught:
                engine.place(on_progress=on_progress)
            assert caught.value is error
