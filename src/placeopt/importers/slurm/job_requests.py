"""The requests of Slurm jobs: numbers as Slurm writes them, and the workers that a request needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from placeopt.documents.faults import make_record
from placeopt.errors import BadInput
from placeopt.importers.import_notes import ImportNotes
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.slurm.fields import expand_hosts, gpu_milli, parse_gres, parse_indices, parse_tres
from placeopt.importers.slurm.lists import is_set
from placeopt.model import Demand, Option, Split
from placeopt.model.base import MAX_MS, Amounts

MAX_RANGE = 64
"""Most alternative numbers of nodes of one job (``-N2-4`` has three); each becomes an option."""


class JobLeftOut(Exception):
    """A waiting job has a request that is not read; the text is the reason."""


class NotEligible(JobLeftOut):
    """A waiting job is held, or waits for a time or for other jobs, whatever it asks for."""


def reason_of(entry: JsonEntry, error: JobLeftOut | BadInput) -> str:
    """Return the reason for a job that is not read: the text, or the name of the field that cannot be read."""
    text = str(error)
    if isinstance(error, JobLeftOut):
        return text
    text = text[text.index(entry.where) + len(entry.where) :] if entry.where in text else text
    return f"cannot be read: {text.lstrip('.: ').split(':')[0][:60]}"


def leave_out(notes: ImportNotes, entry: JsonEntry, error: JobLeftOut | BadInput, jobs: Iterable[str]) -> None:
    """Record that jobs are left out for an error."""
    note = notes.not_eligible if isinstance(error, NotEligible) else notes.leave_out
    for job in jobs:
        note(reason_of(entry, error), job)


def slurm_number(entry: JsonEntry, key: str) -> int | None:
    """Return a number as Slurm writes it: plain, or ``{"set": ..., "infinite": ..., "number": ...}``; None if unset."""
    value = entry.raw(key)
    if isinstance(value, dict):
        inner = entry.entry(key)
        return inner.integer("number", 0, 2**64) if inner.flag("set") and not inner.flag("infinite") else None
    if value is None:
        return None
    count = entry.integer(key, 0, 2**64)
    return None if count in (0xFFFFFFFE, 0xFFFFFFFF, 2**64 - 2, 2**64 - 1) else count


def expand_node_list(entry: JsonEntry, key: str) -> list[str]:
    """Return the names of a list of nodes; `BadInput` where it cannot be read."""
    return entry.parsed(key, lambda text: [] if text in ("(null)", "N/A", "None assigned") else expand_hosts(text))


def milliseconds(entry: JsonEntry, key: str, unit: int) -> int | None:
    """Return a time in ms, from a number of ``unit`` ms each; None if it is unset or beyond the model's range."""
    count = slurm_number(entry, key)
    return None if count is None or unit * count > MAX_MS else unit * count


def node_count(option: Option) -> int | None:
    """Return the number of nodes on which a job runs; None: any."""
    if option.workers == 1 or option.workers_per_node_max == 1:
        return option.workers
    return option.splits[0].domains if option.splits else None


def with_amounts(option: Option, named: Mapping[str, int], **others: object) -> Option:
    """Return an option whose workers each take of named resources; ``others``: fields of what a worker needs."""
    resources = Amounts(sorted({**option.demand.resources, **named}.items()))
    demand = option.demand.model_copy(update={"resources": resources, **others})
    return option.model_copy(update={"demand": demand})


def make_option(entry: JsonEntry, demand: dict[str, Any], **fields: Any) -> Option:
    """Return an option of a job; ``demand``: fields of what each worker needs, models where it needs GPUs."""
    models = demand["gpu_models"] if demand["gpus"] else ()
    needs = make_record(Demand, entry.where, **{**demand, "gpu_models": models})
    time_ms = milliseconds(entry, "time_limit", 60_000)
    return make_record(Option, entry.where, demand=needs, run_time_ms=time_ms, **fields)


class Request:
    """
    What a job asks for, running or waiting.

    ``by``: GPUs and other generic resources per node, task, job or socket. ``exclusive``: Which other jobs may use its
    nodes: empty: all; ``none``: no other job; another word: jobs of the same user, account group or topology.
    """

    def __init__(self, entry: JsonEntry) -> None:
        self.by = {part: entry.parsed(f"tres_per_{part}", parse_tres) for part in ("node", "task", "job", "socket")}
        self.models = tuple(dict.fromkeys(model for one in self.by.values() for model in one.models))
        self.tasks = max(1, slurm_number(entry, "tasks") or 1)
        words = {word.lower() for key in ("shared", "exclusive") for word in entry.words(key)}
        words -= {"", "false", "shared", "oversubscribe", "ok", "no"}
        self.exclusive = min(words - {"none", "exclusive", "true"}, default="none") if words else ""


class WaitingRequest(Request):
    """
    What a waiting job asks for, as Slurm's fields state it; 0 where it asks for nothing.

    ``shares``: How many parts a GPU has, as ``gres/shard``. Those of a job on a node are of one GPU, as Slurm gives
    them (without ``MULTIPLE_SHARING_GRES_PJ``).
    """

    def __init__(self, entry: JsonEntry, shares: Mapping[str, int]) -> None:
        super().__init__(entry)
        self._entry = entry
        total, node, task, job = entry.parsed("tres_req_str", parse_tres), *list(self.by.values())[:3]
        counted = "license/" if is_set(entry.raw("licenses")) else ()  # of which that field is the sum
        for one in (total, node, task, job):
            if others := [name for name in one.others if not name.startswith(counted)]:
                raise JobLeftOut(f"asks for {others[0][:60]}")
            by_node = {*node.named, *node.shares} if one is total or one is node else set()
            if elsewhere := [name for name, _ in (*one.named, *one.shares) if name not in dict(by_node)]:
                raise JobLeftOut(f"asks for {elsewhere[0][:60]}, and not by node")
        self.named, self.models = (*node.named, *node.shares), tuple(dict.fromkeys((*self.models, *total.models)))
        if len(self.models) > 1:
            raise JobLeftOut("asks for several types of GPUs")
        self.gpu_milli = 1000
        for name, count in node.shares:
            self.gpu_milli = gpu_milli(count, shares.get(name, 0))
            if node.gpus or not self.gpu_milli:
                raise JobLeftOut(f"asks for {name}, and not for an equal part of a GPU")
            node = replace(node, gpus=1)

        self.tasks_per_node = slurm_number(entry, "tasks_per_node") or 0
        self.least = max(1, total.nodes or slurm_number(entry, "node_count") or 1)
        self.nodes = _numbers_of_nodes(entry, self.least)
        self.gpus_per_node, self.gpus_per_task = node.gpus, task.gpus
        per_job = job.gpus or (0 if node.gpus or task.gpus else total.gpus)
        together = task.gpus * self.tasks or (node.gpus * self.least if self.nodes == (self.least,) else 0)
        self.gpus_per_job = 0 if per_job == together else per_job
        if bool(node.gpus) + bool(task.gpus) + bool(self.gpus_per_job) > 1:
            raise JobLeftOut("asks for GPUs in several ways")
        fills = self.tasks <= self.least or self.tasks_of_each_node
        if self.nodes is None and not self.gpus_per_job and fills:
            self.nodes = (self.least,)  # a task is on one node, and a node has room for --ntasks-per-node at least

        self.cpus_per_task = max(1, slurm_number(entry, "cpus_per_task") or -(-total.cpus // self.tasks))
        self.cpus_per_gpu = _per_gpu(entry, "cpus_per_tres")
        self.least_cpus = slurm_number(entry, "minimum_cpus_per_node") or 0
        self._memory_per_gpu = _per_gpu(entry, "memory_per_tres")
        self._memory_per_cpu = slurm_number(entry, "memory_per_cpu") or 0
        stated = self._memory_per_gpu or self._memory_per_cpu
        self.memory_per_node = 0 if stated else slurm_number(entry, "memory_per_node") or 0
        if not (stated or self.memory_per_node) and total.memory_mib:
            self.memory_per_node = -(-total.memory_mib // max(1, total.nodes))

    @property
    def tasks_of_each_node(self) -> int:
        """The tasks of each node, where all have equally many on the least number of nodes; else 0."""
        if self.tasks == self.least:
            return 1
        return self.tasks_per_node if self.tasks == self.least * self.tasks_per_node else 0

    def cpus(self, tasks: int, gpus: int, nodes: int) -> int:
        """Return CPUs; ``--mincpus`` counts where the worker has a whole number of nodes."""
        own = self.cpus_per_gpu * gpus if self.cpus_per_gpu and gpus else self.cpus_per_task * tasks
        return max(own, self.least_cpus * nodes)

    def memory(self, tasks: int, gpus: int) -> int:
        """Return MiB."""
        if self._memory_per_gpu:
            return self._memory_per_gpu * gpus
        return self._memory_per_cpu * self.cpus(tasks, gpus, 0) if self._memory_per_cpu else self.memory_per_node

    def options(self) -> list[Option]:
        """
        Return the alternative options of a job, of value 0: one for each number of nodes that it allows.

        Of the ways to ask in Slurm the first that applies decides what a worker is:

        ========================================================  =========  ===========================================
        the job asks for                                          a worker   with
        ========================================================  =========  ===========================================
        one node (``-N1``), in whatever way for GPUs              the node   all that the job asks for
        GPUs of the job (``--gpus``)                              a GPU      ``--cpus-per-gpu``, memory by CPU or by GPU
        GPUs or other resources of a node (``--gres``,            a node     these, and the CPUs of its tasks
        ``--gpus-per-node``); as many tasks on each of its nodes
        GPUs of a task (``--gpus-per-task``), or none             a task     these and its CPUs, memory by CPU or by GPU
        ========================================================  =========  ===========================================

        GPUs of the job beside those of a task or node repeat them, if they are as many. Without ``--cpus-per-gpu`` a
        GPU of the job has a CPU, where tasks have one each and are at most as many as the GPUs: never fewer CPUs than
        Slurm gives. GPUs of a socket are not read. CPUs of a task are the job's divided by its tasks, where Slurm
        (22.05) does not list them. Raises `JobLeftOut` if the request is none of these: workers would have to differ,
        or the model lacks the rule; `BadInput` if a field is none that Slurm writes.
        """
        if self.exclusive not in ("", "none"):
            raise JobLeftOut(f"asks for --exclusive={self.exclusive[:30]}")
        if self.nodes == (1,):
            gpus = self.gpus_per_node or self.gpus_per_task * self.tasks or self.gpus_per_job
            options = [self._option(1, gpus, self.cpus(self.tasks, gpus, 1), self.tasks)]
        elif self.gpus_per_job:
            tasks = 0 if self.cpus_per_gpu else 1
            if tasks and (self.cpus_per_task > 1 or self.tasks > self.gpus_per_job):
                raise JobLeftOut("asks for --gpus without --cpus-per-gpu, and not for one node or one CPU a task")
            options = self._anywhere(self.gpus_per_job, tasks, 1, None)
        elif self.gpus_per_node or self.named or (self.nodes == (self.least,) and self.tasks_of_each_node):
            options = self._worker_a_node()
        else:
            options = self._anywhere(self.tasks, 1, self.gpus_per_task, self.tasks_per_node or None)
        if self.named and not all(node_count(option) == option.workers for option in options):
            raise JobLeftOut(f"asks for {self.named[0][0][:60]} by node, and for workers that are not whole nodes")
        return options

    def _option(self, workers: int, gpus: int, cpus: int, tasks: int, **where: Any) -> Option:
        """Return an option of workers of so many GPUs, CPUs and tasks each."""
        demand = {
            "gpus": gpus,
            "gpu_milli": self.gpu_milli,
            "gpu_models": self.models,
            "cpu_millicores": 1000 * cpus,
            "memory_mib": self.memory(tasks, gpus),
            "resources": dict(self.named),
        }
        return make_option(self._entry, demand, id=f"nodes{workers}", value=0, workers=workers, **where)

    def _worker_a_node(self) -> list[Option]:
        tasks = self.tasks_of_each_node
        if self.nodes is None:
            raise JobLeftOut("asks for GPUs or memory by node, and any number of nodes")
        if not tasks or (tasks > 1 and len(self.nodes) > 1):
            raise JobLeftOut("may have more tasks on one of its nodes than on another")
        gpus = self.gpus_per_node or self.gpus_per_task * tasks
        cpus = self.cpus(tasks, gpus, 1)
        return [
            self._option(count, gpus, cpus, tasks, workers_per_node_max=1 if count > 1 else None)
            for count in self.nodes
        ]

    def _anywhere(self, workers: int, tasks: int, gpus: int, per_node: int | None) -> list[Option]:
        """Return the options of workers of ``tasks`` tasks and ``gpus`` GPUs each, at most ``per_node`` on a node."""
        if self.memory_per_node:
            raise JobLeftOut("asks for memory by node, and any number of nodes or of tasks a node")
        cpus = self.cpus(tasks, gpus, 0)
        if self.least_cpus > max(1, self.tasks_per_node) * cpus:
            raise JobLeftOut("asks for --mincpus")
        if self.nodes is None and self.least > 1:
            raise JobLeftOut("asks for a minimum number of nodes")
        option = self._option(workers, gpus, cpus, tasks, workers_per_node_max=per_node)
        numbers = {f"nodes{n}": (Split(level="node", domains=n),) for n in self.nodes or () if n <= workers}
        if self.nodes is not None and not numbers:
            raise JobLeftOut("asks for more nodes than it has tasks or GPUs")
        ways = [option.model_copy(update={"id": name, "splits": splits}) for name, splits in numbers.items()]
        return ways or [option]


def _numbers_of_nodes(entry: JsonEntry, least: int) -> tuple[int, ...] | None:
    """Return the numbers of nodes on which a job may run: a list (``-N2,4,8``) or a range; None: any number."""
    sizes, most = entry.words("job_size_str"), slurm_number(entry, "max_nodes")
    try:
        numbers = parse_indices(",".join(sizes)) if sizes else range(least, most + 1) if most else None
    except ValueError as error:
        raise BadInput(f"{entry.path('job_size_str')}: {error}") from None
    if numbers is not None and not 1 <= len(numbers) <= MAX_RANGE:
        raise JobLeftOut("a range of nodes that is empty or too wide")
    return None if numbers is None else tuple(numbers)


def _per_gpu(entry: JsonEntry, key: str) -> int:
    """Return the count of ``gres:gpu:4``, per GPU; 0 if the field is empty."""
    return max((gres.count for gres in entry.parsed(key, parse_gres) if gres.name == "gpu"), default=0)


def whole_nodes(options: Iterable[Option], kinds: Mapping[str, tuple[int, tuple[str, ...]]]) -> list[Option]:
    """
    Return the options of a job that has its nodes to itself (``--exclusive``): workers are nodes, with all of each.

    ``kinds``: Of its nodes by name, their CPUs and the models of their GPUs. Several nodes of a job are of one kind:
    where there are several, of each a worker takes ``node/KIND``, which is the whole node.
    """
    whole = []
    for option in options:
        nodes, demand = node_count(option), option.demand
        if nodes is None or option.workers_per_node_max not in (None, 1):
            raise JobLeftOut("--exclusive on any number of nodes, or with tasks in unequal numbers")
        each = -(-option.workers // nodes)
        for kind, (cpus, models) in kinds.items():
            odd = set(models).difference(demand.gpu_models or models)
            if odd or each * demand.gpus > len(models) or each * demand.cpu_millicores > 1000 * cpus:
                continue
            amounts = {"gpus": len(models), "gpu_milli": 1000, "cpu_millicores": 1000 * cpus}
            of_kind = {f"node/{kind}": 1} if len(kinds) > 1 else {}
            one = with_amounts(option, of_kind, memory_mib=each * demand.memory_mib, **amounts)
            alone = {"workers": nodes, "workers_per_node_max": 1 if nodes > 1 else None, "splits": ()}
            whole.append(one.model_copy(update={"id": f"{option.id}:{kind}", **alone}))
    if not whole:
        raise JobLeftOut("--exclusive with more than its nodes have")
    return whole
