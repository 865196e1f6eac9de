"""The requests of Slurm jobs: the workers that a request needs, and how their nodes lie in switches and blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from placeopt.documents.faults import make_record
from placeopt.errors import BadInput
from placeopt.importers.fabric import level_name
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.slurm.fields import SHARES_OF_GPUS, gpu_milli, parse_gres, parse_indices, parse_tres
from placeopt.importers.slurm.lists import JobLeftOut, is_set, milliseconds, slurm_number
from placeopt.importers.slurm.nodes import models_of
from placeopt.model import Cluster, Demand, Group, Machine, Option, Split, Spread
from placeopt.model.base import Amounts
from placeopt.model.conditions import ANY_NODE

MAX_RANGE = 64
"""Most alternative numbers of nodes of one job (``-N2-4`` has three); each becomes an option."""


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


def divided(name: str, option: Option, count: int, **some: Any) -> Option:
    """Return an option of which ``count`` workers of the first group differ: by the fields ``some`` of their own."""
    first, *others = option.groups or (Group(workers=option.workers, demand=option.demand),)
    conditions = first.conditions & some.pop("conditions", ANY_NODE)
    if not others and count == first.workers:
        return option.model_copy(update={**some, "conditions": option.conditions & conditions})
    own = first.model_copy(update={**some, "workers": count, "conditions": conditions})
    rest = [first.model_copy(update={"workers": first.workers - count})] if first.workers > count else []
    groups = [one.model_copy(update={"id": f"{name}.{i}"}) for i, one in enumerate([*rest, *others, own])]
    return option.model_copy(update={"groups": tuple(groups), "workers": 1, "demand": Demand()})


def exclusive_of(entry: JsonEntry) -> str:
    """
    Return which other jobs may use the nodes of a job: empty: all; ``none``: no other job.

    Another word: jobs of the same user (``user``), account group (``mcs``) or topology (``topo``).
    """
    words = {word.lower() for key in ("shared", "exclusive") for word in entry.words(key)}
    words -= {"", "false", "shared", "oversubscribe", "ok", "no"}
    return min(words - {"none", "exclusive", "true"}, default="none") if words else ""


class Request:
    """
    What a job asks for, running or waiting.

    ``by``: GPUs and other generic resources per node, task, job or socket.
    """

    def __init__(self, entry: JsonEntry) -> None:
        self.by = {part: entry.parsed(f"tres_per_{part}", parse_tres) for part in ("node", "task", "job", "socket")}
        self.models = tuple(dict.fromkeys(model for one in self.by.values() for model in one.models))
        self.tasks = max(1, slurm_number(entry, "tasks") or 1)
        self.exclusive = exclusive_of(entry)


class WaitingRequest(Request):
    """
    What a waiting job asks for, as Slurm's fields state it; 0 where it asks for nothing.

    ``shares``: How many parts a GPU has, as ``gres/shard``. Those of a job on a node are of one GPU, as Slurm gives
    them (without ``MULTIPLE_SHARING_GRES_PJ``).
    """

    def __init__(self, entry: JsonEntry, shares: Mapping[str, int]) -> None:
        super().__init__(entry)
        self._entry = entry
        total, (node, task, job, _) = entry.parsed("tres_req_str", parse_tres), self.by.values()
        counted = "license/" if is_set(entry.raw("licenses")) else ()  # of which that field is the sum
        self.of_node, self.of_task = dict(node.named), dict(task.named)
        for one, read in (
            (total, {**self.of_node, **self.of_task}),
            (task, self.of_task),
            (job, {}),
            (node, self.of_node),
        ):
            if others := [name for name in one.others if not name.startswith(counted)]:
                raise JobLeftOut(f"asks for {others[0][:60]}")
            if elsewhere := [
                name for name, _ in one.named if name not in read or (one is task and name in SHARES_OF_GPUS)
            ]:
                raise JobLeftOut(f"asks for {elsewhere[0][:60]}, and not by node")
        self.models = tuple(dict.fromkeys((*self.models, *total.models)))
        if len(self.models) > 1:
            raise JobLeftOut("asks for several types of GPUs")
        self.gpu_milli, parts = 1000, node.shares
        for name, count in parts:
            self.gpu_milli = gpu_milli(count, shares.get(name, 0))
            if node.gpus or len(parts) > 1 or not self.gpu_milli:
                raise JobLeftOut(f"asks for {name}, and not for an equal part of a GPU")

        self.tasks_per_node = slurm_number(entry, "tasks_per_node") or 0
        self.tasks_per_gpu = slurm_number(entry, "tasks_per_tres") or 0 if is_set(entry.raw("tasks_per_tres")) else 0
        self.least = max(1, total.nodes or slurm_number(entry, "node_count") or 1)
        self.nodes = _numbers_of_nodes(entry, self.least)
        self.gpus_per_node, self.gpus_per_task = len(parts) or node.gpus, task.gpus
        per_job = job.gpus or (0 if self.gpus_per_node or task.gpus else total.gpus)
        together = task.gpus * self.tasks or (self.gpus_per_node * self.least if self.nodes == (self.least,) else 0)
        self.gpus_per_job = 0 if per_job == together else per_job
        if bool(self.gpus_per_node) + bool(task.gpus) + bool(self.gpus_per_job) > 1:
            raise JobLeftOut("asks for GPUs in several ways")
        gpus = self.gpus_per_job or self.gpus_per_node * self.least
        if self.tasks_per_gpu and (self.tasks != gpus * self.tasks_per_gpu or self.nodes not in (None, (self.least,))):
            raise JobLeftOut("asks for --ntasks-per-gpu, and not for as many tasks")
        fills = self.tasks <= self.least or self.tasks_of_each_node
        if self.nodes is None and not self.gpus_per_job and fills:
            self.nodes = (self.least,)  # a task is on one node, and a node has room for --ntasks-per-node at least

        self.cpus_per_task = max(1, slurm_number(entry, "cpus_per_task") or -(-total.cpus // self.tasks))
        self.cpus_per_gpu, memory_per_gpu = _per_gpu(entry, "cpus_per_tres"), _per_gpu(entry, "memory_per_tres")
        self.least_cpus = slurm_number(entry, "minimum_cpus_per_node") or 0
        memory_per_cpu = slurm_number(entry, "memory_per_cpu") or 0
        of_node = slurm_number(entry, "memory_per_node") or -(-total.memory_mib // max(1, total.nodes))
        self.memory = (
            (memory_per_gpu, 0, 0) if memory_per_gpu else (0, memory_per_cpu, 0 if memory_per_cpu else of_node)
        )
        """MiB by GPU, by CPU and by node, of which one counts."""

    @property
    def tasks_of_each_node(self) -> int:
        """The tasks of each node, where all have equally many on the least number of nodes; else 0."""
        if self.tasks == self.least:
            return 1
        each = self.tasks_per_node or self.tasks_per_gpu * self.gpus_per_node
        return each if self.tasks == self.least * each else 0

    def options(self) -> list[Option]:
        """
        Return the alternative options of a job, of value 0: one for each number of nodes that it allows.

        Of the ways to ask in Slurm the first that applies decides what a worker is:

        ========================================================  =========  ===========================================
        the job asks for                                          a worker   with
        ========================================================  =========  ===========================================
        one node (``-N1``), in whatever way for GPUs              the node   all that the job asks for
        GPUs of the job (``--gpus``)                              a GPU      ``--cpus-per-gpu`` or ``--ntasks-per-gpu``,
                                                                             memory by CPU or by GPU
        GPUs or other resources of a node (``--gres``,            a node     these, and those of its tasks
        ``--gpus-per-node``); as many tasks on each of its nodes
        GPUs of a task (``--gpus-per-task``), or none             a task     these, its CPUs, memory by CPU or by GPU
        ========================================================  =========  ===========================================

        GPUs of the job beside those of a task or node repeat them, if they are as many. Without ``--cpus-per-gpu`` a
        GPU of the job has a CPU, where tasks have one each and are at most as many as the GPUs: never fewer CPUs than
        Slurm gives. GPUs of a socket are not read. CPUs of a task are the job's divided by its tasks, where Slurm
        (22.05) does not list them. Raises `JobLeftOut` if the request is none of these: workers would have to differ,
        or the model lacks the rule; `BadInput` if a field is none that Slurm writes.
        """
        if self.exclusive not in ("", "none", "user", "mcs"):
            raise JobLeftOut(f"asks for --exclusive={self.exclusive[:30]}")
        if self.nodes == (1,):
            gpus = self.gpus_per_node or self.gpus_per_task * self.tasks or self.gpus_per_job
            return [self._option(1, gpus, self.tasks, whole=True)]
        if self.gpus_per_job:
            tasks = self.tasks_per_gpu or (0 if self.cpus_per_gpu else 1)
            if tasks and not self.tasks_per_gpu and (self.cpus_per_task > 1 or self.tasks > self.gpus_per_job):
                raise JobLeftOut("asks for --gpus without --cpus-per-gpu, and not for one node or one CPU a task")
            if self.of_task or (self.of_node and self.nodes != (self.gpus_per_job,)):
                raise JobLeftOut("asks for --gpus, and for other resources by node or task")
            return self._anywhere(self.gpus_per_job, tasks, 1, None, whole=bool(self.of_node))
        if self.gpus_per_node or self.of_node or (self.nodes == (self.least,) and self.tasks_of_each_node):
            return self._worker_a_node()
        return self._anywhere(self.tasks, 1, self.gpus_per_task, self.tasks_per_node or None)

    def _option(self, workers: int, gpus: int, tasks: int, *, whole: bool = False, **where: Any) -> Option:
        """Return an option of workers of so many GPUs and tasks each; ``whole``: each is all of the job on a node."""
        cpus = self.cpus_per_gpu * gpus if self.cpus_per_gpu and gpus else self.cpus_per_task * tasks
        by_gpu, by_cpu, by_node = self.memory
        named = Counter({name: tasks * count for name, count in self.of_task.items()})
        demand = {
            "gpus": gpus,
            "gpu_milli": self.gpu_milli,
            "gpu_models": self.models,
            "cpu_millicores": 1000 * (max(cpus, self.least_cpus) if whole else cpus),
            "memory_mib": by_gpu * gpus + by_cpu * cpus + by_node,
            "resources": dict(named + Counter(self.of_node if whole else {})),
        }
        return make_option(self._entry, demand, id=f"nodes{workers}", value=0, workers=workers, **where)

    def _worker_a_node(self) -> list[Option]:
        tasks = self.tasks_of_each_node
        if self.nodes is None:
            raise JobLeftOut("asks for GPUs or memory by node, and any number of nodes")
        if not tasks or (tasks > 1 and len(self.nodes) > 1):
            raise JobLeftOut("may have more tasks on one of its nodes than on another")
        gpus = self.gpus_per_node or self.gpus_per_task * tasks
        return [
            self._option(count, gpus, tasks, whole=True, workers_per_node_max=1 if count > 1 else None)
            for count in self.nodes
        ]

    def _anywhere(
        self, workers: int, tasks: int, gpus: int, per_node: int | None, *, whole: bool = False
    ) -> list[Option]:
        """Return the options of workers of ``tasks`` tasks and ``gpus`` GPUs each, at most ``per_node`` on a node."""
        if self.memory[2]:
            raise JobLeftOut("asks for memory by node, and any number of nodes or of tasks a node")
        option = self._option(workers, gpus, tasks, whole=whole, workers_per_node_max=per_node)
        if 1000 * self.least_cpus > max(1, self.tasks_per_node) * option.demand.cpu_millicores:
            raise JobLeftOut("asks for --mincpus")
        if self.nodes is None and self.least > 1:
            raise JobLeftOut("asks for a minimum number of nodes")
        numbers = {f"nodes{n}": (Split(level="node", domains=n),) for n in self.nodes or () if n <= workers}
        if self.nodes is not None and not numbers:
            raise JobLeftOut("asks for more nodes than it has tasks or GPUs")
        ways = [option.model_copy(update={"id": name, "splits": splits}) for name, splits in numbers.items()]
        return ways or [option]


def _numbers_of_nodes(entry: JsonEntry, least: int) -> tuple[int, ...] | None:
    """Return the numbers of nodes on which a job may run: a list (``-N2,4,8``) or a range; None: any number."""
    sizes, most = entry.words("job_size_str"), slurm_number(entry, "max_nodes")
    most = most and min(most, least + MAX_RANGE)
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


def whole_nodes(options: Iterable[Option], kinds: Mapping[str, Machine]) -> list[Option]:
    """
    Return the options of a job that has its nodes to itself (``--exclusive``): workers are nodes, with all of each.

    ``kinds``: Machine types of its nodes by name. Several nodes of a job are of one kind: where there are several, of
    each a worker takes ``node/KIND``, which is the whole node.
    """
    whole = []
    for option in options:
        nodes, demand = node_count(option), option.demand
        if nodes is None or option.workers_per_node_max not in (None, 1):
            raise JobLeftOut("--exclusive on any number of nodes, or with tasks in unequal numbers")
        each = -(-option.workers // nodes)
        for kind, machine in kinds.items():
            models, cpus = models_of(machine), machine.cpu_millicores
            odd = set(models).difference(demand.gpu_models or models)
            if odd or each * demand.gpus > len(models) or each * demand.cpu_millicores > cpus:
                continue
            amounts = {"gpus": len(models), "gpu_milli": 1000, "cpu_millicores": cpus}
            of_kind = {f"node/{kind}": 1} if len(kinds) > 1 else {}
            one = with_amounts(option, of_kind, memory_mib=each * demand.memory_mib, **amounts)
            alone = {"workers": nodes, "workers_per_node_max": 1 if nodes > 1 else None, "splits": ()}
            whole.append(one.model_copy(update={"id": f"{option.id}:{kind}", **alone}))
    if not whole:
        raise JobLeftOut("--exclusive with more than its nodes have")
    return whole


def in_blocks(entry: JsonEntry, options: Sequence[Option], cluster: Cluster) -> list[Option]:
    """
    Return the options of a job with what they state of the domains in which workers lie.

    Slurm takes a block that holds the least number of nodes: of a range, and one node for any number of tasks. The
    nodes of a job with ``--segment`` are in blocks that hold a segment, several of which may share one; a segment that
    is larger than the job counts as none. ``--spread-segments``: each in a block of its own. With
    ``--consolidate-segments`` all are in one block of a size that holds the job. ``--switches``: they lie under at
    most so many leaf switches, also when the time for which the job waits for that is over. Raises `JobLeftOut` if a
    rule cannot be stated.
    """
    in_tree = all(one.nodes is None for one in cluster.block_sizes)
    switches = (slurm_number(entry, "required_switches") or 0) if in_tree else 0  # the plugin of blocks ignores them
    numbers = [node_count(option) for option in options]
    if switches and any(switches < (number or option.workers) for number, option in zip(numbers, options, strict=True)):
        if not cluster.domains:
            raise JobLeftOut("asks for --switches, and no topology is given")
        ways = [(option, n) for option in options for n in range(1, min(switches, option.workers) + 1)]
        if len(ways) > MAX_RANGE:
            raise JobLeftOut("asks for --switches in too many ways")
        leaf = [(_ruled(option, (Split(level=level_name(1), domains=n),)), n) for option, n in ways]
        return [one.model_copy(update={"id": f"{one.id}.switches{n}"}) if n > 1 else one for one, n in leaf]
    sizes = [(one.level, one.nodes) for one in cluster.block_sizes if one.nodes is not None]
    least = min(number or 1 for number in numbers)
    ranges = None in numbers or (len(set(numbers)) > 1 and not is_set(entry.raw("job_size_str")))
    segment = slurm_number(entry, "segment_size") or 0
    if 0 < segment <= least and not cluster.domains:
        raise JobLeftOut("states segment_size, and no topology is given")
    if sizes and 0 < segment <= least and (ranges or any(option.splits for option in options)):
        raise JobLeftOut("states segment_size, and no fixed number of equal workers a node")
    if not sizes or ranges:
        return [_ruled(option, _together(sizes, least)) for option in options]
    flags = entry.words("flags")
    return [
        _ruled(option, *_segments(sizes, segment, option.workers, flags)) if 0 < segment <= option.workers else option
        for option in options
    ]


def _ruled(option: Option, splits: Sequence[Split], spread: Sequence[Spread] = ()) -> Option:
    return option.model_copy(update={"splits": (*option.splits, *splits), "spread": tuple(spread)})


def _together(sizes: Sequence[tuple[str, int]], nodes: int) -> tuple[Split, ...]:
    """Return the split that keeps so many nodes in one block; none where no block is that large."""
    return tuple(Split(level=level, domains=1) for level, size in sizes if size >= nodes)[:1]


def _segments(
    sizes: Sequence[tuple[str, int]], segment: int, nodes: int, flags: Sequence[str]
) -> tuple[list[Split], list[Spread]]:
    if nodes % segment:
        raise JobLeftOut("asks for segments that do not divide its nodes")
    place = next((place for place, (_, size) in enumerate(sizes) if size >= segment), len(sizes))
    spread = "SPREAD_SEGMENTS" in flags
    if place == len(sizes) or (place and (spread or sizes[place][1] > 2 * sizes[place - 1][1])):
        raise JobLeftOut("asks for segments over several blocks")
    level, count = sizes[place][0], nodes // segment
    splits = [Split(level=level, domains=count, workers=segment)] if spread else []
    if "CONSOLIDATE_SEGMENTS" in flags:
        splits += _together(sizes, count * sizes[0][1] if spread else nodes)
    return splits, [Spread(level=level, segment=segment)]
