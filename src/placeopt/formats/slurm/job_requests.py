"""The requests of Slurm jobs: numbers as Slurm writes them, and the workers that a request needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from placeopt.errors import BadInput
from placeopt.formats.json_entry import JsonEntry
from placeopt.formats.slurm.fields import GresRequest, Tres, parse_gres, parse_gres_request, parse_tres
from placeopt.model.base import MAX_MS

NO_NUMBER = 0xFFFFFFFE
"""What Slurm writes for 'none' where a number must stand."""
NO_SPECIALIZATION = (0, 0x7FFE, 0xFFFE)
"""The same for cores and threads kept for the system."""
MAX_RANGE = 64
"""Largest number of alternative node counts of one job (``-N2-4`` has three); each becomes an option."""


class JobLeftOut(Exception):
    """A waiting job has a request that is not read; the text is the reason."""


def unreadable_field(entry: JsonEntry, error: BadInput) -> str:
    """Return the reason for a job of which a field cannot be read, by the field's name."""
    text = str(error)
    text = text[text.index(entry.where) + len(entry.where) :] if entry.where in text else text
    return f"cannot be read: {text.lstrip('.: ').split(':')[0][:60]}"


def slurm_number(entry: JsonEntry, key: str) -> int | None:
    """Return a number as Slurm writes it: plain, or ``{"set": ..., "infinite": ..., "number": ...}``; None if unset."""
    value = entry.raw(key)
    if isinstance(value, dict):
        inner = entry.entry(key)
        if not inner.flag("set") or inner.flag("infinite"):
            return None
        return inner.integer("number", 0, 2**64)
    if value is None:
        return None
    count = entry.integer(key, 0, 2**64)
    return None if count >= NO_NUMBER and count in (NO_NUMBER, NO_NUMBER + 1, 2**64 - 2, 2**64 - 1) else count


def milliseconds(entry: JsonEntry, key: str, unit: int) -> int | None:
    """Return a time in ms, from a number of ``unit`` ms each; None if it is unset or beyond the model's range."""
    count = slurm_number(entry, key)
    return None if count is None or unit * count > MAX_MS else unit * count


def gres_requests(entry: JsonEntry, *parts: str) -> dict[str, GresRequest]:
    """Return what a job requests per node, task, job or socket, by the name of the part."""
    return {part: entry.parsed(f"tres_per_{part}", parse_gres_request) for part in parts}


def is_exclusive(entry: JsonEntry) -> bool:
    """Return whether a job has its nodes to itself; `JobLeftOut` where only to its user, account group or topology."""
    words = {word.lower() for key in ("shared", "exclusive") for word in entry.words(key)}
    if odd := words - {"", "none", "exclusive", "true", "false", "shared", "oversubscribe", "ok", "no"}:
        raise JobLeftOut(f"asks for --exclusive={min(odd)[:30]}")
    return bool(words & {"none", "exclusive", "true"})


@dataclass(frozen=True)
class WorkerShape:
    """Workers of equal size, each on a node of its own or anywhere."""

    workers: int
    gpus: int
    cpus: int = 0
    memory_mib: int = 0
    models: tuple[str, ...] = ()
    alone: bool = False
    """Each worker has a node of its own."""
    nodes: int | None = None
    """Exact number of nodes, with any number of workers each; None: any number."""
    per_node: int | None = None
    """Most workers of a node."""
    named: tuple[tuple[str, int], ...] = ()
    """Other generic resources of one worker."""


def requested_shapes(entry: JsonEntry) -> list[WorkerShape]:
    """
    Return the alternative shapes of a request: several if it names a range of nodes.

    A job on one node is one worker with all of it. ``--gres`` and ``--gpus-per-node`` make a worker a node,
    ``--gpus-per-task`` and CPU jobs one a task, ``--gpus`` with ``--cpus-per-gpu`` one a GPU. CPUs of a task are the
    job's divided by its tasks, where Slurm (22.05) does not list them. Raises `JobLeftOut` if the request is none of
    these: workers would have to differ, or the model lacks the rule; `BadInput` if a field is none that Slurm writes.
    """
    _refuse(entry)
    total = entry.parsed("tres_req_str", parse_tres)
    requests = gres_requests(entry, "node", "task", "job")
    others = [*total.others, *(name for request in requests.values() for name in request.others)]
    if others:
        raise JobLeftOut(f"asks for {others[0][:60]}")
    models = tuple(
        dict.fromkeys([*total.models, *(model for request in requests.values() for model in request.models)])
    )
    if len(models) > 1:
        raise JobLeftOut("asks for several types of GPUs")
    tasks = max(1, slurm_number(entry, "tasks") or 1)
    least = max(1, total.nodes or slurm_number(entry, "node_count") or 1)
    most = slurm_number(entry, "max_nodes") or None
    per_node, per_task = requests["node"].gpus, requests["task"].gpus
    named = requests["node"].named
    unread = [name for part in ("task", "job") for name, _ in requests[part].named]
    if unread or {name for name, _ in total.named} - {name for name, _ in named}:
        raise JobLeftOut(f"asks for {[*unread, *(name for name, _ in total.named)][0][:60]}, and not by node")
    per_job = requests["job"].gpus or (0 if per_node or per_task else total.gpus)
    if (per_task and per_job in (0, tasks * per_task) and not per_node) or (
        per_node and per_job == least * per_node and least == most and not per_task
    ):
        per_job = 0
    elif bool(per_node) + bool(per_task) + bool(per_job) > 1:
        raise JobLeftOut("asks for GPUs in several ways")
    if most is None and tasks <= least and not per_job:
        most = least  # a task is on one node
    if most is not None and not least <= most < least + MAX_RANGE:
        raise JobLeftOut("a range of nodes that is empty or too wide")
    sizes = _Sizes(entry, total, tasks)
    if most == 1:
        gpus = per_node or per_task * tasks or per_job
        shapes = [WorkerShape(1, gpus, sizes.cpus(tasks, gpus, 1), sizes.memory(tasks, gpus), alone=True)]
    elif not per_job and (per_node or named or (least == most and sizes.tasks_on(least))):
        shapes = _worker_a_node(per_node, per_task, sizes, least, most)
    else:
        shapes = _worker_anywhere(per_task, per_job, sizes, tasks, least, most)
    if named and not all(shape.alone for shape in shapes):
        raise JobLeftOut(f"asks for {named[0][0][:60]} by node, and for workers that are not whole nodes")
    return [replace(shape, models=models if shape.gpus else (), named=named) for shape in shapes]


REFUSED = {
    "contiguous": "asks for --contiguous",
    "het_job_id": "is a part of a heterogeneous job",
    "tres_per_socket": "asks for --gpus-per-socket",
    "licenses": "asks for --licenses",
    "burst_buffer": "asks for a burst buffer",
    "minimum_tmp_disk_per_node": "asks for --tmp",
    "required_switches": "asks for --switches",
    "batch_features": "asks for --batch",
    "network": "asks for --network",
    "sockets_per_node": "asks for --sockets-per-node",
    "sockets_per_board": "asks for sockets per board",
    "cores_per_socket": "asks for --cores-per-socket",
    "threads_per_core": "asks for --threads-per-core",
    "tasks_per_core": "asks for --ntasks-per-core",
    "tasks_per_socket": "asks for --ntasks-per-socket",
    "tasks_per_board": "asks for tasks per board",
    "tasks_per_tres": "asks for --ntasks-per-gpu",
    "core_spec": "asks for --core-spec",
    "thread_spec": "asks for --thread-spec",
}
"""Field of a waiting job -> the reason for which the job is left out if the field is set."""


def _refuse(entry: JsonEntry) -> None:
    for key, words in REFUSED.items():
        value = entry.raw(key)
        there = bool(value)
        if there and not isinstance(value, str | bool):
            count = slurm_number(entry, key) or 0
            there = count not in (NO_SPECIALIZATION if key.endswith("_spec") else (0, 0xFFFF, 0xFFFE))
        if there:
            raise JobLeftOut(words)


class _Sizes:
    """CPUs and memory of a number of tasks and GPUs on one node."""

    def __init__(self, entry: JsonEntry, total: Tres, tasks: int) -> None:
        self.per_task = max(1, slurm_number(entry, "cpus_per_task") or -(-total.cpus // tasks))
        self.per_gpu = _per_gpu(entry, "cpus_per_tres")
        self.least = slurm_number(entry, "minimum_cpus_per_node") or 0
        self.tasks_per_node = slurm_number(entry, "tasks_per_node") or 0
        self._by_gpu = _per_gpu(entry, "memory_per_tres")
        self._by_cpu = slurm_number(entry, "memory_per_cpu") or 0
        self._by_node = slurm_number(entry, "memory_per_node") or 0
        if not (self._by_gpu or self._by_cpu or self._by_node) and total.memory_mib:
            self._by_node = -(-total.memory_mib // max(1, total.nodes))
        self.memory_by_node = bool(self._by_node) and not (self._by_gpu or self._by_cpu)
        self._tasks = tasks

    def tasks_on(self, nodes: int) -> int:
        """Return the tasks of each of ``nodes`` nodes; 0 if the numbers may differ."""
        if self._tasks == nodes:
            return 1
        return self.tasks_per_node if self._tasks == nodes * self.tasks_per_node else 0

    def cpus(self, tasks: int, gpus: int, nodes: int) -> int:
        """Return CPUs; ``--mincpus`` counts where the worker has a whole number of nodes."""
        own = self.per_gpu * gpus if self.per_gpu and gpus else self.per_task * tasks
        return max(own, self.least * nodes)

    def memory(self, tasks: int, gpus: int) -> int:
        """Return MiB."""
        if self._by_gpu:
            return self._by_gpu * gpus
        return self._by_cpu * self.cpus(tasks, gpus, 0) if self._by_cpu else self._by_node


def _per_gpu(entry: JsonEntry, key: str) -> int:
    """Return the count of ``gres:gpu:4``, per GPU; 0 if the field is empty."""
    return max((gres.count for gres in entry.parsed(key, parse_gres) if gres.name == "gpu"), default=0)


def _worker_a_node(per_node: int, per_task: int, sizes: _Sizes, least: int, most: int | None) -> list[WorkerShape]:
    if most is None:
        raise JobLeftOut("asks for GPUs or memory by node, and any number of nodes")
    each = sizes.tasks_on(least)
    if not each or (each > 1 and least != most):
        raise JobLeftOut("may have more tasks on one of its nodes than on another")
    gpus = per_node or per_task * each
    cpus, memory = sizes.cpus(each, gpus, 1), sizes.memory(each, gpus)
    return [WorkerShape(count, gpus, cpus, memory, alone=True) for count in range(least, most + 1)]


def _worker_anywhere(
    per_task: int, per_job: int, sizes: _Sizes, tasks: int, least: int, most: int | None
) -> list[WorkerShape]:
    if per_job and not sizes.per_gpu:
        raise JobLeftOut("asks for --gpus without --cpus-per-gpu, and not for one node")
    if sizes.memory_by_node:
        raise JobLeftOut("asks for memory by node, and any number of nodes or of tasks a node")
    workers, gpus = (per_job, 1) if per_job else (tasks, per_task)
    each = 0 if per_job else 1
    if sizes.least > max(1, sizes.tasks_per_node) * sizes.cpus(each, gpus, 0):
        raise JobLeftOut("asks for --mincpus")
    if most is None and least > 1:
        raise JobLeftOut("asks for a minimum number of nodes")
    shape = WorkerShape(
        workers,
        gpus,
        sizes.cpus(each, gpus, 0),
        sizes.memory(each, gpus),
        per_node=None if per_job else sizes.tasks_per_node or None,
    )
    if most is None:
        return [shape]
    return [replace(shape, nodes=count) for count in range(least, most + 1) if count <= workers]


def whole_nodes(shapes: Sequence[WorkerShape], node_gpus: Sequence[str], node_cpus: int) -> list[WorkerShape]:
    """
    Return the shapes of a job that has its nodes to itself (``--exclusive``): workers are nodes, with all of each.
    """
    whole = []
    for shape in shapes:
        nodes = shape.workers if shape.alone else shape.nodes
        if nodes is None:
            raise JobLeftOut("--exclusive on any number of nodes")
        if not shape.alone and (shape.workers * shape.gpus > nodes * len(node_gpus) or shape.per_node is not None):
            raise JobLeftOut("--exclusive with tasks or GPUs in unequal numbers")
        cpus = shape.cpus if shape.alone else -(-shape.workers * shape.cpus // nodes)
        memory = shape.memory_mib if shape.alone else -(-shape.workers * shape.memory_mib // nodes)
        gpus = shape.gpus if shape.alone else -(-shape.workers * shape.gpus // nodes)
        if gpus > len(node_gpus) or cpus > node_cpus or (shape.models and not set(node_gpus) <= set(shape.models)):
            raise JobLeftOut("--exclusive with more than its nodes have")
        whole.append(WorkerShape(nodes, len(node_gpus), node_cpus, memory, shape.models, alone=True, named=shape.named))
    return whole
