"""Topology XML of NCCL and RCCL (``NCCL_TOPO_FILE``, ``NCCL_TOPO_DUMP_FILE``): PCIe tree by NUMA domain, and links."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal

from placeopt.errors import Unsupported
from placeopt.importers.source_file import SourceFile
from placeopt.importers.topo.host import (
    GPU_CLASSES,
    GPU_VENDORS,
    MAX_GPUS,
    MODELS,
    Host,
    HostGpu,
    HostPart,
    bus_address,
    cpu_words,
    link_mbps,
    switches_of,
)
from placeopt.model import Link

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

NVLINK_LANE_MBPS: Mapping[str, int] = {"60": 20_000, "70": 25_000, "80": 25_000, "90": 25_000, "100": 50_000}
"""One direction of one lane by compute capability (``sm``): P100, V100, A100, H100, B200 data sheets."""

XGMI_LANE_MBPS: Mapping[str, int] = {"908": 46_000, "910": 50_000, "90a": 50_000, "942": 64_000}
"""The same by GCN architecture: MI100, MI200 (RCCL's older files write it 910), MI300 data sheets."""

_NVSWITCH, _CPU = "0x068000", "0x068001"


@dataclass
class _GpuElement:
    """A GPU of the file: its place in the PCIe tree, and its elements."""

    bus: str
    numa: int
    chain: list[tuple[str, int | None]]
    pci: Element
    gpu: Element | None
    dev: int | None


def read_nccl(source: SourceFile) -> Host:
    """
    Return the host. A ``cpu`` element is a NUMA domain; bridges at which paths to GPUs separate become switches.

    GPUs are numbered by ``dev`` where all have one, else by PCI address, as CUDA does. The file states no memory. Links
    to NVSwitches join all GPUs that have some; links to a CPU (Power, C2C) make the GPU's uplink. Raises `Unsupported`
    if the file describes several hosts, as a domain of multi-node NVLink does, and `BadInput` if an attribute that is
    needed is missing or malformed, or a link leads nowhere.
    """
    cpus: dict[int, int] = {}  # NUMA domain -> mask
    found: list[_GpuElement] = []
    elements = source.xml.findall("cpu")
    if (hosts := len({cpu.get("host_hash") for cpu in elements})) > 1:
        raise Unsupported(
            f"{source.name}: describes {hosts} hosts (host_hash); give the <cpu> elements of one of them, or what NCCL "
            "writes with NCCL_MNNVL_ENABLE=0"
        )
    for cpu in elements:
        numa, mask = cpu.get("numaid", ""), cpu_words(cpu.get("affinity", ""))
        if not re.fullmatch(r"-1|\d{1,4}", numa) or mask is None:  # -1 in virtual machines without domains
            raise source.bad(
                1,
                f"cpu numaid={numa[:20]!r} affinity={cpu.get('affinity', '')[:40]!r}; expected a number and hex words",
            )
        if int(numa) in cpus:
            raise source.bad(1, "two <cpu> have the same numaid; expected one for each NUMA domain")
        cpus[int(numa)] = mask
        found += _gpus(source, cpu, int(numa))
    if not cpus:
        raise source.bad(1, "no <cpu> in <system>; expected a topology file of NCCL or RCCL")
    if len(found) > MAX_GPUS or len({gpu.bus for gpu in found}) != len(found):
        raise source.bad(1, f"{len(found)} GPUs; expected at most {MAX_GPUS}, each with its own busid")
    devs = {gpu.dev for gpu in found}
    by_dev = None not in devs and len(devs) == len(found)
    found.sort(key=lambda gpu: (gpu.dev if by_dev and gpu.dev is not None else 0, gpu.bus))
    switches, uplinks, switch_mbps = switches_of([gpu.chain for gpu in found])
    links, to_cpu = _links(source, found)
    return Host(
        format="NCCL XML",
        file=source.name,
        places=tuple(HostPart(f"numa{numa}", "numa", None, numa) for numa in cpus),
        gpus=tuple(
            HostGpu(*_model(gpu), f"numa{gpu.numa}", switches[i], to_cpu.get(i, uplinks[i]))
            for i, gpu in enumerate(found)
        ),
        switch_mbps=switch_mbps,
        links=links,
        num_cpus=sum(mask.bit_count() for mask in cpus.values()) or None,
        network_mbps=sum(map(_network_mbps, elements)) or None,
    )


def _gpus(source: SourceFile, cpu: Element, numa: int) -> Iterator[_GpuElement]:
    """All GPUs below one ``cpu``, in the file's order."""
    stack: list[tuple[Element, list[tuple[str, int | None]]]] = [(pci, []) for pci in reversed(cpu.findall("pci"))]
    while stack:
        pci, above = stack.pop()
        bus = bus_address(pci.get("busid", ""))
        if bus is None:
            raise source.bad(1, f"pci busid={pci.get('busid', '')[:40]!r}; expected for example '0000:1a:00.0'")
        chain = [*above, (bus, link_mbps(pci.get("link_speed"), pci.get("link_width")))]
        gpu = pci.find("gpu")
        kind = pci.get("class", "").removeprefix("0x")[:4]
        vendor = pci.get("vendor", "").removeprefix("0x")
        if gpu is not None or (kind in GPU_CLASSES and (not vendor or vendor in GPU_VENDORS)):
            dev = "" if gpu is None else gpu.get("dev", "")
            yield _GpuElement(bus, numa, chain, pci, gpu, int(dev) if re.fullmatch(r"\d{1,4}", dev) else None)
        elif not kind and not len(pci):
            raise source.bad(
                1, f"pci {bus} states no class, so it may be a GPU; give what NCCL_TOPO_DUMP_FILE writes on the machine"
            )
        else:
            stack += [(below, chain) for below in reversed(pci.findall("pci"))]


def _network_mbps(cpu: Element) -> int:
    """Sum of the speeds (Mbit/s in the file) of the network ports below, in MB/s."""
    speeds = (net.get("speed", "") for net in cpu.iter("net"))
    return sum(int(speed) // 8 for speed in speeds if re.fullmatch(r"\d{1,8}", speed))


def _model(gpu: _GpuElement) -> tuple[str | None, int]:
    """Model and memory by the device id; else from the architecture."""
    vendor, device = (gpu.pci.get(name, "").removeprefix("0x").lower() for name in ("vendor", "device"))
    if (vendor, device) in MODELS:
        return MODELS[vendor, device]
    gcn, sm = _attribute(gpu, "gcn").removeprefix("gfx"), _attribute(gpu, "sm")
    if re.fullmatch(r"[0-9a-f]{3,5}", gcn):
        return f"AMD gfx{gcn}", 0
    return (f"NVIDIA sm_{sm}" if re.fullmatch(r"\d{2,3}", sm) else None), 0


def _links(source: SourceFile, found: list[_GpuElement]) -> tuple[tuple[Link, ...], dict[int, int]]:
    """Direct links between GPUs, and MB/s from GPU to CPU where that is a link too."""
    index = {gpu.bus: i for i, gpu in enumerate(found)}
    links: dict[tuple[int, int], Link] = {}
    to_switch: dict[int, tuple[int, int | None]] = {}
    to_cpu: dict[int, int] = {}
    for i, gpu in enumerate(found):
        for element in () if gpu.gpu is None else gpu.gpu:
            if element.tag not in ("nvlink", "xgmi", "c2c"):
                continue
            count, target = element.get("count", ""), element.get("target", "")
            if not re.fullmatch(r"[1-9]\d?", count) or int(count) > 64:
                raise source.bad(1, f"{element.tag} of GPU {gpu.bus}: count={count[:20]!r}, expected 1 to 64")
            lanes, other = int(count), index.get(bus_address(target) or "")
            lane_mbps = _lane_mbps(element, gpu)
            mbps = None if lane_mbps is None else lanes * lane_mbps
            if element.tag == "c2c" or element.get("tclass") == _CPU:
                to_cpu[i] = to_cpu.get(i, 0) + (mbps or 0)
            elif element.get("tclass") == _NVSWITCH:
                before = to_switch.get(i, (0, 0))
                total = None if mbps is None or before[1] is None else before[1] + mbps
                to_switch[i] = (min(64, before[0] + lanes), total)
            elif other is None or other == i:
                raise source.bad(
                    1, f"{element.tag} of GPU {gpu.bus}: target {target[:40]!r} is not another GPU of the file"
                )
            else:
                pair = (min(i, other), max(i, other))
                kind: Literal["nvlink", "xgmi"] = "nvlink" if element.tag == "nvlink" else "xgmi"
                links[pair] = Link(gpus=pair, kind=kind, lanes=lanes, bandwidth_mbps=mbps)
    for (i, (lanes, mbps)), (j, (other_lanes, other_mbps)) in combinations(sorted(to_switch.items()), 2):
        both = None if mbps is None or other_mbps is None else min(mbps, other_mbps)
        links.setdefault((i, j), Link(gpus=(i, j), lanes=min(lanes, other_lanes), bandwidth_mbps=both))
    return tuple(links[pair] for pair in sorted(links)), {i: mbps for i, mbps in to_cpu.items() if mbps}


def _lane_mbps(element: Element, gpu: _GpuElement) -> int | None:
    """MB/s of one lane of a link of a GPU, in one direction."""
    if element.tag == "c2c":
        return int(element.get("bw", "")) if re.fullmatch(r"\d{1,6}", element.get("bw", "")) else None
    if element.tag == "xgmi":
        return XGMI_LANE_MBPS.get(_attribute(gpu, "gcn").removeprefix("gfx"))
    return NVLINK_LANE_MBPS.get(_attribute(gpu, "sm"))


def _attribute(gpu: _GpuElement, name: str) -> str:
    return "" if gpu.gpu is None else gpu.gpu.get(name, "")
