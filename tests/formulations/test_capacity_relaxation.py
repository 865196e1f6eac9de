"""How many jobs there is room for: by hand. That it bounds is for ``differential``."""

import numpy as np
import pytest

from helpers.relaxations import solved
from placeopt.build import instance, job, machine, node
from placeopt.formulations import build_capacity_relaxation
from placeopt.model import Domain, Instance, Job, Policy, Split
from placeopt.problem import State, compile_problem


def worth(round_: Instance) -> int:
    """Value of the best capacity relaxation."""
    capacity_relaxation = build_capacity_relaxation(State(compile_problem(round_)))
    solution = solved(capacity_relaxation.model())
    assert solution.bound == solution.objective
    return int(solution.objective)


def sized(*gpus: int, **fields: object) -> list[Job]:
    """Jobs of one worker with so many GPUs, each worth as much."""
    return [job(f"j{i}", gpus=count, value=count, **fields) for i, count in enumerate(gpus)]


@pytest.mark.parametrize(
    ("gpus", "value"),
    [
        ((4, 4, 1, 1), 10),  # two nodes of 8 GPUs: everything
        ((5, 5, 5), 10),  # each node has room for one of five, though six of sixteen GPUs are left
        ((8, 5, 5), 13),
        ((3, 3, 3, 3, 3), 12),  # two a node
        ((8, 8, 1), 16),
    ],
)
def test_nodes_have_room_for_so_many_of_a_size(gpus: tuple[int, ...], value: int) -> None:
    """What a knapsack on 16 GPUs would not see."""
    assert worth(instance(2, sized(*gpus), machines=[machine(gpus=8)])) == value


def test_gpus_have_room_for_so_many_shares() -> None:
    """Two GPUs take one share of 600 each, and 400 beside it."""
    jobs = [*sized(1, 1, 1, gpu_milli=600), *(job(f"k{i}", gpu_milli=400, value=1) for i in range(3))]
    assert worth(instance(1, jobs, machines=[machine(gpus=2)])) == 4


@pytest.mark.parametrize(("split", "value"), [((), 3), ((Split(level="rack", domains=1),), 2)])
def test_racks_have_room_for_so_many_parts(split: tuple[Split, ...], value: int) -> None:
    """Two racks of 8 GPUs: three gangs of 5 anywhere, but one in each rack."""
    racks = [Domain(id=name, level="rack") for name in ("a", "b")]
    nodes = [node(f"{rack.id}{i}", domain=rack.id) for rack in racks for i in range(2)]
    gangs = [job(f"g{i}", workers=5, gpus=1, value=1, splits=split) for i in range(3)]
    assert worth(instance(nodes, gangs, domains=racks)) == value


def test_an_uneven_split_may_lose_a_unit_to_rounding() -> None:
    """5 workers in two racks of 4 GPUs each: 4 + 1 is lawful, so no row may forbid it, not even beside a 3."""
    racks = [Domain(id=name, level="rack") for name in ("a", "b")]
    nodes = [node(f"n{rack.id}", domain=rack.id) for rack in racks]
    spread = job("spread", workers=5, gpus=1, value=5, splits=(Split(level="rack", domains=2),))
    beside = job("beside", workers=3, gpus=1, value=3, splits=(Split(level="rack", domains=1),))
    assert worth(instance(nodes, [spread, beside], domains=racks)) == 8


def test_among_the_most_valuable_the_cheapest_is_chosen() -> None:
    """Room for one of two jobs that are worth as much, at different prices; negative ones are prices too."""
    problem = compile_problem(instance(1, [job("a", gpus=4, value=7), job("b", gpus=4, value=7, cpu_millicores=1)]))
    capacity_relaxation = build_capacity_relaxation(State(problem))
    for option_cost, expected in (([3.0, 2.0], [0, 1]), ([-5.0, -1.0], [1, 0])):
        assert solved(capacity_relaxation.model(np.array(option_cost), 7)).values.tolist() == expected


def test_a_share_takes_a_whole_gpu() -> None:
    """Only what is idle counts; in exclusive mode a share takes a whole GPU."""
    policy = Policy(share_mode="exclusive")
    assert worth(instance(1, sized(1, 1, 1, gpu_milli=300), machines=[machine(gpus=2)], policy=policy)) == 2
