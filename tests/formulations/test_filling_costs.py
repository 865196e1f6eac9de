"""Fillings of parts of nodes: pricing against all fillings, bounds on cost against optima, ways to lie, paths."""

from itertools import product

import numpy as np
import pytest

from helpers.relaxations import relaxed
from made_rounds import generate
from placeopt import solve
from placeopt.build import instance, job
from placeopt.errors import Unsupported
from placeopt.formulations.fillings import (
    SCALE,
    CostMix,
    Disturbance,
    Filling,
    MixPricing,
    Parts,
    Pieces,
    bundle_groups_of,
    disturbance_of,
    gang_paths,
    pieces_of,
)
from placeopt.generators import two_socket_machine
from placeopt.model import Communication, Instance, Slowdown, Split
from placeopt.problem import State, compile_problem
from placeopt.solving import allocation_of
from placeopt.terms import cost, weighted_costs
from placeopt.terms.costs import Interference

LEVELS = ("gpu", "switch", "socket", "node")


def spend(_cells: int) -> None:
    """Nothing limits the work."""


class Drawn:
    """Pieces of up to three profiles or none, and parts of up to eight slots with something beside."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        profiles, kinds, units = int(rng.integers(0, 4)), int(rng.integers(1, 5)), int(rng.integers(1, 4))
        pair = rng.integers(0, 9, (profiles, profiles))
        self.disturbance = Disturbance(np.zeros(0, dtype=np.int64), pair + pair.T, np.arange(-1, profiles))
        self.pieces = Pieces(
            gpus=np.ones(kinds, dtype=np.int64),
            milli=np.full(kinds, 1000),
            allowed=np.ones((kinds, 1), dtype=bool),
            profile=rng.integers(-1, profiles, kinds),
        )
        self.parts = Parts(
            of_gpu=np.zeros(0, dtype=np.int64),
            count=np.ones(units, dtype=np.int64),
            slots=rng.integers(1, 9, units),
            takes=rng.integers(1, 5, kinds),
            allowed=rng.random((units, kinds)) < 0.8,
            beside=rng.integers(0, 9, (units, profiles)),
        )
        self.pays = rng.integers(0, 40, kinds)
        self.pricing = MixPricing(self.pieces, self.parts, self.disturbance, 1, spend)

    def worth(self, unit: int, filling: Filling) -> int:
        """What a filling pays beyond what its jobs cost."""
        return sum(int(self.pays[kind]) * n for kind, n in filling) - self.pricing.cost(unit, filling)

    def fillings(self, unit: int) -> list[Filling]:
        """All of them."""
        slots, takes = int(self.parts.slots[unit]), self.parts.takes
        most = [slots // int(takes[k]) if self.parts.allowed[unit, k] else 0 for k in range(len(takes))]
        every = product(*(range(n + 1) for n in most))
        return [
            tuple((k, n) for k, n in enumerate(numbers) if n)
            for numbers in every
            if int(np.array(numbers) @ takes) <= slots
        ]


@pytest.mark.parametrize("seed", range(60))
def test_no_filling_of_a_part_pays_more(seed: int) -> None:
    """The best of all fillings is found, and its cost is the sum over its pairs of jobs."""
    drawn = Drawn(seed)
    nothing = np.zeros(len(drawn.parts), dtype=np.int64)
    priced = drawn.pricing.price(drawn.pays, nothing)
    best = np.array([max(drawn.worth(u, f) for f in drawn.fillings(u)) for u in range(len(drawn.parts))])
    assert priced.most.tolist() == best.tolist()
    assert {u: drawn.worth(u, f) for u, f in priced.fillings} == {u: b for u, b in enumerate(best.tolist()) if b > 0}
    assert drawn.pricing.price(drawn.pays, best).fillings == []


@pytest.mark.parametrize("seed", range(20))
def test_fillings_cost_what_their_pairs_do(seed: int) -> None:
    """Each pair of jobs with a profile once, and each job beside what runs."""
    drawn = Drawn(seed)
    for unit, filling in ((u, f) for u in range(len(drawn.parts)) for f in drawn.fillings(u)):
        held = [int(drawn.pieces.profile[kind]) for kind, n in filling for _ in range(n)]
        held = [profile for profile in held if profile >= 0]
        pairs = sum(int(drawn.disturbance.pair[a, b]) for i, a in enumerate(held) for b in held[:i])
        assert drawn.pricing.cost(unit, filling) == pairs + sum(int(drawn.parts.beside[unit, a]) for a in held)


def cut_short(seed: int, cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With few beginnings followed, the bound holds."""
    monkeypatch.setattr("placeopt.formulations.fillings.mixing.MOST_CELLS", cells)
    drawn = Drawn(seed)
    priced = drawn.pricing.price(drawn.pays, np.zeros(len(drawn.parts), dtype=np.int64))
    for unit, most in enumerate(priced.most.tolist()):
        assert max(drawn.worth(unit, f) for f in drawn.fillings(unit)) <= most
    assert all(0 < drawn.worth(u, f) <= priced.most[u] for u, f in priced.fillings)


@pytest.mark.parametrize("seed", range(30))
def test_a_search_cut_short_bounds_all_fillings(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many tables only some are followed."""
    for cells in (1, 20, 60):
        cut_short(seed, cells, monkeypatch)


def rounds(seed: int) -> Instance:
    """Small rounds in which jobs disturb each other in sockets, or on nodes, with gangs and shares."""
    spec = ("uniform", "contention", "varied", "gangs")[seed % 4]
    return generate(spec, jobs=8, nodes=2 + seed % 2, gpus=4, seed=seed)


def generated(mix: CostMix) -> tuple[int, int]:
    """Generate fillings until none is new; return the cost of the mix, and the best bound proven."""
    best = 0
    for _ in range(200):
        model = mix.master.model()
        solution = relaxed(model)
        bound, new = mix.price(mix.master.prices(model, solution.duals))
        best = max(best, bound)
        if not new:
            return mix.fixed + int(solution.bound), best
    raise AssertionError("fillings without end")


@pytest.mark.parametrize("seed", range(24))
def test_bounds_hold_at_any_prices_and_meet_the_mix(seed: int) -> None:
    """No bound is above the least cost of a plan of the value or more, and the last is close to that of the mix."""
    given = rounds(seed)
    problem, optimum = compile_problem(given), solve(given, method="counts", time_limit_s=60)
    assert optimum.status == "optimal"
    weighted, least = weighted_costs(problem), optimum.levels[1].objective
    rng = np.random.default_rng(seed)
    for plan in (optimum, solve(given, method="stranding")):  # of less value, perhaps: then the optimum counts, too
        allocation = allocation_of(plan, problem)
        least = min(least, cost(problem, allocation, weighted))
        mix = CostMix(State(problem), weighted, allocation, None, spend)
        model = mix.master.model()
        for scale in (0, 10, 1e4, 1e7):  # any prices will do
            duals = rng.uniform(-scale, scale, model.num_rows)
            assert mix.price(mix.master.prices(model, duals))[0] <= least
        model = mix.master.spread_model()
        solution = relaxed(model)
        rounded = 1 + plan.levels[0].objective / SCALE  # of the price of value
        apart = mix.price(mix.master.prices(model, solution.duals))[0]
        assert mix.fixed + solution.bound - rounded <= apart <= least
        costs, bound = generated(mix)
        assert bound <= least
        assert costs - rounded <= bound <= costs + 1


def test_jobs_that_have_to_meet_are_counted() -> None:
    """By hand: three jobs of a kind and one of another on two nodes of two GPUs: two of the kind meet."""
    kinds = [("a", "a", 5), ("a", "b", 1)]
    slow = [Slowdown(profile=p, beside=q, **{f"{at}_thousandths": e for at in LEVELS}) for p, q, e in kinds]
    jobs = [job(f"j{i}", profile="b" if i == 3 else "a") for i in range(4)]
    given = instance(2, jobs, machines=[two_socket_machine("x", 2)], slowdowns=slow)
    problem, optimum = compile_problem(given), solve(given, method="counts", time_limit_s=60)
    weighted = weighted_costs(problem)
    mix = CostMix(State(problem), weighted, allocation_of(optimum, problem), None, spend)
    pair = next(w.weight for w in weighted if isinstance(w.cost, Interference))
    assert generated(mix)[1] == optimum.levels[1].objective == (5 + 5 + 1) * pair


def test_ways_to_lie_in_two_sockets() -> None:
    """By hand: GPUs of a socket are 2 apart, others 42; jobs in one socket disturb, those in both do not count."""
    jobs = [job("pair", gpus=2, profile="a"), job("three", gpus=3, profile="a"), job("bare", gpus=1)]
    slow = [Slowdown(profile="a", beside="a", gpu_thousandths=5, socket_thousandths=5, switch_thousandths=5)]
    problem = compile_problem(instance(1, jobs, machines=[two_socket_machine("x", 4)], slowdowns=slow))
    disturbance = disturbance_of(problem, 10)
    assert disturbance.pair.tolist() == [[100]]
    assert len(np.unique(disturbance.part)) == 2
    classes = problem.options.job_class
    groups = bundle_groups_of(problem, disturbance.profile[problem.class_profile[classes]], np.full(len(classes), 3))
    pieces, ways = pieces_of(problem, groups, disturbance, 7)
    size = groups.gpus[ways.bundle_group].tolist()
    assert sorted(zip(size, ways.split, ways.cost.tolist(), strict=True)) == [
        (1, (1,), 0),
        (2, (1, 1), 21 * 42),
        (2, (2,), 21 * 2),
        (3, (2, 1), 21 * (2 + 2 * 42)),
    ]
    assert [pieces.profile[np.flatnonzero(row)].tolist() for row in ways.pieces if row.sum() > 1] == [[-1], [-1, -1]]
    assert sorted(pieces.gpus[pieces.profile >= 0].tolist()) == [2]


def test_paths_of_gangs() -> None:
    """Two workers of two GPUs share a node where they may; of three, one is on another; a rack holds two."""
    asks = [{"workers": 2}, {"workers": 2, "workers_per_node_max": 1}, {"workers": 1}, {"workers": 3}]
    asks.append({"workers": 3, "splits": [Split(level="rack", domains=1)]})  # no rack has more than one node
    jobs = [job(f"j{i}", gpus=2, communication=Communication(weight=1), **ask) for i, ask in enumerate(asks)]
    problem = compile_problem(instance(3, jobs, machines=[two_socket_machine("x", 4)], racks=3))
    across = problem.topology.min_node_distance
    paths = gang_paths(State(problem), lambda: None)
    of_job = [int(paths[problem.options_of(j)[0]]) for j in range(len(jobs))]
    three = of_job.pop(3)  # a bound: each worker is as far from the others as where most of them find room
    assert of_job == [172, 4 + 4 * across, 0, -1]
    assert 172 + 2 < three <= 172 + 2 + 8 * across


def test_the_stage_proves_more_than_the_relaxation() -> None:
    """Of a round that no other stage closes, stage ``filling-costs`` proves more than the relaxation of the cost."""
    plan = solve(generate("uniform", jobs=60, nodes=12, gpus=4, seed=5), method="search", time_limit_s=8)
    stages = {stage.name: stage for stage in plan.stages}
    assert stages["filling-costs"].outcome == "proved"
    assert stages["filling-costs"].bound > stages["cost-relaxation"].bound


def test_costs_that_fillings_do_not_count() -> None:
    """A round in which only fragmentation costs anything: there is nothing to bound."""
    given = generate("fractions", jobs=8, nodes=2, gpus=2, seed=1)
    problem = compile_problem(given)
    with pytest.raises(Unsupported, match="paths, interference and resources"):
        CostMix(State(problem), weighted_costs(problem), State(problem).allocation(), None, spend)
