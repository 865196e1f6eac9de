"""Pricing of node patterns against all patterns, the bound that prices prove, and the master program, by hand."""

from itertools import product

import numpy as np
import pytest

from helpers.relaxations import Patterns, relaxed
from made_rounds import generate
from placeopt import Unsupported
from placeopt.build import instance, job, machine, running
from placeopt.formulations.node_patterns import (
    BundleGroups,
    NodeStates,
    PatternMaster,
    PatternPricing,
    TieredPricing,
    bundle_groups_of,
    capacity_model,
    capacity_prices,
    state_groups_of,
)
from placeopt.model import Job
from placeopt.problem import IntArray, Problem, compile_problem


def test_shares_that_do_not_nest_are_refused() -> None:
    """Their patterns are for the relaxation by single GPUs."""
    problem = compile_problem(instance(1, [job("a", gpu_milli=470), job("b", gpu_milli=320)]))
    with pytest.raises(Unsupported, match="470 and 320"):
        bundle_groups_of(problem)


@pytest.mark.parametrize("seed", range(6))
def test_pricing_is_the_best_of_all_fillings(seed: int) -> None:
    """Random bundle groups on random nodes: with a grid finer than the demands, tables and enumeration agree."""
    rng = np.random.default_rng(seed)
    jobs = [
        job(
            f"j{i}",
            gpus=int(gpus),
            gpu_milli=int(rng.choice([250, 500, 1000])) if gpus == 1 else 1000,
            cpu_millicores=int(rng.integers(1, 6)),
            memory_mib=int(rng.integers(0, 6)),
        )
        for i, gpus in enumerate(rng.choice([0, 1, 1, 1, 2], 5))
    ]
    here = [job(f"r{i}", gpu_milli=int(rng.choice([250, 500, 1000]))) for i in range(2)]
    machines = [machine(gpus=2, cpu_millicores=int(rng.integers(4, 12)), memory_mib=int(rng.integers(4, 12)))]
    runs = [running(one, [(f"n{i}", [i])]) for i, one in enumerate(here)]
    made = Patterns(compile_problem(instance(3, [*jobs, *here], machines=machines, running=runs)))
    bundle_groups, states = made.bundle_groups, made.states
    pays = rng.integers(1, 100, len(bundle_groups))
    pays[(bundle_groups.level < 0) & (bundle_groups.demand == 0).all(axis=1)] = 0
    for rounding, kind in product(("down", "up"), (PatternPricing, TieredPricing)):
        best, choice, patterns = made.pricing(rounding, kind).price(pays)
        for s in range(len(states)):
            assert best[s] == best_filling(bundle_groups, states, s, pays)
            assert sum(pays[k] * n for k, n in patterns[choice[s]].items()) == best[s]


@pytest.mark.parametrize("seed", range(8))
def test_tiers_bound_every_state_and_lose_less(seed: int) -> None:
    """
    One empty node sets the units, nine have little left, on a grid far coarser than the demands.

    Rounded down, no state pays less than its best pattern, and together they exceed it by less than with one grid;
    rounded up, every pattern fits, and they pay no less.
    """
    rng = np.random.default_rng(seed)
    jobs = [
        job(f"j{i}", gpu_milli=500, cpu_millicores=int(rng.integers(300, 900)), memory_mib=int(rng.integers(300, 900)))
        for i in range(6)
    ]
    here, runs = [], []
    for n in range(1, 10):
        left = rng.integers(900, 2500, 2)
        here.append(job(f"r{n}", cpu_millicores=64_000 - int(left[0]), memory_mib=64_000 - int(left[1])))
        runs.append(running(here[-1], [(f"n{n}", [0])]))
    machines = [machine(gpus=4, cpu_millicores=64_000, memory_mib=64_000)]
    made = Patterns(compile_problem(instance(10, [*jobs, *here], machines=machines, running=runs)))
    bundle_groups, states = made.bundle_groups, made.states
    pays = rng.integers(1, 100, len(bundle_groups))
    pays[bundle_groups.units > 1] = 0  # what runs is no job of the round
    pays[(bundle_groups.demand > 10_000).any(axis=1)] = 0
    best = np.array([best_filling(bundle_groups, states, s, pays) for s in range(len(states))])
    above, below = [], []
    for kind in (PatternPricing, TieredPricing):
        down = made.pricing("down", kind, cells=400).price(pays, patterns=False).pays
        assert (down >= best).all()
        above.append(int(down.sum()))
        up, choice, patterns = made.pricing("up", kind, cells=400).price(pays)
        assert (up <= best).all()
        below.append(int(up.sum()))
        for s in range(len(states)):
            needs = sum((n * bundle_groups.demand[k] for k, n in patterns[choice[s]].items()), np.zeros(4, dtype=int))
            assert (needs <= states.free[s]).all()
            assert sum(pays[k] * n for k, n in patterns[choice[s]].items()) == up[s]
    assert above[1] < above[0]
    assert below[1] > below[0]


def best_filling(bundle_groups: BundleGroups, states: NodeStates, s: int, pays: IntArray) -> int:
    """
    Try all numbers of all bundle groups that pay; shares nest, so counting from the largest size says whether they fit.
    """
    paying = np.flatnonzero(pays > 0).tolist()

    def fits(count: IntArray) -> bool:
        if (count @ bundle_groups.demand > states.free[s]).any():
            return False
        used = 0
        for level, size in enumerate(bundle_groups.sizes):
            used *= bundle_groups.sizes[level - 1] // size if level else 1
            used += int((count * bundle_groups.units)[bundle_groups.level == level].sum())
            if used > states.room[s, level]:
                return False
        return True

    def best(count: IntArray, rest: list[int]) -> int:
        """Add bundles of the first of ``rest`` one by one, and of the others to each."""
        found = int(count @ pays)
        for i, bundle_group in enumerate(rest):
            more = count.copy()
            more[bundle_group] += 1
            if fits(more):
                found = max(found, best(more, rest[i:]))
        return found

    return best(np.zeros(len(bundle_groups), dtype=np.int64), paying)


def priced_jobs(*worth: int) -> list[Job]:
    return [job(f"{value}", value=value) for value in worth]


@pytest.mark.parametrize(("price", "bound"), [(4, 9), (0, 12), (100, 200)])
def test_prices_prove_a_bound_by_hand(price: int, bound: int) -> None:
    """
    One node of two GPUs; three jobs of one GPU, worth 5, 4 and 3. At a price of 4: 1 over for the first, and 2 x 4.

    That is 9, which is the optimum. At 0 all three are counted, 12; at 100 the two GPUs, 200.
    """
    made = Patterns(compile_problem(instance(1, priced_jobs(5, 4, 3), machines=[machine(gpus=2)])))
    prices = np.array([price * made.job_groups.scale])
    assert made.bound(prices, made.pricing().price(prices).pays) == bound


def test_the_master_mixes_fillings_and_its_prices_close_the_gap() -> None:
    """By hand: two nodes of two GPUs; filled with pairs of single GPUs or one job of two, four jobs are best."""
    jobs = [*(job(f"s{i}", value=3) for i in range(3)), *(job(f"d{i}", gpus=2, value=5) for i in range(2))]
    problem = compile_problem(instance(2, jobs, machines=[machine(gpus=2)]))
    made = Patterns(problem)
    single, double = (int(made.bundle_groups.of_option[problem.options_of(j)[0]]) for j in (0, 3))
    master = PatternMaster(made.bundle_groups, made.states, np.arange(len(made.states)), made.job_groups, held=0)
    assert master.add_plan([(0, {single: 2}), (0, {double: 1}), (0, {}), (0, {single: 2})]) == 2
    model = master.model()
    solution = relaxed(model, keep_basis=True)
    assert solution.bound == 11  # one node of each, or a mix of equal worth
    prices = master.prices(model, solution.duals)
    best = made.pricing().price(prices)
    assert made.bound(prices, best.pays) == 11
    assert master.add_best(best) == 0
    assert relaxed(master.model(), start=solution.basis).bound == 11
    assert master.take(np.array([0.0, 0.0, 1.25, 0.75]))
    assert master.used == {(0, ((single, 2),)): 1, (0, ((double, 1),)): 1}
    assert not master.take(np.zeros(4))


def mixed(problem: Problem, groups: int, rounds: int = 40) -> int:
    """Generate columns for groups of states until none is new; return the bound of the last program."""
    made = Patterns(problem)
    pricing = made.pricing("up")
    groups_of_states = state_groups_of(made.states, groups)
    master = PatternMaster(made.bundle_groups, made.states, groups_of_states, made.job_groups, held=0)
    start = capacity_model(made.bundle_groups, made.states, made.job_groups)
    prices, least = capacity_prices(made.bundle_groups, made.job_groups, start, relaxed(start).duals), 2**62
    for _ in range(rounds):
        prices[pricing.free_of_charge] = 0
        best = pricing.price(prices)
        least = min(least, made.bound(prices, best.pays))
        new, model = master.add_best(best), master.model()
        solution = relaxed(model)
        assert solution.bound <= least
        if not new:
            break
        prices = master.prices(model, solution.duals)
    return solution.bound


def test_capacity_prices_by_hand() -> None:
    """Two GPUs for jobs worth 5, 4 and 3: a GPU is worth 3 to 4, and a bundle of two twice that."""
    jobs = [*priced_jobs(5, 4, 3), job("pair", gpus=2, value=1)]
    made = Patterns(compile_problem(instance(1, jobs, machines=[machine(gpus=2)])))
    model = capacity_model(made.bundle_groups, made.states, made.job_groups)
    solution = relaxed(model)
    assert solution.bound == 9
    prices = capacity_prices(made.bundle_groups, made.job_groups, model, solution.duals)
    one, two = np.sort(prices / made.job_groups.scale).tolist()
    assert 3 <= one <= 4
    assert two == 2 * one


@pytest.mark.parametrize("seed", range(4))
def test_groups_of_states_mix_no_more_than_single_states(seed: int) -> None:
    """A column of a group is a mix of those of its states; no mix is worth more than any prices bound."""
    problem = compile_problem(generate("varied", jobs=40, nodes=8, gpus=2, seed=seed))
    singles = mixed(problem, 100)
    for groups in (1, 3):
        assert 0.9 * singles <= mixed(problem, groups) <= singles
