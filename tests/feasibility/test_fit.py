"""How workers can lie: single node, splits and uplinks, against the rules themselves on every division of workers."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given

from placeopt import feasibility
from placeopt.build import instance, job, machine, node
from placeopt.feasibility import free_capacity_of, largest, requirements_of
from placeopt.model import Domain, Instance, Split
from placeopt.problem import Placement, State, compile_problem
from placeopt.terms.rules import fits
from strategies import Choice, strategy
from strategies.jobs import make_splits

WORKERS = 5


def make_spread_job(choice: Choice) -> Instance:
    """Up to 6 nodes with room for 1 to 3 workers under zones and racks, with narrow links, and one job that spreads."""

    def narrow() -> int | None:
        return choice.maybe(0.5, 200, 1600, 200)

    domains = [Domain(id=f"z{i}", level="zone", uplink_mbps=narrow()) for i in range(choice.number(0, 2))]
    zones = [None, *(zone.id for zone in domains)]
    domains += [Domain(id=f"r{i}", parent=choice.pick(zones), uplink_mbps=narrow()) for i in range(choice.number(1, 4))]
    boxes = [machine(f"m{i}", gpus=0, cpu_millicores=1000 * i, network_bandwidth_mbps=narrow()) for i in range(1, 4)]
    at = [None, *(domain.id for domain in domains)]
    nodes = [node(f"n{i}", choice.pick(boxes).id, domain=choice.pick(at)) for i in range(choice.number(2, 6))]
    workers = choice.number(1, WORKERS)
    levels = sorted({domain.level for domain in domains} | {"node"})
    asked = job(
        "j",
        workers=workers,
        gpus=0,
        cpu_millicores=1000,
        network_bandwidth_mbps=choice.pick((0, 100, 200)),
        single_node=choice.chance(0.1),
        workers_per_node_max=choice.maybe(0.3, 1, 2),
        splits=make_splits(choice, levels, workers, fixed=True),
    )
    return instance(nodes, [asked], machines=boxes, domains=domains)


def fit_of(round_: Instance) -> feasibility.Fit | None:
    """How the only job lies, on the idle cluster."""
    problem = compile_problem(round_)
    return feasibility.fit(free_capacity_of(State(problem), round_.jobs[0]), requirements_of(problem, round_.jobs[0]))


def divisions(workers: int, nodes: int) -> Iterator[tuple[int, ...]]:
    """Yield all numbers of workers per node that sum to ``workers``."""
    if nodes == 1:
        yield (workers,)
        return
    for first in range(workers + 1):
        for rest in divisions(workers - first, nodes - 1):
            yield (first, *rest)


@given(round_=strategy(make_spread_job)())
def test_against_the_rules(round_: Instance) -> None:
    """The rules are asked about every division; where one is allowed, the layout must name an allowed one."""
    problem = compile_problem(round_)
    state, option = State(problem), problem.options_of(0)[0]

    def allowed(counts: tuple[int, ...]) -> bool:
        nodes = tuple(n for n, count in enumerate(counts) for _ in range(count))
        return fits(state, 0, Placement(option, nodes, ()))

    found = fit_of(round_)
    workers = int(problem.options.workers[option])
    assert (found is not None) == any(allowed(c) for c in divisions(workers, problem.num_nodes))
    if found is not None:
        assert allowed(tuple(found.nodes.get(n, 0) for n in range(problem.num_nodes)))


@pytest.mark.parametrize(("workers", "ways"), [(4, [[4], [1, 3]]), (5, [[1, 4]]), (6, [])])
def test_a_narrow_uplink_by_hand(workers: int, ways: list[list[int]]) -> None:
    """
    Racks of 4 places; workers of 100 MB/s; CPU jobs have 25 % of each rack's uplink of 400: min(k_in, k - k_in) <= 1.

    Of 6 a rack holds 0, 1, 5 or 6, which two racks of 4 places cannot; of 5 workers 4 + 1 they can, and of 4 not 2 + 2,
    but all 4 in one rack or 3 + 1.
    """
    domains = [Domain(id=f"r{i}", uplink_mbps=400) for i in range(2)]
    nodes = [node(f"n{i}", domain=f"r{i}") for i in range(2)]
    asked = job("j", workers=workers, gpus=0, cpu_millicores=1000, network_bandwidth_mbps=100)
    round_ = instance(nodes, [asked], machines=[machine(gpus=0, cpu_millicores=4000)], domains=domains)
    found = fit_of(round_)
    assert (found is None) == (not ways)
    assert found is None or sorted(found.nodes.values()) in ways
    problem = compile_problem(round_)
    (requirement,) = requirements_of(problem, asked)
    assert largest(free_capacity_of(State(problem), asked), requirement.without("gang")) == min(workers, 5)


def test_hundreds_of_nodes() -> None:
    """12,000 nodes in 400 racks, 1,000 workers in exactly 100 racks of exactly 10: an answer, and it is exact."""
    domains = [Domain(id=f"r{i}") for i in range(400)]
    nodes = [node(f"n{i}", domain=f"r{i // 30}") for i in range(12_000)]
    asked = job("j", workers=1000, gpus=4, splits=(Split(level="rack", domains=100, workers=10),))
    found = fit_of(instance(nodes, [asked], domains=domains))
    assert found is not None
    racks = np.bincount([n // 30 for n, k in found.nodes.items() for _ in range(k)], minlength=400)
    assert sorted(racks)[-101:] == [0] + [10] * 100
