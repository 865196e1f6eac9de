"""
Devices that are parts of GPUs (DRA: partitionable devices), as profiles with starts.

A GPU is a set of shared counters. Its slots are the counters of which one device at a time can take, such as
``memory-slice-0`` to ``memory-slice-7``; a device lies in neighbouring ones. Other counters never bind beside them, or
what would bind is not read.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from placeopt.model.machine import MAX_PROFILES, MAX_SLOTS, Profile

if TYPE_CHECKING:
    from placeopt.importers.kubernetes.devices import CounterId, Device, DeviceId


class Part(NamedTuple):
    """Where a device lies: node, number of the GPU there, width and first slot."""

    node: str
    gpu: int
    width: int
    start: int


class Partitions:
    """The GPUs that devices of all nodes are parts of; profiles are added as claims ask for them."""

    def __init__(self, devices: Iterable[Device], limits: Mapping[CounterId, int]) -> None:
        self.parts: dict[DeviceId, Part] = {}
        self._gpus: dict[tuple[str, int], dict[DeviceId, Part]] = {}
        self._limits = limits
        self._takes = {device.id: device.takes for device in devices}
        self._profiles: dict[frozenset[DeviceId], str] = {}
        """Devices that claims may choose from -> name of the profile."""
        by_set: dict[tuple[str, str, str], list[Device]] = defaultdict(list)
        for device in devices:
            for of in {counter[:3] for counter in device.takes}:
                by_set[of].append(device)
        for of in sorted(by_set, key=_in_order):
            self._add_gpu(by_set[of], [counter for counter in limits if counter[:3] == of])

    def _add_gpu(self, devices: list[Device], counters: list[CounterId]) -> None:
        """Lay the devices of a set of counters into slots, if all are on one node and one of them is the whole GPU."""
        family: dict[str, list[CounterId]] = defaultdict(list)
        for counter in sorted(counters, key=_in_order):
            taken = [device.takes[counter] for device in devices if device.takes.get(counter)]
            if taken and all(2 * amount > self._limits[counter] for amount in taken):
                family[counter[3].rstrip("0123456789")].append(counter)
        slots, node = max(family.values(), key=len, default=[]), devices[0].node
        gpu, found = sum(there == node for there, _ in self._gpus), {}
        for device in devices:
            at = [i for i, counter in enumerate(slots) if device.takes.get(counter)]
            lies = bool(at) and at[-1] - at[0] < len(at) and device.node == node is not None
            own = all(amount <= self._limits.get(c, 0) and c in counters for c, amount in device.takes.items())
            if not (lies and own and device.apart) or device.tainted:
                return
            found[device.id] = Part(device.node or "", gpu, len(at), at[0])
        if 2 <= len(slots) < MAX_SLOTS and len(slots) in {part.width for part in found.values()}:
            self._gpus[node or "", gpu] = found
            self.parts |= found

    def profile(self, devices: Collection[DeviceId], name: str) -> tuple[str, int] | None:
        """
        Return the name of the profile that a claim takes which may choose from devices, and its part of a GPU.

        In thousandths, of the GPU of which it is the smallest part. ``name``: One that is not taken by another profile.
        None: the devices are no profile.
        """
        chosen = frozenset(devices)
        if not chosen or not chosen <= self.parts.keys():
            return None
        if chosen not in self._profiles:
            taken = set(self._profiles.values())
            self._profiles[chosen] = next(
                n for i in range(len(taken) + 1) if (n := name + f"-{i}" * (i > 0)) not in taken
            )
            if not all(self._is_exact(self._gpus[gpu]) for gpu in {self.parts[key][:2] for key in chosen}):
                del self._profiles[chosen]
                return None
        least = min(1000 * self.parts[key].width // _size(self._gpus[self.parts[key][:2]]) for key in chosen)
        return self._profiles[chosen], max(1, least)

    def _is_exact(self, gpu: dict[DeviceId, Part]) -> bool:
        """Return whether devices of one profile are equally wide, and whatever has slots beside others has the rest."""
        of_profile = [[gpu[key] for key in chosen & gpu.keys()] for chosen in self._profiles]
        alike = all(
            len({p.width for p in some}) < 2 and len({p.start for p in some}) == len(some) for some in of_profile
        )
        read = frozenset.union(*self._profiles)
        mine = {key: part for key, part in gpu.items() if key in read or part.width == _size(gpu)}
        counters = {counter for key in mine for counter in self._takes[key]}
        return (
            alike and len(of_profile) < MAX_PROFILES and all(self._most(c, mine) <= self._limits[c] for c in counters)
        )

    def _most(self, counter: CounterId, devices: Mapping[DeviceId, Part]) -> int:
        """Return the most that devices in slots of their own take of a counter together."""
        most = [0]
        for end in range(1, _size(devices) + 1):
            ending = [(key, part.start) for key, part in devices.items() if part.start + part.width == end]
            most.append(max(most[-1], *(most[start] + self._takes[key].get(counter, 0) for key, start in ending), 0))
        return most[-1]

    def of_node(self, node: str) -> tuple[tuple[Profile, ...], ...]:
        """Return the profiles of the node's GPUs that are parted, by number; none where no claim asks for any."""
        found = []
        for gpu in (parts for (there, _), parts in self._gpus.items() if there == node):
            profiles = [Profile(id=None, width=_size(gpu), starts=(0,))]
            for chosen, name in self._profiles.items():
                if mine := sorted(gpu[key] for key in chosen & gpu.keys()):
                    profiles.append(Profile(id=name, width=mine[0].width, starts=tuple(part.start for part in mine)))
            found.append(tuple(profiles))
        return tuple(found) if any(len(profiles) > 1 for profiles in found) else ()


def _size(gpu: Mapping[DeviceId, Part]) -> int:
    """Return the number of slots of a GPU: one of its devices takes all of them."""
    return max(part.width for part in gpu.values())


def _in_order(key: tuple[str, ...]) -> list[tuple[str, int]]:
    """Return what sorts names by the numbers in them."""
    return [(word, int(number or -1)) for text in key for word, number in re.findall(r"(\D*)(\d{0,15})", text)]
