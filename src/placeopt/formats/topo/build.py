"""A machine of the model from the description of a host."""

import re
from pathlib import Path

from pydantic import ValidationError

from placeopt.errors import BadInput
from placeopt.formats.faults import validation_fault
from placeopt.formats.topo.host import Host, HostGpu, HostPart
from placeopt.formats.topo.pci import smaller
from placeopt.model import Gpu, Machine, Part
from placeopt.model.machine import PartLevel

MAX_PLACES = 1024

UNKNOWN_GPU = "unknown"
"""Model of a GPU if no file states it."""


def build_machine(
    host: Host,
    *,
    id: str | None = None,  # noqa: A002 - the field's name
    cpu_millicores: int | None = None,
    memory_mib: int | None = None,
    gpu_model: str | None = None,
    gpu_memory_mib: int | None = None,
) -> Machine:
    """
    Return the machine. The keyword arguments override the files.

    Sockets contain NUMA domains, which contain switches, which contain GPUs. If no file states sockets, a NUMA domain
    becomes a socket; a socket with a single domain is one part. A GPU with fewer PCIe switches above it than others
    gets switches of its own, so that a farther pair never becomes nearer. 1 logical CPU = 1000 millicores. What no file
    states is 0 (CPUs, memory), ``unknown`` (model) or None (bandwidths).

    Raises
    ------
    BadInput
        If the files contradict each other, or the result is no valid machine.
    """
    if len(host.places) > MAX_PLACES:
        raise BadInput(f"{host.file}: {len(host.places)} sockets and NUMA domains; at most {MAX_PLACES} are read")
    try:
        return _machine(host, id, cpu_millicores, memory_mib, gpu_model, gpu_memory_mib)
    except ValidationError as error:
        raise validation_fault(Machine, error, f"{host.file}: no valid {error.title.lower()}") from None


def _machine(
    host: Host,
    machine_id: str | None,
    cpu_millicores: int | None,
    memory_mib: int | None,
    gpu_model: str | None,
    gpu_memory_mib: int | None,
) -> Machine:
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
                model=gpu_model or _text(gpu.model) or UNKNOWN_GPU,
                memory_mib=gpu.memory_mib if gpu_memory_mib is None else gpu_memory_mib,
                part=part,
                uplink_mbps=_bounded(gpu.uplink_mbps),
            )
        )
    return Machine(
        id=machine_id if machine_id is not None else _default_id(host),
        cpu_millicores=1000 * (host.num_cpus or 0) if cpu_millicores is None else cpu_millicores,
        memory_mib=(host.memory_mib or 0) if memory_mib is None else memory_mib,
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
