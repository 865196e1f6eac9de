"""Slurm's nodes: capacity, partitions, features, reservations, and the switches above them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from placeopt.errors import BadInput, Unsupported
from placeopt.formats.faults import make_record
from placeopt.formats.import_notes import ImportNotes
from placeopt.formats.json_entry import JsonEntry
from placeopt.formats.observed_round import ObservedJob
from placeopt.formats.slurm.gres import parse_gres
from placeopt.formats.slurm.node_list import make_inventory, node_entries
from placeopt.formats.slurm.node_states import node_flags, why_drained
from placeopt.formats.slurm.topology import is_slurm_topology, read_slurm_topology
from placeopt.formats.source_file import read_source
from placeopt.formats.topo.fabric import Inventory
from placeopt.model import Cluster, Node

COMMANDS = "'scontrol show nodes --json', of Slurm before 23.02 'sinfo --json', or slurmrestd's reply of .../nodes"
RESERVED = "reservation"
"""Taint of a node that is kept for a reservation."""


@dataclass(frozen=True)
class SlurmNode:
    """What jobs go by, beside the node itself."""

    partitions: frozenset[str]
    features: frozenset[str]
    reservation: str
    cpus: int
    models: tuple[str, ...]
    """Of its GPUs, by index."""
    threads: int
    used_cpus: int
    used_gpus: int


def read_nodes(
    path: str | Path, topology: str | Path | None, notes: ImportNotes
) -> tuple[Cluster, Mapping[str, SlurmNode]]:
    """
    Read the list of nodes, and the switches above them; nodes that take no new work are entered in ``notes``.

    Raises
    ------
    BadInput, Unsupported
        As `read_slurm`.
    """
    source = read_source(path)
    unreadable: set[str] = set()
    try:
        entries = node_entries(source)
    except Unsupported:
        raise Unsupported(
            f"{source.name}: no list 'nodes', but another of Slurm's; give the output of {COMMANDS}"
        ) from None
    except BadInput:
        if '"sinfo"' in source.text[:100_000]:
            raise Unsupported(
                f"{source.name}: the list 'sinfo' of Slurm 23.02 and later, which groups nodes; "
                "give the output of 'scontrol show nodes --json'"
            ) from None
        raise
    inventory = make_inventory(source.name, entries, unreadable)
    machines = {machine.id: machine for machine in inventory.machines}
    found: dict[str, SlurmNode] = {}
    nodes: list[Node] = []
    for node, entry in zip(inventory.nodes, entries, strict=True):
        features = [word for text in entry.words("active_features") for word in text.split(",") if word]
        states = [*entry.words("state"), *entry.words("state_flags")]
        for reason in why_drained(states):
            notes.drain(reason, node.id)
        if node.id in unreadable:
            notes.drain("its hardware cannot be read", node.id)
        machine = machines[node.machine]
        found[node.id] = SlurmNode(
            partitions=frozenset(entry.words("partitions")),
            features=frozenset(features),
            reservation=entry.text("reservation", ""),
            cpus=machine.cpu_millicores // 1000,
            models=tuple(gpu.model for gpu in machine.gpus),
            threads=entry.integer("threads", 0, 2**31, 1),
            used_cpus=entry.integer("alloc_cpus", 0, 2**31, 0),
            used_gpus=_used_gpus(entry, node.id, notes),
        )
        labels = {**node.labels, **{f"feature:{word}": "yes" for word in features}}
        taints = (RESERVED,) if {"RESERVED", "RESV"} & set(node_flags(states)) else ()
        nodes.append(make_record(Node, entry.where, **{**node.model_dump(), "labels": labels, "taints": taints}))
    if any(node.threads > 1 for node in found.values()):
        notes.assume(
            "Nodes have several threads a core: waiting jobs count CPUs one by one, though Slurm may give whole cores."
        )
    inventory = Inventory(inventory.machines, tuple(nodes), inventory.source)
    if topology is None:
        return inventory.cluster(), found
    network = read_source(topology)
    if not is_slurm_topology(network):
        raise Unsupported(
            f"{network.name}: no SwitchName= or BlockName=; expected Slurm's topology.conf or 'scontrol show topology'"
        )
    return inventory.cluster(read_slurm_topology(network)), found


def _used_gpus(entry: JsonEntry, node: str, notes: ImportNotes) -> int:
    try:
        return sum(gres.count for gres in parse_gres(entry.text("gres_used", "")) if gres.name == "gpu")
    except ValueError:
        notes.drain("what is used there cannot be read", node)
        return 0


def drain_unaccounted(nodes: Mapping[str, SlurmNode], seen: Sequence[ObservedJob], notes: ImportNotes) -> None:
    """Drain nodes of which more CPUs or GPUs are in use than the listed jobs hold: another user's job may be hidden."""
    millicores: Counter[str] = Counter()
    gpus: Counter[str] = Counter()
    for one in seen:
        demand = one.job.options[0].demand
        for worker in one.workers:
            millicores[worker.node] += demand.cpu_millicores
            gpus[worker.node] += demand.gpus
    unread = {worker.node for one in seen if one.unreadable_reason is not None for worker in one.workers}
    for name, node in nodes.items():
        if name not in unread and (1000 * node.used_cpus > millicores[name] or node.used_gpus > gpus[name]):
            notes.drain("more is in use there than the listed jobs hold", name)
