"""The public `Engine`: a solver with warm processes, and a live cluster if one is loaded."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable
from functools import wraps
from types import TracebackType
from typing import Concatenate, Literal, NamedTuple, ParamSpec, Self, TypeVar, Unpack

from placeopt.arguments import INSTANCE, expect, listed
from placeopt.errors import BadInput, only_documented
from placeopt.live_cluster.cluster_record import Ids
from placeopt.live_cluster.edits import Edits
from placeopt.live_cluster.exclusive_calls import exclusive
from placeopt.live_cluster.live_cluster import LiveCluster
from placeopt.live_cluster.ranking import Ranking
from placeopt.live_cluster.rebase import Committed
from placeopt.model import Instance, Job, Plan, Policy, Running
from placeopt.solving.api import RoundInput, Solver
from placeopt.solving.bounds import Progress
from placeopt.solving.params import SolveOptions, SolveParams, check_call

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class ClusterNumbers(NamedTuple):
    """Revision of a cluster, and how many jobs wait, how many run, and how many nodes there are."""

    revision: int
    waiting: int
    running: int
    nodes: int


def _passed_on(
    method: Callable[Concatenate[T, P], R], to: Callable[[Engine], T]
) -> Callable[Concatenate[Engine, P], R]:
    """Return a method of an engine that calls one of a part of it, with the same arguments and the same docstring."""

    @wraps(method)
    def call(self: Engine, /, *args: P.args, **kwargs: P.kwargs) -> R:
        done: R = getattr(to(self), method.__name__)(*args, **kwargs)  # that of its own class
        return done

    call.__qualname__ = f"Engine.{method.__name__}"
    return call


def _solver(engine: Engine) -> Solver:
    return engine._solver


def _reports(engine: Engine) -> Edits:
    return engine._loaded().reports


class Engine:
    """
    Solves rounds with a warm solver process, and keeps a cluster between them if one is loaded; a context manager.

    Every change of the cluster is a revision. A plan names the revision that it is for, and can be committed only while
    the cluster is still at it.

    Parameters
    ----------
    policy
        Overrides the policies of instances; None: each instance's own.
    isolation
        ``process``: solvers run in a child that is killed at the deadline, and replaced at once, since the next round
        comes soon. ``thread``: in this process, where none can be started; a solver that ignores its deadline is then
        left behind.

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
        self._solver = Solver(policy, isolation=isolation, stays_warm=True)
        self._cluster: LiveCluster | None = None
        self._calls: dict[str, list[str]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    start = exclusive(_passed_on(Solver.start, _solver))

    @exclusive
    def close(self) -> None:
        """End the solver processes. May be called twice, but not during another call: that raises ``EngineInUse``."""
        self._solver.close()

    @property
    def solver_pid(self) -> int | None:
        """Process id of the first solver process that lives, None without one."""
        return next(iter(self.solver_pids), None)

    @property
    def solver_pids(self) -> tuple[int, ...]:
        """Process ids of the solver processes that live; a race of two solvers has a second one."""
        return self._solver.solver_pids

    solve = exclusive(only_documented(_passed_on(Solver.solve, _solver)))

    @property
    @exclusive
    def snapshot(self) -> Instance:
        """
        The cluster as it is now, as an instance: what a fresh ``load`` would see. It is not changed by later calls.

        Raises
        ------
        BadInput
            If nothing is loaded.
        """
        return self._loaded().state.snapshot

    @property
    @exclusive
    def revision(self) -> int:
        """Number of the present state: that of the loaded instance, and one more with every change."""
        return self._loaded().state.record.revision

    @property
    @exclusive
    def numbers(self) -> ClusterNumbers:
        """How much the cluster has now; at once, however large it is. Raises ``BadInput`` if nothing is loaded."""
        record = self._loaded().state.record
        running = len(record.running)
        return ClusterNumbers(record.revision, len(record.jobs) - running, running, len(record.nodes))

    @exclusive
    @only_documented
    def job(self, job: str) -> tuple[Job, Running | None]:
        """
        Return the record of a job and, if it runs, where.

        Parameters
        ----------
        job
            Id of a job that waits or runs.

        Returns
        -------
        tuple
            Its record, and its running placement; None of a job that waits.

        Raises
        ------
        BadInput
            If there is no such job.
        """
        expect("job", job, str, "the id of a job")
        record = self._loaded().state.record
        if job not in record.jobs:
            raise BadInput(f"job: {job!r}: the cluster has no such job")
        return record.jobs[job], record.running.get(job)

    @exclusive
    @only_documented
    def load(self, instance: Instance) -> None:
        """
        Keep the cluster of ``instance`` from now on, instead of any other, with its jobs and running placements.

        Parameters
        ----------
        instance
            Cluster, policy, jobs and running placements.

        Raises
        ------
        BadInput
            If the running placements contradict each other, or do not fit their jobs.
        Unsupported
            If the jobs can be worth more than 2^53 together.
        """
        expect("instance", instance, Instance, INSTANCE)
        cluster = LiveCluster(instance, self._solver.policy or instance.policy)
        self._cluster = cluster

    edit = exclusive(only_documented(_passed_on(Edits.edit, _reports)))
    apply = exclusive(only_documented(_passed_on(Edits.apply, _reports)))

    @exclusive
    @only_documented
    def place(
        self,
        jobs: Iterable[str] | None = None,
        *,
        nodes: Iterable[str] | None = None,
        warm: bool = True,
        prove: bool = True,
        explain: bool = True,
        brief: bool = False,
        waiting_only: bool = False,
        cancel: threading.Event | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        **options: Unpack[SolveOptions],
    ) -> Plan:
        """
        Return a checked plan for the present revision. The cluster stays as it is until the plan is committed.

        Parameters
        ----------
        jobs
            None: a whole round over all jobs, as ``solve(engine.snapshot)`` would do it. Ids of waiting jobs: a plan
            for these alone (``plan.asked``), by greedy, one after the other, in microseconds to milliseconds; all
            others stay as they are. Such a plan states the value of its jobs and a bound on it, no costs, and null as
            digest.
        nodes
            Ids of the only nodes that these jobs may use now, None: all; with ``jobs`` alone, and a method that scores
            nodes.
        cancel, on_progress, **options
            As in ``solve``. Decisions for some jobs read ``method`` alone, a method of greedy: ``stranding`` (the
            default), ``prices``, ``best-fit``, ``fcfs``, ``dot-product``, ``gpu-packing``, ``fgd``, ``horus``, ``obp``,
            ``drb`` or another that neither draws nor blocks the queue; order and blocking are the caller's. They are
            always repeatable.
        warm
            Whether the last whole plan is a hint (``previous`` of ``solve``), as far as its jobs still wait.
        prove
            Whether methods of greedy prove a bound in whole rounds. Otherwise the bound is trivial, which saves time
            where decisions are frequent; the decisions are the same.
        explain
            Whether the plan says why each job waits, which takes up to a quarter of a round where many do, and more
            than half of a decision that finds no place. Otherwise they are ``not_reached``, but for those that are
            preempted or postponed by look-ahead; the decisions are the same.
        brief
            Whether a whole round may return a plan for the starting jobs alone (``plan.asked``), judged by what it
            touches, where look-ahead leaves nothing else to decide, or the method is greedy and neither ``warm`` nor
            ``prove``. It says nothing of the others and proves nothing; the decisions are the same.
        waiting_only
            Whether a whole round is solved over the waiting jobs alone, where running jobs stay as they are: what runs
            is a load on the nodes, so time grows with what waits and changes, not with what runs. The plan states the
            waiting jobs (``plan.asked``), their value and a bound on it, and no costs, which are not optimised.

        Returns
        -------
        Plan
            Accepted by the referee, for this revision of the cluster.

        Raises
        ------
        BadInput
            If arguments are wrong, or a job is unknown or runs already.
        Unsupported
            If some jobs are to be placed by a method that is not greedy, or under a policy with look-ahead; with
            ``waiting_only`` if running jobs may be changed, or a rule of the policy looks at each of them.
        Interrupted
            At Ctrl-C in a whole round, with the best plan in it.
        InternalFault
            If the referee refuses what was decided; always a bug.
        """
        started = time.monotonic()
        cluster = self._loaded()
        if jobs is not None:
            method = options.get("method") or "stranding"
            listed("jobs", jobs, "ids")
            return cluster.place_jobs([jobs] if isinstance(jobs, str) else jobs, method, explain=explain, nodes=nodes)
        if nodes is not None:
            raise BadInput("nodes: a whole round uses all nodes; name jobs too")
        params = SolveParams.of(options)
        check_call(cancel=cancel, on_progress=on_progress)
        given = RoundInput(started, cancel=cancel, on_progress=on_progress)
        how = {"warm": warm, "prove": prove, "explain": explain, "brief": brief, "waiting_only": waiting_only}
        return cluster.place_all(self._solver, params, given, **how)

    @exclusive
    @only_documented
    def rank(self, job: str, nodes: Iterable[str] | None = None, *, method: str = "stranding") -> Ranking:
        """
        Return the nodes that have room for a worker of a waiting job, best first, and why each other node has none.

        For schedulers that choose themselves, such as the extenders of Kubernetes: it decides nothing.

        Parameters
        ----------
        job
            Id of the job.
        nodes
            Ids of the nodes in question; None: all.
        method
            A method of greedy that scores single nodes: ``stranding``, ``best-fit``, ``fcfs``.

        Returns
        -------
        Ranking
            Room is what the running jobs leave now. Uplinks, splits and the number of nodes that a gang needs are rules
            about several nodes: ``place([job])`` decides by them.

        Raises
        ------
        BadInput
            If no such job waits, or there is no such node.
        Unsupported
            If the method does not score single nodes.
        """
        expect("job", job, str, "an id")
        if nodes is not None:
            listed("nodes", nodes, "ids")
        return self._loaded().rank(job, nodes, method)

    @exclusive
    @only_documented
    def commit(
        self,
        plan: Plan,
        *,
        movable: Ids = False,
        shrinkable: Ids = False,
        preemptible: Ids = False,
        rebase: bool = False,
    ) -> Committed:
        """
        Make what a plan says so: its jobs run, and running ones are where it moved them, shrunk, or wait again.

        Parameters
        ----------
        plan
            Of the present revision, from ``place`` or from anywhere: all but the very plan that the last ``place``
            returned are judged by the referee first.
        movable, shrinkable, preemptible
            What may be done later to the jobs that start now: true for all of them, or the ids of some.
        rebase
            Whether a plan of an earlier revision is carried out as far as it still holds: a round is solved while
            single decisions go on. Starts go in one by one, in the order of the plan; what it does to running jobs goes
            in as a whole or not at all.

        Returns
        -------
        Committed
            The jobs that were started or changed; with ``rebase`` also those that were refused, and why.

        Raises
        ------
        StaleSnapshot
            Without ``rebase`` if the cluster has changed since the plan was made; names the jobs and nodes. With it, if
            it has changed so often that what ran then is not known. Nothing is committed.
        BadInput
            If the plan is of another cluster or policy, or breaks a rule.
        """
        cluster = self._loaded()
        expect("plan", plan, Plan, "a Plan that place() gave")
        for name, ids in (("movable", movable), ("shrinkable", shrinkable), ("preemptible", preemptible)):
            if not isinstance(ids, bool | Collection):
                raise BadInput(f"{name}: {type(ids).__name__}, expected true, false or ids")
        return cluster.commit(plan, movable, shrinkable, preemptible, rebased=rebase)

    def _loaded(self) -> LiveCluster:
        if self._cluster is None:
            raise BadInput("engine: no cluster is loaded; call load(instance) first")
        return self._cluster
