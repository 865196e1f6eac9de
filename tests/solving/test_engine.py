"""A round from call to plan: what it promises about value, bound, limits, reasons, errors and repeatability."""

import os
import signal
import threading
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from helpers.small_rounds import random_round
from placeopt import (
    BadInput,
    Engine,
    Instance,
    Interrupted,
    Plan,
    Policy,
    Progress,
    audit,
    read_instance,
    solve,
    violations,
)
from placeopt.build import instance, job, machine, node, option, placement, running
from placeopt.formats.documents import dumps
from placeopt.model import Cost, Interference, Queue, Quota, Weights
from placeopt.solving import METHODS, budget, sizes
from placeopt.solving.stages import exact

INSTANCES = Path(__file__).resolve().parents[2] / "instances"
NO_COST = Weights(communication=0, interference=0, fragmentation=0)
EXACT = ("auto", "counts", "counts-cpsat", "assignment", "assignment-highs")


def stored(name: str) -> Instance:
    return read_instance(INSTANCES / name)


def reason_of(plan: Plan, name: str) -> tuple[str, str]:
    return next((entry.reason, entry.detail) for entry in plan.unplaced if entry.job == name)


def knapsack(names: str = "abcd", gpus: int = 2, policy: Policy | None = None) -> Instance:
    """Jobs of ``gpus`` GPUs, worth 1, 2, 3, ..., on one node of 4."""
    jobs = [job(name, gpus=gpus, value=i + 1) for i, name in enumerate(names)]
    return instance(1, jobs, policy=policy or Policy(weights=NO_COST))


class TestHandRounds:
    """Optima worked out on paper, in instances/hand/README.md."""

    @pytest.mark.parametrize("method", EXACT)
    @pytest.mark.parametrize(
        ("name", "value", "communication"), [("minsky-1", 4000, 4), ("dgx1-1", 8000, 28), ("dgx1-tour", 8000, 27)]
    )
    def test_known_optimum_is_proven(self, name: str, value: int, communication: int, method: str) -> None:
        """Every exact route ends at the same value and the same cost, and says that it is proven."""
        plan = solve(stored(f"hand/{name}.json"), method=method, time_limit_s=20)
        assert (plan.status, plan.limit, plan.gap) == ("optimal", "none", 0.0)
        assert plan.levels[0].objective == plan.levels[0].bound == value
        assert plan.levels[1].objective == plan.levels[1].bound
        assert plan.costs["communication"].raw == communication


class TestStatusAndLimit:
    """Status says what is proven, limit what cut it short."""

    def test_value_alone_is_optimal_without_costs(self) -> None:
        """Two of four jobs fit: the two dearest, 4 + 3; one level, since no cost counts."""
        plan = solve(knapsack())
        assert [level.name for level in plan.levels] == ["value"]
        assert (plan.status, plan.levels[0].objective, plan.gap) == ("optimal", 7, 0.0)
        assert [p.job for p in plan.placements] == ["c", "d"]

    def test_time_limit_is_named_and_kept(self) -> None:
        """This cost level needs far longer than half a second."""
        began = time.monotonic()
        plan = solve(stored("generated/uniform-50x16x8-s0.json.gz"), time_limit_s=0.5)
        assert time.monotonic() - began < 6.0
        assert (plan.status, plan.limit) == ("feasible", "time")
        assert plan.seconds.total is not None
        assert plan.seconds.total < 5.0

    def test_too_large_for_an_exact_stage_is_size(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The stage is skipped by name, and the bound of the relaxation stands."""
        monkeypatch.setattr(sizes, "SIZES", replace(sizes.SIZES, exact_columns=10))
        plan = solve(stored("generated/varied-50x16x4-s0.json.gz"), method="counts")
        assert plan.limit == "size"
        assert [stage.outcome for stage in plan.stages if stage.name.startswith("counts")] == ["skipped"]

    def test_cancel_before_the_call_places_nothing_and_is_reported(self) -> None:
        """Nothing was reached, so nothing else may be claimed of the jobs."""
        cancel = threading.Event()
        cancel.set()
        plan = solve(knapsack(), cancel=cancel)
        assert plan.limit == "user"
        assert not plan.placements
        assert {entry.reason for entry in plan.unplaced} == {"not_reached"}
        assert "stopped by user" in plan.unplaced[0].detail

    def test_cancel_during_a_solve_ends_it(self) -> None:
        """Well before the limit, with the best plan and its bound."""
        cancel = threading.Event()
        threading.Timer(0.4, cancel.set).start()
        began = time.monotonic()
        plan = solve(stored("generated/uniform-50x16x8-s0.json.gz"), time_limit_s=20, cancel=cancel)
        assert time.monotonic() - began < 5
        assert (plan.status, plan.limit) == ("feasible", "user")
        assert plan.levels[0].bound is not None

    def test_gap_that_is_reached_skips_what_follows(self) -> None:
        """A gap of 50 % is met by greedy and the relaxation, so no exact stage runs; at 0 one does."""
        generous, strict = (solve(stored("openb/openb-first-100.json.gz"), gap=gap, time_limit_s=1) for gap in (0.5, 0))
        assert generous.gap is not None
        assert generous.gap <= 0.5
        assert [stage.name for stage in generous.stages] == ["heuristic", "bound"]
        names = [stage.name for stage in strict.stages if stage.name not in ("refills", "multi-start")]
        assert names[:4] == ["heuristic", "bound", "fillings", "counts-value"]

    @pytest.mark.parametrize("method", METHODS)
    def test_every_method_gives_a_checked_plan_and_a_bound(self, method: str) -> None:
        """Even a heuristic's plan says how far from the best it may be."""
        round_ = stored("generated/uniform-20x4x4-s0.json.gz")
        plan = solve(round_, method=method, time_limit_s=1)
        assert violations(round_, plan) == []
        assert audit(round_, plan) == []
        assert plan.levels[0].bound is not None

    @pytest.mark.parametrize("method", METHODS)
    def test_every_method_copes_with_a_cluster_without_gpus(self, method: str) -> None:
        """Some of the jobs, which may do without, find room; a campaign found this round."""
        round_ = random_round(np.random.default_rng(61827), changes=False)
        assert not any(machine.gpus for machine in round_.cluster.machines)
        plan = solve(round_, method=method, time_limit_s=1)
        assert violations(round_, plan) == []
        assert audit(round_, plan) == []
        assert plan.placements

    def test_a_round_without_jobs_is_optimal(self) -> None:
        """Nothing to do is done."""
        plan = solve(instance(1))
        assert (plan.status, plan.levels[0].objective, plan.placements) == ("optimal", 0, ())


class TestArguments:
    """Refused at the door, with what was expected."""

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
        ],
    )
    def test_bad_argument(self, arguments: dict[str, object], words: str) -> None:
        """BadInput, and nothing was started."""
        with pytest.raises(BadInput, match=words.replace("(", r"\(")):
            solve(knapsack(), **arguments)  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("method", "options", "words"),
        [
            ("auto", {"mip_heuristic_efort": "0.2"}, "HiGHS refuses option 'mip_heuristic_efort' = '0.2'"),
            ("auto", {"mip_heuristic_effort": "much"}, "HiGHS refuses option 'mip_heuristic_effort' = 'much'"),
            ("counts-cpsat", {"cp_model_presolv": "false"}, "CP-SAT refuses option 'cp_model_presolv' = 'false'"),
            ("stranding", {"presolve": "off"}, "solver_options: method 'stranding' runs no exact solver"),
        ],
    )
    def test_unknown_solver_option(self, method: str, options: dict[str, str], words: str) -> None:
        """A round of minutes would otherwise end with nothing but a failed stage."""
        with Engine() as engine, pytest.raises(BadInput, match=words):
            engine.solve(knapsack(), method=method, solver_options=options)

    def test_running_jobs_that_share_a_gpu_they_may_not_share(self) -> None:
        """Every stage falls back on the running jobs as they are, so what runs must be lawful to begin with."""
        a, b = job("a"), job("b")
        round_ = instance(1, [a, b], running=[running(a, [("n0", [0])]), running(b, [("n0", [0])])])
        with pytest.raises(BadInput, match=r"running placements: .*gpu_share"):
            solve(round_)

    def test_policy_argument_overrides_the_instance(self) -> None:
        """The plan carries the one that was used, and is judged by it."""
        round_ = instance(1, [job("a", gpu_milli=500), job("b", gpu_milli=500)], machines=[machine(gpus=1)])
        plan = solve(round_, policy=Policy(name="alone", share_mode="exclusive"))
        assert plan.policy.name == "alone"
        assert len(plan.placements) == 1
        assert len(solve(round_).placements) == 2


@pytest.mark.parametrize(("number", "processes"), [(0, 1), (2, 2)])
def test_a_second_solver_loads_only_for_a_race(number: int, processes: int) -> None:
    """Branch and price proves the first round; the second is left to a race of exact models."""
    with Engine() as engine:
        plan = engine.solve(stored(f"generated/uniform-20x4x4-s{number}.json.gz"), threads=2, time_limit_s=60)
        assert plan.status == "optimal"
        assert len(engine.solver_pids) == processes


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Let calls begin an hour from now by their own clock: none ends for want of time, however busy the machine is.

    Work in deterministic mode follows the limit that is stated, not the clock.
    """
    later = SimpleNamespace(monotonic=lambda: time.monotonic() + 3600)
    monkeypatch.setattr("placeopt.solving.api.time", later)


class TestDeterministic:
    """The same bytes in give the same bytes out."""

    @pytest.mark.parametrize("method", ["auto", "counts-cpsat", "stranding"])
    @pytest.mark.parametrize("name", ["hand/dgx1-1.json", "generated/gangs-20x16x4-s1.json.gz"])
    def test_two_calls_give_equal_plans(self, name: str, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """Byte for byte, with timings null; the second round is cut by work, long before the clock."""
        monkeypatch.setattr(exact, "WORK_PER_SECOND", 0.01)
        first, second = (
            dumps(solve(stored(name), method=method, deterministic=True, seed=7, time_limit_s=30)) for _ in range(2)
        )
        assert first == second
        assert b"stopped by time" not in first
        plan = solve(stored(name), method="stranding", deterministic=True)
        assert plan.seconds.total is None
        assert all(stage.seconds is None for stage in plan.stages)

    @pytest.mark.usefixtures("unhurried")
    def test_a_stage_for_which_no_time_is_left_makes_it_a_limit_of_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Exact stages are ended by work; whether the search after them begins is up to the clock."""
        monkeypatch.setattr(exact, "WORK_PER_SECOND", 0.01)
        of = stored("generated/varied-50x16x4-s0.json.gz")
        whole = solve(of, deterministic=True, time_limit_s=3)
        monkeypatch.setattr(budget, "TRY_AGAIN_S", 10**6)
        cut = solve(of, deterministic=True, time_limit_s=3)
        assert len(cut.stages) < len(whole.stages)
        assert (whole.limit, cut.limit) == ("work", "time")


class TestProgress:
    """News are monotone and in the caller's thread."""

    @pytest.mark.parametrize("name", ["openb/openb-first-100.json.gz", "generated/gangs-20x16x4-s1.json.gz"])
    def test_value_rises_and_bound_falls(self, name: str) -> None:
        """And the two never cross."""
        news: list[Progress] = []
        threads: set[int] = set()

        def on_progress(progress: Progress) -> None:
            news.append(progress)
            threads.add(threading.get_ident())

        plan = solve(stored(name), time_limit_s=1, on_progress=on_progress)
        assert threads == {threading.get_ident()}
        assert news[-1].value == plan.levels[0].objective
        for before, after in pairwise(news):
            assert after.seconds >= before.seconds
            assert after.value is not None
            assert after.value_bound is not None
            assert after.value >= (before.value or 0)
            assert after.value_bound <= (before.value_bound or after.value_bound)
            assert after.value <= after.value_bound

    def test_what_the_callback_raises_leaves_the_call(self) -> None:
        """And the engine is as good as before."""

        def on_progress(_: Progress) -> None:
            raise LookupError("mine")

        with Engine() as engine:
            with pytest.raises(LookupError, match="mine"):
                engine.solve(knapsack(), on_progress=on_progress)
            assert engine.solve(knapsack()).status == "optimal"


class TestInterrupt:
    """Ctrl-C gives the plan away rather than throwing it away."""

    def test_between_stages(self) -> None:
        """Here it comes out of the callback."""

        def on_progress(_: Progress) -> None:
            raise KeyboardInterrupt

        round_ = stored("generated/varied-50x16x4-s0.json.gz")
        with pytest.raises(Interrupted) as caught:
            solve(round_, on_progress=on_progress)
        assert isinstance(caught.value, KeyboardInterrupt)
        assert caught.value.plan.limit == "user"
        assert caught.value.plan.placements
        assert violations(round_, caught.value.plan) == []

    def test_while_a_solver_runs(self) -> None:
        """The solve ends, no other one begins, and the plan is the best so far."""
        round_ = stored("generated/uniform-50x16x8-s0.json.gz")
        timer = threading.Timer(0.6, os.kill, (os.getpid(), signal.SIGINT))
        began = time.monotonic()
        with Engine() as engine:
            timer.start()
            with pytest.raises(Interrupted) as caught:
                engine.solve(round_, time_limit_s=20)
        assert time.monotonic() - began < 5
        assert violations(round_, caught.value.plan) == []


class TestEngine:
    """A resident engine."""

    def test_one_process_serves_many_rounds(self) -> None:
        """And none is left when the engine is closed; a later round starts a new one."""
        with Engine() as engine:
            engine.solve(knapsack("abc", gpus=3))
            pid = engine.solver_pid
            engine.solve(knapsack("abcd", gpus=3))
            assert engine.solver_pid == pid
        assert engine.solver_pid is None
        assert engine.solve(knapsack()).status == "optimal"
        engine.close()

    def test_thread_isolation_gives_the_same_proof(self) -> None:
        """For those who cannot start processes."""
        with Engine(isolation="thread") as engine:
            plan = engine.solve(stored("hand/dgx1-tour.json"), time_limit_s=20)
            assert engine.solver_pid is None
        assert plan.status == "optimal"

    def test_without_a_solver_process_heuristics_answer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Greedy takes the first job, a search, which does without prices too, the best; the stages tell the cause."""
        monkeypatch.setattr("sys.executable", "/nowhere/python")
        plan = solve(knapsack("abcde", gpus=3, policy=Policy(order="fcfs", weights=NO_COST)))
        assert [p.job for p in plan.placements] == ["e"]
        assert any("could not start" in stage.detail for stage in plan.stages)

    @pytest.mark.parametrize("method", ["counts", "counts-cpsat", "auto"])
    def test_a_stage_whose_solvers_die_is_tried_again_by_another(self, method: str) -> None:
        """Once, as a stage of its own; here every solver of the first attempt is killed as soon as it reports."""
        round_ = stored("generated/gangs-20x16x4-s1.json.gz")
        killed: list[int] = []
        with Engine() as engine:

            def on_progress(news: Progress) -> None:
                if news.stage == "counts-cost" and not killed:
                    killed.extend(engine.solver_pids)
                    for pid in killed:
                        os.kill(pid, signal.SIGKILL)

            plan = engine.solve(round_, method=method, time_limit_s=6, threads=2, on_progress=on_progress)
        details = {stage.name: stage.detail for stage in plan.stages}
        assert "signal 9" in details["counts-cost"]
        assert details["counts-cost-again"].startswith("cpsat" if method == "counts" else "highs")
        assert violations(round_, plan) == []
        assert plan.limit in ("time", "none")

    def test_two_solvers_race_in_processes_of_their_own(self) -> None:
        """With one thread, in deterministic mode, or with options meant for one solver there is one."""
        round_ = stored("generated/uniform-20x4x4-s0.json.gz")
        for arguments, detail in (
            ({"threads": 2}, "race, "),
            ({"threads": 1}, "highs, "),
            ({"threads": 2, "solver_options": {"mip_heuristic_effort": "0.1"}}, "highs, "),
            ({"threads": 2, "deterministic": True}, "cpsat, "),
        ):
            with Engine(Policy(interference=Interference(model="worst"))) as engine:  # not for arrangements
                plan = engine.solve(round_, time_limit_s=2, **arguments)  # type: ignore[arg-type]
                assert len(engine.solver_pids) == 1 + (detail == "race, ")
            details = [stage.detail for stage in plan.stages if stage.name.startswith("counts")]
            assert details
            assert all(text.startswith(detail) for text in details), details

    def test_it_prints_nothing(self, capfd: pytest.CaptureFixture[str]) -> None:
        """A library does not print, nor do the solvers under it, whatever the route."""
        for isolation in ("process", "thread"):
            for method in ("auto", "counts-cpsat"):
                solve(stored("hand/dgx1-1.json"), method=method, isolation=isolation, time_limit_s=20)  # type: ignore[arg-type]
        assert capfd.readouterr() == ("", "")

    def test_signal_handlers_are_left_alone(self) -> None:
        """Solvers like to take SIGINT over."""
        before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
        for isolation in ("process", "thread"):
            solve(knapsack("abcde", gpus=3), method="counts-cpsat", isolation=isolation)  # type: ignore[arg-type]
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


class TestReasons:
    """Why a job waits, in words that are true."""

    def test_conflict_names_what_is_missing(self) -> None:
        """No node has eight GPUs."""
        reason, detail = reason_of(solve(instance(1, [job("big", gpus=8)])), "big")
        assert reason == "conflict"
        assert "no node offers 8 GPUs" in detail

    def test_each_option_is_named_by_its_own_need(self) -> None:
        """With the model that it asks for; a whole round and a decision for one job say the same."""
        wide, other = option(id="wide", gpus=8), option(id="other", gpus=1, gpu_models=("H100",), gpu_memory_mib=10)
        of = instance(1, [job("picky", options=(wide, other))])
        reason, detail = reason_of(solve(of), "picky")
        assert reason == "conflict"
        assert "'wide': no node offers 8 GPUs even" in detail
        assert "'other': no node offers 1 GPU of model H100, 10 MiB of GPU memory even" in detail
        with Engine() as engine:
            engine.load(of)
            assert reason_of(engine.place(["picky"]), "picky") == (reason, detail)

    def test_conflict_with_what_runs(self) -> None:
        """Three of four GPUs are held by a job that stays."""
        held, wide = job("held", gpus=3), job("wide", gpus=2)
        plan = solve(instance(1, [held, wide], running=[running(held, [("n0", [0, 1, 2])])]))
        reason, detail = reason_of(plan, "wide")
        assert reason == "conflict"
        assert "0 of 1 needed places free beside the running jobs" in detail

    def test_outvoted_by_the_dearer(self) -> None:
        """It would fit alone."""
        reason, detail = reason_of(solve(knapsack("ab", gpus=3)), "a")
        assert reason == "outvoted"
        assert "fits alone, but other jobs of the plan hold the room" in detail

    def test_outvoted_by_its_own_worth(self) -> None:
        """Placing it would not raise the value."""
        reason, detail = reason_of(solve(instance(1, [job("idle", value=0)], policy=Policy(weights=NO_COST))), "idle")
        assert reason == "outvoted"
        assert "worth nothing" in detail

    def test_policy_of_a_full_queue(self) -> None:
        """The quota of one GPU is held; the node has room."""
        policy = Policy(queues=(Queue(id="q", quota=Quota(gpu_milli=1000)),))
        plan = solve(instance(1, [job("a", queue="q", value=2), job("b", queue="q")], policy=policy))
        reason, detail = reason_of(plan, "b")
        assert reason == "policy"
        assert "queue 'q' may hold no more than 0 GPU-milli" in detail

    def test_policy_of_too_little_utility(self) -> None:
        """The job would rather wait."""
        poor = job("poor", options=(option(utility_thousandths=300),), utility_min_thousandths=500)
        reason, detail = reason_of(solve(instance(1, [poor])), "poor")
        assert reason == "policy"
        assert "below the job's minimum" in detail

    def test_policy_of_a_strict_queue(self) -> None:
        """The second job would fit, but may not overtake the first."""
        jobs = [job("first", gpus=3), job("second", gpus=3, arrival_ms=1), job("third", arrival_ms=2)]
        plan = solve(instance(1, jobs), method="fcfs-strict")
        assert [p.job for p in plan.placements] == ["first"]
        assert reason_of(plan, "second")[0] == "outvoted"
        reason, detail = reason_of(plan, "third")
        assert reason == "policy"
        assert "queue is strict" in detail

    def test_every_job_stands_once(self) -> None:
        """In placements or among the waiting."""
        round_ = stored("generated/gangs-20x16x4-s1.json.gz")
        plan = solve(round_, time_limit_s=1)
        names = [p.job for p in plan.placements] + [entry.job for entry in plan.unplaced]
        assert sorted(names) == sorted(j.id for j in round_.jobs)
        assert all(entry.detail for entry in plan.unplaced)


class TestAudit:
    """A plan that states something wrong of itself is caught."""

    def test_every_figure_counts(self) -> None:
        """One figure changed at a time, on a plan that passes untouched."""
        round_ = stored("hand/dgx1-tour.json")
        plan = solve(round_, time_limit_s=20)
        assert audit(round_, plan) == []
        value, cost = plan.levels
        raw = plan.costs["communication"]

        def tampered(**fields: object) -> list[str]:
            return audit(round_, plan.model_copy(update=fields))

        def level(which: int, **fields: object) -> list[str]:
            levels = [value, cost]
            levels[which] = levels[which].model_copy(update=fields)
            return tampered(levels=tuple(levels))

        assert "value is stated as 8001" in level(0, objective=8001)[0]
        assert "cost is stated as 0" in level(1, objective=0)[0]
        assert any("wrong side" in found for found in level(0, bound=7999))
        assert any("wrong side" in found for found in level(1, bound=cost.objective + 1))
        assert any("sense" in found for found in level(0, sense="min"))
        assert "levels" in tampered(levels=(value,))[0]
        assert "levels" in tampered(levels=(value, value, cost))[0]
        for wrong in ({"raw": raw.raw + 1}, {"weight": raw.weight + 1}, {"worst": raw.worst + 1}):
            costs = {"communication": raw.model_copy(update=wrong)}
            assert "communication should be" in tampered(costs=costs)[0]
        assert "communication should be" in tampered(costs={})[0]
        extra = {**plan.costs, "horus": Cost(raw=0, weight=1, worst=1, unit="thousandths")}
        assert "do not count" in tampered(costs=extra)[0]
        assert "gap" in tampered(gap=0.1)[0]
        assert "gap" in tampered(gap=None)[0]
        assert "status" in tampered(status="feasible")[0]
        assert any("status" in found for found in level(0, bound=8001))

    def test_a_placement_moved_behind_its_back(self) -> None:
        """The costs belong to another place then."""
        pair = job("pair", gpus=2, communication={"weight": 1})
        machines = [machine(gpu_distance_matrix=((0, 1, 9, 9), (1, 0, 9, 9), (9, 9, 0, 1), (9, 9, 1, 0)))]
        policy = Policy(weights=Weights(communication=1000, interference=0, fragmentation=0))
        round_ = instance([node("n0")], [pair], machines=machines, policy=policy)
        plan = solve(round_)
        assert audit(round_, plan) == []
        across = plan.model_copy(update={"placements": (placement(pair, [("n0", [1, 2])]),)})
        assert violations(round_, across) == []
        assert any("communication should be raw 9" in found for found in audit(round_, across))
