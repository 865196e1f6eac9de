"""
Constraints taken away by editing the records, and the question "does it fit?" by trying every placement.

What is edited is stated here again: the constraints of a job, and the single changes of a cluster or its policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from helpers.brute_force import placements
from placeopt.model import (
    Amounts,
    Communication,
    Instance,
    Job,
    Node,
    NodeConditions,
    Option,
    Plan,
    Policy,
    Queue,
    Running,
    Toleration,
)
from placeopt.problem import compile_problem

RESOURCES = {
    "cpu": "cpu_millicores",
    "memory": "memory_mib",
    "memory_bandwidth": "memory_bandwidth_mbps",
    "pcie_bandwidth": "pcie_bandwidth_mbps",
    "network_bandwidth": "network_bandwidth_mbps",
    "gpu_memory": "gpu_memory_mib",
}

CHOICES = ("nodes_allowed", "nodes_excluded", "node_selector", "node_affinity")

GROUPS = (
    *("utility", "queue", "drained", "taints", *CHOICES, *RESOURCES, "jobs_per_gpu"),
    *("gpu_model", "gpu_share", "workers_per_node", "single_node", "gang", "gpu_count"),
)
"""Constraints that a job may state, but for splits (``split:rack``) and named resources (``resource:licence``)."""
PLENTY: dict[str, dict[str, int | None]] = {
    "CPU": {"cpu_millicores": 100_000_000},
    "memory": {"memory_mib": 1_000_000_000},
    "memory bandwidth": {"memory_bandwidth_mbps": None},
    "PCIe bandwidth": {"pcie_bandwidth_mbps": None},
}


def groups_of(job: Job) -> list[str]:
    """Return the constraints that the job may state, each once."""
    groups = [f"split:{split.level}" for option in job.options for split in option.splits]
    groups += [f"resource:{name}" for option in job.options for name in option.demand.resources]
    return [*GROUPS, *dict.fromkeys(groups)]


def single_changes(round_: Instance, plan: Plan) -> Iterator[tuple[str, Instance]]:
    """Yield the single changes that may let waiting jobs start: in words, and the round with the change."""
    policy, cluster = plan.policy.values, round_.cluster
    waiting = {unplaced.job for unplaced in plan.unplaced}

    def edited(policy: Policy = policy, **update: object) -> Instance:
        return round_.model_copy(update={"policy": policy, "cluster": cluster.model_copy(update=update)})

    drained = sum(node.drained for node in cluster.nodes)
    if drained:
        nodes = tuple(node.model_copy(update={"drained": False}) for node in cluster.nodes)
        yield f"undrain all drained nodes ({drained:,})", edited(nodes=nodes)
    for taint in {taint for node in cluster.nodes for taint in node.taints}:
        left = [tuple(other for other in node.taints if other != taint) for node in cluster.nodes]
        pairs = zip(cluster.nodes, left, strict=True)
        yield f"remove taint {taint.text!r}", edited(nodes=tuple(n.model_copy(update={"taints": t}) for n, t in pairs))
    for queue in policy.queues:
        queues = tuple(Queue(id=one.id) if one is queue else one for one in policy.queues)
        yield f"lift the limits of queue {queue.id!r}", edited(policy.model_copy(update={"queues": queues}))
    named = {name for job in round_.jobs if job.id in waiting for o in job.options for name in o.demand.resources}
    for name in (*PLENTY, *named):
        updates = [PLENTY.get(name, {"resources": Amounts({**m.resources, name: 10**9})}) for m in cluster.machines]
        machines = tuple(m.model_copy(update=u) for m, u in zip(cluster.machines, updates, strict=True))
        yield f"enough {name} on every node", edited(machines=machines)
    for kind in {node.machine for node in cluster.nodes}:
        like = [node for node in cluster.nodes if node.machine == kind]
        labels = {k: v for k, v in like[0].labels.items() if all(node.labels.get(k) == v for node in like)}
        taints = tuple(taint for taint in like[0].taints if all(taint in node.taints for node in like))
        domain = like[0].domain if all(node.domain == like[0].domain for node in like) else None
        more = Node(id="one-more", machine=kind, labels=labels, taints=taints, domain=domain)
        yield f"one more node of type {kind!r}", edited(nodes=(*cluster.nodes, more))


def changeable(instance: Instance, plan: Plan) -> set[str]:
    """Return the running jobs that may be changed at all."""
    problem = compile_problem(instance, plan.policy.values)
    return {problem.job_ids[job] for job in problem.changeable}


def beside(instance: Instance, plan: Plan, job: str, *, whole_plan: bool, without: Iterable[str] = ()) -> Instance:
    """Return the round of one job, in which what runs (or what the plan placed) runs and cannot be changed."""
    held = plan.placements if whole_plan else instance.running
    without = set(without)
    running = tuple(
        Running(job=p.job, option=p.option, assignments=p.assignments)
        for p in held
        if p.job != job and p.job not in without
    )
    kept = {job, *(p.job for p in running)}
    return instance.model_copy(
        update={
            "jobs": tuple(j for j in instance.jobs if j.id in kept),
            "running": running,
            "policy": plan.policy.values,
        }
    )


def fits_somewhere(instance: Instance, job: str) -> bool:
    """Try every placement."""
    problem = compile_problem(instance)
    return next(placements(problem, problem.job_ids.index(job)), None) is not None


def fits_without(instance: Instance, job: str, groups: Sequence[str]) -> bool:
    """Tell whether the job fits once its record, the policy or the nodes are edited so that ``groups`` are gone."""
    return any(fits_somewhere(edited, job) for edited in edits(instance, job, groups))


def edits(instance: Instance, job: str, groups: Sequence[str]) -> Iterator[Instance]:
    """Yield rounds of which one must have room for the job: more than one where the gang may shrink."""
    policy, cluster, groups = instance.policy, instance.cluster, list(groups)
    record = next(j for j in instance.jobs if j.id == job)
    fields: dict[str, object] = {"communication": Communication()}
    if "queue" in groups:
        fields["queue"] = None
    if "utility" in groups:
        fields["utility_min_thousandths"] = None
    record = record.with_conditions(**{group: getattr(NodeConditions(), group) for group in groups if group in CHOICES})
    if "taints" in groups:
        record = record.with_conditions(tolerations=(Toleration(operator="Exists"),))
    if "drained" in groups:
        nodes = tuple(node.model_copy(update={"drained": False}) for node in cluster.nodes)
        cluster = cluster.model_copy(update={"nodes": nodes})
    if "jobs_per_gpu" in groups:
        policy = without_job_limit(policy)
    for options in product(*(list(edited_options(option, groups)) for option in record.options)):
        edited = record.model_copy(update={**fields, "options": options})
        yield instance.model_copy(
            update={"policy": policy, "cluster": cluster, "jobs": replaced(instance.jobs, edited)}
        )


def without_job_limit(policy: Policy) -> Policy:
    """Let any number of jobs on a GPU, and leave shares as they bind."""
    mode = "overcommit" if policy.share_mode == "overcommit" else "fraction"
    most = 1000 if mode == "overcommit" else None
    return policy.model_copy(update={"share_mode": mode, "jobs_per_gpu_max": most})


def edited_options(option: Option, groups: Sequence[str]) -> Iterator[Option]:
    """Yield the option without the groups, once for each number of workers if the gang is free to shrink."""
    demand: dict[str, object] = {field: 0 for group, field in RESOURCES.items() if group in groups}
    demand["resources"] = Amounts(
        {name: amount for name, amount in option.demand.resources.items() if f"resource:{name}" not in groups}
    )
    if "gpu_model" in groups:
        demand["gpu_models"] = ()
    if "gpu_share" in groups and option.demand.gpus == 1:
        demand["gpu_milli"] = 1
    if "gpu_count" in groups:
        demand |= {"gpus": 0, "gpu_milli": 1000, "gpu_models": (), "gpu_memory_mib": 0}
    fields: dict[str, object] = {"demand": option.demand.model_copy(update=demand)}
    if "single_node" in groups:
        fields["single_node"] = False
    if "workers_per_node" in groups:
        fields["workers_per_node_max"] = None
    fields["splits"] = tuple(split for split in option.splits if f"split:{split.level}" not in groups)
    option = option.model_copy(update=fields)
    if "gang" not in groups:
        yield option
        return
    for workers in range(1, option.workers + 1):
        smaller = resized(option, workers)
        if smaller is not None:
            yield smaller


def resized(option: Option, workers: int) -> Option | None:
    """Return the option as a gang of ``workers``, or None where a split with stated workers cannot have that many."""
    if any(split.workers is not None and workers % split.domains for split in option.splits):
        return None
    splits = tuple(
        split if split.workers is None else split.model_copy(update={"workers": workers // split.domains})
        for split in option.splits
    )
    return option.model_copy(update={"workers": workers, "workers_min": None, "value_per_worker": 0, "splits": splits})


def replaced(jobs: Sequence[Job], job: Job) -> tuple[Job, ...]:
    """Put ``job`` in the place of the one of its name."""
    return tuple(job if other.id == job.id else other for other in jobs)
