"""Machines and network domains from the output of topology tools; one module a tool, the readers in `read`."""

from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names

if TYPE_CHECKING:
    from placeopt.formats.topo.fabric import Fabric, Inventory
    from placeopt.formats.topo.read import (
        read_cluster,
        read_fabric,
        read_inventory,
        read_machine,
        read_topo,
        recognise,
    )

__all__ = [
    "Fabric",
    "Inventory",
    "read_cluster",
    "read_fabric",
    "read_inventory",
    "read_machine",
    "read_topo",
    "recognise",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "fabric": (
            "Fabric",
            "Inventory",
        ),
        "read": (
            "read_cluster",
            "read_fabric",
            "read_inventory",
            "read_machine",
            "read_topo",
            "recognise",
        ),
    },
)
