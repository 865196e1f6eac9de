"""
Devices that are parts of GPUs (DRA: partitionable devices), as profiles with starts.

A GPU is a set of shared counters. Its slots are the counters of which one device at a time can take, such as
``memory-slice-0`` to ``memory-slice-7``; a device lies in neighbouring ones. Other counters never bind beside them, or
what would bind is not read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

from placeopt.model.machine import MAX_PROFILES, MAX_SLOTS, Profile

DeviceId = tuple[str, str, str]
"""Driver, pool, name."""
Amounts = Mapping[tuple[str, ...], int]
"""Counter, as driver, pool, counter set and name -> amount."""


@dataclass
class Device:
    """A device of a ResourceSlice; ``node`` is None if it is not on one node, ``apart`` False if pods may share it."""

    id: DeviceId
    node: str | None
    facts: Mapping[str, object]
    """Its driver, and ``attributes`` and ``capacity`` by domain and name."""
    takes: Amounts
    apart: bool
    tainted: bool


class Part(NamedTuple):
    """Where a device lies: node, number of the GPU there, width and first slot."""

    node: str
    gpu: int
    width: int
    start: int


Gpu = dict[DeviceId, Part]
"""The devices that are parts of a GPU."""


class Partitions:
    """
    The GPUs that devices of all nodes are parts of; profiles are added as claims ask for them.

    ``parts``: Device -> where it lies. ``limits``: Of counters.
    """

    def __init__(self, devices: Iterable[Device], limits: Amounts) -> None:
        self.parts: Gpu = {}
        self._gpus: dict[str, list[Gpu]] = defaultdict(list)
        self._limits = limits
        self._takes = {device.id: device.takes for device in devices}
        self._profiles: dict[frozenset[DeviceId], str] = {}
        """Devices that claims may choose from -> name of the profile."""
        by_set: dict[tuple[str, ...], list[Device]] = defaultdict(list)
        for device in devices:
            for of in {counter[:3] for counter in device.takes}:
                by_set[of].append(device)
        counters: dict[tuple[str, ...], list[tuple[str, ...]]] = defaultdict(list)
        for counter in sorted(limits, key=lambda counter: (len(counter[-1]), counter)):
            if len(counter) > 3:
                counters[counter[:3]].append(counter)
        for of in sorted(by_set, key=lambda key: [(len(word), word) for word in key]):
            self._add_gpu(by_set[of], counters[of])

    def _add_gpu(self, devices: list[Device], counters: list[tuple[str, ...]]) -> None:
        """Lay the devices of a set of counters into slots, if all are on one node and one of them is the whole GPU."""
        family: dict[str, list[tuple[str, ...]]] = defaultdict(list)
        for counter in counters:
            taken = [device.takes[counter] for device in devices if device.takes.get(counter)]
            if taken and all(2 * amount > self._limits[counter] for amount in taken):
                family[counter[3].rstrip("0123456789")].append(counter)
        slots, node = max(family.values(), key=len, default=[]), devices[0].node
        gpu: Gpu = {}
        for device in devices:
            at = [i for i, counter in enumerate(slots) if device.takes.get(counter)]
            lies = bool(at) and at[-1] - at[0] < len(at) and device.node == node is not None
            own = all(amount <= self._limits.get(c, 0) and c in counters for c, amount in device.takes.items())
            if not (lies and own and device.apart) or device.tainted:
                return
            gpu[device.id] = Part(device.node or "", len(self._gpus[node or ""]), len(at), at[0])
        if 2 <= len(slots) < MAX_SLOTS and len(slots) == _size(gpu):
            self._gpus[node or ""].append(gpu)
            self.parts |= gpu

    def profile(self, devices: Collection[DeviceId], name: str) -> tuple[str, int] | None:
        """
        Return the name of the profile that a claim takes which may choose from devices, and its part of a GPU.

        In thousandths, of the GPU of which it is the smallest part. ``name``: One that is not taken by another profile.
        None: the devices are no profile.
        """
        chosen = frozenset(devices)
        if not chosen or not chosen <= self.parts.keys():
            return None
        names = (name, *self._profiles.values())
        own = next(one for i in count() if (one := f"{name}-{i}" if i else name) not in names[1:])
        profiles = {chosen: own, **self._profiles}
        gpus = [self._gpus[node][gpu] for node, gpu in {self.parts[key][:2] for key in chosen}]
        if not all(self._is_exact(gpu, profiles) for gpu in gpus):
            return None
        self._profiles = {**self._profiles, chosen: profiles[chosen]}
        least = min(1000 * gpu[key].width // _size(gpu) for gpu in gpus for key in chosen & gpu.keys())
        return profiles[chosen], max(1, least)

    def _is_exact(self, gpu: Gpu, profiles: Collection[frozenset[DeviceId]]) -> bool:
        """Return whether devices of one profile are equally wide, and whatever has slots beside others has the rest."""
        of_profile = [[gpu[key] for key in chosen & gpu.keys()] for chosen in profiles]
        alike = all(
            len({p.width for p in some}) < 2 and len({p.start for p in some}) == len(some) for some in of_profile
        )
        read, size = frozenset[DeviceId]().union(*profiles), _size(gpu)
        mine = {key: part for key, part in gpu.items() if key in read or part.width == size}
        counters = {counter for key in mine for counter in self._takes[key]}
        return alike and len(profiles) < MAX_PROFILES and all(self._most(c, mine) <= self._limits[c] for c in counters)

    def _most(self, counter: tuple[str, ...], devices: Gpu) -> int:
        """Return the most that devices in slots of their own take of a counter together."""
        most = [0]
        for end in range(1, _size(devices) + 1):
            ending = [(key, part.start) for key, part in devices.items() if part.start + part.width == end]
            most.append(max(most[-1], *(most[start] + self._takes[key].get(counter, 0) for key, start in ending), 0))
        return most[-1]

    def of_node(self, node: str) -> tuple[tuple[Profile, ...], ...]:
        """Return the profiles of the node's GPUs that are parted, by number; none where no claim asks for any."""
        found = []
        for gpu in self._gpus.get(node, ()):
            profiles = [Profile(id=None, width=_size(gpu), starts=(0,))]
            for chosen, name in self._profiles.items():
                if mine := sorted(gpu[key] for key in chosen & gpu.keys()):
                    profiles.append(Profile(id=name, width=mine[0].width, starts=tuple(part.start for part in mine)))
            found.append(tuple(profiles))
        return tuple(found) if any(len(profiles) > 1 for profiles in found) else ()


def _size(gpu: Gpu) -> int:
    """Return the number of slots of a GPU: one of its devices takes all of them."""
    return max(part.width for part in gpu.values())
