"""Slurm's jobs that hold nodes: exactly what each holds on each node, or in doubt all of the node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd

from placeopt.errors import BadInput
from placeopt.formats.json_entry import Entry
from placeopt.formats.observed_round import Notes, Seen, Worker, made
from placeopt.formats.slurm.eligible_nodes import Where, expand
from placeopt.formats.slurm.job_requests import LeftOut, is_exclusive, milliseconds, number, request, tres, unreadable
from placeopt.formats.slurm.nodes import SlurmNode
from placeopt.formats.slurm.tres import SHARES_OF_GPUS, SlurmHolding, parse_held
from placeopt.model import Demand, Job, Option

PARTS = "Jobs that hold more on one of their nodes than on another are a job for each kind of node."


@dataclass(frozen=True)
class OnNode:
    """What a job holds on one node, by workers that are alike."""

    node: str
    workers: int
    gpus: int
    millicores: int
    memory_mib: int
    indices: tuple[int, ...] | None


class Running:
    """Reads jobs that hold nodes."""

    def __init__(self, nodes: Mapping[str, SlurmNode], where: Where, notes: Notes) -> None:
        self._nodes, self._where, self._notes = nodes, where, notes

    def read(self, entry: Entry, name: str) -> list[Seen]:
        """
        Return a job that runs, as several where it does not hold alike on all its nodes; none if it names no node.

        Raises
        ------
        BadInput
            If its nodes cannot be read: it may hold anything.
        """
        nodes = list(dict.fromkeys(expand(entry, "nodes")))
        if not nodes:
            self._notes.leave_out("runs on no node", name)
            return []
        try:
            return self._exact(entry, name, nodes)
        except (LeftOut, BadInput) as error:
            option = made(Option, entry.where, workers=len(nodes), demand=self._least(entry, nodes))
            return [
                Seen(
                    Job(id=name, kind="cpu", options=(option,)),
                    tuple(Worker(node) for node in nodes),
                    where=entry.where,
                    unread=str(error) if isinstance(error, LeftOut) else unreadable(entry, error),
                )
            ]

    def _least(self, entry: Entry, nodes: Sequence[str]) -> Demand:
        """Return what a job whose GPUs cannot be read holds of each node beside them, as far as that can be read."""
        try:
            cpus, memory = self._cpus(entry, nodes)
            return made(Demand, entry.where, gpus=0, cpu_millicores=1000 * min(cpus), memory_mib=min(memory))
        except (LeftOut, BadInput):
            return Demand(gpus=0)

    def _exact(self, entry: Entry, name: str, nodes: Sequence[str]) -> list[Seen]:
        held = self._gpus(entry, nodes)
        cpus, memory = self._cpus(entry, nodes)
        if _is_exclusive(entry):
            for node, have, count in zip(nodes, held, cpus, strict=True):
                listed = self._nodes.get(node)
                if listed is not None and (have.gpus < len(listed.models) or count < listed.cpus):
                    self._notes.drain("held by an exclusive job that has not all of it", node)
        found = [
            OnNode(node, 1, have.gpus, 1000 * count, mib, have.indices)
            for node, have, count, mib in zip(nodes, held, cpus, memory, strict=True)
        ]
        found = _by_task(entry, found)
        kinds: dict[tuple[int, int, int], list[OnNode]] = {}
        for one in found:
            kinds.setdefault((one.gpus, one.millicores, one.memory_mib), []).append(one)
        if len(kinds) > 1:
            self._notes.assume(PARTS)
        return [
            self._seen(entry, name if not number_ else f"{name}+{number_}", some)
            for number_, some in enumerate(kinds.values())
        ]

    def _seen(self, entry: Entry, name: str, found: Sequence[OnNode]) -> Seen:
        first = found[0]
        models: dict[str, None] = {}
        for one in found:
            here = self._nodes.get(one.node)
            listed = here.models if here is not None else ()
            models |= dict.fromkeys(listed[i] for i in one.indices or range(len(listed)) if i < len(listed))
        count = sum(one.workers for one in found)
        asked = {model for key in ("node", "task", "job") for model in request(entry, f"tres_per_{key}").models}
        if len(asked) > 1:
            self._notes.assume("A running job that asked for several types of GPUs may have any mix, if moved.")
        option = made(
            Option,
            entry.where,
            workers=count,
            demand=made(
                Demand,
                entry.where,
                gpus=first.gpus,
                gpu_models=tuple(sorted(asked)) if asked and first.gpus and set(models) <= asked else (),
                cpu_millicores=first.millicores,
                memory_mib=first.memory_mib,
            ),
            workers_per_node_max=1 if count == len(found) > 1 else None,
            value=1000 * count * first.gpus or 1,
            run_time_ms=milliseconds(entry, "time_limit", 60_000),
        )
        workers = [
            Worker(one.node, one.indices and one.indices[i * one.gpus : (i + 1) * one.gpus])
            for one in found
            for i in range(one.workers)
        ]
        started = milliseconds(entry, "start_time", 1000) or 0
        ends = milliseconds(entry, "end_time", 1000)
        nodes = tuple(dict.fromkeys(one.node for one in found))
        try:
            where = self._where.fields(entry, one_node=len(nodes) == 1, nodes={len(nodes)})
        except LeftOut:
            where = {"nodes_allowed": tuple(node for node in nodes if node in self._nodes)}
        return Seen(
            job_of(entry, name, (option,), where),
            workers=tuple(workers),
            started_ms=started,
            expected_end_ms=ends if ends and ends >= started else None,
            priority=number(entry, "priority") or 0,
            where=entry.where,
        )

    def _gpus(self, entry: Entry, nodes: Sequence[str]) -> list[SlurmHolding]:
        """Return the GPUs held on each node; `LeftOut` where their number, or which of several types, is not told."""
        told = tres(entry, "tres_alloc_str")
        asked = {key: request(entry, f"tres_per_{key}") for key in ("node", "task", "job", "socket")}
        others = [*told.others, *(name for one in asked.values() for name in one.others)]
        details = entry.words("gres_detail")
        try:
            held = [parse_held(detail) for detail in details]
        except ValueError as error:
            raise BadInput(f"{entry.path('gres_detail')}: {error}") from None
        shared = [f"gres/{name}" for name in SHARES_OF_GPUS]
        if any(one.shared for one in held) or set(shared) & set(others):
            raise LeftOut("holds a share of GPUs (shard, mps)")
        if not held or not (any(one.gpus for one in held) or told.gpus == 0):
            held = self._not_told(entry, nodes, told.gpus, {key: one.gpus for key, one in asked.items()})
        if len(held) != len(nodes):
            raise LeftOut("the GPUs that it holds are told for other nodes than its own")
        for node, one in zip(nodes, held, strict=True):
            listed = self._nodes.get(node)
            if one.gpus and one.indices is None and listed is not None and len(set(listed.models)) > 1:
                raise LeftOut("which GPUs it holds is not told, on a node that has several types")
        return held

    def _not_told(self, entry: Entry, nodes: Sequence[str], held: int, asked: Mapping[str, int]) -> list[SlurmHolding]:
        count = len(nodes)
        tasks = number(entry, "tasks") or 1
        if not held and not any(asked.values()):
            return [SlurmHolding(0, ())] * count
        if count == 1:
            each = held or asked["node"] or asked["task"] * tasks or asked["job"]
        else:
            each = asked["node"] if held in (0, asked["node"] * count) else 0
        if not each or (_is_exclusive(entry) and not held):
            raise LeftOut("how many GPUs it holds on which node is not told")
        self._notes.assume("Which GPUs some jobs hold is not told (operators see it): the lowest free ones were taken.")
        return [SlurmHolding(each)] * count

    def _cpus(self, entry: Entry, nodes: Sequence[str]) -> tuple[list[int], list[int]]:
        """Return CPUs and MiB held on each node; divided evenly, rounded up, where Slurm does not tell."""
        told: dict[str, tuple[int, int]] = {}
        resources = entry.entry("job_resources")
        if isinstance(resources.raw("nodes"), dict):  # of data parser v0.0.41 on; before, a list of names
            for one in resources.entry("nodes").entries("allocation"):
                cpus = one.entry("cpus").integer("count", 0, 10**6, 0)
                told[one.text("name")] = (cpus, one.entry("memory").integer("allocated", 0, 10**9, 0))
        else:
            for one in _allocated(resources):
                name = one.text("nodename", "")
                listed = self._nodes.get(name)
                if listed is not None:
                    told[name] = (_cores(one) * listed.threads, one.integer("memory_allocated", 0, 10**9, 0))
        if all(node in told and told[node][0] for node in nodes):
            return [told[node][0] for node in nodes], [told[node][1] for node in nodes]
        held, count = tres(entry, "tres_alloc_str"), len(nodes)
        cpus = held.cpus or number(entry, "cpus") or 0
        if not cpus:
            raise LeftOut("how many CPUs it holds is not told")
        if count > 1:
            self._notes.assume("CPUs and memory of some jobs are not told node by node: they were divided evenly.")
        return [-(-cpus // count)] * count, [-(-held.memory_mib // count)] * count


def _allocated(resources: Entry) -> list[Entry]:
    """Return what Slurm 21.08 to 24.05 tells of each node: a list, or an object by number."""
    told = resources.raw("allocated_nodes")
    if isinstance(told, dict):
        return [resources.entry("allocated_nodes").entry(key) for key in told]
    return resources.entries("allocated_nodes")


def _cores(node: Entry) -> int:
    """Count the cores that a job has on a node."""
    sockets = node.raw("sockets")
    found = 0
    for socket in sockets.values() if isinstance(sockets, dict) else ():
        cores = socket.get("cores") if isinstance(socket, dict) else None
        for state in cores.values() if isinstance(cores, dict) else ():
            found += str(state).lower().startswith("allocated")
    return found


def _is_exclusive(entry: Entry) -> bool:
    """Tell whether the job's nodes take no others: of its user alone counts, too."""
    try:
        return is_exclusive(entry)
    except LeftOut:
        return True


def _by_task(entry: Entry, found: list[OnNode]) -> list[OnNode]:
    """Return a job by workers as it asked for them, a task or a GPU each, if they are alike; else a worker a node."""
    size = request(entry, "tres_per_task").gpus or (1 if request(entry, "tres_per_job").gpus else 0)
    if not any(one.gpus for one in found):
        unit = gcd(*(one.millicores for one in found)) if len(found) > 1 else 0
        counts = [one.millicores // unit if unit else 1 for one in found]
    elif size and not any(one.gpus % size for one in found):
        counts = [one.gpus // size for one in found]
    else:
        return found
    if any(not n or one.millicores % n or one.memory_mib % n for n, one in zip(counts, found, strict=True)):
        return found
    split = [
        replace(one, workers=n, gpus=one.gpus // n, millicores=one.millicores // n, memory_mib=one.memory_mib // n)
        for n, one in zip(counts, found, strict=True)
    ]
    return split if len({(one.gpus, one.millicores, one.memory_mib) for one in split}) == 1 else found


def job_of(entry: Entry, name: str, options: tuple[Option, ...], where: Mapping[str, object]) -> Job:
    """Make the job of an entry."""
    return made(
        Job,
        entry.where,
        id=name,
        kind="training" if options[0].demand.gpus else "cpu",
        user=entry.text("user_name", "") or None,
        queue=entry.text("partition", "").split(",")[0] or None,
        arrival_ms=milliseconds(entry, "submit_time", 1000) or 0,
        options=options,
        **where,
    )
