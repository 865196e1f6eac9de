"""Rounds of which thousands of jobs wait: openb, and generated ones on 500 nodes, one of them with licences."""

from __future__ import annotations

from collections.abc import Iterator

from helpers.command_line import INSTANCES
from placeopt import Instance, generate, read_instance
from placeopt.model import Cluster, Demand, Machine

JOBS = {"uniform": 11_500, "varied": 11_500, "fractions": 12_500}
NODES, GPUS = 500, 8


def with_licences(round_: Instance) -> Instance:
    """Let every third job need a licence, give every tenth node two, and drain ten nodes."""
    jobs = []
    for j, job in enumerate(round_.jobs):
        options = tuple(
            option.model_copy(update={"demand": Demand(**{**dict(option.demand), "resources": {"licence": 1}})})
            for option in job.options
        )
        jobs.append(job if j % 3 else job.model_copy(update={"options": options}))
    machines = {machine.id: machine for machine in round_.cluster.machines}
    nodes, kinds = [], dict(machines)
    for n, node in enumerate(round_.cluster.nodes):
        kind = node.machine
        if n % 10 == 0:
            kind = f"{node.machine}-licensed"
            kinds[kind] = Machine(**{**dict(machines[node.machine]), "id": kind, "resources": {"licence": 2}})
        nodes.append(node.model_copy(update={"machine": kind, "drained": n % 50 == 1}))
    cluster = Cluster(machines=tuple(kinds.values()), domains=round_.cluster.domains, nodes=tuple(nodes))
    return Instance(name=f"{round_.name}-licences", cluster=cluster, jobs=tuple(jobs), policy=round_.policy)


def rounds() -> Iterator[Instance]:
    """Yield the rounds."""
    yield read_instance(INSTANCES / "openb" / "openb-default.json.gz")
    for spec, jobs in JOBS.items():
        yield generate(spec, jobs=jobs, nodes=NODES, gpus=GPUS, seed=0)
    yield with_licences(generate("varied", jobs=JOBS["varied"], nodes=NODES, gpus=GPUS, seed=0))
