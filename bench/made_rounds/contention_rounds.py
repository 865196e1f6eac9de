"""
The spec ``contention``: jobs of several shapes that share memory bandwidth, network and nodes with jobs that slow them.

After SODA (Zhao et al., IEEE TC 2023), which measured what models use of a node of 28 cores, 70 GB/s of memory
bandwidth and 10 Gbit/s of network, and how they disturb each other. Throughput by number of GPUs is ElasticFlow's
(pkusys/ElasticFlow, commit 04a0109a6acd, Apache-2.0, ``ElasticFlow/scheduler/throughputs_A100``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from placeopt.generators.shared import (
    JOB_MEMORY_MIB_PER_GPU,
    PRIORITY_FACTORS,
    Columns,
    Size,
    assemble,
    two_socket_machine,
    worth,
)
from placeopt.model import Demand, Instance, Machine, Option, Policy, Slowdown
from placeopt.model.costs import Weights

NODES_PER_RACK = 16
NODE_CPU_MILLICORES_PER_GPU = 7_000
"""28 cores for 4 GPUs, 56 for 8: SODA's nodes have 28 or 56 (section IV-E)."""
NODE_MEMORY_MBPS_PER_GPU = 17_500
"""70 GB/s for 28 cores (section IV-E)."""
NODE_NETWORK_MBPS = 1_250
"""10 Gbit/s (section IV-C)."""
OVERSUBSCRIPTION = 4
"""Network bandwidth of a rack's nodes together over that of its uplink; ours."""


@dataclass(frozen=True)
class Model:
    """What a model that is trained uses, and how its throughput grows with its GPUs."""

    network_percent: float
    """Of the network of a node, when a job spans nodes (table II, default batch size)."""
    memory_mbps: int
    """Memory bandwidth of each GPU's worker; SODA publishes its order only (section IV-C). Ours."""
    cores: int
    """CPU cores for each GPU; ours, after SODA's first guess of the category (section V-B)."""
    steps_per_s: tuple[float, ...]
    """With 1, 2, 4, 8, 16 GPUs, at the largest batch that ElasticFlow lists."""
    serving_mbps: int | None = None
    """Memory bandwidth of inference on 16 cores (table IV); None where cores are too slow (table III)."""
    vision: bool = False


MODELS = {
    "resnet50": Model(63.4, 4500, 3, (1.843, 3.449, 6.191, 10.379, 15.153), 26_900, vision=True),
    "inception3": Model(23.2, 3000, 3, (2.562, 4.659, 7.804, 10.854, 12.797), 27_000, vision=True),
    "vgg16": Model(26.9, 3000, 2, (1.314, 2.523, 4.642, 7.996, 12.622), 40_300, vision=True),
    "transformer": Model(35.7, 800, 5, (3.575, 5.679, 8.451, 9.994, 10.768), 26_300),  # ElasticFlow's BERT
    "deepspeech": Model(36.1, 4000, 5, (1.600, 2.961, 5.253, 7.406, 9.401)),  # DeepSpeech 2
}
"""Those of SODA's eight models (table I) whose throughput ElasticFlow measured; each as likely."""

SERVED = tuple(name for name, model in MODELS.items() if model.serving_mbps is not None)

TRAINING_GPUS = {1: 0.7, 2: 0.12, 4: 0.1, 8: 0.06, 16: 0.02}
"""Shares of training jobs by GPUs; ours."""
SERVING_SHARE = 0.2
"""Part of the jobs that serve a model; ours."""
SERVING_CORES, SERVING_MEMORY_MIB = 16, 16_384
"""Of inference without a GPU: 16 cores (table III); memory ours."""
SERVING_GPU_MILLI, SERVING_GPU_CORES = 500, 1
"""Of inference on a GPU: a share of it, and cores; ours."""
SERVING_VALUE, CORES_VALUE = 1000, 250
"""Value of inference on a GPU, and on cores, which serve a quarter of the load; ours."""
GPU_COST, CORE_COST = 1000, 40
"""``cost_milli`` of an option for each GPU and each core; ours."""
BESIDE_RESNET, BESIDE_VISION = 75, 300
"""
Excess in thousandths of the solo time (section IV-C): 5 to 10 % where one of two jobs on a node is ResNet50, 30 % for
a Transformer beside a vision model.
"""
WEIGHTS = Weights(communication=400, interference=300, fragmentation=290, resource=10)
"""The default ones, but for ``resource``: with more of it the cost would be little else. Ours."""


def contention(size: Size) -> Instance:
    """
    Bandwidths, interference and options together, in racks with narrow uplinks: all costs but Horus's count.

    Nodes have two sockets, and 7 cores, 64 GiB and 17.5 GB/s of memory bandwidth for each GPU; 1.25 GB/s of network, in
    racks of 16 whose uplink carries a quarter of what their nodes do. 35 % of the GPUs are busy.

    Four of five jobs train one of five models on 1 to 16 GPUs, in one of up to three shapes: as few workers as nodes
    allow; workers half as large, each on a node of its own; or half of the GPUs, worth less by the model's throughput.
    One job of five serves a model, on half a GPU or on 16 cores, which use 26 to 40 GB/s of memory bandwidth. Training
    jobs slow each other down on the whole node.
    """
    sizes = [gpus for gpus in TRAINING_GPUS if gpus <= size.num_gpus]
    shares = [TRAINING_GPUS[gpus] for gpus in sizes]
    shares[-1] += 1 - sum(shares)  # a size above the whole cluster becomes the largest one that is not
    classes = range(len(PRIORITY_FACTORS))
    kinds = [
        *(_training(size, *kind) for kind in product(MODELS, sizes, classes)),
        *(_serving(*kind) for kind in product(SERVED, classes)),
    ]

    def draw_kinds(rng: np.random.Generator, num_jobs: int) -> tuple[list[_Kind], Columns]:
        common = worth(rng, np.zeros(num_jobs, dtype=np.int64))
        priority = np.array(common["priority"], dtype=np.int64)
        place = rng.choice(len(sizes), num_jobs, p=shares)
        training = (rng.integers(len(MODELS), size=num_jobs) * len(sizes) + place) * len(classes) + priority
        serving = rng.integers(len(SERVED), size=num_jobs) * len(classes) + priority - len(SERVED) * len(classes)
        drawn = np.where(rng.random(num_jobs) < SERVING_SHARE, serving, training)  # those that serve stand at the end
        mine = [kinds[kind] for kind in drawn.tolist()]
        return mine, {
            "profile": [kind.profile for kind in mine],
            "communication_weight": [kind.communication_weight for kind in mine],
            "priority": common["priority"],
            "user": common["user"],
        }

    def draw(rng: np.random.Generator, num_jobs: int) -> Columns:
        mine, columns = draw_kinds(rng, num_jobs)
        return {"options": [kind.options for kind in mine], **columns}

    def draw_running(rng: np.random.Generator, num_jobs: int) -> Columns:
        mine, columns = draw_kinds(rng, num_jobs)
        runs = [kind.runs for kind in mine]
        held = {name: [getattr(option.demand, name) for (option,) in runs] for name in HELD}
        return {"options": runs, "workers": [option.workers for (option,) in runs], **held, **columns}

    return assemble(
        "contention",
        size,
        _machine(size.gpus),
        draw,
        draw_running=draw_running,
        nodes_per_rack=NODES_PER_RACK,
        uplink_mbps=NODES_PER_RACK * NODE_NETWORK_MBPS // OVERSUBSCRIPTION,
        slowdowns=_slowdowns(),
        policy=Policy(name="contention", weights=WEIGHTS),
    )


HELD = ("gpus", "gpu_milli", "cpu_millicores", "memory_mib")
"""What placing a running job takes into account; nothing that the jobs of a node demand beside it can run out."""


@dataclass(frozen=True)
class _Kind:
    """Jobs that are alike but for user and arrival."""

    options: tuple[Option, ...]
    profile: str | None
    communication_weight: int

    @cached_property
    def runs(self) -> tuple[Option]:
        """The option in which a running job was started: the first."""
        return (self.options[0].model_copy(update={"id": "default"}),)


def _machine(gpus: int) -> Machine:
    machine = two_socket_machine("contention", gpus, cpu_millicores_per_gpu=NODE_CPU_MILLICORES_PER_GPU)
    bandwidths = {
        "memory_bandwidth_mbps": NODE_MEMORY_MBPS_PER_GPU * gpus,
        "network_bandwidth_mbps": NODE_NETWORK_MBPS,
    }
    return machine.model_copy(update=bandwidths)


def _training(size: Size, name: str, gpus: int, priority: int) -> _Kind:
    """Return the kind of jobs of ``gpus`` GPUs, a power of two; a shape that needs more nodes is left out."""
    model, largest = MODELS[name], 1 << (size.gpus.bit_length() - 1)
    whole = min(gpus, largest)
    full = 1000 * gpus * PRIORITY_FACTORS[priority]
    options = [_shape(model, gpus // whole, whole, full)]
    if whole > 1 and 2 * gpus // whole <= size.nodes:
        options.append(_shape(model, 2 * gpus // whole, whole // 2, full, per_node_max=1))
    if gpus > 1:
        half, steps = gpus // 2, model.steps_per_s
        value = round(full * steps[half.bit_length() - 1] / steps[gpus.bit_length() - 1])
        options.append(_shape(model, half // min(half, largest), min(half, largest), value))
    weight = round(model.network_percent / 10) if gpus > 1 else 0
    return _Kind(tuple(options), name, weight)


def _shape(model: Model, workers: int, gpus: int, value: int, *, per_node_max: int | None = None) -> Option:
    """Return the option of ``workers`` with ``gpus`` GPUs each."""
    return Option(
        id=f"{workers}x{gpus}",
        workers=workers,
        demand=Demand(
            gpus=gpus,
            cpu_millicores=1000 * model.cores * gpus,
            memory_mib=JOB_MEMORY_MIB_PER_GPU * gpus,
            memory_bandwidth_mbps=model.memory_mbps * gpus,
            network_bandwidth_mbps=round(NODE_NETWORK_MBPS * model.network_percent / 100) if workers > 1 else 0,
        ),
        value=value,
        cost_milli=workers * gpus * (GPU_COST + CORE_COST * model.cores),
        workers_per_node_max=per_node_max,
    )


def _serving(name: str, priority: int) -> _Kind:
    """Return the kind of jobs that serve a model; SODA found that they and training jobs do not slow each other."""
    factor = PRIORITY_FACTORS[priority]
    on_gpu = Option(
        id="gpu",
        demand=Demand(
            gpu_milli=SERVING_GPU_MILLI,
            cpu_millicores=1000 * SERVING_GPU_CORES,
            memory_mib=SERVING_MEMORY_MIB,
        ),
        value=SERVING_VALUE * factor,
        cost_milli=GPU_COST * SERVING_GPU_MILLI // 1000 + CORE_COST * SERVING_GPU_CORES,
    )
    on_cores = Option(
        id="cores",
        demand=Demand(
            gpus=0,
            cpu_millicores=1000 * SERVING_CORES,
            memory_mib=SERVING_MEMORY_MIB,
            memory_bandwidth_mbps=MODELS[name].serving_mbps or 0,
        ),
        value=CORES_VALUE * factor,
        cost_milli=CORE_COST * SERVING_CORES,
    )
    return _Kind((on_gpu, on_cores), None, 0)


def _slowdowns() -> tuple[Slowdown, ...]:
    """Return the pairs that disturb each other, wherever on a node: SODA had bound the two to different sockets."""
    levels = ("gpu_thousandths", "switch_thousandths", "socket_thousandths", "node_thousandths")
    pairs = []
    for profile, beside in product(MODELS, repeat=2):
        excess = BESIDE_RESNET if "resnet50" in (profile, beside) else 0
        if profile == "transformer" and MODELS[beside].vision:
            excess = BESIDE_VISION
        if excess:
            pairs.append(
                Slowdown.model_validate({"profile": profile, "beside": beside, **dict.fromkeys(levels, excess)})
            )
    return tuple(pairs)
