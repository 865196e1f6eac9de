"""One host, as all formats describe it, and the machine of the model that it becomes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from placeopt.documents.faults import validation_fault
from placeopt.errors import BadInput
from placeopt.importers.slurm.fields import parse_indices
from placeopt.model import Gpu, Link, Machine, Part
from placeopt.model.base import one_line

UNKNOWN_GPU = "unknown"
"""Model of a GPU if the file states none."""
MAX_GPUS = 256
"""Most GPUs of a file."""
MAX_PLACES = 1024
"""Most sockets and NUMA domains of a file."""
MAX_CPU = 65_535
"""Largest CPU number that is read; real machines stay below 10,000."""


class HostGpu(NamedTuple):
    """One GPU; None and 0: unknown."""

    model: str | None = None
    memory_mib: int = 0
    place: str | None = None
    """Its socket or NUMA domain."""
    switches: tuple[str, ...] = ()
    """PCIe switches above, the highest first; keys of ``Host.switch_mbps``."""
    uplink_mbps: int | None = None


@dataclass(frozen=True)
class Host:
    """The description of one host in one file; None: not stated."""

    places: Mapping[str, str | None] = field(default_factory=dict)
    """Place -> the one that holds it, parents first: ``socketN``, or ``numaN`` of a NUMA domain with that number."""
    gpus: Sequence[HostGpu] = ()
    switch_mbps: Mapping[str, int | None] = field(default_factory=dict)
    links: tuple[Link, ...] = ()
    num_cpus: int | None = None
    """Logical CPUs."""
    memory_mib: int | None = None
    network_mbps: int | None = None

    def machine(
        self, source: str, form: str, of_machine: Mapping[str, object], of_gpus: Mapping[str, object]
    ) -> Machine:
        """
        Return the machine of a file, ``source``, of a format.

        Sockets contain NUMA domains, which contain switches, which contain GPUs. If the file states no sockets, a NUMA
        domain becomes a socket; a socket with a single domain is one part. A GPU with fewer PCIe switches above it than
        others gets switches of its own, so that a farther pair never becomes nearer. 1 logical CPU = 1000 millicores.
        What the file does not state is 0 (CPUs, memory), ``unknown`` (model) or None (bandwidths); ``of_machine`` and
        ``of_gpus`` replace fields of the machine and of its GPUs. Raises `BadInput` if that is no valid machine.
        """
        if len(self.places) > MAX_PLACES:
            raise BadInput(f"{source}: {len(self.places)} sockets and NUMA domains; at most {MAX_PLACES} are read")
        file = Path(source).name
        try:
            parts, gpus = self._parts(source, of_gpus)
            fields = {
                "id": re.sub(r"[\s\x00-\x1f\x7f]+", "-", file.split(".")[0])[:253] or "machine",
                "cpu_millicores": 1000 * (self.num_cpus or 0),
                "memory_mib": self.memory_mib or 0,
                "network_bandwidth_mbps": _bounded(self.network_mbps),
                "parts": parts,
                "gpus": gpus,
                "links": self.links,
                "source": f"{form}: {file}"[:253],
            }
            return Machine.model_validate({**fields, **of_machine})
        except ValidationError as error:
            raise validation_fault(Machine, error, f"{source}: no valid {error.title.lower()}") from None

    def _parts(self, source: str, of_gpus: Mapping[str, object]) -> tuple[list[Part], list[Gpu]]:
        frame, part_of = self._frame()
        parts = {part.id: part for part in frame}
        depth = max((len(gpu.switches) for gpu in self.gpus), default=0)
        names: dict[str, str] = {}  # switch key -> part id
        gpus = []
        for i, gpu in enumerate(self.gpus):
            part = None if gpu.place is None else part_of[gpu.place]
            own = [f"own {i} {k}" for k in range(depth - len(gpu.switches))]
            for key in (*gpu.switches, *own):
                name = names.setdefault(key, f"switch{len(names)}")
                mbps = gpu.uplink_mbps if key in own else self.switch_mbps.get(key)
                parts.setdefault(name, Part(id=name, level="switch", parent=part, uplink_mbps=_bounded(mbps)))
                if parts[name].parent != part:
                    raise BadInput(f"{source}: GPU {i} and another share a PCIe switch but not a socket")
                part = name
            fields = {
                "model": one_line(gpu.model or "").strip()[:253] or UNKNOWN_GPU,
                "memory_mib": gpu.memory_mib,
                "part": part,
                "uplink_mbps": _bounded(gpu.uplink_mbps),
            }
            gpus.append(Gpu.model_validate({**fields, **of_gpus}))
        return list(parts.values()), gpus

    def _frame(self) -> tuple[list[Part], dict[str, str]]:
        """Return the parts of sockets and NUMA domains, and place -> id of its part."""
        sockets = {place for place in self.places if place.startswith("socket")}
        inside = Counter(self.places.values())
        parts: list[Part] = []
        part_of: dict[str, str] = {}
        for place, above in self.places.items():
            parent = None if above is None else part_of[above]
            if parent is not None and above in sockets and inside[above] == 1:
                part_of[place] = parent
            elif sockets and place not in sockets:
                part_of[place] = place
                parts.append(Part(id=place, level="numa", parent=parent))
            else:
                part_of[place] = f"socket{sum(part.level == 'socket' for part in parts)}"
                parts.append(Part(id=part_of[place], level="socket", parent=parent))
        return parts, part_of


def _bounded(mbps: int | None) -> int | None:
    """Return a bandwidth as the model takes it; nonsense is not known."""
    return mbps if mbps and mbps <= 1_000_000_000 else None


def cpu_list(text: str) -> frozenset[int] | None:
    """Return the numbers of a CPU list such as ``0-19,40-59``; None if it is none, or goes beyond ``MAX_CPU``."""
    try:
        cpus = frozenset(parse_indices(re.sub(r"\s", "", text)))
    except ValueError:
        return None
    return cpus if max(cpus) <= MAX_CPU else None


def cpu_words(text: str) -> int | None:
    """
    Return the bit mask of comma-separated 32-bit words, the highest first, as sysfs, NCCL and hwloc write them.

    Words may have ``0x`` before them and may be empty (0). None if it is no such text.
    """
    words = [word.strip().removeprefix("0x") for word in text.strip().split(",", (MAX_CPU + 1) // 32)]
    if len(words) > (MAX_CPU + 1) // 32 or not all(re.fullmatch(r"[0-9a-fA-F]{0,8}", word) for word in words):
        return None
    return int("".join(word.zfill(8) for word in words), 16)
