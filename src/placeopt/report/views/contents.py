"""What a cluster, a round or a scenario has: nodes by machine type, jobs by shape, demand against capacity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from placeopt.model import Cluster, Group, Instance, Job
from placeopt.readable import gpus, plain, plural
from placeopt.report.views.held_gpus import NodeUse, gpu_map, gpu_table, idle_nodes, node_table, node_uses
from placeopt.view import Column, Figure, Table, View

MODELS_NAMED = 6
"""GPU models in a line about a cluster."""
TYPES_SHOWN = 12
"""Types of machines and of jobs on a terminal, before the rest is counted."""
MACHINE_COLUMNS = (
    Column(name="machine"),
    Column(name="nodes"),
    Column(name="drained"),
    Column(name="GPUs each"),
    Column(name="GPU model"),
    Column(name="CPU each", unit="cpu_millicores"),
    Column(name="memory each", unit="mib"),
    Column(name="GPUs held", unit="gpu_milli"),
    Column(name="empty nodes"),
)
JOB_COLUMNS = (
    Column(name="kind"),
    Column(name="each"),
    Column(name="waiting"),
    Column(name="running"),
    Column(name="GPUs each", unit="gpu_milli"),
)


def instance_view(instance: Instance) -> View:
    """Return what a round has, and which of its running jobs holds which GPU."""
    uses = node_uses(instance, instance.running, "running")
    running = len(instance.running)
    held = Figure(name="GPUs held", value=sum(use.held_milli for use in uses), unit="gpu_milli")
    jobs = (Figure(name="jobs waiting", value=len(instance.jobs) - running), Figure(name="jobs running", value=running))
    policy = f"revision {instance.revision}, policy {instance.policy.name}, {instance.policy.share_mode}"
    return View(
        title=f"{instance.name}: {instance_line(instance)}",
        figures=(*jobs, *_cluster_figures(instance.cluster), held, _empty(uses)),
        notes=(policy, *filter(None, (instance.note, *map(str, instance.reading)))),
        tables=(
            machine_table(uses),
            _job_table(instance),
            _demand_table(instance),
            gpu_table(uses, "now"),
            node_table(uses),
        ),
        chart=gpu_map(uses),
        provenance={"instance": {"name": instance.name, "digest": instance.digest}},
    )


def cluster_view(cluster: Cluster) -> View:
    """Return what a cluster has."""
    uses = idle_nodes(cluster)
    return View(
        title=cluster_line(cluster),
        figures=_cluster_figures(cluster),
        tables=(machine_table(uses), gpu_table(uses), node_table(uses)),
        chart=gpu_map(uses),
    )


def instance_line(instance: Instance) -> str:
    """Return the numbers of a round in one line."""
    running = len(instance.running)
    waiting = plural(len(instance.jobs) - running, "job")
    return f"{waiting} waiting, {running:,} running; {cluster_line(instance.cluster)}"


def cluster_line(cluster: Cluster) -> str:
    """Return nodes, domains and GPUs in one line."""
    models = _models(cluster)
    named = ", ".join(f"{count:,} {plain(model)}" for model, count in models.most_common(MODELS_NAMED))
    levels = Counter(domain.level for domain in cluster.domains)
    domains = ", ".join(plural(count, plain(level)) for level, count in levels.items())
    nodes = plural(len(cluster.nodes), "node") + (f" in {domains}" if domains else "")
    return f"{nodes}, {plural(models.total(), 'GPU')}{f' ({named})' if named else ''}"


def _models(cluster: Cluster) -> Counter[str]:
    """Return the number of GPUs of each model."""
    nodes = Counter(node.machine for node in cluster.nodes)
    models = Counter[str]()
    for machine in cluster.machines:
        for gpu in machine.gpus:
            models[gpu.model] += nodes[machine.id]
    return +models


def _cluster_figures(cluster: Cluster) -> tuple[Figure, Figure]:
    gpus_there = sum(cluster.gpus_by_node.values())
    return Figure(name="nodes", value=len(cluster.nodes)), Figure(name="GPUs", value=gpus_there)


def _empty(uses: Iterable[NodeUse]) -> Figure:
    return Figure(name="empty nodes", value=sum(not use.jobs for use in uses))


def machine_table(uses: Iterable[NodeUse]) -> Table:
    """Return a row for each type of machine, the one with the most nodes first."""
    types: dict[str, list[NodeUse]] = {}
    for use in uses:
        types.setdefault(use.machine.id, []).append(use)
    rows = []
    for nodes in sorted(types.values(), key=lambda nodes: -len(nodes)):
        machine = nodes[0].machine
        models = ", ".join(dict.fromkeys(gpu.model for gpu in machine.gpus))
        row = (
            machine.id,
            len(nodes),
            sum(use.node.drained for use in nodes),
            len(machine.gpus),
            models,
            machine.cpu_millicores,
            machine.memory_mib,
            sum(use.held_milli for use in nodes),
            sum(not use.jobs for use in nodes),
        )
        rows.append(row)
    return Table(name="Machines", columns=MACHINE_COLUMNS, rows=tuple(rows), shown=TYPES_SHOWN)


def _job_table(instance: Instance) -> Table:
    """Return a row for jobs of one kind and shape, the most frequent first."""
    held = {placement.job for placement in instance.running}
    waiting = job_shapes(job for job in instance.jobs if job.id not in held)
    running = job_shapes(job for job in instance.jobs if job.id in held)
    rows = tuple(
        (kind, shape, waiting[kind, shape, milli], running[kind, shape, milli], milli)
        for (kind, shape, milli), _ in (waiting + running).most_common()
    )
    return Table(name="Jobs", columns=JOB_COLUMNS, rows=rows, keys=2, shown=TYPES_SHOWN)


def job_shapes(jobs: Iterable[Job]) -> Counter[tuple[str, str, int]]:
    """Return the number of jobs by kind, shape in words, and GPU-milli of the first option."""
    counts = Counter[tuple[str, str, int]]()
    shapes: dict[int, tuple[str, int]] = {}  # jobs alike share their options
    for job in jobs:
        if id(job.options) not in shapes:
            shapes[id(job.options)] = _shape(job), job.options[0].gpu_milli
        counts[job.kind, *shapes[id(job.options)]] += 1
    return counts


def _shape(job: Job) -> str:
    shape = " + ".join(map(_leaf_shape, job.options[0].leaves))
    return shape + (f", or {plural(len(job.options) - 1, 'other way')}" if len(job.options) > 1 else "")


def _leaf_shape(leaf: Group) -> str:
    demand = leaf.demand
    if demand.gpus == 0:
        each = "no GPU"
    elif demand.gpu_milli < 1000:
        each = f"{gpus(demand.gpu_milli)} of a GPU"
    else:
        each = plural(demand.gpus, "GPU")
    workers = f"{leaf.fewest} to {leaf.workers}" if leaf.fewest != leaf.workers else f"{leaf.workers}"
    return each if leaf.workers == 1 else f"{workers} workers of {each}"


def _demand_table(instance: Instance) -> Table:
    """
    Return what running jobs hold and waiting jobs ask for, of what there is.

    Demand is that of each job's first option with all its workers.
    """
    machines = [instance.cluster.machine_of(node) for node in instance.cluster.nodes]
    held = [assignment for placement in instance.running for assignment in placement.assignments]
    running = {placement.job for placement in instance.running}
    leaves = [leaf for job in instance.jobs if job.id not in running for leaf in job.options[0].leaves]
    amounts = (
        (
            "GPUs",
            sum(len(machine.gpus) for machine in machines),
            instance.running_gpu_milli / 1000,
            sum(leaf.workers * leaf.demand.gpus * leaf.demand.gpu_milli for leaf in leaves) / 1000,
        ),
        (
            "cores",
            sum(machine.cpu_millicores for machine in machines) / 1000,
            sum(one.cpu_millicores for one in held) / 1000,
            sum(leaf.workers * leaf.demand.cpu_millicores for leaf in leaves) / 1000,
        ),
        (
            "memory, GiB",
            sum(machine.memory_mib for machine in machines) / 1024,
            sum(one.memory_mib for one in held) / 1024,
            sum(leaf.workers * leaf.demand.memory_mib for leaf in leaves) / 1024,
        ),
    )
    names = ("resource", "there is", "running jobs hold", "waiting jobs ask")
    columns = (*(Column(name=name) for name in names), Column(name="together", unit="fraction"))
    rows = tuple((*row, (row[2] + row[3]) / row[1] if row[1] else None) for row in amounts)
    return Table(name="Demand", columns=columns, rows=rows)
