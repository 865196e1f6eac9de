"""A round from call to plan: what it promises about limits, arguments, news, interruption and its processes."""

import os
import re
import signal
import threading
from contextlib import suppress
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Literal
from unittest.mock import Mock

import pytest

from helpers.plans import NO_COSTS
from helpers.processes import eventually
from made_rounds import generate
from placeopt import BadInput, Engine, Instance, Interrupted, Policy, Progress, read_instance, solve, violations
from placeopt.build import instance, job, machine, running
from placeopt.model import Interference
from placeopt.solving import SolveOptions, SolveParams

pytestmark = pytest.mark.usefixtures("own_processes")
INSTANCES = Path(__file__).resolve().parents[2] / "instances"
EXACT = ("auto", "counts", "counts-cpsat", "assignment", "assignment-highs")
OPEN = "generated/uniform-50x16x8-s0.json.gz"
"""A round whose cost level no method proves within minutes."""


def stored(name: str) -> Instance:
    return read_instance(INSTANCES / name)


def knapsack(names: str = "abcd", gpus: int = 2, policy: Policy | None = None) -> Instance:
    """Jobs of ``gpus`` GPUs, worth 1, 2, 3, ..., on one node of 4."""
    jobs = [job(name, gpus=gpus, value=i + 1) for i, name in enumerate(names)]
    return instance(1, jobs, policy=policy or Policy(weights=NO_COSTS))


@pytest.mark.parametrize("method", EXACT)
@pytest.mark.parametrize(
    ("name", "value", "communication"), [("minsky-1", 4000, 4), ("dgx1-1", 8000, 28), ("dgx1-tour", 8000, 27)]
)
def test_optima_of_hand_made_rounds_are_proven(
    name: str, value: int, communication: int, method: str, engine: Engine
) -> None:
    """Worked out on paper in instances/hand/README.md: every exact route ends there, and says that it is proven."""
    plan = engine.solve(stored(f"hand/{name}.json"), method=method, time_limit_s=20)
    assert (plan.status, plan.limit, plan.gap) == ("optimal", "none", 0.0)
    assert plan.levels[0].objective == plan.levels[0].bound == value
    assert plan.levels[1].objective == plan.levels[1].bound
    assert plan.costs["communication"].raw == communication


@pytest.mark.parametrize("isolation", ["process", "thread"])
def test_a_call_without_an_engine_gives_the_same_proof(
    isolation: Literal["process", "thread"], capfd: pytest.CaptureFixture[str]
) -> None:
    """In threads for those who cannot start processes; nothing is printed, and signal handlers are left alone."""
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    for method in ("auto", "counts-cpsat"):
        plan = solve(stored("hand/dgx1-tour.json"), method=method, isolation=isolation, time_limit_s=20)
        assert (plan.status, plan.costs["communication"].raw) == ("optimal", 27)
    assert capfd.readouterr() == ("", "")
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_nothing_is_cut_short_where_all_is_proven(engine: Engine) -> None:
    """Two of four jobs fit: the two dearest, 4 + 3; one level, since no cost counts. No jobs are placed optimally."""
    plan = engine.solve(knapsack())
    assert [level.name for level in plan.levels] == ["value"]
    assert (plan.status, plan.levels[0].objective, plan.gap) == ("optimal", 7, 0.0)
    assert [p.job for p in plan.placements] == ["c", "d"]
    empty = engine.solve(instance(1))
    assert (empty.status, empty.levels[0].objective, empty.placements) == ("optimal", 0, ())


def test_the_time_limit_is_named(engine: Engine) -> None:
    """With a plan, a bound, and the time that the call took; a deterministic plan states no time."""
    plan = engine.solve(stored(OPEN), time_limit_s=0.5)
    assert (plan.status, plan.limit) == ("feasible", "time")
    assert plan.levels[0].bound is not None
    assert plan.seconds.total is not None
    timeless = engine.solve(stored(OPEN), method="stranding", deterministic=True)
    assert timeless.seconds.total is None
    assert all(stage.seconds is None for stage in timeless.stages)


def test_cancel_before_the_call_places_nothing_and_is_reported(engine: Engine) -> None:
    """Nothing was reached, so nothing else may be claimed of the jobs."""
    cancel = threading.Event()
    cancel.set()
    plan = engine.solve(knapsack(), cancel=cancel)
    assert (plan.limit, plan.placements) == ("user", ())
    assert {entry.reason for entry in plan.unplaced} == {"not_reached"}
    assert "stopped by user" in plan.unplaced[0].detail


def test_cancel_during_a_solve_ends_it(engine: Engine) -> None:
    """With the best plan and its bound; the limit of ten minutes would be named otherwise."""
    cancel = threading.Event()
    threading.Timer(0.4, cancel.set).start()
    plan = engine.solve(stored(OPEN), time_limit_s=600, cancel=cancel)
    assert (plan.status, plan.limit) == ("feasible", "user")
    assert plan.levels[0].bound is not None


def test_a_gap_that_is_reached_is_enough(engine: Engine) -> None:
    """A gap of 50 % is met long before ten minutes are over."""
    plan = engine.solve(stored("openb/openb-first-100.json.gz"), gap=0.5, time_limit_s=600)
    assert plan.limit == "none"
    assert plan.gap is not None
    assert plan.gap <= 0.5


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"method": "magic"}, "no method 'magic'; known: auto, counts"),
        ({"time_limit_s": 0}, "time_limit_s: 0, expected seconds above 0"),
        ({"time_limit_s": -1.0}, "time_limit_s: -1.0"),
        ({"time_limit_s": float("nan")}, "time_limit_s: nan"),
        ({"time_limit_s": float("inf")}, "time_limit_s: inf"),
        ({"gap": -0.1}, "gap: -0.1, expected a fraction"),
        ({"gap": 1}, "gap: 1"),
        ({"threads": 0}, "threads: 0, expected 1 or more"),
        ({"seed": -1}, "seed: -1, expected 0 to"),
        ({"time_limit": 3}, "time_limit: no such option; expected method, time_limit_s"),
        # a round of minutes would otherwise end with nothing but a failed stage
        ({"solver_options": {"mip_heuristic_efort": "0.2"}}, "HiGHS refuses option 'mip_heuristic_efort' = '0.2'"),
        ({"solver_options": {"mip_heuristic_effort": "much"}}, "HiGHS refuses option 'mip_heuristic_effort' = 'much'"),
        (
            {"method": "counts-cpsat", "solver_options": {"cp_model_presolv": "false"}},
            "CP-SAT refuses option 'cp_model_presolv' = 'false'",
        ),
        (
            {"method": "stranding", "solver_options": {"presolve": "off"}},
            "solver_options: method 'stranding' runs no exact solver",
        ),
    ],
)
def test_a_bad_argument_is_refused_with_what_is_expected(
    arguments: dict[str, object], words: str, engine: Engine
) -> None:
    for call in (solve, engine.solve):
        with pytest.raises(BadInput, match=re.escape(words)):
            call(knapsack(), **arguments)


def test_every_option_is_a_field_with_a_default() -> None:
    """The keywords of ``solve`` are those of `SolveParams`; callers pass on what they were given, None included."""
    assert list(SolveOptions.__annotations__) == [field.name for field in fields(SolveParams)]
    assert SolveParams.of({"threads": None, "solver_options": None, "method": None}) == SolveParams()
    assert SolveParams(seed=3).keywords() == {**SolveParams().keywords(), "seed": 3}


@pytest.mark.parametrize("waiting", [0, 1])
def test_running_jobs_that_share_a_gpu_they_may_not_share(waiting: int, engine: Engine) -> None:
    """What runs must be lawful to begin with, whether anything waits or not."""
    a, b = job("a"), job("b")
    held = [running(a, [("n0", [0])]), running(b, [("n0", [0])])]
    round_ = instance(1, [a, b, *(job(f"free{i}") for i in range(waiting))], running=held)
    with pytest.raises(BadInput, match=r"running placements: gpu_share: node 'n0' gpu 0"):
        engine.solve(round_, method="stranding")


def test_policy_argument_overrides_the_instance() -> None:
    """The plan carries the one that was used, and is judged by it."""
    round_ = instance(1, [job("a", gpu_milli=500), job("b", gpu_milli=500)], machines=[machine(gpus=1)])
    plan = solve(round_, policy=Policy(name="alone", share_mode="exclusive"), isolation="thread")
    assert (plan.policy.name, len(plan.placements)) == ("alone", 1)
    assert len(solve(round_, isolation="thread").placements) == 2


@pytest.mark.parametrize("name", ["openb/openb-first-100.json.gz", "generated/gangs-20x16x4-s1.json.gz"])
def test_news_rise_and_bounds_fall(name: str, engine: Engine) -> None:
    """The two never cross, and all of it comes in the caller's thread."""
    news: list[tuple[Progress, int]] = []
    plan = engine.solve(stored(name), time_limit_s=1, on_progress=lambda one: news.append((one, threading.get_ident())))
    assert {thread for _, thread in news} == {threading.get_ident()}
    assert news[-1][0].value == plan.levels[0].objective
    for (before, _), (after, _) in pairwise(news):
        assert after.seconds >= before.seconds
        assert after.value is not None
        assert after.value_bound is not None
        assert (before.value or 0) <= after.value <= after.value_bound <= (before.value_bound or after.value_bound)


def test_ctrl_c_between_stages_gives_the_plan_away(engine: Engine) -> None:
    """Here it comes out of the callback."""
    round_ = stored("generated/varied-50x16x4-s0.json.gz")
    with pytest.raises(Interrupted) as caught:
        engine.solve(round_, on_progress=Mock(side_effect=KeyboardInterrupt))
    assert isinstance(caught.value, KeyboardInterrupt)
    assert caught.value.plan.limit == "user"
    assert caught.value.plan.placements
    assert violations(round_, caught.value.plan) == []


def test_ctrl_c_ends_a_solve_and_gives_the_plan_away() -> None:
    """The solve ends, no other one begins, and the plan is the best so far."""
    round_ = stored(OPEN)
    timer = threading.Timer(0.6, os.kill, (os.getpid(), signal.SIGINT))
    with Engine() as engine:
        timer.start()
        with pytest.raises(Interrupted) as caught:
            engine.solve(round_, time_limit_s=600)
    assert violations(round_, caught.value.plan) == []


def test_one_process_serves_many_rounds() -> None:
    """And none is left when the engine is closed; a later round starts a new one."""
    with Engine() as engine:
        engine.solve(knapsack("abc", gpus=3))
        pid = engine.solver_pid
        engine.solve(knapsack("abcd", gpus=3))
        assert engine.solver_pid == pid
    assert engine.solver_pid is None
    assert engine.solve(knapsack()).status == "optimal"
    engine.close()


def test_without_a_solver_process_heuristics_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Greedy takes the first job, a search, which does without prices too, the best; the stages tell the cause."""
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    plan = solve(knapsack("abcde", gpus=3, policy=Policy(order="fcfs", weights=NO_COSTS)))
    assert [p.job for p in plan.placements] == ["e"]
    assert any("could not start" in stage.detail for stage in plan.stages)


def test_a_solver_process_that_ended_is_not_named() -> None:
    """Its number may be another program's by then."""
    with Engine() as engine:
        engine.start()
        (pid,) = engine.solver_pids
        os.kill(pid, signal.SIGKILL)
        assert eventually(lambda: (engine.solver_pid, engine.solver_pids) == (None, ()), 60)


@pytest.mark.parametrize("method", ["counts", "counts-cpsat", "auto"])
def test_a_stage_whose_solvers_die_is_tried_again_by_another(method: str) -> None:
    """Once, as a step of its own; here solvers are killed from its first news on until that begins."""
    round_ = stored("generated/gangs-20x16x4-s1.json.gz")
    cancel, reported = threading.Event(), threading.Event()
    with Engine() as engine:

        def kill() -> None:
            while not cancel.wait(0.05) and reported.wait(30):
                for pid in engine.solver_pids:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)

        def on_progress(news: Progress) -> None:
            if news.stage == "counts-cost":
                reported.set()
            elif news.stage == "counts-cost-again":
                cancel.set()

        killer = threading.Thread(target=kill)
        killer.start()
        plan = engine.solve(round_, method=method, time_limit_s=30, threads=2, on_progress=on_progress, cancel=cancel)
        cancel.set()
        reported.set()
        killer.join()
    details = {stage.name: stage.detail for stage in plan.stages}
    assert "signal 9" in details["counts-cost"]
    assert details["counts-cost-again"].startswith("cpsat" if method == "counts" else "highs")
    assert violations(round_, plan) == []


ONE_SOLVER = {"threads": 2, "solver_options": {"mip_heuristic_effort": "0.1"}}


@pytest.mark.parametrize(
    ("arguments", "processes"),
    [({"threads": 2}, 2), ({"threads": 1}, 1), (ONE_SOLVER, 1), ({"threads": 2, "deterministic": True}, 1)],
)
def test_two_solvers_race_in_processes_of_their_own(arguments: dict[str, object], processes: int) -> None:
    """With one thread, in deterministic mode, or with options meant for one solver there is one."""
    round_ = generate("uniform", jobs=6, nodes=2, gpus=4, seed=0)
    with Engine(Policy(interference=Interference(model="worst"))) as engine:  # which is left to exact models
        engine.solve(round_, time_limit_s=60, **arguments)
        assert len(engine.solver_pids) == processes
