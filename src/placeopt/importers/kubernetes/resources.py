"""
Resource quantities, the requests of a pod, and the class of each resource: GPU, other device, or plain amount.

Amounts are whole numbers of nano units, the finest that Kubernetes has: `NANO` of them are 1 of what a quantity states.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from math import ceil

from placeopt.importers.json_entry import JsonEntry

_FORM = re.compile(r"([+]?[0-9]{1,18}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})([eE][+-]?[0-9]{1,2}|[numkMGTPE]|[KMGTPE]i)?\Z")
_POWER = {"n": -3, "u": -2, "m": -1, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
NANO = 10**9
MIB = Fraction(1 << 20)
_MOST = 2**60 * NANO


@lru_cache(4096)
def parse_quantity(text: str) -> Fraction:
    """Return the exact value of a quantity that is not negative; raises ValueError."""
    match = _FORM.match(text)
    if match is None:
        raise ValueError(f"{text!r} is not a quantity")
    number, suffix = Fraction(match[1]), match[2] or ""
    if suffix.endswith("i"):
        return number * Fraction(1024) ** _POWER[suffix[0].replace("K", "k")]
    if suffix[:1] in ("e", "E") and len(suffix) > 1:
        return number * Fraction(10) ** int(suffix[1:])
    return number * Fraction(1000) ** _POWER[suffix] if suffix else number


@lru_cache(4096)
def nano(text: str) -> int:
    """Return a quantity in nano units, rounded up as Kubernetes does; raises ValueError."""
    return ceil(parse_quantity(text) * NANO)


def quantity(entry: JsonEntry, key: str) -> int:
    """Return the quantity of a field in nano units, 0 where it is left out; whole numbers may stand without quotes."""
    value = entry.raw(key)
    if value is None:
        return 0
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    try:
        amount = nano(text) if isinstance(text, str) else None
    except ValueError:
        amount = None
    if amount is None or amount > _MOST:
        raise entry.bad(key, "a quantity such as 500m, 8 or 64Gi")
    return amount


MIG = "nvidia.com/mig-"
"""Prefix of the resources of MIG instances, one for each profile (NVIDIA's strategy ``mixed``)."""
MAKERS = (
    "nvidia.com",
    "amd.com",
    "gpu.intel.com",
    "habana.ai",
    "aws.amazon.com",
    "google.com",
    "cloud-tpus.google.com",
    "huawei.com",
    "cambricon.com",
)
"""Vendors whose device plugins count their own devices, never those of another vendor."""
_NETWORK = re.compile(r"rdma|hca|hostdev|nic|sriov|roce|mlnx|imex|/ib|_vf|efa")
_DEVICE = re.compile(
    r"^(nvidia|amd|cloud-tpus\.google)\.com/|^(gpu\.intel\.com|habana\.ai)/|gpu|(?<![a-z])[ntx]pu|neuron|gaudi|ascend|dcu|mlu|gcu|cuda"
)

CLASS_RESOURCE = "deviceclass.resource.kubernetes.io/"
"""Begins the extended resource that every DeviceClass has by its name."""
PODS = "pods"
"""The resource of which each pod takes one, and a node has its maximum number of pods."""


@lru_cache(4096)
def may_be_gpu(name: str, counted: str) -> bool:
    """
    Return whether a resource may be, or be a part of, one of the GPUs that ``counted`` counts.

    So may ``nvidia.com/gpu.shared``, ``nvidia.com/gpumem``, ``volcano.sh/vgpu-memory``, ``aliyun.com/gpu-mem``, and any
    unknown name that looks like a GPU's: in doubt the same GPU. Devices of another maker may not, nor may MIG instances
    (a GPU is a whole one or cut into instances, never both).
    """
    if not is_accelerator(name) or name.startswith(MIG) or counted.startswith(MIG):
        return False
    maker = name.lower().partition("/")[0]
    return maker not in MAKERS or maker == counted.partition("/")[0]


@lru_cache(4096)
def is_accelerator(name: str) -> bool:
    """Return whether a resource looks like GPUs, other accelerators or parts of them, and not like network cards."""
    if name.startswith(CLASS_RESOURCE):
        name = f"{name.removeprefix(CLASS_RESOURCE)}/"
    maker, slash, local = name.lower().partition("/")
    if not slash or maker.endswith("kubernetes.io") or (_NETWORK.search(f"/{local}") and "gpu" not in local):
        return False
    return _DEVICE.search(name.lower()) is not None


def is_network(name: str) -> bool:
    """Return whether a resource, a driver or a class of devices is of network cards or channels between GPUs."""
    other = _NETWORK.search(f"/{name}") or "compute-domain" in name or name.startswith("dra.net")
    return bool(other) and "gpu" not in name


@lru_cache(4096)
def unit_of(name: str) -> int:
    """Return what is 1 in records, in nano units: a millicore, a MiB of what is counted in bytes, one of all others."""
    if name == "cpu":
        return NANO // 1000
    return NANO << 20 if name in ("memory", "ephemeral-storage") or name.startswith("hugepages-") else NANO


def in_units(amounts: Mapping[str, int], *, up: bool = False) -> dict[str, int]:
    """Return amounts in the units of records, rounded down or up."""
    return {name: -(-amount // unit_of(name)) if up else amount // unit_of(name) for name, amount in amounts.items()}


def is_infeasible(status: JsonEntry) -> bool:
    """Return whether the node of a pod cannot resize it."""
    said = [one.raws(("type", "reason")) for one in status.entries("conditions")]
    return ("PodResizePending", "Infeasible") in said


def requested_amounts(spec: JsonEntry, status: JsonEntry) -> Counter[str]:
    """
    Return what a pod holds of each resource that it names, by Kubernetes' rule; nothing of what it names with 0.

    The larger of what its containers, with the sidecars (init containers that are restarted always), hold together, and
    what one init container needs beside the sidecars begun before it; or what the pod as a whole states
    (``spec.resources``); and the overhead of its runtime. A container holds at least what its node has allocated to it,
    and exactly that where its node cannot resize it (``Infeasible``).
    """
    kept = {
        container.text("name", ""): container
        for key in ("containerStatuses", "initContainerStatuses")
        for container in status.entries(key)
    }
    infeasible = is_infeasible(status)
    sidecars, most = Counter[str](), Counter[str]()
    for container in spec.entries("initContainers"):
        running = sidecars + _needs(container, kept, infeasible=infeasible)
        most |= running
        if container.text("restartPolicy", "") == "Always":
            sidecars = running
    for container in spec.entries("containers"):
        sidecars += _needs(container, kept, infeasible=infeasible)
    return Counter({**(most | sidecars), **_stated(spec.entry("resources"))}) + _quantities(spec.entry("overhead"))


def _needs(container: JsonEntry, kept: Mapping[str, JsonEntry], *, infeasible: bool) -> Counter[str]:
    """Return what one container holds: its requests, by default its limits, and what its node keeps for it."""
    amounts, status = _stated(container.entry("resources")), kept.get(container.text("name", ""))
    if status is None:
        return amounts
    held = _quantities(status.entry("allocatedResources")) | _quantities(status.entry("resources").entry("requests"))
    return held if infeasible and held else amounts | held


def _stated(resources: JsonEntry) -> Counter[str]:
    requests, limits = resources.entry("requests"), resources.entry("limits")
    names = dict.fromkeys([*requests.names(), *limits.names()])
    return Counter({name: quantity(requests if name in requests else limits, name) for name in names})


def _quantities(entry: JsonEntry) -> Counter[str]:
    return Counter({name: quantity(entry, name) for name in entry.names()})
