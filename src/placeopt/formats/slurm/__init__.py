"""Slurm: nodes, jobs and topology of a running cluster; `placeopt.formats.read_slurm` reads them as a round."""

from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names

if TYPE_CHECKING:
    from placeopt.formats.slurm.fields import expand_hosts, parse_tres
    from placeopt.formats.slurm.nodes import read_nodes
    from placeopt.formats.slurm.snapshot import JobListReader

__all__ = [
    "JobListReader",
    "expand_hosts",
    "parse_tres",
    "read_nodes",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "fields": (
            "expand_hosts",
            "parse_tres",
        ),
        "nodes": ("read_nodes",),
        "snapshot": ("JobListReader",),
    },
)
