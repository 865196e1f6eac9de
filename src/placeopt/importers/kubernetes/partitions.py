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
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from placeopt.importers.kubernetes.resources import NONE
from placeopt.model.machine import MAX_PROFILES, MAX_SLOTS, Profile

if TYPE_CHECKING:
    from placeopt.importers.kubernetes.devices import CounterId, Device, DeviceId

Profiles = tuple[Profile, ...]


class Part(NamedTuple):
    """Where a device lies: node, number of the GPU there, width and first slot."""

    node: str
    gpu: int
    width: int
    start: int


class Partitions:
    """The GPUs that devices of all nodes are parts of; profiles are added as claims ask for them."""

    def __init__(self, devices: Iterable[Device], limits: Mapping[CounterId, Fraction]) -> None:
        self.parts: dict[DeviceId, Part] = {}
        self._sizes: dict[tuple[str, int], int] = {}
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
        slots = max(family.values(), key=len, default=[])
        node = devices[0].node
        if not 2 <= len(slots) < MAX_SLOTS or node is None:
            return
        laid = {}
        for device in devices:
            at = [i for i, counter in enumerate(slots) if device.takes.get(counter)]
            alone = {counter[:3] for counter in device.takes} == {slots[0][:3]}
            fits = all(amount <= self._limits.get(counter, NONE) for counter, amount in device.takes.items())
            lies = bool(at) and at[-1] - at[0] < len(at) and device.node == node
            if not (lies and alone and fits and device.apart) or device.tainted:
                return
            laid[device.id] = len(at), at[0]
        if (len(slots), 0) not in laid.values():
            return
        gpu = sum(there == node for there, _ in self._sizes)
        self._sizes[node, gpu] = len(slots)
        self.parts |= {key: Part(node, gpu, width, start) for key, (width, start) in laid.items()}

    def is_whole(self, key: DeviceId) -> bool:
        """Return whether a device is all of its GPU."""
        part = self.parts.get(key)
        return part is not None and part.width == self._sizes[part.node, part.gpu]

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
            name = next(one for i in range(len(taken) + 1) if (one := f"{name}-{i}" if i else name) not in taken)
            self._profiles[chosen] = name
            if not all(self._is_exact(node, gpu) for node, gpu in {self.parts[key][:2] for key in chosen}):
                del self._profiles[chosen]
                return None
        least = min(1000 * self.parts[key].width // self._sizes[self.parts[key][:2]] for key in chosen)
        return self._profiles[chosen], max(1, least)

    def _is_exact(self, node: str, gpu: int) -> bool:
        """Return whether devices of one profile are equally wide, and whatever has slots beside others has the rest."""
        read = {key for chosen in self._profiles for key in chosen}
        here = [key for key, part in self.parts.items() if part[:2] == (node, gpu)]
        mine = [key for key in here if key in read or self.is_whole(key)]
        of_gpu = [[self.parts[key] for key in chosen if key in set(here)] for chosen in self._profiles]
        alike = all(len({p.width for p in some}) < 2 and len({p.start for p in some}) == len(some) for some in of_gpu)
        counters = {counter for key in mine for counter in self._takes[key]}
        return alike and len(of_gpu) < MAX_PROFILES and all(self._never_binds(one, mine, node, gpu) for one in counters)

    def _never_binds(self, counter: CounterId, devices: list[DeviceId], node: str, gpu: int) -> bool:
        """Return whether devices in slots of their own never take more of a counter than there is."""
        most = [NONE] * (self._sizes[node, gpu] + 1)
        for end in range(1, len(most)):
            ending = [key for key in devices if sum(self.parts[key][2:]) == end]
            taken = (most[self.parts[key].start] + self._takes[key].get(counter, NONE) for key in ending)
            most[end] = max(most[end - 1], *taken, NONE)
        return most[-1] <= self._limits[counter]

    def of_node(self, node: str) -> tuple[Profiles, ...]:
        """Return the profiles of the node's GPUs that are parted, by number; none where no claim asks for any."""
        found: list[Profiles] = []
        for gpu in range(sum(there == node for there, _ in self._sizes)):
            profiles = [Profile(id=None, width=self._sizes[node, gpu], starts=(0,))]
            for chosen, name in self._profiles.items():
                mine = sorted(self.parts[key] for key in chosen if self.parts[key][:2] == (node, gpu))
                if mine:
                    profiles.append(Profile(id=name, width=mine[0].width, starts=tuple(part.start for part in mine)))
            found.append(tuple(profiles))
        return tuple(found) if any(one.id for profiles in found for one in profiles) else ()


def _in_order(key: tuple[str, ...]) -> list[tuple[str, int]]:
    """Return what sorts names by the numbers in them."""
    return [(word, int(number or -1)) for text in key for word, number in re.findall(r"(\D*)(\d{0,15})", text)]
