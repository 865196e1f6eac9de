"""
Does a job fit on what is free? Restated from the records in plain integers, by looking at every node.

For clusters of which ``brute_force`` would list too much: whole and shared GPUs, models, CPU, memory, named resources,
drained nodes, gangs of whole GPUs. `assert_known` refuses rounds that state
anything else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from placeopt.model import Demand, Instance, Job, Option, Placement, Running

KNOWN = {
    "job": {"id", "user", "kind", "priority", "arrival_ms", "profile", "communication", "options", "tolerations"},
    "option": {"id", "value", "workers", "demand"},
    "demand": {"gpus", "gpu_milli", "gpu_models", "cpu_millicores", "memory_mib", "resources"},
    "node": {"id", "machine", "domain", "drained"},
}


def assert_known(instance: Instance) -> None:
    """Refuse a round with a field that is not looked at."""
    records = [("node", node) for node in instance.cluster.nodes] + [("job", job) for job in instance.jobs]
    for job in instance.jobs:
        records += [
            (what, part) for option in job.options for what, part in (("option", option), ("demand", option.demand))
        ]
    for what, record in records:
        fields = type(record).model_fields
        stated = {name for name, value in record if value != fields[name].get_default(call_default_factory=True)}
        assert stated <= KNOWN[what], f"{what}: {stated - KNOWN[what]}"
    policy = instance.policy
    assert (policy.share_mode, policy.jobs_per_gpu_max, policy.queues) == ("fraction", None, ())


@dataclass
class FreeNode:
    """What one node has left; GPUs as model and free thousandths."""

    cpu_millicores: int
    memory_mib: int
    resources: dict[str, int]
    gpus: list[tuple[str, int]]

    def workers(self, demand: Demand) -> int:
        """Return how many workers fit; of a shared GPU one, since gangs of them are refused."""
        models = demand.gpu_models
        free = sum(milli >= demand.gpu_milli for model, milli in self.gpus if not models or model in models)
        parts = [10_000 if not demand.gpus else free // demand.gpus]
        parts += [have // ask for have, ask in self._amounts(demand) if ask]
        return max(0, min(parts))

    def _amounts(self, demand: Demand) -> Iterable[tuple[int, int]]:
        yield self.cpu_millicores, demand.cpu_millicores
        yield self.memory_mib, demand.memory_mib
        yield from ((self.resources.get(name, 0), ask) for name, ask in demand.resources.items())


class FreeNodes:
    """The nodes beside what is held; demands alike are answered once."""

    def __init__(self, instance: Instance, held: Iterable[Placement | Running]) -> None:
        machines = {machine.id: machine for machine in instance.cluster.machines}
        options = {(job.id, option.id): option for job in instance.jobs for option in job.options}
        self.nodes: dict[str, FreeNode] = {}
        self._answers: dict[tuple[object, ...], bool] = {}
        for node in instance.cluster.nodes:
            kind = machines[node.machine]
            gpus = [(gpu.model, 1000) for gpu in kind.gpus]
            self.nodes[node.id] = FreeNode(kind.cpu_millicores, kind.memory_mib, dict(kind.resources), gpus)
        for one in held:
            demand = options[one.job, one.option].demand
            for part in one.assignments:
                free = self.nodes[part.node]
                free.cpu_millicores -= part.cpu_millicores
                free.memory_mib -= part.memory_mib
                for name, ask in demand.resources.items():
                    free.resources[name] = free.resources.get(name, 0) - ask * len(part.workers)
                for index, milli in part.gpus.items():
                    model, left = free.gpus[int(index)]
                    free.gpus[int(index)] = (model, left - milli)
        for node in instance.cluster.nodes:
            if node.drained:
                del self.nodes[node.id]

    def fits(self, job: Job) -> bool:
        """Tell whether an option of the job has its workers somewhere."""
        return any(self._has_room(option) for option in job.options)

    def _has_room(self, option: Option) -> bool:
        demand = option.demand
        key = (
            option.workers,
            *((name, value) for name, value in demand if name != "resources"),
            *demand.resources.items(),
        )
        if key not in self._answers:
            assert option.workers == 1 or demand.gpu_milli == 1000
            left = option.workers
            for free in self.nodes.values():
                left -= free.workers(demand)
                if left <= 0:
                    break
            self._answers[key] = left <= 0
        return self._answers[key]
