"""
The description of one host in one file, common to all formats.

Every reader fills the fields that its format states; ``combine`` merges several hosts and
``build`` turns the result into a ``Machine``. Sets of logical CPUs are bit masks: bit ``c`` is CPU ``c``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from placeopt.model import Link

MAX_CPU = 65_535
"""Largest CPU number that is read; real machines stay below 10,000."""


@dataclass(frozen=True)
class HostPart:
    """A socket or NUMA domain. ``key`` is unique in the host and names it; ``numa`` is the system's number of it."""

    key: str
    level: Literal["socket", "numa"]
    parent: str | None = None
    numa: int | None = None
    cpus: int = 0
    """Mask of its logical CPUs; 0: unknown."""


@dataclass(frozen=True)
class HostGpu:
    """One GPU; None and 0: unknown."""

    model: str | None = None
    memory_mib: int = 0
    bus: str | None = None
    """PCI address, as ``pci.bus_address`` writes it."""
    numa: int | None = None
    cpus: int = 0
    island: int | None = None
    """Number of the group that shares a socket, if the file states groups but not sockets."""
    switches: tuple[str, ...] = ()
    """PCIe switches above, the highest first; keys of ``Host.switch_mbps``."""
    uplink_mbps: int | None = None


@dataclass(frozen=True)
class Host:
    """The description of one host in one file."""

    format: str
    file: str
    """As the user named it."""
    places: tuple[HostPart, ...] = ()
    """Parents first."""
    knows_sockets: bool = False
    """Whether ``places`` distinguishes sockets from NUMA domains."""
    gpus: tuple[HostGpu, ...] = ()
    knows_pcie: bool = False
    """Whether ``switches`` come from the PCIe tree itself."""
    switch_mbps: Mapping[str, int | None] = field(default_factory=dict)
    links: tuple[Link, ...] = ()
    num_cpus: int | None = None
    """Logical CPUs."""
    memory_mib: int | None = None
    network_mbps: int | None = None


_RANGE = re.compile(r"(\d{1,7})(?:-(\d{1,7}))?\Z")


def cpu_list(text: str) -> int | None:
    """Mask of a CPU list such as ``0-19,40-59``; None if it is none, or goes beyond ``MAX_CPU``."""
    mask = 0
    for item in text.split(","):
        match = _RANGE.match(item.strip())
        if match is None:
            return None
        first = int(match[1])
        last = int(match[2] or first)
        if not first <= last <= MAX_CPU:
            return None
        mask |= (1 << (last + 1)) - (1 << first)
    return mask


def cpu_words(text: str) -> int | None:
    """
    Mask of comma-separated 32-bit words, the highest first, as sysfs, NCCL and hwloc write them.

    Words may have ``0x`` before them and may be empty (0). None if it is no such text.
    """
    words = text.strip().split(",")
    if len(words) > (MAX_CPU + 1) // 32:
        return None
    mask = 0
    for word in words:
        if not re.fullmatch(r"(0x)?[0-9a-fA-F]{0,8}", word.strip()):
            return None
        mask = mask << 32 | int(word.strip().removeprefix("0x") or "0", 16)
    return mask
