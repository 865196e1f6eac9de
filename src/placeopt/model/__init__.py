"""What users write and read: the instance, the plan and everything in them."""

from placeopt.model.cluster import Cluster, Domain, Node
from placeopt.model.instance import FORMAT_VERSION, Instance, Slowdown
from placeopt.model.job import Communication, Demand, Edge, Job, Option, Split
from placeopt.model.machine import Gpu, Link, Machine, Part
from placeopt.model.origin import JobOrigin, Origin
from placeopt.model.placement import Assignment, Placement, Running, WorkerGpus
from placeopt.model.plan import Plan
from placeopt.model.policy import Policy

__all__ = [
    "FORMAT_VERSION",
    "Assignment",
    "Cluster",
    "Communication",
    "Demand",
    "Domain",
    "Edge",
    "Gpu",
    "Instance",
    "Job",
    "JobOrigin",
    "Link",
    "Machine",
    "Node",
    "Option",
    "Origin",
    "Part",
    "Placement",
    "Plan",
    "Policy",
    "Running",
    "Slowdown",
    "Split",
    "WorkerGpus",
]
