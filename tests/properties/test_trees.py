"""Trees of groups, segments and spread: exact models, greedy and the referee against brute force over the records."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from helpers.night import nightly
from helpers.plans import plan_for
from helpers.tree_oracle import TreeOracle, layout_of
from placeopt import Instance, audit, build
from placeopt.check import violations
from placeopt.live_cluster import Engine
from placeopt.solving import METHODS
from strategies import Choice, choices, make_large_tree_round, seeded, tree_rounds

EXACT = ("counts", "counts-cpsat", "assignment")
OTHERS = ("auto", "search", "fillings", "gpu-patterns", "filling-costs", "swaf")
OTHERS = [name for name in METHODS if name not in EXACT and "cbc" not in name]


@given(round_=st.one_of(tree_rounds(), tree_rounds(running=True)), other=st.sampled_from(OTHERS))
def test_exact_models_find_what_brute_force_finds(engine: Engine, round_: Instance, other: str) -> None:
    """
    The best value, and at it the least that preferences cost where nothing else costs.

    Of every other method the plan is lawful and what it says of the best value is true.
    """
    value, prefer = TreeOracle(round_).best()
    for method in EXACT:
        plan = engine.solve(round_, method=method, time_limit_s=20)
        assert (plan.levels[0].objective, plan.levels[0].bound) == (value, value), method
        if set(plan.costs) == {"prefer"}:
            assert (plan.costs["prefer"].raw, plan.status) == (prefer, "optimal"), method
    plan = engine.solve(round_, method=other, time_limit_s=1, deterministic=True)
    found = plan.levels[0]
    assert violations(round_, plan) + audit(round_, plan) == [], other
    assert found.objective <= value <= (value if found.bound is None else found.bound), other
    assert plan.status != "optimal" or found.objective == value, other
    event(f"another method finds {'all' if found.objective == value else 'less'}")


@given(round_=st.one_of(tree_rounds(), tree_rounds(running=True)), choice=choices)
def test_the_referee_judges_as_brute_force_does(round_: Instance, choice: Choice) -> None:
    """Of any layout of one job's workers, those that run where they are: who is missing, and how the others lie."""
    oracle = TreeOracle(round_)
    job = choice.pick(round_.jobs)
    held = oracle.running.get(job.id)
    option = choice.pick(job.options) if held is None else job.option(held.option)
    now = layout_of(option, held)
    gpus = {node: list(range(count)) for node, count in oracle.gpus.items()}
    cpu = dict(oracle.cpu)
    for assignment in (a for running in round_.running for a in running.assignments):
        cpu[assignment.node] -= assignment.cpu_millicores
        gpus[assignment.node] = [gpu for gpu in gpus[assignment.node] if str(gpu) not in assignment.gpus]
    where: list[tuple[str, tuple[int, ...], str]] = []
    for leaf in option.leaves:
        runs = [] if held is None else [a for a in held.assignments if a.group in (None, leaf.id)]
        where += [(a.node, worker.gpus, leaf.id) for a in runs for worker in a.workers]
        for _ in range(choice.number(0, leaf.workers - now[leaf.id].total())):
            node = choice.pick(tuple(gpus))
            if len(gpus[node]) >= leaf.demand.gpus and cpu[node] >= leaf.demand.cpu_millicores:
                where.append((node, tuple(gpus[node].pop(0) for _ in range(leaf.demand.gpus)), leaf.id))
                cpu[node] -= leaf.demand.cpu_millicores
    if not where:
        return
    places = where if option.groups else [(node, held_gpus) for node, held_gpus, _ in where]
    placed = build.placement(job, places, option=option.id)
    layout = layout_of(option, placed)
    lawful = layout == now or (oracle.is_lawful(job, option, layout, now) and (held is None or bool(option.groups)))
    found = violations(round_, plan_for(round_, {job.id: placed}))
    assert (found == []) == lawful, found


@pytest.mark.parametrize("seed", nightly(range(100), 0))
def test_larger_rounds_stay_within_their_bounds(engine: Engine, seed: int) -> None:
    """Plans are lawful, and none is worth more than any method's bound, or costs less than its own."""
    round_ = make_large_tree_round(seeded(seed))
    plans = {
        name: engine.solve(round_, method=name, time_limit_s=2, deterministic=True)
        for name in ("auto", "counts", "best-fit")
    }
    best = max(plan.levels[0].objective for plan in plans.values())
    for name, plan in plans.items():
        assert violations(round_, plan) + audit(round_, plan) == [], name
        value, *costs = plan.levels
        assert value.bound is None or best <= value.bound, name
        assert all(cost.bound is None or cost.bound <= cost.objective for cost in costs), name
