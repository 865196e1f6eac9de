"""What a scenario changes, step by step: the records of a patch file."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from placeopt.model.base import FormatVersion, Id, Labels, Name, Record
from placeopt.model.job import Job
from placeopt.model.machine import Machine
from placeopt.model.policy import Quota

MAX_ADDED = 100_000


class AddMachines(Record):
    """Make machine types known, for nodes of later steps."""

    do: Literal["add_machines"]
    machines: Annotated[tuple[Machine, ...], Field(min_length=1)]


class AddNodes(Record):
    """
    Add ``count`` nodes of a machine type, named ``prefix``-0, -1, ...; those ids must be free.

    Labels, taints and price are as said here, or, with ``like``, those of that node.
    """

    do: Literal["add_nodes"]
    count: Annotated[int, Field(ge=1, le=MAX_ADDED)]
    machine: Id | None = None
    """Left out, that of ``like``."""
    like: Id | None = None
    """A node to copy: machine type, domain, labels, taints, price."""
    domain: Id | None = None
    labels: Labels | None = None
    prefix: Id = "added"


class RemoveNodes(Record):
    """Take nodes out; what runs there is displaced: it waits."""

    do: Literal["remove_nodes"]
    nodes: Annotated[tuple[Id, ...], Field(min_length=1)]


class Fail(Record):
    """
    Take out all nodes under domains of a level: ``node``, ``rack``, or whatever levels the cluster has.

    Of the levels inside machines (``gpu``, ``switch``, ``numa``, ``socket``) the GPUs go; the rest of the node stays.
    """

    do: Literal["fail"]
    level: Id
    domains: Annotated[tuple[Id, ...], Field(min_length=1)]


class ReplaceNodes(Record):
    """Give nodes another machine type, by name or all of a type; what runs on those that change is displaced."""

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
    """Change the quota of a queue of the policy; what is left out of a quota is no limit."""

    do: Literal["set_quota"]
    queue: Id
    quota: Quota | None = None
    borrow: Quota | None = None


class ChangeJob(Record):
    """Change fields of a job; records inside it are merged, lists replaced. A running one is displaced."""

    do: Literal["change_job"]
    job: Id
    fields: dict[str, Any]


class AddJobs(Record):
    """Add waiting jobs."""

    do: Literal["add_jobs"]
    jobs: Annotated[tuple[Job, ...], Field(min_length=1)]


class RemoveJobs(Record):
    """Take jobs out, running or waiting."""

    do: Literal["remove_jobs"]
    jobs: Annotated[tuple[Id, ...], Field(min_length=1)]


class ScaleDemand(Record):
    """
    Draw waiting jobs anew until they ask for ``percent`` of the cluster's GPUs.

    As FGD's experiments do (Weng et al., ATC'23): copies of waiting jobs, drawn uniformly with replacement, are added
    until the next would pass the mark; if there is more already, jobs drawn at random leave. What runs counts too.
    """

    do: Literal["scale_demand"]
    percent: Annotated[int, Field(ge=0, le=1000)]
    seed: Annotated[int, Field(ge=0)] = 0


class ScaleArrivals(Record):
    """
    Let jobs arrive at ``percent`` of the rate: all times of arrival are divided by it.

    What a job is due by keeps its distance from the arrival. On a trace; in a round nothing arrives any more.
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
    """A scenario: steps, one after the other, on an instance that itself stays as it is."""

    format_version: FormatVersion = 1
    name: Name = "scenario"
    note: Annotated[str, Field(max_length=10_000)] = ""
    steps: tuple[Step, ...] = ()
