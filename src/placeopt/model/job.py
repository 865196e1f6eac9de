"""Jobs: what is asked for, in which ways it may run, and what it is worth."""

from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import Field, ModelWrapValidatorHandler, model_validator

from placeopt.model.base import (
    MAX_LEVELS,
    MAX_VALUE,
    Amounts,
    Count,
    Id,
    Labels,
    Mbps,
    Mib,
    Milli,
    Millicores,
    Milliseconds,
    Name,
    Percent,
    PositiveCount,
    Record,
    Resources,
    Thousandths,
    Value,
    Weight,
)
from placeopt.model.conditions import LabelExpression, Toleration
from placeopt.model.machine import PART_LEVELS
from placeopt.model.origin import JobOrigin

JobKind = Literal["training", "inference", "modelling", "cpu"]
MAX_WORKERS = 100_000
MAX_PRIORITY = 1_000_000
MAX_GROUPS = 1000
MAX_DEPTH = 16
"""Of the tree of groups of an option."""
MAX_EDGES = 100_000
"""A ring of as many workers as a job may have, or all pairs of 447 workers; all pairs alike need no edges."""


class Demand(Record):
    """What one worker needs. All its GPUs are on one node, and are different GPUs."""

    gpus: Annotated[int, Field(ge=0, le=1024)] = 1
    """GPUs of one worker; 0 for a CPU worker."""
    gpu_milli: Milli = 1000
    """Requested share of each GPU: what is guaranteed. Below 1000 only with ``gpus`` = 1."""
    gpu_milli_limit: Milli | None = None
    """Most that may be granted (DynamoML 3.1); left out, the request."""
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
        if self.gpu_milli < 1000 and self.gpus != 1:
            raise ValueError(
                f"gpu_milli: {self.gpu_milli} with gpus = {self.gpus}; a share below 1000 goes with gpus = 1"
            )
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

    @property
    def is_tree(self) -> bool:
        """Whether it is more than one leaf, or prefers levels: a tree that is compiled as `placeopt.problem.Tree`."""
        return bool(self.groups or self.prefer)

    def _fault(self) -> str | None:
        """Return what contradicts itself in the group alone."""
        if sum(split.level in PART_LEVELS for split in self.splits) > (not self.groups):
            return "splits: at most one of a leaf is of a level inside machines, and none of a group of groups"
        if self.groups:
            for name in ("workers", "workers_min", "demand", "value_per_worker"):
                if getattr(self, name) != type(self).model_fields[name].default:
                    return f"{name}: goes with a leaf; a group of 'groups' has the workers of these"
            if self.groups[0].optional:
                return "groups[0].optional: the first group of a parent is never missing; put one first that must run"
            return None
        if self.workers_min is not None and self.workers_min > self.workers:
            return f"workers_min: {self.workers_min} is above workers = {self.workers}"
        for i, split in enumerate(self.splits):
            if split.workers is not None and split.workers * split.domains != self.workers:
                return (
                    f"splits[{i}]: {split.domains} x {split.workers} is not workers = {self.workers}; "
                    "an exact split covers all workers"
                )
            if split.workers is not None and self.workers_min not in (None, self.workers):
                return f"splits[{i}].workers: an exact split goes with a fixed number of workers"
        return None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        fault = self._fault()
        if fault is not None:
            raise ValueError(fault)
        return self


class Option(Group):
    """
    One way to run a job: a tree of groups of workers, mostly a single leaf, and what running it is worth.

    It runs whole or not at all, but for what may be missing: a leaf with ``workers_min`` is elastic and runs with any
    number from there to ``workers``, rank 0 being the chief that is never taken (DynamoML 3.3); an ``optional`` group
    may be missing. ``value`` is that of all workers; each missing one takes its leaf's ``value_per_worker`` away.
    """

    value: Annotated[int, Field(ge=0, le=MAX_VALUE * MAX_WORKERS)] = 1
    """Value of the job in this option with all its workers."""
    utility_thousandths: Thousandths | None = None
    """Predicted utility; below the job's minimum the option has no value and is not taken."""
    run_time_ms: Milliseconds | None = None
    """Expected run time alone, its GPUs as close together as they can be."""
    rate_milli: Annotated[int, Field(ge=0, le=10**12)] | None = None
    """Requests that the option serves a second, in thousandths."""
    latency_ms: Milliseconds | None = None
    """Time of one answer."""
    cost_milli: Annotated[int, Field(ge=0, le=10**9)] = 0
    """Cost of the option wherever it runs (GENIE eq. 10); enters the cost level by ``weights.resource``."""

    def worth(self, workers: int) -> int:
        """Value of an option of one leaf with so many workers."""
        return self.value - (self.workers - workers) * self.value_per_worker

    def valued(self, value: int) -> Self:
        """Return the option worth that much with any number of its workers."""
        groups = tuple(_without_value(group) for group in self.groups)
        return self.model_copy(update={"value": value, "value_per_worker": 0, "groups": groups})

    @property
    def most_workers(self) -> int:
        """Number of workers of all leaves together."""
        return sum(leaf.workers for leaf in self.leaves)

    @property
    def gpu_milli(self) -> int:
        """GPU share that all workers request, in thousandths of a GPU."""
        return sum(leaf.workers * leaf.demand.gpus * leaf.demand.gpu_milli for leaf in self.leaves)

    @property
    def least_gpu_milli(self) -> int:
        """GPU share that the fewest workers request, in thousandths of a GPU."""
        return _least_gpu_milli(self)

    @model_validator(mode="after")
    def _tree(self) -> Self:
        if self.optional:
            raise ValueError("optional: an option is the root of its tree; a job that may wait needs no word")
        missing = _most_missing(self, optional=False)
        if missing > self.value:
            raise ValueError(
                f"value: {self.value}, but missing workers take up to {missing} away; expected at least that"
            )
        if not self.groups:
            if self.value_per_worker and self.workers_min is None:
                raise ValueError("value_per_worker: goes with 'workers_min'; a gang has one number of workers")
            return self
        if self.most_workers > MAX_WORKERS:
            raise ValueError(f"groups: {self.most_workers} workers together; expected at most {MAX_WORKERS}")
        names: set[str] = set()
        for group, depth in _below(self, 1):
            if depth > MAX_DEPTH:
                raise ValueError(f"groups: {group.id!r} is {depth} groups deep; expected at most {MAX_DEPTH}")
            if group.id in names:
                raise ValueError(f"groups: {group.id!r} appears twice; ids of groups are unique in a tree")
            names.add(group.id)
        if len(names) > MAX_GROUPS:
            raise ValueError(f"groups: {len(names)} in one tree; expected at most {MAX_GROUPS}")
        return self


def _without_value(group: Group) -> Group:
    groups = tuple(_without_value(part) for part in group.groups)
    return group.model_copy(update={"value_per_worker": 0, "groups": groups})


def _least_gpu_milli(group: Group) -> int:
    if group.groups:
        return sum(_least_gpu_milli(part) for part in group.groups if not part.optional)
    return group.fewest * group.demand.gpus * group.demand.gpu_milli


def _below(group: Group, depth: int) -> Iterator[tuple[Group, int]]:
    """Yield every group below another, with its depth."""
    for part in group.groups:
        yield part, depth
        yield from _below(part, depth + 1)


def _most_missing(group: Group, *, optional: bool) -> int:
    """Return the value that the workers take away which may be missing."""
    optional = optional or group.optional
    if group.groups:
        return sum(_most_missing(part, optional=optional) for part in group.groups)
    return (group.workers if optional else group.workers - group.fewest) * group.value_per_worker


class Edge(Record):
    """Traffic between two workers."""

    ranks: tuple[Count, Count]
    """Ranks of the two workers."""
    weight: Weight
    """Traffic weight of each pair of GPUs of the two workers."""


class Communication(Record):
    """
    Traffic weights of a job (SC'17 section 5.1: 4 tiny batch .. 1 big batch).

    ``weight`` holds for every pair of the job's GPUs (data parallel). With ``edges``, pairs of GPUs of two different
    workers weigh what the edge says, 0 where there is none, and ``weight`` holds inside a worker only.
    """

    weight: Weight = 0
    """Traffic weight of every pair of the job's GPUs; with ``edges``, of pairs inside one worker."""
    edges: Annotated[tuple[Edge, ...], Field(max_length=MAX_EDGES)] = ()
    """Traffic between pairs of workers; empty: every pair of GPUs has ``weight``."""
    spread_slowdown_thousandths: Thousandths | None = None
    """Excess run time with its GPUs as far apart as a machine allows; left out, the policy's (``postpone``)."""


class Job(Record):
    """A job, waiting or running. It runs in at most one of its options."""

    id: Id
    """Unique name of the job."""
    kind: JobKind = "training"
    """Kind of work; a job of kind ``cpu`` has no GPUs."""
    user: Name | None = None
    """Owner of the job."""
    queue: Id | None = None
    """Queue of the policy whose quota the job uses."""
    priority: Annotated[int, Field(ge=-MAX_PRIORITY, le=MAX_PRIORITY)] = 0
    """Orders queues, and jobs where ``policy.priorities`` is strict; what a job is worth stands in its options."""
    preempts: bool = True
    """Whether running jobs may be changed for it, where ``policy.priorities`` is strict."""
    arrival_ms: Milliseconds = 0
    """Time of submission."""
    deadline_ms: Milliseconds | None = None
    """Time by which the job should end; null: none."""
    expected_completion_ms: Milliseconds | None = None
    """ECT, an absolute time (GENIE 5.2)."""
    options: Annotated[tuple[Option, ...], Field(min_length=1, max_length=256)] = (Option(),)
    """Alternative ways to run the job; exactly one is chosen."""
    communication: Communication = Communication()
    """Traffic between the job's GPUs."""
    profile: Name | None = None
    """Its row in the instance's interference profiles."""
    utility_min_thousandths: Thousandths | None = None
    """Below it the job waits: options that state less are not taken, places that give less by ``policy.postpone``."""
    node_selector: Labels = Field(default_factory=dict)
    """Effective labels that a node must carry."""
    node_affinity: tuple[tuple[LabelExpression, ...], ...] = ()
    """
    Terms: a node must meet one of them, with all its expressions. A term without expressions admits no node; without
    terms every node is admitted.
    """
    nodes_allowed: tuple[Id, ...] | None = None
    """Names of the nodes on which it may run, whether or not they are there; null: all nodes."""
    nodes_excluded: tuple[Id, ...] = ()
    """Names of nodes on which it may not run."""
    tolerations: tuple[Toleration, ...] = ()
    """Taints that the job tolerates."""
    conditions_unread: bool = False
    """
    Whether some of its conditions could not be read. ``nodes_allowed`` then names nodes that are known to do; whether
    others would do, too, is not known.
    """
    origin: JobOrigin | None = None
    """The job in the system that it comes from."""

    def option(self, option_id: Id) -> Option:
        """Return the option of that id; raises ``KeyError`` where there is none."""
        for option in self.options:
            if option.id == option_id:
                return option
        raise KeyError(option_id)

    @model_validator(mode="wrap")
    @classmethod
    def _consistent(cls, given: object, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(given, cls):
            return given  # it was looked at when it was made
        job = handler(given)
        job._check_options()
        return job

    def _check_options(self) -> None:
        seen: set[str] = set()
        for i, option in enumerate(self.options):
            if option.id in seen:
                raise ValueError(f"options[{i}].id: {option.id!r} appears twice; ids of options are unique in a job")
            seen.add(option.id)
            gpus = max(leaf.demand.gpus for leaf in option.leaves)
            if self.kind == "cpu" and gpus:
                raise ValueError(f"options[{i}].demand.gpus: {gpus} in a job of kind 'cpu'; use 0, or another kind")
        if self.communication.edges:
            self._check_edges()

    def _check_edges(self) -> None:
        most = max(option.most_workers for option in self.options)
        pairs: set[tuple[int, int]] = set()
        for i, edge in enumerate(self.communication.edges):
            a, b = sorted(edge.ranks)
            if a == b or b >= most:
                raise ValueError(
                    f"communication.edges[{i}].ranks: {list(edge.ranks)} must be two different ranks below {most}"
                )
            if (a, b) in pairs:
                raise ValueError(f"communication.edges[{i}].ranks: workers {a} and {b} have an edge already")
            pairs.add((a, b))
