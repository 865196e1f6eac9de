"""What was read of a machine, a network or a cluster: in lines, and a machine as a view."""

from __future__ import annotations

from collections import Counter

from placeopt.importers.fabric import Fabric
from placeopt.model import Cluster, Machine
from placeopt.readable import amount, plain, plural
from placeopt.report.text.links import job_links
from placeopt.view import Column, Figure, Table, View

MAX_UNRESOLVED = 5
GPU_COLUMNS = (Column(name="GPU"), Column(name="model"), Column(name="memory", unit="mib"), Column(name="part"))
LINK_COLUMNS = (
    Column(name="GPU"),
    Column(name="other GPU"),
    Column(name="link"),
    Column(name="MB/s", better="more"),
    Column(name="distance", better="less"),
)


def machine_view(machine: Machine) -> View:
    """Return a machine's GPUs and the connection of every pair."""
    gpus = tuple((i, gpu.model, gpu.memory_mib, gpu.part) for i, gpu in enumerate(machine.gpus))
    pairs = job_links(machine, range(len(machine.gpus)))
    links = tuple((pair.a, pair.b, pair.label, pair.bandwidth_mbps, pair.distance) for pair in pairs)
    return View(
        title=machine_line(machine),
        figures=(
            Figure(name="GPUs", value=len(gpus)),
            Figure(name="CPU", value=machine.cpu_millicores, unit="cpu_millicores"),
            Figure(name="memory", value=machine.memory_mib, unit="mib"),
        ),
        tables=(
            Table(name="GPUs", columns=GPU_COLUMNS, rows=gpus, shown=0),
            Table(name="Links", columns=LINK_COLUMNS, rows=links, keys=2, shown=0),
        ),
    )


def machine_line(machine: Machine) -> str:
    """Return a machine in one line."""
    models = Counter(gpu.model for gpu in machine.gpus)
    parts = Counter(part.level for part in machine.parts)
    kinds = Counter(link.kind for link in machine.links)
    facts = [f"{plural(count, 'GPU')} of model {plain(model)}" for model, count in models.items()] or ["no GPUs"]
    facts += [f"{count} {level}{'es' if level == 'switch' else 's'}" for level, count in parts.items()]
    facts += [f"{plural(count, f'{kind} link')}" for kind, count in kinds.items()]
    facts.append(f"{amount(machine.cpu_millicores / 1000, 6)} cores" if machine.cpu_millicores else "cores not stated")
    facts.append(f"{machine.memory_mib / 1024:,.0f} GiB" if machine.memory_mib else "memory not stated")
    facts += [f"{count:,} {plain(name)}" for name, count in machine.resources.items()]
    return f"{plain(machine.id)}: {', '.join(facts)}"


def hardware_lines(hardware: Machine | Fabric | Cluster) -> str:
    """Return a few lines about what was recognised and what is unknown."""
    if isinstance(hardware, Machine):
        return machine_line(hardware)
    if isinstance(hardware, Fabric):
        levels = Counter(domain.level for domain in hardware.domains)
        tree = ", ".join(plural(count, level) for level, count in levels.items())
        return "\n".join([f"network of {plural(len(hardware.node_domains), 'node')} in {tree}", *_unresolved(hardware)])
    types = Counter(node.machine for node in hardware.nodes)
    tree = f" in {plural(len(hardware.domains), 'domain')}" if hardware.domains else ""
    lines = [f"{plural(len(hardware.nodes), 'node')} of {plural(len(hardware.machines), 'machine type')}{tree}"]
    lines += [f"  {types[machine.id]:>6,} x {machine_line(machine)}" for machine in hardware.machines]
    return "\n".join(lines)


def _unresolved(hardware: Fabric) -> list[str]:
    lines = [f"  not placed: {plain(text)}" for text in hardware.unresolved[:MAX_UNRESOLVED]]
    rest = len(hardware.unresolved) - MAX_UNRESOLVED
    return [*lines, f"  ... and {rest:,} more"] if rest > 0 else lines
