"""Fillings of nodes: pricing against all fillings, the bound that prices prove, the master, and plans of mixes."""

from itertools import combinations

import numpy as np
import pytest

from helpers.night import seeds
from helpers.plan_records import plan_of
from helpers.relaxations import MANY, Fillings, relaxed, solved
from placeopt import solve
from placeopt.build import instance, job, machine, running
from placeopt.check import violations
from placeopt.formulations.fillings import Column, columns_of, requests_of
from placeopt.heuristics import assign_gpus
from placeopt.model import Instance
from placeopt.problem import IntArray, State, compile_problem


def small_round(seed: int) -> Instance:
    """Up to seven waiting jobs with odd shares, some of several GPUs or without any, on two nodes with something on."""
    rng = np.random.default_rng(seed)

    def asks() -> dict[str, int]:
        gpus = int(rng.integers(0, 3))
        return {
            "gpus": gpus,
            "gpu_milli": int(rng.choice([330, 470, 510, 660, 1000])) if gpus == 1 else 1000,
            "cpu_millicores": int(rng.integers(0, 5)),
            "memory_mib": int(rng.integers(0, 5)),
        }

    jobs = [job(f"j{i}", value=int(rng.integers(1, 20)), **asks()) for i in range(int(rng.integers(3, 8)))]
    here = [job(f"r{i}", gpu_milli=int(rng.choice([250, 1000])), cpu_millicores=1, memory_mib=1) for i in range(2)]
    machines = [machine(gpus=2, cpu_millicores=int(rng.integers(4, 9)), memory_mib=int(rng.integers(4, 9)))]
    runs = [running(held, [(f"n{i}", [0])]) for i, held in enumerate(here)]
    return instance(2, [*jobs, *here], machines=machines, running=runs)


def packs(left: list[int], parts: list[tuple[int, int]]) -> bool:
    """Tell whether GPUs hold (number of GPUs, share) parts, by trying all."""
    if not parts:
        return True
    (wide, share), *rest = parts
    for chosen in combinations(range(len(left)), wide):
        if all(left[g] >= share for g in chosen):
            after = [amount - share * (g in chosen) for g, amount in enumerate(left)]
            if packs(after, rest):
                return True
    return False


def best_filling(made: Fillings, unit: int, pays: IntArray) -> int:
    """What the best filling of a unit pays, by trying all numbers of all bundle groups."""
    groups, units = made.groups, made.units
    wanted = np.zeros(len(groups), dtype=np.int64)
    np.add.at(wanted, made.starts.bundle_group, made.starts.bundles * made.starts.most)
    demand = groups.demand[:, units.amounts]

    def best(number: IntArray, group: int) -> int:
        found = int(number @ pays)
        for k in range(group, len(groups)):
            more = number.copy()
            more[k] += 1
            if not units.allowed[unit, k] or more[k] > wanted[k] or (more @ demand > units.free[unit]).any():
                continue
            parts = [(int(groups.gpus[i]), int(groups.milli[i])) for i in range(len(groups)) for _ in range(more[i])]
            if packs(units.left[unit].tolist(), parts):
                found = max(found, best(more, k))
        return found

    return best(np.zeros(len(groups), dtype=np.int64), 0)


def best_plan(made: Fillings) -> int:
    """The most value of jobs that start together, by trying all sets of jobs and where each bundle lies."""
    state, starts, groups = State(made.problem), made.starts, made.groups
    place = [np.flatnonzero(starts.job_group == c).tolist() for c, jobs in enumerate(starts.jobs) for _ in jobs]
    nodes = [node for of_unit in made.units.nodes for node in of_unit.tolist()]
    unit_of = {node: u for u, of_unit in enumerate(made.units.nodes) for node in of_unit.tolist()}
    amounts = made.units.amounts

    def best(i: int, held: dict[int, list[int]]) -> int:
        if i == len(place):
            return 0
        found = best(i + 1, held)
        for s in place[i]:
            k = int(starts.bundle_group[s])
            for node in nodes:
                if not made.units.allowed[unit_of[node], k]:
                    continue
                here = [*held.get(node, []), k]
                free = np.maximum(state.node_free[node], 0)[amounts]
                parts = [(int(groups.gpus[h]), int(groups.milli[h])) for h in here]
                left = made.units.left[unit_of[node]].tolist()
                if (groups.demand[here][:, amounts].sum(axis=0) <= free).all() and packs(left, parts):
                    found = max(found, int(starts.value[s]) + best(i + 1, {**held, node: here}))
        return found

    return best(0, {})


@pytest.mark.parametrize("seed", seeds(40))
def test_pricing_is_the_best_of_all_fillings(seed: int) -> None:
    """Of odd shares, several GPUs, two resources; cut short, the bound holds and what it found pays no more."""
    made = Fillings(compile_problem(small_round(seed)))
    rng = np.random.default_rng(seed)
    pays = np.where(made.units.takes_nothing, 0, rng.integers(0, 50, len(made.groups)))
    best = np.array([best_filling(made, unit, pays) for unit in range(len(made.units))])
    for steps in (MANY, 3, 0):
        fillings, most = made.pricing(steps).price(pays, 0 * best)
        for unit in range(len(made.units)):
            worth = [sum(int(pays[k]) * n for k, n in filling) for u, filling in fillings if u == unit]
            assert worth == sorted(set(worth))
            assert max(worth, default=0) <= best[unit] <= most[unit]
            assert steps < MANY or max(worth, default=0) == best[unit] == most[unit]
    priced = made.pricing().price(pays, best)
    assert not priced.fillings
    assert (priced.most == best).all()


@pytest.mark.parametrize("seed", range(10))
def test_pricing_that_is_cut_short_proves_the_best_in_time(seed: int) -> None:
    """Whenever its branches have doubled it may take as many as all before, so no unit stays open for ever."""
    made = Fillings(compile_problem(small_round(seed)))
    pays = np.where(made.units.takes_nothing, 0, np.random.default_rng(seed).integers(0, 50, len(made.groups)))
    pricing = made.pricing(3)
    most = np.min([pricing.price(pays, 0 * made.units.count).most for _ in range(60)], axis=0)
    assert (most == made.best(pays)).all()


def generated(made: Fillings) -> tuple[int, int]:
    """Generate fillings until none is new; return the value of the mix, rounded down, and the best bound proven."""
    pricing, least = made.pricing(), 2**62
    for _ in range(100):
        model = made.value_model()
        solution = relaxed(model)
        price = made.master.value_prices(model, solution.duals)
        priced = pricing.price(price, made.pool.most(price))
        least = min(least, made.bound(price, priced.most))
        new = made.pool.add(Column(unit, filling) for unit, filling in priced.fillings)
        if not new:
            return int(solution.bound), least
    raise AssertionError("fillings without end")


@pytest.mark.parametrize("seed", seeds(40))
def test_bounds_hold_and_mixes_are_lawful(seed: int) -> None:
    """No bound is below the best plan, the last is that of the mix, and every job of a whole mix finds its place."""
    given = small_round(seed)
    problem = compile_problem(given)
    made = Fillings(problem)
    best = best_plan(made)
    rng = np.random.default_rng(seed)
    for scale in (0, 5, 50):  # any prices will do
        price = rng.integers(0, scale + 1, len(made.groups)) * made.master.scale
        pricing = made.pricing(int(rng.integers(0, 20)))
        price[made.units.takes_nothing] = 0
        most = pricing.price(price, 0 * made.units.count).most
        assert made.bound(price, most) >= best
    mixed, bound = generated(made)
    assert best <= mixed == bound
    number, used = made.master.chosen(solved(made.value_model()).values, made.pool.columns)
    requests = list(requests_of(problem, made.groups, made.starts, made.units, number, used))
    allocation = assign_gpus(problem, requests)
    lying = ~made.units.takes_nothing[made.starts.bundle_group]
    assert sum(placement is not None for placement in allocation) == len(problem.running) + int(number[lying].sum())
    assert not violations(given, plan_of(problem, allocation))


@pytest.mark.parametrize("seed", seeds(20))
def test_prices_of_amounts_prove_the_capacity_program_without_a_search(seed: int) -> None:
    """What all nodes have together, by its duals and not one branch: at least the best plan, at most that program."""
    made = Fillings(compile_problem(small_round(seed)))
    pricing = made.pricing(0)
    model = made.master.capacity_model(pricing.takes, pricing.room)
    solution = relaxed(model)
    amounts = made.master.amount_prices(model, solution.duals, pricing.takes.shape[1])
    pricing.begin_at(amounts)
    price = made.master.whole_prices(pricing.takes @ amounts)
    most = pricing.price(price, 0 * made.units.count).most
    assert best_plan(made) <= made.bound(price, most) <= solution.bound + 1


def test_a_pool_reads_plans_and_keeps_each_filling_once() -> None:
    """By hand: two idle nodes of two GPUs, both with two single jobs; the same plan again adds nothing."""
    problem = compile_problem(instance(2, [job(f"j{i}") for i in range(4)], machines=[machine(gpus=2)]))
    made = Fillings(problem)
    plan = assign_gpus(problem, [(i, problem.options_of(i)[0], (i // 2,)) for i in range(4)])
    columns = list(columns_of(problem, made.groups, made.units, plan))
    assert made.pool.add(columns) == 1
    assert made.pool.columns == [Column(0, ((0, 2),))]
    assert made.pool.add(columns) == 0
    assert made.pool.most(np.array([7])).tolist() == [14]


def test_workers_of_a_gang_lie_in_fillings() -> None:
    """
    By hand: three workers of one GPU and a job of two GPUs, worth 9 and 5, on two nodes of two GPUs.

    The pair and two thirds of the gang are worth 11; in whole numbers the gang is best.
    """
    given = instance(2, [job("gang", workers=3, value=9), job("pair", gpus=2, value=5)], machines=[machine(gpus=2)])
    made = Fillings(compile_problem(given))
    assert generated(made) == (11, 11)
    number, used = made.master.chosen(solved(made.value_model()).values, made.pool.columns)
    requests = list(requests_of(made.problem, made.groups, made.starts, made.units, number, used))
    assert [(job, len(nodes)) for job, _, nodes in requests] == [(0, 3)]


def test_the_method_proves_small_rounds_of_odd_shares() -> None:
    """Shares that do not nest, CPU and memory at once: method ``fillings`` proves a small round."""
    given = small_round(5)
    plan = solve(given, method="fillings", time_limit_s=20)
    assert plan.levels[0].bound == plan.levels[0].objective
    assert "fillings" in [stage.name for stage in plan.stages]
    assert not violations(given, plan)
