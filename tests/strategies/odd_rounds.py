"""Rounds in which something changed under what runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pydantic import ValidationError

from helpers.brute_force import combinations_up_to
from helpers.plan_records import plan_of
from placeopt import BadInput, violations
from placeopt.model import Instance, Job, Queue, Record
from placeopt.problem import compile_problem
from strategies.choice import Choice
from strategies.rounds import MOST_COMBINATIONS, MOST_PLACEMENTS, make_round

T = TypeVar("T", bound=Record)
MOST = {"cpu_millicores": 8000, "memory_mib": 40_000}
MOST |= {"memory_bandwidth_mbps": 4000, "pcie_bandwidth_mbps": 4000, "network_bandwidth_mbps": 3000}


def make_odd_round(choice: Choice) -> Instance:
    """Rounds in which something changed under what runs: limits lowered, nodes and GPUs gone, demands changed."""
    round_ = make_round(choice, changes=True, minima=False)
    for _ in range(choice.number(1, 3)):
        try:
            edited = Instance.model_validate(choice.pick(EDITS)(choice, round_).model_dump(by_alias=True))
        except ValidationError:  # an edit that makes the file contradict itself is not made
            continue
        if _stands(edited):
            round_ = edited
    return round_


def _stands(round_: Instance) -> bool:
    """Return whether what runs may stay as it is, else the round contradicts itself; and all plans can be listed."""
    try:
        problem = compile_problem(round_)
    except BadInput:
        return False
    if combinations_up_to(problem, MOST_PLACEMENTS) > 10 * MOST_COMBINATIONS:
        return False
    return not violations(round_, plan_of(problem, tuple(problem.running.get(j) for j in range(problem.num_jobs))))


def _edited(round_: Instance, **update: Any) -> Instance:
    return round_.model_copy(update={"cluster": round_.cluster.model_copy(update=update)})


def _ruled(round_: Instance, **update: Any) -> Instance:
    return round_.model_copy(update={"policy": round_.policy.model_copy(update=update)})


def _one_of(choice: Choice, records: Sequence[T], update: dict[str, Any]) -> tuple[T, ...]:
    """Change one of the records."""
    chosen = choice.pick(records)
    return _each(records, lambda record: update if record is chosen else {})


def _each(records: Sequence[T], change: Callable[[T], dict[str, Any]]) -> tuple[T, ...]:
    """Change every record."""
    return tuple(record.model_copy(update=change(record)) for record in records)


def _smaller_machine(choice: Choice, round_: Instance) -> Instance:
    """Every node of a type has little of something."""
    name = choice.pick(tuple(MOST))
    machines = _one_of(choice, round_.cluster.machines, {name: choice.number(0, MOST[name], 500)})
    return _edited(round_, machines=machines)


def _slower_links(choice: Choice, round_: Instance) -> Instance:
    """Uplinks of domains are slow."""
    return _edited(
        round_, domains=_each(round_.cluster.domains, lambda _: {"uplink_mbps": choice.number(0, 3000, 500)})
    )


def _other_gpus(choice: Choice, round_: Instance) -> Instance:
    """GPUs have little memory, or are another model."""
    update = {"memory_mib": choice.number(0, 20_000, 2000)} if choice.chance(0.6) else {"model": "other"}
    return _edited(
        round_, machines=_each(round_.cluster.machines, lambda one: {"gpus": _each(one.gpus, lambda _: update)})
    )


def _lost_gpu(choice: Choice, round_: Instance) -> Instance:
    """The last GPU of one node is no longer listed."""
    node = choice.pick(round_.cluster.nodes)
    machine = next(one for one in round_.cluster.machines if one.id == node.machine)
    left, matrix = max(0, len(machine.gpus) - 1), machine.gpu_distance_matrix
    update = {
        "id": f"{machine.id}-less",
        "gpus": machine.gpus[:left],
        "links": tuple(link for link in machine.links if max(link.gpus) < left),
        "gpu_distance_matrix": None if matrix is None else tuple(row[:left] for row in matrix[:left]),
    }
    nodes = _each(round_.cluster.nodes, lambda one: {"machine": update["id"] if one is node else one.machine})
    return _edited(round_, machines=(*round_.cluster.machines, machine.model_copy(update=update)), nodes=nodes)


def _lost_node(choice: Choice, round_: Instance) -> Instance:
    """A node is no longer listed."""
    gone = choice.pick(round_.cluster.nodes)
    left = tuple(node for node in round_.cluster.nodes if node is not gone)
    return _edited(round_, nodes=left)


def _lower_quota(choice: Choice, round_: Instance) -> Instance:
    """Queues may hold little."""

    def less(queue: Queue) -> dict[str, Any]:
        if choice.chance(0.5):
            return {"dominant_share_percent": choice.number(0, 60, 10), "borrow_percent": 0}
        return {"quota": queue.quota.model_copy(update={"gpu_milli": choice.number(0, 3000, 250)})}

    return _ruled(round_, queues=_each(round_.policy.queues, less))


def _fewer_to_share(choice: Choice, round_: Instance) -> Instance:
    """GPUs go to fewer jobs at once."""
    if round_.policy.share_mode == "fraction" and choice.chance(0.4):
        return _ruled(round_, share_mode="exclusive", jobs_per_gpu_max=None)
    return _ruled(round_, jobs_per_gpu_max=choice.number(1, 2))


def _other_shape(choice: Choice, round_: Instance) -> Instance:
    """Options of running jobs ask for another shape than the one that runs."""
    runs = {running.job for running in round_.running}
    update = choice.pick(({"single_node": True, "splits": ()}, {"workers_per_node_max": 1}))

    def shaped(job: Job) -> dict[str, Any]:
        return {"options": _each(job.options, lambda _: update)} if job.id in runs and choice.chance(0.5) else {}

    return round_.model_copy(update={"jobs": _each(round_.jobs, shaped)})


def _drained(choice: Choice, round_: Instance) -> Instance:
    """A node takes no new work."""
    return _edited(round_, nodes=_one_of(choice, round_.cluster.nodes, {"drained": True}))


EDITS: tuple[Callable[[Choice, Instance], Instance], ...] = (
    _smaller_machine,
    _smaller_machine,
    _slower_links,
    _other_gpus,
    _lost_gpu,
    _lost_node,
    _lower_quota,
    _fewer_to_share,
    _other_shape,
    _drained,
)
