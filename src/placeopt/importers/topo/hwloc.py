"""hwloc XML (``lstopo --of xml``, versions 1 to 3): packages, NUMA domains, PCI devices, GPU links."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial, reduce
from operator import or_
from typing import TYPE_CHECKING

from placeopt.importers.source_file import SourceFile
from placeopt.importers.topo.host import MAX_GPUS, MAX_PLACES, Host, cpu_words
from placeopt.importers.topo.pci import (
    GPU_CLASSES,
    GPU_VENDORS,
    MODELS,
    Chain,
    Links,
    PciGpu,
    bus_address,
    parents_of,
    pci_host,
    upwards,
)
from placeopt.model import Link

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_COMPUTE = re.compile(r"(nvml|cuda|rsmi|ze|opencl)(\d{1,4})")
"""Names of the OS devices by which hwloc shows that a PCI device computes; the number orders the GPUs."""
_TYPE = re.compile(r"([0-9a-f]{4}) \[([0-9a-f]{4}):([0-9a-f]{4})\]")
"""Class, vendor and device in ``pci_type``."""
_MEMORY = ("CUDAGlobalMemorySize", "RSMIVRAMSize", "RSMIVisibleVRAMSize", "LevelZeroHBMSize", "OpenCLGlobalMemorySize")

Places = Sequence[tuple[str, str | None, int]]
"""Sockets and NUMA domains, parents first: name, the one that holds it, its CPUs as a bit mask."""


def read_hwloc(source: SourceFile) -> Host:
    """
    Return the host. A machine without GPUs is valid.

    GPUs are PCI devices of class 0302, 0380 or 1200 by NVIDIA or AMD, and whatever has a CUDA, NVML, ROCm, Level Zero
    or OpenCL device; the VGA chip of a service processor is none. They are numbered by those devices, else by PCI
    address. Bridges at which paths to GPUs separate become switches; a host bridge does not. Memory is that of the NUMA
    domains with CPUs. Groups are left out.
    """
    parents = parents_of(source.xml)
    packages: list[int] = []
    numas: dict[int, int] = {}
    devices: list[Element] = []
    num_pus = memory = 0
    for thing in source.xml.iter("object"):
        kind, size = thing.get("type", ""), thing.get("local_memory", "0")
        num_pus += kind == "PU"
        if kind in ("Package", "Socket") and (cpus := _cpus(source, thing, parents)):
            packages.append(cpus)
        elif kind == "NUMANode" and re.fullmatch(r"\d{1,4}", number := thing.get("os_index", "")):
            if cpus := _cpus(source, thing, parents):
                numas.setdefault(int(number), cpus)
        elif kind == "PCIDev" and _is_gpu(thing):
            devices.append(thing)
        if size != "0" and re.fullmatch(r"\d{1,16}", size) and _cpus(source, thing, parents):
            memory += int(size)
    if len(devices) > MAX_GPUS or len(packages) + len(numas) > MAX_PLACES:
        raise source.bad(
            1, f"{len(devices)} GPUs, {len(numas)} NUMA domains; at most {MAX_GPUS} and {MAX_PLACES} are read"
        )
    if not num_pus:
        raise source.bad(1, "no object of type PU, so no CPUs; expected the XML output of lstopo")
    places = list(_places(packages, numas))
    return pci_host(
        [_gpu(source, device, places, parents) for device in devices],
        partial(_links, source),
        places={name: above for name, above, _ in places},
        num_cpus=num_pus,
        memory_mib=memory // 2**20,
    )


def _cpus(source: SourceFile, thing: Element, parents: Mapping[Element, Element]) -> int:
    """Return the bit mask of the CPUs of an object, or of the next one above that states some."""
    text = next((above.attrib["cpuset"] for above in upwards(thing, parents) if "cpuset" in above.attrib), "")
    mask = cpu_words(text)
    if mask is None:
        raise source.bad(1, f"{thing.get('type')}: cpuset={text[:40]!r}; expected hex words")
    return mask


def _is_gpu(device: Element) -> bool:
    kind = _TYPE.match(device.get("pci_type", ""))
    return bool(_numbers(device)) or (kind is not None and kind[1] in GPU_CLASSES and kind[2] in GPU_VENDORS)


def _numbers(device: Element) -> dict[str, int]:
    """Return the number that each library gives a device."""
    below = (thing.get("name", "") for thing in device.findall("object[@type='OSDev']"))
    found = [(match[1], int(match[2])) for name in below if (match := _COMPUTE.match(name))]
    return dict(reversed(found))


def _gpu(source: SourceFile, device: Element, places: Places, parents: Mapping[Element, Element]) -> PciGpu:
    chain: Chain = []
    for thing in upwards(device, parents):
        speed, text = thing.get("pci_link_speed", ""), thing.get("pci_busid", "")
        bus = bus_address(text)
        if bus is not None:  # a host bridge has no address of its own
            mbps = round(float(speed) * 1000) if re.fullmatch(r"\d{1,4}(\.\d{1,9})?", speed) else 0
            chain.insert(0, (bus, mbps or None))
        elif thing is device:
            raise source.bad(1, f"PCIDev pci_busid={text[:40]!r}; expected for example '0000:1a:00.0'")
    near = _cpus(source, device, parents)
    holding = [(cpus.bit_count(), -i, name) for i, (name, _, cpus) in enumerate(places) if near and not near & ~cpus]
    tops = [name for name, above, _ in places if above is None]
    place = min(holding)[2] if holding else tops[0] if len(tops) == 1 else None
    return PciGpu(chain, device, place, _model(device), _numbers(device))


def _places(packages: Sequence[int], numas: Mapping[int, int]) -> Iterator[tuple[str, str | None, int]]:
    """Yield packages and NUMA domains, parents first; either may hold the other; no domain of all CPUs."""
    everything = reduce(or_, (*packages, *numas.values()), 0)
    outer: dict[int, str] = {}  # package -> the domain that holds it and others
    for numa, cpus in numas.items():
        inside = [p for p, mask in enumerate(packages) if mask & ~cpus == 0]
        if len(inside) > 1 and cpus != everything:
            yield f"numa{numa}", None, cpus
            outer |= dict.fromkeys(inside, f"numa{numa}")
    for p, cpus in enumerate(packages):
        yield f"socket{p}", outer.get(p), cpus
    for numa, cpus in numas.items():
        if f"numa{numa}" not in outer.values() and (cpus != everything or len(packages) == 1):
            holder = next((f"socket{p}" for p, mask in enumerate(packages) if cpus & ~mask == 0), None)
            yield f"numa{numa}", holder, cpus


def _model(device: Element) -> tuple[str | None, int]:
    """Return model and memory: from the libraries that hwloc queried, else by the device id, else the id."""
    model, memory_mib = None, 0
    stated = {info.get("name", ""): info.get("value", "") for info in reversed([*device.iter("info")])}
    if ids := _TYPE.match(device.get("pci_type", "")):
        model, memory_mib = MODELS.get((ids[2], ids[3]), (f"{ids[2]}:{ids[3]}", 0))
    sizes = (re.fullmatch(r"(\d{1,12})(KiB|kB)?", stated.get(name, "")) for name in _MEMORY)
    memory_mib = next((int(size[1]) // 1024 for size in sizes if size), memory_mib)
    return stated.get("GPUModel") or stated.get("PCIDevice") or model, memory_mib


def _links(source: SourceFile, gpus: Sequence[PciGpu]) -> Links:
    """
    Return links of the bandwidth matrices that hwloc takes from NVML and ROCm SMI, and MB/s from a GPU to its CPUs.

    A pair of more than one XGMI hop has a bandwidth, too, but no link.
    """
    index = {
        f"{thing.get('type')}:{thing.get('gp_index')}": i
        for i, gpu in enumerate(gpus)
        for thing in gpu.device.iter("object")
        if thing.get("gp_index")
    }
    links: dict[tuple[int, int], Link] = {}
    to_cpu: dict[int, int] = {}
    things, hops = _matrix(source, "XGMIHops")
    far = {(things[a], things[b]) for a, row in enumerate(hops) for b, number in enumerate(row) if number > 1}
    for name in ("NVLinkBandwidth", "XGMIBandwidth"):
        things, mbps = _matrix(source, name)
        gpu_of = [index.get(thing) for thing in things]
        packages = [t for t, thing in enumerate(things) if thing.startswith("Package:")]
        between = [t for t, i in enumerate(gpu_of) if i is None and t not in packages]
        for a, i in enumerate(gpu_of):
            if i is None:
                continue
            to_cpu[i] = max(to_cpu.get(i, 0), *(mbps[a][t] for t in packages), 0)
            for b, j in enumerate(gpu_of):
                if j is not None and i < j and (things[a], things[b]) not in far:
                    # Over an NVSwitch the two have no entry of their own, but each has one with the switch.
                    width = mbps[a][b] or sum(min(mbps[a][t], mbps[b][t]) for t in between)
                    if width:
                        links[i, j] = _link(i, j, name, width)
    return tuple(links[pair] for pair in sorted(links)), to_cpu


def _matrix(source: SourceFile, name: str) -> tuple[list[str], list[list[int]]]:
    """Return the objects and the rows of a matrix of distances; none if it is not there."""
    for matrix in source.xml.findall(f"*[@name='{name}']"):
        things, words = (
            [word for element in matrix.findall(tag) for word in (element.text or "").split()]
            for tag in ("indexes", "u64values")
        )
        size = len(things)
        if len(words) != size * size or not all(re.fullmatch(r"\d{1,9}", word) for word in words):
            raise source.bad(1, f"{name}: {len(words)} values for {size} objects, expected {size * size} numbers")
        things = [word if ":" in word else f"{matrix.get('type')}:{word}" for word in things]
        return things, [[int(word) for word in words[a * size : (a + 1) * size]] for a in range(size)]
    return [], []


def _link(i: int, j: int, name: str, mbps: int) -> Link:
    """Return a link; lanes follow from 25 or 20 GB/s a lane (NVLink), and are one where that does not divide."""
    if name == "XGMIBandwidth":
        return Link(gpus=(i, j), kind="xgmi", bandwidth_mbps=mbps)
    lanes = next((mbps // lane for lane in (25_000, 20_000) if mbps % lane == 0 and mbps // lane <= 64), 1)
    return Link(gpus=(i, j), lanes=lanes, bandwidth_mbps=mbps)
