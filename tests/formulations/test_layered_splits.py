"""Splits in layers, link thresholds level by level and queues, exactly, by every route."""

import numpy as np
import pytest

from helpers.differential import ROUTES, Route, solve
from helpers.plan_records import plan_of
from placeopt.build import instance, job, machine, node
from placeopt.check import violations
from placeopt.formulations import decode
from placeopt.linear import ModelBuilder
from placeopt.model import Domain, Instance, Policy, Queue, Quota, Split
from placeopt.problem import compile_problem, open_state
from placeopt.terms import value_expression


def best(round_: Instance, route: Route) -> tuple[int, list[int]]:
    """The greatest value, and the node of every worker of the first job."""
    problem = compile_problem(round_)
    builder = ModelBuilder()
    variables = route.formulation(builder, open_state(problem), ())
    columns, coefficients, constant = value_expression(variables)
    builder.set_objective(columns, coefficients, "max", constant)
    solution = solve(route.solver, builder.build())
    assert solution.status == "optimal"
    assert solution.values is not None
    assert solution.objective is not None
    allocation = decode(variables, np.asarray(solution.values))
    assert violations(round_, plan_of(problem, allocation)) == []
    return solution.objective, [] if allocation[0] is None else list(allocation[0].nodes)


def rows_of_racks(*racks: int, gpus: int = 8) -> Instance:
    """Rows of so many racks of two nodes each, and a gang of 96: 2 x 48 by row, 6 x 16 by rack."""
    domains = [Domain(id=f"row{r}", level="row") for r in range(len(racks))]
    domains += [Domain(id=f"r{r}.{i}", parent=f"row{r}") for r, count in enumerate(racks) for i in range(count)]
    nodes = [
        node(f"n{r}.{i}.{k}", domain=f"r{r}.{i}") for r, count in enumerate(racks) for i in range(count) for k in (0, 1)
    ]
    splits = (Split(level="row", domains=2, workers=48), Split(level="rack", domains=6, workers=16))
    gang = job("gang", workers=96, splits=splits)
    return instance(nodes, [gang], domains=domains, machines=[machine(gpus=gpus)])


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_96_workers_as_2_x_48_and_6_x_16(route: Route) -> None:
    """Three racks of 16 GPUs in each of two rows are needed; a third row and a fourth rack may stay empty."""
    value, nodes = best(rows_of_racks(4, 1, 3), route)
    assert value == 1
    assert sorted(np.bincount(nodes, minlength=16).tolist()) == [0] * 4 + [8] * 12


@pytest.mark.parametrize(
    ("racks", "gpus"),
    [
        ((2, 4), 8),  # six racks, but 32 and 64 GPUs in the rows
        ((2, 2, 2), 8),  # six racks, but in three rows
        ((3, 3), 7),  # 14 GPUs a rack
    ],
)
@pytest.mark.parametrize("route", [route for route in ROUTES if route.name.startswith("counts")], ids=lambda r: r.name)
def test_too_few_racks_a_row_place_nothing(racks: tuple[int, ...], gpus: int, route: Route) -> None:
    """One level would do by itself; both together do not."""
    assert best(rows_of_racks(*racks, gpus=gpus), route) == (0, [])


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
@pytest.mark.parametrize(
    ("machine_mbps", "rack_mbps", "row_mbps", "placed"),
    [(268, 268, 268, True), (266, 268, 268, False), (268, 266, 268, False), (268, 268, 266, False)],
)
def test_links_of_every_level_have_their_threshold(
    machine_mbps: int, rack_mbps: int, row_mbps: int, placed: bool, route: Route
) -> None:
    """
    Four workers of 100 MB/s on two nodes of two GPUs in two rows: min(2, 2) = 2 leave the node, the rack and the row.
    75 % of 268 is 201, enough for 200; of 266 it is 199.
    """
    domains = [Domain(id=f"row{r}", level="row", uplink_mbps=row_mbps) for r in (0, 1)]
    domains += [Domain(id=f"r{r}", parent=f"row{r}", uplink_mbps=rack_mbps) for r in (0, 1)]
    gang = job("gang", workers=4, network_bandwidth_mbps=100)
    machines = [machine(gpus=2, network_bandwidth_mbps=machine_mbps)]
    round_ = instance([node("a", domain="r0"), node("b", domain="r1")], [gang], domains=domains, machines=machines)
    assert best(round_, route)[0] == placed


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
@pytest.mark.parametrize(
    ("fields", "placed"),
    [
        ({"quota": Quota(gpu_milli=2000)}, 2),
        ({"quota": Quota(gpu_milli=2000), "borrow": Quota(gpu_milli=1999)}, 3),
        ({"dominant_share_percent": 25}, 2),  # of 8 GPUs
        ({"dominant_share_percent": 25, "borrow_percent": 13}, 3),  # 38 % of 8000 is 3040
        ({"quota": Quota(gpu_milli=4000), "dominant_share_percent": 13}, 1),  # the smaller of the two: 1040
        ({"quota": Quota(cpu_millicores=9000)}, 2),  # 4000 a job
        ({"dominant_share_percent": 20}, 1),  # 1600 of 8000 GPU-milli; 12,800 of 64,000 millicores would be three jobs
    ],
)
def test_queues_hold_their_quota_and_share_and_what_they_borrow(
    fields: dict[str, object], placed: int, route: Route
) -> None:
    """Six jobs of a GPU and four cores in a queue, two nodes of four GPUs and 32 cores."""
    policy = Policy(queues=(Queue.model_validate({"id": "q", **fields}),))
    jobs = [job(f"{i}", cpu_millicores=4000, queue="q") for i in range(6)]
    assert best(instance(2, jobs, policy=policy), route)[0] == placed
