"""Slurm's jobs that hold nodes: the exact amounts on each node, or in doubt the whole node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import gcd
from typing import NamedTuple

from placeopt.documents.faults import make_record
from placeopt.errors import BadInput
from placeopt.importers.import_notes import ImportNotes
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.observed_round import ObservedJob, ObservedWorker, origin_of
from placeopt.importers.priority_rule import PriorityRule, comment_marks, flags_of
from placeopt.importers.slurm.eligibility import expand_node_list, node_fields
from placeopt.importers.slurm.fields import (
    SHARES_OF_GPUS,
    GresHolding,
    Tres,
    parse_gres_detail,
    parse_tres,
)
from placeopt.importers.slurm.job_requests import (
    JobLeftOut,
    gres_requests,
    is_exclusive,
    milliseconds,
    reason_of,
    slurm_number,
)
from placeopt.importers.slurm.nodes import FOR_ALL, SlurmNode
from placeopt.importers.slurm.preemption import SlurmPreemption
from placeopt.importers.slurm.unread_fields import UnreadFields, is_set
from placeopt.model import Demand, Job, Option

PARTS = "Jobs that hold more on one of their nodes than on another are a job for each kind of node."


class NodeHolding(NamedTuple):
    """What a job holds on one node, in equal workers: of each of them, and the indices of all GPUs, if listed."""

    node: str
    workers: int
    gpus: int
    millicores: int
    memory_mib: int
    indices: tuple[int, ...] | None
    named: tuple[tuple[str, int], ...] = ()
    """Other generic resources."""

    @property
    def amounts(self) -> tuple[object, ...]:
        """The amounts of each worker."""
        return self.gpus, self.millicores, self.memory_mib, frozenset(self.named)

    def divided(self, n: int) -> NodeHolding | None:
        """Return the same in n workers, None if that leaves a remainder."""
        if not n or self.gpus % n or self.millicores % n or self.memory_mib % n:
            return None
        return self._replace(
            workers=n, gpus=self.gpus // n, millicores=self.millicores // n, memory_mib=self.memory_mib // n
        )


class RunningJobReader:
    """Reads jobs that hold nodes."""

    def __init__(
        self,
        nodes: Mapping[str, SlurmNode],
        notes: ImportNotes,
        rule: PriorityRule,
        preemption: SlurmPreemption,
        unread: UnreadFields,
        now_ms: int,
    ) -> None:
        self._nodes, self._notes, self._unread = nodes, notes, unread
        self._rule, self._preemption, self._now_ms = rule, preemption, now_ms
        self._keeps = any(node.cpus_per_gpu for node in nodes.values())

    def read(self, entry: JsonEntry, name: str) -> list[ObservedJob]:
        """Return a running job; several, if it holds different amounts on its nodes; none, if it names no node."""
        nodes = list(dict.fromkeys(expand_node_list(entry, "nodes")))
        if not nodes:
            self._notes.leave_out("runs on no node", name)
            return []
        try:
            return self._exact(entry, name, nodes)
        except (JobLeftOut, BadInput) as error:
            option = make_record(Option, entry.where, workers=len(nodes), demand=self._least(entry, nodes))
            return [
                ObservedJob(
                    Job(id=name, kind="cpu", options=(option,)),
                    tuple(ObservedWorker(node) for node in nodes),
                    where=entry.where,
                    unreadable_reason=reason_of(entry, error),
                )
            ]

    def _least(self, entry: JsonEntry, nodes: Sequence[str]) -> Demand:
        """Return CPU and memory per node of a job whose GPUs cannot be read; 0 where these cannot be read either."""
        try:
            cpus, memory = self._cpus(entry, nodes)
            return make_record(Demand, entry.where, gpus=0, cpu_millicores=1000 * min(cpus), memory_mib=min(memory))
        except (JobLeftOut, BadInput):
            return Demand(gpus=0)

    def _exact(self, entry: JsonEntry, name: str, nodes: Sequence[str]) -> list[ObservedJob]:
        held = self._gpus(entry, nodes)
        cpus, memory = self._cpus(entry, nodes)
        if _is_exclusive(entry):
            for node, have, count in zip(nodes, held, cpus, strict=True):
                listed = self._nodes.get(node)
                if listed is not None and (have.gpus < len(listed.models) or count < listed.cpus):
                    self._notes.drain("held by an exclusive job that has not all of it", node)
        holdings = [
            NodeHolding(
                node, 1, have.gpus, 1000 * count, mib, have.indices, (*have.named, *self._for_all(node, have, count))
            )
            for node, have, count, mib in zip(nodes, held, cpus, memory, strict=True)
        ]
        holdings = _by_task(entry, holdings)
        kinds: dict[tuple[object, ...], list[NodeHolding]] = {}
        for holding in holdings:
            kinds.setdefault(holding.amounts, []).append(holding)
        if len(kinds) > 1:
            self._notes.assume(PARTS)
        flags = (False, False) if len(kinds) > 1 else self._flags(entry, name, nodes)
        return [
            self._seen(entry, name if not number_ else f"{name}+{number_}", some, flags)
            for number_, some in enumerate(kinds.values())
        ]

    def _for_all(self, node: str, have: GresHolding, cpus: int) -> list[tuple[str, int]]:
        """Return the CPUs that a job holds of those which are not kept for its GPUs, where any node keeps some."""
        if not self._keeps:
            return []
        kept = self._nodes[node].cpus_per_gpu if node in self._nodes else 0
        return [(FOR_ALL, max(0, cpus - have.gpus * kept))]

    def _flags(self, entry: JsonEntry, name: str, nodes: Sequence[str]) -> tuple[bool, bool]:
        """Return whether a job may be moved, and preempted: by its comment, the rule, or Slurm's settings."""
        classes = job_classes(entry)
        beside = {word for node in nodes if node in self._nodes for word in self._nodes[node].partitions}
        qos = entry.text("qos", "")
        protected_ms = (milliseconds(entry, "start_time", 1000) or 0) + self._preemption.protects_ms(qos)
        stated = (milliseconds(entry, "preemptable_time", 1000) or protected_ms) <= self._now_ms
        stated &= self._preemption.allows(classes[-1], qos, beside, requeues=entry.raw("requeue") is not False)
        may = self._rule.may_preempt(slurm_number(entry, "priority") or 0, classes, stated=stated)
        comments = " ".join(entry.text(key, "") for key in ("comment", "admin_comment"))
        return flags_of([comment_marks(comments)], may, name, self._notes)

    def _seen(
        self, entry: JsonEntry, name: str, holdings: Sequence[NodeHolding], flags: tuple[bool, bool]
    ) -> ObservedJob:
        first = holdings[0]
        models: dict[str, None] = {}
        for holding in holdings:
            here = self._nodes.get(holding.node)
            listed = here.models if here is not None else ()
            models |= dict.fromkeys(listed[i] for i in holding.indices or range(len(listed)) if i < len(listed))
        count = sum(holding.workers for holding in holdings)
        requests = {
            model for request in gres_requests(entry, "node", "task", "job").values() for model in request.models
        }
        if len(requests) > 1:
            self._notes.assume("A running job that asked for several types of GPUs may have any mix, if moved.")
        option = make_record(
            Option,
            entry.where,
            workers=count,
            demand=make_record(
                Demand,
                entry.where,
                gpus=first.gpus,
                gpu_models=tuple(sorted(requests)) if requests and first.gpus and set(models) <= requests else (),
                cpu_millicores=first.millicores,
                memory_mib=first.memory_mib,
                resources=dict(first.named),
            ),
            workers_per_node_max=1 if count == len(holdings) > 1 else None,
            value=job_value(self._rule, entry, count * first.gpus),
            run_time_ms=milliseconds(entry, "time_limit", 60_000),
        )
        workers = [
            ObservedWorker(holding.node, holding.indices and holding.indices[i * holding.gpus : (i + 1) * holding.gpus])
            for holding in holdings
            for i in range(holding.workers)
        ]
        started = milliseconds(entry, "start_time", 1000) or 0
        ends = milliseconds(entry, "end_time", 1000)
        nodes = tuple(dict.fromkeys(holding.node for holding in holdings))
        try:
            if self._unread.of(entry) or is_set(entry.raw("segment_size")):
                raise JobLeftOut("a request that is not read of a running job")
            where = node_fields(entry, self._nodes, one_node=len(nodes) == 1, counts={len(nodes)})
        except JobLeftOut:
            where = {"nodes_allowed": nodes, "conditions_unread": True}
        return ObservedJob(
            make_job(entry, name, (option,), where),
            workers=tuple(workers),
            started_ms=started,
            expected_end_ms=ends if ends and ends >= started else None,
            priority=slurm_number(entry, "priority") or 0,
            where=entry.where,
            movable=flags[0],
            preemptible=flags[1],
        )

    def _gpus(self, entry: JsonEntry, nodes: Sequence[str]) -> list[GresHolding]:
        """Return the GPUs held on each node; `JobLeftOut` where their number or type is not listed."""
        allocated = entry.parsed("tres_alloc_str", parse_tres)
        requests = gres_requests(entry, "node", "task", "job", "socket")
        others = [*allocated.others, *(name for gres in requests.values() for name in gres.others)]
        details = entry.words("gres_detail")
        try:
            held = [parse_gres_detail(detail) for detail in details]
        except ValueError as error:
            raise BadInput(f"{entry.path('gres_detail')}: {error}") from None
        shared = [f"gres/{name}" for name in SHARES_OF_GPUS]
        if any(gres.shared for gres in held) or set(shared) & set(others):
            raise JobLeftOut("holds a share of GPUs (shard, mps)")
        if not held or not (any(gres.gpus for gres in held) or allocated.gpus == 0):
            held = self._from_requests(entry, nodes, allocated.gpus, {key: gres.gpus for key, gres in requests.items()})
        if not any(one.named for one in held):
            held = self._with_named(entry, held, allocated)
        if len(held) != len(nodes):
            raise JobLeftOut("the GPUs that it holds are listed for other nodes than its own")
        for node, gres in zip(nodes, held, strict=True):
            listed = self._nodes.get(node)
            if gres.gpus and gres.indices is None and listed is not None and len(set(listed.models)) > 1:
                raise JobLeftOut("which GPUs it holds is not listed, on a node that has several types")
        return held

    def _with_named(self, entry: JsonEntry, held: Sequence[GresHolding], allocated: Tres) -> list[GresHolding]:
        """Add other generic resources by request; where they are not requested by node, divided evenly, rounded up."""
        requests = gres_requests(entry, "node", "task", "job")
        tasks = slurm_number(entry, "tasks") or 1
        named = dict(requests["node"].named)
        together = Counter(dict(requests["job"].named))
        together.update({name: tasks * count for name, count in requests["task"].named})
        together |= Counter({name: count for name, count in allocated.named if name not in named})
        if together:
            self._notes.assume("Generic resources of some jobs are not listed node by node: they were divided evenly.")
            named |= {name: -(-count // len(held)) for name, count in together.items()}
        return [replace(one, named=tuple(sorted(named.items()))) for one in held] if named else list(held)

    def _from_requests(
        self, entry: JsonEntry, nodes: Sequence[str], held: int, requests: Mapping[str, int]
    ) -> list[GresHolding]:
        count = len(nodes)
        tasks = slurm_number(entry, "tasks") or 1
        if not held and not any(requests.values()):
            return [GresHolding(0, ())] * count
        if count == 1:
            each = held or requests["node"] or requests["task"] * tasks or requests["job"]
        else:
            each = requests["node"] if held in (0, requests["node"] * count) else 0
        if not each or (_is_exclusive(entry) and not held):
            raise JobLeftOut("how many GPUs it holds on which node is not listed")
        self._notes.assume(
            "Which GPUs some jobs hold is not listed (operators see it): the lowest free ones were taken."
        )
        return [GresHolding(each)] * count

    def _cpus(self, entry: JsonEntry, nodes: Sequence[str]) -> tuple[list[int], list[int]]:
        """Return CPUs and MiB held on each node; divided evenly, rounded up, if Slurm does not list them."""
        allocated: dict[str, tuple[int, int]] = {}
        resources = entry.entry("job_resources")
        if isinstance(resources.raw("nodes"), dict):  # of data parser v0.0.41 on; before, a list of names
            for allocation in resources.entry("nodes").entries("allocation"):
                cpus = allocation.entry("cpus").integer("count", 0, 10**6, 0)
                allocated[allocation.text("name")] = (
                    cpus,
                    allocation.entry("memory").integer("allocated", 0, 10**9, 0),
                )
        else:
            for allocation in _allocated(resources):
                name = allocation.text("nodename", "")
                listed = self._nodes.get(name)
                if listed is not None:
                    allocated[name] = (
                        _cores(allocation) * listed.threads,
                        allocation.integer("memory_allocated", 0, 10**9, 0),
                    )
        if all(node in allocated and allocated[node][0] for node in nodes):
            return [allocated[node][0] for node in nodes], [allocated[node][1] for node in nodes]
        held, count = entry.parsed("tres_alloc_str", parse_tres), len(nodes)
        cpus = held.cpus or slurm_number(entry, "cpus") or 0
        if not cpus:
            raise JobLeftOut("how many CPUs it holds is not listed")
        if count > 1:
            self._notes.assume("CPUs and memory of some jobs are not listed node by node: they were divided evenly.")
        return [-(-cpus // count)] * count, [-(-held.memory_mib // count)] * count


def _allocated(resources: JsonEntry) -> list[JsonEntry]:
    """Return the nodes in the format of Slurm 21.08 to 24.05: a list, or an object by number."""
    nodes = resources.raw("allocated_nodes")
    if isinstance(nodes, dict):
        return [resources.entry("allocated_nodes").entry(key) for key in nodes]
    return resources.entries("allocated_nodes")


def _cores(node: JsonEntry) -> int:
    """Count the cores that a job has on a node."""
    sockets = node.raw("sockets")
    num_cores = 0
    for socket in sockets.values() if isinstance(sockets, dict) else ():
        cores = socket.get("cores") if isinstance(socket, dict) else None
        for state in cores.values() if isinstance(cores, dict) else ():
            num_cores += str(state).lower().startswith("allocated")
    return num_cores


def _is_exclusive(entry: JsonEntry) -> bool:
    """Return whether the job's nodes take no other jobs, or only those of its user."""
    try:
        return is_exclusive(entry)
    except JobLeftOut:
        return True


def _by_task(entry: JsonEntry, holdings: list[NodeHolding]) -> list[NodeHolding]:
    """Return the job in workers as requested, a task or a GPU each, if they are equal; else one worker a node."""
    per = gres_requests(entry, "task", "job")
    if any(holding.named for holding in holdings):
        return holdings
    size = per["task"].gpus or (1 if per["job"].gpus else 0)
    if not any(holding.gpus for holding in holdings):
        unit = gcd(*(holding.millicores for holding in holdings)) if len(holdings) > 1 else 0
        counts = [holding.millicores // unit if unit else 1 for holding in holdings]
    elif size:
        counts = [0 if holding.gpus % size else holding.gpus // size for holding in holdings]
    else:
        return holdings
    divided = [holding.divided(n) for n, holding in zip(counts, holdings, strict=True)]
    equal = [holding for holding in divided if holding is not None]
    return equal if len(equal) == len(holdings) and len({one.amounts for one in equal}) == 1 else holdings


def job_classes(entry: JsonEntry) -> list[str]:
    """Return the classes of a job by which a rule may name it: its QOS, then its partitions."""
    return [entry.text("qos", ""), *entry.text("partition", "").split(",")]


def job_value(rule: PriorityRule, entry: JsonEntry, gpus: int) -> int:
    """Return the value of a job of that many GPUs."""
    return rule.value(gpus, rule.gpu_value(slurm_number(entry, "priority") or 0, job_classes(entry)))


def make_job(entry: JsonEntry, name: str, options: tuple[Option, ...], where: Mapping[str, object]) -> Job:
    """Make the job of an entry; parts of a job that are jobs of their own, ``ID+1``, have its origin."""
    return make_record(
        Job,
        entry.where,
        id=name,
        kind="training" if options[0].demand.gpus else "cpu",
        user=entry.text("user_name", "") or None,
        queue=entry.text("partition", "").split(",")[0] or None,
        arrival_ms=milliseconds(entry, "submit_time", 1000) or 0,
        options=options,
        origin=origin_of(entry.text("name", "") or name, name.partition("+")[0]),
        **where,
    )
