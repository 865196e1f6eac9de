"""Slurm: nodes, jobs and topology of a running cluster, from files or from replies that are parsed already."""

from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names

if TYPE_CHECKING:
    from placeopt.formats.slurm.fields import expand_hosts, parse_tres
    from placeopt.formats.slurm.nodes import read_nodes
    from placeopt.formats.slurm.single import SlurmObjects
    from placeopt.formats.slurm.snapshot import JobListReader, read_slurm

__all__ = [
    "JobListReader",
    "SlurmObjects",
    "expand_hosts",
    "parse_tres",
    "read_nodes",
    "read_slurm",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "fields": (
            "expand_hosts",
            "parse_tres",
        ),
        "nodes": ("read_nodes",),
        "single": ("SlurmObjects",),
        "snapshot": (
            "JobListReader",
            "read_slurm",
        ),
    },
)
