"""
A host as shell output: ``numactl --hardware``; or ``lscpu`` and, if there, ``/proc/meminfo``, ``nvidia-smi`` and more.

Clusters publish such texts about their nodes. ``lspci`` without a tree lists bridges by bus number only: buses are
numbered depth first, so the buses from one root port's to the next belong to the first.
"""

import re
from bisect import bisect_right
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_

from placeopt.formats.source_file import SourceFile
from placeopt.formats.topo.host import GPU_VENDORS, MAX_CPU, MODELS, Host, HostGpu, HostPart, bus_address, cpu_list

MAX_NUMA = 256

SAME_SOCKET_DISTANCE = 15
"""
Domains at most this far apart share a socket: firmware of AMD and Intel reports 10 to itself, 11 or 12 inside a package
and 16 or more across. The output itself names no sockets, so this is a reading.
"""

_LINE = re.compile(r"node (\d{1,4}) (cpus|size):(.*)\Z")
_ROW = re.compile(r"(\d{1,4}):((?:\s+\d{1,4})+)\Z")


def is_numactl(source: SourceFile) -> bool:
    """Return whether the text is in this format."""
    return any(re.match(r"available: \d+ nodes?\b", line) for line in source.lines)


def read_numactl(source: SourceFile) -> Host:
    """
    Return the host: one part for each domain with CPUs, under sockets if the distances show them. It lists no GPUs.

    Memory is the sum over domains with CPUs; memory without CPUs (a GPU's own, on some machines) is not the host's.
    Raises `BadInput` if a line is malformed, or the domains announced are not there.
    """
    cpus: dict[int, int] = {}
    sizes: dict[int, int] = {}
    distances: dict[int, list[int]] = {}
    columns: list[int] = []
    announced = -1
    for n, line in enumerate(source.lines, 1):
        if match := re.match(r"available: (\d{1,4}) nodes?\b", line):
            announced = int(match[1])
        elif match := _LINE.match(line):
            numa = int(match[1])
            if match[2] == "cpus":
                cpus[numa] = _cpus(source, n, match[3])
            elif size := re.fullmatch(r"(\d{1,9}) MB", match[3].strip()):
                sizes[numa] = int(size[1])
            else:
                raise source.bad(n, f"size {match[3].strip()[:40]!r} of node {numa}; expected for example '64502 MB'")
        elif re.match(r"node(\s+\d+)+\Z", line):
            columns = [int(word[:5]) for word in line.split()[1:]]
        elif match := _ROW.match(line):
            distances[int(match[1])] = [int(word) for word in match[2].split()]
    if announced != len(cpus) or not cpus or len(cpus) > MAX_NUMA:
        raise source.bad(
            1, f"{announced} nodes announced, {len(cpus)} found; expected the output of numactl --hardware"
        )
    numas = sorted(numa for numa, mask in cpus.items() if mask)
    if not numas:
        raise source.bad(1, "no node has CPUs; expected the output of numactl --hardware")
    sockets = _sockets(numas, columns, distances)
    places: list[HostPart] = []
    for s, members in enumerate(sockets or []):
        mask = 0
        for numa in members:
            mask |= cpus[numa]
        places.append(HostPart(f"socket{s}", "socket", cpus=mask))
        places += [HostPart(f"numa{numa}", "numa", f"socket{s}", numa, cpus[numa]) for numa in members]
    if sockets is None:
        places = [HostPart(f"numa{numa}", "numa", None, numa, cpus[numa]) for numa in numas]
    return Host(
        format="numactl --hardware",
        file=source.name,
        places=tuple(places),
        knows_sockets=sockets is not None,
        num_cpus=sum(mask.bit_count() for mask in cpus.values()),
        memory_mib=sum(sizes.get(numa, 0) for numa in numas) or None,
    )


def _cpus(source: SourceFile, n: int, text: str) -> int:
    mask = 0
    for word in text.split():
        if not re.fullmatch(r"\d{1,6}", word) or int(word) > MAX_CPU:
            raise source.bad(n, f"CPU {word[:40]!r}; expected a number from 0 to {MAX_CPU}")
        mask |= 1 << int(word)
    return mask


def _sockets(numas: list[int], columns: list[int], distances: dict[int, list[int]]) -> list[list[int]] | None:
    """Group the domains into sockets; None if distances are missing or do not make groups."""
    if any(len(distances.get(numa, [])) != len(columns) or numa not in columns for numa in numas):
        return None
    position = {numa: columns.index(numa) for numa in numas}
    near = {
        numa: [other for other in numas if other == numa or distances[numa][position[other]] <= SAME_SOCKET_DISTANCE]
        for numa in numas
    }
    if any(near[other] != members for members in near.values() for other in members):
        return None
    return [members for numa, members in near.items() if members[0] == numa]


MAX_GPUS = 256

MAX_TABLE_COLUMNS = 300
"""Width of a line of nvidia-smi's table, which has some 80; longer ones are ignored."""

_GPU = re.compile(
    r"\|\s+(\d{1,3})\s+(\S.*?\S)\s+(?:On|Off|N/A)\s+\|\s+([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)\s"
)
_USED = re.compile(r"\|.*\|\s*\d{1,9}MiB\s*/\s*(\d{1,9})MiB\s*\|")
_PCI = re.compile(r"((?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) ([^:]+): (.*)\Z")


def is_host_text(source: SourceFile) -> bool:
    """Return whether the text is in this format."""
    return all(any(line.startswith(name) for line in source.lines) for name in ("Architecture:", "CPU(s):"))


def read_host_text(source: SourceFile) -> Host:
    """
    Return the host.

    Sockets come from ``lscpu``; where its product of threads, cores and sockets is not the number of CPUs (virtual
    machines and odd firmware), sockets are CPUs / (threads x cores). GPUs come from the table of ``nvidia-smi``, their
    PCIe switches and sockets from ``lspci``: a socket starts at each bus that has a CBDMA engine, of which Intel puts
    one on every socket's first bus. If that does not fit, GPUs are attached to the machine.
    """
    fields: dict[str, str] = {}
    for line in source.lines:
        match = re.match(r"([A-Za-z()][^:]{0,40}):(.*)\Z", line)
        if match:
            fields.setdefault(match[1], match[2].strip())
    num_cpus = _number(source, fields, "CPU(s)")
    places = _places(source, fields, num_cpus)
    gpus = _gpus(source)
    if len(gpus) > MAX_GPUS:
        raise source.bad(1, f"{len(gpus)} GPUs; at most {MAX_GPUS} are read")
    sockets = sum(place.level == "socket" for place in places) or len(places)
    devices = _devices(source)
    memory = re.fullmatch(r"(\d{1,12}) kB", fields.get("MemTotal", ""))
    return Host(
        format="lscpu and others",
        file=source.name,
        places=places,
        knows_sockets=any(place.level == "socket" for place in places),
        gpus=tuple(_located(gpus, devices, sockets)),
        knows_pcie=bool(devices),
        switch_mbps={f"port{bus}": None for bus in _root_buses(devices)},
        num_cpus=num_cpus,
        memory_mib=int(memory[1]) // 1024 if memory else None,
    )


def _number(source: SourceFile, fields: dict[str, str], name: str) -> int:
    value = fields.get(name, "")
    if not re.fullmatch(r"[1-9]\d{0,5}", value):
        raise source.bad(1, f"lscpu's {name!r} is {value[:20]!r}; expected a positive number")
    return int(value)


def _places(source: SourceFile, fields: dict[str, str], num_cpus: int) -> tuple[HostPart, ...]:
    """Sockets over NUMA domains, domains dealt to sockets in order."""
    numas: list[tuple[int, int]] = []
    for name, value in fields.items():
        match = re.fullmatch(r"NUMA node(\d{1,4}) CPU\(s\)", name)
        if match:
            mask = cpu_list(value)
            if mask is None:
                raise source.bad(1, f"lscpu's {name!r} is {value[:40]!r}; expected for example '0-11,24-35'")
            numas.append((int(match[1]), mask))
    numas.sort()
    names = ("Thread(s) per core", "Core(s) per socket", "Socket(s)")
    threads, cores, sockets = (int(fields[n]) if re.fullmatch(r"[1-9]\d{0,4}", fields.get(n, "")) else 0 for n in names)
    if threads * cores * sockets != num_cpus:
        per_socket = threads * cores
        sockets = num_cpus // per_socket if per_socket and num_cpus % per_socket == 0 else 0
    if not sockets or sockets > 1024 or (numas and len(numas) % sockets and sockets % len(numas)):
        return tuple(HostPart(f"numa{numa}", "numa", None, numa, mask) for numa, mask in numas)
    if not numas or len(numas) < sockets:
        return tuple(HostPart(f"socket{s}", "socket") for s in range(sockets))
    each = len(numas) // sockets
    places = []
    for s in range(sockets):
        mine = numas[s * each : (s + 1) * each]
        places.append(HostPart(f"socket{s}", "socket", cpus=reduce(or_, (mask for _, mask in mine))))
        places += [HostPart(f"numa{numa}", "numa", f"socket{s}", numa, mask) for numa, mask in mine]
    return tuple(places)


@dataclass(frozen=True)
class _Row:
    """A GPU in nvidia-smi's table, whose second line has the memory."""

    name: str
    bus: str
    memory_mib: int


def _gpus(source: SourceFile) -> list[_Row]:
    rows: list[_Row] = []
    for n, line in enumerate(source.lines):
        match = _GPU.match(line) if len(line) <= MAX_TABLE_COLUMNS else None
        if match is None:
            continue
        if int(match[1]) != len(rows):
            raise source.bad(n + 1, f"GPU {match[1]} after {len(rows)} others; expected the table of nvidia-smi, once")
        below = source.lines[n + 1] if n + 1 < len(source.lines) else ""
        used = _USED.match(below) if len(below) <= MAX_TABLE_COLUMNS else None
        rows.append(_Row(match[2], bus_address(match[3]) or match[3], int(used[1]) if used else 0))
    return rows


def _devices(source: SourceFile) -> list[tuple[str, str, str]]:
    """(address, class, description) of the lines of lspci."""
    devices = []
    for line in source.lines:
        match = _PCI.match(line)
        address = bus_address(match[1]) if match else None
        if match and address:
            devices.append((address, match[2], match[3]))
    return sorted(devices)


def _root_buses(devices: list[tuple[str, str, str]]) -> list[str]:
    """Buses (``dddddddd:bb``) that have root ports."""
    return sorted({address[:11] for address, _, text in devices if "Root Port" in text})


def _located(gpus: list[_Row], devices: list[tuple[str, str, str]], sockets: int) -> list[HostGpu]:
    """Models by device id, switches and sockets by bus number."""
    roots = _root_buses(devices)
    bridges = {address[:11] for address, kind, text in devices if kind == "PCI bridge" and "Root Port" not in text}
    starts = sorted({address[:11] for address, _, text in devices if "CBDMA" in text})
    ids = {address: re.search(r"Device ([0-9a-f]{4})\b", text) for address, _, text in devices}
    makers = {address: "10de" if "NVIDIA" in text else "1002" for address, _, text in devices}
    below: dict[str, int] = {}
    made = []
    for gpu in gpus:
        bus = gpu.bus[:11]
        position = bisect_right(roots, bus) - 1
        switched = position >= 0 and any(roots[position] < bridge < bus for bridge in bridges)
        switch = f"port{roots[position]}" if switched else ""
        below[switch] = below.get(switch, 0) + 1
        device = ids.get(gpu.bus)
        known = MODELS.get((makers[gpu.bus], device[1])) if device and makers[gpu.bus] in GPU_VENDORS else None
        cut = gpu.name.endswith("...")
        island = bisect_right(starts, bus) - 1 if starts and len(starts) == sockets else -1
        made.append(
            HostGpu(
                model=known[0] if known and cut else gpu.name,
                memory_mib=gpu.memory_mib,
                bus=gpu.bus,
                island=island if island >= 0 else None,
                switches=(switch,) if switch else (),
            )
        )
    # A port with a single GPU joins nothing.
    return [gpu if gpu.switches and below[gpu.switches[0]] > 1 else replace(gpu, switches=()) for gpu in made]
