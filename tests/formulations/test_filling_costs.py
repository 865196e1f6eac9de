"""Fillings of parts and spreads of nodes: pricing against all fillings, bounds on cost against optima, plans, paths."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given

from helpers.brute_force import optimum
from helpers.machines import sockets
from helpers.night import seeds
from helpers.relaxations import Fillings, relaxed, solved
from made_rounds import generate
from placeopt import Engine, solve
from placeopt.build import instance, job
from placeopt.errors import Unsupported
from placeopt.formulations.fillings import (
    COUNTED,
    BundleGroups,
    CostMix,
    Disturbance,
    MixPricing,
    Parts,
    Prices,
    disturbance_of,
    gang_paths,
    plan_of,
)
from placeopt.generators import two_socket_machine
from placeopt.model import Communication, Fragmentation, Instance, Policy, Slowdown, Split, Weights
from placeopt.problem import Allocation, IntArray, State, compile_problem, open_state
from placeopt.solving import allocation_of
from placeopt.terms import Weighted, cost, value, weighted_costs
from placeopt.terms.costs import Interference
from strategies import filling_rounds, rounds

LEVELS = ("gpu", "switch", "socket", "node")


def spend(_beginnings: int) -> None:
    """Nothing limits the work."""


class Drawn:
    """Bundle groups of up to two profiles or none on one or two GPUs or a half, and parts of up to three GPUs."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        profiles, kinds, units = int(rng.integers(0, 3)), int(rng.integers(1, 5)), int(rng.integers(1, 4))
        pair = rng.integers(0, 9, (profiles, profiles))
        self.disturbance = Disturbance(np.zeros(0, dtype=np.int64), pair + pair.T, np.arange(-1, profiles))
        milli = rng.choice([500, 1000, 1000], kinds)
        none = np.zeros(kinds, dtype=np.int64)
        self.groups = BundleGroups(
            gpus=np.where(milli == 500, 1, rng.integers(1, 3, kinds)),
            milli=milli,
            demand=none[:, None],
            allowed=np.ones((kinds, 1), dtype=bool),
            profile=rng.integers(-1, profiles, kinds),
            traffic=none,
            of_option=none,
        )
        idle, halves = rng.integers(0, 4, units), rng.integers(0, 2, units)
        saves = rng.integers(0, 5, units)
        wholes = idle + rng.integers(0, 2, units) * (idle < 3)
        self.parts = Parts(
            room=np.column_stack((2 * wholes + halves, wholes)),
            saves=saves,
            most_saved=saves * idle,
            opening=rng.integers(0, 9, units),
            allowed=rng.random((units, kinds)) < 0.8,
            own=rng.integers(0, 5, (units, kinds)),
            beside=rng.integers(0, 9, (units, profiles)),
        )
        self.pays = rng.integers(-5, 40, kinds)
        self.supply = rng.integers(1, 5, kinds)
        self.pricing = MixPricing(self.parts, self.groups, self.disturbance, self.supply, 1, spend)
        self.units = np.arange(units)

    def worth(self, unit: int, counts: IntArray) -> int:
        """What a filling pays beyond what its jobs cost."""
        return int(self.pays @ counts) - self.pricing.cost(unit, counts)

    def fillings(self, unit: int) -> list[IntArray]:
        """All of them that are not empty."""
        groups, room = self.groups, self.parts.room[unit]
        halves, wholes = groups.gpus * groups.milli // 500, np.where(groups.milli == 1000, groups.gpus, 0)
        most = np.where(self.parts.allowed[unit], self.supply, 0)
        every = (np.array(numbers) for numbers in product(*(range(n + 1) for n in most.tolist())))
        return [row for row in every if row.any() and row @ halves <= room[0] and row @ wholes <= room[1]]


def counts_of(filling: tuple[tuple[int, int], ...], size: int) -> IntArray:
    """Return the numbers of a filling by bundle group."""
    counts = np.zeros(size, dtype=np.int64)
    for d, number in filling:
        counts[d] = number
    return counts


@pytest.mark.parametrize("seed", seeds(80))
def test_no_filling_of_a_part_pays_more(seed: int) -> None:
    """The best of all fillings is found, no bound is below it, and all that pay more than asked for are listed."""
    drawn = Drawn(seed)
    size, nothing = len(drawn.groups), np.zeros(len(drawn.units), dtype=np.int64)
    worth = {(u, tuple(row.tolist())): drawn.worth(u, row) for u in drawn.units.tolist() for row in drawn.fillings(u)}
    best = nothing.copy()
    for (unit, _), paid in worth.items():
        best[unit] = max(best[unit], paid)
    priced = drawn.pricing.price(drawn.pays, nothing, drawn.units, None)
    assert (priced.most >= best).all()
    fits = {(u, tuple(counts_of(f, size).tolist())) for u, f in priced.fillings}
    if fits <= worth.keys():  # else a bundle stands for those that are alike, of which there are more together
        assert priced.most.tolist() == best.tolist()
    bound = drawn.pricing.bound(drawn.pays, drawn.units)
    for least in (-3, 0, 7):
        listed = drawn.pricing.within(drawn.pays, nothing + least, drawn.units, 10_000)
        assert listed is not None
        found = {(u, tuple(counts_of(f, size).tolist())) for u, f, _ in listed}
        assert found == {key for key, paid in worth.items() if paid > least}
    assert all(paid <= bound[unit] for (unit, _), paid in worth.items())


@pytest.mark.parametrize("seed", seeds(40))
def test_a_search_cut_short_bounds_all_fillings(seed: int) -> None:
    """Of many beginnings only one of each unit is followed."""
    drawn = Drawn(seed)
    nothing = np.zeros(len(drawn.units), dtype=np.int64)
    most = drawn.pricing.price(drawn.pays, nothing, drawn.units, 1).most
    for unit in drawn.units.tolist():
        assert max((drawn.worth(unit, row) for row in drawn.fillings(unit)), default=0) <= most[unit]


def counted(given: Instance) -> tuple[State, tuple[Weighted, ...]]:
    """Return what runs in a round, and its costs; without any where fillings do not count them all."""
    state = open_state(compile_problem(given))
    weighted = weighted_costs(state.problem)
    return state, weighted if all(isinstance(w.cost, COUNTED) for w in weighted) else ()


def generated(mix: CostMix) -> tuple[int, int, Prices]:
    """Generate fillings until none is new; return the cost of the mix, and the best bound with its prices."""
    best: tuple[int, Prices] | None = None
    for _ in range(200):
        model = mix.model()
        solution = relaxed(model)
        prices = mix.master.cost_prices(model, solution.duals)
        bound, new = mix.price(prices)
        if best is None or bound > best[0]:
            best = bound, prices
        if not new:
            return mix.fixed + int(solution.bound), *best
    raise AssertionError("fillings without end")


def check_bounds(mix: CostMix, least: int) -> tuple[int, Prices]:
    """No bound is above ``least``, at whatever prices, and the last is close to the cost of the mix."""
    rng, model = np.random.default_rng(0), mix.model()
    for scale in (0, 10, 1e4, 1e7):
        assert mix.price(mix.master.cost_prices(model, rng.uniform(-scale, scale, model.num_rows)))[0] <= least
    costs, bound, prices = generated(mix)
    assert bound <= least
    assert bound <= costs + 1
    return bound, prices


def check_end(mix: CostMix, state: State, plan: Allocation, weighted: tuple[Weighted, ...], prices: Prices) -> None:
    """All of the best plan is near, its cost is that of the program, whose optimum is no more, and a plan or less."""
    problem, least = state.problem, cost(state.problem, plan, weighted)
    near = mix.near(prices, least, 100_000)
    assert near is not None
    spreads, fillings = (list(dict.fromkeys([*found, *own])) for found, own in zip(near, mix.held(plan), strict=True))
    assert set(mix.held(plan)[1]) <= set(near[1])
    model = mix.program_of(spreads, fillings)
    values = mix.values(plan, spreads, fillings)
    assert model.is_feasible(values)
    assert mix.fixed + model.objective_value(values) <= least
    solution = solved(model)
    assert mix.fixed + solution.objective <= least
    made = plan_of(state, mix, spreads, fillings, solution.values)
    assert value(problem, made) < value(problem, plan) or cost(problem, made, weighted) >= least


@given(round_=filling_rounds() | rounds(changes=False))
def test_bounds_hold_and_plans_are_near(round_: Instance) -> None:
    """Against brute force: of rounds with sockets, shares, gangs and running jobs."""
    state, weighted = counted(round_)
    _, least, plan = optimum(state.problem)
    try:
        mix = CostMix(state, weighted, plan, None, spend)
    except Unsupported:
        return
    _, prices = check_bounds(mix, least)
    check_end(mix, state, plan, weighted, prices)


def made(seed: int) -> Instance:
    """Rounds too large for brute force, small enough for ``counts``."""
    spec = ("cubemesh", "islands", "uniform", "contention", "varied", "gangs")[seed % 6]
    gpus = 8 if spec in ("cubemesh", "islands") else 4
    return generate(spec, jobs=10 - gpus // 2, nodes=2 + seed % 2, gpus=gpus, seed=seed)


@pytest.mark.parametrize("seed", seeds(24))
def test_bounds_hold_at_any_prices(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against ``counts``, with spreads listed, and packed where there are too many of them."""
    best = solve(made(seed), method="counts", time_limit_s=60)
    state, weighted = counted(made(seed))
    plan = allocation_of(best, state.problem)
    least = best.levels[1].objective if best.status == "optimal" else cost(state.problem, plan, weighted)
    mix = CostMix(state, weighted, plan, None, spend)
    bound, prices = check_bounds(mix, least)
    if best.status == "optimal":
        check_end(mix, state, plan, weighted, prices)
    monkeypatch.setattr("placeopt.formulations.fillings.spreads.MOST_SPREADS", -1)
    packed = CostMix(state, weighted, plan, None, spend)
    assert check_bounds(packed, least)[0] <= bound + 1
    if any(spread.crossings for spread in mix.program):
        assert packed.near(prices, least, 100_000) is None


def test_a_cut_tells_apart_jobs_that_cost_alike() -> None:
    """One of eight cores and four of two are worth alike: together, the four keep to a price of cores on their node."""
    jobs = [job("large", cpu_millicores=8000), *(job(f"small{i}", cpu_millicores=2000) for i in range(4))]
    given = instance(1, jobs, machines=[two_socket_machine("x", 4).model_copy(update={"cpu_millicores": 8000})])
    state, weighted = counted(given)
    plan, made = allocation_of(solve(given), state.problem), Fillings(state.problem)
    cut = made.cut(made.groups.demand[:, 0] * made.master.scale)
    mix = CostMix(state, weighted, plan, cut, spend)
    spreads, fillings = (list(found) for found in mix.held(plan))
    assert value(state.problem, plan) == 4
    assert mix.program_of(spreads, fillings).is_feasible(mix.values(plan, spreads, fillings))


def test_jobs_that_have_to_meet_are_counted() -> None:
    """By hand: three jobs of a kind and one of another on two nodes of two GPUs: two of the kind meet."""
    kinds = [("a", "a", 5), ("a", "b", 1)]
    slow = [Slowdown(profile=p, beside=q, **{f"{at}_thousandths": e for at in LEVELS}) for p, q, e in kinds]
    jobs = [job(f"j{i}", profile="b" if i == 3 else "a") for i in range(4)]
    given = instance(2, jobs, machines=[two_socket_machine("x", 2)], slowdowns=slow)
    best = solve(given, method="counts", time_limit_s=60)
    state, weighted = counted(given)
    mix = CostMix(state, weighted, allocation_of(best, state.problem), None, spend)
    pair = next(w.weight for w in weighted if isinstance(w.cost, Interference))
    assert generated(mix)[1] == best.levels[1].objective == (5 + 5 + 1) * pair


def test_two_bad_neighbours_are_kept_apart(engine: Engine) -> None:
    """
    Worked by combination: one node, two sockets of two GPUs; a and b slow each other by 300 each in one, c does not.

    Each of a and b in a socket of its own, c beside one of them: interference 0. Fragmentation: one GPU is free in its
    socket and node, 1 + 1 = 2 (no rack). All three in other ways: a and b together cost 600.
    """
    slow = Slowdown(profile="x", beside="x", gpu_thousandths=300, switch_thousandths=300, socket_thousandths=300)
    jobs = [job("a", profile="x", value=1), job("b", profile="x", value=1), job("c", value=1)]
    policy = Policy(weights=Weights(communication=0, interference=500, fragmentation=500))
    of = instance(1, jobs, machines=[sockets(2, 2)], policy=policy, slowdowns=(slow,))
    plan = engine.solve(of, method="filling-costs")
    assert plan.status == "optimal"
    assert (plan.costs["interference"].raw, plan.costs["fragmentation"].raw) == (0, 2)
    assert plan.stages[-1].name == "filling-costs"


def test_paths_of_gangs() -> None:
    """Two workers of two GPUs share a node where they may; of three, one is on another; a rack holds two."""
    asks = [{"workers": 2}, {"workers": 2, "workers_per_node_max": 1}, {"workers": 1}, {"workers": 3}]
    asks.append({"workers": 3, "splits": [Split(level="rack", domains=1)]})  # no rack has more than one node
    jobs = [job(f"j{i}", gpus=2, communication=Communication(weight=1), **ask) for i, ask in enumerate(asks)]
    problem = compile_problem(instance(3, jobs, machines=[two_socket_machine("x", 4)], racks=3))
    across = problem.topology.min_node_distance
    together = np.zeros(len(problem.options), dtype=bool)
    paths = gang_paths(State(problem), together, lambda: None)
    of_job = [int(paths[problem.options_of(j)[0]]) for j in range(len(jobs))]
    three = of_job.pop(3)  # a bound: each worker is as far from the others as where most of them find room
    assert of_job == [172, 4 + 4 * across, 0, -1]
    assert 172 + 2 < three <= 172 + 2 + 8 * across
    second = problem.options_of(1)[0]
    assert gang_paths(State(problem), ~together, lambda: None)[second] == 4 * across  # without the two inside a node


@given(round_=filling_rounds())
def test_the_proven_cost_is_that_of_brute_force(engine: Engine, round_: Instance) -> None:
    """What is proven is the least cost at the best value."""
    plan = engine.solve(round_, method="filling-costs", time_limit_s=60)
    value_, cost_, _ = optimum(compile_problem(round_))
    if plan.status == "optimal":
        assert [level.objective for level in plan.levels] == [value_, cost_][: len(plan.levels)]


@pytest.mark.parametrize(("spec", "seed"), [("cubemesh", 0), ("cubemesh", 1), ("uniform", 0), ("uniform", 5)])
def test_other_formulations_prove_the_same(spec: str, seed: int, engine: Engine) -> None:
    """Rounds too large for brute force, small enough for ``counts``."""
    of = generate(spec, jobs=5, nodes=4, gpus=8, seed=seed)
    plans = [engine.solve(of, method=method, time_limit_s=60.0, threads=1) for method in ("filling-costs", "counts")]
    assert [plan.status for plan in plans] == ["optimal", "optimal"]
    assert plans[0].levels == plans[1].levels


def test_deterministic_runs_are_equal(engine: Engine) -> None:
    """Work, not the clock, ends every solve; ties are broken by position."""
    of = generate("cubemesh", jobs=10, nodes=4, gpus=8, seed=2)
    plans = [engine.solve(of, method="filling-costs", deterministic=True, time_limit_s=60.0) for _ in range(2)]
    assert plans[0].model_dump_json() == plans[1].model_dump_json()
    assert plans[0].status == "optimal"


def test_a_deadline_keeps_the_best_plan(engine: Engine) -> None:
    """Pricing asks the clock too."""
    of = generate("uniform", jobs=60, nodes=12, gpus=8, seed=1)
    plan = engine.solve(of, method="filling-costs", time_limit_s=0.3)
    assert len(plan.placements) + len(plan.unplaced) == len(of.jobs)
    assert plan.levels[1].bound is None or plan.levels[1].bound <= plan.levels[1].objective


def test_the_stage_proves_more_than_the_relaxation() -> None:
    """Of a round that no other stage closes, stage ``filling-costs`` proves more than the relaxation of the cost."""
    plan = solve(generate("uniform", jobs=60, nodes=12, gpus=4, seed=5), method="search", time_limit_s=8)
    stages = {stage.name: stage for stage in plan.stages}
    assert stages["filling-costs"].outcome in ("proved", "improved")
    assert stages["filling-costs"].bound > stages["cost-relaxation"].bound


def test_a_plan_without_fillings_is_a_hint(engine: Engine) -> None:
    """A job without GPUs only spreads over nodes; CP-SAT refused the values of its plan, which were no integers."""
    weights = Weights(communication=360, interference=120, fragmentation=160, horus=200, resource=160)
    policy = Policy(weights=weights, fragmentation=Fragmentation(form="fgd"))
    given = instance(1, [job("j", gpus=0, value=0, cost_milli=2000)], policy=policy)
    plan = engine.solve(given, method="filling-costs", deterministic=True)
    (stage,) = (one for one in plan.stages if one.name == "filling-costs")
    assert "2 integer programs" in stage.detail
    assert "failed" not in stage.detail


def test_costs_that_fillings_do_not_count() -> None:
    """A round whose shares of GPUs do not bind, or without costs, has nothing to bound."""
    problem = compile_problem(generate("fractions", jobs=8, nodes=2, gpus=2, seed=1))
    with pytest.raises(Unsupported, match="paths, interference"):
        CostMix(State(problem), (), State(problem).allocation(), None, spend)


def test_disturbance_counts_jobs_on_several_nodes_beside_others_only() -> None:
    """By hand: of two profiles one disturbs; on several nodes it meets jobs on one node, but none like itself."""
    slow = [Slowdown(profile="a", beside="a", **{f"{at}_thousandths": 5 for at in LEVELS})]
    jobs = [job("j", profile="a"), job("k", profile="b")]
    disturbance = disturbance_of(compile_problem(instance(1, jobs, slowdowns=slow)), 10)
    assert disturbance.pair.tolist() == [[100, 100], [100, 0]]
    assert sorted(disturbance.profile.tolist())[-1] == 0
    assert disturbance.of_gangs(disturbance.profile).max() == 1
