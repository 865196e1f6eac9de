"""A scheduling round: stages under one deadline, the best checked plan, its bound, and how it was found."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Literal, Self

from placeopt.auditing import audit
from placeopt.check import violations
from placeopt.errors import BadInput, InternalFault
from placeopt.formats.collection import collection_paused
from placeopt.linear import LinearModel
from placeopt.methods import Method, method_of
from placeopt.model import Instance, Plan, Policy
from placeopt.model.plan import Cost, Level, Seconds
from placeopt.problem import Problem, State, change_of, compile_problem
from placeopt.problem.changes import change_limits
from placeopt.resident import Residence
from placeopt.solvers.beside import Beside
from placeopt.solvers.inprocess import InProcess
from placeopt.solvers.pool import Worker
from placeopt.solvers.race import RACE, RACERS, race, share_out
from placeopt.solvers.registry import check_extra
from placeopt.solvers.result import Progress as SolverProgress
from placeopt.solvers.result import Solution, SolveOptions
from placeopt.stages.arrange import run_arrange
from placeopt.stages.bound import Asked, ask_bound, run_bound
from placeopt.stages.exact import run_exact
from placeopt.stages.fillings import run_fillings, suits
from placeopt.stages.heuristic import run_heuristic
from placeopt.stages.lookahead import run_lookahead
from placeopt.stages.patterns import is_large, run_patterns
from placeopt.stages.previous import run_previous
from placeopt.stages.ranks import run_ranks
from placeopt.stages.reasons import reasons
from placeopt.stages.round import Limits, Progress, Round, relative_gap
from placeopt.stages.search import is_beyond_exact, run_search
from placeopt.terms.free_gpus import slots_left
from placeopt.terms.objective import most_milli
from placeopt.terms.rules import relaxed
from placeopt.workplace import usable_cores, versions

RESERVE_S = 0.02
RESERVE_PER_JOB_S = 30e-6
"""Time kept back for a first plan, reasons, the final check and the audit, fixed and per job; measured, generous."""
RESERVE_PER_COMPILE, RESERVE_PER_OFFER = 3.5, 2.0
"""
The same as a multiple of what compiling has taken in this round and, once a plan was offered, of what that took: so it
holds where the machine is busy with other work. The end took 0.9 to 3.4 times as long as an offer, most where many
gangs wait whose reasons are to be found; for those there is a time limit of its own.
"""
ARRANGE_SHARE = 0.6
"""Part of the time that is left for arrangements where exact stages come after them."""


class Engine(Residence):
    """
    Solves rounds with a warm solver process, and keeps a cluster between them if one is loaded; a context manager.

    Parameters
    ----------
    policy
        Overrides the policies of instances; None: each instance's own.
    isolation
        ``process``: solvers run in a child that is killed at the deadline. ``thread``: in this process, for those who
        cannot start processes; a solver that does not stop when asked is then left behind.

    Notes
    -----
    Not thread-safe: calls to one engine, one after the other, may come from any thread, but no two at once; only the
    event ``cancel`` may be set meanwhile. Writes no file, prints nothing, sets no signal handler.
    """

    def __init__(self, policy: Policy | None = None, *, isolation: Literal["process", "thread"] = "process") -> None:
        super().__init__(policy)
        make = Worker if isolation == "process" else InProcess
        self._runners: tuple[Worker | InProcess, Worker | InProcess] = (make(), make())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Start a solver process ahead of the first round, so that it loads while the caller reads the instance."""
        self._runners[0].start()

    def close(self) -> None:
        """End the solver processes. May be called twice."""
        for runner in self._runners:
            runner.close()

    @property
    def solver_pid(self) -> int | None:
        """Process id of the solver process, None without one."""
        return next(iter(self.solver_pids), None)

    @property
    def solver_pids(self) -> tuple[int, ...]:
        """Process ids of all solver processes; a race of two solvers has a second one."""
        pids = [runner.pid for runner in self._runners if isinstance(runner, Worker)]
        return tuple(pid for pid in pids if pid is not None)

    def solve(
        self,
        instance: Instance,
        *,
        method: str = "auto",
        time_limit_s: float = 3.0,
        gap: float = 0.0,
        threads: int | None = None,
        seed: int = 0,
        deterministic: bool = False,
        previous: Plan | None = None,
        cancel: threading.Event | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        memory_limit_mib: int | None = None,
        solver_options: dict[str, str] | None = None,
        read_s: float | None = None,
    ) -> Plan:
        """
        Solve one round; see ``placeopt.solve``.

        ``memory_limit_mib`` is what a solver process may use. ``solver_options`` go to the exact solver by their own
        names; with any there is no race of two. ``read_s`` is what reading the instance has cost already: it counts
        against the time limit.
        """
        started = time.monotonic() - (read_s or 0.0)

        return self._round(
            lambda: compile_problem(instance, self._policy),
            started=started,
            method=method,
            time_limit_s=time_limit_s,
            gap=gap,
            threads=threads,
            seed=seed,
            deterministic=deterministic,
            previous=previous,
            cancel=cancel,
            on_progress=on_progress,
            memory_limit_mib=memory_limit_mib,
            solver_options=solver_options,
            read_s=read_s,
        )

    def _round(
        self,
        compiled: Callable[[], Problem],
        *,
        started: float,
        method: str,
        time_limit_s: float,
        gap: float,
        threads: int | None,
        seed: int,
        deterministic: bool,
        previous: Plan | None,
        cancel: threading.Event | None,
        on_progress: Callable[[Progress], None] | None,
        memory_limit_mib: int | None = None,
        solver_options: dict[str, str] | None = None,
        read_s: float | None = None,
        prove: bool = True,
    ) -> Plan:
        """Solve the round that ``compiled`` gives, whose running jobs stand lawfully."""
        chosen = method_of(method)
        if not prove and chosen.is_greedy:
            chosen = replace(chosen, bound=False)
        _check_arguments(time_limit_s, gap, threads)
        _check_solver_options(method, solver_options or {}, deterministic=deterministic)
        if chosen.needs_solver:
            self._runners[0].start()
        compiling = time.monotonic()
        with collection_paused():
            problem = compiled()
        compile_s = time.monotonic() - compiling
        ends = started + time_limit_s
        reserve = max(RESERVE_S + RESERVE_PER_JOB_S * problem.num_jobs, RESERVE_PER_COMPILE * compile_s)
        reserve = min(reserve, max(ends - time.monotonic(), 0.0) / 2)  # a plan comes first, however little is left
        cores = usable_cores()
        limits = Limits(
            started=started,
            deadline=ends - reserve,
            time_limit_s=time_limit_s,
            gap=gap,
            threads=1 if deterministic else min(threads or cores, cores),
            seed=seed,
            deterministic=deterministic,
            memory_limit_mib=memory_limit_mib,
            solver_options=tuple((solver_options or {}).items()),
        )
        solving = time.monotonic()
        cancelled = None if cancel is None else cancel.is_set
        with collection_paused():
            round_ = Round(problem.instance, problem, limits, on_progress, cancelled)
            refused = round_.offer(round_.base.allocation())
        if refused:  # every stage falls back on leaving the running jobs where they are
            raise BadInput(
                f"running placements: {refused}; what runs when a round begins must keep every rule of policy "
                f"{problem.policy.name!r}"
            )
        try:
            self._run(round_, chosen, previous)
        except KeyboardInterrupt:
            round_.cut("user")
        solve_s = time.monotonic() - solving - round_.check_s
        with collection_paused():
            plan = self._finish(round_, read_s, compile_s, solve_s, started)
        if round_.limit == "user" and round_.cancelled is None:  # then only Ctrl-C can have done it, in a solve maybe
            raise Interrupted(plan)
        return plan

    def _run(self, round_: Round, method: Method, previous: Plan | None) -> None:
        order = method.order or round_.problem.policy.order
        score = method.score if method.score != "auto" else "share_prices" if suits(round_.problem) else "stranding"
        with collection_paused():
            run_lookahead(round_, score, order, strict=method.strict)

        def solve(
            solver: str,
            model: LinearModel,
            options: SolveOptions,
            on_progress: Callable[[SolverProgress], None] | None = None,
        ) -> Solution:
            # in deterministic mode work ends the stage; the clock is only a guard
            deadline, cancel = round_.limits.deadline, round_.cancelled
            if solver == RACE:
                contestants = share_out(self._runners, options.threads)
                found = race(contestants, model, options, deadline=deadline, on_progress=on_progress, cancel=cancel)
            else:
                runner = self._runners[0]
                found = runner.solve(solver, model, options, deadline=deadline, on_progress=on_progress, cancel=cancel)
            if found.failed:
                round_.mishap = found.message or f"ended by {found.limit}"
            return found

        def begin(solver: str, model: LinearModel, options: SolveOptions) -> Beside:
            # it costs the stages no time, so it may go on until the plan is due
            ends = round_.limits.started + round_.limits.time_limit_s
            return Beside(self._runners[0], solver, model, options, deadline=ends, cancel=round_.cancelled)

        asked: Asked | None = None

        def ask() -> None:
            nonlocal asked
            if method.bound and isinstance(self._runners[0], Worker):
                asked = ask_bound(round_, begin)

        with collection_paused():
            run_heuristic(
                round_,
                score,
                order,
                strict=method.strict,
                chooser=method.chooser,
                shape=method.shape,
                before_offer=ask,
            )
        round_.keep_back(RESERVE_S + RESERVE_PER_OFFER * round_.offer_s)
        if previous is not None and not method.strict and not round_.stopped():
            run_previous(round_, previous, score, order)
        if not round_.stopped():
            run_ranks(round_)

        limits = round_.limits
        alone = limits.threads == 1 or bool(limits.solver_options)
        exact = _exact(method, deterministic=limits.deterministic, alone=alone)
        if any(solver == RACE for _, solver in exact) and not round_.proven and not round_.stopped():
            self._runners[1].start()  # it loads while the bound is found
        relaxed = None
        if method.bound and (asked is not None or not round_.stopped()):
            relaxed = run_bound(round_, solve, asked)
            if not method.fillings or not suits(round_.problem):
                relaxed = None
            run_fillings(round_, solve, relaxed, score, order, followed=bool(exact))
        if method.patterns and not round_.stopped() and (not exact or is_large(round_)):
            run_patterns(round_, solve, score, order)
        if method.arrange and not round_.stopped():
            run_arrange(round_, solve, ARRANGE_SHARE if exact else 1.0)
        if method.search and not round_.stopped() and (not exact or is_beyond_exact(round_)):
            run_search(round_, solve)
        for formulation, solver in exact:
            if round_.proven or round_.within_gap or round_.stopped():
                break
            before = round_.best
            run_exact(round_, solve, formulation, solver)
            if round_.best is not before and not round_.stopped():
                run_ranks(round_)
        if exact and not round_.stopped():  # it was too large for exact stages
            run_fillings(round_, solve, relaxed, score, order)

    def _finish(self, round_: Round, read_s: float | None, compile_s: float, solve_s: float, started: float) -> Plan:
        best = round_.best
        if best is None:
            raise InternalFault("the running jobs alone were refused by the referee after they had been accepted")
        levels = [Level(name="value", sense="max", objective=best.value, bound=round_.whole_bound)]
        if round_.weighted:
            # it holds at the proven value only, and among plans that keep to look-ahead
            bound = round_.cost_bound if round_.value_proven and not round_.narrowed else None
            levels.append(Level(name="cost", sense="min", objective=best.cost, bound=bound))
        open_levels = [level for level in levels if level.bound != level.objective]
        checking = time.monotonic()
        plan = best.draft.model_copy(
            update={
                "unplaced": tuple(reasons(round_).values()),
                "status": "feasible" if open_levels else "optimal",
                "limit": round_.limit if open_levels else "none",
                "levels": tuple(levels),
                "gap": relative_gap(open_levels[0].objective, open_levels[0].bound) if open_levels else 0.0,
                "bound_relaxes": _relaxes(round_, open_levels),
                "costs": {
                    w.cost.name: Cost(raw=raw, weight=w.weight, worst=w.worst, unit=w.cost.unit)
                    for w, raw in zip(round_.weighted, best.raw, strict=True)
                },
                "facts": _facts(round_),
                "stages": tuple(round_.stages),
                "seed": round_.limits.seed,
                "versions": versions(),
            }
        )
        found = [str(v.message) for v in violations(round_.instance, plan, since=best.draft)] + audit(
            round_.instance, plan, round_.whole
        )
        if found:
            raise InternalFault(f"the final plan was refused: {found[0]}")
        if round_.limits.deterministic:
            return plan
        now = time.monotonic()
        check_s = now - checking + round_.check_s
        seconds = Seconds(read=read_s, compile=compile_s, solve=solve_s, check=check_s, total=now - started)
        return plan.model_copy(update={"seconds": seconds})


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a round: a ``KeyboardInterrupt`` that carries the best checked plan as ``plan``."""

    def __init__(self, plan: Plan) -> None:
        super().__init__("interrupted; the best plan so far is in 'plan'")
        self.plan = plan


def solve(
    instance: Instance,
    *,
    policy: Policy | None = None,
    method: str = "auto",
    time_limit_s: float = 3.0,
    gap: float = 0.0,
    threads: int | None = None,
    seed: int = 0,
    deterministic: bool = False,
    previous: Plan | None = None,
    cancel: threading.Event | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    isolation: Literal["process", "thread"] = "process",
) -> Plan:
    """
    Solve one scheduling round and return the best checked plan with its proven bound.

    Parameters
    ----------
    instance
        The round: cluster, running placements, jobs.
    policy
        Overrides the instance's own.
    method
        ``auto``, or a name in ``placeopt.methods.METHODS``.
    time_limit_s
        Wall-clock seconds for the whole call, compile and check included.
    gap
        Stop at this relative gap of the first level not proven.
    threads
        Threads of a solver, at most the usable cores (the default).
    seed
        Of solvers and tie-breaks.
    deterministic
        One thread, stages stop on work instead of time, timings null: the same input gives the same plan, byte for
        byte, as long as no stage's ``limit`` is ``time`` and no waiting job's reason speaks of it.
    previous
        A plan of an earlier round. What of it still fits, filled up by greedy, is a candidate like any other; it is
        never more than that: ``instance.running`` is the truth.
    cancel
        Set it from another thread to stop with the best plan so far, limit ``user``.
    on_progress
        Called in this thread with every news. What it raises ends the call.
    isolation
        Where solvers run; see ``Engine``.

    Raises
    ------
    BadInput
        If arguments or the instance's running placements contradict themselves.
    Unsupported
        If the round asks for what this version cannot do.
    Interrupted
        At Ctrl-C (a ``KeyboardInterrupt``), with the best plan in it.
    InternalFault
        If placeopt contradicts itself; always a bug.
    """
    with Engine(policy, isolation=isolation) as engine:
        return engine.solve(
            instance,
            method=method,
            time_limit_s=time_limit_s,
            gap=gap,
            threads=threads,
            seed=seed,
            deterministic=deterministic,
            previous=previous,
            cancel=cancel,
            on_progress=on_progress,
        )


def _exact(method: Method, *, deterministic: bool, alone: bool) -> tuple[tuple[str, str], ...]:
    """The formulations and solvers of a method; ``alone`` if two solvers cannot race."""
    exact = method.repeatable if deterministic and method.repeatable is not None else method.exact
    return tuple((formulation, RACERS[0] if solver == RACE and alone else solver) for formulation, solver in exact)


def _check_arguments(time_limit_s: float, gap: float, threads: int | None) -> None:
    if not 0 < time_limit_s <= MAX_TIME_LIMIT_S:
        raise BadInput(f"time_limit_s: {time_limit_s}, expected seconds above 0 and up to {MAX_TIME_LIMIT_S}")
    if not 0 <= gap < 1:
        raise BadInput(f"gap: {gap}, expected a fraction from 0 up to 1, such as 0.01 for one percent")
    if threads is not None and threads < 1:
        raise BadInput(f"threads: {threads}, expected 1 or more")


def _check_solver_options(method: str, options: dict[str, str], *, deterministic: bool) -> None:
    if not options:
        return
    exact = _exact(method_of(method), deterministic=deterministic, alone=True)
    if not exact:
        raise BadInput(f"solver_options: method {method!r} runs no exact solver; use another method")
    for solver in dict.fromkeys(solver for _, solver in exact):
        check_extra(solver, tuple(options.items()))


MAX_TIME_LIMIT_S = 7 * 86_400


def _relaxes(round_: Round, open_levels: list[Level]) -> tuple[str, ...]:
    """Say what the bound of the first level that is not proven leaves out."""
    if not open_levels:
        return ()
    ahead: tuple[str, ...] = ()
    if round_.ahead is not None:
        waits, places = len(round_.ahead.waits), len(round_.ahead.scheduled)
        counted = ((waits, "had better wait may start now"), (places, "have their place may stand elsewhere"))
        ahead = tuple(f"{n} job{'s' * (n != 1)} that by look-ahead {what}" for n, what in counted if n)
    if open_levels[0].name == "value":
        return (*round_.relaxes, *ahead)
    bounded = [w.cost.name for w in round_.weighted if w.cost.form(round_.problem) == "bound"]
    if round_.narrowed:
        return ("everything: what is proven of the cost is about plans that keep to look-ahead", *ahead)
    lower = (f"{name} enters by a lower bound" for name in bounded)
    return (*lower, *relaxed(round_.problem), *round_.cost_relaxes)


def _facts(round_: Round) -> dict[str, int]:
    """Plain counts that people and other tools compare: GPU share and jobs placed, asked for, and there at all."""
    problem, options = round_.problem, round_.problem.options
    placed = [] if round_.best is None else [p for p in round_.best.allocation if p is not None]
    total = options.total_milli.tolist()
    return {
        "gpu_milli_placed": sum(sum(p.shares) if p.shares else total[p.option] for p in placed),
        "gpu_milli_asked": int(most_milli(problem)[problem.job_class].sum()),
        "gpu_milli_bound": round_.gpu_milli_bound,
        "gpu_milli_capacity": 1000 * problem.num_gpus,
        "jobs_placed": len(placed),
        "jobs_waiting": problem.num_jobs - len(placed),
        "jobs_running": len(problem.running),
        **_changed(round_),
        **_slots(round_),
    }


def _changed(round_: Round) -> dict[str, int]:
    """Count the running jobs that the plan changes, by kind; nothing where none may be changed."""
    problem = round_.problem
    if round_.best is None or not problem.changeable:
        return {}
    held = round_.best.allocation
    count = Counter(change_of(problem, job, held[job]) for job in problem.changeable)
    return {f"jobs_{change}": count[change] for change in change_limits(problem)}


def _slots(round_: Round) -> dict[str, int]:
    """Slots of N free GPUs that are left, by level."""
    return slots_left(State(round_.problem, None if round_.best is None else round_.best.allocation))
