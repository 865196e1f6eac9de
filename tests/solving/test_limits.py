"""The time limit holds in every mode, and a plan says whether it cut the round short."""

import random
from functools import cache
from itertools import combinations

import pytest

from helpers.counted_clock import counted_clock
from made_rounds import generate
from placeopt import Engine, Instance, Plan, build, solve, violations
from placeopt.model import Communication, Edge, Link

SIDE, LIMIT_S, STEP_S = 4, 2.0, 0.01


@cache
def mesh_of_workers() -> Instance:
    """Return a round of one gang: 16 workers with 70 edges, on one machine whose 16 GPUs form a mesh."""
    at = [(row, column) for row in range(SIDE) for column in range(SIDE)]
    links = [
        Link(gpus=(a, b))
        for a, b in combinations(range(len(at)), 2)
        if abs(at[a][0] - at[b][0]) + abs(at[a][1] - at[b][1]) == 1
    ]
    pairs = random.Random(5).sample(list(combinations(range(len(at)), 2)), 70)
    edges = tuple(Edge(ranks=pair, weight=1 + i % 9) for i, pair in enumerate(pairs))
    gang = build.gang("gang", workers=len(at), communication=Communication(weight=1, edges=edges))
    return build.instance(1, [gang], machines=[build.machine(gpus=len(at), links=tuple(links))])


@pytest.mark.parametrize("method", ["auto", "stranding", "drb"])
def test_the_clock_ends_every_heuristic(method: str) -> None:
    """Also in deterministic mode, where it is a guard: there ranks were improved without end, 16.5 s of 2."""
    made = mesh_of_workers()
    with counted_clock(STEP_S) as clock:
        plan = solve(made, method=method, time_limit_s=LIMIT_S, deterministic=True, isolation="thread")
    assert clock.readings < 2 * LIMIT_S / STEP_S
    assert plan.limit == "time"
    assert violations(made, plan) == []
    assert [placed.job for placed in plan.placements] == ["gang"]


def solved(engine: Engine, round_: Instance, method: str, readings: int) -> Plan:
    """Solve by a clock whose time is over after so many readings; 0 for a clock that stands still."""
    with counted_clock(1 / readings if readings else 0):
        plan = engine.solve(round_, method=method, time_limit_s=1 if readings else 60, threads=1)
    assert violations(round_, plan) == []
    return plan


@pytest.mark.parametrize("method", ["auto", "search", "fillings", "filling-costs", "gpu-patterns", "stranding"])
def test_a_large_round_is_cut_by_the_clock_with_a_plan(method: str, engine: Engine) -> None:
    """
    No error, jobs placed, and the limit is named.

    Three methods end before the clock if it is slow: fillings of parts, which bound the cost alone, have nothing to do
    while the value is open, nor have GPU patterns where shares nest, and greedy ends with its queue.
    """
    round_ = generate("varied", jobs=2000, nodes=200, gpus=4, seed=2)
    ends_alone = method in ("filling-costs", "gpu-patterns", "stranding")
    plans = [solved(engine, round_, method, readings) for readings in (50, 300, 0 if ends_alone else 3000)]
    assert all(len(plan.placements) > 100 for plan in plans)
    assert [plan.limit for plan in plans] == ["time", "time", "none" if ends_alone else "time"]


@pytest.mark.parametrize(("name", "method", "most"), [("mesh", "stranding", 4000), ("gangs", "counts", 0)])
def test_a_plan_that_no_limit_cut_is_that_of_more_time(name: str, method: str, most: int, engine: Engine) -> None:
    """Ranks that got a quarter of the time, and a model that was not built in half of it, left no limit in the plan."""
    round_ = mesh_of_workers() if name == "mesh" else generate("gangs", jobs=12, nodes=6, gpus=4, seed=0)
    longest = solved(engine, round_, method, most)
    for readings in (100, 200, 400, 1000):
        plan = solved(engine, round_, method, readings)
        assert plan.limit == "time" or plan.levels == longest.levels
