"""Allocation -> Plan in the terms of files, and how plans are written and judged: whole, or by who keeps a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

from placeopt.check import Judgement, Referee, Violation
from placeopt.check.case import Reference
from placeopt.environment import versions
from placeopt.model import Assignment, Instance, Placement, Plan, Policy, WorkerGpus
from placeopt.model.base import trusted
from placeopt.model.plan import (
    InstanceRef,
    Level,
    Moved,
    PolicyRef,
    Preempted,
    Seconds,
    Shrunk,
    Standing,
    Unplaced,
)
from placeopt.problem import RESOURCES, Allocation, Problem, State, change_of
from placeopt.problem import Placement as Indexed
from placeopt.problem.gpu_slots import with_starts
from placeopt.problem.grants import granted
from placeopt.problem.tree import whole_assignments
from placeopt.solving.bounds import relative_gap
from placeopt.terms.costs.prefer import reached_levels

CPU, MEMORY = RESOURCES.index("cpu_millicores"), RESOURCES.index("memory_mib")
NO_SECONDS = Seconds()


def plan_of(instance: Reference, policy: Policy, /, **stated: Any) -> Plan:
    """
    Return a plan of an instance under a policy: with the fields that are ``stated``, else as one that does nothing.

    No field is validated. The digest is stated of plans for all jobs alone.
    """
    digest = instance.digest if stated.get("asked") is None else None
    reference = {"name": instance.name, "digest": digest, "revision": instance.revision}
    fields: dict[str, Any] = {
        "document": "plan",
        "format_version": 2,
        "instance": trusted(InstanceRef, reference),
        "policy": trusted(PolicyRef, {"name": policy.name, "digest": policy.digest, "values": policy}),
        "status": "feasible",
        "of": "cluster",
        "unread": (),
        "limit": "none",
        "asked": None,
        "levels": (value_level(0, None),),
        "gap": None,
        "bound_relaxes": (),
        "costs": {},
        "facts": {},
        **dict.fromkeys(("placements", "unplaced", "moved", "shrunk", "preempted", "standing", "stages"), ()),
        "seconds": NO_SECONDS,
        "seed": 0,
        "versions": versions(),
    }
    return trusted(Plan, {**fields, **stated})


def value_level(value: int, bound: int | None) -> Level:
    """Return the first level of every plan: what its jobs are worth."""
    return trusted(Level, {"name": "value", "sense": "max", "objective": value, "bound": bound})


def proof(levels: Sequence[Level], *, unpriced: bool) -> dict[str, Any]:
    """Return what a plan states as proven; ``unpriced``: whether it leaves costs open that count."""
    first = next((level for level in levels if level.bound != level.objective), None)
    return {
        "status": "optimal" if first is None and not unpriced else "feasible",
        "levels": tuple(levels),
        "gap": (None if unpriced else 0.0) if first is None else relative_gap(first.objective, first.bound),
    }


def placed_facts(problem: Problem, placed: Sequence[Indexed], waiting: int) -> dict[str, int]:
    """Return the GPU share and the number of the jobs that a plan places, and the number of those that wait."""
    milli = int(problem.options.total_milli[[held.option for held in placed]].sum())
    return {"gpu_milli_placed": milli, "jobs_placed": len(placed), "jobs_waiting": waiting}


def draft_plan(instance: Instance, problem: Problem, allocation: Allocation, recorder: Recorder | None = None) -> Plan:
    """
    Return a plan with placements, waiting jobs and changes; ``finish`` adds reasons, objective and the rest.

    Every record is built from compiled integers, so it is not validated again field by field. A ``recorder`` that drew
    up an earlier plan of the problem makes the records of what changed since.
    """
    recorder = recorder or Recorder(problem)
    placed = [(job, held) for job, held in enumerate(allocation) if held is not None]
    placements = recorder.records(placed)
    unplaced = recorder.waiting([job for job, held in enumerate(allocation) if held is None])
    if problem.has_limits:
        placements = granted(placements, {job.id: job for job in problem.instance.jobs}, problem.policy.share_mode)
    if problem.trees:
        placements, unplaced = _with_whole_trees(instance, problem, allocation, placements, unplaced)
    moved, shrunk, preempted = _changes(problem, allocation)
    return plan_of(
        instance,
        problem.policy,
        placements=tuple(placements),
        unplaced=tuple(unplaced),
        moved=tuple(moved),
        shrunk=tuple(shrunk),
        preempted=tuple(preempted),
    )


NO_STARTS: dict[str, int] = {}
"""First slots of shares whose GPUs have no profiles, or that have none yet; never changed."""
NONE: dict[str, str | None] = {}
"""What placements without preferred levels have reached of them; never changed."""


def _with_whole_trees(
    instance: Instance, problem: Problem, allocation: Allocation, placements: list[Placement], unplaced: list[Unplaced]
) -> tuple[list[Placement], list[Unplaced]]:
    """Return the records with one for each tree in the place of those of its members."""
    ids = problem.job_ids
    held = {running.job: running for running in instance.running}
    owner = {ids[member]: tree for tree in problem.trees for member in tree.members}
    number = {ids[member]: member for tree in problem.trees for member in tree.members}
    parts: dict[str, dict[int, Placement]] = {}
    for placement in placements:
        if placement.job in owner:
            parts.setdefault(owner[placement.job].job, {})[number[placement.job]] = placement
    whole = {}
    for tree in problem.trees:
        here = parts.get(tree.job, {})
        if not here:
            continue
        option = next(iter(here.values())).option
        unchanged = set(here) == set(tree.runs)
        assignments = held[tree.job].assignments if unchanged else whole_assignments(tree, option, here)
        placed = {member: now for member in tree.members if (now := allocation[member]) is not None}
        reached = reached_levels(problem, tree, placed)
        whole[tree.job] = Placement(job=tree.job, option=option, assignments=assignments, reached=reached)
    kept, waiting = list[Placement](), list[Unplaced]()
    for placement in placements:
        if placement.job not in owner:
            kept.append(placement)
        elif owner[placement.job].job in whole:
            kept.append(whole.pop(owner[placement.job].job))
    for entry in unplaced:
        of = owner.get(entry.job)
        if of is None:
            waiting.append(entry)
        elif of.job not in parts and number[entry.job] == of.members[0]:
            waiting.append(entry.model_copy(update={"job": of.job}))
    return kept, waiting


def standing_records(violations: Sequence[Violation]) -> tuple[Standing, ...]:
    """Return what the referee says of limits that running jobs broke before, in the plan's form."""
    return tuple(
        Standing(job=violation.job, rule=violation.rule, node=violation.node, detail=violation.message)
        for violation in violations
    )


def _changes(problem: Problem, allocation: Allocation) -> tuple[list[Moved], list[Shrunk], list[Preempted]]:
    """Return the running jobs that are moved, shrunk and preempted, in the order of the file."""
    moved, shrunk, preempted = [], [], []
    for job in sorted(problem.changeable):
        now, before, name = allocation[job], problem.running[job], problem.job_ids[job]
        change = change_of(problem, job, now)
        if now is None:
            freed = int(problem.options.total_milli[before.option])
            preempted.append(Preempted.model_construct(job=name, freed_gpu_milli=freed))
        elif change == "shrunk":
            shrunk.append(Shrunk.model_construct(job=name, workers=len(now.nodes)))
        elif change == "moved":
            start, end = _nodes(problem, before), _nodes(problem, now)
            moved.append(Moved.model_construct(job=name, from_nodes=start, to_nodes=end))
    return moved, shrunk, preempted


def _nodes(problem: Problem, placement: Indexed) -> tuple[str, ...]:
    return tuple(problem.node_ids[node] for node in dict.fromkeys(placement.nodes))


class Recorder:
    """
    Placements in the file's form.

    The compiled arrays are read once, since there may be 100,000 placements. New ones
    state the request of each GPU, running ones what they hold; ``granted`` adds the shares above that. Records that
    say the same of different jobs are one object, as are their parts.

    ``same``: Running job -> its assignments as the instance has them; a job left where it runs keeps these very
    records. Of every job the last record is kept, for the next plan of the round in which it has the same placement.
    """

    def __init__(self, problem: Problem) -> None:
        options = problem.options
        self.problem = problem
        self.same = {job: record.assignments for job, record in problem.running_records.items()}
        self._shape = list(
            zip(
                options.gpus.tolist(),
                options.milli.tolist(),
                options.demand[:, CPU].tolist(),
                options.demand[:, MEMORY].tolist(),
                strict=True,
            )
        )
        self._start = problem.node_gpu_start.tolist()
        self._workers: dict[tuple[int, tuple[int, ...]], WorkerGpus] = {}  # alike in most jobs, so few are made
        self._alone: dict[tuple[int, tuple[int, ...]], dict[str, Any]] = {}  # option, GPUs -> what is held on a node
        self._last: list[Indexed | None] = [None] * problem.num_jobs
        self._made: dict[int, Placement] = {}
        self._waiting: dict[int, Unplaced] = {}

    def records(self, placed: Sequence[tuple[int, Indexed]], beside: State | None = None) -> list[Placement]:
        """Return the placements of some jobs; ``beside``: what all other jobs hold, None: there are no others."""
        last, made, running = self._last, self._made, self.problem.running
        for job, placement in placed:
            if last[job] is not placement:
                stays = running.get(job) is placement
                name = self.problem.job_ids[job]
                last[job], made[job] = placement, self.record(name, placement, self.same[job] if stays else None)
        return self.with_starts([made[job] for job, _ in placed], [held for _, held in placed], beside)

    def record(self, name: str, placement: Indexed, assignments: tuple[Assignment, ...] | None = None) -> Placement:
        """Return the placement of a job of that name; ``assignments``: what it holds, if that is written already."""
        option = self.problem.options.name[placement.option]
        held = self.assignments(placement) if assignments is None else assignments
        return trusted(Placement, {"job": name, "option": option, "assignments": held, "reached": NONE})

    def with_starts(
        self, records: list[Placement], placed: Sequence[Indexed], beside: State | None = None
    ) -> list[Placement]:
        """Return records of placements with the first slots of their shares; ``beside`` as in `records`."""
        if not self.problem.has_geometry:
            return records
        return with_starts(self.problem, records, placed, None if beside is None else beside.gpu_slots)

    def waiting(self, jobs: Sequence[int]) -> list[Unplaced]:
        """Return the entries of jobs that are not placed, without a reason so far."""
        ids, known = self.problem.job_ids, self._waiting
        for job in jobs:
            if job not in known:
                known[job] = trusted(Unplaced, {"job": ids[job], "reason": "outvoted", "detail": ""})
        return [known[job] for job in jobs]

    def assignments(self, placement: Indexed) -> tuple[Assignment, ...]:
        """Return what a placement holds: one assignment per node, in order of first use."""
        nodes = placement.nodes
        if len(nodes) == 1:
            return (trusted(Assignment, self._held_alone(placement)),)
        ranks: dict[int, list[int]] = {}
        for rank, node in enumerate(nodes):
            ranks.setdefault(node, []).append(rank)
        ids = self.problem.node_ids
        return tuple(
            trusted(Assignment, {"node": ids[node], **self._held(placement, node, here)})
            for node, here in ranks.items()
        )

    def _held_alone(self, placement: Indexed) -> dict[str, Any]:
        """Return the fields of the assignment of a single worker."""
        node = placement.nodes[0]
        key = placement.option, self._indexes(node, placement.gpus)
        held = self._alone.get(key)
        if held is None:
            held = self._alone[key] = self._held(placement, node, (0,))
        return {"node": self.problem.node_ids[node], **held}

    def _indexes(self, node: int, gpus: tuple[int, ...]) -> tuple[int, ...]:
        """Return GPUs of a node by their indexes in the file."""
        start = self._start[node]
        return tuple([gpu - start for gpu in gpus])

    def _held(self, placement: Indexed, node: int, ranks: Sequence[int]) -> dict[str, Any]:
        """Return the fields of an assignment but for its node: what the workers of some ranks hold there."""
        each, milli, cpu, memory = self._shape[placement.option]
        workers, held = [], {}
        for rank in ranks:
            first = rank * each
            indexes = self._indexes(node, placement.gpus[first : first + each])
            worker = self._workers.get((rank, indexes))
            if worker is None:
                worker = self._workers[rank, indexes] = trusted(WorkerGpus, {"rank": rank, "gpus": indexes})
            workers.append(worker)
            held.update(dict.fromkeys(indexes, milli))
        return {
            "group": None,
            "gpus": {str(index): held[index] for index in sorted(held)},
            "starts": NO_STARTS,
            "cpu_millicores": len(ranks) * cpu,
            "memory_mib": len(ranks) * memory,
            "workers": tuple(workers),
        }


class PlanForm(Protocol):
    """Writes an allocation as a plan, and has it judged."""

    @property
    def is_whole(self) -> bool:
        """Whether plans are for all jobs: then they state the costs, which are optimised below the value."""
        ...

    @property
    def beside(self) -> int:
        """Value of the round that plans do not state: the gap to stop at is one of the whole round."""
        ...

    def prepare(self) -> None:
        """Do what the first draft needs and later ones do not."""
        ...

    def draft(self, problem: Problem, allocation: Allocation, recorder: Recorder) -> Plan:
        """Return the plan, without reasons, objective and the rest."""
        ...

    def judge(self, plan: Plan, since: Plan | None = None) -> Judgement:
        """Return what the referee finds; ``since``: a draft without faults of which ``plan`` is a copy."""
        ...


class WholePlan:
    """Plans that list every job of an instance; the referee reads all of it."""

    is_whole: ClassVar[bool] = True
    beside: ClassVar[int] = 0

    def __init__(self, referee: Referee) -> None:
        self._referee = referee

    def prepare(self) -> None:
        """Work out the digest, which a plan names."""
        _ = self._referee.instance.digest

    def draft(self, problem: Problem, allocation: Allocation, recorder: Recorder) -> Plan:
        """Return the plan, without reasons, objective and the rest."""
        return draft_plan(self._referee.instance, problem, allocation, recorder)

    def judge(self, plan: Plan, since: Plan | None = None) -> Judgement:
        """Return what the referee finds; ``since``: a draft without faults of which ``plan`` is a copy."""
        return self._referee.judge(plan, since=since)
