"""Slurm's nodes: hardware, partitions, features, reservations, and the switches above them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from placeopt.documents.faults import make_record
from placeopt.documents.files import parse_json
from placeopt.errors import BadInput, Unsupported
from placeopt.importers.import_notes import ImportNotes
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.observed_round import ObservedJob
from placeopt.importers.slurm.fields import SHARES_OF_GPUS, named_gres, parse_gres
from placeopt.importers.slurm.lists import UNSET_TEXTS, entries_of, fields_read, first_set, is_set, known, read_list
from placeopt.importers.slurm.topology import TOPOLOGY_LINE, read_slurm_topology
from placeopt.importers.source_file import SourceFile, read_source
from placeopt.model import Cluster, Gpu, Machine, Node, Part, Taint
from placeopt.model.base import MAX_AMOUNT, MAX_GPUS, MAX_NODES, Amounts

MAX_SOCKETS = 64
MAX_CPUS = 100_000


_SIGNS = dict(
    re.findall(
        r"([^\w\s])(\w+)",
        "*NOT_RESPONDING ~POWERED_DOWN #POWERING_UP !POWER_DOWN %POWERING_DOWN $MAINTENANCE @REBOOT_REQUESTED "
        "^REBOOT_ISSUED -PLANNED",
    )
)
"""Signs that Slurm's text puts behind a state."""


def node_flags(words: Iterable[str]) -> list[str]:
    """Return states and flags in capitals, each once; ``IDLE+DRAIN`` and ``idle*`` count as two."""
    flags: dict[str, None] = {}
    for part in filter(None, "+".join(words).upper().split("+")):
        state = part.rstrip("".join(_SIGNS))
        flags |= dict.fromkeys(filter(None, [state, *(_SIGNS[sign] for sign in part[len(state) :])]))
    return list(flags)


def why_drained(flags: Collection[str]) -> list[str]:
    """
    Return the reasons why a node takes no new work, none where it does.

    A reservation keeps a node for its jobs: a taint. Under maintenance it takes none.
    """
    return [f"state {flag}" for flag in flags if flag not in known("node state", "takes work")] or ["no state"] * (
        not flags
    )


@cache
def shares_of(machine: Machine) -> dict[str, int]:
    """Return how many parts a GPU has, as ``gres/shard``, where all GPUs are alike."""
    named, gpus = machine.resources, len(machine.gpus) if len(set(models_of(machine))) == 1 else 0
    return {name: named[name] // gpus for name in SHARES_OF_GPUS & named.keys() if gpus and not named[name] % gpus}


def models_of(machine: Machine | None) -> tuple[str, ...]:
    """Return the models of the GPUs, by index."""
    return () if machine is None else tuple(gpu.model for gpu in machine.gpus)


def kind_of(machine: Machine) -> str:
    """Return the CPUs and GPUs, such as ``64cpu-4xa100``."""
    return machine.id.partition("-")[2]


COMMANDS = "'scontrol show nodes --json', of Slurm before 23.02 'sinfo --json', or slurmrestd's reply of .../nodes"
RESERVED = Taint(key="reservation")
"""Taint of a node that is kept for a reservation."""
YES = "yes"
"""Value of the labels of nodes."""
AT_LEAST = {
    "sockets_per_node": ("sockets", "sockets"),
    "cores_per_socket": ("cores_per_socket", "cores"),
    "threads_per_core": ("threads_per_core", "threads"),
    "minimum_tmp_disk_per_node": ("tmp_disk_mib", "temporary_disk"),
}
"""Request of a job -> label of nodes, an integer that must be as large, and the field that states it."""
FOR_ALL = "cpu/unrestricted"
"""Named resource: CPUs that jobs without GPUs may have, too (``RestrictedCoresPerGPU`` keeps the others)."""


class SlurmNode(NamedTuple):
    """A node of the round, and what else requests of jobs refer to."""

    node: Node
    machine: Machine
    threads: int
    used_cpus: int
    used_gpus: int
    cpus_per_gpu: int
    """CPUs that are kept for the job that has a GPU."""
    owner: str
    """User whose jobs alone it takes, while one of them is there; empty: none."""
    extra: bool
    """Whether it states values that jobs may filter by (``--extra``)."""


def read_slurm_nodes(source: SourceFile) -> Cluster:
    """Return the nodes of a file; raises as `entries_of`, or `BadInput` if a value is malformed."""
    document = JsonEntry(source.name, parse_json(source.text, source.name))
    return make_nodes(source.name, entries_of(document, "nodes", COMMANDS))[0]


def make_nodes(
    source: str, entries: list[JsonEntry], notes: ImportNotes | None = None
) -> tuple[Cluster, Mapping[str, SlurmNode]]:
    """
    Return nodes and their machine types, and what requests of jobs refer to; raises `BadInput` if a name repeats.

    ``effective_cpus``, else ``cpus`` without specialized cores, are logical CPUs of 1000 millicores; ``real_memory``
    without ``specialized_memory`` is MiB; ``gres`` lists the GPUs and, with ``(S:n)``, their socket, and other
    resources, which become named ones (``gres/nic``). Nodes of equal shape share a machine type. Partitions and active
    features become labels ``partition:NAME`` and ``feature:NAME`` = ``yes``, and what `AT_LEAST` lists one each; a
    reservation is a label, too, and the taint `RESERVED` while it lasts. Slurm reports no GPU memory, links or network.

    A node is ``drained`` if a word of ``state`` or ``state_flags`` means so, or is unknown (`known`), if some of
    its resources are drained, or if a field is set that is not read. ``notes`` list these nodes with the reason; None:
    a node with malformed hardware is bad input, otherwise it is kept, drained, without CPU, memory and GPUs.
    """
    if not 1 <= len(entries) <= MAX_NODES:
        raise BadInput(f"{source}: {len(entries)} nodes, expected 1 to {MAX_NODES}")
    machines: dict[Machine, Machine] = {}
    nodes: dict[str, SlurmNode] = {}
    told = ImportNotes() if notes is None else notes
    read = fields_read(entries, known("node", "read", "harmless"), frozenset(), told, "nodes")
    keeps = any(map(_kept_per_gpu, entries))
    called = f"slurmrestd nodes: {source.rsplit('/', 1)[-1]}"[:253]
    for entry in entries:
        name = entry.text("name")
        if name in nodes:
            raise BadInput(f"{entry.where}.name: {name!r} appears twice; names are unique")
        flags = node_flags([*entry.words("state"), *entry.words("state_flags")])
        reasons = why_drained(flags)
        if field := first_set(entry, read):
            reasons.append(f"{field[:60]} is set, which is not read")
        if entry.text("gres_drained", "") not in UNSET_TEXTS:
            reasons.append("some of its generic resources are drained")
        plain, used_gpus = Machine(id="0cpu", cpu_millicores=0, memory_mib=0, source=called), 0
        try:
            plain = _machine(entry, called, keeps=keeps)
            used_gpus = sum(gres.count for gres in entry.parsed("gres_used", parse_gres) if gres.name == "gpu")
        except BadInput:
            if notes is None:
                raise
            reasons.append("its hardware, or what is used of it, cannot be read")
        if plain not in machines:
            machines[plain] = plain.model_copy(update={"id": f"type{len(machines)}-{plain.id}"})
        for reason in reasons:
            told.drain(reason, name)
        features = [word for text in entry.words("active_features") for word in text.split(",") if word]
        reservation = [entry.text("reservation", "")] if is_set(entry.raw("reservation")) else []
        marks = {"partition": entry.words("partitions"), "feature": features, "reservation": reservation}
        labels = {f"{kind}:{word}": YES for kind, listed in marks.items() for word in listed}
        sizes = {label: entry.integer(field, 0, 2**31) for label, field in AT_LEAST.values() if field in entry}
        node = make_record(
            Node,
            entry.where,
            id=name,
            machine=machines[plain].id,
            labels={**labels, **{label: str(size) for label, size in sizes.items()}},
            taints=(RESERVED,) if {"RESERVED", "RESV"}.intersection(flags) else (),
            drained=bool(reasons),
        )
        nodes[name] = SlurmNode(
            node,
            machines[plain],
            threads=entry.integer("threads", 0, 2**31, 1),
            used_cpus=entry.integer("alloc_cpus", 0, 2**31, 0),
            used_gpus=used_gpus,
            cpus_per_gpu=_kept_per_gpu(entry),
            owner=entry.text("owner", ""),
            extra=is_set(entry.raw("extra")),
        )
    listed = tuple(one.node for one in nodes.values())
    return make_record(Cluster, source, machines=tuple(machines.values()), nodes=listed), nodes


def _kept_per_gpu(entry: JsonEntry) -> int:
    return entry.integer("res_cores_per_gpu", 0, MAX_CPUS, 0) * entry.integer("threads", 0, MAX_CPUS, 1)


def _machine(entry: JsonEntry, source: str, *, keeps: bool) -> Machine:
    """Return the machine type of a node, called by its CPUs and GPUs; ``keeps``: whether nodes keep CPUs for GPUs."""
    listed = entry.parsed("gres", parse_gres) if entry.raw("gres") else []
    gres = [item for item in listed if item.name == "gpu"]
    counts = Counter[str]()
    for item in gres:
        counts[item.type or "gpu"] += item.count
    if counts.total() > MAX_GPUS:
        raise BadInput(f"{entry.path('gres')}: {entry.text('gres')[:60]!r}; expected at most {MAX_GPUS} GPUs")
    cpus, memory = entry.integer("cpus", 0, MAX_CPUS), entry.integer("real_memory", 0, MAX_AMOUNT)
    of_system = entry.integer("specialized_cores", 0, MAX_CPUS, 0) * entry.integer("threads", 0, MAX_CPUS, 1)
    cpus = entry.integer("effective_cpus", 0, MAX_CPUS, 0) or max(0, cpus - of_system)
    of_gpus = [item.socket + 1 for item in gres if item.socket is not None and item.count]
    sockets = max([entry.integer("sockets", 0, MAX_SOCKETS, 0), *of_gpus])
    named = named_gres(listed)
    if keeps:
        named[FOR_ALL] = max(0, cpus - counts.total() * _kept_per_gpu(entry))
    return make_record(
        Machine,
        entry.where,
        id="-".join([f"{cpus}cpu", *(f"{count}x{model}" for model, count in counts.items() if count)]),
        cpu_millicores=1000 * cpus,
        memory_mib=max(0, memory - entry.integer("specialized_memory", 0, MAX_AMOUNT, 0)),
        parts=tuple(Part(id=f"socket{s}", level="socket") for s in range(sockets)),
        gpus=tuple(gpu for item in gres for gpu in item.count * (_gpu(entry.where, item.type, item.socket),)),
        resources=named,
        source=source,
    )


@cache
def _gpu(where: str, model: str | None, socket: int | None) -> Gpu:
    return make_record(Gpu, where, model=model or "gpu", part=None if socket is None else f"socket{socket}")


def read_nodes(
    listed: str | Path | dict[str, Any], topology: str | Path | SourceFile | None, notes: ImportNotes
) -> tuple[Cluster, Mapping[str, SlurmNode]]:
    """
    Read the list of nodes, a file or parsed, and the switches above them.

    Nodes that take no new work are entered in ``notes``.
    """
    document, entries = read_list(listed, "nodes", COMMANDS)
    cluster, slurm_nodes = make_nodes(document.where, entries, notes)
    if any(one.threads > 1 for one in slurm_nodes.values()):
        notes.assume(
            "Nodes have several threads a core: waiting jobs count CPUs one by one, though Slurm may give whole cores."
        )
    if topology is None:
        return cluster, slurm_nodes
    network = topology if isinstance(topology, SourceFile) else read_source(topology)
    if not network.has(TOPOLOGY_LINE):
        raise Unsupported(
            f"{network.name}: no SwitchName= or BlockName=; expected Slurm's topology.conf, topology.yaml or "
            "'scontrol show topology'"
        )
    fabric = read_slurm_topology(network)
    for remark in fabric.unresolved:
        notes.assume(remark)
    if any(block.nodes is None for block in fabric.block_sizes):
        notes.assume("Switches have several roots: a job lies under one of them (but with TopoOptional).")
    for name in slurm_nodes:
        if name not in fabric.node_domains:
            notes.drain("in no switch or block of the topology", name)
    return fabric.with_nodes(cluster), slurm_nodes


def with_whole_nodes(cluster: Cluster, kinds: Collection[str]) -> Cluster:
    """Return a cluster in which each node of some kinds has one ``node/KIND``, which is the whole node."""
    machines = tuple(
        machine.model_copy(update={"resources": Amounts({**machine.resources, f"node/{kind_of(machine)}": 1})})
        if kind_of(machine) in kinds
        else machine
        for machine in cluster.machines
    )
    return cluster.model_copy(update={"machines": machines}) if kinds else cluster


def without_taints(cluster: Cluster, held: Collection[str]) -> Cluster:
    """Return a cluster in which nodes of reservations are held, not tainted."""
    nodes = tuple(node.model_copy(update={"taints": ()}) if node.id in held else node for node in cluster.nodes)
    return cluster.model_copy(update={"nodes": nodes})


def drain_unaccounted(nodes: Mapping[str, SlurmNode], seen: Sequence[ObservedJob], notes: ImportNotes) -> None:
    """Drain nodes of which more is in use than the listed jobs hold, or that a user owns without a listed job."""
    millicores: Counter[str] = Counter()
    gpus: Counter[str] = Counter()
    users: set[tuple[str, str | None]] = set()
    for observed in seen:
        demand = observed.job.options[0].demand
        for worker in observed.workers:
            millicores[worker.node] += demand.cpu_millicores
            gpus[worker.node] += demand.gpus
            users.add((worker.node, observed.job.user))
    unread = {worker.node for observed in seen if observed.unreadable_reason is not None for worker in observed.workers}
    for name, node in nodes.items():
        if name not in unread and (1000 * node.used_cpus > millicores[name] or node.used_gpus > gpus[name]):
            notes.drain("more is in use there than the listed jobs hold", name)
        elif name not in unread and node.owner not in UNSET_TEXTS and (name, node.owner) not in users:
            notes.drain("a user owns it whose jobs are not listed", name)
