"""The driver of Kubernetes: scheduling gates are lifted for the nodes of a plan; kube-scheduler binds."""

from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names

if TYPE_CHECKING:
    from placeopt.drivers.kubernetes.api import Api as Api
    from placeopt.drivers.kubernetes.driver import Driver as Driver
    from placeopt.drivers.kubernetes.driver import KubernetesOptions as KubernetesOptions
    from placeopt.drivers.kubernetes.kinds import CORE as CORE
    from placeopt.drivers.kubernetes.kinds import OPTIONAL as OPTIONAL
    from placeopt.drivers.kubernetes.lease import Lease as Lease

__getattr__, __dir__ = lazy_names(__name__)
