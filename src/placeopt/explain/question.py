"""One job under explanation: its round and who else holds what, how to solve, by when, and what stayed open."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple, TypeVar

from placeopt.check import violations
from placeopt.deadline import Deadline
from placeopt.edits import Unread
from placeopt.errors import BadInput, OutOfTime, SolverFault, Unsupported
from placeopt.feasibility.free_capacity import FreeCapacity, free_capacity_of
from placeopt.feasibility.requirement import requirements_of
from placeopt.linear import LinearModel
from placeopt.model import Instance, Job, Plan, Policy, Running
from placeopt.model import Placement as PlacementRecord
from placeopt.model.conditions import ANY_NODE
from placeopt.problem import Move, Placement, Problem, State, compile_problem
from placeopt.problem.compile import may_change
from placeopt.problem.hardware import find_lost
from placeopt.problem.running import placed_in
from placeopt.problem.target import target_workload
from placeopt.solvers.pool import Worker
from placeopt.solvers.result import Progress, Solution, SolveOptions
from placeopt.solving import Solver
from placeopt.solving.runners import Solve
from placeopt.solving.tree_fit import is_related

Beside = Literal["running", "plan"]
"""The running jobs that must stay, or the whole plan."""
T = TypeVar("T")


@dataclass(frozen=True)
class ExplainRound:
    """
    Jobs in question beside the jobs that hold something: those that run, and those that the plan placed.

    Other waiting jobs are not there at all. ``problem`` has no running jobs of its own but those with groups, which may
    run in part and stay as they are: states are made by hand.
    """

    problem: Problem
    running: dict[int, Placement]
    placed: dict[int, Placement]
    changeable: frozenset[int]
    """Running jobs that policy and job allow to be moved, shrunk or preempted."""

    @cached_property
    def states(self) -> dict[Beside, State]:
        """The states beside which a waiting job may fit: the running jobs that must stay, and the whole plan."""
        staying = {job: placement for job, placement in self.running.items() if job not in self.changeable}
        return {"running": self.beside(staying), "plan": self.beside(self.placed)}

    def beside(self, held: Mapping[int, Placement]) -> State:
        """Return a state with jobs where they are held."""
        state = State(self.problem)
        for job, placement in held.items():
            state.apply(Move(job, placement))
        state.settle()
        return state


def job_named(instance: Instance, name: str) -> Job:
    """Return the job with that id or, if none has it, the only one whose origin has that name; raises ``BadInput``."""
    found = [job for job in instance.jobs if job.id == name]
    found = found or [job for job in instance.jobs if job.origin is not None and name in job.origin.names]
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(repr(job.id) for job in found[:5])
        raise BadInput(f"job: {len(found)} jobs of {instance.name!r} are called {name!r}; choose one by its id: {ids}")
    for note in instance.reading:
        if note.kind in ("left out", "not eligible") and name in note.names:
            raise BadInput(f"job: {name!r} was left out when {instance.name!r} was read: {note.reason}")
    such = f"; its ids look like {instance.jobs[0].id!r}" if instance.jobs else ""
    raise BadInput(f"job: no job {name!r} in {instance.name!r}{such}")


def freest(unread: Unread, instance: Instance, plan: Plan) -> tuple[Instance, Plan]:
    """Return the completion in which most is possible of what was not read, and the plan of it."""
    completed = unread.freest(instance)
    held = {one.job: one for one in completed.running if one.job in unread.kept}
    placements = tuple(
        one.model_copy(update={"option": held[one.job].option, "assignments": held[one.job].assignments})
        if one.job in held
        else one
        for one in plan.placements
    )
    of = plan.instance.model_copy(update={"digest": completed.digest})
    return completed, plan.model_copy(update={"instance": of, "placements": placements})


def with_policy(plan: Plan, policy: Policy) -> Plan:
    """Return the plan as of another policy."""
    return plan.model_copy(update={"policy": plan.policy.model_copy(update={"values": policy})})


def has_groups(job: Job) -> bool:
    """Return whether a job has groups, or conditions of an option; one that only prefers levels has none."""
    return any(option.groups or option.conditions != ANY_NODE for option in job.options)


def check_plan(instance: Instance, plan: Plan) -> None:
    """Raise ``BadInput`` if the plan is not of this round, or of a part of it, or breaks its rules."""
    if plan.asked is not None:
        raise BadInput("plan: is for some jobs only; plans of whole rounds are explained")
    if broken := violations(instance, plan):
        raise BadInput(f"plan: {broken[0].message} ({broken[0].rule}); only valid plans are explained")


def compile_round(instance: Instance, plan: Plan, asked: Sequence[str]) -> ExplainRound:
    """Compile what explanations of the jobs ``asked`` need; the plan is valid."""
    kept = {*asked, *(held.job for held in instance.running), *(held.job for held in plan.placements)}
    unasked = {held.job for held in instance.running}.difference(asked)  # no minimal utility applies to running jobs
    held = tuple(
        job.model_copy(update={"utility_min_thousandths": None}) if job.id in unasked else job
        for job in instance.jobs
        if job.id in kept
    )
    trees = {job.id for job in held if has_groups(job)}
    alone = instance.model_copy(
        update={"jobs": held, "running": tuple(part for part in instance.running if part.job in trees)}
    )
    policy = plan.policy.values
    problem = compile_problem(alone, policy, lost=find_lost(instance))
    # the expected workload does not depend on the job in question
    problem = replace(problem, target=target_workload(instance, policy, problem.type_model))
    running, placed = (
        placed_in(problem, placements, problem.running_records) for placements in (instance.running, plan.placements)
    )
    flat = [held_ for held_ in instance.running if held_.job not in trees]
    jobs_at = {job_id: j for j, job_id in enumerate(problem.job_ids)}
    may = may_change(problem.instance.model_copy(update={"running": tuple(flat)}), policy, jobs_at)
    changeable = frozenset[int]().union(*may.values())
    return ExplainRound(problem, running, placed, changeable)


class Tools(NamedTuple):
    """How to solve rounds and models, and by when."""

    solver: Solver
    solve: Solve
    deadline: Deadline


@contextmanager
def tools(isolation: Literal["process", "thread"], deadline: Deadline) -> Iterator[Tools]:
    """Yield the tools of one call; solver processes start where they are needed first."""
    worker = Worker(("highs",), isolation)

    def solve(
        solver: str,
        model: LinearModel,
        options: SolveOptions,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> Solution:
        solution = worker.solve(
            solver, model, options, deadline=deadline.at, on_progress=on_progress, cancel=deadline.is_set
        )
        if solution.limit == "user" and not deadline.is_set():  # Ctrl-C stopped it; the worker returned an answer
            raise KeyboardInterrupt
        return solution

    with Solver(isolation=isolation, worker=worker) as solver, worker:
        yield Tools(solver, solve, deadline)


class Question:
    """One job under explanation, in a valid plan of its round: what every part of the answer needs."""

    def __init__(self, instance: Instance, plan: Plan, job: Job, by: Tools, round_: ExplainRound | None = None) -> None:
        """``round_``: Of this job and others, where it is compiled already."""
        self.instance, self.plan, self.job, self.by = instance, plan, job, by
        self.deadline = by.deadline
        self.round = round_ or compile_round(instance, plan, [job.id])
        self.problem = problem = self.round.problem
        self.tree = next((tree for tree in problem.trees if tree.job == job.id and has_groups(job)), None)
        """Its groups, if it has some."""
        self.members = (problem.job_ids.index(job.id),) if self.tree is None else self.tree.members
        runs = () if self.tree is None else self.tree.runs
        self.number = next((member for member in self.members if member not in runs), self.members[0])
        """Of the job in ``problem``; of one with groups, of its first member that does not run yet, if there is one."""
        self.in_part = self.tree is not None and any(m in {*runs, *self.round.placed} for m in self.members)
        """Whether some of its groups run, or start by the plan."""
        self.is_joint = self.tree is not None or is_related(problem, self.number)
        """Whether its workers depend on each other, or on other jobs, by groups or relations: a model decides then."""
        self.requirements = requirements_of(problem, job)
        self.planned = next((unplaced for unplaced in plan.unplaced if unplaced.job == job.id), None)
        """Why the job waits by the plan; None where the plan does not list it."""
        self._rooms: dict[Beside, FreeCapacity] = {}
        self.open: dict[str, str] = {}
        """Parts that could not be finished, with the cause."""

    @property
    def waits(self) -> bool:
        """Whether the plan leaves the job, or a worker that it could still have, waiting."""
        return self.number not in self.round.placed

    def room(self, beside: Beside) -> FreeCapacity:
        """Return the free capacity for the job."""
        if beside not in self._rooms:
            self._rooms[beside] = free_capacity_of(self.round.states[beside], self.job)
        return self._rooms[beside]

    def held(self, beside: Beside) -> Sequence[Running | PlacementRecord]:
        """Return what holds room: the plan's placements, or the running jobs that must stay as they are."""
        if beside == "plan":
            return self.plan.placements
        may_change = {self.problem.job_ids[job] for job in self.round.changeable}
        return [held for held in self.instance.running if held.job not in may_change]

    def seconds(self) -> float:
        """Return the seconds since the call began."""
        return round(self.deadline.spent_s, 4)

    def within(self, part: str, work: Callable[[], T]) -> T | None:
        """Return the result of ``work``; None, with the cause noted under ``part``, where it could not be finished."""
        try:
            return work()
        except (OutOfTime, SolverFault, Unsupported) as error:
            self.open[part] = f"not answered: {error}"
            return None
