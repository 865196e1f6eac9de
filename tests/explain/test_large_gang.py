"""The case that the documentation shows: 500 nodes x 8 GPUs, and a gang of 80 GPUs bound to one rack."""

from __future__ import annotations

from placeopt import Instance, solve
from placeopt.build import instance, job, machine, node, running
from placeopt.explain import explain
from placeopt.model import Domain, Split

RACKS, NODES, BUSY = 50, 10, 3


def busy_racks() -> Instance:
    """50 racks of 10 nodes, 3 of them busy in each: 7 free nodes a rack; and a gang of 10 workers of 8 GPUs."""
    domains = [Domain(id=f"r{i}") for i in range(RACKS)]
    nodes = [node(f"n{i}", domain=f"r{i // NODES}") for i in range(RACKS * NODES)]
    held = [
        job(f"held{i}", gpus=8 if i % 2 else 4, value=5, cpu_millicores=1000)
        for i in range(RACKS * NODES)
        if i % NODES < BUSY
    ]
    runs = [
        running(one, [(f"n{one.id.removeprefix('held')}", range(one.options[0].demand.gpus))], preemptible=True)
        for one in held
    ]
    gang = job("gang", workers=10, gpus=8, cpu_millicores=4000, splits=(Split(level="rack", domains=1),), value=100)
    return instance(nodes, [*held, gang], machines=[machine(gpus=8)], domains=domains, running=runs)


def test_a_gang_that_no_rack_takes() -> None:
    """Three constraints, no fewer; 7 workers or 2 racks would be enough, or the busy nodes of one rack."""
    round_ = busy_racks()
    found = explain(round_, solve(round_), "gang", time_limit_s=60, isolation="thread")
    assert found.proven
    assert [constraint.name for constraint in found.conflict] == ["GPU count", "gang", "rack"]
    assert found.detail.endswith("GPU count, gang and rack cannot hold together")
    assert found.remedies.workers_max is not None
    assert found.remedies.workers_max.workers == 7
    assert [(one.level, one.domains) for one in found.remedies.domains_min] == [("rack", 2)]
    assert found.remedies.level == "cluster"
    assert found.remedies.said["workers_max"].startswith("largest gang in one rack: 7 workers")
    assert found.remedies.said["domains_min"].startswith("2 racks would be enough")
    assert found.remedies.preempt is not None
    assert found.remedies.preempt.price == 3 * 5
