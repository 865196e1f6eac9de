"""GPUs that claims part on demand: counters are slots, and rounds place what Kubernetes' allocator could."""

from itertools import product
from typing import Any

import pytest

from helpers.imported_rounds import left_out
from helpers.kubernetes_objects import HOSTNAME, node, pod, read
from helpers.night import seeds
from placeopt import solve
from placeopt.check import violations
from placeopt.model import Instance
from placeopt.topology import mig_profiles
from strategies.choice import Choice, seeded

DRIVER = "gpu.nvidia.com"
KIND = "device.attributes['gpu.nvidia.com'].type == '{}'"
OTHER = {"1g.10gb": (14, 1, 0), "1g.20gb": (14, 1, 1), "2g.20gb": (28, 2, 1), "3g.40gb": (42, 3, 2)}
OTHER |= {"4g.40gb": (56, 4, 2), "7g.80gb": (98, 7, 5), "1g.10gb+me": (14, 1, 1)}
"""Multiprocessors, copy engines and decoders of each profile of an A100."""
GEOMETRY = {one.id: one for one in mig_profiles("A100-80GB")}
ME = "1g.10gb+me"
UNREAD = ["asking for a part of a GPU, or devices that are not read: a ResourceClaim: 1 (default/p)."]


def bare(name: str = "n") -> dict[str, Any]:
    made = node(name, labels={HOSTNAME: name})
    del made["status"]["allocatable"]["nvidia.com/gpu"]
    return made


def counters(number: int, slots: range, amounts: tuple[int, int, int], media: int) -> dict[str, Any]:
    of = {f"memory-slice-{slot}": 1 for slot in slots}
    of |= dict(zip(("multiprocessors", "copy-engines", "decoders"), amounts, strict=True))
    of |= {"jpeg-engines": media, "ofa-engines": media}
    return {"counterSet": f"gpu-{number}", "counters": {key: {"value": str(n)} for key, n in of.items() if n}}


def devices(number: int) -> list[dict[str, Any]]:
    """Return a GPU as a whole and in all of its parts."""
    found = [(f"gpu-{number}", "gpu", "whole", counters(number, range(8), OTHER["7g.80gb"], 1))]
    for profile in (*GEOMETRY, ME):
        of = GEOMETRY["1g.10gb" if profile == ME else str(profile)]
        for start in of.starts:
            part = counters(number, range(start, start + of.width), OTHER[str(profile)], int(profile == ME))
            found.append((f"gpu-{number}-{profile}-{start}".replace("+", "-"), "mig", str(profile), part))
    return [
        {
            "name": name,
            "attributes": {"type": {"string": kind}, "profile": {"string": profile}},
            "consumesCounters": [part],
        }
        for name, kind, profile, part in found
    ]


def slices(gpus: int, host: str = "n") -> list[dict[str, Any]]:
    """Return the slices of a node; counters have a slice of their own, as from Kubernetes 1.35 on."""
    sets = [
        {"name": one["counterSet"], "counters": one["counters"]}
        for one in (counters(i, range(8), OTHER["7g.80gb"], 1) for i in range(gpus))
    ]
    pool = {"name": host, "generation": 1, "resourceSliceCount": 2}
    listed = [one for i in range(gpus) for one in devices(i)]
    return [
        {
            "kind": "ResourceSlice",
            "metadata": {"name": f"{host}-{i}"},
            "spec": {"nodeName": host, "driver": DRIVER, "pool": pool, **of},
        }
        for i, of in enumerate(({"sharedCounters": sets}, {"devices": listed}))
    ]


CLASSES = [
    {
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": KIND.format(kind)}}]},
    }
    for name, kind in ((DRIVER, "gpu"), ("mig", "mig"))
]
CLASSES[0]["spec"]["extendedResourceName"] = "nvidia.com/gpu"


def wants(profile: str | None) -> dict[str, Any]:
    """Return the specification of a claim for a part of a GPU, or a whole one."""
    request: dict[str, Any] = {"deviceClassName": "mig" if profile else DRIVER}
    if profile:
        request["selectors"] = [{"cel": {"expression": f"device.attributes['{DRIVER}'].profile == '{profile}'"}}]
    return {"devices": {"requests": [{"name": "r", "exactly": request}]}}


def claimed(name: str, profile: str | None, device: str | None = None) -> list[dict[str, Any]]:
    """Return a pod and its claim; with a device it runs."""
    result = [{"request": "r", "driver": DRIVER, "pool": "n", "device": device}]
    status = {"allocation": {"devices": {"results": result}}} if device else {}
    claim = {"kind": "ResourceClaim", "metadata": {"name": f"c-{name}", "namespace": "default"}, "spec": wants(profile)}
    asked = [{"name": "d", "resourceClaimName": f"c-{name}"}]
    return [{**claim, "status": status}, pod(name, "n" if device else None, asks={"cpu": "1"}, resourceClaims=asked)]


def round_of(gpus: int, *pods: list[dict[str, Any]]) -> Instance:
    return read(bare(), *slices(gpus), *CLASSES, *[one for some in pods for one in some])


def test_a_gpu_is_read_as_its_profiles() -> None:
    """Those that claims ask for, and the whole; where nobody asks for parts, a GPU is a GPU."""
    plain = round_of(2, claimed("p", None))
    assert [one.profiles for one in plain.cluster.machines[0].gpus] == [(), ()]
    found = round_of(1, claimed("p", "3g.40gb"), claimed("w", None), claimed("r", "1g.10gb", "gpu-0-1g.10gb-1"))
    profiles = {one.id: (one.width, one.starts) for one in found.cluster.machines[0].gpus[0].profiles}
    assert profiles == {None: (8, (0,)), "3g.40gb": (4, (0, 4)), "1g.10gb": (1, tuple(range(7)))}
    assert left_out(found) == []
    demand = {one.id: one.options[0].demand for one in found.jobs}
    assert (demand["default/p"].gpu_profile, demand["default/p"].gpu_milli) == ("3g.40gb", 500)
    assert (demand["default/w"].gpus, demand["default/w"].gpu_profile) == (1, None)
    ((held,),) = [one.assignments for one in found.running]
    assert (held.gpus, held.starts) == ({"0": 125}, {"0": 1})
    plan = solve(found, isolation="thread")
    assert {one.job for one in plan.placements} == {"default/p", "default/r"}
    assert plan.status == "optimal"


def test_what_slots_do_not_tell_is_left_out() -> None:
    """One part with media engines a GPU: two have slots of their own, and one of them no engines."""
    found = round_of(1, claimed("p", ME), claimed("q", "1g.10gb"))
    assert left_out(found) == UNREAD
    any_part = claimed("p", "1g.10gb")
    del any_part[0]["spec"]["devices"]["requests"][0]["exactly"]["selectors"]
    assert left_out(round_of(1, any_part)) == UNREAD


def test_a_gpu_of_which_a_part_is_tainted_is_not_parted() -> None:
    """The other GPU is, and takes both shares."""
    listed = slices(2)
    for one in listed[1]["spec"]["devices"]:
        if "gpu-0" in one["name"]:
            one["taints"] = [{"key": "unhealthy", "effect": "NoSchedule"}]
    asked = [*claimed("p", "3g.40gb"), *claimed("q", "3g.40gb"), *claimed("w", "3g.40gb")]
    found = read(bare(), *listed, *CLASSES, *asked)
    assert [[one.id for one in gpu.profiles] for gpu in found.cluster.machines[0].gpus] == [[None, "3g.40gb"]]
    assert len(solve(found, isolation="thread").placements) == 2


def allocatable(gpus: int, taken: list[dict[str, Any]], wanted: list[str | None]) -> bool:
    """Return whether devices for all claims can be given out together, by counters, trying all."""
    listed = [one for i in range(gpus) for one in devices(i)]
    limits = {
        (f"gpu-{i}", key): int(value["value"])
        for i in range(gpus)
        for key, value in counters(i, range(8), OTHER["7g.80gb"], 1)["counters"].items()
    }
    choices = [[one for one in listed if one["attributes"]["profile"]["string"] == (w or "whole")] for w in wanted]

    def fits(left: dict[tuple[str, str], int], rest: list[list[dict[str, Any]]]) -> bool:
        if not rest:
            return True
        return any(after is not None and fits(after, rest[1:]) for after in (less(left, one) for one in rest[0]))

    def less(left: dict[tuple[str, str], int], one: dict[str, Any]) -> dict[tuple[str, str], int] | None:
        (part,) = one["consumesCounters"]
        now = {
            **left,
            **{
                (part["counterSet"], key): left[part["counterSet"], key] - int(value["value"])
                for key, value in part["counters"].items()
            },
        }
        return None if min(now.values()) < 0 else now

    for one in taken:
        limits = less(limits, one) or {}
    return fits(limits, sorted(choices, key=len))


@pytest.mark.parametrize("seed", seeds(25))
def test_rounds_place_what_kubernetes_could_allocate(seed: int) -> None:
    """The most claims of which all can have devices, by brute force over the counters."""
    choice: Choice = seeded(f"partitions-{seed}")
    gpus, kinds = choice.number(1, 2), [*GEOMETRY, None]
    listed, taken = [one for i in range(gpus) for one in devices(i)], list[dict[str, Any]]()
    running = []
    for i in range(choice.number(0, 2)):
        one = choice.pick(listed)
        profile = one["attributes"]["profile"]["string"]
        if profile != ME and allocatable_beside(gpus, taken, one):
            taken.append(one)
            running.append(claimed(f"r{i}", None if profile == "whole" else profile, one["name"]))
    wanted = [choice.pick(kinds) for _ in range(choice.number(1, 4))]
    found = round_of(gpus, *running, *(claimed(f"p{i}", one) for i, one in enumerate(wanted)))
    assert left_out(found) == []
    alike = found.model_copy(
        update={"jobs": tuple(one.model_copy(update={"options": (one.options[0].valued(1),)}) for one in found.jobs)}
    )
    plan = solve(alike, isolation="thread")
    assert violations(alike, plan) == []
    best = max(
        sum(chosen)
        for chosen in product((0, 1), repeat=len(wanted))
        if allocatable(gpus, taken, [one for one, is_in in zip(wanted, chosen, strict=True) if is_in])
    )
    assert len(plan.placements) - len(running) == best


def allocatable_beside(gpus: int, taken: list[dict[str, Any]], one: dict[str, Any]) -> bool:
    return not set(slots_of(one)) & {slot for other in taken for slot in slots_of(other)}


def slots_of(one: dict[str, Any]) -> list[tuple[str, str]]:
    (part,) = one["consumesCounters"]
    return [(part["counterSet"], key) for key in part["counters"] if key.startswith("memory-slice")]
