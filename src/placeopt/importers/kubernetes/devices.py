"""
Dynamic resource allocation: what drivers offer and what claims take, as extended resources.

The devices of a class on a node are so many of one extended resource, as long as all of them can be given out at once.
Its name is the class's own ``extendedResourceName``, or the one that Kubernetes has for every class. What is given out
is one account: of the counters that devices share, and of each device.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from placeopt.errors import BadInput
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.kubernetes.device_selectors import is_met
from placeopt.importers.kubernetes.node_conditions import KEEPS_OFF, node_selector_terms
from placeopt.importers.kubernetes.objects import Listed, by_id
from placeopt.importers.kubernetes.partitions import Device, DeviceId, Part, Partitions
from placeopt.importers.kubernetes.resources import CLASS_RESOURCE, is_network, quantity
from placeopt.model import NodeConditions
from placeopt.model.conditions import ANY_NODE

UNKNOWN = "a ResourceClaim"
Kind = str | tuple[str, int] | None
"""What a request takes: an extended resource, or a profile and its thousandths of a GPU; None: it is not read."""


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
    conditions: NodeConditions = ANY_NODE


NO_DEVICES = PodDevices()


class Devices:
    """
    Devices, classes and claims as they were listed, by kind.

    ``uncounted``: Classes, drivers and claims of devices that are no GPUs, which nothing counts.
    """

    def __init__(self, listed: Listed) -> None:
        self._limits: dict[tuple[str, ...], int] = {}
        """Counters, and devices: of each there is 1."""
        self._devices: dict[DeviceId, Device] = {}
        for spec in _newest(listed.get("ResourceSlice", [])):
            with suppress(BadInput):  # one that cannot be read counts as not listed
                read = list(_devices(spec, self._limits))
                self._devices |= {device.id: device for device in read}
        self._limits |= dict.fromkeys(self._devices, 1)
        self.partitions = Partitions(self._devices.values(), self._limits)
        self._met: dict[tuple[str, ...], frozenset[DeviceId] | None] = {}
        self._kinds: dict[tuple[str, ...], Kind] = {}
        self._selectors: dict[str, list[str]] = {}
        self._names: dict[str, str] = {}
        """Class, or what is named after it -> extended resource."""
        self._resource_of: dict[DeviceId, str] = {}
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
        stated, expressions = spec.text("extendedResourceName", ""), _selectors(spec)
        self._selectors[name] = expressions
        met = self._meeting(expressions)
        if met is None:
            return
        same = {self._resource_of.get(key) for key in met}
        resource = same.pop() if len(same) == 1 else None
        if resource is None or Counter(self._resource_of.values())[resource] > len(met):
            used = self._used([*self._resource_of, *met])
            together = all(amount <= self._limits.get(of, 0) for of, amount in used.items())
            if not together or not all(self._devices[key].node and self._devices[key].apart for key in met):
                return
            resource = stated or CLASS_RESOURCE + name
            self._resource_of |= dict.fromkeys(met, resource)
        self._names |= {name: resource, CLASS_RESOURCE + name: resource} | ({stated: resource} if stated else {})

    def _meeting(self, expressions: Collection[str]) -> frozenset[DeviceId] | None:
        """Return the devices that meet all selectors; None if that is not known of one."""
        key = tuple(expressions)
        if key not in self._met:
            met = {id_: is_met(key, device.facts) for id_, device in self._devices.items()}
            self._met[key] = None if None in met.values() else frozenset(id_ for id_, is_one in met.items() if is_one)
        return self._met[key]

    def _used(self, devices: Iterable[DeviceId]) -> Counter[tuple[str, ...]]:
        """Return what devices take together of counters, and of themselves."""
        used: Counter[tuple[str, ...]] = Counter()
        for key in devices:
            used[key] += 1
            used.update(self._devices[key].takes if key in self._devices else {})
        return used

    def resource(self, name: str) -> str:
        """Return the name that counts the devices of an extended resource."""
        return self._names.get(name, name)

    def on_nodes(self) -> Mapping[str, Counter[str]]:
        """Return the devices of each node, by extended resource, without those that taints keep from claims."""
        return self._by_node(self._resource_of)

    def taken(self) -> Mapping[str, Counter[str]]:
        """Return those of them that no pod can have: devices, or parts of them, that no amount of a pod states."""
        held = {key for name in self._held for key in _allocated(self._claims[name])}
        used = self._used(self._allocated - (held & (self._resource_of.keys() | self.partitions.parts.keys())))
        lost = []
        for key in self._resource_of:
            takes = {key: 1} if key in self._allocated else {key: 1, **self._devices[key].takes}
            if any(used[of] + amount > self._limits.get(of, 0) for of, amount in takes.items()):
                lost.append(key)
        return self._by_node(lost)

    def _by_node(self, devices: Iterable[DeviceId]) -> Mapping[str, Counter[str]]:
        found: dict[str, Counter[str]] = defaultdict(Counter)
        for key in devices:
            device = self._devices[key]
            found[device.node or ""][self._resource_of[key]] += key in self._allocated or not device.tainted
        return found

    def of(self, pod: JsonEntry, requested: Collection[str], resource: str) -> PodDevices:
        """Return what a pod takes by claims; ``requested``: resources that it names; ``resource``: what counts GPUs."""
        spec, status = pod.entry("spec"), pod.entry("status")
        if "resourceClaims" not in spec and "extendedResourceClaimStatus" not in status:
            return NO_DEVICES
        found = PodDevices()
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
            resource = self._resource_of.get(key)
            if key in self.partitions.parts and runs:
                found.parts.append(self.partitions.parts[key])
                if resource is None:
                    self._ask(found, claim.entry("spec"))
            if resource is not None and runs and name not in self._held:
                found.amounts[resource] += 1
            elif resource is None and key not in self._devices:
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
            count = exact.integer("count", 1, 1024, 1)
            kind = self._kind(classes[-1], _selectors(exact))
            if kind is None or exact.text("allocationMode", "ExactCount") != "ExactCount":
                plain = False
            elif isinstance(kind, str):
                asked[kind] += count
            elif count > 1 or found.profile is not None:
                plain = False
            else:
                found.profile = kind
        plain = plain and (found.profile is None or len(classes) == 1)
        if plain and (not spec.entry("devices").entries("constraints") or asked.total() < 2):
            found.amounts += asked
        else:
            for name in classes or [""]:
                self._uncounted(found, name)

    def _kind(self, name: str, expressions: Collection[str]) -> Kind:
        """Return what a request for a device of a class takes."""
        key = (name, *expressions)
        if key not in self._kinds:
            resource, met = self._names.get(name), self._meeting([*self._selectors.get(name, ()), *expressions])
            if resource is not None:
                all_meet = met is not None and Counter(self._resource_of.values())[resource] == len(met)
                self._kinds[key] = resource if all_meet or not expressions else None
            elif name not in self._selectors or met is None:
                self._kinds[key] = None
            else:
                chosen = [one for one in met if not self._devices[one].tainted]
                called = {str(self._devices[one].facts.get(f"attributes {one[0]}/profile", name)) for one in chosen}
                self._kinds[key] = self.partitions.profile(chosen, called.pop() if len(called) == 1 else name)
        return self._kinds[key]

    def _uncounted(self, found: PodDevices, name: str) -> None:
        """Take a device of a class or driver that nothing counts."""
        if is_network(name) and name not in self._names:
            self.uncounted.add(name)
        else:
            found.unknown.append(UNKNOWN)


def _selectors(entry: JsonEntry) -> list[str]:
    """Return the expressions of a class or a request, all of which a device must meet."""
    return [one.entry("cel").text("expression") for one in entry.entries("selectors")]


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


def _devices(spec: JsonEntry, limits: dict[tuple[str, ...], int]) -> Iterator[Device]:
    """Yield the devices of a slice; its counters are added to ``limits``."""
    driver, pool = spec.text("driver"), spec.entry("pool").text("name")

    def amounts(entry: JsonEntry, key: str) -> dict[tuple[str, ...], int]:
        of, counters = (driver, pool, entry.text(key)), entry.entry("counters")
        return {(*of, name): quantity(counters.entry(name), "value") for name in counters.names()}

    for shared in spec.entries("sharedCounters"):
        limits |= amounts(shared, "name")
    for entry in spec.entries("devices"):
        body = entry.entry("basic") if "basic" in entry else entry  # v1beta1
        facts: dict[str, object] = {"driver": driver}
        for kind in ("attributes", "capacity"):
            for key in body.entry(kind).names():
                value = body.entry(kind).entry(key)
                name = key if "/" in key else f"{driver}/{key}"
                facts[f"{kind} {name}"] = next((value.raw(form) for form in value.names()), None)
        yield Device(
            (driver, pool, entry.text("name")),
            body.text("nodeName", "") or spec.text("nodeName", "") or None,
            facts,
            {of: n for one in body.entries("consumesCounters") for of, n in amounts(one, "counterSet").items()},
            apart=not body.flag("allowMultipleAllocations"),
            tainted=any(taint.text("effect", "") in KEEPS_OFF for taint in body.entries("taints")),
        )
