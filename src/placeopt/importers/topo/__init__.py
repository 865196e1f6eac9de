"""Machines and network domains from the output of topology tools; one module a tool, the readers in `read`."""

from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names

if TYPE_CHECKING:
    from placeopt.importers.fabric import Fabric as Fabric
    from placeopt.importers.topo.read import read_machine as read_machine
    from placeopt.importers.topo.read import read_topo as read_topo

__getattr__, __dir__ = lazy_names(__name__)
