"""Where a job runs: the form shared by running placements and plans."""

from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from placeopt.model.base import Count, GpuIndex, Id, Mib, Milli, Millicores, Milliseconds, Record
from placeopt.model.group import Demand
from placeopt.model.machine import Slot

_Index = Annotated[str, Field(pattern=r"^(0|[1-9][0-9]{0,3})$")]
_in_order = AfterValidator(lambda held: dict(sorted(held.items(), key=lambda of_gpu: int(of_gpu[0]))))
GpuShares = Annotated[dict[_Index, Milli], _in_order]
"""GPU index -> share held, kept in order of the index."""
Starts = Annotated[dict[_Index, Slot], _in_order]
"""GPU index -> first slot held, kept in order of the index."""


class WorkerGpus(Record):
    """One worker and its GPUs on the node; no GPUs for a CPU worker."""

    rank: Count
    """Rank of the worker, from 0."""
    gpus: tuple[GpuIndex, ...] = ()
    """Indices of its GPUs on the node."""


class Assignment(Record):
    """What the workers of one leaf hold on one node. ``gpus`` maps a GPU index to the share held in thousandths."""

    node: Id
    """Node on which the job holds resources."""
    group: Annotated[Id | None, Field(exclude_if=lambda group: group is None)] = None
    """The leaf of the option's tree whose workers these are; null where the option has no groups."""
    gpus: GpuShares = Field(default_factory=dict)
    """GPU index -> share held, in thousandths of the GPU."""
    starts: Annotated[Starts, Field(exclude_if=lambda starts: not starts)] = Field(default_factory=dict)
    """GPU index -> first slot of the share, of GPUs with profiles."""
    cpu_millicores: Millicores = 0
    """CPU held by all workers on the node, in thousandths of a core."""
    memory_mib: Mib = 0
    """Host memory held by all workers on the node."""
    workers: Annotated[tuple[WorkerGpus, ...], Field(min_length=1)]
    """Workers on the node, each with its GPUs."""

    def fault(self, demand: Demand) -> str | None:
        """Return how this contradicts the demand of its workers, as ``field: message``; None if it does not."""
        held = [gpu for worker in self.workers for gpu in worker.gpus]
        for w, worker in enumerate(self.workers):
            if len(worker.gpus) != demand.gpus:
                return f"workers[{w}].gpus: {len(worker.gpus)} GPUs, the option's demand is {demand.gpus} per worker"
        own = set(held)
        if len(own) != len(held):
            return "workers: a GPU appears twice; a job holds each GPU once"
        if own != {int(gpu) for gpu in self.gpus}:
            return f"gpus: lists {sorted(map(int, self.gpus))}, the workers hold {sorted(held)}"
        low, high = demand.gpu_milli, demand.gpu_milli_limit or demand.gpu_milli
        for gpu, milli in self.gpus.items():
            if not low <= milli <= high:
                return f'gpus["{gpu}"]: {milli} milli, the demand of the option is {low} to {high}'
        count = len(self.workers)
        if self.cpu_millicores != count * demand.cpu_millicores:
            return f"cpu_millicores: {self.cpu_millicores}, expected {count} workers x {demand.cpu_millicores}"
        if self.memory_mib != count * demand.memory_mib:
            return f"memory_mib: {self.memory_mib}, expected {count} workers x {demand.memory_mib}"
        return None


class Placement(Record):
    """A job's whole placement: the option and one assignment per node used and leaf of the option's tree."""

    job: Id
    """Name of the job."""
    option: Id
    """Id of the option in which it runs."""
    assignments: Annotated[tuple[Assignment, ...], Field(min_length=1)]
    """What the job holds, one entry for each node and leaf."""
    reached: dict[Id, Id | None] = Field(default_factory=dict, exclude_if=lambda reached: not reached)
    """Group with preferred levels -> the first of these of which one domain holds the group; null: none does."""

    @model_validator(mode="after")
    def _one_per_node(self) -> Self:
        places = [(assignment.node, assignment.group) for assignment in self.assignments]
        if len(set(places)) != len(places):
            twice = next(i for i, place in enumerate(places) if place in places[:i])
            raise ValueError(
                f"assignments[{twice}].node: job {self.job!r} names {places[twice][0]!r} twice; one assignment per node"
            )
        return self


class Running(Placement):
    """A placement that holds now, and what may be done to it where the policy allows it too."""

    started_ms: Milliseconds = 0
    """Time at which the job started."""
    expected_end_ms: Milliseconds | None = None
    """Best estimate of its end; left out, its start + the run time of its option, slowed as it stands."""
    movable: bool = False
    """Whether the job may be moved."""
    shrinkable: bool = False
    """Whether an elastic job may lose workers."""
    preemptible: bool = False
    """Whether the job may be stopped."""
    protected_until_ms: Milliseconds | None = None
    """Time until which it is not moved, shrunk or stopped; null: it is not protected, or by the policy alone."""

    @property
    def placement(self) -> Placement:
        """Where the job runs."""
        return Placement(job=self.job, option=self.option, assignments=self.assignments)

    def is_protected(self, now_ms: int, run_time_min_ms: int) -> bool:
        """Return whether it may not be changed now, where the policy protects jobs for ``run_time_min_ms``."""
        return now_ms < max(self.protected_until_ms or 0, self.started_ms + run_time_min_ms if run_time_min_ms else 0)
