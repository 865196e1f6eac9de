"""One host from several files about it, and the machine of the model from a host."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from placeopt.errors import BadInput
from placeopt.formats.faults import validation_fault
from placeopt.formats.topo.host import Host, HostGpu, HostPart, smaller
from placeopt.model import Gpu, Link, Machine, Part
from placeopt.model.machine import PartLevel


def combine(hosts: Sequence[Host]) -> Host:
    """
    Make one host of several, each from one file about the same machine.

    GPUs are matched by PCI address if both files state it, else by number. Sockets and NUMA domains come from the first
    file that states sockets; switches from the first with the PCIe tree; links from the first with their bandwidth;
    everything else from the first file that states it. The number of CPUs is the largest one (``nvidia-smi`` lists only
    those near GPUs). Raises `BadInput` if the files disagree about the number of GPUs.
    """
    with_gpus = [host for host in hosts if host.gpus]
    for host in with_gpus[1:]:
        if len(host.gpus) != len(with_gpus[0].gpus):
            raise BadInput(
                f"{host.file}: {len(host.gpus)} GPUs, but {len(with_gpus[0].gpus)} in {with_gpus[0].file}; "
                "files that are given together must be of one machine"
            )
    aligned = [_aligned(host, with_gpus[0]) for host in with_gpus]
    pcie = next((host for host in aligned if host.knows_pcie), aligned[0] if aligned else hosts[0])
    frame = next((host for host in hosts if host.knows_sockets), next((h for h in hosts if h.places), hosts[0]))
    linked = [host for host in aligned if host.links]
    links: tuple[Link, ...] = next(
        (host.links for host in linked if all(link.bandwidth_mbps for link in host.links)),
        linked[0].links if linked else (),
    )
    return Host(
        format=" + ".join(host.format for host in hosts),
        file=" + ".join(host.file for host in hosts),
        places=frame.places,
        knows_sockets=frame.knows_sockets,
        gpus=tuple(_merged([host.gpus[i] for host in aligned], pcie.gpus[i]) for i in range(len(pcie.gpus))),
        knows_pcie=pcie.knows_pcie,
        switch_mbps=pcie.switch_mbps,
        links=links,
        num_cpus=max((host.num_cpus for host in hosts if host.num_cpus), default=None),
        memory_mib=next((host.memory_mib for host in hosts if host.memory_mib), None),
        network_mbps=next((host.network_mbps for host in hosts if host.network_mbps), None),
    )


def _aligned(host: Host, first: Host) -> Host:
    """Return the host with its GPUs in the order of the first host, if PCI addresses determine it."""
    buses = [gpu.bus for gpu in host.gpus]
    wanted = [gpu.bus for gpu in first.gpus]
    if None in buses or len(set(buses)) != len(buses) or set(buses) != set(wanted) or buses == wanted:
        return host
    position = {bus: i for i, bus in enumerate(wanted)}
    new = [position[bus] for bus in buses]  # old index -> new index
    links = []
    for link in host.links:
        a, b = sorted((new[link.gpus[0]], new[link.gpus[1]]))
        links.append(link.model_copy(update={"gpus": (a, b)}))
    by_bus = {gpu.bus: gpu for gpu in host.gpus}
    return replace(host, gpus=tuple(by_bus[bus] for bus in wanted), links=tuple(links))


def _merged(sources: Sequence[HostGpu], pcie: HostGpu) -> HostGpu:
    """Return one GPU from all files."""
    place = next((gpu for gpu in sources if gpu.numa is not None or gpu.cpus), pcie)
    return HostGpu(
        model=next((gpu.model for gpu in sources if gpu.model), None),
        memory_mib=next((gpu.memory_mib for gpu in sources if gpu.memory_mib), 0),
        bus=next((gpu.bus for gpu in sources if gpu.bus), None),
        numa=place.numa,
        cpus=place.cpus,
        island=next((gpu.island for gpu in sources if gpu.island is not None), None),
        switches=pcie.switches,
        uplink_mbps=pcie.uplink_mbps or next((gpu.uplink_mbps for gpu in sources if gpu.uplink_mbps), None),
    )


MAX_PLACES = 1024

UNKNOWN_GPU = "unknown"
"""Model of a GPU if no file states it."""


@dataclass(frozen=True)
class Stated:
    """What the caller states in place of the files; None: as the files say."""

    id: str | None = None
    cpu_millicores: int | None = None
    memory_mib: int | None = None
    gpu_model: str | None = None
    gpu_memory_mib: int | None = None


def build_machine(host: Host, stated: Stated) -> Machine:
    """
    Return the machine.

    Sockets contain NUMA domains, which contain switches, which contain GPUs. If no file states sockets, a NUMA domain
    becomes a socket; a socket with a single domain is one part. A GPU with fewer PCIe switches above it than others
    gets switches of its own, so that a farther pair never becomes nearer. 1 logical CPU = 1000 millicores. What no file
    states is 0 (CPUs, memory), ``unknown`` (model) or None (bandwidths). Raises `BadInput` if the files contradict each
    other, or the result is not a valid machine.
    """
    if len(host.places) > MAX_PLACES:
        raise BadInput(f"{host.file}: {len(host.places)} sockets and NUMA domains; at most {MAX_PLACES} are read")
    try:
        return _machine(host, stated)
    except ValidationError as error:
        raise validation_fault(Machine, error, f"{host.file}: no valid {error.title.lower()}") from None


def _machine(host: Host, stated: Stated) -> Machine:
    parts, part_of = _frame(host.places)
    depth = max((len(gpu.switches) for gpu in host.gpus), default=0)
    above: dict[str, str | None] = {}  # switch key -> part above
    names: dict[str, str] = {}  # switch key -> part id
    gpus = []
    for i, gpu in enumerate(host.gpus):
        part = _place_of(host, i, gpu, part_of)
        own = [f"own {i} {k}" for k in range(depth - len(gpu.switches))]
        for key in (*gpu.switches, *own):
            name = names.setdefault(key, f"switch{len(names)}")
            if above.setdefault(key, part) != part:
                raise BadInput(
                    f"{host.file}: GPU {i} and another share a PCIe switch but not a socket; "
                    "files that are given together must be of one machine"
                )
            if all(known.id != name for known in parts):
                mbps = gpu.uplink_mbps if key in own else host.switch_mbps.get(key)
                parts.append(Part(id=name, level="switch", parent=part, uplink_mbps=_bounded(mbps)))
            part = name
        gpus.append(
            Gpu(
                model=stated.gpu_model or _text(gpu.model) or UNKNOWN_GPU,
                memory_mib=gpu.memory_mib if stated.gpu_memory_mib is None else stated.gpu_memory_mib,
                part=part,
                uplink_mbps=_bounded(gpu.uplink_mbps),
            )
        )
    return Machine(
        id=_default_id(host) if stated.id is None else stated.id,
        cpu_millicores=1000 * (host.num_cpus or 0) if stated.cpu_millicores is None else stated.cpu_millicores,
        memory_mib=(host.memory_mib or 0) if stated.memory_mib is None else stated.memory_mib,
        network_bandwidth_mbps=_bounded(host.network_mbps),
        parts=tuple(parts),
        gpus=tuple(gpus),
        links=host.links,
        source=f"{host.format}: {' + '.join(Path(file).name for file in host.file.split(' + '))}"[:253],
    )


def _frame(places: tuple[HostPart, ...]) -> tuple[list[Part], dict[str, str]]:
    """Parts of the sockets and NUMA domains, and place key -> part id."""
    sockets = {place.key for place in places if place.level == "socket"}
    alone = {
        place.key
        for place in places
        if place.parent in sockets and sum(other.parent == place.parent for other in places) == 1
    }
    parts: list[Part] = []
    part_of: dict[str, str] = {}
    for place in places:
        if place.key in alone and place.parent is not None:
            part_of[place.key] = part_of[place.parent]
            continue
        level: PartLevel = "numa" if sockets and place.level == "numa" else "socket"
        part_of[place.key] = f"{level}{place.numa if level == 'numa' else sum(p.level == 'socket' for p in parts)}"
        parent = None if place.parent is None else part_of[place.parent]
        parts.append(Part(id=part_of[place.key], level=level, parent=parent))
    return parts, part_of


def _place_of(host: Host, i: int, gpu: HostGpu, part_of: dict[str, str]) -> str | None:
    """Return the part of the GPU by NUMA domain, else by CPUs, else by island; None if no file states any."""
    if gpu.numa is not None:
        for place in host.places:
            if place.numa == gpu.numa:
                if gpu.cpus and place.cpus and not gpu.cpus & place.cpus:
                    break
                return part_of[place.key]
        if any(place.numa is not None for place in host.places):
            raise BadInput(
                f"{host.file}: GPU {i} is near NUMA domain {gpu.numa}, and the domains' CPUs do not bear it out; "
                "files that are given together must be of one machine"
            )
    if gpu.cpus:
        holding = [place for place in host.places if place.cpus and gpu.cpus & ~place.cpus == 0]
        if holding:
            return part_of[min(reversed(holding), key=lambda place: place.cpus.bit_count()).key]
        known = 0
        for place in host.places:
            known |= place.cpus
        if known and gpu.cpus & ~known:
            raise BadInput(
                f"{host.file}: GPU {i} is near CPUs that no socket or NUMA domain has; "
                "files that are given together must be of one machine"
            )
    tops = [place for place in host.places if place.parent is None]
    if len(tops) == 1:
        return part_of[tops[0].key]
    if gpu.island is not None:
        islands = 1 + max(other.island or 0 for other in host.gpus)
        if islands > len(tops):
            raise BadInput(
                f"{host.file}: the GPUs are in {islands} groups, but there are {len(tops)} sockets or NUMA domains; "
                "files that are given together must be of one machine"
            )
        return part_of[tops[gpu.island].key]
    return None


def _default_id(host: Host) -> str:
    name = Path(host.file.split(" + ")[0]).name.split(".")[0]
    return re.sub(r"[\s\x00-\x1f\x7f]+", "-", name)[:253] or "machine"


def _text(text: str | None) -> str | None:
    """A one-line name as the model takes it, or None."""
    cleaned = re.sub(r"[\x00-\x1f\x7f]+", " ", text or "").strip()[:253]
    return cleaned or None


def _bounded(mbps: int | None) -> int | None:
    """A bandwidth as the model takes it; nonsense is not known."""
    return smaller(mbps) if mbps is not None and mbps <= 1_000_000_000 else None
