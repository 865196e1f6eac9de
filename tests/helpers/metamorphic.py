"""
Relations between the optima of a round and of a changed one: what must hold although neither optimum is known.

A solver answers with an interval for each level, from what its plan reaches to what it proves; proven levels are
points. Each relation is stated between intervals, so it holds for exact answers of small rounds, where it is an
equality or an inequality of optima, and for bounds of rounds of any size: no bound may lie below what is reached.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.random import Generator

from placeopt.model import Instance, Plan
from placeopt.problem import compile_problem
from placeopt.terms.rules import relaxed
from placeopt.terms.rules.minimal_utility import applies

Record = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """
    What is known of a round's optimum, both ends included; and the plan that reaches it.

    Attributes
    ----------
    value
        (reached, bound).
    cost
        (bound, reached) at the greatest value; None where the value is not proven, or no cost counts.
    weights
        Weight and worst case of every cost.
    """

    value: tuple[int, int]
    cost: tuple[int, int] | None
    weights: dict[str, tuple[int, int]]
    plan: Plan


Solve = Callable[[Instance], Answer]


def provable(instance: Instance) -> bool:
    """Whether an exact method must prove the value: not where models state only a part of a rule."""
    return not relaxed(compile_problem(instance))


def answer_of(plan: Plan) -> Answer:
    """Read the intervals off a plan."""
    value, cost = plan.levels[0], plan.levels[1] if len(plan.levels) > 1 else None
    bound = 2**62 if value.bound is None else value.bound
    known = cost is not None and value.objective == bound
    return Answer(
        value=(value.objective, bound),
        cost=(cost.bound or 0, cost.objective) if known and cost is not None else None,
        weights={name: (c.weight, c.worst) for name, c in plan.costs.items()},
        plan=plan,
    )


@dataclass(frozen=True)
class Trial:
    """A round, its answer, and how to get that of another."""

    instance: Instance
    before: Answer
    solve: Solve
    rng: Generator

    def chance(self, p: float) -> bool:
        """Return True with probability ``p``."""
        return bool(self.rng.random() < p)

    def shuffled(self, things: Sequence[Any]) -> list[Any]:
        """Return ``things`` in another order."""
        return [things[i] for i in self.rng.permutation(len(things))]


Relation = Callable[[Trial], list[str]]


def permuted(trial: Trial) -> list[str]:
    """
    Other names, other order, GPUs of each machine numbered otherwise: the same optimum.

    Nothing in the model refers to a name or a position but to say which thing is meant; so renaming carries every plan
    of one round to a plan of the other with the same options, distances and company, back and forth. One position does
    count: where ``fgd`` takes the jobs as its target workload, a job's first option speaks for it, and stays the first.
    """
    return _same(trial.before, trial.solve(_renamed(trial)))


def scaled(trial: Trial) -> list[str]:
    """
    Values and prices x c; CPU, memory and each bandwidth, offered and asked for, x factors of their own: value x c,
    cost the same.

    Demands and capacities meet only in sums that must not exceed a share of a capacity:
    ``k load <= k capacity p / 100`` says the same as without k, rounding down included, since the load is whole. Costs
    see ratios of them at most.
    """
    c = int(trial.rng.integers(2, 6))
    factors = {unit: int(trial.rng.integers(2, 6)) for unit in ("cpu", "memory", "memory_bandwidth", "pcie", "network")}
    record = _record(trial.instance)
    _multiply(record, {**factors, "value": c})
    return _same(trial.before, trial.solve(_instance(record)), times=c)


def added_node(trial: Trial) -> list[str]:
    """
    An idle node more: the value never falls; it is the same if no job may use the node.

    Every plan of the smaller round is one of the larger: no rule asks anything of a node that no job is on, and what a
    queue may hold by its dominant share can only grow with the cluster. The other way round, if none may use it, every
    plan of the larger round is one of the smaller, where no queue is limited by such a share.
    The cost level may change either way: its weights are relative to worst cases of the whole cluster. And so does what
    minimal utilities allow, where the best paths of the hardware, with which they compare, are others with the node.
    """
    record = _record(trial.instance)
    domains = [None, *(domain["id"] for domain in record["cluster"]["domains"])]
    node = {
        "id": "added",
        "machine": trial.shuffled(record["cluster"]["machines"])[0]["id"],
        "domain": trial.shuffled(domains)[0],
        "drained": trial.chance(0.5),
    }
    place = int(trial.rng.integers(len(record["cluster"]["nodes"]) + 1))
    record["cluster"]["nodes"].insert(place, node)
    larger = _instance(record)
    if not _same_best_paths(trial.instance, larger):
        return []
    after = trial.solve(larger)
    faults = _at_most(trial.before.value, after.value, "with a node more the value falls")
    shares = any(queue.dominant_share_percent is not None for queue in trial.instance.policy.queues)
    if node["drained"] and not shares:
        faults += _at_most(after.value, trial.before.value, "a node that no job may use raises the value")
    return faults


def dropped_job(trial: Trial) -> list[str]:
    """
    A job less: the value falls by at most what the job is worth in the plan; if it waited, it does not change.

    The plan without the job is one of the smaller round: room, links and quotas are only freed, prices of other jobs'
    changes stay, and none is left to pay for the job's own. The other way round, a plan of the smaller round with the
    job waiting is one of the larger, if the job does not run already: to wait costs nothing. A job that runs holds its
    room or has to be paid for, so without it the value may rise by any amount.
    """
    if not trial.instance.jobs:
        return []
    job = trial.shuffled(trial.instance.jobs)[0]
    record = _record(trial.instance)
    record["jobs"] = [entry for entry in record["jobs"] if entry["id"] != job.id]
    record["running"] = [entry for entry in record["running"] if entry["job"] != job.id]
    after = trial.solve(_instance(record))
    (reached, bound), worth = trial.before.value, _worth(trial.before.plan, trial.instance, job.id)
    faults = _at_most((reached - worth, bound), after.value, f"the value falls by more than the {worth} of the job")
    if all(held.job != job.id for held in trial.instance.running):
        faults += _at_most(after.value, trial.before.value, "without a waiting job the value rises")
    return faults


def merged_nodes(trial: Trial) -> list[str]:
    """
    Machines listed once a node, and jobs that differ in nothing that counts, or alike machines once: the same optimum.

    A machine's record says what it is like, not which it is; a toleration of a taint that no node has allows nothing.
    What changes is which nodes and jobs count as one class, and so the size of the models.
    """
    apart, merged = _record(trial.instance), _record(trial.instance)
    machines = {machine["id"]: machine for machine in apart["cluster"]["machines"]}
    apart["cluster"]["machines"] = []
    for i, node in enumerate(apart["cluster"]["nodes"]):
        apart["cluster"]["machines"].append({**machines[node["machine"]], "id": f"only-{i}"})
        node["machine"] = f"only-{i}"
    for i, job in enumerate(apart["jobs"]):
        asks = job["conditions"]
        asks["tolerations"] = [*asks["tolerations"], {"key": f"only-{i}"}]
    first: dict[str, str] = {}
    alike: dict[str, str] = {}
    for machine in merged["cluster"]["machines"]:
        alike[machine["id"]] = first.setdefault(json.dumps({**machine, "id": ""}, sort_keys=True), machine["id"])
    for node in merged["cluster"]["nodes"]:
        node["machine"] = alike[node["machine"]]
    faults = _same(trial.before, trial.solve(_instance(apart)))
    if any(name != representative for name, representative in alike.items()):
        faults += _same(trial.before, trial.solve(_instance(merged)))
    return faults


RELATIONS: dict[str, Relation] = {
    "permuted": permuted,
    "scaled": scaled,
    "added node": added_node,
    "dropped job": dropped_job,
    "merged nodes": merged_nodes,
}


def _same(before: Answer, after: Answer, *, times: int = 1) -> list[str]:
    """The optimum is ``times`` as large as before, the cost is the same."""
    reached, bound = before.value
    expected = (times * reached, times * bound)
    faults = _at_most(expected, after.value, "the value falls") + _at_most(after.value, expected, "the value rises")
    if after.weights != before.weights:
        faults.append(f"weights of the cost level: {after.weights}, expected {before.weights}")
    elif before.cost is not None and after.cost is not None:
        faults += _at_most(before.cost, after.cost, "the cost falls") + _at_most(
            after.cost, before.cost, "the cost rises"
        )
    return faults


def _at_most(small: tuple[int, int], large: tuple[int, int], otherwise: str) -> list[str]:
    """Complain if the optimum in the interval ``small`` must be above that in ``large``."""
    return [] if small[0] <= large[1] else [f"{otherwise}: {small} against {large}"]


def _worth(plan: Plan, instance: Instance, name: str) -> int:
    """What a job adds to the value of a plan, prices left out."""
    held = plan.placement_of(name)
    if held is None:
        return 0
    option = next(o for job in instance.jobs if job.id == name for o in job.options if o.id == held.option)
    workers = sum(len(assignment.workers) for assignment in held.assignments)
    return option.worth(workers)


def _same_best_paths(small: Instance, large: Instance) -> bool:
    """Whether utilities, if asked for, compare paths with the same in both; options that fit nowhere have 0."""
    before, after = compile_problem(small), compile_problem(large)
    same = (before.best_path == after.best_path) | (before.best_path == 0)
    longest = [problem.topology.max_machine_distance for problem in (before, after)]
    return not applies(before) or (bool(same.all()) and longest[0] == longest[1])


def _record(instance: Instance) -> Record:
    record: Record = json.loads(instance.model_dump_json())
    return record


def _instance(record: Record) -> Instance:
    return Instance.model_validate_json(json.dumps(record))


UNITS = (
    ("cpu_millicores", "cpu"),
    ("memory_bandwidth_mbps", "memory_bandwidth"),
    ("pcie_bandwidth_mbps", "pcie"),
    ("_mbps", "network"),
    ("memory_mib", "memory"),
    ("_price", "value"),
    ("_price_per_worker", "value"),
    ("value_per_worker", "value"),
    ("value", "value"),
)
"""Ends of field names, the first that fits decides, and the unit that they are in."""


def _multiply(record: Any, factors: dict[str, int]) -> None:
    """Multiply every number whose field's name says a unit, in place."""
    for key, entry in record.items() if isinstance(record, dict) else enumerate(record):
        if isinstance(entry, dict | list):
            _multiply(entry, factors)
        elif isinstance(entry, int) and isinstance(key, str):
            unit = next((unit for end, unit in UNITS if key.endswith(end)), None)
            if unit is not None:
                record[key] = entry * factors[unit]


def _renamed(trial: Trial) -> Instance:
    record = _record(trial.instance)
    cluster, jobs, running = record["cluster"], record["jobs"], record["running"]
    names = {
        kind: dict(zip(ids, trial.shuffled([f"{kind}-{i}" for i in range(len(ids))]), strict=True))
        for kind, ids in (
            ("job", [job["id"] for job in jobs]),
            ("node", [node["id"] for node in cluster["nodes"]]),
            ("machine", [machine["id"] for machine in cluster["machines"]]),
        )
    }
    numbers = {machine["id"]: trial.rng.permutation(len(machine["gpus"])).tolist() for machine in cluster["machines"]}
    machine_of = {node["id"]: node["machine"] for node in cluster["nodes"]}
    for machine in cluster["machines"]:
        _renumber(machine, numbers[machine["id"]])
        machine["id"] = names["machine"][machine["id"]]
    for node in cluster["nodes"]:
        node["id"], node["machine"] = names["node"][node["id"]], names["machine"][node["machine"]]
    for job in jobs:
        job["id"] = names["job"][job["id"]]
        _rename_nodes(job["conditions"], names["node"])
        first = int(trial.instance.policy.fragmentation.form == "fgd")
        job["options"] = [*job["options"][:first], *trial.shuffled(job["options"][first:])]
    for held in running:
        held["job"] = names["job"][held["job"]]
        for assignment in held["assignments"]:
            at = numbers[machine_of[assignment["node"]]]
            assignment["node"] = names["node"][assignment["node"]]
            assignment["gpus"] = {str(at[int(gpu)]): share for gpu, share in assignment["gpus"].items()}
            for worker in assignment["workers"]:
                worker["gpus"] = [at[gpu] for gpu in worker["gpus"]]
    for holder, field in ((cluster, "machines"), (cluster, "nodes"), (record, "jobs"), (record, "running")):
        holder[field] = trial.shuffled(holder[field])
    return _instance(record)


def _rename_nodes(conditions: Record, names: dict[str, str]) -> None:
    """Names of nodes stand in lists and as values of the label ``metadata.name``."""
    expressions = [expression for term in conditions["node_affinity"] for expression in term]
    by_name = [(expression, "values") for expression in expressions if expression["key"] == "metadata.name"]
    for record, field in [*by_name, (conditions, "nodes_allowed"), (conditions, "nodes_excluded")]:
        record[field] = record[field] and [names.get(name, name) for name in record[field]]
    selector = conditions["node_selector"]
    selector.update({key: names.get(name, name) for key, name in selector.items() if key == "metadata.name"})


def _renumber(machine: Record, new: list[int]) -> None:
    """GPU i becomes GPU ``new[i]``."""
    old = sorted(range(len(new)), key=lambda gpu: new[gpu])
    machine["gpus"] = [machine["gpus"][gpu] for gpu in old]
    for link in machine["links"]:
        link["gpus"] = [new[gpu] for gpu in link["gpus"]]
    matrix = machine["gpu_distance_matrix"]
    if matrix is not None:
        machine["gpu_distance_matrix"] = [[matrix[a][b] for b in old] for a in old]
