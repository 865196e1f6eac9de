"""The public `Engine`: a solver with warm processes, and a live cluster if one is loaded."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import Concatenate, Literal, NamedTuple, ParamSpec, Self, TypeVar

from placeopt.arguments import INSTANCE, expect
from placeopt.errors import BadInput, only_documented
from placeopt.live_cluster.edits import Edits
from placeopt.live_cluster.exclusive_calls import exclusive
from placeopt.live_cluster.live_cluster import LiveCluster
from placeopt.model import Instance, Policy
from placeopt.solving.api import Solver

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
    """Return a public call of an engine that is one of a part of it, with the same arguments and docstring."""

    @wraps(method)
    def call(self: Engine, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return method(to(self), *args, **kwargs)

    call.__qualname__ = f"Engine.{method.__name__}"
    return exclusive(only_documented(call))


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

    def _loaded(self) -> LiveCluster:
        if self._cluster is None:
            raise BadInput("engine: no cluster is loaded; call load(instance) first")
        return self._cluster

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

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
        self._cluster = LiveCluster(instance, self._solver)

    solve = _passed_on(Solver.solve, lambda engine: engine._solver)
    start = _passed_on(Solver.start, lambda engine: engine._solver)
    edit = _passed_on(Edits.edit, lambda engine: engine._loaded().reports)
    apply = _passed_on(Edits.apply, lambda engine: engine._loaded().reports)
    job = _passed_on(LiveCluster.job, _loaded)
    place = _passed_on(LiveCluster.place, _loaded)
    rank = _passed_on(LiveCluster.rank, _loaded)
    commit = _passed_on(LiveCluster.commit, _loaded)
