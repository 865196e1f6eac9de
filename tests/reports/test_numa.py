"""Sockets, NUMA domains and switches as a hard rule: all GPUs of a job in one part of a machine."""

import pytest

from placeopt import build, solve
from placeopt.explain import explain
from placeopt.model import Gpu, Part, Split

PARTS = (Part(id="s0", level="socket"), Part(id="s1", level="socket"))
MACHINE = build.machine(gpus=[Gpu(model="a", part=f"s{i // 2}") for i in range(4)], parts=PARTS)
HELD = [build.job(f"h{i}") for i in range(2)]
RUNS = [build.running(HELD[0], [("n0", [0])]), build.running(HELD[1], [("n0", [2])])]
ALIGNED = build.job("aligned", gpus=2, splits=(Split(level="socket", domains=1),))


@pytest.mark.parametrize("method", ["auto", "counts", "assignment", "best-fit", "search"])
@pytest.mark.parametrize(("nodes", "placed"), [(1, {"free"}), (2, {"free", "aligned"})])
def test_two_gpus_of_one_socket(method: str, nodes: int, placed: set[str]) -> None:
    """One is free in each socket of the first node: enough for a job that takes any two, not for the aligned one."""
    jobs = [*HELD, ALIGNED, build.job("free", gpus=2)]
    round_ = build.instance(nodes, jobs, machines=[MACHINE], running=RUNS)
    plan = solve(round_, method=method, time_limit_s=5, isolation="thread")
    assert {held.job for held in plan.placements} - {"h0", "h1"} == placed


def test_the_socket_is_named() -> None:
    """The conflict is of the number of GPUs and the socket, not of the node."""
    round_ = build.instance(1, [*HELD, ALIGNED], machines=[MACHINE], running=RUNS)
    found = explain(round_, solve(round_, isolation="thread", time_limit_s=5), "aligned", isolation="thread")
    assert (found.reason, [one.group for one in found.conflict]) == ("conflict", ["gpu_count", "split:socket"])


def test_only_one_part_can_be_asked_for() -> None:
    with pytest.raises(ValueError, match="inside a machine; expected 'domains' = 1 alone"):
        Split(level="numa", domains=2)
