"""
Dynamic resource allocation: what drivers offer and what claims take, as extended resources.

The devices of a class on a node are so many of one extended resource, as long as all of them can be given out at once.
Its name is the class's own ``extendedResourceName``, or the one that Kubernetes has for every class.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from placeopt.errors import BadInput
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.kubernetes.node_conditions import EVERY_NODE, KEEPS_OFF, NodeConditions, node_selector_terms
from placeopt.importers.kubernetes.objects import Listed, by_id
from placeopt.importers.kubernetes.partitions import Part, Partitions
from placeopt.importers.kubernetes.resources import CLASS_RESOURCE, is_network, nano, quantity

UNKNOWN = "a ResourceClaim"
DeviceId = tuple[str, str, str]
"""Driver, pool, name."""
CounterId = tuple[str, str, str, str]
"""Driver, pool, counter set, counter."""
_LITERAL = r"""(?P<value>"[^"]*"|'[^']*'|true|false|-?[0-9]{1,18})"""
_FIELD = r"""device\.(?P<kind>attributes|capacity)\[["'](?P<domain>[^"']+)["']\]\.(?P<name>\w+)"""
_CLAUSES = tuple(
    re.compile(pattern + r"\Z")
    for pattern in (
        rf"device\.driver\s*(?P<sign>==|!=)\s*{_LITERAL}",
        rf"{_FIELD}\s*(?P<sign>==|!=)\s*{_LITERAL}",
        rf"""{_FIELD}\.compareTo\(quantity\(["'](?P<value>[^"']+)["']\)\)\s*(?P<sign>==|!=|>=|<=|>|<)\s*0""",
    )
)


SIGNS: Mapping[str, Callable[[Any, Any], object]]
SIGNS = {"==": eq, "!=": ne, ">=": ge, "<=": le, ">": gt, "<": lt}


@dataclass
class Device:
    """A device of a ResourceSlice; ``node`` is None if it is not on one node, ``apart`` False if pods may share it."""

    id: DeviceId
    node: str | None
    facts: Mapping[str, object]
    """Its driver, and ``attributes`` and ``capacity`` by domain and name."""
    takes: Mapping[CounterId, int]
    apart: bool
    tainted: bool


@dataclass
class PodDevices:
    """
    What a pod takes by its claims.

    ``amounts``: Of extended resources. ``profile``: Of a part of a GPU, and its thousandths. ``parts``: Where its GPUs
    and parts of them are, as far as that is known. ``unknown``: Claims that may be for counted GPUs.
    ``conditions``: On its node.
    """

    amounts: Counter[str] = field(default_factory=Counter)
    profile: tuple[str, int] | None = None
    parts: list[Part] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    conditions: NodeConditions = EVERY_NODE


class Devices:
    """
    Devices, classes and claims as they were listed, by kind.

    ``uncounted``: Classes, drivers and claims of devices that are no GPUs, which nothing counts.
    """

    def __init__(self, listed: Listed) -> None:
        self._devices: dict[DeviceId, Device] = {}
        self._counters: dict[CounterId, int] = {}
        for slice_ in _newest(listed.get("ResourceSlice", [])):
            for device in _readable(slice_, self._counters):
                self._devices[device.id] = device
        self.partitions = Partitions(self._devices.values(), self._counters)
        self._selectors: dict[str, list[str]] = {}
        self._names: dict[str, str] = {}
        self._of_name: dict[str, dict[DeviceId, Device]] = {}
        classes = listed.get("DeviceClass", [])
        for entry in sorted(classes, key=lambda one: "extendedResourceName" not in str(one.raw("spec"))):
            with suppress(BadInput):  # counts as not listed
                self._add_class(entry)
        self._claims = by_id(listed.get("ResourceClaim", []), _allocated)
        self._allocated = {key for claim in self._claims.values() for key in _allocated(claim)}
        self._templates = by_id(listed.get("ResourceClaimTemplate", []))
        self._users: Counter[str] = Counter()
        self._held: set[str] = set()
        """Claims whose devices are amounts of a running pod."""
        self.uncounted: set[str] = set()
        for pod in listed.get("Pod", []) if self._claims else ():
            with suppress(BadInput):
                self._users.update(name for name in _claim_names(pod).values() if name)

    def _add_class(self, entry: JsonEntry) -> None:
        """Name the devices of a class, if it is read and all of them can be given out beside those of other names."""
        name, spec = entry.entry("metadata").text("name"), entry.entry("spec")
        stated = spec.text("extendedResourceName", "")
        expressions = self._selectors[name] = [one.entry("cel").text("expression") for one in spec.entries("selectors")]
        if any(_all_met(expressions, one) is None for one in self._devices.values()):
            return
        met = {key: one for key, one in self._devices.items() if _all_met(expressions, one)}
        same = next((other for other, devices in self._of_name.items() if devices.keys() == met.keys()), None)
        if same is None:
            named = {key for devices in self._of_name.values() for key in devices}
            used = _sum(self._devices[key] for key in named | met.keys())
            together = all(amount <= self._counters.get(counter, 0) for counter, amount in used.items())
            if named & met.keys() or not together or not all(one.node and one.apart for one in met.values()):
                return
            same = stated or CLASS_RESOURCE + name
            self._of_name[same] = met
        self._names |= {name: same, CLASS_RESOURCE + name: same} | ({stated: same} if stated else {})

    def resource(self, name: str) -> str:
        """Return the name that counts the devices of an extended resource."""
        return self._names.get(name, name)

    def on_nodes(self) -> Mapping[str, Counter[str]]:
        """Return the devices of each node, by extended resource, without those that taints keep from claims."""
        return self._by_node(lambda device: device.id in self._allocated or not device.tainted)

    def taken(self) -> Mapping[str, Counter[str]]:
        """Return those of them that no pod can have: devices, or parts of them, that no amount of a pod states."""
        counted = {key for devices in self._of_name.values() for key in devices} | self.partitions.parts.keys()
        held = {key for name in self._held for key in _allocated(self._claims[name])}
        others = self._allocated - (held & counted)
        used = _sum(self._devices[key] for key in others if key in self._devices)

        def is_taken(device: Device) -> bool:
            parts = (used[one] + amount > self._counters.get(one, 0) for one, amount in device.takes.items())
            return device.id in others or (device.id not in self._allocated and not device.tainted and any(parts))

        return self._by_node(is_taken)

    def _by_node(self, counts: Callable[[Device], bool]) -> Mapping[str, Counter[str]]:
        found: dict[str, Counter[str]] = defaultdict(Counter)
        for name, devices in self._of_name.items():
            for device in devices.values():
                found[device.node or ""][name] += counts(device)
        return found

    def of(self, pod: JsonEntry, requested: Collection[str], resource: str) -> PodDevices:
        """Return what a pod takes by claims; ``requested``: resources that it names; ``resource``: what counts GPUs."""
        spec, status, found = pod.entry("spec"), pod.entry("status"), PodDevices()
        if "resourceClaims" not in spec and "extendedResourceClaimStatus" not in status:
            return found
        namespace, runs = pod.entry("metadata").text("namespace", "default"), "nodeName" in spec
        names = _claim_names(pod)
        for entry in spec.entries("resourceClaims"):
            name = names[entry.text("name")]
            template = self._templates.get(f"{namespace}/{entry.text('resourceClaimTemplateName', '')}")
            claim = self._claims.get(name or "")
            if claim is not None:
                self._take(found, claim, name or "", runs=runs)
            elif template is not None and not runs:
                self._ask(found, template.entry("spec").entry("spec"))
            elif resource in requested:
                self.uncounted.add("claims that are not listed")  # GPUs come by the device plugin, or by claims
            else:
                found.unknown.append(UNKNOWN)
        mapped = status.entry("extendedResourceClaimStatus")
        if mapped.names():
            claim_id = f"{namespace}/{mapped.text('resourceClaimName', '')}"
            names_ = {one.text("resourceName", "") for one in mapped.entries("requestMappings")}
            if names_ and names_ <= set(requested):
                self._held |= {claim_id} & self._claims.keys()
            else:
                found.unknown.append(UNKNOWN)
        found.unknown = list(dict.fromkeys(found.unknown))
        return found

    def _take(self, found: PodDevices, claim: JsonEntry, name: str, *, runs: bool) -> None:
        """Take the devices of a claim that there is."""
        allocation = claim.entry("status").entry("allocation")
        if not allocation.names():
            if self._users[name] > 1:
                found.unknown.append("a ResourceClaim that several pods share")
            else:
                self._ask(found, claim.entry("spec"))
            return
        selector = allocation.entry("nodeSelector")
        if "nodeSelectorTerms" in selector and not runs:
            found.conditions &= node_selector_terms(selector)
        for key in _allocated(claim):
            of = [resource for resource, devices in self._of_name.items() if key in devices]
            if key in self.partitions.parts and runs:
                found.parts.append(self.partitions.parts[key])
                if not of:
                    self._ask(found, claim.entry("spec"))
            if of and runs and name not in self._held:
                found.amounts[of[0]] += 1
            elif not of and key not in self._devices:
                self._uncounted(found, key[0])
        if runs:
            self._held.add(name)

    def _ask(self, found: PodDevices, spec: JsonEntry) -> None:
        """Take the devices for which a claim asks."""
        asked: Counter[str] = Counter()
        classes = []
        plain = True
        for request in spec.entry("devices").entries("requests"):
            exact = request.entry("exactly") if "exactly" in request else request
            if exact.flag("adminAccess"):
                continue
            classes.append(exact.text("deviceClassName", ""))
            resource = self._names.get(classes[-1])
            expressions = [one.entry("cel").text("expression") for one in exact.entries("selectors")]
            part = self._part(classes[-1], expressions) if exact.integer("count", 1, 1024, 1) == 1 else None
            if (
                part is not None
                and found.profile is None
                and exact.text("allocationMode", "ExactCount") == "ExactCount"
            ):
                found.profile = part
            elif (
                resource is None
                or exact.text("allocationMode", "ExactCount") != "ExactCount"
                or not all(_all_met(expressions, device) for device in self._of_name[resource].values())
            ):
                plain = False
            else:
                asked[resource] += exact.integer("count", 1, 1024, 1)
        if found.profile is not None and len(classes) > 1:
            plain = False
        if plain and (not spec.entry("devices").entries("constraints") or asked.total() < 2):
            found.amounts += asked
        else:
            for name in classes or [""]:
                self._uncounted(found, name)

    def _part(self, name: str, expressions: list[str]) -> tuple[str, int] | None:
        """Return the profile of the parts of GPUs that a request may have, and its thousandths; None: of no parts."""
        both = [*self._selectors.get(name, ()), *expressions]
        met = {key: _all_met(both, device) for key, device in self._devices.items()}
        if name in self._names or name not in self._selectors or None in met.values():
            return None
        chosen = [key for key, is_met in met.items() if is_met and not self._devices[key].tainted]
        called = {str(self._devices[key].facts.get(f"attributes {key[0]}/profile", name)) for key in chosen}
        return self.partitions.profile(chosen, called.pop() if len(called) == 1 else name)

    def _uncounted(self, found: PodDevices, name: str) -> None:
        """Take a device of a class or driver that nothing counts."""
        if is_network(name) and name not in self._names:
            self.uncounted.add(name)
        else:
            found.unknown.append(UNKNOWN)


def _claim_names(pod: JsonEntry) -> dict[str, str | None]:
    """Return the claims of a pod by the name that it gives them: namespace and name, None if none was made yet."""
    namespace = pod.entry("metadata").text("namespace", "default")
    made = {
        one.text("name"): one.text("resourceClaimName", "")
        for one in pod.entry("status").entries("resourceClaimStatuses")
    }
    names = {
        one.text("name"): one.text("resourceClaimName", "") or made.get(one.text("name"), "")
        for one in pod.entry("spec").entries("resourceClaims")
    }
    return {own: f"{namespace}/{name}" if name else None for own, name in names.items()}


def _allocated(claim: JsonEntry) -> list[DeviceId]:
    """Return the devices that a claim has for itself."""
    results = claim.entry("status").entry("allocation").entry("devices").entries("results")
    return [
        (one.text("driver"), one.text("pool", ""), one.text("device", ""))
        for one in results
        if not one.flag("adminAccess")
    ]


def _newest(slices: Iterable[JsonEntry]) -> list[JsonEntry]:
    """Return the slices of the newest generation of each pool, if all of them are listed."""
    pools: dict[tuple[str, str], dict[int, list[JsonEntry]]] = defaultdict(lambda: defaultdict(list))
    for entry in slices:
        with suppress(BadInput):
            spec, pool = entry.entry("spec"), entry.entry("spec").entry("pool")
            generation = pool.integer("generation", 0, 2**62, 0)
            pools[spec.text("driver"), pool.text("name")][generation].append(spec)
    newest = [generations[max(generations)] for generations in pools.values()]
    return [
        spec for specs in newest if len(specs) == specs[0].entry("pool").raw("resourceSliceCount") for spec in specs
    ]


def _readable(spec: JsonEntry, counters: dict[CounterId, int]) -> list[Device]:
    """Return the devices of a slice, none if it cannot be read; its counters are added."""
    driver = spec.text("driver")
    pool = spec.entry("pool").text("name")
    try:
        for shared in spec.entries("sharedCounters"):
            counters |= _amounts((driver, pool, shared.text("name")), shared)
        return [_device(spec, entry, driver, pool) for entry in spec.entries("devices")]
    except BadInput:
        return []


def _device(spec: JsonEntry, entry: JsonEntry, driver: str, pool: str) -> Device:
    body = entry.entry("basic") if "basic" in entry else entry  # v1beta1
    facts: dict[str, object] = {"driver": driver}
    for kind in ("attributes", "capacity"):
        for key in body.entry(kind).names():
            value = body.entry(kind).entry(key)
            name = key if "/" in key else f"{driver}/{key}"
            facts[f"{kind} {name}"] = next((value.raw(form) for form in value.names()), None)
    takes: dict[CounterId, int] = {}
    for consumed in body.entries("consumesCounters"):
        takes |= _amounts((driver, pool, consumed.text("counterSet")), consumed)
    taints = [taint.text("effect", "") for taint in body.entries("taints")]
    return Device(
        (driver, pool, entry.text("name")),
        body.text("nodeName", "") or spec.text("nodeName", "") or None,
        facts,
        takes,
        apart=not body.flag("allowMultipleAllocations"),
        tainted=any(effect in KEEPS_OFF for effect in taints),
    )


def _amounts(of: tuple[str, str, str], entry: JsonEntry) -> dict[CounterId, int]:
    counters = entry.entry("counters")
    return {(*of, name): quantity(counters.entry(name), "value") for name in counters.names()}


def _sum(devices: Iterable[Device]) -> Mapping[CounterId, int]:
    """Return what devices take of counters together."""
    total: dict[CounterId, int] = defaultdict(int)
    for device in devices:
        for counter, amount in device.takes.items():
            total[counter] += amount
    return total


def _all_met(expressions: Iterable[str], device: Device) -> bool | None:
    """Return whether a device meets CEL expressions; None if one is not read: only comparisons joined by && are."""
    met = [_is_met(clause.strip(), device) for text in expressions for clause in text.split("&&")]
    return False if False in met else None if None in met else True


def _is_met(clause: str, device: Device) -> bool | None:
    found = next((match for pattern in _CLAUSES if (match := pattern.match(clause))), None)
    if found is None:
        return None
    parts = found.groupdict()
    key = f"{parts['kind']} {parts['domain']}/{parts['name']}" if "kind" in parts else "driver"
    if key not in device.facts:
        return False
    sign = SIGNS[parts["sign"]]
    if parts.get("kind") == "capacity":
        try:
            return bool(sign(nano(str(device.facts[key])), nano(parts["value"])))
        except ValueError:
            return None
    text = parts["value"]
    value: object = text[1:-1] if text[0] in "\"'" else text == "true" if text[0] in "tf" else int(text)
    same = type(value) is type(device.facts[key]) and value == device.facts[key]
    return bool(sign(same, True))
