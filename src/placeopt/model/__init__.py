"""What users write and read: rounds, plans, scenarios, scheduling policies, and every record in them."""

from placeopt.model.base import MAX_JOBS, MAX_VALUE, Amounts, Record
from placeopt.model.cluster import BlockSize, Cluster, Domain, Node
from placeopt.model.conditions import LabelExpression, Taint, Toleration
from placeopt.model.endpoint import Autoscaler, CoreCurve, Endpoint, LoadStep, Replica
from placeopt.model.estimate import Estimate
from placeopt.model.group import Demand, Group, Split, Spread
from placeopt.model.hold import Hold, hold_groups
from placeopt.model.instance import FORMAT_VERSION, Instance, Slowdown
from placeopt.model.job import Communication, Edge, Job, Option
from placeopt.model.machine import Gpu, Link, Machine, Part
from placeopt.model.origin import JobOrigin, Origin
from placeopt.model.placement import Assignment, Placement, Running, WorkerGpus
from placeopt.model.plan import (
    Cost,
    InstanceRef,
    Level,
    Moved,
    Plan,
    PolicyRef,
    Preempted,
    Seconds,
    Shrunk,
    Stage,
    Standing,
    Unplaced,
)
from placeopt.model.policy import (
    Changes,
    Fragmentation,
    Horus,
    Interference,
    Policy,
    Postpone,
    SlowdownCurve,
    TargetWorker,
    Usable,
    Weights,
)
from placeopt.model.queues import Flavor, FlavorAllowance, Queue, Quota
from placeopt.model.relation import Relation
from placeopt.model.scenario import Arrival, Physics, Scenario
from placeopt.model.scheduling import Arrays, Goals, Scheduling, Throttle, Watch

__all__ = [
    "FORMAT_VERSION",
    "MAX_JOBS",
    "MAX_VALUE",
    "Amounts",
    "Arrays",
    "Arrival",
    "Assignment",
    "Autoscaler",
    "BlockSize",
    "Changes",
    "Cluster",
    "Communication",
    "CoreCurve",
    "Cost",
    "Demand",
    "Domain",
    "Edge",
    "Endpoint",
    "Estimate",
    "Flavor",
    "FlavorAllowance",
    "Fragmentation",
    "Goals",
    "Gpu",
    "Group",
    "Hold",
    "Horus",
    "Instance",
    "InstanceRef",
    "Interference",
    "Job",
    "JobOrigin",
    "LabelExpression",
    "Level",
    "Link",
    "LoadStep",
    "Machine",
    "Moved",
    "Node",
    "Option",
    "Origin",
    "Part",
    "Physics",
    "Placement",
    "Plan",
    "Policy",
    "PolicyRef",
    "Postpone",
    "Preempted",
    "Queue",
    "Quota",
    "Record",
    "Relation",
    "Replica",
    "Running",
    "Scenario",
    "Scheduling",
    "Seconds",
    "Shrunk",
    "Slowdown",
    "SlowdownCurve",
    "Split",
    "Spread",
    "Stage",
    "Standing",
    "Taint",
    "TargetWorker",
    "Throttle",
    "Toleration",
    "Unplaced",
    "Usable",
    "Watch",
    "Weights",
    "WorkerGpus",
    "hold_groups",
]
