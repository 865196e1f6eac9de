"""The machine of the model from a host."""

import re
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from placeopt.documents.faults import validation_fault
from placeopt.errors import BadInput
from placeopt.importers.topo.host import MAX_PLACES, Host, HostPart, smaller
from placeopt.model import Gpu, Machine, Part
from placeopt.model.base import one_line
from placeopt.model.machine import PartLevel

UNKNOWN_GPU = "unknown"
"""Model of a GPU if the file states none."""


def build_machine(host: Host, of_machine: Mapping[str, object], of_gpus: Mapping[str, object]) -> Machine:
    """
    Return the machine.

    Sockets contain NUMA domains, which contain switches, which contain GPUs. If the file states no sockets, a NUMA
    domain becomes a socket; a socket with a single domain is one part. A GPU with fewer PCIe switches above it than
    others gets switches of its own, so that a farther pair never becomes nearer. 1 logical CPU = 1000 millicores. What
    the file does not state is 0 (CPUs, memory), ``unknown`` (model) or None (bandwidths); ``of_machine`` and
    ``of_gpus`` replace fields of the machine and of its GPUs. Raises `BadInput` if the result is not a valid machine.
    """
    if len(host.places) > MAX_PLACES:
        raise BadInput(f"{host.file}: {len(host.places)} sockets and NUMA domains; at most {MAX_PLACES} are read")
    try:
        return _machine(host, of_machine, of_gpus)
    except ValidationError as error:
        raise validation_fault(Machine, error, f"{host.file}: no valid {error.title.lower()}") from None


def _machine(host: Host, of_machine: Mapping[str, object], of_gpus: Mapping[str, object]) -> Machine:
    frame, part_of = _frame(host.places)
    parts = {part.id: part for part in frame}
    depth = max((len(gpu.switches) for gpu in host.gpus), default=0)
    names: dict[str, str] = {}  # switch key -> part id
    gpus = []
    for i, gpu in enumerate(host.gpus):
        part = None if gpu.place is None else part_of[gpu.place]
        own = [f"own {i} {k}" for k in range(depth - len(gpu.switches))]
        for key in (*gpu.switches, *own):
            name = names.setdefault(key, f"switch{len(names)}")
            mbps = gpu.uplink_mbps if key in own else host.switch_mbps.get(key)
            parts.setdefault(name, Part(id=name, level="switch", parent=part, uplink_mbps=_bounded(mbps)))
            if parts[name].parent != part:
                raise BadInput(f"{host.file}: GPU {i} and another share a PCIe switch but not a socket")
            part = name
        own_fields = {
            "model": one_line(gpu.model or "").strip()[:253] or UNKNOWN_GPU,
            "memory_mib": gpu.memory_mib,
            "part": part,
            "uplink_mbps": _bounded(gpu.uplink_mbps),
        }
        gpus.append(Gpu.model_validate({**own_fields, **of_gpus}))
    file = Path(host.file).name
    fields = {
        "id": re.sub(r"[\s\x00-\x1f\x7f]+", "-", file.split(".")[0])[:253] or "machine",
        "cpu_millicores": 1000 * (host.num_cpus or 0),
        "memory_mib": host.memory_mib or 0,
        "network_bandwidth_mbps": _bounded(host.network_mbps),
        "parts": tuple(parts.values()),
        "gpus": tuple(gpus),
        "links": host.links,
        "source": f"{host.format}: {file}"[:253],
    }
    return Machine.model_validate({**fields, **of_machine})


def _frame(places: tuple[HostPart, ...]) -> tuple[list[Part], dict[str, str]]:
    """Parts of the sockets and NUMA domains, and place key -> part id."""
    sockets = {place.key for place in places if place.level == "socket"}
    inside = [place.parent for place in places]
    parts: list[Part] = []
    part_of: dict[str, str] = {}
    for place in places:
        parent = None if place.parent is None else part_of[place.parent]
        if parent is not None and place.parent in sockets and inside.count(place.parent) == 1:
            part_of[place.key] = parent
            continue
        level: PartLevel = "numa" if sockets and place.level == "numa" else "socket"
        part_of[place.key] = f"{level}{place.numa if level == 'numa' else sum(p.level == 'socket' for p in parts)}"
        parts.append(Part(id=part_of[place.key], level=level, parent=parent))
    return parts, part_of


def _bounded(mbps: int | None) -> int | None:
    """A bandwidth as the model takes it; nonsense is not known."""
    return smaller(mbps) if mbps is not None and mbps <= 1_000_000_000 else None
