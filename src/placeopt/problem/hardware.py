"""Hardware compiled: capacities, GPU types, links, domains; and stand-ins for what jobs hold and the cluster lacks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from placeopt.model import Cluster, Gpu, Instance, Machine, Node, Policy
from placeopt.model.machine import NODE_AMOUNTS, Profile
from placeopt.problem.arrays import RESOURCES, UNLIMITED, BoolArray, Frozen, IntArray, held_amounts
from placeopt.problem.queues import flavors_of_nodes
from placeopt.topology.cluster_topology import ClusterTopology

LOST_MODEL = ""
"""Model of a GPU that is not listed, which is no name in a file; no job may start on one."""
FREE = frozenset[str]()
"""The holds on a GPU that none has."""


@dataclass(frozen=True, eq=False)
class FragmentationLevel(Frozen):
    """A partition of (some of) the GPUs into domains of one level, with its fragmentation weight."""

    name: str
    weight: int
    gpu_to_domain: IntArray  # (G,), -1 where the GPU lies in no such domain
    total: IntArray  # (domains,) GPUs in each

    @cached_property
    def domain_of_gpu(self) -> list[int]:
        """``gpu_to_domain`` as plain integers, for loops over placements."""
        domains: list[int] = self.gpu_to_domain.tolist()
        return domains


@dataclass(frozen=True, eq=False)
class Hardware(Frozen):
    """The part of a problem that only cluster and policy decide. N nodes, G GPUs, T GPU types, D domains."""

    topology: ClusterTopology
    node_ids: tuple[str, ...]
    named_resources: tuple[str, ...]  # (R - 4,) names that machine types, domains and the cluster state, in order
    node_capacity: IntArray  # (N, R) usable, beside what is held
    node_held: IntArray  # (N, R) what holds that count against all jobs keep
    node_flavor: IntArray  # (N,) row in policy.flavors, -1 without
    gpu_type: IntArray  # (G,)
    gpu_memory_mib: IntArray  # (G,)
    type_model: tuple[str, ...]  # (T,)
    type_memory_mib: IntArray  # (T,)
    type_lost: BoolArray  # (T,) GPUs that the cluster does not list; nothing starts there
    type_holds: tuple[frozenset[str], ...]  # (T,) holds on such a GPU, one of each kind
    type_geometry: tuple[tuple[Profile, ...], ...]  # (T,) geometry, empty where shares may have any size
    gpu_switch: IntArray  # (G,) global number of the closest switch, -1 without
    gpu_socket: IntArray  # (G,) likewise of the socket
    levels: tuple[FragmentationLevel, ...]
    link_mbps: IntArray  # (N + D, 2) what GPU jobs and CPU jobs may use of the uplinks of nodes, then of domains


def fragmentation_levels(
    instance: Instance, policy: Policy, topology: ClusterTopology, listed: BoolArray
) -> tuple[FragmentationLevel, ...]:
    """Return the levels whose fragmentation counts and that the cluster has; ``listed``, (G,): GPUs that count."""
    out: list[FragmentationLevel] = []
    for name, weight in sorted(policy.fragmentation.level_weights.items()):
        if not weight:
            continue
        if name == "node":
            domain = topology.gpu_node.copy()
        elif name in ("socket", "numa", "switch"):
            domain = gpu_parts(instance, topology, name)
        else:
            domain = node_domains(instance, name)[topology.gpu_node]
        domain[~listed] = -1
        if (domain >= 0).any():
            out.append(FragmentationLevel(name, weight, domain, np.bincount(domain[domain >= 0]).astype(np.int64)))
    return tuple(out)


def node_domains(instance: Instance, level: str) -> IntArray:
    """Shape (N,): the network domain of ``level`` above each node (``node``: the node itself), -1 without."""
    if level == "node":
        return np.arange(len(instance.cluster.nodes), dtype=np.int64)
    of_domain: dict[str | None, int] = {None: -1}
    for d, domain in enumerate(instance.cluster.domains):
        of_domain[domain.id] = d if domain.level == level else of_domain[domain.parent]
    return np.array([of_domain[node.domain] for node in instance.cluster.nodes], dtype=np.int64)


def gpu_parts(instance: Instance, topology: ClusterTopology, level: str) -> IntArray:
    """Shape (G,): global number of the closest part of ``level`` above each GPU, -1 without."""
    machines = instance.cluster.machines
    most = max((len(machine.gpus) for machine in machines), default=0)
    part_of = np.full((len(machines), most), -1, dtype=np.int64)  # inside a machine, by GPU index
    parts = np.zeros(len(machines), dtype=np.int64)
    for m, machine in enumerate(machines):
        record_of = {part.id: part for part in machine.parts}
        numbers = {part.id: i for i, part in enumerate(p for p in machine.parts if p.level == level)}
        for g, gpu in enumerate(machine.gpus):
            at = gpu.part
            while at is not None and record_of[at].level != level:
                at = record_of[at].parent
            part_of[m, g] = -1 if at is None else numbers[at]
        parts[m] = len(numbers)
    per_node = parts[topology.node_machine]
    first = (np.cumsum(per_node) - per_node)[topology.gpu_node]
    local = part_of[topology.node_machine[topology.gpu_node], topology.gpu_index]
    numbered: IntArray = np.where(local >= 0, local + first, -1)
    return numbered


def compile_hardware(instance: Instance, policy: Policy, before: ClusterTopology | None = None) -> Hardware:
    """
    Compile the cluster.

    ``before`` is the topology of an earlier state of the same cluster: distances inside machines are taken over where
    the machine types are the same.
    """
    cluster = instance.cluster
    topology = ClusterTopology(cluster, before)
    types: dict[tuple[str, int, tuple[Profile, ...]], int] = {}
    present = {node.machine for node in cluster.nodes}  # a machine that is only listed must not enter any worst case
    per_machine = [
        [
            types.setdefault((gpu.model, gpu.memory_mib, gpu.profiles), len(types))
            for gpu in machine.gpus * (machine.id in present)
        ]
        for machine in cluster.machines
    ]
    start = np.cumsum([0, *(len(numbers) for numbers in per_machine)])
    flat = np.array([number for numbers in per_machine for number in numbers], dtype=np.int64)
    gpu_type = flat[start[topology.node_machine[topology.gpu_node]] + topology.gpu_index]
    amounts = [machine.resources for machine in cluster.machines] + [domain.resources for domain in cluster.domains]
    named = tuple(sorted({name for resources in (*amounts, cluster.resources) for name in resources}))
    capacity = _machine_capacity(instance, policy, named)[topology.node_machine]
    model, memory, geometry = zip(*types, strict=True) if types else ((), (), ())
    type_memory = np.array(memory, dtype=np.int64)
    type_lost = np.array([name == LOST_MODEL for name in model], dtype=bool)
    parts = (policy.usable.network_gpu_jobs_percent, policy.usable.network_cpu_jobs_percent)
    stated = [machine.network_bandwidth_mbps for machine in cluster.machines] + [d.uplink_mbps for d in cluster.domains]
    links = np.array([[_part(mbps, percent) for percent in parts] for mbps in stated], dtype=np.int64).reshape(-1, 2)
    of_domains = np.arange(len(cluster.machines), len(stated))
    free = Hardware(
        topology=topology,
        node_ids=tuple(node.id for node in cluster.nodes),
        named_resources=named,
        node_capacity=capacity,
        node_held=np.zeros_like(capacity),
        node_flavor=np.array(flavors_of_nodes(instance, policy), dtype=np.int64),
        gpu_type=gpu_type,
        gpu_memory_mib=type_memory[gpu_type],
        type_model=model,
        type_memory_mib=type_memory,
        type_lost=type_lost,
        type_holds=(FREE,) * len(types),
        type_geometry=geometry,
        gpu_switch=gpu_parts(instance, topology, "switch"),
        gpu_socket=gpu_parts(instance, topology, "socket"),
        levels=fragmentation_levels(instance, policy, topology, ~type_lost[gpu_type]),
        link_mbps=links[np.append(topology.node_machine, of_domains)],
    )
    return with_holds(free, instance)


def with_holds(hardware: Hardware, instance: Instance) -> Hardware:
    """Return the hardware with the holds of ``instance`` instead of its own: other amounts, and other types of GPUs."""
    by_gpu, held = _held(instance, hardware.topology, hardware.named_resources)
    capacity = hardware.node_capacity + hardware.node_held
    of_types = hardware.type_model, hardware.type_memory_mib.tolist(), hardware.type_geometry, hardware.type_holds
    kinds = list(zip(*of_types, strict=True))
    types = {kind: t for t, kind in enumerate(kinds) if not kind[-1]}
    plain = np.array([types[(*kind[:-1], FREE)] for kind in kinds], dtype=np.int64)
    gpu_type = plain[hardware.gpu_type]
    for gpu, by in by_gpu.items():  # a GPU that is held is of a type of its own
        gpu_type[gpu] = types.setdefault((*kinds[gpu_type[gpu]][:-1], by), len(types))
    model, memory, geometry, holds = zip(*types, strict=True) if types else ((), (), (), ())
    return replace(
        hardware,
        node_capacity=np.maximum(capacity - held, 0),
        node_held=np.minimum(capacity, held),
        gpu_type=gpu_type,
        type_model=model,
        type_memory_mib=np.array(memory, dtype=np.int64),
        type_lost=np.array([name == LOST_MODEL for name in model], dtype=bool),
        type_holds=holds,
        type_geometry=geometry,
    )


def _held(
    instance: Instance, topology: ClusterTopology, named: tuple[str, ...]
) -> tuple[dict[int, frozenset[str]], IntArray]:
    """Return the GPUs that are held, by which kinds of holds; and what those against all keep of each node, (N, R)."""
    number = {node.id: n for n, node in enumerate(instance.cluster.nodes)} if instance.holds else {}
    start, gpus, kinds = topology.node_gpu_start.tolist(), dict[int, frozenset[str]](), instance.hold_kinds
    amounts = np.zeros((len(instance.cluster.nodes), len(RESOURCES) + len(named)), dtype=np.int64)
    for hold in instance.holds_now:
        n = number.get(hold.node, -1)
        for gpu in (start[n] + gpu for gpu in hold.gpus if n >= 0):
            if gpu < start[n + 1]:
                gpus[gpu] = gpus.get(gpu, FREE) | {kinds[hold.kind].id}
        if n >= 0 and hold.counts_against_all(instance.now_ms):
            amounts[n] += held_amounts(hold, named)
    return gpus, amounts


def _part(capacity: int | None, percent: int) -> int:
    """Return the most load with load * 100 <= percent * capacity."""
    return UNLIMITED if capacity is None else capacity * percent // 100


def _machine_capacity(instance: Instance, policy: Policy, named: tuple[str, ...]) -> IntArray:
    """Shape (M, R): what a node of each machine type offers."""
    usable = policy.usable
    of_nodes = {name for machine in instance.cluster.machines for name in machine.resources}
    rows = [
        (
            *(_part(getattr(machine, amount.field), usable.percent(amount)) for amount in NODE_AMOUNTS),
            *(machine.resources.get(name, 0) if name in of_nodes else UNLIMITED for name in named),
        )
        for machine in instance.cluster.machines
    ]
    return np.array(rows, dtype=np.int64).reshape(len(rows), len(RESOURCES) + len(named))


def find_lost(instance: Instance) -> Cluster | None:
    """
    Return the cluster with stand-ins for what running jobs hold and it does not list; None if it lists everything.

    A lost node is a drained one, a node that lost GPUs has a machine type of its own. A stand-in has GPUs up to the
    highest index that is held, and of a lost node no CPU or memory: its limits are broken by what runs there, which is
    exempt (``placeopt.check``), and nothing starts there. Its distance to other GPUs is the default.
    """
    machines = dict(instance.cluster.machine_types)
    nodes = {node.id: node for node in instance.cluster.nodes}
    made: dict[tuple[str | None, int], str] = {}  # machine, GPUs -> machine type of the stand-in
    for name, gpus in _sizes(instance).items():
        machine = machines[nodes[name].machine] if name in nodes else None
        key = (None if machine is None else machine.id, gpus)
        if key not in made:
            kind = f"lost-{key[0] or 'node'}-{gpus}"
            while kind in machines:
                kind += "-"
            made[key], machines[kind] = kind, _stand_in(kind, machine, gpus)
        stand_in = Node(id=name, machine=made[key], drained=True)
        nodes[name] = nodes[name].model_copy(update={"machine": made[key]}) if name in nodes else stand_in
    if not made:
        return None
    return instance.cluster.model_copy(update={"machines": tuple(machines.values()), "nodes": tuple(nodes.values())})


def with_lost(instance: Instance, lost: Cluster | None) -> Instance:
    """Return a round of a cluster with the stand-ins that `find_lost` found for it."""
    if lost is None:
        return instance
    cluster = instance.cluster.model_copy(update={"machines": lost.machines, "nodes": lost.nodes})
    return instance.model_copy(update={"cluster": cluster})


def _sizes(instance: Instance) -> dict[str, int]:
    """Return the number of GPUs that a stand-in has for each node of which jobs hold more than the cluster lists."""
    listed, sizes = instance.cluster.gpus_by_node, dict[str, int]()
    for running in instance.running:
        for assignment in running.assignments:
            held = max(map(int, assignment.gpus), default=-1) + 1
            if held > listed.get(assignment.node, -1):
                sizes[assignment.node] = max(sizes.get(assignment.node, 0), held)
    return sizes


def _stand_in(name: str, machine: Machine | None, gpus: int) -> Machine:
    """Return a machine with so many GPUs: lost ones after its own."""
    if machine is None:
        machine = Machine(id=name, cpu_millicores=0, memory_mib=0)
    lost = (Gpu.model_construct(model=LOST_MODEL),) * (gpus - len(machine.gpus))
    update: dict[str, object] = {"id": name, "gpus": (*machine.gpus, *lost)}
    if machine.gpu_distance_matrix is not None:  # a lost GPU is as far from every other as any two are
        far, known = max(map(max, machine.gpu_distance_matrix), default=0), len(machine.gpus)
        rows = [(*row, *[far] * len(lost)) for row in machine.gpu_distance_matrix]
        rows += [tuple(far * (i != j) for j in range(gpus)) for i in range(known, gpus)]
        update["gpu_distance_matrix"] = tuple(rows)
    return machine.model_copy(update=update)
