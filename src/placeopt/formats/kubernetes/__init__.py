"""Kubernetes: nodes and pods of a running cluster, from files or from objects that are parsed already."""

from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names

if TYPE_CHECKING:
    from placeopt.formats.kubernetes.resources import parse_quantity
    from placeopt.formats.kubernetes.single import KubernetesObjects
    from placeopt.formats.kubernetes.snapshot import read_kubernetes

__all__ = [
    "KubernetesObjects",
    "parse_quantity",
    "read_kubernetes",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "resources": ("parse_quantity",),
        "single": ("KubernetesObjects",),
        "snapshot": ("read_kubernetes",),
    },
)
