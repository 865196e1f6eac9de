"""The output of ``show`` and ``import``: instances, plans and hardware as text, and as plain data for JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.text import Text

from placeopt.errors import BadInput
from placeopt.importers.fabric import Fabric
from placeopt.model import Cluster, Machine
from placeopt.problem.hardware import LOST_MODEL, find_lost
from placeopt.readable import amount, gpus, plain, plural
from placeopt.report.text.gpu_map import gpu_map
from placeopt.report.text.instance_summary import instance_facts, instance_tables
from placeopt.report.text.links import MAX_NODES, job_facts, job_key, job_table, link_facts, machine_picture
from placeopt.report.text.palette import JobPainter, UsePainter, plan_painter
from placeopt.report.text.summary import (
    cost_facts,
    cost_table,
    headline,
    standing_table,
    waiting_facts,
    waiting_table,
)
from placeopt.report.text.text_table import heading

if TYPE_CHECKING:
    from rich.console import RenderableType

    from placeopt.model import Instance, Node, Placement, Plan
    from placeopt.model.base import Record
    from placeopt.report.text.palette import Glyphs


class GpuHolder(NamedTuple):
    """A job's share of one GPU, in thousandths."""

    job: str
    milli: int


@dataclass
class NodeUse:
    """Resources held on one node; ``gpus[i]`` lists the holders of GPU ``i``."""

    node: Node
    machine: Machine
    gpus: list[list[GpuHolder]]
    cpu_millicores: int = 0
    memory_mib: int = 0
    jobs: list[str] = field(default_factory=list)

    @property
    def milli(self) -> list[int]:
        """Thousandths held of each GPU; above 1000 where the policy overcommits."""
        return [sum(held.milli for held in gpu) for gpu in self.gpus]

    @property
    def used_milli(self) -> int:
        """GPU-milli held on the node, each GPU counted to 1000 at most."""
        return sum(min(milli, 1000) for milli in self.milli)

    @property
    def is_idle(self) -> bool:
        """Whether no job holds anything here."""
        return not self.jobs


def node_uses(instance: Instance, placements: Sequence[Placement], source: str = "placements") -> list[NodeUse]:
    """
    Return the nodes of an instance in file order, with what the placements hold on them.

    Nodes and GPUs that running jobs hold but the instance does not list follow as drained ones. Raises `BadInput` if a
    placement names a node or GPU that does not exist; ``source`` is the name of the list in the message.
    """
    cluster = find_lost(instance) or instance.cluster
    uses = {}
    for node in cluster.nodes:
        machine = cluster.machine_of(node)
        uses[node.id] = NodeUse(node, machine, [[] for _ in machine.gpus])
    for p, placement in enumerate(placements):
        for a, assignment in enumerate(placement.assignments):
            where = f"{source}[{p}].assignments[{a}]"
            use = uses.get(assignment.node)
            if use is None:
                raise BadInput(f"{where}.node: no node {assignment.node!r} in the instance")
            use.jobs.append(placement.job)
            use.cpu_millicores += assignment.cpu_millicores
            use.memory_mib += assignment.memory_mib
            for index, milli in assignment.gpus.items():
                if int(index) >= len(use.gpus):
                    raise BadInput(f"{where}.gpus: no GPU {index} on node {assignment.node!r}, it has {len(use.gpus)}")
                use.gpus[int(index)].append(GpuHolder(placement.job, milli))
    for use in uses.values():  # of what is not listed, what is held
        there = [g for g, gpu in enumerate(use.machine.gpus) if gpu.model != LOST_MODEL or use.gpus[g]]
        use.gpus = [use.gpus[g] for g in there]
        use.machine = use.machine.model_copy(update={"gpus": tuple(use.machine.gpus[g] for g in there)})
    return list(uses.values())


def instance_page(instance: Instance, glyphs: Glyphs, *, width: int) -> list[RenderableType]:
    """Return the contents of an instance, and the map of its GPUs as they are held now."""
    uses = node_uses(instance, instance.running, "running")
    title = heading("GPUs now", _held(uses))
    drawn = gpu_map(uses, UsePainter(glyphs), glyphs, width=width)
    return [*instance_tables(instance_facts(instance)), Text(""), title, *drawn]


def instance_data(instance: Instance) -> dict[str, Any]:
    """Return the same as data."""
    uses = node_uses(instance, instance.running, "running")
    return {
        "document": "instance",
        **instance_facts(instance),
        "digest": instance.digest,
        "use": _use_data(uses),
    }


def plan_page(instance: Instance, plan: Plan, glyphs: Glyphs, *, width: int) -> list[RenderableType]:
    """Return quality and costs of a plan, the jobs that wait, its GPUs by job, and small plans job by job."""
    uses = node_uses(instance, plan.placements)
    painter = plan_painter(plan.placements, uses, glyphs)
    pages: list[list[RenderableType]] = [
        headline(plan),
        cost_table(plan),
        waiting_table(plan),
        standing_table(plan),
        [heading("GPUs after the round", _held(uses)), *gpu_map(uses, painter, glyphs, width=width)],
    ]
    marks = {}
    if isinstance(painter, JobPainter):
        marks = {job: Text(letter, style=painter.style(job)) for job, letter in painter.letters.items()}
    if len(uses) <= MAX_NODES:
        pages.append(job_table(job_facts(instance, plan), marks))
    elif marks:
        pages.append(job_key(plan, marks))
    if len(uses) == 1 and uses[0].gpus and all(len(holders) <= 1 for holders in uses[0].gpus):
        pages.append([machine_picture(uses[0].machine, {i: h[0].job for i, h in enumerate(uses[0].gpus) if h})])
    parts: list[RenderableType] = []
    for page in pages:
        if page:
            parts += [*([Text("")] if parts else []), *page]
    return parts


def plan_data(instance: Instance, plan: Plan) -> dict[str, Any]:
    """Return the same as data; job by job for plans of any size."""
    return {
        "document": "plan",
        "instance": plan.instance.name,
        "policy": plan.policy.name,
        "status": plan.status,
        "limit": plan.limit,
        "gap": plan.gap,
        "levels": [level.model_dump() for level in plan.levels],
        "facts": plan.facts,
        "costs": cost_facts(plan),
        "waiting": waiting_facts(plan),
        "standing": [entry.model_dump() for entry in plan.standing],
        "use": _use_data(node_uses(instance, plan.placements)),
        "jobs": job_facts(instance, plan),
    }


def machine_page(machine: Machine) -> list[RenderableType]:
    """Return the picture of an empty machine."""
    return [machine_picture(machine, {})]


def machine_data(machine: Machine) -> dict[str, Any]:
    """Return a machine's GPUs and the connection of every pair."""
    return {
        "document": "machine",
        "id": machine.id,
        "cpu_millicores": machine.cpu_millicores,
        "memory_mib": machine.memory_mib,
        "gpus": [gpu.model_dump() for gpu in machine.gpus],
        "links": link_facts(machine, range(len(machine.gpus))),
    }


def _held(uses: Sequence[NodeUse]) -> str:
    there, idle = sum(len(use.gpus) for use in uses), sum(use.is_idle for use in uses)
    return f"{gpus(sum(use.used_milli for use in uses))} of {there:,} held, {plural(idle, 'node')} empty"


def _use_data(uses: Sequence[NodeUse]) -> list[dict[str, Any]]:
    return [
        {
            "node": use.node.id,
            "machine": use.machine.id,
            "domain": use.node.domain,
            "gpu_milli": use.milli,
            "cpu_millicores": use.cpu_millicores,
            "memory_mib": use.memory_mib,
        }
        for use in uses
    ]


Hardware = Machine | Fabric | Cluster

MAX_UNRESOLVED = 5


def hardware_document(hardware: Hardware) -> bytes:
    """
    Return hardware as JSON, one line per element.

    A machine or cluster has the keys of the model. A network alone has ``domains`` and ``node_domains`` (node ->
    domain). Each can be pasted into an instance's ``cluster``.
    """
    if isinstance(hardware, Fabric):
        lists: dict[str, Any] = {"domains": _dump(hardware.domains), "node_domains": dict(hardware.node_domains)}
    else:
        lists = hardware.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    lines = [f"  {json.dumps(key)}: {_value(value)}" for key, value in lists.items()]
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def hardware_summary(hardware: Hardware) -> str:
    """Return a few lines about what was recognised and what is unknown."""
    if isinstance(hardware, Machine):
        return _machine_text(hardware)
    if isinstance(hardware, Fabric):
        levels = Counter(domain.level for domain in hardware.domains)
        tree = ", ".join(plural(count, level) for level, count in levels.items())
        return "\n".join([f"network of {plural(len(hardware.node_domains), 'node')} in {tree}", *_unresolved(hardware)])
    types = Counter(node.machine for node in hardware.nodes)
    tree = f" in {plural(len(hardware.domains), 'domain')}" if hardware.domains else ""
    lines = [f"{plural(len(hardware.nodes), 'node')} of {plural(len(hardware.machines), 'machine type')}{tree}"]
    lines += [f"  {types[machine.id]:>6,} x {_machine_text(machine)}" for machine in hardware.machines]
    return "\n".join(lines)


def _machine_text(machine: Machine) -> str:
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


def _unresolved(hardware: Fabric) -> list[str]:
    lines = [f"  not placed: {plain(text)}" for text in hardware.unresolved[:MAX_UNRESOLVED]]
    rest = len(hardware.unresolved) - MAX_UNRESOLVED
    return [*lines, f"  ... and {rest:,} more"] if rest > 0 else lines


def _dump(records: tuple[Record, ...]) -> list[Any]:
    return [record.model_dump(mode="json", by_alias=True, exclude_defaults=True) for record in records]


def _value(value: Any) -> str:
    """Return a list of objects with one line per element, anything else on one line."""
    if isinstance(value, list) and value and isinstance(value[0], dict | list):
        return "[\n" + ",\n".join(f"    {json.dumps(item)}" for item in value) + "\n  ]"
    return json.dumps(value)
