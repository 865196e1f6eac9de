"""Slurm's jobs, entry by entry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd

from placeopt.errors import BadInput
from placeopt.formats.snapshots.entries import Entry
from placeopt.formats.snapshots.found import Notes, Seen, Worker, made
from placeopt.formats.snapshots.slurm_nodes import RESERVED, Words
from placeopt.formats.snapshots.slurm_shapes import Shape, asked_shape, number
from placeopt.formats.snapshots.slurm_words import (
    Tres,
    parse_constraint,
    parse_held,
    parse_tasks,
    parse_tres,
)
from placeopt.formats.topo.hostlist import expand_hosts
from placeopt.model import Demand, Job, Node, Option
from placeopt.model.base import MAX_JOBS

HOLDS = frozenset(
    {"RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING"}
)
"""States in which a job has its nodes."""
HELD_BACK = frozenset(
    {
        *("JobHeldUser", "JobHeldAdmin", "Dependency", "DependencyNeverSatisfied", "BeginTime", "Reservation"),
        *("ReservationDeleted", "JobArrayTaskLimit", "BadConstraints", "PartitionDown", "PartitionInactive"),
        *("Licenses", "BurstBufferStageIn", "BurstBufferResources", "Cleaning", "InvalidAccount", "InvalidQOS"),
    }
)
"""Reasons for which a job would not start however much were free."""


class Jobs:
    """Turns entries of the job list into jobs."""

    def __init__(self, nodes: Sequence[Node], features: Mapping[str, Words], notes: Notes) -> None:
        self._nodes, self._features, self._notes = nodes, features, notes
        self._allowed: dict[tuple[object, ...], tuple[str, ...]] = {}

    def read(self, entry: Entry) -> list[Seen]:
        """Return what an entry stands for: nothing, a job, or the tasks of an array that wait."""
        states = {word.upper() for word in entry.words("job_state")}
        if not states:
            raise entry.bad("job_state", "a state such as RUNNING")
        own = number(entry, "job_id")
        if own is None:
            raise entry.bad("job_id", "a number")
        array, task = number(entry, "array_job_id") or 0, number(entry, "array_task_id")
        name = f"{array}_{task}" if array and task is not None else str(own)
        if states & HOLDS:
            return [self._running(entry, name)]
        if "PENDING" not in states:
            return []
        reason = entry.text("state_reason", "None")
        if reason in HELD_BACK:
            self._notes.leave_out(f"waiting for {reason}", name)
            return []
        tasks = entry.text("array_task_string", "")
        names = [name]
        if tasks and task is None:
            try:
                names = [f"{array or own}_{one}" for one in parse_tasks(tasks)]
            except ValueError as error:
                raise BadInput(f"{entry.path('array_task_string')}: {error}") from None
            if len(names) > MAX_JOBS:
                raise entry.bad("array_task_string", f"at most {MAX_JOBS} tasks")
        return self._waiting(entry, names)

    def _waiting(self, entry: Entry, names: list[str]) -> list[Seen]:
        asked = self._tres(entry, "tres_req_str")
        shape = asked_shape(entry, asked, self._notes)
        where = self._where(entry, shape)
        if where is None:
            for name in names:
                self._notes.leave_out("a constraint about several nodes together", name)
            return []
        demand = made(
            Demand,
            entry.where,
            gpus=shape.gpus,
            gpu_models=shape.models,
            cpu_millicores=-(-1000 * asked.cpus // shape.workers),
            memory_mib=-(-asked.memory_mib // shape.workers),
        )
        return [
            Seen(
                self._job(entry, name, shape, demand, where), priority=number(entry, "priority") or 0, where=entry.where
            )
            for name in names
        ]

    def _running(self, entry: Entry, name: str) -> Seen:
        held = self._tres(entry, "tres_alloc_str")
        nodes = self._hosts(entry, "nodes")
        if not nodes:
            raise entry.bad("nodes", "the nodes of a job that runs")
        parts = self._parts(entry, nodes, held)
        shape = asked_shape(entry, self._tres(entry, "tres_req_str") if "tres_req_str" in entry else held, self._notes)
        cpus, memory = self._shares(entry, nodes, held)
        counts = [count for count, _ in parts]
        if not any(counts) and len(set(cpus)) > 1:  # tasks without GPUs, more on one node than on another
            size = gcd(*cpus)
            shape = Shape(sum(cpus) // size, 0, (), alone=False)
            of_node = [count // size for count in cpus]
        else:
            if not shape.fits(counts):
                size = gcd(*counts)
                whole = not size and len(nodes) > 1
                shape = Shape(sum(counts) // size if size else len(nodes), size, shape.models, alone=whole)
            of_node = [count // shape.gpus if shape.gpus else 1 for count in counts]
        with_workers = [(c, m, w) for c, m, w in zip(cpus, memory, of_node, strict=True) if w]
        demand = made(
            Demand,
            entry.where,
            gpus=shape.gpus,
            gpu_models=shape.models,
            cpu_millicores=min(1000 * c // w for c, _, w in with_workers),
            memory_mib=min(m // w for _, m, w in with_workers),
        )
        workers: list[Worker] = []
        for node, (_, part), count in zip(nodes, parts, of_node, strict=True):
            for i in range(count):
                mine = None if part is None else part[i * shape.gpus : (i + 1) * shape.gpus]
                workers.append(Worker(node, mine if shape.gpus else ()))
        where = self._where(entry, shape)
        started = 1000 * (number(entry, "start_time") or 0)
        ends = number(entry, "end_time")
        return Seen(
            self._job(entry, name, shape, demand, where or {"nodes_allowed": tuple(dict.fromkeys(nodes))}),
            workers=tuple(workers),
            started_ms=started,
            expected_end_ms=1000 * ends if ends and 1000 * ends >= started else None,
            priority=number(entry, "priority") or 0,
            where=entry.where,
        )

    def _shares(self, entry: Entry, nodes: Sequence[str], held: Tres) -> tuple[list[int], list[int]]:
        """Return CPUs and MiB held on each node; divided evenly, rounded down, where Slurm does not tell."""
        told = {}
        resources = entry.entry("job_resources")
        if isinstance(resources.raw("nodes"), dict):  # of data parser v0.0.42 on; before, a list of names
            for one in resources.entry("nodes").entries("allocation"):
                cpus = one.entry("cpus").integer("count", 0, 10**6, 0)
                told[one.text("name")] = (cpus, one.entry("memory").integer("allocated", 0, 10**9, 0))
        if all(node in told and any(told[node]) for node in nodes):
            return [told[node][0] for node in nodes], [told[node][1] for node in nodes]
        return [held.cpus // len(nodes)] * len(nodes), [held.memory_mib // len(nodes)] * len(nodes)

    def _parts(self, entry: Entry, nodes: Sequence[str], held: Tres) -> list[tuple[int, tuple[int, ...] | None]]:
        """Return count and, where told, indices of the GPUs held on each node."""
        details = entry.words("gres_detail")
        if details and len(details) != len(nodes):
            raise entry.bad("gres_detail", f"an entry for each of {len(nodes)} nodes")
        try:
            parts = [parse_held(detail)[:2] for detail in details]
        except ValueError as error:
            raise BadInput(f"{entry.path('gres_detail')}: {error}") from None
        if parts and (any(count for count, _ in parts) or not held.gpus):  # sites need not account for GPUs
            return parts
        if held.gpus % len(nodes):
            raise BadInput(
                f"{entry.path('gres_detail')}: does not tell how {held.gpus} GPUs lie on {len(nodes)} nodes; "
                "list the jobs as an operator, who sees it"
            )
        if held.gpus:
            self._notes.assume("Which GPUs some jobs hold is not told: the lowest free ones were taken.")
        return [(held.gpus // len(nodes), None)] * len(nodes)

    def _tres(self, entry: Entry, key: str) -> Tres:
        try:
            return parse_tres(entry.text(key, ""))
        except ValueError as error:
            raise BadInput(f"{entry.path(key)}: {error}") from None

    def _hosts(self, entry: Entry, key: str) -> list[str]:
        text = entry.text(key, "")
        try:
            return expand_hosts("" if text in ("(null)", "N/A") else text)
        except ValueError as error:
            raise BadInput(f"{entry.path(key)}: {error}") from None

    def _where(self, entry: Entry, shape: Shape) -> dict[str, object] | None:
        """Return the fields of a job that say where it may run; None where that is about several nodes together."""
        partitions = tuple(filter(None, entry.text("partition", "").split(",")))
        text = entry.text("features", "")
        meets = parse_constraint(text) if text else None
        required, excluded = self._hosts(entry, "required_nodes"), self._hosts(entry, "excluded_nodes")
        if (text and meets is None) or (required and len(required) != shape.workers):
            return None
        if meets is None and not required and not excluded and len(partitions) < 2:
            return {"node_selector": {f"partition:{one}": "yes" for one in partitions}}
        key = (partitions, text, tuple(required), tuple(excluded))
        if key not in self._allowed:
            out = set(excluded)
            self._allowed[key] = tuple(
                node.id
                for node in self._nodes
                if node.id not in out
                and (not required or node.id in required)
                and (not partitions or self._features[node.id].partitions & set(partitions))
                and (meets is None or meets(self._features[node.id].features))
            )
        return {"nodes_allowed": self._allowed[key]}

    def _job(self, entry: Entry, name: str, shape: Shape, demand: Demand, where: Mapping[str, object]) -> Job:
        minutes = number(entry, "time_limit")
        option = made(
            Option,
            entry.where,
            workers=shape.workers,
            demand=demand,
            workers_per_node_max=1 if shape.alone else None,
            value=1000 * shape.workers * shape.gpus or 1,
            run_time_ms=None if minutes is None else 60_000 * minutes,
        )
        partition = entry.text("partition", "").split(",")[0]
        return made(
            Job,
            entry.where,
            id=name,
            kind="training" if shape.gpus else "cpu",
            user=entry.text("user_name", "") or None,
            queue=partition or None,
            arrival_ms=1000 * (number(entry, "submit_time") or 0),
            options=(option,),
            tolerations=(RESERVED,) if entry.text("resv_name", "") else (),
            **where,
        )
