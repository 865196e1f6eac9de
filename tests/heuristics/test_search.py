"""Search: exact figures from move to move, a way back, never worse, the same again; nodes by brute force."""

from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from helpers.differential import snapshot
from helpers.plan_records import plan_of
from helpers.small_rounds import random_round
from placeopt.build import instance, job, machine, node, running
from placeopt.check import violations
from placeopt.generators import generate
from placeopt.heuristics import greedy, order_jobs
from placeopt.heuristics.search import RANKINGS, Guide, LargeNeighbourhoodSearch, construct
from placeopt.heuristics.search.gang_placer import GangPlacer
from placeopt.heuristics.search.incremental_solution import IncrementalSolution
from placeopt.heuristics.search.insertion import Insertion
from placeopt.heuristics.search.insertion_order import choose
from placeopt.heuristics.search.search import Destroy
from placeopt.model import Communication, Domain, Split
from placeopt.problem import Placement, Problem, State, compile_problem
from placeopt.terms.costs.communication import job_cost
from placeopt.terms.objective import cost, value, weighted_costs


def begun(problem: Problem, seed: int = 0) -> LargeNeighbourhoodSearch:
    """Return a search from greedy's plan."""
    start = greedy(problem, order_jobs(problem, "value_density")).allocation
    return LargeNeighbourhoodSearch(problem, start, weighted_costs(problem), seed=seed)


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_rounds(first: int) -> None:
    """Never worse, always lawful, and value and cost are what the terms say of the plan."""
    moved = 0
    for number in range(first, first + 20):
        problem = compile_problem(random_round(np.random.default_rng(47_000 + number), minima=False))
        search = begun(problem, number)
        before = (search.value, -search.cost)
        better = [search.step() for _ in range(12)]
        moved += any(better)
        assert (search.value, -search.cost) >= before
        assert ((search.value, -search.cost) > before) == any(better)
        assert search.value == value(problem, search.allocation)
        assert search.cost == cost(problem, search.allocation, weighted_costs(problem))
        assert violations(problem.instance, plan_of(problem, search.allocation)) == []
    assert moved


def test_gangs_get_cheaper_and_the_same_seed_makes_the_same_plan() -> None:
    """Beside greedy, which takes large gangs first."""
    problem = compile_problem(generate("gangs", jobs=120, nodes=48, gpus=4, seed=5))
    one, two, other = begun(problem, 1), begun(problem, 1), begun(problem, 2)
    before = (one.value, -one.cost)
    for search in (one, two, other):
        for _ in range(30):
            search.step()
    assert (one.value, -one.cost) > before
    assert one.allocation == two.allocation
    assert one.allocation != other.allocation
    assert violations(problem.instance, plan_of(problem, one.allocation)) == []


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_a_plan_made_anew_is_lawful(first: int) -> None:
    """By every ranking; running jobs stay, and no job that could still start waits, in rounds without later rules."""
    placed = 0
    for number in range(first, first + 20):
        problem = compile_problem(random_round(np.random.default_rng(48_000 + number), minima=False))
        for ranking in RANKINGS:
            result = construct(problem, weighted_costs(problem), ranking=ranking)
            assert violations(problem.instance, plan_of(problem, result.allocation)) == []
            assert all(result.allocation[job] == problem.running[job] for job in problem.running)
            assert result.not_reached == ()
            placed += sum(placement is not None for placement in result.allocation)
    assert placed


def test_a_plan_made_anew_begins_with_the_jobs_chosen() -> None:
    """Four jobs of two GPUs and one node of four: two are chosen, though others are worth more."""
    problem = compile_problem(instance(1, [job(f"j{i}", gpus=2, value=1 + i) for i in range(4)]))
    chosen = construct(problem, weighted_costs(problem), chosen=np.array([0, 1])).allocation
    best = construct(problem, weighted_costs(problem)).allocation
    assert [placement is not None for placement in chosen] == [True, True, False, False]
    assert [placement is not None for placement in best] == [False, False, True, True]
    late = construct(problem, weighted_costs(problem), deadline=0.0)
    assert len(late.not_reached) == 4


def test_the_way_back() -> None:
    """Everything that a state knows is as it was, and what is scored after it as well."""
    problem = compile_problem(generate("gangs", jobs=40, nodes=16, gpus=4, seed=1))
    solution = IncrementalSolution(problem, State(problem).allocation(), weighted_costs(problem))
    spots = Insertion(solution)
    waiting = [j for j in range(problem.num_jobs) if j not in problem.running]
    for j in waiting[:10]:
        solution.put(j, spots.best(j))
    before, figures, places = (
        snapshot(solution.state),
        (solution.value, solution.cost),
        [spots.best(j) for j in waiting[10:20]],
    )
    mark = solution.mark()
    ruin = Destroy(solution, np.ones(problem.num_jobs), np.random.default_rng(0))
    for _ in range(8):
        ruin.some(np.array([j for j in waiting if solution.state.placements[j] is None]))
    for j in waiting[10:]:
        if solution.state.placements[j] is None:
            solution.put(j, spots.best(j))
    assert snapshot(solution.state) != before
    solution.roll_back(mark)
    assert snapshot(solution.state) == before
    assert (solution.value, solution.cost) == figures
    assert [spots.best(j) for j in waiting[10:20]] == places


@pytest.mark.parametrize("workers", [2, 3, 5])
@pytest.mark.parametrize("split", [None, 1, 2])
def test_near_by_brute_force(workers: int, split: int | None) -> None:
    """Three racks of three nodes, partly busy: no choice of nodes costs less."""
    busy = [job(f"b{i}", gpus=1 + i % 2) for i in range(6)]
    splits = () if split is None else (Split(level="rack", domains=split, workers=workers // split),)
    if split is not None and workers % split:
        return
    gang = job("gang", workers=workers, splits=splits, communication=Communication(weight=2))
    nodes = tuple(node(f"n{i}", domain=f"r{i // 3}") for i in range(9))
    runs = [running(one, [(f"n{i}", list(range(1 + i % 2)))]) for i, one in enumerate(busy)]
    round_ = instance(
        nodes,
        [gang, *busy],
        machines=[machine(gpus=2)],
        domains=tuple(Domain(id=f"r{i}") for i in range(3)),
        running=runs,
    )
    problem = compile_problem(round_)
    solution = IncrementalSolution(problem, State(problem).allocation(), weighted_costs(problem))
    found = Insertion(solution).best(0)
    free = {n: [g for g in range(2 * n, 2 * n + 2) if not solution.state.gpu_jobs[g]] for n in range(9)}
    costs = []
    for chosen in combinations_with_replacement(range(9), workers):
        racks = [n // 3 for n in chosen]
        lies = split is None or (len(set(racks)) == split and len({racks.count(r) for r in racks}) == 1)
        if lies and all(chosen.count(n) <= len(free[n]) for n in chosen):
            gpus = tuple(free[n][chosen[:i].count(n)] for i, n in enumerate(chosen))
            costs.append(job_cost(problem, 0, Placement(0, chosen, gpus)))
    assert (found is None) == (not costs)
    assert found is None or job_cost(problem, 0, found) == min(costs)


def test_a_knapsack_by_brute_force() -> None:
    """Most value within the share, then least cost; jobs that do not fit at all are passed over."""
    rng = np.random.default_rng(5)
    for _ in range(30):
        milli, value_ = 250 * rng.integers(1, 9, 8), rng.integers(1, 4, 8)
        dear = rng.integers(0, 100, 8).astype(float)
        capacity = 1000 * int(rng.integers(1, 6))
        sets = [np.array(bits, dtype=bool) for bits in product((False, True), repeat=8)]
        best = max((int(value_[s].sum()), -float(dear[s].sum())) for s in sets if milli[s].sum() <= capacity)
        order = np.lexsort((dear, -value_ / milli))
        taken = choose(milli[order], value_[order], dear[order], capacity)
        assert milli[order][taken].sum() <= capacity
        found = int(value_[order][taken].sum()), -float(dear[order][taken].sum())
        assert found[0] == best[0]
        assert found == best


def test_rents_keep_small_bundles_off_dear_nodes() -> None:
    """Both nodes would do; the guide has the first one dear."""
    problem = compile_problem(instance(2, [job("gang", workers=2, communication=Communication(weight=1))]))
    solution = IncrementalSolution(problem, State(problem).allocation(), weighted_costs(problem))
    nothing = np.zeros(2, dtype=np.int64)
    for dear in (0, 1):
        rent = np.where(np.arange(2) == dear, 1000, 0)
        guide = Guide(np.zeros(1), rent, nothing, nothing)
        assert GangPlacer(solution.candidates, 1, guide).nodes(0) == [1 - dear] * 2
