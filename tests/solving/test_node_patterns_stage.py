"""The stage ``patterns``: a better plan, a bound, and where it stands aside."""

import time
from typing import Any

import pytest

import placeopt
from placeopt.build import instance, job, machine, running
from placeopt.check import violations
from placeopt.errors import OutOfTime
from placeopt.generators import generate
from placeopt.heuristics.swaps import gathered
from placeopt.model import Changes, Plan, Policy, Stage
from placeopt.problem import Allocation, Problem
from placeopt.solving import pattern_search
from placeopt.solving.pattern_charges import SMALL_NODES
from placeopt.solving.stages import node_patterns


def stage_of(plan: Plan) -> Stage:
    """Return what the stage said of itself."""
    return next(stage for stage in plan.stages if stage.name == "patterns")


@pytest.mark.parametrize("seed", [9, 10])
def test_a_round_with_scarce_cpu_is_nearly_proven(seed: int) -> None:
    """Better than greedy, and bounded more closely than by single GPUs; jobs of up to 16 workers among others."""
    round_ = generate("varied", jobs=400, nodes=40, gpus=4, seed=seed)
    greedy = placeopt.solve(round_, method="stranding", time_limit_s=60)
    plan = placeopt.solve(round_, method="patterns", time_limit_s=60)
    assert violations(round_, plan) == []
    assert plan.levels[0].objective >= greedy.levels[0].objective
    assert plan.levels[0].bound is not None
    assert greedy.levels[0].bound is not None
    assert plan.levels[0].bound <= greedy.levels[0].bound
    assert plan.gap is None or plan.gap <= 0.01
    assert stage_of(plan).outcome in ("improved", "proved")


def test_the_same_plan_twice() -> None:
    """In deterministic mode, whatever the clock does."""
    round_ = generate("varied", jobs=400, nodes=40, gpus=4, seed=9)
    one, two = (
        placeopt.solve(round_, method="patterns", time_limit_s=60, deterministic=True, isolation="thread")
        for _ in range(2)
    )
    assert one == two
    assert stage_of(one).outcome == "improved"


@pytest.mark.parametrize("seed", [24, 25, 26])
def test_the_last_nodes_are_filled_in_whole_numbers(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the integer program the plan is worth more than by rounding large parts alone."""
    round_ = generate("varied", jobs=400, nodes=40, gpus=4, seed=seed)

    def solved() -> Plan:
        return placeopt.solve(round_, method="patterns", time_limit_s=60, deterministic=True, isolation="thread")

    plan = solved()
    monkeypatch.setattr(pattern_search, "FEW_NODES", 0)
    rounded = solved()
    assert violations(round_, plan) == []
    assert plan.levels[0].objective > rounded.levels[0].objective


def test_what_the_integer_program_found_survives_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut in the step after it, the mix is in whole numbers all the same, and the plan better than greedy's."""
    round_ = generate("varied", jobs=400, nodes=40, gpus=4, seed=9)
    search, dive = [], pattern_search.PatternSearch.dive

    def out_of_time(*_: Any) -> bool:
        raise OutOfTime("in the middle of a dive")

    def begun(one: Any) -> None:
        search.append(one)
        dive(one)

    greedy = placeopt.solve(round_, method="stranding", time_limit_s=60)
    monkeypatch.setattr(pattern_search.PatternSearch, "dive", begun)
    monkeypatch.setattr(pattern_search.PatternSearch, "_is_close", lambda *_: False)
    monkeypatch.setattr(pattern_search.PatternSearch, "_round_step", out_of_time)
    plan = placeopt.solve(round_, method="patterns", time_limit_s=60, deterministic=True, isolation="thread")
    assert violations(round_, plan) == []
    assert plan.levels[0].objective > greedy.levels[0].objective
    assert (search[0].values == search[0].values.round()).all()


def test_a_mix_ends_while_it_can_still_be_made_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """The slower its steps, the earlier; a plan comes of a mix that was cut short."""
    round_ = generate("varied", jobs=2000, nodes=200, gpus=4, seed=2)
    program, greedy = pattern_search.PatternSearch._program, placeopt.solve(round_, method="stranding", time_limit_s=60)
    left, dives = [], []

    def slowly(search: Any) -> bool:
        time.sleep(0.3)
        return program(search)

    def begun(search: Any) -> None:
        left.append(search.context.budget.left_s / (search._pricing_s + search._program_s))
        dives.append(search.programs)
        dive(search)

    dive = pattern_search.PatternSearch.dive
    monkeypatch.setattr(pattern_search.PatternSearch, "_program", slowly)
    monkeypatch.setattr(pattern_search.PatternSearch, "dive", begun)
    monkeypatch.setattr(pattern_search, "CLOSE", -1.0)  # no mix is good enough
    plan = placeopt.solve(round_, method="patterns", time_limit_s=15)
    assert violations(round_, plan) == []
    assert dives
    assert left[0] > pattern_search.WHOLE_STEPS / 2
    assert plan.levels[0].objective > greedy.levels[0].objective


def test_it_stands_aside() -> None:
    """Where greedy's plan is proven, shares do not nest, or running jobs may be changed; the plan stays."""
    easy = instance(1, [job("a")])
    assert "proven already" in stage_of(placeopt.solve(easy, method="patterns")).detail
    sizes = (810, 650, 470, 320, 230)
    jobs = [job(f"{i}", gpu_milli=sizes[i % 5], value=10 + i) for i in range(12)]
    uneven = instance(1, jobs, machines=[machine(gpus=2)])
    plan = placeopt.solve(uneven, method="patterns")
    assert plan.levels[0].bound == plan.levels[0].objective or "divides" in stage_of(plan).detail
    here = job("here", gpus=4)
    jobs = [here, *(job(f"{i}", gpus=3, value=1) for i in range(4))]
    policy = Policy(changes=Changes(preemptions_max=1))
    runs = [running(here, [("n0", [0, 1, 2, 3])], preemptible=True)]
    plan = placeopt.solve(instance(2, jobs, running=runs, policy=policy), method="patterns")
    assert "may be changed" in stage_of(plan).detail or "proven already" in stage_of(plan).detail


def test_cut_by_time_it_keeps_what_it_has() -> None:
    """No error, no worse plan."""
    round_ = generate("varied", jobs=2000, nodes=200, gpus=4, seed=2)
    plan = placeopt.solve(round_, method="patterns", time_limit_s=0.3)
    assert violations(round_, plan) == []


def test_a_round_of_many_nodes_does_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above 256 nodes bundles are merged, an integer program fills the last nodes, and bundles of gangs are swapped."""
    round_ = generate("varied", jobs=1400, nodes=SMALL_NODES + 8, gpus=4, seed=3)
    swapped, integers = [], []

    def nearer(problem: Problem, allocation: Allocation, *rest: Any) -> Allocation:
        found = gathered(problem, allocation, *rest)
        swapped.append(found != allocation)
        return found

    def with_integers(search: Any) -> Any:
        integers.append(whole := search.solve_integers())
        return whole

    monkeypatch.setattr(node_patterns, "gathered", nearer)
    search = pattern_search.PatternSearch
    monkeypatch.setattr(search, "solve_integers", search._integers, raising=False)
    monkeypatch.setattr(search, "_integers", with_integers)
    plans = [
        placeopt.solve(round_, method="patterns", time_limit_s=600, threads=threads, deterministic=True)
        for threads in (1, 2)
    ]
    assert swapped == [True, True]
    assert len(integers) >= 2
    assert plans[0].limit != "time"
    assert plans[0].model_dump_json() == plans[1].model_dump_json()
