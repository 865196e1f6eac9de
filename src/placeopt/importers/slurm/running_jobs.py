"""Slurm's jobs that hold nodes: the exact amounts on each node, or in doubt the whole node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import gcd
from typing import NamedTuple

from placeopt.documents.faults import make_record
from placeopt.errors import BadInput
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.observed_round import NO_GPUS, ObservedJob, ObservedWorker, unreadable_job
from placeopt.importers.priority_rule import flags_of
from placeopt.importers.slurm.fields import Tres, gpu_milli, parse_gres_detail, parse_tres
from placeopt.importers.slurm.job_requests import Request, exclusive_of, make_option
from placeopt.importers.slurm.jobs import JobContext, job_classes, make_job, marks_of
from placeopt.importers.slurm.lists import JobLeftOut, expand_node_list, is_set, milliseconds, reason_of, slurm_number
from placeopt.importers.slurm.node_conditions import beside
from placeopt.importers.slurm.nodes import FOR_ALL, models_of, shares_of
from placeopt.importers.stated_marks import UNREAD_MARKS, with_stated
from placeopt.model import Demand, NodeConditions

PARTS = "Jobs that hold more on one of their nodes than on another are a job for each kind of node."
EVENLY = "CPUs and memory of some jobs are not listed node by node: they were divided evenly."
NAMED_EVENLY = "Generic resources of some jobs are not listed node by node: they were divided evenly."
LOWEST = "Which GPUs some jobs hold is not listed (operators see it): the lowest free ones were taken."
ANY_MIX = "A running job that asked for several types of GPUs may have any mix, if moved."


class NodeHolding(NamedTuple):
    """Equal workers of a job on one node: what each of them holds, and the indices of all GPUs, if listed."""

    gpus: int
    millicores: int
    memory_mib: int
    named: frozenset[tuple[str, int]]
    """Other generic resources."""
    gpu_milli: int
    node: str
    indices: tuple[int, ...] | None
    workers: int = 1


def running_jobs(context: JobContext, entry: JsonEntry, name: str) -> list[ObservedJob]:
    """Return a running job; several, if it holds different amounts on its nodes; none, if it names no node."""
    nodes = list(dict.fromkeys(expand_node_list(entry, "nodes")))
    if not nodes:
        context.notes.leave_out("runs on no node", name)
        return []
    try:
        return _exact(context, entry, name, nodes)
    except (JobLeftOut, BadInput) as error:
        return [unreadable_job(name, nodes, reason_of(entry, error), entry.where, _least(context, entry, nodes))]


def _least(context: JobContext, entry: JsonEntry, nodes: Sequence[str]) -> Demand:
    """Return CPU and memory per node of a job whose GPUs cannot be read; 0 where these cannot be read either."""
    try:
        cpus, memory = _cpus(context, entry, nodes)
        return make_record(Demand, entry.where, gpus=0, cpu_millicores=1000 * min(cpus), memory_mib=min(memory))
    except (JobLeftOut, BadInput):
        return NO_GPUS


def _exact(context: JobContext, entry: JsonEntry, name: str, nodes: Sequence[str]) -> list[ObservedJob]:
    asked, holdings = Request(entry), []
    held = _gres(context, entry, asked, nodes)
    for node, have, count, mib in zip(nodes, held, *_cpus(context, entry, nodes), strict=True):
        listed, named, milli = context.nodes.get(node), dict(have.named), 1000
        for share, count_of in have.shares:
            milli = gpu_milli(count_of, 0 if listed is None else shares_of(listed.machine).get(share, 0))
            if not milli or have.gpus > 1 or len(have.indices or ()) != 1:
                raise JobLeftOut("holds a share of GPUs (shard, mps) that is not an equal part of one")
        if asked.exclusive in ("none", "topo") and listed is not None:
            machine = listed.machine
            if have.gpus < len(machine.gpus) or 1000 * count < machine.cpu_millicores:
                context.notes.drain("held by an exclusive job that has not all of it", node)
        if context.kept_cpus:  # CPUs that are not kept for its GPUs
            named[FOR_ALL] = max(0, count - have.gpus * (0 if listed is None else listed.cpus_per_gpu))
        holdings.append(NodeHolding(have.gpus, 1000 * count, mib, frozenset(named.items()), milli, node, have.indices))
    kinds: dict[tuple[object, ...], list[NodeHolding]] = {}
    for holding in _by_task(asked, holdings):
        kinds.setdefault(holding[:5], []).append(holding)
    if len(kinds) == 1:
        (some,) = kinds.values()
        licenses = context.licenses.held(entry, sum(holding.workers for holding in some)).items()
        some[:] = [holding._replace(named=holding.named.union(licenses)) for holding in some]
    parts = [_part(context, entry, f"{name}+{n}" if n else name, some) for n, some in enumerate(kinds.values())]
    if len(parts) > 1:
        context.notes.assume(PARTS)
    elif not is_set(entry.raw("het_job_id")):  # a part alone cannot be moved
        movable, preemptible = _flags(context, entry, name, nodes)
        parts = [parts[0]._replace(movable=movable, preemptible=preemptible)]
    return parts


def _by_task(asked: Request, holdings: list[NodeHolding]) -> list[NodeHolding]:
    """Return the job in workers as requested, a task or a GPU each, if they are equal; else one worker a node."""
    with_gpus = any(holding.gpus for holding in holdings)
    if with_gpus:
        unit = asked.by["task"].gpus or (1 if asked.by["job"].gpus else 0)
    else:
        unit = gcd(*(holding.millicores for holding in holdings)) if len(holdings) > 1 else 0
    divided = []
    for holding in holdings if unit else ():
        count, rest = divmod(holding.gpus if with_gpus else holding.millicores, unit)
        if rest or not count or holding.named or any(amount % count for amount in holding[:3]):
            break
        gpus, millicores, memory_mib = (amount // count for amount in holding[:3])
        divided.append(holding._replace(gpus=gpus, millicores=millicores, memory_mib=memory_mib, workers=count))
    return divided if len(divided) == len(holdings) and len({one[:4] for one in divided}) == 1 else holdings


def _flags(context: JobContext, entry: JsonEntry, name: str, nodes: Sequence[str]) -> tuple[bool, bool]:
    """Return whether a job may be moved, and preempted: by its comment, the rule, or Slurm's settings."""
    classes, settings = job_classes(entry), context.preemption
    labels = {label for node in nodes if node in context.nodes for label in context.nodes[node].node.labels}
    beside = {label.removeprefix("partition:") for label in labels if label.startswith("partition:")}
    qos = entry.text("qos", "")
    protected_ms = (milliseconds(entry, "start_time", 1000) or 0) + settings.protects_ms(qos)
    stated = (milliseconds(entry, "preemptable_time", 1000) or protected_ms) <= context.now_ms
    stated &= settings.allows(classes[-1], qos, beside, requeues=entry.raw("requeue") is not False)
    may = context.rule.may_preempt(slurm_number(entry, "priority") or 0, classes, stated=stated)
    return flags_of([marks_of(entry)], may, name, context.notes)


def _part(context: JobContext, entry: JsonEntry, name: str, holdings: Sequence[NodeHolding]) -> ObservedJob:
    """Return the job, or part of one, that holds equal amounts with each worker."""
    first, models = holdings[0], set[str]()
    for holding in holdings:
        listed = models_of(context.nodes[holding.node].machine if holding.node in context.nodes else None)
        models |= {listed[i] for i in holding.indices or range(len(listed)) if i < len(listed)}
    count = sum(holding.workers for holding in holdings)
    asked = Request(entry).models
    if len(asked) > 1:
        context.notes.assume(ANY_MIX)
    demand = {
        "gpus": first.gpus,
        "gpu_milli": first.gpu_milli,
        "gpu_models": tuple(sorted(asked)) if models.issubset(asked) else (),
        "cpu_millicores": first.millicores,
        "memory_mib": first.memory_mib,
        "resources": dict(first.named),
    }
    apart = 1 if count == len(holdings) > 1 else None
    option = make_option(entry, demand, workers=count, workers_per_node_max=apart, value=0)
    option = option.model_copy(update={"value": context.value(entry, count, option.demand)})
    workers = [
        ObservedWorker(holding.node, holding.indices and holding.indices[i * holding.gpus : (i + 1) * holding.gpus])
        for holding in holdings
        for i in range(holding.workers)
    ]
    started, ends = milliseconds(entry, "start_time", 1000) or 0, milliseconds(entry, "end_time", 1000)
    nodes = tuple(dict.fromkeys(holding.node for holding in holdings))
    others = beside(
        entry,
        labelled=context.by_user,
        owned=any(is_set(context.nodes[one].owner) for one in nodes if one in context.nodes),
    )
    try:
        context.check_read(entry, "mcs_label" if exclusive_of(entry) == "mcs" else "")
        if any(is_set(entry.raw(key)) for key in ("segment_size", "required_switches")):
            raise JobLeftOut("a request that is not read of a running job")
        ways, some = context.asked(entry, one_node=len(nodes) == 1)
        if len(ways) > 1 or any(number != len(nodes) for number, _ in some):
            raise JobLeftOut("a request about several nodes of a running job")
        for conditions in (*ways.values(), *(one for _, one in some)):
            option = option.model_copy(update={"conditions": option.conditions & conditions})
    except JobLeftOut:
        option = option.model_copy(update={"conditions": make_record(NodeConditions, entry.where, nodes_allowed=nodes)})
        others["conditions_unread"] = True
    job = make_job(entry, name, [option], **others)
    try:
        job = with_stated(job, [marks_of(entry)], entry.where)
    except BadInput:
        context.notes.keep(UNREAD_MARKS, name)
    return ObservedJob(
        job,
        workers=tuple(workers),
        started_ms=started,
        expected_end_ms=ends if ends and ends >= started else None,
        priority=slurm_number(entry, "priority") or 0,
        where=entry.where,
    )


def _gres(context: JobContext, entry: JsonEntry, asked: Request, nodes: Sequence[str]) -> list[Tres]:
    """Return the generic resources held on each node; `JobLeftOut` where number or type of GPUs is not listed."""
    allocated = entry.parsed("tres_alloc_str", parse_tres)
    try:
        held = [parse_gres_detail(detail) for detail in entry.words("gres_detail")]
    except ValueError as error:
        raise BadInput(f"{entry.path('gres_detail')}: {error}") from None
    if any(one.shares for one in (allocated, *asked.by.values())) and not any(one.shares for one in held):
        raise JobLeftOut("holds a share of GPUs (shard, mps), and which one is not listed")
    if not any(one.gpus for one in held) and (allocated.gpus or not held):
        held = [_gpus_by_request(context, asked, len(nodes), allocated.gpus)] * len(nodes)
    if not any(one.named for one in held):
        by_node, evenly = dict(asked.by["node"].named), Counter(dict(asked.by["job"].named))
        evenly.update({name: asked.tasks * count for name, count in asked.by["task"].named})
        evenly |= Counter({name: count for name, count in allocated.named if name not in by_node})
        if evenly:
            context.notes.assume(NAMED_EVENLY)
        named = by_node | {name: -(-count // len(held)) for name, count in evenly.items()}
        held = [replace(one, named=tuple(sorted(named.items()))) for one in held]
    if len(held) != len(nodes):
        raise JobLeftOut("the GPUs that it holds are listed for other nodes than its own")
    for node, gres in zip(nodes, held, strict=True):
        listed = context.nodes.get(node)
        if gres.gpus and gres.indices is None and listed is not None and len(set(models_of(listed.machine))) > 1:
            raise JobLeftOut("which GPUs it holds is not listed, on a node that has several types")
    return held


def _gpus_by_request(context: JobContext, asked: Request, nodes: int, held: int) -> Tres:
    """Return the GPUs on each node as the request says; ``held``: of all nodes together, 0 if not listed."""
    node, task, job, socket = (asked.by[part].gpus for part in ("node", "task", "job", "socket"))
    if not (held or node or task or job or socket):
        return Tres()
    by_node = node if held in (0, node * nodes) else 0
    each = by_node if nodes > 1 else held or node or task * asked.tasks or job
    if not each or (asked.exclusive and not held):
        raise JobLeftOut("how many GPUs it holds on which node is not listed")
    context.notes.assume(LOWEST)
    return Tres(gpus=each, indices=None)


def _cpus(context: JobContext, entry: JsonEntry, nodes: Sequence[str]) -> tuple[list[int], list[int]]:
    """Return CPUs and MiB held on each node; divided evenly, rounded up, if Slurm does not list them."""
    allocated = _allocated(context, entry.entry("job_resources"))
    if all(allocated.get(node, (0, 0))[0] for node in nodes):
        return [allocated[node][0] for node in nodes], [allocated[node][1] for node in nodes]
    held, count = entry.parsed("tres_alloc_str", parse_tres), len(nodes)
    cpus = held.cpus or slurm_number(entry, "cpus") or 0
    if not cpus:
        raise JobLeftOut("how many CPUs it holds is not listed")
    if count > 1:
        context.notes.assume(EVENLY)
    return [-(-cpus // count)] * count, [-(-held.memory_mib // count)] * count


def _allocated(context: JobContext, resources: JsonEntry) -> dict[str, tuple[int, int]]:
    """Return CPUs and MiB by node, as far as they are listed."""
    if isinstance(resources.raw("nodes"), dict):  # of data parser v0.0.41 on; before, a list of names
        return {
            one.text("name"): (
                one.entry("cpus").integer("count", 0, 10**6, 0),
                one.entry("memory").integer("allocated", 0, 10**9, 0),
            )
            for one in resources.entry("nodes").entries("allocation")
        }
    numbered = resources.raw("allocated_nodes")  # Slurm 21.08 to 24.05: by number, or a list
    inside = resources.entry("allocated_nodes") if isinstance(numbered, dict) else resources
    listed = map(inside.entry, inside.names()) if isinstance(numbered, dict) else inside.entries("allocated_nodes")
    return {
        name: (_cores(one) * context.nodes[name].threads, one.integer("memory_allocated", 0, 10**9, 0))
        for one in listed
        if (name := one.text("nodename", "")) in context.nodes
    }


def _cores(node: JsonEntry) -> int:
    """Count the cores that a job has on a node."""
    sockets = node.raw("sockets")
    cores = [one.get("cores") for one in sockets.values() if isinstance(one, dict)] if isinstance(sockets, dict) else ()
    states = [state for listed in cores if isinstance(listed, dict) for state in listed.values()]
    return sum(str(state).lower().startswith("allocated") for state in states)
