"""Jobs placed by class: lawful on every kind of round, nothing left that has room, and near greedy where it goes on."""

import sys
import time
from collections import Counter
from itertools import count, pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from helpers.plan_records import plan_of
from helpers.small_rounds import random_round
from placeopt import generate
from placeopt.build import instance, job, machine
from placeopt.check import violations
from placeopt.heuristics import greedy, order_jobs
from placeopt.heuristics.class_fill import fill_by_class, seconds_to_fill
from placeopt.heuristics.search import construct
from placeopt.problem import Allocation, Problem, State, compile_problem
from placeopt.problem.free_capacity import room_decides
from placeopt.terms.objective import value

SPECS = ("uniform", "varied", "gangs", "fractions", "resources", "planted", "elastic", "preempt")


def filled(problem: Problem, first: int = 0) -> tuple[Allocation, list[int]]:
    """Greedy for the first jobs of the queue, classes for the rest; and the jobs not reached."""
    order = order_jobs(problem, problem.policy.order)
    state = State(problem, greedy(problem, order[:first]).allocation)
    placed, missed = fill_by_class(state, order[first:], lambda: False)
    allocation = list(state.allocation())
    for one, placement in placed.items():
        assert allocation[one] is None
        allocation[one] = placement
    return tuple(allocation), missed


@pytest.mark.parametrize("seed", range(4))
def test_lawful_and_full(seed: int) -> None:
    """The referee agrees, and greedy afterwards finds room for none of the jobs that were reached."""
    rounds = [generate(spec, jobs=24, nodes=4, gpus=4, seed=seed) for spec in SPECS]
    rounds += [random_round(np.random.default_rng(650_000 + 40 * seed + number)) for number in range(40)]
    placed = 0
    for round_ in rounds:
        problem = compile_problem(round_)
        allocation, missed = filled(problem)
        assert violations(round_, plan_of(problem, allocation)) == []
        order = order_jobs(problem, problem.policy.order)
        again = greedy(problem, order, start=allocation).allocation
        for one, placement in enumerate(again):
            if one not in missed and one not in problem.running:
                assert (placement is None) == (allocation[one] is None)
        placed += sum(found is not None for found in allocation) - len(problem.running)
    assert placed > 60


def test_shares_fill_gpus_and_sets_take_idle_ones() -> None:
    """Two nodes of two GPUs: three halves and a pair; the pair needs a node alone, the halves share the other."""
    jobs = [job("pair", gpus=2, value=9), *(job(f"half{i}", gpu_milli=500, value=2) for i in range(4))]
    problem = compile_problem(instance(2, jobs, machines=[machine(gpus=2)]))
    allocation, missed = filled(problem)
    assert not missed
    nodes = Counter(found.nodes for found in allocation if found is not None)
    assert sorted(nodes.values()) == [1, 4]


def test_jobs_of_several_nodes_are_not_reached() -> None:
    """Gangs are left to those who know where their workers should be."""
    problem = compile_problem(instance(2, [job("gang", workers=2), job("one")]))
    allocation, missed = filled(problem)
    assert [problem.job_ids[one] for one in missed] == ["gang"]
    assert allocation[problem.job_ids.index("one")] is not None


def test_near_greedy_behind_most_of_it() -> None:
    """On unseen rounds of openb's mix, where greedy goes on after three quarters: within 2 % of all by greedy."""
    for seed in (80, 81):
        problem = compile_problem(generate("fractions", jobs=800, nodes=80, gpus=4, seed=seed))
        assert room_decides(problem)
        order = order_jobs(problem, problem.policy.order)
        allocation, _ = filled(problem, 3 * len(order) // 4)
        assert value(problem, allocation) >= 0.98 * value(problem, greedy(problem, order).allocation)


def test_a_pass_that_is_cut_short_goes_on_by_class() -> None:
    """A deadline that has passed fills nothing; one that is near places by class what greedy would not reach."""
    problem = compile_problem(generate("uniform", jobs=3000, nodes=300, gpus=4, seed=82))
    order = order_jobs(problem, problem.policy.order)
    late = greedy(problem, order, deadline=0.0, fill=True)
    assert late.by_class == 0
    assert set(late.not_reached) == set(order.tolist())
    seconds = seconds_to_fill(problem, order)
    assert len(seconds) == len(order)
    assert all(after <= before for before, after in pairwise(seconds))
    never = greedy(problem, order, deadline=float("inf"), fill=True)
    assert never.by_class == 0
    assert not never.not_reached


def test_a_pass_that_is_too_slow_goes_on_by_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that each look moves on, greedy reaches half of the queue: by class all jobs are reached."""
    problem = compile_problem(generate("uniform", jobs=2000, nodes=1000, gpus=4, seed=83))
    order = order_jobs(problem, problem.policy.order)
    single = order[[len(problem.options_of(one)) == 1 and not _is_gang(problem, one) for one in order.tolist()]]
    ticks = count()
    monkeypatch.setattr(
        sys.modules["placeopt.heuristics.greedy"], "time", SimpleNamespace(monotonic=lambda: next(ticks) * 2e-5)
    )
    ends = 2e-5 * len(single)
    cut = greedy(problem, single, deadline=ends)
    ticks = count()
    result = greedy(problem, single, deadline=ends, fill=True)
    assert cut.not_reached
    assert not result.not_reached
    assert result.by_class > 0
    assert value(problem, result.allocation) > value(problem, cut.allocation)


def test_with_time_for_a_part_the_largest_classes_come_first() -> None:
    """Time for one class: that of the two cheap jobs, which are worth more together than the dear one before them."""
    jobs = [job("dear", gpus=2, value=9), *(job(f"cheap{i}", gpus=1, value=6) for i in range(2))]
    problem = compile_problem(instance(2, jobs, machines=[machine(gpus=2)]))
    order = np.arange(3)
    placed_first: list[set[str]] = []
    for part in (1.0, 0.5):
        looks = iter((False, True))
        placed, missed = fill_by_class(State(problem), order, lambda looks=looks: next(looks), part=part)
        placed_first.append({problem.job_ids[one] for one in placed})
        assert len(placed) + len(missed) == 3
    assert placed_first == [{"dear"}, {"cheap0", "cheap1"}]


def test_a_class_that_no_option_serves_is_passed_over() -> None:
    """All its options are below the utility that it asks for."""
    jobs = [job("none", gpus=1, value=9, utility_min_thousandths=900, utility_thousandths=500), job("one", gpus=1)]
    problem = compile_problem(instance(1, jobs, machines=[machine(gpus=1)]))
    assert not list(problem.options_of(problem.job_ids.index("none")))
    placed, missed = fill_by_class(State(problem), np.arange(2), lambda: False, part=0.5)
    assert [problem.job_ids[one] for one in placed] == ["one"]
    assert not missed


@pytest.mark.parametrize("spec", ["varied", "uniform", "fractions"])
def test_a_part_of_the_classes_brings_most_of_the_value(spec: str) -> None:
    """On unseen rounds with more demand than room: half of the classes, and the worth of a job still counts."""
    for seed in (86, 87):
        problem = compile_problem(generate(spec, jobs=3000, nodes=300, gpus=4, seed=seed))
        order = order_jobs(problem, problem.policy.order)
        jobs = [one for one in order.tolist() if not _is_gang(problem, one)]
        classes = len(set(problem.job_class[jobs].tolist()))
        reached: list[int] = []
        for most, part in ((classes, 1.0), (classes // 2, 0.5)):
            looks = iter([False] * most + [True] * classes)
            placed, _ = fill_by_class(State(problem), order, lambda looks=looks: next(looks), part=part)
            reached.append(sum(int(problem.options.value[placement.option]) for placement in placed.values()))
        assert reached[1] >= 0.9 * reached[0]


@pytest.mark.parametrize("grace_s", [0.0, 60.0])
def test_after_the_deadline_there_is_a_grace(grace_s: float) -> None:
    """Time is over before the pass begins: what is left is placed by class if there is a grace."""
    problem = compile_problem(generate("uniform", jobs=300, nodes=40, gpus=4, seed=84))
    order = order_jobs(problem, problem.policy.order)
    result = greedy(problem, order, deadline=time.monotonic(), fill=True, grace_s=grace_s)
    assert bool(result.by_class) == bool(grace_s)
    assert all(_is_gang(problem, one) for one in result.not_reached) == bool(grace_s)


def test_a_construction_that_is_cut_is_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the same clock: greedy goes on with the jobs that were not reached, by class in the end."""
    problem = compile_problem(generate("uniform", jobs=2000, nodes=1000, gpus=4, seed=85))
    ticks = count()
    clock = SimpleNamespace(monotonic=lambda: next(ticks) * 2e-5)
    monkeypatch.setattr(sys.modules["placeopt.heuristics.greedy"], "time", clock)
    cut = construct(problem, (), deadline=0.01)
    order = order_jobs(problem, problem.policy.order)
    whole = greedy(problem, order, deadline=0.02, start=cut.allocation, fill=True, grace_s=60.0)
    assert cut.not_reached
    assert 0 < whole.by_class < len(cut.not_reached)
    assert all(_is_gang(problem, one) for one in whole.not_reached)
    assert value(problem, whole.allocation) > value(problem, cut.allocation)


def _is_gang(problem: Problem, one: int) -> bool:
    return any(problem.options.bundles[o] > 1 for o in problem.options_of(one))
