"""
Dynamic resource allocation, and volumes that are made for a pod: what claims take, as Kubernetes' scheduler counts it.

Each case says by hand what the scheduler would do with the waiting pod ``p``.
"""

from typing import Any

import pytest

from helpers.imported_rounds import drained, held, left_out, notes_of, waiting
from helpers.kubernetes_objects import HOSTNAME, node, pod, read
from placeopt import BadInput, solve
from placeopt.model import Instance

CPU: dict[str, Any] = {"asks": {"cpu": "1"}}
GPU_CLASS = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"
MIG_CLASS = 'device.attributes["gpu.nvidia.com"].type == "mig"'
DRIVER = "gpu.nvidia.com"


def bare(name: str = "n", **has: str) -> dict[str, Any]:
    """Return a node without a device plugin."""
    made = node(name, has=has, labels={HOSTNAME: name})
    del made["status"]["allocatable"]["nvidia.com/gpu"]
    return made


def device(name: str, kind: str = "gpu", *, takes: dict[str, int] | None = None, **more: Any) -> dict[str, Any]:
    consumes = [{"counterSet": "gpu-0", "counters": {key: {"value": str(n)} for key, n in (takes or {}).items()}}]
    part = {"consumesCounters": consumes} if takes else {}
    return {"name": name, "attributes": {"type": {"string": kind}}, **part, **more}


def slice_(*devices: dict[str, Any], host: str = "n", driver: str = DRIVER, **more: Any) -> dict[str, Any]:
    pool = {"name": host, "generation": 1, "resourceSliceCount": 1, **more.pop("pool", {})}
    spec = {"nodeName": host, "driver": driver, "pool": pool, "devices": list(devices), **more}
    return {"kind": "ResourceSlice", "metadata": {"name": f"{host}-{driver}"}, "spec": spec}


def gpus(count: int, **more: Any) -> dict[str, Any]:
    return slice_(*(device(f"gpu-{i}") for i in range(count)), **more)


def class_(name: str = DRIVER, expression: str = GPU_CLASS, resource: str | None = "nvidia.com/gpu") -> dict[str, Any]:
    named = {} if resource is None else {"extendedResourceName": resource}
    return {
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": expression}}], **named},
    }


def asks(*requests: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the specification of a claim."""
    return {"devices": {"requests": [{"name": f"r{i}", "exactly": one} for i, one in enumerate(requests)], **more}}


def of(name: str = DRIVER, **more: Any) -> dict[str, Any]:
    return {"deviceClassName": name, **more}


def template(spec: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "ResourceClaimTemplate", "metadata": {"name": "t", "namespace": "default"}, "spec": {"spec": spec}}


def claim(spec: dict[str, Any] | None = None, *devices: str, driver: str = DRIVER, **more: Any) -> dict[str, Any]:
    """Return a claim ``c`` that has some devices of the node ``n``."""
    results = [{"request": "r0", "driver": driver, "pool": "n", "device": name} for name in devices]
    status = {"allocation": {"devices": {"results": results}, **more}} if devices else {}
    return {
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "default"},
        "spec": spec or {},
        "status": status,
    }


def by_template(name: str = "p", **more: Any) -> dict[str, Any]:
    return pod(name, **CPU, resourceClaims=[{"name": "d", "resourceClaimTemplateName": "t"}], **more)


def by_claim(name: str = "p", host: str | None = None, **more: Any) -> dict[str, Any]:
    return pod(name, host, **{**CPU, **more}, resourceClaims=[{"name": "d", "resourceClaimName": "c"}])


def demand(found: Instance, name: str = "p") -> tuple[int, dict[str, int]]:
    (job,) = [job for job in found.jobs if job.id == f"default/{name}"]
    return job.options[0].demand.gpus, dict(job.options[0].demand.resources)


def size(found: Instance) -> int:
    return len(found.cluster.machines[0].gpus)


NIC = slice_({"name": "nic-0"}, {"name": "nic-1"}, driver="rdma.example.com")
NIC_CLASS = class_("rdma", 'device.driver == "rdma.example.com"', None)
NIC_NAME = "deviceclass.resource.kubernetes.io/rdma"
COUNTERS = [{"name": "gpu-0", "counters": {"memory": {"value": "8"}}}]
HALVES = slice_(
    device("gpu-0", takes={"memory": 8}),
    *(device(f"mig-{i}", "mig", takes={"memory": 4}) for i in range(2)),
    sharedCounters=COUNTERS,
)
"""Two halves can be given out together, but not beside the whole."""
PARTED = slice_(
    device("gpu-0", takes={"memory": 8}),
    *(device(f"mig-{i}", "mig", takes={"memory": 4}) for i in range(3)),
    sharedCounters=COUNTERS,
)


@pytest.mark.parametrize(
    ("expected", "objects"),
    [  # GPUs of the node, and what the pod p takes: GPUs and named amounts
        # an extended resource that a driver serves: by the name of its class, or the one that every class has
        ((8, (4, {})), [gpus(8), class_(), pod("p", asks={"nvidia.com/gpu": "4"})]),
        ((8, (2, {})), [gpus(8), class_(), pod("p", asks={f"deviceclass.resource.kubernetes.io/{DRIVER}": "2"})]),
        # by a template, by a claim, and in the form of v1beta1
        ((8, (2, {})), [gpus(8), class_(), template(asks(of(count=2))), by_template()]),
        ((8, (1, {})), [gpus(8), class_(), claim(asks(of())), by_claim()]),
        (
            (8, (3, {})),
            [gpus(8), class_(), template({"devices": {"requests": [{"name": "g", **of(count=3)}]}}), by_template()],
        ),
        (
            (2, (1, {})),
            [
                slice_({"name": "a", "basic": {}}, {"name": "b", "basic": {}}),
                class_(expression=f"device.driver == '{DRIVER}'"),
                template(asks(of())),
                by_template(),
            ],
        ),
        # a selector of the request that all devices of the class meet changes nothing
        (
            (8, (1, {})),
            [gpus(8), class_(), template(asks(of(selectors=[{"cel": {"expression": GPU_CLASS}}]))), by_template()],
        ),
        # other devices are named amounts
        ((8, (1, {NIC_NAME: 1})), [gpus(8), class_(), NIC, NIC_CLASS, template(asks(of(), of("rdma"))), by_template()]),
        # access of an administrator takes nothing
        ((8, (0, {})), [gpus(8), class_(), template(asks(of(adminAccess=True))), by_template()]),
        # what is given to others, or tainted, is not there; nor an older generation, nor a pool with slices missing
        ((7, (1, {})), [gpus(8), class_(), claim(asks(of()), "gpu-3"), template(asks(of())), by_template()]),
        (
            (1, (1, {})),
            [
                slice_(device("a"), device("b", taints=[{"key": "x", "effect": "NoExecute"}])),
                class_(),
                template(asks(of())),
                by_template(),
            ],
        ),
        ((8, (1, {})), [gpus(2, pool={"generation": 0}), gpus(8), class_(), template(asks(of())), by_template()]),
        # a whole GPU of which a part is given away
        ((0, (1, {})), [PARTED, class_(), claim(asks(of("mig")), "mig-1"), template(asks(of())), by_template()]),
        ((1, (1, {})), [PARTED, class_(), class_("mig", MIG_CLASS, None), template(asks(of())), by_template()]),
    ],
)
def test_devices_are_amounts(expected: tuple[int, tuple[int, dict[str, int]]], objects: list[dict[str, Any]]) -> None:
    found = read(bare(), *objects)
    assert (size(found), demand(found)) == expected
    assert left_out(found) == []


@pytest.mark.parametrize(
    "objects",
    [
        [HALVES, class_(), class_("mig", MIG_CLASS, None), template(asks(of("mig"))), by_template()],
        [gpus(8), class_(), template(asks(of("of-nobody"))), by_template()],
        [gpus(8), class_(), template(asks(of(allocationMode="All"))), by_template()],
        [
            gpus(8),
            class_(),
            template({"devices": {"requests": [{"name": "r", "firstAvailable": [of()]}]}}),
            by_template(),
        ],
        [gpus(8), class_(), template(asks(of(count=2), constraints=[{"matchAttribute": "a/b"}])), by_template()],
        [
            gpus(8),
            class_(),
            template(asks(of(selectors=[{"cel": {"expression": "device.index > 2 ? true : false"}}]))),
            by_template(),
        ],
        [gpus(8), class_(expression="device.name.matches('a')"), template(asks(of())), by_template()],
        [PARTED, class_(), class_("mig", MIG_CLASS, None), template(asks(of("mig"))), by_template()],
        [slice_(device("a", allowMultipleAllocations=True)), class_(), template(asks(of())), by_template()],
        [slice_(device("a"), nodeName=None, allNodes=True), class_(), template(asks(of())), by_template()],
        [gpus(8), class_(), claim(asks(of())), by_claim(), by_claim("other")],
        [gpus(8), class_(), by_template()],
        [pod("p", asks={"nvidia.com/gpu": "1"})],  # no node states GPUs, and no driver's slices are listed
        [gpus(8, pool={"resourceSliceCount": 2}), class_(), pod("p", asks={"nvidia.com/gpu": "1"})],
        [gpus(8, pool={"generation": "new"}), class_(), pod("p", asks={"nvidia.com/gpu": "1"})],
    ],
)
def test_what_is_not_read_is_left_out_in_words(objects: list[dict[str, Any]]) -> None:
    found = read(bare(), *objects, pod("q", **CPU))
    assert "default/p" not in waiting(found)
    assert any("default/p" in line for line in left_out(found))
    assert "default/q" in waiting(found)


FACT = "device.attributes['gpu.nvidia.com']."
MEMORY = "device.capacity['gpu.nvidia.com'].memory"
BIG = {
    "attributes": {"type": {"string": "gpu"}, "index": {"int": 3}, "product": {"string": "A100-80GB"}},
    "capacity": {"memory": {"value": "80Gi"}},
}


@pytest.mark.parametrize(
    ("met", "expression"),
    [  # by hand, as CEL has it; None: not read
        (True, f"{FACT}index > 2 && {FACT}index <= 3"),
        (True, f"{FACT}index in [1, 3]"),
        (False, f"{FACT}index == '3'"),
        (True, f"!({FACT}type == 'mig') && !{FACT}product.startsWith('H100')"),
        (False, f"!{FACT}product.lowerAscii().contains('a100')"),
        (True, f"{FACT}type == 'mig' ||\n  {MEMORY}.compareTo(quantity('40Gi')) >= 0"),
        (False, f"{MEMORY}.isGreaterThan(quantity('80Gi'))"),
        (False, f"{FACT}absent == 'x'"),
        (False, f"{FACT}absent == 'x' && true"),
        (None, f"{FACT}absent == 'x' || true"),  # CEL: true
        (False, f"device.driver == 'other' && {FACT}product.matches('A.*')"),
        (None, f"{FACT}product.matches('A.*')"),
        (None, "has(device.driver) ? true : false"),
        (None, "true # and no more"),
        (None, "'driver'"),
        (None, "(" * 900),
        (None, "!" * 9000 + "true"),  # deeper than Python parses, whatever the limit of recursion
    ],
)
def test_selectors_of_devices(met: bool | None, expression: str) -> None:
    """A class whose selector a device meets counts it; one that is not read counts nothing, which is said."""
    objects = [slice_({"name": "a", **BIG}), class_(expression=expression), template(asks(of())), by_template()]
    found = read(bare(), *objects, node("m"))
    assert (found.cluster.gpus_by_node["n"], "default/p" in waiting(found)) == (int(met or False), met is not None)


def test_what_runs_holds_its_devices() -> None:
    """Once, where several pods share a claim; and once, where a claim stands for an extended resource."""
    own = claim(asks(of(count=2)), "gpu-0", "gpu-1")
    found = read(bare(), gpus(8), class_(), own, by_claim("r", "n"), by_claim("s", "n"))
    assert (size(found), demand(found, "r"), demand(found, "s")) == (8, (2, {}), (0, {}))
    status = {
        "extendedResourceClaimStatus": {
            "resourceClaimName": "c",
            "requestMappings": [{"containerName": "main", "resourceName": "nvidia.com/gpu", "requestName": "r0"}],
        }
    }
    runs = pod("r", "n", asks={"nvidia.com/gpu": "2"}, status=status)
    found = read(bare(), gpus(8), class_(), own, runs, pod("p", asks={"nvidia.com/gpu": "6"}))
    assert (size(found), demand(found, "r"), drained(found)) == (8, (2, {}), [])
    assert len(solve(found).placements) == 2


def test_a_part_of_a_gpu_that_runs_takes_the_whole_gpu() -> None:
    """Which device it has is known, so that its node stays open."""
    found = read(bare(), PARTED, class_(), claim(asks(of("mig")), "mig-0"), by_claim("r", "n"), pod("q", **CPU))
    assert (size(found), demand(found, "r"), drained(found)) == (0, (0, {}), [])


def test_a_claim_that_has_its_devices_binds_its_pod() -> None:
    """The allocation says on which nodes they can be used."""
    there = {"nodeSelectorTerms": [{"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": ["n"]}]}]}
    card = claim(asks(of("rdma")), "nic-0", driver="rdma.example.com", nodeSelector=there)
    found = read(bare("m"), bare(), card, by_claim())
    assert [part.node for part in solve(found).placements[0].assignments] == ["n"]


@pytest.mark.parametrize("driver", ["dra.net", "compute-domain.nvidia.com", "sriovnetwork.k8snetworkplumbingwg.io"])
def test_devices_that_are_no_gpus_do_not_stop_a_pod(driver: str) -> None:
    """Asked for, or had already; the note says that they are not counted."""
    for objects in (
        [template(asks(of(driver))), by_template()],
        [claim(asks(of(driver)), "x", driver=driver), by_claim()],
    ):
        found = read(node(), *objects)
        assert waiting(found) == {"default/p"}
        assert f"Devices other than GPUs that claims name are not counted: {driver}." in notes_of(found)
    runs = read(node(), claim(asks(of(driver)), "x", driver=driver), by_claim("p", "n", asks={"nvidia.com/gpu": "1"}))
    assert (drained(runs), held(runs)) == ([], {"default/p": {"n": [0]}})


def ephemeral(name: str, **spec: Any) -> dict[str, Any]:
    source = {"volumeClaimTemplate": {"spec": spec}}
    return pod(name, **CPU, volumes=[{"name": "v", "ephemeral": source}])


def storage(mode: str = "WaitForFirstConsumer", **more: Any) -> dict[str, Any]:
    return {"kind": "StorageClass", "metadata": {"name": "fast"}, "provisioner": "x", "volumeBindingMode": mode, **more}


FAST = {"storageClassName": "fast"}
ON_N = [{"matchLabelExpressions": [{"key": HOSTNAME, "values": ["n"]}]}]


@pytest.mark.parametrize(
    ("expected", "objects"),
    [
        (None, [ephemeral("p", **FAST), storage()]),
        (None, [ephemeral("p", **FAST)]),
        ("n", [ephemeral("p", **FAST), storage(allowedTopologies=ON_N)]),
        ("not bound", [ephemeral("p", **FAST), storage("Immediate")]),
        ("not bound", [ephemeral("p")]),
        ("volumes that some nodes have", [ephemeral("p", **FAST), storage(provisioner="kubernetes.io/no-provisioner")]),
    ],
)
def test_a_volume_that_is_made_on_the_node_of_its_pod(expected: str | None, objects: list[dict[str, Any]]) -> None:
    """It stops nothing; where it cannot be made, or is to be there before, the pod is left out or its nodes are few."""
    found = read(bare("m"), bare(), *objects)
    if expected in (None, "n"):
        (placed,) = solve(found).placements
        assert expected in (None, placed.assignments[0].node)
        assert "volumes" in notes_of(found)
        assert left_out(found) == []
    else:
        assert expected in "".join(left_out(found))


def test_a_class_without_a_resource_of_its_own_is_named_by_the_class() -> None:
    """By default it would be a cluster without GPUs, which is refused with the name that counts them."""
    unnamed = class_(resource=None)
    objects = [bare(), gpus(8), unnamed, template(asks(of(count=2))), by_template()]
    with pytest.raises(BadInput, match=f"there are: deviceclass.resource.kubernetes.io/{DRIVER}"):
        read(*objects)
    found = read(*objects, resource=f"deviceclass.resource.kubernetes.io/{DRIVER}")
    assert (size(found), demand(found)) == (8, (2, {}))
