"""The public `solve`, and the `Solver` behind it: warm solver processes, and one round at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Literal, Self, Unpack

from placeopt.arguments import INSTANCE, expect
from placeopt.edits import truth, unread_in
from placeopt.environment import usable_cores
from placeopt.errors import BadInput, only_documented
from placeopt.formulations.fillings import CarriedPrices
from placeopt.heuristics.lookahead import LookaheadDecision
from placeopt.model import Instance, Plan, Policy
from placeopt.model.plan import PlanLimit
from placeopt.problem import Allocation, Problem, compile_problem
from placeopt.solvers.pool import Worker
from placeopt.solvers.racing import RACERS
from placeopt.solvers.registry import check_extra
from placeopt.solving.bounds import Progress
from placeopt.solving.budget import Budget, solver_of
from placeopt.solving.context import Handover, SolveContext
from placeopt.solving.draft import PlanForm
from placeopt.solving.finish import finish
from placeopt.solving.methods import Method, method_of
from placeopt.solving.params import SolveOptions, SolveParams, check_call
from placeopt.solving.runners import SolverRunners
from placeopt.solving.stage import exchange, run_stages, take_turns
from placeopt.solving.stages.first_plan import first_reserve_s
from placeopt.terms.costs import costs_of
from placeopt.terms.objective import Weighted

__all__ = ["Interrupted", "Solver", "solve"]


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a round: a ``KeyboardInterrupt`` that carries the best checked plan as ``plan``."""

    def __init__(self, plan: Plan) -> None:
        super().__init__("interrupted; the best plan so far is in 'plan'")
        self.plan = plan


@dataclass(frozen=True)
class RoundInput:
    """What a call gives to a round beside its `SolveParams`."""

    started: float  # when the call began, on ``time.monotonic``, reading included
    read_s: float | None = None  # seconds that reading the instance took, for the plan's record
    previous: Plan | None = None  # a plan of an earlier round, as a hint
    start: Allocation | None = None
    """Where jobs were placed in parts of the round: the first plan, in place of greedy's."""
    limits: tuple[PlanLimit, ...] = ()
    """What cut the parts short."""
    prices: CarriedPrices | None = None  # what earlier rounds leave for this one, and it for the next
    cancel: threading.Event | None = None
    on_progress: Callable[[Progress], None] | None = None
    """``cancel``, ``on_progress``: As in ``placeopt.solve``."""

    def budget(self, params: SolveParams, reserve_s: float = 0.0) -> Budget:
        """Return the budget of the round; a plan comes first, so half of the time left is reserved at most."""
        ends, cores = self.started + params.time_limit_s, usable_cores()
        budget = Budget(
            params,
            started=self.started,
            deadline=ends - min(reserve_s, max(ends - time.monotonic(), 0.0) / 2),
            threads=1 if params.deterministic else min(params.threads or cores, cores),
            cancelled=None if self.cancel is None else self.cancel.is_set,
        )
        for limit in self.limits:
            budget.note_limit(limit)
        return budget


@dataclass(frozen=True)
class RoundRun:
    """A round whose stages have run."""

    context: SolveContext
    compile_s: float
    run_s: float
    """Seconds that the stages took, checks included."""

    @property
    def is_interrupted(self) -> bool:
        """Whether Ctrl-C ended it; there may have been one in a solve."""
        return self.context.budget.limit == "user" and self.context.budget.cancelled is None


def _check_solver_options(method: Method, params: SolveParams) -> None:
    if not params.solver_options:
        return
    solvers = [solver_of(stage.solver, params, threads=1) for stage in method.exact]
    if not solvers:
        raise BadInput(f"solver_options: method {params.method!r} runs no exact solver; use another method")
    for solver in dict.fromkeys(solvers):
        check_extra(solver, tuple(params.solver_options.items()))


class Solver:
    """
    Solves rounds with warm solver processes; a context manager.

    Parameters
    ----------
    policy
        Overrides the policies of instances; None: each instance's own.
    isolation
        ``process``: solvers run in a child that is killed at the deadline. ``thread``: in this process, where none can
        be started; a solver that ignores its deadline is then left behind.
    worker
        A solver process that is there already, to be used before any other; closed with the rest.
    stays_warm
        Whether a solver process that was ended at a deadline is replaced at once, for the next round.

    Raises
    ------
    BadInput
        If it is another word, or ``policy`` is none.
    """

    def __init__(
        self,
        policy: Policy | None = None,
        *,
        isolation: Literal["process", "thread"] = "process",
        worker: Worker | None = None,
        stays_warm: bool = False,
    ) -> None:
        if policy is not None:
            expect("policy", policy, Policy, "a Policy, or None")
        if isolation not in ("process", "thread"):
            raise BadInput(f"isolation: {isolation!r}, expected process or thread")
        self.policy = policy
        first, second = RACERS
        self._runners = (worker or Worker((first,), isolation), Worker((second,), isolation))
        for runner in self._runners:
            runner.stays_warm = stays_warm

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Start a solver process ahead of the first round, so that it loads while the caller reads the instance."""
        self._runners[0].start()

    def kill(self) -> None:
        """End the solver processes without waiting for their end; `close` waits."""
        for runner in self._runners:
            runner.kill()

    def close(self) -> None:
        """End the solver processes. May be called twice."""
        for runner in self._runners:
            runner.close()

    @property
    def solver_pids(self) -> tuple[int, ...]:
        """Process ids of the solver processes that live; a race of two solvers has a second one."""
        return tuple(runner.pid for runner in self._runners if runner.pid is not None)

    def solve(
        self,
        instance: Instance,
        *,
        previous: Plan | None = None,
        cancel: threading.Event | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        read_s: float | None = None,
        **options: Unpack[SolveOptions],
    ) -> Plan:
        """
        Solve one round; see ``placeopt.solve``.

        Parameters
        ----------
        instance
            The round.
        previous, cancel, on_progress, **options
            As in ``placeopt.solve``.
        read_s
            Seconds that reading the instance has taken already; they count against the time limit.

        Returns
        -------
        Plan
            As ``placeopt.solve`` returns it.

        Raises
        ------
        BadInput, Unsupported, Interrupted, InternalFault, MemoryError
            As ``placeopt.solve`` raises them.
        """
        started = time.monotonic() - (read_s or 0.0)
        expect("instance", instance, Instance, INSTANCE)
        params = SolveParams.of(options)
        check_call(previous=previous, cancel=cancel, on_progress=on_progress)

        plan = self.solve_compiled(
            lambda: compile_problem(instance, self.policy),
            params,
            RoundInput(started, read_s, previous=previous, cancel=cancel, on_progress=on_progress),
        )
        if plan.of == "cluster" or plan.status != "optimal":
            return plan
        of, names = truth(unread_in(instance), lambda: self._is_best(plan, instance, params, started, cancel))
        return plan.model_copy(update={"of": of, "unread": names})

    def _is_best(
        self, plan: Plan, instance: Instance, params: SolveParams, started: float, cancel: threading.Event | None
    ) -> bool:
        """Return whether no plan is better where most is possible of what was not read, in the time that is left."""
        policy = plan.policy.values
        left_s = params.time_limit_s - (time.monotonic() - started)
        if left_s <= 0:
            return False
        weighted = tuple(
            Weighted(cost, plan.costs[cost.name].weight, plan.costs[cost.name].worst)
            for cost in costs_of(policy)
            if cost.name in plan.costs
        )
        freest = unread_in(instance).freest(instance)
        given = RoundInput(time.monotonic(), cancel=cancel)
        ran = self.run_stages(
            lambda: compile_problem(freest, policy), replace(params, time_limit_s=left_s), given, weighted=weighted
        )
        bounds, (value, *costs) = ran.context.bounds, plan.levels
        return bounds.whole_value <= value.objective and all(
            bounds.cost is not None and bounds.cost >= cost.objective for cost in costs
        )

    def solve_compiled(
        self,
        compiled: Callable[[], Problem],
        params: SolveParams,
        given: RoundInput,
        *,
        prove: bool = True,
        explain: bool = True,
        decision: LookaheadDecision | None = None,
        form: PlanForm | None = None,
    ) -> Plan:
        """
        Solve the round that ``compiled`` gives, whose running jobs are valid.

        - ``prove``: Whether methods of greedy alone bound the value.
        - ``explain``: Whether the plan says why each job waits.
        - ``decision``: What look-ahead has decided on this very problem.
        - ``form``: How plans are written and judged; None: plans of all jobs.

        Raises ``BadInput`` if the method or a solver option is unknown, or running jobs contradict each other,
        ``Interrupted`` at Ctrl-C, with the best plan in it, ``InternalFault`` if referee or audit refuse the plan.
        """
        ran = self.run_stages(compiled, params, given, prove=prove, decision=decision, form=form)
        context, solve_s = ran.context, ran.run_s - ran.context.budget.check_s
        plan = finish(context, given.read_s, ran.compile_s, solve_s, explain=explain)
        if ran.is_interrupted:
            raise Interrupted(plan)
        return plan

    def run_stages(
        self,
        compiled: Callable[[], Problem],
        params: SolveParams,
        given: RoundInput,
        *,
        prove: bool = True,
        decision: LookaheadDecision | None = None,
        form: PlanForm | None = None,
        weighted: tuple[Weighted, ...] | None = None,
    ) -> RoundRun:
        """Return a round whose stages have run, without its plan; ``weighted``: costs in place of the policy's."""
        method = method_of(params.method)
        if not prove and method.is_greedy:
            method = method.without_bound()
        if given.start is not None:
            method = method.from_start()
        _check_solver_options(method, params)
        if method.needs_solver:
            self.start()
        compiling = time.monotonic()
        problem = compiled()
        compile_s = time.monotonic() - compiling
        if problem.policy.priorities == "strict":
            method = method.for_strict_priorities()
        budget = given.budget(params, first_reserve_s(problem.num_jobs, compile_s))
        solving = time.monotonic()
        context = SolveContext(
            problem,
            budget,
            greedy=method.greedy,
            handover=Handover(
                previous_plan=given.previous, start=given.start, decision=decision, carried_prices=given.prices
            ),
            on_progress=given.on_progress,
            form=form,
            weighted=weighted,
        )
        context.solvers = SolverRunners(context, self._runners)
        try:
            run_stages(context, method.first)
            take_turns(context, method.turns)
        except KeyboardInterrupt:
            budget.note_limit("user")
        if context.handover.searching is not None and budget.ends - time.monotonic() > budget.offer_s:
            exchange(context, context.handover.searching)
        if context.handover.begun_bound is not None:
            context.handover.begun_bound.beside.drop()
        return RoundRun(context, compile_s, time.monotonic() - solving)


@only_documented
def solve(
    instance: Instance,
    *,
    policy: Policy | None = None,
    previous: Plan | None = None,
    cancel: threading.Event | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    isolation: Literal["process", "thread"] = "process",
    **options: Unpack[SolveOptions],
) -> Plan:
    """
    Solve one scheduling round and return the best checked plan with its proven bound.

    Parameters
    ----------
    instance
        The round: cluster, running placements, jobs.
    policy
        Overrides the instance's own.
    previous
        A plan of an earlier round. What of it still fits, filled up by greedy, is a candidate like any other; it is
        never more than that: ``instance.running`` is the truth.
    cancel
        Set it from another thread to stop with the best plan so far, limit ``user``.
    on_progress
        Called in this thread with every news. What it raises ends the call.
    isolation
        Where solvers run; see ``Engine``.
    **options
        Fields of `placeopt.solving.params.SolveParams`, which describes them: ``method``, ``time_limit_s``, ``gap``,
        ``threads``, ``seed``, ``deterministic``, ``memory_limit_mib``, ``solver_options``.

    Returns
    -------
    Plan
        Accepted by the referee; per level the objective and the proven bound.

    Raises
    ------
    BadInput
        If arguments or the instance's running placements contradict themselves.
    Unsupported
        If the round needs what this version cannot do.
    Interrupted
        At Ctrl-C (a ``KeyboardInterrupt``), with the best plan in it.
    InternalFault
        If placeopt contradicts itself; always a bug. A fault inside one stage is none: the best plan of the others is
        returned, and the stage's outcome is ``failed``.
    MemoryError
        If the instance is too large for the memory there is.
    """
    with Solver(policy, isolation=isolation) as solver:
        return solver.solve(instance, previous=previous, cancel=cancel, on_progress=on_progress, **options)
