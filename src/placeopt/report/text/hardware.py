"""Hardware read from dumps: as a document, and as a summary."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from placeopt.formats.topo.read import Fabric, Inventory
from placeopt.model import Cluster, Machine
from placeopt.readable import amount, plain, plural

if TYPE_CHECKING:
    from placeopt.model.base import Record

Hardware = Machine | Fabric | Inventory | Cluster

MAX_UNRESOLVED = 5


def hardware_document(found: Hardware) -> bytes:
    """
    Return hardware as JSON, one line per element.

    A machine or cluster has the keys of the model. A network alone has ``domains`` and ``node_domains`` (node ->
    domain); a list of nodes alone has ``machines`` and ``nodes``. Each can be pasted into an instance's ``cluster``.
    """
    if isinstance(found, Fabric):
        lists: dict[str, Any] = {"domains": _dump(found.domains), "node_domains": dict(found.node_domains)}
    elif isinstance(found, Inventory):
        lists = {"machines": _dump(found.machines), "nodes": _dump(found.nodes)}
    else:
        lists = found.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    lines = [f"  {json.dumps(key)}: {_value(value)}" for key, value in lists.items()]
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def hardware_summary(found: Hardware) -> str:
    """Return a few lines about what was recognised and what is unknown."""
    if isinstance(found, Machine):
        return _machine_text(found)
    if isinstance(found, Fabric):
        levels = Counter(domain.level for domain in found.domains)
        tree = ", ".join(plural(count, level) for level, count in levels.items())
        return "\n".join([f"network of {plural(len(found.node_domains), 'node')} in {tree}", *_unresolved(found)])
    types = Counter(node.machine for node in found.nodes)
    tree = f" in {plural(len(found.domains), 'domain')}" if isinstance(found, Cluster) and found.domains else ""
    lines = [f"{plural(len(found.nodes), 'node')} of {plural(len(found.machines), 'machine type')}{tree}"]
    lines += [f"  {types[machine.id]:>6,} x {_machine_text(machine)}" for machine in found.machines]
    return "\n".join(lines + (_unresolved(found) if isinstance(found, Inventory) else []))


def _machine_text(machine: Machine) -> str:
    models = Counter(gpu.model for gpu in machine.gpus)
    parts = Counter(part.level for part in machine.parts)
    kinds = Counter(link.kind for link in machine.links)
    facts = [f"{count} GPUs of model {plain(model)}" for model, count in models.items()] or ["no GPUs"]
    facts += [f"{count} {level}{'es' if level == 'switch' else 's'}" for level, count in parts.items()]
    facts += [f"{count} {kind} links" for kind, count in kinds.items()]
    facts.append(f"{amount(machine.cpu_millicores / 1000, 6)} cores" if machine.cpu_millicores else "cores not told")
    facts.append(f"{machine.memory_mib / 1024:,.0f} GiB" if machine.memory_mib else "memory not told")
    return f"{plain(machine.id)}: {', '.join(facts)}"


def _unresolved(found: Fabric | Inventory) -> list[str]:
    lines = [f"  not placed: {plain(text)}" for text in found.unresolved[:MAX_UNRESOLVED]]
    rest = len(found.unresolved) - MAX_UNRESOLVED
    return [*lines, f"  ... and {rest:,} more"] if rest > 0 else lines


def _dump(records: tuple[Record, ...]) -> list[Any]:
    return [record.model_dump(mode="json", by_alias=True, exclude_defaults=True) for record in records]


def _value(value: Any) -> str:
    """Return a list of objects with one line per element, anything else on one line."""
    if isinstance(value, list) and value and isinstance(value[0], dict | list):
        return "[\n" + ",\n".join(f"    {json.dumps(item)}" for item in value) + "\n  ]"
    return json.dumps(value)
