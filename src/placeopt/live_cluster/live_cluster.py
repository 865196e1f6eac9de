"""The part of the engine that keeps a cluster: load, update, place, commit, release."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping

from placeopt.arguments import INSTANCE, check_round, expect
from placeopt.environment import versions
from placeopt.errors import BadInput, Unsupported, only_documented
from placeopt.formats.collection import collection_paused
from placeopt.heuristics import SCORES
from placeopt.heuristics.lookahead import LookaheadDecision
from placeopt.live_cluster.cluster_record import NodeChange
from placeopt.live_cluster.exclusive import exclusive
from placeopt.live_cluster.state import ClusterState, Ids
from placeopt.model import Instance, Job, Plan, Policy
from placeopt.problem import Problem
from placeopt.solving.context import Progress
from placeopt.solving.methods import Method, method_of
from placeopt.solving.stages.lookahead import SHARE_OF_TIME


class LiveCluster(ABC):
    """
    Keeps one cluster between rounds, so that only what changed is compiled again.

    Every change is a revision. A plan names the revision that it is for, and can be committed only while the cluster
    is still at it. Every public method and property raises ``EngineInUse`` while another one is at work.
    """

    def __init__(self, policy: Policy | None) -> None:
        self._policy = policy
        self._calls: dict[str, list[str]] = {}
        self._resident: ClusterState | None = None

    @abstractmethod
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
        prove: bool = True,
        explain: bool = True,
        ahead: LookaheadDecision | None = None,
    ) -> Plan:
        """Solve a round."""

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
        return self._loaded().snapshot

    @property
    @exclusive
    def revision(self) -> int:
        """Number of the present state: that of the loaded instance, and one more with every change."""
        return self._loaded().book.revision

    @exclusive
    @only_documented
    def load(self, instance: Instance) -> None:
        """
        Keep the cluster of ``instance`` from now on, in the place of any other, with its jobs and what runs.

        Raises
        ------
        BadInput
            If the running placements contradict each other, or do not fit their jobs.
        Unsupported
            If the jobs can be worth more than 2^53 together.
        """
        expect("instance", instance, Instance, INSTANCE)
        with collection_paused():
            resident = ClusterState(instance, self._policy or instance.policy)
        self._resident = resident

    @exclusive
    @only_documented
    def update(
        self,
        *,
        add_jobs: Iterable[Job] = (),
        remove_jobs: Iterable[str] = (),
        nodes: Mapping[str, NodeChange] | None = None,
        now_ms: int | None = None,
        expected_end_ms: Mapping[str, int] | None = None,
    ) -> None:
        """
        Change the cluster: one new revision, or none if nothing is given. All of it happens, or nothing and an error.

        Parameters
        ----------
        add_jobs
            Waiting jobs that come, in their order. Their ids are new, or stand in ``remove_jobs`` too.
        remove_jobs
            Ids of waiting jobs that go.
        nodes
            By id: a ``Node`` to add, last, or to put in the place of the one there; ``"drain"`` or ``"undrain"``;
            None to take it away, once nothing runs there. What runs on a node stays there; limits that it exceeds
            after the change stand (``Plan.standing``). Machine types and domains are those of the loaded instance.
        now_ms
            What time it is now; jobs that are committed start then.
        expected_end_ms
            By id of a running job: when it is now expected to end, for look-ahead.

        Raises
        ------
        BadInput
            If ids are unknown or taken, a running job is removed (``release`` it), a node goes while jobs run on it or
            name it, what runs contradicts itself, or a job with an expected end does not run.
        Unsupported
            If the jobs can be worth more than 2^53 together.
        """
        self._loaded().update(add_jobs, remove_jobs, nodes or {}, now_ms, expected_end_ms or {})

    @exclusive
    @only_documented
    def place(
        self,
        jobs: Iterable[str] | None = None,
        *,
        method: str | None = None,
        time_limit_s: float = 3.0,
        gap: float = 0.0,
        threads: int | None = None,
        seed: int = 0,
        deterministic: bool = False,
        warm: bool = True,
        prove: bool = True,
        explain: bool = True,
        brief: bool = False,
        cancel: threading.Event | None = None,
        on_progress: Callable[[Progress], None] | None = None,
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
        method
            As in ``solve``, ``auto`` by default. For some jobs a method of greedy alone: ``stranding`` (the default),
            ``prices``, ``best-fit``, ``fcfs``, ``dot-product``, ``gpu-packing``, ``fgd``, ``horus``, ``obp``, ``drb``
            or another that neither draws nor blocks the queue; order and blocking are the caller's.
        time_limit_s, gap, threads, seed, deterministic, cancel, on_progress
            As in ``solve``; they do not reach decisions for some jobs, which are always repeatable.
        warm
            Whether the last whole plan is a hint (``previous`` of ``solve``), as far as its jobs still wait.
        prove
            Whether methods of greedy look for a bound in whole rounds. Otherwise theirs is the trivial one, for those
            who decide often and ask for no proof; the decisions are the same.
        explain
            Whether the plan says why each job waits, which takes up to a quarter of a round where many do, and more
            than half of a decision that finds no place. Otherwise they are ``not_reached``, but for those that are
            preempted or had better wait; the decisions are the same.
        brief
            Whether a whole round may be answered by a plan for those who start alone (``plan.asked``), judged by what
            it touches, where look-ahead leaves nothing else to decide, or the method is greedy and neither ``warm`` nor
            ``prove``. It says nothing of the others and proves nothing; the decisions are the same.

        Raises
        ------
        BadInput
            If arguments are wrong, or a job is unknown or runs already.
        Unsupported
            If some jobs are to be placed by a method that is not greedy, or under a policy with look-ahead.
        Interrupted
            At Ctrl-C in a whole round, with the best plan in it.
        InternalFault
            If the referee refuses what was decided; always a bug.
        """
        started = time.monotonic()
        resident = self._loaded()
        if jobs is not None:
            chosen = method_of(method or "stranding")
            if _places_rounds(chosen):
                raise Unsupported(
                    f"method: {method!r} places whole rounds; for some jobs take 'stranding', 'best-fit', 'fcfs' or "
                    "another method of greedy that goes by what is free"
                )
            if resident.policy.postpone.rule == "lookahead":
                raise Unsupported(
                    "policy.postpone.rule: 'lookahead' weighs all waiting jobs against each other, so it decides whole "
                    "rounds; call place() without jobs, or take the rule 'utility' or 'none'"
                )
            ids = [jobs] if isinstance(jobs, str) else jobs
            return resident.place(ids, chosen, versions(), explain=explain)
        check_round(
            time_limit_s=time_limit_s, seed=seed, gap=gap, threads=threads, cancel=cancel, on_progress=on_progress
        )
        ahead = settled = None
        chosen = method_of(method or "auto")
        if brief and resident.policy.postpone.rule == "lookahead":
            until = float("inf") if deterministic else started + SHARE_OF_TIME * time_limit_s
            ahead, settled = resident.look_ahead(chosen, until, cancel, versions())
        elif brief and not warm and not prove:
            untimed = deterministic and chosen.chooser is None  # as in the stage of whole rounds
            until = float("inf") if untimed else started + time_limit_s
            settled = resident.greedily(chosen, seed, until, cancel, versions())
        if settled is not None:
            return settled
        plan = self._round(
            resident.problem,
            started=started,
            method=method or "auto",
            time_limit_s=time_limit_s,
            gap=gap,
            threads=threads,
            seed=seed,
            deterministic=deterministic,
            previous=resident.last if warm else None,
            cancel=cancel,
            on_progress=on_progress,
            prove=prove,
            explain=explain,
            ahead=ahead,
        )
        resident.issued(plan)
        return plan

    @exclusive
    @only_documented
    def commit(self, plan: Plan, *, movable: Ids = False, shrinkable: Ids = False, preemptible: Ids = False) -> None:
        """
        Make what a plan says so: its jobs run, and running ones are where it moved them, shrunk, or wait again.

        Parameters
        ----------
        plan
            Of the present revision, from ``place`` or from anywhere: all but the very plan that the last whole round
            returned are judged by the referee first.
        movable, shrinkable, preemptible
            What may be done later to the jobs that start now: true for all of them, or the ids of some.

        Raises
        ------
        StaleSnapshot
            If the cluster has changed since the plan was made; names the jobs and nodes. Nothing is committed.
        BadInput
            If the plan is of another cluster or policy, or breaks a rule.
        """
        resident = self._loaded()
        expect("plan", plan, Plan, "a Plan that place() gave")
        resident.commit(plan, movable, shrinkable, preemptible)

    @exclusive
    @only_documented
    def release(self, job: str) -> Job:
        """
        Take a running job away, because it is done or has failed, and return its record.

        Raises
        ------
        BadInput
            If no such job runs.
        """
        return self._loaded().release(job)

    def _loaded(self) -> ClusterState:
        if self._resident is None:
            raise BadInput("engine: no cluster is loaded; call load(instance) first")
        return self._resident


def _places_rounds(method: Method) -> bool:
    """Whether a method decides whole rounds only."""
    local = method.score in SCORES and SCORES[method.score].local
    return bool(method.exact) or method.strict or method.shape != "value" or not local
