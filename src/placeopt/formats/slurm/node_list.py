"""Replies of ``slurmrestd``: the list of nodes becomes an inventory; jobs and partitions are no topology."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from placeopt.errors import BadInput, Unsupported
from placeopt.formats.bounds import check_bounds
from placeopt.formats.slurm.gres import parse_gres
from placeopt.formats.slurm.node_states import why_drained
from placeopt.formats.source_file import SourceFile
from placeopt.formats.topo.fabric import Inventory
from placeopt.model import Gpu, Machine, Node, Part
from placeopt.model.base import MAX_NODES

MAX_GPUS = 1024


def is_json(source: SourceFile) -> bool:
    """Whether the first thing in the file opens a JSON object or list."""
    return source.data[:1000].removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")


def read_slurm_nodes(source: SourceFile, odd: dict[str, str] | None = None) -> Inventory:
    """
    Read the reply of ``/slurm/v0.0.*/nodes`` or ``/node/NAME``, or what ``sinfo --json`` of Slurm 22.05 prints.

    ``effective_cpus``, else ``cpus``, are logical CPUs of 1000 millicores, ``real_memory`` is MiB, ``gres`` gives the
    GPUs and, with ``(S:n)``, their socket. Nodes of equal shape share a machine type. A node is ``drained`` if a word
    of ``state`` or ``state_flags`` says so, or is not known (`TAKES_WORK`). Partitions become labels
    ``partition:NAME`` = ``yes``. The reply tells no GPU memory, links or network.

    Parameters
    ----------
    source
        The file.
    odd
        Left out, a node whose hardware makes no sense is bad input. Given, such nodes are kept without CPU, memory and
        GPUs, ``drained``, and entered here with what is wrong.

    Raises
    ------
    BadInput
        If it is no such reply, or a value makes no sense.
    Unsupported
        If it is a reply about jobs, partitions or something else.
    """
    check_bounds(source.text, source.name)
    try:
        reply = json.loads(source.text)
    except (ValueError, RecursionError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 1
        raise source.bad(line, f"not well-formed JSON ({str(error)[:100]}); is the file complete?") from error
    if not isinstance(reply, dict) or not isinstance(reply.get("nodes"), list):
        held = next((key for key in ("jobs", "partitions") if isinstance(reply, dict) and key in reply), None)
        if held is not None:
            raise Unsupported(
                f"{source.name}: slurmrestd's list of {held}, which tells no hardware; give the reply of .../nodes"
            )
        raise BadInput(f"{source.name}: no list 'nodes'; expected slurmrestd's reply of .../nodes")
    if not 1 <= len(reply["nodes"]) <= MAX_NODES:
        raise BadInput(f"{source.name}: {len(reply['nodes'])} nodes, expected 1 to {MAX_NODES}")
    machines: dict[tuple[Any, ...], Machine] = {}
    nodes: dict[str, Node] = {}
    for i, entry in enumerate(reply["nodes"]):
        where = f"{source.name}: nodes[{i}]"
        if not isinstance(entry, dict):
            raise BadInput(f"{where}: expected an object")
        try:
            shape = _shape(where, entry)
        except BadInput as error:
            if odd is None:
                raise
            shape = (0, 0, 0, ())
            odd[str(entry.get("name"))] = str(error)
        try:
            machine = machines.get(shape) or _machine(source, shape, len(machines))
            node = _node(where, entry, machine.id)
        except ValidationError as error:
            first = error.errors()[0]
            raise BadInput(f"{where}: {first['loc']}: {str(first['input'])[:60]!r}: {first['msg']}") from error
        if odd and node.id in odd:
            node = node.model_copy(update={"drained": True})
        if node.id in nodes:
            raise BadInput(f"{where}.name: {node.id!r} stands twice; names are unique")
        machines[shape] = machine
        nodes[node.id] = node
    return Inventory(tuple(machines.values()), tuple(nodes.values()), source.name)


def _shape(where: str, entry: Mapping[str, Any]) -> tuple[Any, ...]:
    """(cpus, memory, sockets, ((model, socket or -1), ...)): what makes two nodes of one machine type."""
    gres = entry.get("gres") or ""
    if not isinstance(gres, str):
        raise BadInput(f"{where}.gres: expected text such as 'gpu:a100:4'")
    try:
        found = [one for one in parse_gres(gres) if one.name == "gpu"]
    except ValueError as error:
        raise BadInput(f"{where}.gres: {error}") from None
    if sum(one.count for one in found) > MAX_GPUS:
        raise BadInput(f"{where}.gres: {gres[:60]!r}; expected at most {MAX_GPUS} GPUs")
    gpus = [(one.type or "gpu", -1 if one.socket is None else one.socket) for one in found for _ in range(one.count)]
    sockets = _count(where, entry, "sockets", 64) if "sockets" in entry else 0
    usable = "effective_cpus" if entry.get("effective_cpus") else "cpus"  # without those kept for the system
    return (
        _count(where, entry, usable, 100_000),
        _count(where, entry, "real_memory", 1_000_000_000),
        max([sockets, *(socket + 1 for _, socket in gpus)]),
        tuple(gpus),
    )


def _count(where: str, entry: Mapping[str, Any], key: str, most: int) -> int:
    value = entry.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise BadInput(f"{where}.{key}: {str(value)[:60]!r}, expected a number from 0 to {most}")
    return value


def _machine(source: SourceFile, shape: tuple[Any, ...], number: int) -> Machine:
    cpus, memory_mib, sockets, gpus = shape
    counts = dict.fromkeys(model for model, _ in gpus)
    names = [f"{sum(model == other for other, _ in gpus)}x{model}" for model in counts]
    return Machine(
        id="-".join([f"type{number}", f"{cpus}cpu", *names]),
        cpu_millicores=1000 * cpus,
        memory_mib=memory_mib,
        parts=tuple(Part(id=f"socket{s}", level="socket") for s in range(sockets)),
        gpus=tuple(Gpu(model=model, part=f"socket{socket}" if socket >= 0 else None) for model, socket in gpus),
        source=f"slurmrestd nodes: {source.name.rsplit('/', 1)[-1]}"[:253],
    )


def _node(where: str, entry: Mapping[str, Any], machine: str) -> Node:
    name, state, partitions = entry.get("name"), entry.get("state", []), entry.get("partitions", [])
    states = [state] if isinstance(state, str) else state
    flags = entry.get("state_flags") or []
    for key, words in (("state", states), ("state_flags", flags), ("partitions", partitions)):
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise BadInput(f"{where}.{key}: expected a list of words")
    if not isinstance(name, str):
        raise BadInput(f"{where}.name: expected the node's name")
    return Node(
        id=name,
        machine=machine,
        labels={f"partition:{word}": "yes" for word in partitions},
        drained=bool(why_drained(states + flags)),
    )
