"""Kubernetes: nodes and pods of a running cluster; `placeopt.importers.read_kubernetes` reads them as a round."""

from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names

if TYPE_CHECKING:
    from placeopt.importers.kubernetes.resources import parse_quantity as parse_quantity

__getattr__, __dir__ = lazy_names(__name__)
