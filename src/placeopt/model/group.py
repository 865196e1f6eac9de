"""Groups of workers of a job: what one worker needs, which belong together, and how they lie over domains."""

from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from placeopt.model.base import (
    MAX_GPUS,
    MAX_LEVELS,
    Amounts,
    Id,
    Mbps,
    Mib,
    Milli,
    Millicores,
    Name,
    Percent,
    PositiveCount,
    Record,
    Resources,
    Value,
)
from placeopt.model.conditions import ANY_NODE, NodeConditions
from placeopt.model.machine import PART_LEVELS

MAX_WORKERS = 100_000
MAX_GROUPS = 1000
"""Of the tree of groups of an option."""


class GpuShare(Record):
    """GPUs of one worker, and how much of each."""

    gpus: Annotated[int, Field(ge=0, le=MAX_GPUS)] = 1
    """GPUs of one worker; 0 for a CPU worker."""
    gpu_milli: Milli = 1000
    """Requested share of each GPU, in thousandths: what is guaranteed. Below 1000 only with ``gpus`` = 1."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.gpu_milli < 1000 and self.gpus != 1:
            raise ValueError(
                f"gpu_milli: {self.gpu_milli} with gpus = {self.gpus}; a share below 1000 goes with gpus = 1"
            )
        return self


class Demand(GpuShare):
    """What one worker needs. All its GPUs are on one node, and are different GPUs."""

    gpu_milli_limit: Milli | None = None
    """Most that may be granted (DynamoML 3.1); left out, the request."""
    gpu_profile: Id | None = None
    """
    Profile of the GPU that the share takes, with ``gpus`` = 1; it takes ``gpu_milli`` like every share, 1000 x width /
    slots at most. Null: GPUs without profiles, or with one of no name.
    """
    gpu_models: tuple[Name, ...] = ()
    """GPU models allowed; empty: any."""
    gpu_memory_mib: Mib = 0
    """Memory needed on each GPU; 0: none is requested."""
    gpu_utilisation_percent: Percent = 0
    """Expected utilisation of each GPU (Horus)."""
    cpu_millicores: Millicores = 0
    """CPU of one worker, in thousandths of a core."""
    memory_mib: Mib = 0
    """Host memory of one worker."""
    memory_bandwidth_mbps: Mbps = 0
    """Host memory bandwidth of one worker, in MB/s."""
    pcie_bandwidth_mbps: Mbps = 0
    """PCIe bandwidth of one worker, in MB/s."""
    network_bandwidth_mbps: Mbps = 0
    """Loads uplinks by the hose model; a job with one worker loads none."""
    resources: Resources = Field(default_factory=Amounts)
    """
    What one worker takes of named resources: of its node (``Machine.resources``), of every domain that contains it, and
    of the cluster, wherever they are stated.
    """

    @model_validator(mode="after")
    def _share(self) -> Self:
        if self.gpu_profile is not None and self.gpus != 1:
            raise ValueError(f"gpu_profile: {self.gpu_profile!r} with gpus = {self.gpus}; a profile goes with gpus = 1")
        if self.gpu_milli_limit is not None and self.gpu_milli_limit < self.gpu_milli:
            raise ValueError(
                f"gpu_milli_limit: {self.gpu_milli_limit} is below the request gpu_milli = {self.gpu_milli}"
            )
        return self


Remainder = Literal["refuse", "smaller"]


class Split(Record):
    """
    How a group's workers are divided among the domains of one level.

    They are in exactly ``domains`` of them, with exactly ``workers`` in each where that is stated. "96 = 2 x 48 = 6 x
    16 per rack" is two splits. ``domains`` = 1 keeps a group together.
    """

    level: Id
    """``node``, a domain level of the cluster, such as ``rack``, or with one domain a part of a machine: ``socket``."""
    domains: PositiveCount
    """Number of domains that hold workers."""
    workers: PositiveCount | None = None
    """Workers in each of them; null: any distribution."""

    @model_validator(mode="after")
    def _inside(self) -> Self:
        if self.level in PART_LEVELS and (self.domains > 1 or self.workers is not None):
            raise ValueError(f"level: {self.level!r} is inside a machine; expected 'domains' = 1 alone")
        return self


class Spread(Record):
    """
    What each domain of a level holds of a group's workers, all of which are in domains of that level.

    Segments of 16 workers in a rack, made of segments of 4 on a node, are two of these. Several segments may share a
    domain.
    """

    level: Id
    """``node`` or a domain level of the cluster, such as ``rack``."""
    segment: PositiveCount | None = None
    """The number of workers in each domain is a multiple of it; null: any."""
    remainder: Remainder = "refuse"
    """``smaller``: one segment may have fewer workers, so that any number of workers can be divided."""
    workers_max: PositiveCount | None = None
    """Most workers in one domain; null: no limit."""
    skew_max: PositiveCount | None = None
    """
    Most workers that a domain may hold above any other domain of the level, used or not, with a node that the job's
    conditions admit, taints and drains aside; null: no limit. (Kubernetes: topology spread constraints.)
    """

    @model_validator(mode="after")
    def _stated(self) -> Self:
        if self.remainder == "smaller" and self.segment is None:
            raise ValueError("remainder: goes with 'segment'")
        if self.segment is self.workers_max is self.skew_max is None:
            raise ValueError("states none of 'segment', 'workers_max' and 'skew_max'")
        return self


class Group(Record):
    """
    Workers that belong together: alike ones, which ask for ``demand`` each, or ``groups`` of them.

    A group of ``workers`` alike is a leaf of the tree whose root is an `Option`. What is said of a group with
    ``groups`` holds for all workers below it together: that they share a node, how they are divided among domains.
    Ranks run over the leaves in the order of the file.
    """

    id: Id = "default"
    """Name of the group, unique in the tree."""
    workers: Annotated[int, Field(ge=1, le=MAX_WORKERS)] = 1
    """Number of workers of a leaf; of an elastic one the largest."""
    workers_min: Annotated[int, Field(ge=1, le=MAX_WORKERS)] | None = None
    """Smallest number of workers of an elastic leaf; null: all, or none."""
    demand: Demand = Demand()
    """Resources of one worker of a leaf."""
    groups: Annotated[tuple["Group", ...], Field(max_length=MAX_GROUPS)] = ()
    """The groups that it consists of; empty: a leaf."""
    optional: bool = False
    """Whether the group may be missing while the rest of its parent's runs; the first one of a parent never is."""
    conditions: NodeConditions = ANY_NODE
    """What its workers ask of their nodes, beside what the job and the groups above ask."""
    single_node: bool = False
    """Whether all workers must share one node."""
    workers_per_node_max: PositiveCount | None = None
    """1 is anti-affinity between workers."""
    splits: tuple[Split, ...] = ()
    """In how many domains workers are."""
    spread: tuple[Spread, ...] = ()
    """What a domain holds of the workers."""
    prefer: Annotated[tuple[Id, ...], Field(max_length=MAX_LEVELS)] = ()
    """
    Levels whose one domain should hold all workers, the best first. It costs the index of the first level that does,
    or the length of the list, by ``weights.prefer``.
    """
    value_per_worker: Value = 0
    """Value that each worker takes away that is missing of a leaf: of an elastic one, or in an optional group."""

    @property
    def fewest(self) -> int:
        """Smallest number of workers with which a leaf runs."""
        return self.workers if self.workers_min is None else self.workers_min

    @property
    def part_level(self) -> str | None:
        """The part of a machine, as ``socket``, that must hold all GPUs of the workers; None if any may."""
        inside = (split.level for split in self.splits if split.level in PART_LEVELS)
        return next(inside, None) if self.demand.gpus else None

    @property
    def leaves(self) -> tuple["Group", ...]:
        """The groups of alike workers, in order."""
        return tuple(leaf for group in self.groups for leaf in group.leaves) if self.groups else (self,)

    def walk(self, path: str = "") -> Iterator[tuple[str, "Group"]]:
        """Yield the group and all below it, each with the path to its fields, such as ``groups[0].``."""
        yield path, self
        for i, part in enumerate(self.groups):
            yield from part.walk(f"{path}groups[{i}].")

    @property
    def is_tree(self) -> bool:
        """Whether it is more than one leaf, prefers levels or has conditions: compiled as `placeopt.problem.Tree`."""
        return bool(self.groups or self.prefer) or self.conditions != ANY_NODE

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if sum(split.level in PART_LEVELS for split in self.splits) > (not self.groups):
            raise ValueError("splits: at most one of a leaf is of a level inside machines, none of a group of groups")
        if self.groups:
            for name in ("workers", "workers_min", "demand", "value_per_worker"):
                if getattr(self, name) != type(self).model_fields[name].default:
                    raise ValueError(f"{name}: goes with a leaf; a group of 'groups' has the workers of these")
            if any(spread.skew_max is not None for spread in self.spread) and any(
                group.conditions != ANY_NODE for path, group in self.walk() if path
            ):
                raise ValueError("spread: skew_max counts the domains that admit the group; its parts have none")
            if self.groups[0].optional:
                raise ValueError(
                    "groups[0].optional: the first of a parent is never missing; put one first that must run"
                )
            return self
        if self.workers_min is not None and self.workers_min > self.workers:
            raise ValueError(f"workers_min: {self.workers_min} is above workers = {self.workers}")
        for i, split in enumerate(self.splits):
            if split.workers is not None and split.workers * split.domains != self.workers:
                raise ValueError(
                    f"splits[{i}]: {split.domains} x {split.workers} is not workers = {self.workers}; "
                    "an exact split covers all workers"
                )
            if split.workers is not None and self.workers_min not in (None, self.workers):
                raise ValueError(f"splits[{i}].workers: an exact split goes with a fixed number of workers")
        return self
