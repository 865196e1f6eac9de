"""What still fits: copies of a job beside the running ones, the largest gang, and what binds."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from placeopt.arguments import checked
from placeopt.deadline import Deadline
from placeopt.edits import Answer, edit_instance, free_name, true_of, unread_in
from placeopt.edits.levels import levels_of
from placeopt.errors import OutOfTime
from placeopt.explain import explain
from placeopt.explain.question import has_groups
from placeopt.feasibility.fit import largest
from placeopt.feasibility.free_capacity import FreeCapacity, free_capacity_of
from placeopt.feasibility.requirement import Requirement, requirements_of
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance, Job
from placeopt.model.base import Id, Name, Record
from placeopt.model.group import MAX_WORKERS, Demand, Group, Split
from placeopt.problem import IntArray, State, compile_problem
from placeopt.solving.tree_fit import is_related
from placeopt.view import Chart, Column, Figure, Table, View
from placeopt.whatif.placements import only_running
from placeopt.whatif.round_solving import LEAST_S, Limits, attempt, placing_only

MOST_COPIES = 20_000
"""Number of copies that are tried; beyond it, arithmetic alone bounds the number."""
NO_LIMIT = 10**12

LEVELS = (Column(name="level"), Column(name="workers", better="more"), Column(name="GPUs", unit="gpu_milli"))


class Binding(Record):
    """A constraint that excludes one more copy, and what it requires."""

    name: Name
    asks: str


class LargestGang(Record):
    """The proven maximum of workers of ``gpus_each`` GPUs that one domain of a level holds beside running jobs."""

    level: Id
    workers: int
    gpus_each: int
    gpu_milli_each: int
    """Thousandths of GPUs that one worker holds: 500 of half a GPU."""

    @property
    def gpu_milli(self) -> int:
        """Thousandths of GPUs that all its workers hold."""
        return self.workers * self.gpu_milli_each


class Fit(Answer):
    """How many copies of a job fit: ``found`` are placed, ``most`` is the proven maximum."""

    found: int
    most: int
    gpu_milli_each: int
    gangs: tuple[LargestGang, ...]
    binds: tuple[Binding, ...] | None
    tolerated: tuple[str, ...] = ()
    """Taints of nodes that count as open, since the job tolerates them or is assumed to; as ``kubectl`` writes them."""
    seconds: float

    @property
    def proven(self) -> bool:
        """Whether both bounds meet."""
        return self.found == self.most

    def view(self, asked: str = "such a job") -> View:
        """Return the number of copies, the largest gangs and what binds; ``asked``: the job in words."""
        span = f"{self.found:,}" if self.proven else f"{self.found:,} to {self.most:,}"
        notes = ["running jobs stay; waiting jobs are ignored"]
        if self.tolerated:
            notes.append(f"taints that the job tolerates: {', '.join(self.tolerated)}")
        gangs = tuple((gang.level, gang.workers, gang.gpu_milli) for gang in self.gangs)
        binds = tuple((one.name, one.asks) for one in self.binds or ())
        return View(
            title=f"{span} more {'copy' if self.found == self.most == 1 else 'copies'} of {asked} fit",
            verdict="bad" if not self.most else "good" if self.found else "open",
            proof=self.proof("the copies found have a checked plan, the most is a bound; gangs are exact"),
            figures=(
                Figure(name="copies", value=self.found, better="more"),
                Figure(name="at most", value=self.most),
                Figure(name="GPUs of the copies", value=self.found * self.gpu_milli_each, unit="gpu_milli"),
                Figure(name="seconds", value=self.seconds, unit="s"),
            ),
            notes=tuple(notes),
            tables=(
                Table(name="Largest gang", columns=LEVELS, rows=gangs, note="of such workers in one domain; proven"),
                Table(
                    name="What binds",
                    columns=(Column(name="constraint"), Column(name="requires")),
                    rows=binds,
                    note="one more would fit without any one of these",
                ),
            ),
            chart=Chart(kind="bars", table="Largest gang", x="level", y=("workers",)) if gangs else None,
        )


@checked
def fit(instance: Instance, job: Job, limits: Limits | None = None, cancel: threading.Event | None = None) -> Fit:
    """
    Return how many copies of a job fit beside the running ones; waiting jobs are ignored.

    Parameters
    ----------
    instance
        The cluster and its running jobs, as `placeopt.whatif.after_plan` returns it for a plan.
    job
        The job to copy; `placeopt.whatif.parse_job` reads ``8xH100``.
    limits
        ``time_limit_s`` applies to the whole answer; gangs and binding constraints need no solver.
    cancel
        Set it from another thread to stop with the result known by then.

    Returns
    -------
    Fit
        Number of copies found, all checked by the referee, and its proven maximum. ``gangs``: the proven maximum of
        such workers in one domain of each level that was reached; none of jobs with groups or relations.
        ``binds``: constraints that one more copy cannot meet together, though it fits without any one of them; None if
        more copies fit or the time was too short.
        ``tolerated``: taints that the job tolerates.

    Notes
    -----
    Copies are jobs of value 1 in a round, one more than GPUs, CPU and memory allow, and at most 20,000.
    """
    limits = limits or Limits()
    deadline = Deadline(limits.time_limit_s, cancel)
    base = only_running(instance)
    used = {job.id for job in base.jobs}
    copied = job.model_copy(update={"id": free_name("asked", used)})
    problem = compile_problem(edit_instance(base, jobs=(*base.jobs, copied)))
    free, gangs = free_capacity_of(State(problem), copied), tuple[LargestGang, ...]()
    if has_groups(copied):
        at_most = _most_of_groups(free, copied)
    else:
        requirements = requirements_of(problem, copied)
        at_most = sum(_most_of(free, one) for one in requirements)  # some copies may run in one, some in another
        if not is_related(problem, problem.job_ids.index(copied.id)):
            gangs = _gangs(free, requirements, instance, deadline)
    count = min(at_most, MOST_COPIES)
    copies = tuple(copied.model_copy(update={"id": free_name(f"asked-{number}", used)}) for number in range(count + 1))
    names = {copy.id for copy in copies}
    round_ = placing_only(edit_instance(base, jobs=(*base.jobs, *copies)), lambda _: 1)
    with Engine() as engine:
        trial = attempt(engine, round_, limits, deadline)
    found = sum(placement.job in names for placement in trial.plan.placements)
    most = trial.most - (trial.placed - found)
    if most > count:  # all copies that were tried fit
        most = at_most
    binds: tuple[Binding, ...] | None = None
    left = next((unplaced.job for unplaced in trial.plan.unplaced if unplaced.job in names), None)
    if left is not None and not deadline.is_set():
        explained = explain(round_, trial.plan, left, time_limit_s=max(LEAST_S, deadline.left_s), cancel=deadline)
        if explained.conflict:
            binds = tuple(Binding(name=constraint.name, asks=constraint.asks) for constraint in explained.conflict)
    taints = dict.fromkeys(taint for node in instance.cluster.nodes for taint in node.taints)
    answer = Fit(
        found=found,
        most=max(min(most, at_most), found),
        gpu_milli_each=job.gpu_milli,
        gangs=gangs,
        binds=binds,
        tolerated=tuple(
            taint.text for taint in taints if any(one.tolerates(taint) for one in job.conditions.tolerations)
        ),
        seconds=deadline.spent_s,
    )

    def again() -> Fit:
        left = replace(limits, time_limit_s=max(LEAST_S, deadline.left_s))
        return fit(unread.freest(instance), job, left, cancel)

    unread = unread_in(instance, waiting=False, moved=())
    return true_of(answer, unread, again, lambda one: (one.found, one.most, one.gangs))


def _gangs(
    free: FreeCapacity, requirements: tuple[Requirement, ...], instance: Instance, deadline: Deadline
) -> tuple[LargestGang, ...]:
    """Return the largest gang of such workers in one domain of each level, and anywhere, as far as time allows."""
    out: list[LargestGang] = []
    for level in (*levels_of(instance), "cluster"):
        best: LargestGang | None = None
        for requirement in requirements:
            splits = () if level == "cluster" else (Split(level=level, domains=1),)
            relaxed = replace(requirement, fewest=1, most=MAX_WORKERS, single_node=False, splits=splits)
            try:
                workers = largest(free, relaxed, deadline) or 0
            except OutOfTime:
                return tuple(out)
            if best is None or workers * requirement.gpus > best.workers * best.gpus_each:
                milli = requirement.gpus * requirement.milli
                best = LargestGang(level=level, workers=workers, gpus_each=requirement.gpus, gpu_milli_each=milli)
        if best is not None:
            out.append(best)
    return tuple(out)


def _most_of_groups(free: FreeCapacity, job: Job) -> int:
    """Return an upper bound of the copies of a job of groups that fit: by GPU shares, CPU and memory of all nodes."""
    kinds: list[tuple[IntArray, Callable[[Demand], int]]] = [
        (free.of_resource(0), lambda demand: demand.cpu_millicores),
        (free.of_resource(1), lambda demand: demand.memory_mib),
    ]
    if free.problem.shares_bind:
        kinds.append((free.gpu_free_milli, lambda demand: demand.gpus * demand.gpu_milli))
    needs = [
        (int(np.maximum(there, 0).sum()), min(_least(option, amount) for option in job.options))
        for there, amount in kinds
    ]
    return min((there // need for there, need in needs if need), default=NO_LIMIT)


def _least(group: Group, amount: Callable[[Demand], int]) -> int:
    """Return an amount that the workers of a group which must run request."""
    if not group.groups:
        return group.fewest * amount(group.demand)
    return sum(_least(part, amount) for part in group.groups if not part.optional)


def _most_of(free: FreeCapacity, requirement: Requirement) -> int:
    """Return an upper bound of the copies that fit, by GPU shares and by the resources of nodes."""
    if not requirement.useful:
        return 0
    reachable = free.reachable(requirement)
    most = NO_LIMIT
    for r, need in enumerate(requirement.demand):
        if need:
            most = min(most, int((np.maximum(free.of_resource(r)[reachable], 0) // need).sum()))
    if requirement.gpus:
        usable = free.usable(requirement) & reachable[free.problem.gpu_node]
        jobs = (
            np.full(len(usable), NO_LIMIT // max(1, len(usable)))
            if requirement.jobs_per_gpu is None
            else requirement.jobs_per_gpu - free.gpu_jobs
        )
        if free.problem.shares_bind:
            jobs = np.minimum(jobs, free.gpu_free_milli // requirement.milli)
        if requirement.gpus > 1 or requirement.milli == 1000:  # whole GPUs: by node
            whole = np.bincount(free.problem.gpu_node[usable], minlength=free.problem.num_nodes) // requirement.gpus
            by_node = int(whole.sum()) * (1 if free.problem.shares_bind else int(jobs.max(initial=0)))
            most = min(most, by_node)
        else:
            most = min(most, int(jobs[usable].sum()))
    return most // requirement.fewest
