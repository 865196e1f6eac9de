"""hwloc XML (``lstopo --of xml``, versions 1 to 3): packages, NUMA domains, PCI devices, GPU links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from placeopt.importers.source_file import SourceFile
from placeopt.importers.topo.host import (
    GPU_CLASSES,
    GPU_VENDORS,
    MAX_GPUS,
    MAX_PLACES,
    MODELS,
    Host,
    HostGpu,
    HostPart,
    bus_address,
    cpu_words,
    switches_of,
)
from placeopt.model import Link

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_COMPUTE = re.compile(r"(nvml|cuda|rsmi|ze|opencl)(\d{1,4})")
"""Names of the OS devices by which hwloc shows that a PCI device computes; the number orders the GPUs."""

_MEMORY = ("CUDAGlobalMemorySize", "RSMIVRAMSize", "RSMIVisibleVRAMSize", "LevelZeroHBMSize", "OpenCLGlobalMemorySize")


@dataclass
class _Gpu:
    """A PCI device that is a GPU."""

    bus: str
    chain: list[tuple[str, int | None]]
    cpus: int
    device: Element
    names: dict[str, int] = field(default_factory=dict)
    ids: set[str] = field(default_factory=set)
    """``gp_index`` of the device and its OS devices: what the link matrices refer to."""


@dataclass
class _Seen:
    """What one walk over the objects collects."""

    packages: list[int] = field(default_factory=list)
    """CPUs of each."""
    numas: dict[int, int] = field(default_factory=dict)
    """Number of the domain -> its CPUs."""
    gpus: list[_Gpu] = field(default_factory=list)
    memory: int = 0
    num_pus: int = 0


def read_hwloc(source: SourceFile) -> Host:
    """
    Return the host. A machine without GPUs is valid.

    GPUs are PCI devices of class 0302, 0380 or 1200 by NVIDIA or AMD, and whatever has a CUDA, NVML, ROCm, Level Zero
    or OpenCL device; the VGA chip of a service processor is none. They are numbered by those devices, else by PCI
    address. Bridges at which paths to GPUs separate become switches; a host bridge does not. Memory is that of the NUMA
    domains with CPUs. Groups are left out.
    """
    seen = _walk(source)
    _order(seen.gpus)
    if len(seen.gpus) > MAX_GPUS or len(seen.packages) + len(seen.numas) > MAX_PLACES:
        raise source.bad(
            1, f"{len(seen.gpus)} GPUs, {len(seen.numas)} NUMA domains; at most {MAX_GPUS} and {MAX_PLACES} are read"
        )
    if not seen.num_pus:
        raise source.bad(1, "no object of type PU, so no CPUs; expected the XML output of lstopo")
    links, to_cpu = _links(source, seen.gpus)
    switches, uplinks, switch_mbps = switches_of([gpu.chain for gpu in seen.gpus])
    places = list(_places(seen))
    return Host(
        format="hwloc XML",
        file=source.name,
        places=tuple(place for place, _ in places),
        gpus=tuple(
            HostGpu(*_model(gpu), _place(places, gpu.cpus), switches[i], to_cpu.get(i) or uplinks[i])
            for i, gpu in enumerate(seen.gpus)
        ),
        switch_mbps=switch_mbps,
        links=links,
        num_cpus=seen.num_pus,
        memory_mib=seen.memory // 2**20 or None,
    )


def _walk(source: SourceFile) -> _Seen:
    seen = _Seen()
    stack: list[tuple[Element, int, list[tuple[str, int | None]], _Gpu | None]] = [
        (top, 0, [], None) for top in source.xml.findall("object")
    ]
    while stack:
        thing, cpus, chain, gpu = stack.pop()
        kind = thing.get("type", "")
        if "cpuset" in thing.attrib:
            mask = cpu_words(thing.attrib["cpuset"])
            if mask is None:
                raise source.bad(1, f"{kind}: cpuset={thing.attrib['cpuset'][:40]!r}; expected hex words")
            cpus = mask
        if kind == "PU":
            seen.num_pus += 1
        elif kind in ("Package", "Socket") and cpus:
            seen.packages.append(cpus)
        elif kind == "NUMANode" and cpus and re.fullmatch(r"\d{1,4}", thing.get("os_index", "")):
            seen.numas.setdefault(int(thing.attrib["os_index"]), cpus)
        elif kind in ("Bridge", "PCIDev"):
            chain, gpu = _pci(source, thing, cpus, chain)
            if gpu is not None:
                seen.gpus.append(gpu)
        elif kind == "OSDev" and gpu is not None:
            gpu.ids.add(f"OSDev:{thing.get('gp_index', '')}")
        memory = thing.get("local_memory", "0")
        if cpus and re.fullmatch(r"\d{1,16}", memory):
            seen.memory += int(memory)
        stack += [(below, cpus, chain, gpu) for below in reversed(thing.findall("object"))]
    return seen


def _pci(
    source: SourceFile, thing: Element, cpus: int, chain: list[tuple[str, int | None]]
) -> tuple[list[tuple[str, int | None]], _Gpu | None]:
    """The chain of bridges down to this object and, if it is one, the GPU."""
    bus = bus_address(thing.get("pci_busid", ""))
    if bus is None:
        if thing.get("type") == "PCIDev":
            raise source.bad(
                1, f"PCIDev pci_busid={thing.get('pci_busid', '')[:40]!r}; expected for example '0000:1a:00.0'"
            )
        return chain, None  # a host bridge has no address of its own
    speed = thing.get("pci_link_speed", "")
    mbps = round(float(speed) * 1000) if re.fullmatch(r"\d{1,4}(\.\d{1,9})?", speed) else 0
    chain = [*chain, (bus, mbps or None)]
    if thing.get("type") != "PCIDev":
        return chain, None
    ids = re.match(r"([0-9a-f]{4}) \[([0-9a-f]{4}):([0-9a-f]{4})\]", thing.get("pci_type", ""))
    names: dict[str, int] = {}
    for below in thing.findall("object"):
        match = _COMPUTE.match(below.get("name", "")) if below.get("type") == "OSDev" else None
        if match:
            names.setdefault(match[1], int(match[2]))
    if names or (ids is not None and ids[1] in GPU_CLASSES and ids[2] in GPU_VENDORS):
        return chain, _Gpu(bus, chain, cpus, thing, names, {f"PCIDev:{thing.get('gp_index', '')}"})
    return chain, None


def _order(gpus: list[_Gpu]) -> None:
    """Sort by the number that the first library gives which numbers all of them; else by PCI address."""
    gpus.sort(key=lambda gpu: gpu.bus)
    for library in ("nvml", "rsmi", "cuda", "ze"):
        numbers = {gpu.names.get(library) for gpu in gpus}
        if None not in numbers and len(numbers) == len(gpus):
            gpus.sort(key=lambda gpu: gpu.names[library])
            return


def _places(seen: _Seen) -> Iterator[tuple[HostPart, int]]:
    """Packages and NUMA domains with their CPUs, parents first; either may hold the other; no domain of all CPUs."""
    everything = reduce(or_, (*seen.packages, *seen.numas.values()), 0)
    outer: dict[int, int] = {}  # package -> the domain that holds it and others
    given: set[int] = set()
    for numa, cpus in seen.numas.items():
        inside = [p for p, mask in enumerate(seen.packages) if mask & ~cpus == 0]
        if len(inside) > 1 and cpus != everything:
            yield HostPart(f"numa{numa}", "numa", None, numa), cpus
            given.add(numa)
            outer.update(dict.fromkeys(inside, numa))
    for p, cpus in enumerate(seen.packages):
        yield HostPart(f"socket{p}", "socket", f"numa{outer[p]}" if p in outer else None), cpus
    for numa, cpus in seen.numas.items():
        if numa in given or (cpus == everything and len(seen.packages) != 1):
            continue
        holder = next((p for p, mask in enumerate(seen.packages) if cpus & ~mask == 0), None)
        yield HostPart(f"numa{numa}", "numa", None if holder is None else f"socket{holder}", numa), cpus


def _place(places: list[tuple[HostPart, int]], near: int) -> str | None:
    """Return the key of the smallest place that has all CPUs near a GPU, the lowest of equals."""
    holding = [(cpus.bit_count(), -i, place.key) for i, (place, cpus) in enumerate(places) if near and not near & ~cpus]
    tops = [place.key for place, _ in places if place.parent is None]
    return min(holding)[2] if holding else tops[0] if len(tops) == 1 else None


def _model(gpu: _Gpu) -> tuple[str | None, int]:
    """Model and memory: from the libraries that hwloc queried, else by the device id, else the id."""
    model, memory_mib = None, 0
    properties: dict[str, str] = {}
    for info in gpu.device.iter("info"):
        properties.setdefault(info.get("name", ""), info.get("value", ""))
    ids = re.match(r"[0-9a-f]{4} \[([0-9a-f]{4}):([0-9a-f]{4})\]", gpu.device.get("pci_type", ""))
    if ids is not None:
        model, memory_mib = MODELS.get((ids[1], ids[2]), (f"{ids[1]}:{ids[2]}", 0))
    model = properties.get("GPUModel") or properties.get("PCIDevice") or model
    for name in _MEMORY:
        size = re.fullmatch(r"(\d{1,12})(KiB|kB)?", properties.get(name, ""))
        if size:
            return model, int(size[1]) // 1024
    return model, memory_mib


def _links(source: SourceFile, gpus: list[_Gpu]) -> tuple[tuple[Link, ...], dict[int, int]]:
    """
    Links of the bandwidth matrices that hwloc takes from NVML and ROCm SMI, and MB/s from a GPU to its CPUs.

    A pair of more than one XGMI hop has a bandwidth, too, but no link.
    """
    index = {name: i for i, gpu in enumerate(gpus) for name in gpu.ids if not name.endswith(":")}
    links: dict[tuple[int, int], Link] = {}
    to_cpu: dict[int, int] = {}
    things, hops = _matrix(source, "XGMIHops")
    far = {(things[a], things[b]) for a, row in enumerate(hops) for b, number in enumerate(row) if number > 1}
    for name in ("NVLinkBandwidth", "XGMIBandwidth"):
        things, mbps = _matrix(source, name)
        gpu_of = [index.get(thing) for thing in things]
        between = [t for t, thing in enumerate(things) if gpu_of[t] is None and not thing.startswith("Package:")]
        for a, i in enumerate(gpu_of):
            if i is None:
                continue
            packages = (mbps[a][t] for t, thing in enumerate(things) if thing.startswith("Package:"))
            to_cpu[i] = max(to_cpu.get(i, 0), *packages, 0)
            for b, j in enumerate(gpu_of):
                if j is not None and i < j and (things[a], things[b]) not in far:
                    # Over an NVSwitch the two have no entry of their own, but each has one with the switch.
                    width = mbps[a][b] or sum(min(mbps[a][t], mbps[b][t]) for t in between)
                    if width:
                        links[i, j] = _link(i, j, name, width)
    return tuple(links[pair] for pair in sorted(links)), to_cpu


def _matrix(source: SourceFile, name: str) -> tuple[list[str], list[list[int]]]:
    """Return the objects and the rows of a matrix of distances; none if it is not there."""
    for matrix in source.xml:
        if matrix.tag in ("distances2", "distances2hetero") and matrix.get("name") == name:
            kind = matrix.get("type", "")
            things = [word if ":" in word else f"{kind}:{word}" for word in _words(matrix, "indexes")]
            words = _words(matrix, "u64values")
            size = len(things)
            if len(words) != size * size or not all(re.fullmatch(r"\d{1,9}", word) for word in words):
                raise source.bad(1, f"{name}: {len(words)} values for {size} objects, expected {size * size} numbers")
            return things, [[int(word) for word in words[a * size : (a + 1) * size]] for a in range(size)]
    return [], []


def _link(i: int, j: int, name: str, mbps: int) -> Link:
    """A link; lanes follow from 25 or 20 GB/s a lane (NVLink), and are one where that does not divide."""
    if name == "XGMIBandwidth":
        return Link(gpus=(i, j), kind="xgmi", bandwidth_mbps=mbps)
    lanes = next((mbps // lane for lane in (25_000, 20_000) if mbps % lane == 0 and mbps // lane <= 64), 1)
    return Link(gpus=(i, j), lanes=lanes, bandwidth_mbps=mbps)


def _words(matrix: Element, tag: str) -> list[str]:
    return [word for element in matrix.findall(tag) for word in (element.text or "").split()]
