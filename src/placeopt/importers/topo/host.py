"""
The description of one host, common to all formats.

Every reader fills the fields that its format states; ``build`` turns the result into a ``Machine``. Sets of logical
CPUs are bit masks: bit ``c`` is CPU ``c``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from placeopt.model import Link

GPU_VENDORS = frozenset({"10de", "1002"})
GPU_CLASSES = ("0302", "0380", "1200")
"""3D controller, other display controller, processing accelerator: how data centre GPUs show. 0300 is a VGA."""

MODELS: Mapping[tuple[str, str], tuple[str, int]] = {
    ("10de", "15f9"): ("Tesla P100-SXM2-16GB", 16_384),
    ("10de", "1db1"): ("Tesla V100-SXM2-16GB", 16_384),
    ("10de", "1db5"): ("Tesla V100-SXM2-32GB", 32_768),
    ("10de", "1eb8"): ("Tesla T4", 16_384),
    ("10de", "20b0"): ("NVIDIA A100-SXM4-40GB", 40_960),
    ("10de", "20b2"): ("NVIDIA A100-SXM4-80GB", 81_920),
    ("10de", "2330"): ("NVIDIA H100-SXM5-80GB", 81_920),
    ("1002", "738c"): ("AMD Instinct MI100", 32_768),
    ("1002", "740c"): ("AMD Instinct MI250X", 65_536),
    ("1002", "740f"): ("AMD Instinct MI210", 65_536),
    ("1002", "74a1"): ("AMD Instinct MI300X", 196_608),
}
"""Model and nominal memory (MiB) of (vendor, device), by the public PCI id list; of an MI250X, of each half."""

_BUS = re.compile(r"(?:([0-9a-fA-F]{1,8}):)?([0-9a-fA-F]{1,2}):([0-9a-fA-F]{1,2})\.([0-7])\Z")


def bus_address(text: str) -> str | None:
    """Write a PCI address in one way, ``dddddddd:bb:dd.f``, so that addresses compare and sort; None if it is none."""
    match = _BUS.match(text.strip())
    if match is None:
        return None
    domain, bus, device = (int(part or "0", 16) for part in match.group(1, 2, 3))
    return f"{domain:08x}:{bus:02x}:{device:02x}.{match[4]}"


def link_mbps(speed: str | None, width: str | None) -> int | None:
    """
    MB/s in one direction of a PCIe link such as ``8 GT/s`` (also ``8.0 GT/s PCIe``) x ``16``; None if unknown.

    Up to 5 GT/s 8 of 10 bits are data, above 128 of 130.
    """
    rate = re.match(r"(\d{1,3}(?:\.\d{1,3})?) ?GT/s", speed or "")
    if rate is None or not re.fullmatch(r"\d{1,2}", width or ""):
        return None
    per_lane = float(rate[1]) * 1000 * (0.8 if float(rate[1]) <= 5 else 128 / 130) / 8
    return round(per_lane * int(width or "0")) or None


def smaller(*speeds: int | None) -> int | None:
    """Smallest of the speeds that are known, or None."""
    return min((speed for speed in speeds if speed), default=None)


def switches_of(
    chains: Sequence[Sequence[tuple[str, int | None]]],
) -> tuple[list[tuple[str, ...]], list[int | None], dict[str, int | None]]:
    """
    Reduce every GPU's chain of bridges to those at which paths to GPUs separate.

    ``chains``: Per GPU, (id, uplink MB/s or None) of each bridge above it, the highest first, then of the GPU itself.
    Returns per GPU the ids of the kept bridges, the highest first; per GPU the smallest known speed between it and the
    next kept bridge above; and the same per kept bridge.
    """
    ways: dict[str, set[str]] = {}
    for chain in chains:
        for (bridge, _), (below, _) in pairwise(chain):
            ways.setdefault(bridge, set()).add(below)
    switches, gpu_mbps = [], []
    switch_mbps: dict[str, int | None] = {}
    for chain in chains:
        kept: list[str] = []
        slowest: int | None = None
        for bridge, mbps in chain[:-1]:
            slowest = smaller(slowest, mbps)
            if len(ways[bridge]) > 1:
                kept.append(bridge)
                switch_mbps[bridge] = slowest
                slowest = None
        switches.append(tuple(kept))
        gpu_mbps.append(smaller(slowest, chain[-1][1]) if chain else None)
    return switches, gpu_mbps, switch_mbps


MAX_GPUS = 256
"""Most GPUs of a file."""
MAX_PLACES = 1024
"""Most sockets and NUMA domains of a file."""

MAX_CPU = 65_535
"""Largest CPU number that is read; real machines stay below 10,000."""


@dataclass(frozen=True)
class HostPart:
    """A socket or NUMA domain. ``key`` is unique in the host; ``numa`` is the system's number of a domain."""

    key: str
    level: Literal["socket", "numa"]
    parent: str | None = None
    numa: int | None = None


@dataclass(frozen=True)
class HostGpu:
    """One GPU; None and 0: unknown."""

    model: str | None = None
    memory_mib: int = 0
    place: str | None = None
    """Key of its `HostPart`."""
    switches: tuple[str, ...] = ()
    """PCIe switches above, the highest first; keys of ``Host.switch_mbps``."""
    uplink_mbps: int | None = None


@dataclass(frozen=True)
class Host:
    """The description of one host in one file; None: not stated."""

    format: str
    file: str
    """As the user named it."""
    places: tuple[HostPart, ...] = ()
    """Parents first."""
    gpus: tuple[HostGpu, ...] = ()
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
