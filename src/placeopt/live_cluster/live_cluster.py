"""The live cluster: loaded once, changed by reports from outside and by plans that are committed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Unpack

import numpy as np

from placeopt.actions import kept_ranks
from placeopt.arguments import expect, listed
from placeopt.check import violations
from placeopt.check.case import names
from placeopt.errors import BadInput, Unsupported
from placeopt.formulations.fillings import CarriedPrices
from placeopt.live_cluster.cluster_record import Ids, running_record
from placeopt.live_cluster.cluster_state import ClusterState
from placeopt.live_cluster.edits import Edits
from placeopt.live_cluster.incremental_placer import FullPlacer
from placeopt.live_cluster.partial_plan import decided_round, places_rounds, plan_for
from placeopt.live_cluster.ranking import Ranking, rank
from placeopt.live_cluster.rebase import Committed, Refused, rebased_plan
from placeopt.live_cluster.waiting_rounds import needs_running_jobs
from placeopt.model import Instance, Job, Plan, Running
from placeopt.problem import IntArray, State
from placeopt.solving.api import RoundInput, Solver
from placeopt.solving.audit import allocation_of, below_minimum
from placeopt.solving.bounds import Progress
from placeopt.solving.methods import method_of
from placeopt.solving.params import SolveOptions, SolveParams, check_call
from placeopt.terms.rules.relations import open_nodes


class LiveCluster:
    """
    A cluster between rounds. Every method either does all it says or raises and changes nothing.

    ``state`` is what it holds now, ``reports`` are the calls that change it from outside; plans and commits are here.
    """

    def __init__(self, instance: Instance, solver: Solver) -> None:
        self._solver = solver
        self.state = ClusterState(instance, solver.policy or instance.policy)
        self.reports = Edits(self.state)
        self._issued: Plan | None = None
        """The last plan that the referee accepted here; it is not judged again while the cluster is at its revision."""
        self._last: Plan | None = None
        """The last plan of a whole round."""
        self._prices = self.state.policy, CarriedPrices()

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
        record = self.state.record
        if job not in record.jobs:
            raise BadInput(f"job: {job!r}: the cluster has no such job")
        return record.jobs[job], record.running.get(job)

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
        if jobs is not None:
            listed("jobs", jobs, "ids")
            asked = [jobs] if isinstance(jobs, str) else list(jobs)
            plan = self._place_jobs(asked, options.get("method") or "stranding", explain=explain, nodes=nodes)
        elif nodes is not None:
            raise BadInput("nodes: a whole round uses all nodes; name jobs too")
        else:
            params = SolveParams.of(options)
            check_call(cancel=cancel, on_progress=on_progress)
            given = RoundInput(started, cancel=cancel, on_progress=on_progress)
            place = self._place_waiting if waiting_only else partial(self._place_all, brief=brief)
            plan = place(params, given, warm=warm, prove=prove, explain=explain)
        self._issued = plan
        return plan

    def _place_all(
        self, params: SolveParams, given: RoundInput, *, warm: bool, prove: bool, explain: bool, brief: bool
    ) -> Plan:
        """Return the plan of a round over all jobs, or one for the starting jobs alone; see `place`."""
        state, decision = self.state, None
        if brief and (state.policy.postpone.rule == "lookahead" or not (warm or prove)):
            method = method_of(params.method)
            plan, decision = decided_round(state.form, state.problem(), method, given.budget(params))
            if plan is not None:
                return plan
        given = replace(given, previous=self._last if warm else None)
        self._last = self._solver.solve_compiled(
            state.problem, params, given, prove=prove, explain=explain, decision=decision
        )
        return self._last

    def _place_jobs(self, jobs: list[str], method: str, *, explain: bool, nodes: Iterable[str] | None) -> Plan:
        """Return the plan for some waiting jobs on some nodes, None: on all; see ``partial_plan.plan_for``."""
        chosen, state = method_of(method), self.state
        if places_rounds(chosen):
            raise Unsupported(
                f"method: {method!r} places whole rounds; for some jobs take 'stranding', 'best-fit', 'fcfs' or "
                "another method of greedy that goes by what is free"
            )
        if state.policy.postpone.rule == "lookahead":
            raise Unsupported(
                "policy.postpone.rule: 'lookahead' weighs all waiting jobs against each other, so it decides whole "
                "rounds; call place() without jobs, or take the rule 'utility' or 'none'"
            )
        classes, placer, numbers = state.parts.classes, state.placer, dict[str, int]()
        for job_id in jobs:
            if not isinstance(job_id, str):
                raise BadInput(f"jobs: {type(job_id).__name__}, expected ids")
            if job_id in numbers:
                raise BadInput(f"jobs: {job_id!r} appears twice")
            if job_id in state.record.running:
                raise BadInput(f"jobs: job {job_id!r} runs already")
            if job_id not in state.record.jobs:
                raise BadInput(f"jobs: no job {job_id!r}; a step add_jobs brings it")
            numbers[job_id] = classes.number(job_id)
        allowed = None
        if nodes is not None:
            if chosen.greedy.chooser is not None:
                raise Unsupported(
                    f"method: {method!r} decides over all nodes; with nodes take 'stranding' or 'best-fit'"
                )
            allowed = np.zeros(len(state.node_number), dtype=bool)
            allowed[self._numbers(nodes)] = True
        by_neighbours = chosen.greedy.chooser is not None and state.policy.interference.model == "curve"
        if by_neighbours or classes.has_relations or state.policy.postpone.rule == "utility":
            placer = FullPlacer(state.problem())
            position = {job_id: j for j, job_id in enumerate(placer.problem.job_ids)}
            numbers = {job_id: position[job_id] for job_id in numbers}
        return plan_for(state.record, state.form, placer, numbers, chosen.greedy, explain=explain, nodes=allowed)

    def _numbers(self, nodes: Iterable[str]) -> IntArray:
        """Return the numbers of nodes, each once; raises ``BadInput`` for one that is not there."""
        number = self.state.node_number
        found: dict[int, None] = {}
        for name in nodes:
            if not isinstance(name, str) or name not in number:
                raise BadInput(f"nodes: no node {name!r}")
            found[number[name]] = None
        return np.array(list(found), dtype=np.int64)

    def _place_waiting(self, params: SolveParams, given: RoundInput, *, warm: bool, prove: bool, explain: bool) -> Plan:
        """Return the plan of a round over the waiting jobs alone."""
        state = self.state
        reason = needs_running_jobs(state.record.running.values(), state.policy, method_of(params.method))
        if reason is None and state.parts.lost:
            reason = "jobs run on nodes or GPUs that are not listed"
        if reason is None and state.parts.classes.has_relations:
            reason = "relations between jobs look at running jobs"
        if reason is not None:
            raise Unsupported(f"waiting_only: {reason}; call place() without it")
        if self._prices[0] is not state.policy:
            self._prices = state.policy, CarriedPrices()
        previous = self._last if warm and self._still_wait(self._last) else None
        given = replace(given, previous=previous, prices=self._prices[1] if warm else None)
        self._last = self._solver.solve_compiled(
            state.waiting_problem, params, given, prove=prove, explain=explain, form=state.form
        )
        return self._last

    def _still_wait(self, plan: Plan | None) -> bool:
        """Whether any job that a plan starts waits."""
        record = self.state.record
        starts = () if plan is None else (placement.job for placement in plan.placements)
        return any(job in record.jobs and job not in record.running for job in starts)

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
        chosen, state = method_of(method), self.state
        if places_rounds(chosen):
            raise Unsupported(f"method: {method!r} does not score single nodes; take 'stranding', 'best-fit' or 'fcfs'")
        if job not in state.record.jobs or job in state.record.running:
            raise BadInput(f"job: no job {job!r} waits")
        asked = np.arange(len(state.node_number)) if nodes is None else self._numbers(nodes)
        classes, open_ = state.parts.classes, None
        if classes.has_relations:
            problem = state.problem()
            open_ = open_nodes(State(problem), problem.job_ids.index(job))
        record = state.record
        return rank(
            state.placer, classes.number(job), record.jobs[job], chosen.greedy.score, record.revision, asked, open_
        )

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
        expect("plan", plan, Plan, "a Plan that place() gave")
        for name, ids in (("movable", movable), ("shrinkable", shrinkable), ("preemptible", preemptible)):
            if not isinstance(ids, bool | Collection):
                raise BadInput(f"{name}: {type(ids).__name__}, expected true, false or ids")
        record = self.state.record
        if plan.instance.name != record.name:
            raise BadInput(f"plan: is of {plan.instance.name!r}, this cluster is {record.name!r}")
        if not rebase:
            record.history.refuse_stale(plan.instance.revision)
        if plan.policy.values.digest != self.state.policy.digest:
            raise BadInput(f"plan: made under another policy, {plan.policy.name!r}; this is {self.state.policy.name!r}")
        refused: tuple[Refused, ...] = ()
        if plan.instance.revision != record.revision or (rebase and plan is not self._issued):
            plan, refused = rebased_plan(self.state, plan)
        elif plan is not self._issued:
            whole = plan.asked is None
            self._refuse(violations(self.state.snapshot, plan) if whole else record.ledger.violations(record, plan))
            if self.state.policy.postpone.rule == "utility":
                problem = self.state.problem()
                self._refuse(below_minimum(problem, allocation_of(plan, problem)))
        moved = {entry.job for entry in plan.moved}
        changed = [*(entry.job for entry in plan.moved), *(entry.job for entry in plan.shrunk)]
        starting = [p for p in plan.placements if p.job not in record.running]
        keep = {job_id: record.running[job_id] for job_id in changed}
        stopped = [entry.job for entry in plan.preempted]
        gone = [*keep.values(), *(record.running[job_id] for job_id in stopped)]
        with self.state.one_revision():
            for job_id in stopped:
                self.state.stop(job_id)
            new = {placement.job: placement for placement in plan.placements if placement.job in keep}
            for shrink in plan.shrunk:
                record.rename_workers(shrink.job, kept_ranks(keep[shrink.job], new[shrink.job]))
            for job_id, held in keep.items():
                flags = (held.movable, held.shrinkable, held.preemptible)
                began = record.now_ms if job_id in moved else held.started_ms
                self.state.start(running_record(new[job_id], began, flags))
            for placement in starting:
                allowed = (_is_among(placement.job, ids) for ids in (movable, shrinkable, preemptible))
                self.state.start(running_record(placement, record.now_ms, tuple(allowed)))
            begun = [placement.job for placement in starting]
            told = (("started", begun, "started"), ("jobs", changed, "changed place"), ("stopped", stopped, "stopped"))
            for kind, ids, did in told:
                if ids:
                    record.history.note(f"{names(ids)} {did}", **{kind: ids})
            self.state.compile_if_stale(gone)
        return Committed(committed=(*begun, *changed, *stopped), refused=refused)

    @staticmethod
    def _refuse(broken: Sequence[object]) -> None:
        if broken:
            raise BadInput(f"plan: {broken[0]}")


def _is_among(job_id: str, ids: Ids) -> bool:
    """Tell whether ``ids`` include the job."""
    if isinstance(ids, str):  # one id, not the letters of one
        return job_id == ids
    return ids if isinstance(ids, bool) else job_id in ids
