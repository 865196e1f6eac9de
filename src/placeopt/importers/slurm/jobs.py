"""What jobs that wait and jobs that run have in common: states, conditions on nodes, the records that they become."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property

from placeopt.documents.faults import make_record
from placeopt.errors import BadInput
from placeopt.importers.import_notes import ImportNotes
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.observed_round import ObservedJob, ObservedWorker, origin_of
from placeopt.importers.priority_rule import PriorityRule
from placeopt.importers.slurm.fields import parse_constraint
from placeopt.importers.slurm.job_requests import (
    JobLeftOut,
    NotEligible,
    expand_node_list,
    milliseconds,
    reason_of,
    slurm_number,
)
from placeopt.importers.slurm.lists import UnreadFields, names
from placeopt.importers.slurm.nodes import RESERVED, YES, SlurmNode
from placeopt.importers.slurm.preemption import SlurmPreemption
from placeopt.importers.slurm.shared_lists import Licenses
from placeopt.model import Cluster, Demand, Job, LabelExpression, NodeConditions, Option, Toleration
from placeopt.model.conditions import ANY_NODE

HOLDS = names("RUNNING SUSPENDED COMPLETING CONFIGURING STOPPED SIGNALING STAGE_OUT RESIZING")
"""States in which a job holds its nodes; suspended and stopped jobs keep GPUs and memory."""
ENDED = names(
    "COMPLETED CANCELLED FAILED TIMEOUT NODE_FAIL PREEMPTED BOOT_FAIL DEADLINE OUT_OF_MEMORY REVOKED LAUNCH_FAILED"
)
"""States in which a job holds no nodes and requests none."""
WAITS = names("PENDING REQUEUED EXPEDITING POWER_UP_NODE")
"""States and flags of a job that may start when capacity is free."""
HELD_FLAGS = names("REQUEUE_HOLD SPECIAL_EXIT RESV_DEL_HOLD REQUEUE_FED REVOKED LAUNCH_FAILED")
"""Flags of a pending job that does not."""
STARTS = names("None Priority Resources")
"""Reasons to wait that free capacity removes; limits of accounts, holds, dependencies and the like are none of them."""
INELIGIBLE = names(
    "JobHeldUser JobHeldAdmin JobHoldMaxRequeue Dependency DependencyNeverSatisfied BeginTime JobArrayTaskLimit"
)
"""Reasons to wait that no plan removes; what limits of accounts admit depends on what runs."""
TOLERATES = Toleration(key=RESERVED.key, operator="Exists")
"""Of a job with a reservation."""


@dataclass(frozen=True)
class JobContext:
    """The nodes of a list, the cluster's settings as far as they are given, and where notes go."""

    nodes: Mapping[str, SlurmNode]
    cluster: Cluster
    notes: ImportNotes
    rule: PriorityRule
    preemption: SlurmPreemption
    unread: UnreadFields
    now_ms: int
    licenses: Licenses
    whole_kinds: set[str] = field(default_factory=set)
    """Of nodes that waiting jobs ask for as a whole."""

    @cached_property
    def shares(self) -> dict[str, int]:
        """How many parts a GPU has, as ``gres/shard``, where all nodes with some agree."""
        found = {item for node in self.nodes.values() for item in node.shape.shares.items()}
        counts = Counter(name for name, _ in found)
        return {name: count for name, count in found if counts[name] == 1}

    @cached_property
    def kept_cpus(self) -> int:
        """The least number of CPUs that a node keeps for each of its GPUs, of nodes that keep some; 0: none does."""
        return min((node.cpus_per_gpu for node in self.nodes.values() if node.cpus_per_gpu), default=0)

    def value(self, entry: JsonEntry, workers: int, demand: Demand) -> int:
        """Return the value of a job of so many workers."""
        each = self.rule.gpu_value(slurm_number(entry, "priority") or 0, job_classes(entry))
        return max(1, self.rule.value(workers * demand.gpus, each) * demand.gpu_milli // 1000)


def job_classes(entry: JsonEntry) -> list[str]:
    """Return the classes of a job by which a rule may name it: its QOS, then its partitions."""
    return [entry.text("qos", ""), *entry.text("partition", "").split(",")]


def job_name(entry: JsonEntry) -> str:
    """Return the id of a job as Slurm's commands write it: ``7``, or ``7_2`` of a task of an array."""
    own = slurm_number(entry, "job_id")
    if own is None:
        raise entry.bad("job_id", "a number")
    array, task = slurm_number(entry, "array_job_id") or 0, slurm_number(entry, "array_task_id")
    return f"{array}_{task}" if array and task is not None else str(own)


def make_job(
    entry: JsonEntry, name: str, options: tuple[Option, ...], where: NodeConditions = ANY_NODE, *, unread: bool = False
) -> Job:
    """Make the job of an entry; parts of a job that are jobs of their own, ``ID+1``, have its origin."""
    return make_record(
        Job,
        entry.where,
        id=name,
        kind="training" if options[0].gpu_milli else "cpu",
        user=entry.text("user_name", "") or None,
        queue=entry.text("partition", "").split(",")[0] or None,
        arrival_ms=milliseconds(entry, "submit_time", 1000) or 0,
        options=options,
        origin=origin_of(entry.text("name", "") or name, name.partition("+")[0]),
        conditions=where,
        conditions_unread=unread,
    )


def unreadable_job(
    entry: JsonEntry, name: str, nodes: Iterable[str], error: JobLeftOut | BadInput, least: Demand | None = None
) -> ObservedJob:
    """Return a job that holds whole nodes, because what it holds cannot be read; ``least``: what it has on each."""
    workers = tuple(map(ObservedWorker, dict.fromkeys(nodes)))
    option = make_record(Option, entry.where, workers=len(workers), demand=least or Demand(gpus=0))
    job = Job(id=name, kind="cpu", options=(option,))
    return ObservedJob(job, workers, where=entry.where, unreadable_reason=reason_of(entry, error))


def check_startable(entry: JsonEntry, *, licenses: bool) -> None:
    """
    Raise `JobLeftOut` if free nodes alone might not start a pending job, `NotEligible` if they do not.

    ``licenses``: Whether licences count as room, too. ``state_reason`` is one word, ``state_description`` Slurm's text
    beside it, such as ``launch failed requeued held``.
    """
    reason, description = entry.text("state_reason", "None"), entry.text("state_description", "")
    if re.search(r"\bheld\b", description):
        raise NotEligible(f"waiting, {description[:60]}")
    if reason not in STARTS and not (licenses and reason == "Licenses"):
        raise (NotEligible if reason in INELIGIBLE else JobLeftOut)(f"waiting for {reason[:60]}")
    if entry.flag("hold") or slurm_number(entry, "priority") == 0:
        raise NotEligible("waiting, held (priority 0)")


def node_conditions(
    entry: JsonEntry, nodes: Mapping[str, SlurmNode], constraint: str, counts: Collection[int | None]
) -> NodeConditions:
    """
    Return what a job asks of its nodes: by labels, and by name where the user wrote names.

    ``constraint``: On features; about all nodes of a job together it is read where there is one. ``counts``: Numbers of
    nodes on which it may run; None: unknown. Raises `JobLeftOut` if it has a condition on several nodes together, or on
    nodes that are not listed.
    """
    partitions = list(filter(None, entry.text("partition", "").split(",")))
    reservation = entry.text("resv_name", "")
    terms = _constraint(constraint, one_node=set(counts) == {1})
    required, excluded = expand_node_list(entry, "required_nodes"), expand_node_list(entry, "excluded_nodes")
    if required and set(counts) != {len(required)}:
        raise JobLeftOut("asks for nodes by name (--nodelist), and may have others beside them")
    selector = [f"reservation:{reservation}"] if reservation else []
    if selector and not any(selector[0] in node.labels for node in nodes.values()):
        raise JobLeftOut("waits in a reservation whose nodes are not listed")
    anywhere = [f"partition:{name}" for name in partitions]
    if len(anywhere) < 2:
        selector, anywhere = [*anywhere, *selector], []
    either = [[partition, *sorted(term)] for partition in anywhere or [""] for term in terms or [frozenset()]]
    return make_record(
        NodeConditions,
        entry.where,
        node_selector=dict.fromkeys(selector, YES),
        node_affinity=tuple(tuple(map(_has, filter(None, term))) for term in either) if terms or anywhere else (),
        nodes_allowed=tuple(name for name in required if name in nodes) if required else None,
        nodes_excluded=tuple(name for name in excluded if name in nodes),
        tolerations=(TOLERATES,) if reservation else (),
    )


def nodes_of(asks: NodeConditions, nodes: Mapping[str, SlurmNode]) -> list[SlurmNode]:
    """Return the nodes that the conditions of a job leave to it."""
    return [
        nodes[name]
        for name in (nodes if asks.nodes_allowed is None else asks.nodes_allowed)
        if name not in asks.nodes_excluded
        and nodes[name].labels >= asks.node_selector.keys()
        and any(all(one.key in nodes[name].labels for one in term) for term in asks.node_affinity or ((),))
    ]


@cache
def _has(label: str) -> LabelExpression:
    return LabelExpression(key=label, operator="Exists")


def matching_sets(text: str) -> dict[str, dict[str, str]]:
    """Return the labels of each alternative of ``[a|b]``, one of which all nodes of a job meet; else nothing."""
    sets = parse_constraint(text[1:-1]) if text.startswith("[") and text.endswith("]") else None
    return {"&".join(sorted(term)): {f"feature:{word}": YES for word in term} for term in sets or ()}


def _constraint(text: str, *, one_node: bool) -> list[frozenset[str]]:
    """Return the labels of each alternative of a constraint; none where there is no constraint."""
    if not text or text == "(null)":
        return []
    if one_node:  # all nodes of the job together are this one
        text = re.sub(r"\*1(?![0-9])", "", text).replace("[", "(").replace("]", ")")
    terms = parse_constraint(text)
    if terms is None:
        raise JobLeftOut("a constraint about several nodes together, or one that cannot be read")
    return [frozenset(f"feature:{word}" for word in term) for term in terms]
