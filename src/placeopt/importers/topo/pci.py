"""GPUs in a PCI tree as XML files have it, and the switches that the bridges above them make."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from placeopt.importers.topo.host import Host, HostGpu
from placeopt.model import Link

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

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

LIBRARIES = ("nvml", "rsmi", "cuda", "ze", "dev")
"""What numbers GPUs, the first one that numbers all of them counts; ``dev`` is NCCL's own number."""

_BUS = re.compile(r"(?:([0-9a-fA-F]{1,8}):)?([0-9a-fA-F]{1,2}):([0-9a-fA-F]{1,2})\.([0-7])\Z")

Chain = list[tuple[str, int | None]]
"""(Address, MB/s upwards or None) of each bridge above a GPU, the highest first, then of the GPU."""


Links = tuple[tuple[Link, ...], Mapping[int, int]]
"""Direct links between GPUs, and MB/s from a GPU to its CPU."""


class PciGpu(NamedTuple):
    """A PCI device that is a GPU."""

    chain: Chain
    device: Element
    place: str | None
    model: tuple[str | None, int]
    """And its memory in MiB, 0 if unknown."""
    numbers: Mapping[str, int]
    """Library -> number."""

    @property
    def bus(self) -> str:
        """Its PCI address."""
        return self.chain[-1][0]


def bus_address(text: str) -> str | None:
    """Write a PCI address in one way, ``dddddddd:bb:dd.f``, so that addresses compare and sort; None if it is none."""
    match = _BUS.match(text.strip())
    if match is None:
        return None
    domain, bus, device = (int(part or "0", 16) for part in match.group(1, 2, 3))
    return f"{domain:08x}:{bus:02x}:{device:02x}.{match[4]}"


def parents_of(root: Element) -> dict[Element, Element]:
    """Return element -> the one that holds it."""
    return {inner: outer for outer in root.iter() for inner in outer}


def upwards(element: Element, parents: Mapping[Element, Element]) -> Iterator[Element]:
    """Yield an element and all that hold it."""
    above: Element | None = element
    while above is not None:
        yield above
        above = parents.get(above)


def _in_order(gpus: Sequence[PciGpu]) -> list[PciGpu]:
    """Return the GPUs by the number that the first library gives which numbers all of them; else by PCI address."""
    for library in LIBRARIES:
        if len({gpu.numbers[library] for gpu in gpus if library in gpu.numbers}) == len(gpus):
            return sorted(gpus, key=lambda gpu: gpu.numbers[library])
    return sorted(gpus, key=lambda gpu: gpu.bus)


def pci_host(found: Sequence[PciGpu], links: Callable[[Sequence[PciGpu]], Links], **fields: Any) -> Host:
    """
    Return the host of some GPUs, in their order; ``links``: what joins them. ``fields``: others of the host.

    Bridges at which paths to GPUs separate are switches. The speed of a switch or GPU is the smallest known one up to
    the next switch above, but of a GPU that is linked to its CPU otherwise.
    """
    gpus = _in_order(found)
    direct, to_cpu = links(gpus)
    ways: dict[str, set[str]] = {}
    for gpu in gpus:
        for (bridge, _), (below, _) in pairwise(gpu.chain):
            ways.setdefault(bridge, set()).add(below)
    made, switch_mbps = [], dict[str, int | None]()
    for i, gpu in enumerate(gpus):
        switches: list[str] = []
        speeds: list[int] = []
        for address, mbps in gpu.chain:
            speeds += [mbps] if mbps else []
            if address != gpu.bus and len(ways[address]) > 1:
                switches.append(address)
                switch_mbps[address] = min(speeds, default=None)
                speeds = []
        uplink = to_cpu.get(i) or min(speeds, default=None)
        made.append(HostGpu(*gpu.model, gpu.place, tuple(switches), uplink))
    return Host(gpus=made, switch_mbps=switch_mbps, links=direct, **fields)
