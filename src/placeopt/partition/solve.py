"""A round solved in parts, side by side, and repaired as a whole."""

from __future__ import annotations

import gc
import pickle
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

import numpy as np

from placeopt.arguments import checked
from placeopt.check import Judgement
from placeopt.environment import usable_cores
from placeopt.errors import BadInput, only_documented
from placeopt.model import Instance, Plan, Policy
from placeopt.model.plan import PlanLimit
from placeopt.parallel import run_parallel
from placeopt.partition.splitting import Part, Way, check_split, deal_parts, part_instance
from placeopt.problem import Allocation, Placement, Problem, compile_problem
from placeopt.solving.api import Interrupted, RoundInput, Solver
from placeopt.solving.budget import Budget
from placeopt.solving.draft import Recorder, plan_of
from placeopt.solving.methods import method_of
from placeopt.solving.params import SolveParams

Input = TypeVar("Input", bound=RoundInput)
MEND_SHARE = 0.4
"""Part of the time that is kept for the whole: putting together, filling up, the bound, the check."""
RETURN_SHARE = 0.25
"""Part of that in which parts that have ended come back from their processes; those that do not are given up."""
WORK_SHARE = 0.5
"""
Part of the time limit that stands for work in deterministic mode, of parts and whole together: one process may have to
solve all parts, and the clock, which is a guard there, also runs while they are compiled, sent and checked.
"""


@dataclass(frozen=True)
class _Task:
    """One part, as it goes to another process."""

    number: int
    round: Instance | np.ndarray
    """Pickled for another process, as an array: joblib lays that down for it, and no pipe waits for its reader."""
    params: SolveParams
    ends_at: float
    """When all parts are due, in seconds since the epoch."""
    turns: int
    """Parts that one process solves from then on, this one included, between which the time left is divided."""
    share: float
    """Part of the time limit that stands for work in deterministic mode, however many processes there are."""


@checked
@only_documented
def solve_in_parts(
    instance: Instance,
    *,
    parts: int,
    by: Way = "random",
    jobs: int | None = None,
    policy: Policy | None = None,
    method: str = "auto",
    mend: str = "auto",
    time_limit_s: float = SolveParams.time_limit_s,
    seed: int = 0,
    deterministic: bool = False,
) -> Plan:
    """
    Split a round, solve the parts side by side, join their placements and go on from these as a whole.

    Parameters
    ----------
    instance, policy, time_limit_s, seed
        As for ``placeopt.solve``.
    parts, by
        See ``split``.
    jobs
        Parts solved at a time, by processes of this machine; None: one for each usable core. What they need to start
        is a part of the limit: parts that are not back in time are left to the whole. Under
        ``joblib.parallel_config(backend="dask")`` or ``"ray"``, once registered with joblib, by other machines.
    method
        Of the parts.
    mend
        Of the whole: its greedy places what fits in no part, its stages go on from there, and bound the whole round.
    deterministic
        As for ``placeopt.solve``. The plan is the same whatever ``jobs`` is, and on dask and ray: a part's work depends
        on ``time_limit_s`` and the number of parts only.

    Returns
    -------
    Plan
        Of the whole round, checked as a whole, with a bound that holds for the whole. Within 1 % of that bound, or no
        worse than ``mend``'s greedy, unless time is short. Running jobs are changed by ``mend`` only.

    Raises
    ------
    BadInput, Unsupported, Interrupted, InternalFault, MemoryError
        As ``placeopt.solve`` and ``split``. At Ctrl-C the placements of the parts that have ended are joined.
    """
    started = time.monotonic()
    params = SolveParams(method=mend, time_limit_s=time_limit_s, seed=seed, deterministic=deterministic)
    params.check()
    check_split(parts, by)
    if jobs is not None and jobs < 1:
        raise BadInput(f"jobs: {jobs}; expected 1 or more")
    for name in (method, mend):
        method_of(name)
    problem = compile_problem(instance, policy)
    if not problem.is_plain:  # parts know no groups of workers; as a whole they do
        with Solver() as solver:
            return solver.solve_compiled(lambda: problem, params, RoundInput(started))
    dealt = deal_parts(problem, parts, by, seed)
    width = min(usable_cores() if jobs is None else jobs, len(dealt))
    done: dict[int, tuple[list[Place], PlanLimit]] = {}
    interrupted = False
    left_s = started + time_limit_s - time.monotonic()
    kept_s = left_s * (MEND_SHARE / 2 if deterministic else MEND_SHARE)  # there the clock is a guard only
    due = time.monotonic() + left_s - (1 - RETURN_SHARE) * kept_s
    tasks = _tasks(problem, dealt, method, params, time.time() + left_s - kept_s, width)
    try:
        for number, places, limit in run_parallel(_solve_part, tasks, width, ahead=True, due=due):
            done[number] = places, limit
            if number + 2 * width >= len(dealt):  # what is left has been sent: nothing is packed meanwhile
                _ = instance.digest  # the plan states it; now others are at work
    except KeyboardInterrupt:
        interrupted = True
    in_order = sorted(done.items())  # by the part's number, not as they ended
    start = joined(problem, dealt, ((number, places) for number, (places, _) in in_order))
    cancel = threading.Event()
    limits: tuple[PlanLimit, ...] = tuple(limit for _, (_, limit) in in_order)
    if len(done) < len(dealt):
        limits += ("time",)
    given = RoundInput(started, start=start, limits=limits, cancel=cancel if interrupted else None)
    if deterministic:
        given, params = _on_work(given, params, started + time_limit_s, WORK_SHARE * MEND_SHARE)
    del done, in_order
    if interrupted:
        cancel.set()
    with Solver() as solver:
        plan = solver.solve_compiled(lambda: problem, params, given)
    if interrupted:
        raise Interrupted(plan)
    return plan


def _on_work(given: Input, params: SolveParams, due: float, share: float) -> tuple[Input, SolveParams]:
    """Return a round that may use ``share`` of the time limit as work, and is due on ``time.monotonic`` at ``due``."""
    params = replace(params, time_limit_s=share * params.time_limit_s)
    return replace(given, started=due - params.time_limit_s), params


def _tasks(
    problem: Problem, dealt: Sequence[Part], method: str, whole: SolveParams, ends_at: float, width: int
) -> Iterator[_Task]:
    """Yield the parts; ``ends_at`` is when they end, in seconds since the epoch, ``width`` how many go at a time."""
    params = replace(whole, method=method, threads=1)
    share = WORK_SHARE * (1 - MEND_SHARE) / len(dealt)
    for number, part in enumerate(dealt):
        turns, alone = -(-(len(dealt) - number) // width), part_instance(problem, part, number)
        yield _Task(number, alone if width == 1 else _packed(alone), params, ends_at, turns, share)


def _packed(instance: Instance) -> np.ndarray:
    return np.frombuffer(pickle.dumps(instance, pickle.HIGHEST_PROTOCOL), np.uint8)


def _unpacked(packed: np.ndarray) -> Instance:
    """Return the round of a part, in its process. Unpacking makes no garbage, so none is looked for meanwhile."""
    collects = gc.isenabled()
    gc.disable()
    try:
        instance: Instance = pickle.loads(packed.data)  # noqa: S301 - made by this program
    finally:
        if collects:
            gc.enable()
    return instance


class _PartBudget(Budget):
    """A budget of which nothing is reserved for the end: placements of a part become a plan only in the whole."""

    def reserve(self, seconds: float) -> None:
        """Reserve nothing."""


class _PartInput(RoundInput):
    """A part, as a round."""

    def budget(self, params: SolveParams, reserve_s: float = 0.0) -> Budget:
        """Return the budget of the part."""
        del reserve_s
        return _PartBudget(**vars(super().budget(params)))


class _Unwritten:
    """Placements of a part are written, and judged, only in the whole."""

    is_whole: ClassVar[bool] = True
    beside: ClassVar[int] = 0

    def prepare(self) -> None:
        """Do nothing."""

    def draft(self, problem: Problem, allocation: Allocation, recorder: Recorder) -> Plan:
        """Return a plan without placements."""
        del allocation, recorder
        return plan_of(problem.instance, problem.policy, asked=())

    def judge(self, plan: Plan, since: Plan | None = None) -> Judgement:
        """Find nothing."""
        del plan, since
        return Judgement([], [])


def _solve_part(task: _Task) -> tuple[int, list[Place], PlanLimit]:
    """
    Solve one part, without a plan: what is placed is checked as a whole.

    Return the part's number, what is placed, and what cut it short.
    """
    given, params = _PartInput(time.monotonic()), task.params
    left = task.ends_at - time.time()
    if left <= 0:
        return task.number, [], "time"
    if params.deterministic:
        given, params = _on_work(given, params, given.started + left, task.share)
    else:
        params = replace(params, time_limit_s=left / task.turns)
    instance = task.round if isinstance(task.round, Instance) else _unpacked(task.round)
    with Solver() as solver:
        run = solver.run_stages(lambda: compile_problem(instance), params, given, form=_Unwritten())
    if run.is_interrupted:
        raise KeyboardInterrupt
    context = run.context
    places = places_of(context.problem, context.incumbent.allocation)
    return task.number, places, context.budget.limit


Place = tuple[int, int, tuple[int, ...], tuple[int, ...]]
"""Where a job of a part starts: the job, its option counted from its first one, nodes of its workers, and GPUs."""


def places_of(problem: Problem, allocation: Allocation) -> list[Place]:
    """Return the places of the jobs that start."""
    first = problem.class_option_start[problem.job_class].tolist()
    return [
        (job, held.option - first[job], held.nodes, held.gpus)
        for job, held in enumerate(allocation)
        if held is not None and job not in problem.running
    ]


def joined(problem: Problem, parts: Sequence[Part], places: Iterable[tuple[int, list[Place]]]) -> Allocation:
    """Return the allocation of the whole from the places of parts by number; running jobs stay as they are."""
    allocation = [problem.running.get(job) for job in range(problem.num_jobs)]
    first, start = problem.class_option_start[problem.job_class].tolist(), problem.node_gpu_start.tolist()
    for number, here in places:
        jobs, nodes = parts[number].jobs.tolist(), parts[number].nodes.tolist()
        gpus = [gpu for node in nodes for gpu in range(start[node], start[node + 1])]
        for job, option, on, held in here:
            where = tuple([nodes[node] for node in on])
            allocation[jobs[job]] = Placement(first[jobs[job]] + option, where, tuple([gpus[gpu] for gpu in held]))
    return tuple(allocation)
