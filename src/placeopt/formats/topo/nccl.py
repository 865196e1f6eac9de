"""Topology XML of NCCL and RCCL (``NCCL_TOPO_FILE``, ``NCCL_TOPO_DUMP_FILE``): PCIe tree by NUMA domain, and links."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from placeopt.formats.source_file import SourceFile
from placeopt.formats.topo.host import (
    GPU_CLASSES,
    GPU_VENDORS,
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

MAX_GPUS = 256

NVLINK_LANE_MBPS: Mapping[str, int] = {"60": 20_000, "70": 25_000, "80": 25_000, "90": 25_000}
"""One direction of one lane by compute capability (``sm``): P100, V100, A100, H100 data sheets."""

XGMI_LANE_MBPS: Mapping[str, int] = {"908": 46_000, "910": 50_000, "90a": 50_000, "942": 64_000}
"""The same by GCN architecture: MI100, MI200 (RCCL's older files write it 910), MI300 data sheets."""

_NVSWITCH, _CPU = "0x068000", "0x068001"


@dataclass
class _GpuElement:
    """A GPU of the file: its element, its place in the PCIe tree, and its links."""

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
    to NVSwitches join all GPUs that have some; links to a CPU (Power) make the GPU's uplink. Raises `BadInput` if an
    attribute that is needed is missing or malformed, or a link leads nowhere.
    """
    root = source.xml
    places, gpu_elements, network = [], [], 0
    for cpu in root.findall("cpu"):
        numa, mask = cpu.get("numaid", ""), cpu_words(cpu.get("affinity", ""))
        if not re.fullmatch(r"\d{1,4}", numa) or mask is None:
            raise source.bad(
                1,
                f"cpu numaid={numa[:20]!r} affinity={cpu.get('affinity', '')[:40]!r}; expected a number and hex words",
            )
        places.append(HostPart(f"numa{int(numa)}", "numa", None, int(numa), mask))
        gpu_elements += list(_gpus(source, cpu, int(numa)))
        network += _network_mbps(cpu)
    if not places:
        raise source.bad(1, "no <cpu> in <system>; expected a topology file of NCCL or RCCL")
    if len({place.key for place in places}) != len(places):
        raise source.bad(1, "two <cpu> have the same numaid; expected one for each NUMA domain")
    if len(gpu_elements) > MAX_GPUS or len({gpu.bus for gpu in gpu_elements}) != len(gpu_elements):
        raise source.bad(1, f"{len(gpu_elements)} GPUs; expected at most {MAX_GPUS}, each with its own busid")
    devs = {gpu.dev for gpu in gpu_elements}
    by_dev = None not in devs and len(devs) == len(gpu_elements)
    gpu_elements.sort(key=lambda gpu: (gpu.dev if by_dev and gpu.dev is not None else 0, gpu.bus))
    switches, uplinks, switch_mbps = switches_of([gpu.chain for gpu in gpu_elements])
    links, to_cpu = _links(source, gpu_elements)
    gpus = []
    for i, gpu in enumerate(gpu_elements):
        model, memory_mib = _model(gpu)
        gpus.append(
            HostGpu(
                model=model,
                memory_mib=memory_mib,
                bus=gpu.bus,
                numa=gpu.numa,
                switches=switches[i],
                uplink_mbps=to_cpu.get(i, uplinks[i]),
            )
        )
    cpus = sum(place.cpus.bit_count() for place in places)
    return Host(
        format="NCCL XML",
        file=source.name,
        places=tuple(places),
        gpus=tuple(gpus),
        knows_pcie=True,
        switch_mbps=switch_mbps,
        links=links,
        num_cpus=cpus or None,
        network_mbps=network or None,
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
        else:
            stack += [(below, chain) for below in reversed(pci.findall("pci"))]


def _network_mbps(cpu: Element) -> int:
    """Sum of the speeds (Mbit/s in the file) of the network ports below, in MB/s."""
    speeds = (net.get("speed", "") for net in cpu.iter("net"))
    return sum(int(speed) // 8 for speed in speeds if re.fullmatch(r"\d{1,8}", speed))


def _model(gpu: _GpuElement) -> tuple[str | None, int]:
    """Model and memory by the device id; else from the architecture."""
    ids = tuple(gpu.pci.get(name, "").removeprefix("0x").lower() for name in ("vendor", "device"))
    if (ids[0], ids[1]) in MODELS:
        return MODELS[ids[0], ids[1]]
    gcn = "" if gpu.gpu is None else gpu.gpu.get("gcn", "").removeprefix("gfx")
    if re.fullmatch(r"[0-9a-f]{3,5}", gcn):
        return f"AMD gfx{gcn}", 0
    sm = "" if gpu.gpu is None else gpu.gpu.get("sm", "")
    if re.fullmatch(r"\d{2,3}", sm):
        return f"NVIDIA sm_{sm}", 0
    return None, 0


def _links(source: SourceFile, gpu_elements: list[_GpuElement]) -> tuple[tuple[Link, ...], dict[int, int]]:
    """Direct links between GPUs, and MB/s from GPU to CPU where that is a link too."""
    index = {gpu.bus: i for i, gpu in enumerate(gpu_elements)}
    links: dict[tuple[int, int], Link] = {}
    to_switch: dict[int, tuple[int, int | None]] = {}
    to_cpu: dict[int, int] = {}
    for i, gpu in enumerate(gpu_elements):
        for element in () if gpu.gpu is None else gpu.gpu:
            if element.tag not in ("nvlink", "xgmi"):
                continue
            count, target = element.get("count", ""), element.get("target", "")
            if not re.fullmatch(r"[1-9]\d?", count) or int(count) > 64:
                raise source.bad(1, f"{element.tag} of GPU {gpu.bus}: count={count[:20]!r}, expected 1 to 64")
            lanes, other = int(count), index.get(bus_address(target) or "")
            lane_mbps = _lane_mbps(element.tag, gpu)
            mbps = None if lane_mbps is None else lanes * lane_mbps
            if element.get("tclass") == _NVSWITCH:
                before = to_switch.get(i, (0, 0))
                total = None if mbps is None or before[1] is None else before[1] + mbps
                to_switch[i] = (min(64, before[0] + lanes), total)
            elif element.get("tclass") == _CPU:
                to_cpu[i] = to_cpu.get(i, 0) + (mbps or 0)
            elif other is None or other == i:
                raise source.bad(
                    1, f"{element.tag} of GPU {gpu.bus}: target {target[:40]!r} is not another GPU of the file"
                )
            else:
                pair = (min(i, other), max(i, other))
                kind = "nvlink" if element.tag == "nvlink" else "xgmi"
                links[pair] = Link.model_validate({"gpus": pair, "kind": kind, "lanes": lanes, "bandwidth_mbps": mbps})
    for i, (lanes, mbps) in to_switch.items():
        for j, (other_lanes, other_mbps) in to_switch.items():
            if i < j and (i, j) not in links:
                both = None if mbps is None or other_mbps is None else min(mbps, other_mbps)
                links[i, j] = Link(gpus=(i, j), lanes=min(lanes, other_lanes), bandwidth_mbps=both)
    return tuple(links[pair] for pair in sorted(links)), {i: mbps for i, mbps in to_cpu.items() if mbps}


def _lane_mbps(tag: str, gpu: _GpuElement) -> int | None:
    if gpu.gpu is None:
        return None
    if tag == "xgmi":
        return XGMI_LANE_MBPS.get(gpu.gpu.get("gcn", "").removeprefix("gfx"))
    return NVLINK_LANE_MBPS.get(gpu.gpu.get("sm", ""))
