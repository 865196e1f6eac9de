"""Slurm: nodes, jobs and topology of a running cluster; `placeopt.importers.read_slurm` reads them as a round."""

from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names

if TYPE_CHECKING:
    from placeopt.importers.slurm.fields import expand_hosts as expand_hosts
    from placeopt.importers.slurm.fields import parse_tres as parse_tres

__getattr__, __dir__ = lazy_names(__name__)
