"""Stages believe nobody: what is worse, refused, late or false changes nothing but the record of the stage."""

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from helpers.brute_force import Enumeration
from helpers.small_rounds import random_round
from placeopt import BadInput, InternalFault, generate, solve
from placeopt.build import instance, job, running
from placeopt.check import Judgement, Referee
from placeopt.errors import OutOfTime
from placeopt.linear import LinearModel, ModelBuilder
from placeopt.model import Changes, Instance, Plan, Policy, Postpone, Slowdown, Weights
from placeopt.problem import Placement, compile_problem
from placeopt.solvers import Beside, Progress, Solution, SolveOptions, highs
from placeopt.solving import SolveParams, greedy_rule
from placeopt.solving.budget import Budget
from placeopt.solving.context import SolveContext
from placeopt.solving.finish import finish
from placeopt.solving.greedy_rule import GreedyRule
from placeopt.solving.incumbent import Accepted, NotBetter, Refused
from placeopt.solving.stage import Stage, run_stages
from placeopt.solving.stages import greedy
from placeopt.solving.stages.bound import Bound
from placeopt.solving.stages.cost_relaxation import CostRelaxationBound
from placeopt.solving.stages.exact import Exact
from placeopt.solving.stages.greedy import Greedy

NO_COST = Policy(weights=Weights(communication=0, interference=0, fragmentation=0))


def small() -> Instance:
    """Four jobs of two GPUs worth 1, 2, 3, 4, and one node of four GPUs."""
    return instance(1, [job(name, gpus=2, value=i + 1) for i, name in enumerate("abcd")], policy=NO_COST)


def started(of: Instance, seconds: float = 60.0) -> SolveContext:
    now = time.monotonic()
    budget = Budget(SolveParams(time_limit_s=seconds), started=now, deadline=now + seconds)
    return SolveContext(compile_problem(of), budget, greedy=GreedyRule("stranding", "fcfs"))


def run(context: SolveContext, *stages: Stage, solve: Callable[..., Solution] | None = None) -> None:
    """Run stages as a method does, by a solver of the test's own."""
    context.solvers = SimpleNamespace(solve=solve)  # type: ignore[assignment]  # all that stages call
    run_stages(context, stages)


def answering(solution: Solution) -> Callable[..., Solution]:
    """A solver that always says the same."""

    def solve(
        solver: str, model: LinearModel, options: SolveOptions, on_progress: Callable[[Progress], None] | None = None
    ) -> Solution:
        del solver, model, options, on_progress
        return solution

    return solve


def by_highs(
    solver: str, model: LinearModel, options: SolveOptions, on_progress: Callable[[Progress], None] | None = None
) -> Solution:
    """HiGHS, in this process."""
    del solver, on_progress
    return highs.solve(model, options)


class TestOffer:
    """The only way in for an allocation."""

    def test_only_what_is_better_is_taken(self) -> None:
        """c alone, then a alone (worse), then c and d."""
        context = started(small())
        nothing, d = None, Placement(3, (0,), (2, 3))
        c, a = Placement(2, (0,), (0, 1)), Placement(0, (0,), (0, 1))
        assert context.incumbent.offer((nothing, nothing, c, nothing)) == Accepted()
        assert context.incumbent.offer((a, nothing, nothing, nothing)) == NotBetter()
        assert context.incumbent.value == 3
        context.incumbent.offer((nothing, nothing, c, d))
        assert context.incumbent.value == 7

    def test_what_the_referee_refuses_is_not_taken(self) -> None:
        """Two jobs on the same GPUs are worth more, and not allowed."""
        context = started(small())
        c, d = Placement(2, (0,), (0, 1)), Placement(3, (0,), (1, 2))
        refusal = context.incumbent.offer((None, None, c, d))
        assert isinstance(refusal, Refused)
        assert refusal.why.startswith("gpu_share")
        assert context.incumbent.value == 0

    def test_a_value_above_the_proven_bound_is_a_bug(self) -> None:
        """Then the bound is wrong, and nothing may be called optimal."""
        context = started(small())
        context.bounds.prove_value(5)
        with pytest.raises(InternalFault, match="above the proven bound 5"):
            context.incumbent.offer((None, None, Placement(2, (0,), (0, 1)), Placement(3, (0,), (2, 3))))

    def test_gaps_of_jobs_that_fell_short_are_filled(self) -> None:
        """``calm`` is slowed by a third beside ``loud``: it leaves, and greedy puts it on the other node."""
        jobs = [job("calm", profile="calm", utility_min_thousandths=300), job("loud", profile="loud")]
        policy = NO_COST.model_copy(update={"postpone": Postpone(rule="utility"), "share_mode": "exclusive"})
        noise = (Slowdown(profile="calm", beside="loud", node_thousandths=333),)
        context = started(instance(2, jobs, policy=policy, slowdowns=noise))
        assert context.incumbent.offer((Placement(0, (0,), (0,)), Placement(1, (0,), (1,)))) == Accepted()
        assert [held is not None and held.nodes for held in context.incumbent.allocation] == [(1,), (0,)]


class TestBegin:
    """The running jobs, which every stage falls back on."""

    def test_they_are_read_with_the_plan_that_holds_them_all(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Once for both where they may not be changed; by themselves where they may, or where nothing else is there."""
        read: list[int] = []

        class Noted(Referee):
            def judge(self, plan: Plan) -> Judgement:
                read.append(len(plan.placements))
                return super().judge(plan)

        monkeypatch.setattr("placeopt.solving.context.Referee", Noted)
        held, free = job("held"), job("free")
        for preemptible, jobs, expected in (
            (False, [held, free], [2]),
            (True, [held, free], [1, 2]),
            (False, [held], [1]),
        ):
            read.clear()
            policy = NO_COST.model_copy(update={"changes": Changes(preemptions_max=1)})
            runs = [running(held, [("n0", [0])], preemptible=preemptible)]
            solve(instance(1, jobs, running=runs, policy=policy), method="stranding")
            assert read == expected

    @pytest.mark.parametrize("waiting", [0, 1])
    def test_where_they_break_a_rule_the_input_is_at_fault(self, waiting: int) -> None:
        """Also where greedy's plan, which holds them too, is read first."""
        a, b = job("a"), job("b")
        runs = [running(a, [("n0", [0])]), running(b, [("n0", [0])])]
        free = [job(f"free{i}") for i in range(waiting)]
        with pytest.raises(BadInput, match=r"running placements: gpu_share: node 'n0' gpu 0"):
            solve(instance(1, [a, b, *free], running=runs, policy=NO_COST), method="stranding")


class TestBounds:
    """Bounds move one way only."""

    def test_a_worse_bound_changes_nothing(self) -> None:
        """Nor does an unknown one."""
        context = started(small())
        assert context.bounds.value == 10
        for bound in (12, None, 8, 9):
            context.bounds.prove_value(bound, ("something",))
        assert context.bounds.value == 8
        for bound in (3, None, 1):
            context.bounds.prove_cost(bound)
        assert context.bounds.cost == 3

    def test_the_cost_is_bounded_while_the_value_is_open(self) -> None:
        """No plan worth as much as this one, or more, costs less; whatever plan the bound was proven at."""
        bounded = 0
        for number in range(60):
            round_ = random_round(np.random.default_rng(53_000 + number))
            context = started(round_)
            if context.problem.changeable or not context.weighted:
                continue
            run(context, CostRelaxationBound(), Greedy(), CostRelaxationBound(), solve=by_highs)
            everything = Enumeration(context.problem)
            rows, _ = everything.rows(context.incumbent.value)
            assert context.bounds.cost is not None
            assert context.bounds.cost <= everything.costs(rows).min(), number
            plan = finish(context, None, 0.0, 0.0)
            assert plan.levels[1].bound == context.bounds.cost
            bounded += context.bounds.cost > 0 and not context.value_proven
        assert bounded >= 3

    def test_the_weightiest_limit_is_named(self) -> None:
        """The user's word beats the clock, the clock beats size."""
        context = started(small())
        for limit in ("size", "time", "size"):
            context.budget.note_limit(limit)  # type: ignore[arg-type]  # a word of PlanLimit
        assert context.budget.limit == "time"
        context.budget.note_limit("user")
        assert context.budget.stopped()

    def test_keeping_time_back_sets_the_deadline(self) -> None:
        """What the engine needs at the end is guessed first, then measured: it may be less."""
        context = started(small(), 10.0)
        first = context.budget.started
        for seconds, left in ((2.0, 8.0), (1.0, 9.0), (9.0, 1.0)):
            context.budget.reserve(seconds)
            assert context.budget.deadline == pytest.approx(first + left)


class TestFalseAnswers:
    """What a solver says is checked or recorded, never believed."""

    def test_infeasible_does_not_override_the_plan(self) -> None:
        """A round of optional jobs never is."""
        context = started(small())
        context.greedy = GreedyRule("stranding", "value_density")
        run(context, Greedy(), Exact("counts", "highs"), solve=answering(Solution("infeasible", bound=0)))
        assert context.incumbent.value == 7
        assert context.bounds.value == 10
        assert (context.stages[-1].outcome, "infeasible" in context.stages[-1].detail) == ("failed", True)

    def test_values_that_do_not_add_up_are_thrown_away(self) -> None:
        """With them goes the bound of the same answer."""
        context = started(small())
        run(context, Greedy())
        before = context.incumbent.allocation

        def solve(solver: str, model: LinearModel, options: SolveOptions, on_progress: object = None) -> Solution:
            return Solution("optimal", values=np.ones(model.num_variables, dtype=np.int64), objective=10, bound=4)

        run(context, Exact("assignment", "cpsat"), solve=solve)
        assert context.incumbent.allocation is before
        assert context.bounds.value == 10
        assert context.stages[-1].outcome == "failed"

    def test_a_solver_that_died_is_named_by_both_stages(self) -> None:
        """Neither calls that a proof."""
        died = Solution("error", bound=10, message="the worker process ended with signal 9 (SIGKILL)")
        context = started(small())
        run(context, Greedy(), Bound(), Exact("counts", "highs"), solve=answering(died))
        assert [stage.outcome for stage in context.stages] == ["improved", "failed", "failed"]
        assert all("signal 9" in stage.detail for stage in context.stages[1:])

    def test_a_solver_that_died_after_its_hint_is_named_too(self) -> None:
        """The hint survives as a solution, so this is no error to the caller."""
        survived = Solution("feasible", values=None, bound=10, message="the worker process ended with signal 9")
        context = started(small())
        run(context, Greedy(), Exact("counts", "highs"), solve=answering(survived))
        assert (context.stages[-1].outcome, "signal 9" in context.stages[-1].detail) == ("kept", True)


class TestTime:
    """Building a model is not cut from outside, so it asks the clock itself."""

    def test_the_builder_stops_at_its_deadline(self) -> None:
        """At the next call."""
        builder = ModelBuilder(time.monotonic() - 1)
        with pytest.raises(OutOfTime, match="no time left to build the model"):
            builder.add_variables(0, 1, count=3)

    @pytest.mark.parametrize("stage", [Bound(), Exact("counts", "highs")], ids=lambda stage: stage.name)
    def test_a_stage_without_time_is_skipped_by_name(self, stage: Stage) -> None:
        """Where the deadline passes after it has begun. And the plan's limit is time; a later one does not begin."""
        context = started(small())
        run(context, Greedy())
        context.budget.deadline = time.monotonic() - 1
        (report,) = stage.run(context)
        assert (report.outcome, context.budget.limit) == ("skipped", "time")
        assert "no time left" in report.detail
        assert stage.skip_reason(context) == "stopped by time"

    def test_greedy_without_time_leaves_the_running_jobs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """They are a valid plan by themselves, and the others are not reached."""
        monkeypatch.setattr(greedy, "LEAST_S", 0.0)
        monkeypatch.setattr(greedy_rule, "GRACE", 0.0)
        held, free = job("held", value=5), job("free")
        context = started(instance(1, [held, free], running=[running(held, [("n0", [0])])], policy=NO_COST))
        context.budget.deadline = time.monotonic() - 1
        run(context, Greedy())
        assert context.incumbent.value == 5
        assert (context.handover.not_reached, context.budget.limit) == (frozenset({1}), "time")

    def test_greedy_begins_even_where_reading_took_all_the_time(self) -> None:
        """Who comes first is placed: a plan that is late by less than may be is worth more than none in time."""
        context = started(instance(1, [job("free")], policy=NO_COST))
        context.budget.deadline = time.monotonic() - 1
        run(context, Greedy())
        assert context.incumbent.allocation[0] is not None
        assert context.budget.stopped()


def test_the_relaxation_of_a_large_round_is_solved_beside_greedy(monkeypatch: pytest.MonkeyPatch) -> None:
    """It proves what it proves when solved afterwards, and a small round does without the thread."""
    context = generate("varied", jobs=60, nodes=12, gpus=4, seed=3)
    begun: list[str] = []

    class Noted(Beside):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            begun.append(arguments[1])
            super().__init__(*arguments, **named)

    monkeypatch.setattr("placeopt.solving.runners.Beside", Noted)
    bounds = []
    for least in (10**12, 1):
        monkeypatch.setattr("placeopt.solving.stages.bound.BESIDE_PRODUCT", least)
        plan = solve(context, method="stranding", threads=2, time_limit_s=60)
        bounds.append((plan.levels[0].bound, plan.facts))
    assert begun == ["highs"]
    assert bounds[0] == bounds[1]
