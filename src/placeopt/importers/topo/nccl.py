"""Topology XML of NCCL and RCCL (``NCCL_TOPO_FILE``, ``NCCL_TOPO_DUMP_FILE``): PCIe tree by NUMA domain, and links."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING

from placeopt.errors import Unsupported
from placeopt.importers.source_file import SourceFile
from placeopt.importers.topo.host import MAX_GPUS, Host, cpu_words
from placeopt.importers.topo.pci import GPU_CLASSES, GPU_VENDORS, MODELS, Chain, Links, PciGpu, bus_address, pci_host
from placeopt.model import Link

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

NVLINK_LANE_MBPS: Mapping[str, int] = {"60": 20_000, "70": 25_000, "80": 25_000, "90": 25_000, "100": 50_000}
"""One direction of one lane by compute capability (``sm``): P100, V100, A100, H100, B200 data sheets."""

XGMI_LANE_MBPS: Mapping[str, int] = {"908": 46_000, "910": 50_000, "90a": 50_000, "942": 64_000}
"""The same by GCN architecture: MI100, MI200 (RCCL's older files write it 910), MI300 data sheets."""

_NVSWITCH, _CPU = "0x068000", "0x068001"


def read_nccl(source: SourceFile) -> Host:
    """
    Return the host. A ``cpu`` element is a NUMA domain; bridges at which paths to GPUs separate become switches.

    GPUs are numbered by ``dev`` where all have one, else by PCI address, as CUDA does. The file states no memory. Links
    to NVSwitches join all GPUs that have some; links to a CPU (Power, C2C) make the GPU's uplink. Raises `Unsupported`
    if the file describes several hosts, as a domain of multi-node NVLink does, and `BadInput` if an attribute that is
    needed is missing or malformed, or a link leads nowhere.
    """
    elements = source.xml.findall("cpu")
    if (hosts := len({cpu.get("host_hash") for cpu in elements})) > 1:
        raise Unsupported(
            f"{source.name}: describes {hosts} hosts (host_hash); give the <cpu> elements of one of them, or what NCCL "
            "writes with NCCL_MNNVL_ENABLE=0"
        )
    places: dict[str, str | None] = {}
    found: list[PciGpu] = []
    num_cpus = 0
    for cpu in elements:
        numa, affinity = cpu.get("numaid", ""), cpu.get("affinity", "")
        mask = cpu_words(affinity)
        if not re.fullmatch(r"-1|\d{1,4}", numa) or mask is None:  # -1 in virtual machines without domains
            raise source.bad(1, f"cpu numaid={numa[:20]!r} affinity={affinity[:40]!r}; expected a number and hex words")
        place = f"numa{int(numa)}"
        if place in places:
            raise source.bad(1, "two <cpu> have the same numaid; expected one for each NUMA domain")
        places[place] = None
        num_cpus += mask.bit_count()
        found += _gpus(source, cpu, place)
    if not places:
        raise source.bad(1, "no <cpu> in <system>; expected a topology file of NCCL or RCCL")
    if len(found) > MAX_GPUS or len({gpu.bus for gpu in found}) != len(found):
        raise source.bad(1, f"{len(found)} GPUs; expected at most {MAX_GPUS}, each with its own busid")
    speeds = (net.get("speed", "") for net in source.xml.iter("net"))  # Mbit/s
    network = sum(int(speed) // 8 for speed in speeds if re.fullmatch(r"\d{1,8}", speed))
    return pci_host(found, partial(_links, source), places=places, num_cpus=num_cpus, network_mbps=network)


def _gpus(source: SourceFile, cpu: Element, place: str) -> Iterator[PciGpu]:
    """Yield all GPUs below one ``cpu``."""
    stack: list[tuple[Element, Chain]] = [(pci, []) for pci in reversed(cpu.findall("pci"))]
    while stack:
        pci, above = stack.pop()
        bus = bus_address(pci.get("busid", ""))
        if bus is None:
            raise source.bad(1, f"pci busid={pci.get('busid', '')[:40]!r}; expected for example '0000:1a:00.0'")
        chain = [*above, (bus, _pcie_mbps(pci.get("link_speed", ""), pci.get("link_width", "")))]
        kind, vendor, device = (pci.get(name, "").removeprefix("0x").lower() for name in ("class", "vendor", "device"))
        gpu = pci.find("gpu")
        if gpu is not None or (kind[:4] in GPU_CLASSES and (not vendor or vendor in GPU_VENDORS)):
            dev = _attribute(pci, "dev")
            numbers = {"dev": int(dev)} if re.fullmatch(r"\d{1,4}", dev) else {}
            yield PciGpu(chain, pci, place, MODELS.get((vendor, device)) or (_architecture(pci), 0), numbers)
        elif not kind and not len(pci):
            raise source.bad(
                1, f"pci {bus} states no class, so it may be a GPU; give what NCCL_TOPO_DUMP_FILE writes on the machine"
            )
        else:
            stack += [(below, chain) for below in reversed(pci.findall("pci"))]


def _pcie_mbps(speed: str, width: str) -> int | None:
    """
    Return MB/s in one direction of a PCIe link such as ``8 GT/s`` (also ``8.0 GT/s PCIe``) x ``16``; None if unknown.

    Up to 5 GT/s 8 of 10 bits are data, above 128 of 130.
    """
    rate = re.match(r"(\d{1,3}(?:\.\d{1,3})?) ?GT/s", speed)
    if rate is None or not re.fullmatch(r"\d{1,2}", width):
        return None
    per_lane = float(rate[1]) * 1000 * (0.8 if float(rate[1]) <= 5 else 128 / 130) / 8
    return round(per_lane * int(width)) or None


def _architecture(pci: Element) -> str | None:
    """Return a model where the device is not known: the architecture."""
    gcn, sm = _attribute(pci, "gcn").removeprefix("gfx"), _attribute(pci, "sm")
    if re.fullmatch(r"[0-9a-f]{3,5}", gcn):
        return f"AMD gfx{gcn}"
    return f"NVIDIA sm_{sm}" if re.fullmatch(r"\d{2,3}", sm) else None


def _links(source: SourceFile, found: Sequence[PciGpu]) -> Links:
    """Return direct links between GPUs, and MB/s from a GPU to its CPU where that is a link too."""
    index = {gpu.bus: i for i, gpu in enumerate(found)}
    links: dict[tuple[int, int], Link] = {}
    to_switch: dict[int, tuple[int, int | None]] = {}
    to_cpu: dict[int, int] = {}
    for i, element in ((i, one) for i, gpu in enumerate(found) for one in gpu.device.findall("gpu/*")):
        kind, count, target = element.tag, element.get("count", ""), element.get("target", "")
        if kind not in ("nvlink", "xgmi", "c2c"):
            continue
        if not re.fullmatch(r"[1-9]\d?", count) or int(count) > 64:
            raise source.bad(1, f"{kind} of GPU {found[i].bus}: count={count[:20]!r}, expected 1 to 64")
        lanes, other = int(count), index.get(bus_address(target) or "")
        lane_mbps = _lane_mbps(element, found[i].device)
        mbps = None if lane_mbps is None else lanes * lane_mbps
        if kind == "c2c" or element.get("tclass") == _CPU:
            to_cpu[i] = to_cpu.get(i, 0) + (mbps or 0)
        elif element.get("tclass") == _NVSWITCH:
            before = to_switch.get(i, (0, 0))
            total = None if mbps is None or before[1] is None else before[1] + mbps
            to_switch[i] = (min(64, before[0] + lanes), total)
        elif other is None or other == i:
            raise source.bad(1, f"{kind} of GPU {found[i].bus}: target {target[:40]!r} is not another GPU of the file")
        else:
            pair = (min(i, other), max(i, other))
            fields = {"gpus": pair, "kind": kind, "lanes": lanes, "bandwidth_mbps": mbps}
            links[pair] = Link.model_validate(fields)
    for (i, (lanes, mbps)), (j, (other_lanes, other_mbps)) in combinations(sorted(to_switch.items()), 2):
        both = None if mbps is None or other_mbps is None else min(mbps, other_mbps)
        links.setdefault((i, j), Link(gpus=(i, j), lanes=min(lanes, other_lanes), bandwidth_mbps=both))
    return tuple(links[pair] for pair in sorted(links)), to_cpu


def _lane_mbps(element: Element, pci: Element) -> int | None:
    """Return MB/s of one lane of a link of a GPU, in one direction."""
    if element.tag == "c2c":
        return int(element.get("bw", "")) if re.fullmatch(r"\d{1,6}", element.get("bw", "")) else None
    if element.tag == "xgmi":
        return XGMI_LANE_MBPS.get(_attribute(pci, "gcn").removeprefix("gfx"))
    return NVLINK_LANE_MBPS.get(_attribute(pci, "sm"))


def _attribute(pci: Element, name: str) -> str:
    """Return an attribute of the ``gpu`` of a PCI device, empty where there is none."""
    gpu = pci.find("gpu")
    return "" if gpu is None else gpu.get(name, "")
