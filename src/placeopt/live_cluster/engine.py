"""A scheduling round: stages under one deadline, the best checked plan, its bound, and how it was found."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Literal, Self

from placeopt.arguments import INSTANCE, check_round, expect
from placeopt.environment import usable_cores
from placeopt.errors import BadInput, OutOfTime, only_documented
from placeopt.formats.gc_pause import gc_paused
from placeopt.heuristics.lookahead import LookaheadDecision
from placeopt.live_cluster import LiveCluster
from placeopt.live_cluster.exclusive import exclusive
from placeopt.model import Instance, Plan, Policy
from placeopt.problem import Problem, compile_problem
from placeopt.solvers.inprocess import InProcess
from placeopt.solvers.pool import Worker
from placeopt.solvers.registry import check_extra
from placeopt.solving.budget import Budget
from placeopt.solving.context import Progress, SolveContext
from placeopt.solving.finish import finish
from placeopt.solving.methods import method_of
from placeopt.solving.out_of_time import untimely_plan
from placeopt.solving.pipeline import exact_solvers, first_reserve_s, run_stages
from placeopt.solving.runners import SolverRunners

DISTANCES_S = 0.2
"""
What distances inside machines get in any case: machines of some tens of GPUs take a few milliseconds, and reading may
have taken all the time there was.
"""


class Engine(LiveCluster):
    """
    Solves rounds with a warm solver process, and keeps a cluster between them if one is loaded; a context manager.

    Parameters
    ----------
    policy
        Overrides the policies of instances; None: each instance's own.
    isolation
        ``process``: solvers run in a child that is killed at the deadline. ``thread``: in this process, for those who
        cannot start processes; a solver that does not stop when asked is then left behind.

    Raises
    ------
    BadInput
        If it is another word, or ``policy`` is none.

    Notes
    -----
    One call at a time: calls may come from any thread, one after the other. A call while another one is at work, be it
    from ``on_progress``, does nothing and raises ``EngineInUse``; it does not wait, because a scheduler that waits in
    silence loses its time limit. Meanwhile the event ``cancel`` may be set, and ``solver_pid`` and ``solver_pids`` may
    be read. Writes no file, prints nothing, sets no signal handler.
    """

    def __init__(self, policy: Policy | None = None, *, isolation: Literal["process", "thread"] = "process") -> None:
        if policy is not None:
            expect("policy", policy, Policy, "a Policy, or None")
        if isolation not in ("process", "thread"):
            raise BadInput(f"isolation: {isolation!r}, expected process or thread")
        super().__init__(policy)
        make = Worker if isolation == "process" else InProcess
        self._runners: tuple[Worker | InProcess, Worker | InProcess] = (make(), make())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @exclusive
    def start(self) -> None:
        """Start a solver process ahead of the first round, so that it loads while the caller reads the instance."""
        self._runners[0].start()

    @exclusive
    def close(self) -> None:
        """End the solver processes. May be called twice, but not during another call: that raises ``EngineInUse``."""
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

    @exclusive
    @only_documented
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
        expect("instance", instance, Instance, INSTANCE)
        check_round(
            time_limit_s=time_limit_s,
            seed=seed,
            gap=gap,
            threads=threads,
            previous=previous,
            cancel=cancel,
            on_progress=on_progress,
        )

        def compiled() -> Problem | Plan:
            policy = self._policy or instance.policy
            try:
                latest = max(started + time_limit_s, time.monotonic() + DISTANCES_S)
                return compile_problem(instance, policy, deadline=latest)
            except OutOfTime as error:
                timed = not deterministic
                return untimely_plan(
                    instance, policy, str(error), started=started, read_s=read_s, seed=seed, timed=timed
                )

        return self._round(
            compiled,
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
        compiled: Callable[[], Problem | Plan],
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
        explain: bool = True,
        ahead: LookaheadDecision | None = None,
    ) -> Plan:
        """Solve the round that ``compiled`` gives, whose running jobs stand lawfully; a plan is returned as it is."""
        chosen = method_of(method)
        if not prove and chosen.is_greedy:
            chosen = replace(chosen, bound=False)
        _check_solver_options(method, solver_options or {}, deterministic=deterministic)
        if chosen.needs_solver:
            self._runners[0].start()
        compiling = time.monotonic()
        with gc_paused():
            problem = compiled()
        if isinstance(problem, Plan):
            return problem
        compile_s = time.monotonic() - compiling
        ends = started + time_limit_s
        reserve = first_reserve_s(problem.num_jobs, compile_s)
        reserve = min(reserve, max(ends - time.monotonic(), 0.0) / 2)  # a plan comes first, however little is left
        cores = usable_cores()
        limits = Budget(
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
        with gc_paused():
            context = SolveContext(problem.given, problem, limits, on_progress, cancelled)
            context.begin()
        try:
            run_stages(context, chosen, SolverRunners(context, self._runners), previous, ahead)
        except KeyboardInterrupt:
            context.note_limit("user")
        solve_s = time.monotonic() - solving - context.check_s
        with gc_paused():
            plan = finish(context, read_s, compile_s, solve_s, started, explain=explain)
        if context.limit == "user" and context.cancelled is None:  # then only Ctrl-C can have done it, in a solve maybe
            raise Interrupted(plan)
        return plan


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
        ``auto``, or a name in ``placeopt.solving.methods.METHODS``.
    time_limit_s
        Wall-clock seconds for the whole call, compile and check included.
    gap
        Stop at this relative gap of the first level not proven.
    threads
        Threads of a solver, at most the usable cores (the default).
    seed
        Of solvers and tie-breaks, 0 to 2^31 - 1.
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
        If placeopt contradicts itself; always a bug. A fault inside one stage is none: the best plan of the others is
        returned, and the stage's outcome is ``failed``.
    MemoryError
        If the instance is too large for the memory there is.
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


def _check_solver_options(method: str, options: dict[str, str], *, deterministic: bool) -> None:
    if not options:
        return
    exact = exact_solvers(method_of(method), deterministic=deterministic, alone=True)
    if not exact:
        raise BadInput(f"solver_options: method {method!r} runs no exact solver; use another method")
    for solver in dict.fromkeys(solver for _, solver in exact):
        check_extra(solver, tuple(options.items()))
