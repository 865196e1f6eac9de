"""Whether GPU share alone decides what fits: by hand, one short of it."""

from typing import Any

import pytest

from placeopt.build import instance, job, machine, running
from placeopt.model import Instance, Policy, Queue
from placeopt.problem import State, compile_problem
from placeopt.problem.free_capacity import only_shares_bind

MACHINE = machine(gpus=4, cpu_millicores=8_000, memory_mib=4_096)


def binds_alone(of: Instance) -> bool:
    return only_shares_bind(State(compile_problem(of)))


@pytest.mark.parametrize(
    ("fields", "alone"),
    [
        ({"cpu_millicores": 2_000, "memory_mib": 1_024}, True),
        ({"cpu_millicores": 2_001}, False),
        ({"memory_mib": 1_025}, False),
        ({"gpus": 2, "cpu_millicores": 4_000}, True),
        ({"gpus": 2, "cpu_millicores": 4_001}, False),
        ({"gpu_milli": 500, "gpu_memory_mib": 8_192, "cpu_millicores": 1_000}, True),
        ({"gpu_milli": 500, "gpu_memory_mib": 8_193}, False),
        ({"gpu_milli": 500, "cpu_millicores": 1_001}, False),
        ({"gpus": 0, "cpu_millicores": 1}, False),
        ({"workers": 2, "network_bandwidth_mbps": 5}, False),
    ],
)
def test_by_hand(fields: dict[str, Any], *, alone: bool) -> None:
    """A node of four GPUs of 16 GiB, eight cores and 4 GiB: two cores and 1 GiB for each GPU."""
    assert (
        binds_alone(instance(2, [job("a", **{"cpu_millicores": 0, "memory_mib": 0} | fields)], machines=[MACHINE]))
        is alone
    )


def test_what_runs_counts() -> None:
    """Three cores are taken by a job of one GPU: five are left for three GPUs."""
    light, heavy = job("a", cpu_millicores=1_666, memory_mib=0), job("b", cpu_millicores=1_667, memory_mib=0)
    here = job("here", cpu_millicores=3_000, memory_mib=0)
    for waiting, alone in ((light, True), (heavy, False)):
        runs = [running(here, [("n0", [0])])]
        assert binds_alone(instance(1, [waiting, here], machines=[MACHINE], running=runs)) is alone


def test_queues_bind_too() -> None:
    """A queue with a limit may keep out what fits."""
    policy = Policy(queues=(Queue(id="q"),))
    waiting = job("a", cpu_millicores=0, memory_mib=0, queue="q")
    assert not binds_alone(instance(1, [waiting], machines=[MACHINE], policy=policy))
