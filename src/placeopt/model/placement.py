"""Where a job runs: the form shared by running placements and plans."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from placeopt.model.base import Count, GpuIndex, Id, Mib, Milli, Millicores, Record


class WorkerGpus(Record):
    """One worker and its GPUs on the node; no GPUs for a CPU worker."""

    rank: Count
    gpus: tuple[GpuIndex, ...] = ()


class Assignment(Record):
    """What a job holds on one node. ``gpus`` maps a GPU index to the share held in thousandths."""

    node: Id
    gpus: dict[Annotated[str, Field(pattern=r"^(0|[1-9][0-9]{0,3})$")], Milli] = {}
    cpu_millicores: Millicores = 0
    memory_mib: Mib = 0
    workers: Annotated[tuple[WorkerGpus, ...], Field(min_length=1)]


class Placement(Record):
    """A job's whole placement: the option and one assignment per node used."""

    job: Id
    option: Id
    assignments: Annotated[tuple[Assignment, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _one_per_node(self) -> Self:
        nodes = [assignment.node for assignment in self.assignments]
        if len(set(nodes)) != len(nodes):
            raise ValueError(f"assignments: job {self.job!r} names a node twice; one assignment per node")
        return self


class Running(Placement):
    """A placement that holds now, and what may be done to it where the policy allows it too."""

    started_ms: Annotated[int, Field(ge=0)] = 0
    movable: bool = False
    shrinkable: bool = False
    preemptible: bool = False
