"""One job under explanation: its round and who else holds what, how to solve, by when, and what stayed open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from placeopt.check import violations
from placeopt.deadline import Deadline
from placeopt.edits import Unread
from placeopt.errors import BadInput, OutOfTime, SolverFault, Unsupported
from placeopt.feasibility.requirement import Requirement, requirements_of
from placeopt.model import Instance, Job, Plan, Running
from placeopt.model.plan import Unplaced
from placeopt.problem import Move, Placement, Problem, State, compile_problem
from placeopt.problem.compile import may_change
from placeopt.problem.lost import find_lost
from placeopt.problem.running import placed_in
from placeopt.problem.target import target_workload
from placeopt.problem.tree import Tree
from placeopt.solving import Solver
from placeopt.solving.runners import Solve

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
    without = -1
    """A job that no state has, by number."""

    def beside_staying(self) -> State:
        """Return the state with only those running jobs that must stay as they are."""
        staying = {job: placement for job, placement in self.running.items() if job not in self.changeable}
        return _state(self.problem, staying, self.without)

    def beside_plan(self) -> State:
        """Return the state after the round."""
        return _state(self.problem, self.placed, self.without)


@dataclass(frozen=True)
class ExplainCase(ExplainRound):
    """One job in question, which stands in no state."""

    job: Job
    number: int
    """Of the job in ``problem``; of one with groups, of its first member that does not run yet, if there is one."""
    tree: Tree | None = None
    """Its groups, if it has some."""

    @property
    def without(self) -> int:  # type: ignore[override]  # a constant there
        """The job itself."""
        return self.number


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
        if note.kind == "left out" and name in note.names:
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


def case_of(instance: Instance, plan: Plan, job_id: str) -> ExplainCase:
    """
    Compile what an explanation of ``job_id``, or of the job that has this name where it comes from, needs.

    Raises ``BadInput`` if there is no such job or several, or the plan is not of this round or breaks its rules.
    """
    asked = job_named(instance, job_id)
    if plan.asked is not None:
        raise BadInput("plan: is for some jobs only; plans of whole rounds are explained")
    if broken := violations(instance, plan):
        raise BadInput(f"plan: {broken[0].message} ({broken[0].rule}); only valid plans are explained")
    return case_beside(instance, plan, asked)


def case_beside(instance: Instance, plan: Plan, job: Job) -> ExplainCase:
    """Compile what is asked of a job, which may have another record than in the round; the plan is valid."""
    jobs = tuple(job if one.id == job.id else one for one in instance.jobs)
    round_ = compile_round(instance.model_copy(update={"jobs": jobs}), plan, [job.id])
    groups = any(option.groups for option in job.options)
    tree = next((tree for tree in round_.problem.trees if tree.job == job.id and groups), None)
    if tree is None:
        number = round_.problem.job_ids.index(job.id)
    else:
        number = next((member for member in tree.members if member not in tree.runs), tree.members[0])
    return ExplainCase(**vars(round_), job=job, number=number, tree=tree)


def compile_round(instance: Instance, plan: Plan, asked: Sequence[str]) -> ExplainRound:
    """Compile what explanations of the jobs ``asked`` need; the plan is valid."""
    kept = {*asked, *(held.job for held in instance.running), *(held.job for held in plan.placements)}
    unasked = {held.job for held in instance.running}.difference(asked)  # no minimal utility applies to running jobs
    held = tuple(
        job.model_copy(update={"utility_min_thousandths": None}) if job.id in unasked else job
        for job in instance.jobs
        if job.id in kept
    )
    trees = {job.id for job in held if any(option.groups for option in job.options)}
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


def _state(problem: Problem, held: dict[int, Placement], without: int) -> State:
    state = State(problem)
    for job, placement in held.items():
        if job != without:
            state.apply(Move(job, placement))
    state.settle()
    return state


@dataclass
class Question:
    """What every part of the answer needs."""

    instance: Instance
    plan: Plan
    case: ExplainCase
    solver: Solver
    solve: Solve
    deadline: Deadline
    requirements: tuple[Requirement, ...] = field(init=False)
    planned: Unplaced | None = field(init=False)
    """Why the job waits by the plan; None where the plan does not list it."""
    open: dict[str, str] = field(default_factory=dict)
    """Parts that could not be finished, with the cause."""
    none: dict[str, str] = field(default_factory=dict)
    """Remedies that there are none of, with the reason."""

    def __post_init__(self) -> None:
        """Divide the job's record into options."""
        job = self.case.job
        self.requirements = requirements_of(self.case.problem, job)
        self.planned = next((unplaced for unplaced in self.plan.unplaced if unplaced.job == job.id), None)

    @property
    def staying(self) -> list[Running]:
        """The running jobs that must stay as they are."""
        may_change = {self.case.problem.job_ids[job] for job in self.case.changeable}
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
