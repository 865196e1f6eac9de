"""The driver of Kubernetes: scheduling gates are lifted for the nodes of a plan; kube-scheduler binds."""

from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names

if TYPE_CHECKING:
    from placeopt.drivers.kubernetes.api import Api
    from placeopt.drivers.kubernetes.driver import Driver, DriverOptions
    from placeopt.drivers.kubernetes.kinds import CORE, OPTIONAL
    from placeopt.drivers.kubernetes.lease import Lease
    from placeopt.drivers.kubernetes.manifests import as_yaml, driver_manifests, extender_configuration

__all__ = [
    "CORE",
    "OPTIONAL",
    "Api",
    "Driver",
    "DriverOptions",
    "Lease",
    "as_yaml",
    "driver_manifests",
    "extender_configuration",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "api": ("Api",),
        "driver": (
            "Driver",
            "DriverOptions",
        ),
        "kinds": (
            "CORE",
            "OPTIONAL",
        ),
        "lease": ("Lease",),
        "manifests": (
            "as_yaml",
            "driver_manifests",
            "extender_configuration",
        ),
    },
)
