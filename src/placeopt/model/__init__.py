"""What users write and read: rounds and plans, and every record in them."""

from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names

if TYPE_CHECKING:
    from placeopt.model.base import MAX_JOBS as MAX_JOBS
    from placeopt.model.base import MAX_VALUE as MAX_VALUE
    from placeopt.model.base import Amounts as Amounts
    from placeopt.model.base import Record as Record
    from placeopt.model.cluster import BlockSize as BlockSize
    from placeopt.model.cluster import Cluster as Cluster
    from placeopt.model.cluster import Domain as Domain
    from placeopt.model.cluster import Node as Node
    from placeopt.model.conditions import LabelExpression as LabelExpression
    from placeopt.model.conditions import NodeConditions as NodeConditions
    from placeopt.model.conditions import Relation as Relation
    from placeopt.model.conditions import Taint as Taint
    from placeopt.model.conditions import Toleration as Toleration
    from placeopt.model.costs import CostParameters as CostParameters
    from placeopt.model.costs import Weights as Weights
    from placeopt.model.group import Demand as Demand
    from placeopt.model.group import Group as Group
    from placeopt.model.group import Split as Split
    from placeopt.model.group import Spread as Spread
    from placeopt.model.instance import FORMAT_VERSION as FORMAT_VERSION
    from placeopt.model.instance import Hold as Hold
    from placeopt.model.instance import Instance as Instance
    from placeopt.model.instance import ReadingNote as ReadingNote
    from placeopt.model.instance import Slowdown as Slowdown
    from placeopt.model.instance import hold_groups as hold_groups
    from placeopt.model.job import Communication as Communication
    from placeopt.model.job import Edge as Edge
    from placeopt.model.job import Job as Job
    from placeopt.model.job import JobOrigin as JobOrigin
    from placeopt.model.job import Option as Option
    from placeopt.model.job import Origin as Origin
    from placeopt.model.machine import Gpu as Gpu
    from placeopt.model.machine import Link as Link
    from placeopt.model.machine import Machine as Machine
    from placeopt.model.machine import Part as Part
    from placeopt.model.machine import Profile as Profile
    from placeopt.model.placement import Assignment as Assignment
    from placeopt.model.placement import Placement as Placement
    from placeopt.model.placement import Running as Running
    from placeopt.model.placement import WorkerGpus as WorkerGpus
    from placeopt.model.plan import Cost as Cost
    from placeopt.model.plan import InstanceRef as InstanceRef
    from placeopt.model.plan import Level as Level
    from placeopt.model.plan import Moved as Moved
    from placeopt.model.plan import Plan as Plan
    from placeopt.model.plan import PolicyRef as PolicyRef
    from placeopt.model.plan import Preempted as Preempted
    from placeopt.model.plan import Seconds as Seconds
    from placeopt.model.plan import Shrunk as Shrunk
    from placeopt.model.plan import Stage as Stage
    from placeopt.model.plan import Standing as Standing
    from placeopt.model.plan import Unplaced as Unplaced
    from placeopt.model.policy import Changes as Changes
    from placeopt.model.policy import Fragmentation as Fragmentation
    from placeopt.model.policy import Interference as Interference
    from placeopt.model.policy import Policy as Policy
    from placeopt.model.policy import Postpone as Postpone
    from placeopt.model.policy import SlowdownCurve as SlowdownCurve
    from placeopt.model.policy import TargetWorker as TargetWorker
    from placeopt.model.policy import Usable as Usable
    from placeopt.model.queues import Flavor as Flavor
    from placeopt.model.queues import FlavorAllowance as FlavorAllowance
    from placeopt.model.queues import Queue as Queue
    from placeopt.model.queues import Quota as Quota

__getattr__, __dir__ = lazy_names(__name__)
