"""
Kubernetes: nodes and pods of a running cluster; `placeopt.importers.read_kubernetes` reads them as a round.

A `Listing` has the objects by kind, its nodes, devices, groups and queues; a `PodList` has its pods, each read once.
Pods of one group, whoever made it, are a `PodGroup`; its pods that run and those that wait are each a `Draft`, of which
a `JobReader` makes a job. `InterPodRules` and `NodeConditions` are what pods ask of each other and of nodes.
"""

from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names

if TYPE_CHECKING:
    from placeopt.importers.kubernetes.resources import parse_quantity as parse_quantity

__getattr__, __dir__ = lazy_names(__name__)
