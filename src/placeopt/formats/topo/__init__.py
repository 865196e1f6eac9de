"""Machines and network domains from the output of topology tools; one module a tool, the readers in `read`."""

from typing import Any

READERS = ("read_cluster", "read_fabric", "read_inventory", "read_machine", "read_topo", "recognise")


def __getattr__(name: str) -> Any:
    """Return a reader; `read` loads at first use, because readers of Slurm's files import parts of this package."""
    if name not in READERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from placeopt.formats.topo import read

    return getattr(read, name)
