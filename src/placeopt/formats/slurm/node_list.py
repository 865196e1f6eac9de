"""Slurm's list of nodes, as ``slurmrestd``, ``scontrol`` and ``sinfo`` write it: an inventory of hardware."""

from __future__ import annotations

from typing import NamedTuple

from placeopt.errors import BadInput, Unsupported
from placeopt.formats.bounds import parse_json
from placeopt.formats.faults import make_record
from placeopt.formats.json_entry import JsonEntry
from placeopt.formats.slurm.gres import parse_gres
from placeopt.formats.slurm.node_states import why_drained
from placeopt.formats.source_file import SourceFile
from placeopt.formats.topo.fabric import Inventory
from placeopt.model import Gpu, Machine, Node, Part
from placeopt.model.base import MAX_NODES

MAX_GPUS = 1024
MAX_SOCKETS = 64
MAX_CPUS = 100_000
MAX_MEMORY_MIB = 1_000_000_000


class NodeShape(NamedTuple):
    """What two nodes of one machine type have in common."""

    cpus: int
    memory_mib: int
    sockets: int
    gpus: tuple[tuple[str, int], ...]
    """Model and socket of each GPU; -1: unknown socket."""


UNREADABLE = NodeShape(0, 0, 0, ())


def is_json(source: SourceFile) -> bool:
    """Return whether the file begins like a JSON object or list."""
    return source.data[:1000].removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")


def node_entries(source: SourceFile) -> list[JsonEntry]:
    """
    Return the nodes of a reply of ``/slurm/v0.0.*/nodes`` or ``/node/NAME``, or of ``sinfo --json`` of Slurm 22.05.

    Raises
    ------
    BadInput
        If the file is no such reply, or has no node or too many.
    Unsupported
        If it is a reply about jobs or partitions.
    """
    reply = parse_json(source.text, source.name)
    if not isinstance(reply, dict) or not isinstance(reply.get("nodes"), list):
        other = next((key for key in ("jobs", "partitions") if isinstance(reply, dict) and key in reply), None)
        if other is not None:
            raise Unsupported(
                f"{source.name}: slurmrestd's list of {other}, which has no hardware; give the reply of .../nodes"
            )
        raise BadInput(f"{source.name}: no list 'nodes'; expected slurmrestd's reply of .../nodes")
    if not 1 <= len(reply["nodes"]) <= MAX_NODES:
        raise BadInput(f"{source.name}: {len(reply['nodes'])} nodes, expected 1 to {MAX_NODES}")
    return JsonEntry(source.name, reply).entries("nodes")


def read_slurm_nodes(source: SourceFile) -> Inventory:
    """Return the inventory of a file; raises as `node_entries` and `make_inventory`."""
    return make_inventory(source.name, node_entries(source))


def make_inventory(source: str, entries: list[JsonEntry], unreadable: set[str] | None = None) -> Inventory:
    """
    Return nodes and their machine types.

    ``effective_cpus``, else ``cpus``, are logical CPUs of 1000 millicores, ``real_memory`` is MiB, ``gres`` lists the
    GPUs and, with ``(S:n)``, their socket. Nodes of equal shape share a machine type. A node is ``drained`` if a word
    of ``state`` or ``state_flags`` means so, or is unknown (`TAKES_WORK`). Partitions become labels
    ``partition:NAME`` = ``yes``. Slurm reports no GPU memory, links or network.

    Parameters
    ----------
    source
        Name of the file.
    entries
        The nodes.
    unreadable
        None: a node with malformed hardware is bad input. Otherwise such a node is kept without CPU, memory and GPUs,
        ``drained``, and its name is added to the set.

    Raises
    ------
    BadInput
        If a value is malformed, or a name repeats.
    """
    machines: dict[NodeShape, Machine] = {}
    nodes: dict[str, Node] = {}
    for entry in entries:
        name = entry.text("name")
        try:
            shape = _shape(entry)
        except BadInput:
            if unreadable is None:
                raise
            shape = UNREADABLE
            unreadable.add(name)
        if shape not in machines:
            machines[shape] = _machine(source, entry.where, shape, len(machines))
        drained = shape is UNREADABLE or bool(why_drained([*entry.words("state"), *entry.words("state_flags")]))
        labels = {f"partition:{word}": "yes" for word in entry.words("partitions")}
        if name in nodes:
            raise BadInput(f"{entry.where}.name: {name!r} stands twice; names are unique")
        machine = machines[shape].id
        nodes[name] = make_record(Node, entry.where, id=name, machine=machine, labels=labels, drained=drained)
    return Inventory(tuple(machines.values()), tuple(nodes.values()), source)


def _shape(entry: JsonEntry) -> NodeShape:
    text = entry.text("gres", "")
    try:
        gres = [item for item in parse_gres(text) if item.name == "gpu"]
    except ValueError as error:
        raise BadInput(f"{entry.path('gres')}: {error}") from None
    if sum(item.count for item in gres) > MAX_GPUS:
        raise BadInput(f"{entry.path('gres')}: {text[:60]!r}; expected at most {MAX_GPUS} GPUs")
    gpus = [
        (item.type or "gpu", -1 if item.socket is None else item.socket) for item in gres for _ in range(item.count)
    ]
    sockets = entry.integer("sockets", 0, MAX_SOCKETS, 0)
    cpus = "effective_cpus" if entry.raw("effective_cpus") else "cpus"  # without those reserved for the system
    return NodeShape(
        entry.integer(cpus, 0, MAX_CPUS),
        entry.integer("real_memory", 0, MAX_MEMORY_MIB),
        max([sockets, *(socket + 1 for _, socket in gpus)]),
        tuple(gpus),
    )


def _machine(source: str, where: str, shape: NodeShape, number: int) -> Machine:
    models = dict.fromkeys(model for model, _ in shape.gpus)
    names = [f"{sum(model == other for other, _ in shape.gpus)}x{model}" for model in models]
    return make_record(
        Machine,
        where,
        id="-".join([f"type{number}", f"{shape.cpus}cpu", *names]),
        cpu_millicores=1000 * shape.cpus,
        memory_mib=shape.memory_mib,
        parts=tuple(Part(id=f"socket{s}", level="socket") for s in range(shape.sockets)),
        gpus=tuple(
            make_record(Gpu, where, model=model, part=f"socket{socket}" if socket >= 0 else None)
            for model, socket in shape.gpus
        ),
        source=f"slurmrestd nodes: {source.rsplit('/', 1)[-1]}"[:253],
    )
