"""Splits in layers, link thresholds level by level and queues, exactly, by every exact method."""

import pytest

from placeopt import Engine, violations
from placeopt.build import instance, job, machine, node
from placeopt.model import Domain, Instance, Policy, Queue, Quota, Split, Weights

EXACT = ("counts", "counts-cpsat", "assignment", "assignment-highs")
each_method = pytest.mark.parametrize("method", EXACT)


def best(engine: Engine, round_: Instance, method: str) -> tuple[int, dict[str, int]]:
    """The greatest value, and how many workers of the first job each node has; proven, and read by the referee."""
    plan = engine.solve(round_.model_copy(update={"policy": priceless(round_.policy)}), method=method, time_limit_s=60)
    assert plan.status == "optimal"
    assert violations(round_.model_copy(update={"policy": priceless(round_.policy)}), plan) == []
    held = plan.placement_of(round_.jobs[0].id)
    return plan.levels[0].objective, {} if held is None else {at.node: len(at.workers) for at in held.assignments}


def priceless(policy: Policy) -> Policy:
    """Let no cost count."""
    return policy.model_copy(update={"weights": Weights(communication=0, interference=0, fragmentation=0)})


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


@each_method
def test_96_workers_as_2_x_48_and_6_x_16(method: str, engine: Engine) -> None:
    """Three racks of 16 GPUs in each of two rows are needed; a third row and a fourth rack may stay empty."""
    value, nodes = best(engine, rows_of_racks(4, 1, 3), method)
    assert value == 1
    assert list(nodes.values()) == [8] * 12


@pytest.mark.parametrize(
    ("racks", "gpus"),
    [
        ((2, 4), 8),  # six racks, but 32 and 64 GPUs in the rows
        ((2, 2, 2), 8),  # six racks, but in three rows
        ((3, 3), 7),  # 14 GPUs a rack
    ],
)
@pytest.mark.parametrize("method", EXACT[:2])
def test_too_few_racks_a_row_place_nothing(racks: tuple[int, ...], gpus: int, method: str, engine: Engine) -> None:
    """One level would do by itself; both together do not."""
    assert best(engine, rows_of_racks(*racks, gpus=gpus), method) == (0, {})


@each_method
@pytest.mark.parametrize(
    ("machine_mbps", "rack_mbps", "row_mbps", "placed"),
    [(268, 268, 268, True), (266, 268, 268, False), (268, 266, 268, False), (268, 268, 266, False)],
)
def test_links_of_every_level_have_their_threshold(
    machine_mbps: int, rack_mbps: int, row_mbps: int, placed: bool, method: str, engine: Engine
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
    assert best(engine, round_, method)[0] == placed


@each_method
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
    fields: dict[str, object], placed: int, method: str, engine: Engine
) -> None:
    """Six jobs of a GPU and four cores in a queue, two nodes of four GPUs and 32 cores."""
    policy = Policy(queues=(Queue.model_validate({"id": "q", **fields}),))
    jobs = [job(f"{i}", cpu_millicores=4000, queue="q") for i in range(6)]
    assert best(engine, instance(2, jobs, policy=policy), method)[0] == placed
