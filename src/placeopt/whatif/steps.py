"""The steps of a scenario: the records of a patch file."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from placeopt.model.base import FormatVersion, Id, Labels, Name, Record
from placeopt.model.job import Job
from placeopt.model.machine import Machine
from placeopt.model.policy import Quota

MAX_ADDED = 100_000


class AddMachines(Record):
    """Add machine types for nodes of later steps."""

    do: Literal["add_machines"]
    machines: Annotated[tuple[Machine, ...], Field(min_length=1)]


class AddNodes(Record):
    """
    Add ``count`` nodes of a machine type, named ``prefix``-0, -1, ...; those ids must be free.

    Domain and labels are those stated here. All else is that of the node ``like``, or what all nodes of the machine
    type share.
    """

    do: Literal["add_nodes"]
    count: Annotated[int, Field(ge=1, le=MAX_ADDED)]
    machine: Id | None = None
    """None: that of ``like``."""
    like: Id | None = None
    """A node to copy: machine type, domain, labels, taints, price."""
    domain: Id | None = None
    labels: Labels | None = None
    prefix: Id = "added"


class RemoveNodes(Record):
    """Remove nodes; jobs that run there are displaced and wait."""

    do: Literal["remove_nodes"]
    nodes: Annotated[tuple[Id, ...], Field(min_length=1)]


class Fail(Record):
    """
    Remove all nodes under domains of a level: ``node``, ``rack``, or another level of the cluster.

    With the levels inside machines (``gpu``, ``switch``, ``numa``, ``socket``) only the GPUs are removed.
    """

    do: Literal["fail"]
    level: Id
    domains: Annotated[tuple[Id, ...], Field(min_length=1)]


class ReplaceNodes(Record):
    """Change the machine type of nodes, by name or all of a type; jobs that run on changed nodes are displaced."""

    do: Literal["replace_nodes"]
    nodes: tuple[Id, ...] = ()
    of: Id | None = None
    """All nodes of this machine type."""
    machine: Id


class SetPolicy(Record):
    """Change fields of the policy; records inside it are merged, lists replaced."""

    do: Literal["set_policy"]
    fields: dict[str, Any]


class SetQuota(Record):
    """Change the quota of a queue of the policy; a resource that is left out keeps its limit, null has none."""

    do: Literal["set_quota"]
    queue: Id
    quota: Quota | None = None
    borrow: Quota | None = None


class ChangeJob(Record):
    """Change fields of a job; records inside it are merged, lists replaced. A running job is displaced."""

    do: Literal["change_job"]
    job: Id
    fields: dict[str, Any]


class AddJobs(Record):
    """Add waiting jobs."""

    do: Literal["add_jobs"]
    jobs: Annotated[tuple[Job, ...], Field(min_length=1)]


class RemoveJobs(Record):
    """Remove jobs, running or waiting."""

    do: Literal["remove_jobs"]
    jobs: Annotated[tuple[Id, ...], Field(min_length=1)]


class ScaleDemand(Record):
    """
    Draw waiting jobs until all jobs request ``percent`` of the cluster's GPUs.

    As in FGD's experiments (Weng et al., ATC'23): copies of waiting jobs, drawn uniformly with replacement, are added
    until the next one would exceed the target; where the jobs exceed it already, random ones are removed. Running jobs
    count too.
    """

    do: Literal["scale_demand"]
    percent: Annotated[int, Field(ge=0, le=1000)]
    seed: Annotated[int, Field(ge=0)] = 0


class ScaleArrivals(Record):
    """
    Change the rate of arrivals to ``percent``: all arrival times are divided by it.

    Deadlines keep their distance from the arrival. For traces; in a round no job arrives any more.
    """

    do: Literal["scale_arrivals"]
    percent: Annotated[int, Field(ge=1, le=1000)]


Step = Annotated[
    AddMachines
    | AddNodes
    | RemoveNodes
    | Fail
    | ReplaceNodes
    | SetPolicy
    | SetQuota
    | ChangeJob
    | AddJobs
    | RemoveJobs
    | ScaleDemand
    | ScaleArrivals,
    Field(discriminator="do"),
]


class Patch(Record):
    """A scenario: steps, carried out one after the other on a copy of an instance."""

    document: Literal["patch"] = "patch"
    """What the file is."""
    format_version: FormatVersion = 2
    name: Name = "scenario"
    note: Annotated[str, Field(max_length=10_000)] = ""
    steps: tuple[Step, ...] = ()
