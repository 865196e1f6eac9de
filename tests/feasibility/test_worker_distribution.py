"""How workers can lie: single node, splits and uplinks, against the rules themselves on every division of workers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from helpers.small_rounds import Dice
from placeopt import Instance
from placeopt.build import instance, job, machine, node
from placeopt.feasibility.fit import fit, largest
from placeopt.feasibility.free_capacity import free_capacity_of
from placeopt.feasibility.requirement import requirements_of
from placeopt.feasibility.worker_distribution import WorkerDistribution
from placeopt.model import Domain, Split
from placeopt.problem import Placement, State, compile_problem
from placeopt.terms.rules import fits

WORKERS = 5


def random_tree(dice: Dice) -> Instance:
    """Up to 6 nodes with room for 1 to 3 workers under zones and racks, with narrow links, and one job that spreads."""
    domains = [Domain(id=f"z{i}", level="zone", uplink_mbps=_narrow(dice)) for i in range(dice.number(0, 2))]
    domains += [
        Domain(
            id=f"r{i}",
            parent=dice.pick([None, *(d.id for d in domains if d.level == "zone")]),
            uplink_mbps=_narrow(dice),
        )
        for i in range(dice.number(1, 4))
    ]
    boxes = [
        machine(f"m{i}", gpus=0, cpu_millicores=1000 * i, network_bandwidth_mbps=_narrow(dice)) for i in range(1, 4)
    ]
    nodes = [
        node(f"n{i}", dice.pick(boxes).id, domain=dice.pick([None, *(d.id for d in domains)]))
        for i in range(dice.number(2, 6))
    ]
    workers = dice.number(1, WORKERS)
    levels = sorted({d.level for d in domains} | {"node"})
    splits = []
    for level in dice.some(levels):
        count = dice.number(1, 3)
        equal = workers // count if workers % count == 0 and dice.chance(0.4) else None
        splits.append(Split(level=level, domains=count, workers=equal))
    asked = job(
        "j",
        workers=workers,
        gpus=0,
        cpu_millicores=1000,
        network_bandwidth_mbps=dice.pick((0, 100, 200)),
        single_node=dice.chance(0.1),
        workers_per_node_max=dice.maybe(0.3, dice.number(1, 2)),
        splits=tuple(splits),
    )
    return instance(nodes, [asked], machines=boxes, domains=domains)


def _narrow(dice: Dice) -> int | None:
    return dice.maybe(0.5, dice.number(200, 1600, 200))


def divisions(workers: int, nodes: int) -> Iterator[tuple[int, ...]]:
    """Yield all numbers of workers per node that sum to ``workers``."""
    if nodes == 1:
        yield (workers,)
        return
    for first in range(workers + 1):
        for rest in divisions(workers - first, nodes - 1):
            yield (first, *rest)


@pytest.mark.parametrize("seed", range(0, 400, 40))
def test_against_the_rules(seed: int) -> None:
    """The rules are asked about every division; where one is allowed, the layout must name an allowed one."""
    for s in range(seed, seed + 40):
        round_ = random_tree(Dice(np.random.default_rng(s)))
        problem = compile_problem(round_)
        state, option = State(problem), problem.options_of(0)[0]
        workers = int(problem.options.workers[option])

        def allowed(counts: tuple[int, ...], state: State = state, option: int = option) -> bool:
            nodes = tuple(n for n, count in enumerate(counts) for _ in range(count))
            return fits(state, 0, Placement(option, nodes, ()))

        room = free_capacity_of(state, round_.jobs[0])
        found = fit(room, requirements_of(problem, round_.jobs[0]))
        assert (found is not None) == any(allowed(c) for c in divisions(workers, problem.num_nodes)), s
        if found is not None:
            assert allowed(tuple(found.nodes.get(n, 0) for n in range(problem.num_nodes))), s


def test_a_narrow_uplink_by_hand() -> None:
    """
    Racks of 4 places; 6 workers of 100 MB/s; CPU jobs have 25 % of each rack's uplink of 400: min(k_in, 6 - k_in) <= 1.

    So a rack holds 0, 1, 5 or 6 of them, which two racks of 4 places cannot; of 5 workers 4 + 1 they can, and of 4
    not 2 + 2, but all 4 in one rack or 3 + 1.
    """
    domains = [Domain(id=f"r{i}", uplink_mbps=400) for i in range(2)]
    nodes = [node(f"n{i}", domain=f"r{i}") for i in range(2)]
    boxes = [machine(gpus=0, cpu_millicores=4000)]
    asked = job("j", workers=6, gpus=0, cpu_millicores=1000, network_bandwidth_mbps=100)
    round_ = instance(nodes, [asked], machines=boxes, domains=domains)
    problem = compile_problem(round_)
    room, (requirement,) = free_capacity_of(State(problem), asked), requirements_of(problem, asked)
    ways = {}
    for workers in range(1, 7):
        layout = WorkerDistribution(room, requirement.resized(workers), workers, room.workers(requirement))
        ways[workers] = layout.nodes() if layout.fits else None
    assert ways[6] is None
    assert sorted((ways[5] or {}).values()) == [1, 4]
    assert sorted((ways[4] or {}).values()) in ([4], [1, 3])
    assert largest(room, requirement.resized(6).without("gang")) == 5


def test_hundreds_of_nodes_are_quick() -> None:
    """12,000 nodes in 400 racks, 1,000 workers in exactly 100 racks of exactly 10: an answer, and it is exact."""
    domains = [Domain(id=f"r{i}") for i in range(400)]
    nodes = [node(f"n{i}", domain=f"r{i // 30}") for i in range(12_000)]
    asked = job("j", workers=1000, gpus=4, splits=(Split(level="rack", domains=100, workers=10),))
    problem = compile_problem(instance(nodes, [asked], domains=domains))
    room = free_capacity_of(State(problem), asked)
    found = fit(room, requirements_of(problem, asked))
    assert found is not None
    assert sum(found.nodes.values()) == 1000
    racks = np.bincount([n // 30 for n, k in found.nodes.items() for _ in range(k)], minlength=400)
    assert sorted(racks)[-100:] == [10] * 100
