"""The live cluster: loaded once, changed by reports from outside and by plans that are committed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from placeopt.actions import kept_ranks
from placeopt.check import violations
from placeopt.check.case import names
from placeopt.errors import BadInput, Unsupported
from placeopt.formulations.fillings import CarriedPrices
from placeopt.heuristics.lookahead import LookaheadDecision
from placeopt.live_cluster.cluster_record import Ids, running_record
from placeopt.live_cluster.cluster_state import ClusterState
from placeopt.live_cluster.edits import Edits
from placeopt.live_cluster.fast_path import choose_by_greedy, choose_by_lookahead, fast_path_plan
from placeopt.live_cluster.incremental_placer import FullPlacer
from placeopt.live_cluster.partial_plan import places_rounds, plan_for
from placeopt.live_cluster.ranking import Ranking, rank
from placeopt.live_cluster.rebase import Committed, Refused, rebase
from placeopt.live_cluster.waiting_problem import needs_running_jobs
from placeopt.model import Instance, Plan, Policy
from placeopt.problem import BoolArray, State
from placeopt.solving.api import RoundInput, Solver
from placeopt.solving.audit import allocation_of, below_minimum
from placeopt.solving.methods import method_of
from placeopt.solving.params import SolveParams
from placeopt.terms.rules.relations import open_nodes


class LiveCluster:
    """
    A cluster between rounds. Every method either does all it says or raises and changes nothing.

    ``state`` is what it holds now, ``reports`` are the calls that change it from outside; plans and commits are here.
    Methods raise as those of ``Engine`` that call them.
    """

    def __init__(self, instance: Instance, policy: Policy) -> None:
        self.state = ClusterState(instance, policy)
        self.reports = Edits(self.state)
        self._issued: Plan | None = None
        """The last plan that the referee accepted here; it is not judged again while the cluster is at its revision."""
        self.last: Plan | None = None
        """The last plan of a whole round."""
        self._prices = policy, CarriedPrices()

    def place_jobs(
        self, jobs: Iterable[str], method: str, *, explain: bool = True, nodes: Iterable[str] | None = None
    ) -> Plan:
        """Return the plan for some waiting jobs on some nodes, None: on all; see ``partial_plan.plan_for``."""
        chosen = method_of(method)
        if places_rounds(chosen):
            raise Unsupported(
                f"method: {method!r} places whole rounds; for some jobs take 'stranding', 'best-fit', 'fcfs' or "
                "another method of greedy that goes by what is free"
            )
        if self.state.policy.postpone.rule == "lookahead":
            raise Unsupported(
                "policy.postpone.rule: 'lookahead' weighs all waiting jobs against each other, so it decides whole "
                "rounds; call place() without jobs, or take the rule 'utility' or 'none'"
            )
        numbers: dict[str, int] = {}
        for job_id in jobs:
            if not isinstance(job_id, str):
                raise BadInput(f"jobs: {type(job_id).__name__}, expected ids")
            if job_id in numbers:
                raise BadInput(f"jobs: {job_id!r} appears twice")
            if job_id in self.state.record.running:
                raise BadInput(f"jobs: job {job_id!r} runs already")
            if job_id not in self.state.record.jobs:
                raise BadInput(f"jobs: no job {job_id!r}; a step add_jobs brings it")
            numbers[job_id] = self.state.parts.table.number(job_id)
        if nodes is not None and chosen.greedy.chooser is not None:
            raise Unsupported(f"method: {method!r} decides over all nodes; with nodes take 'stranding' or 'best-fit'")
        placer = self.state.placer
        allowed = None if nodes is None else self._mask(nodes)
        by_neighbours = chosen.greedy.chooser is not None and self.state.policy.interference.model == "curve"
        related = self.state.parts.table.has_relations
        if by_neighbours or related or self.state.policy.postpone.rule == "utility":
            placer = FullPlacer(self.state.problem())
            numbers = dict(zip(numbers, self.state.parts.table.positions(numbers), strict=True))
        state, rule = self.state, chosen.greedy
        self._issued = plan_for(
            state.record, state.form, placer, state.policy, numbers, rule, explain=explain, nodes=allowed
        )
        return self._issued

    def _mask(self, nodes: Iterable[str]) -> BoolArray:
        """Shape (N,): the nodes of these names."""
        number = self.state.node_number
        names = list(nodes)
        self._refuse_unknown(names)
        mask = np.zeros(len(number), dtype=bool)
        mask[[number[name] for name in names]] = True
        return mask

    def _refuse_unknown(self, nodes: Iterable[str]) -> None:
        for name in nodes:
            if not isinstance(name, str) or name not in self.state.node_number:
                raise BadInput(f"nodes: no node {name!r}")

    def rank(self, job_id: str, nodes: Iterable[str] | None, method: str) -> Ranking:
        """Return the nodes on which a waiting job could have a worker, best first; see ``ranking.rank``."""
        chosen = method_of(method)
        if places_rounds(chosen):
            raise Unsupported(f"method: {method!r} does not score single nodes; take 'stranding', 'best-fit' or 'fcfs'")
        if job_id not in self.state.record.jobs or job_id in self.state.record.running:
            raise BadInput(f"job: no job {job_id!r} waits")
        asked = None if nodes is None else list(nodes)
        self._refuse_unknown(asked or ())
        state, record = self.state, self.state.record
        number, closed = state.parts.table.number(job_id), set[str]()
        if state.parts.table.has_relations:
            problem = state.problem()
            open_ = open_nodes(State(problem), state.parts.table.positions([job_id])[0])
            if open_ is not None:
                closed = {name for name, is_open in zip(problem.node_ids, open_.tolist(), strict=True) if not is_open}
        return rank(state.placer, number, record.jobs[job_id], chosen.greedy.score, record.revision, asked, closed)

    def place_all(
        self,
        solver: Solver,
        params: SolveParams,
        given: RoundInput,
        *,
        warm: bool,
        prove: bool,
        explain: bool,
        brief: bool,
        waiting_only: bool,
    ) -> Plan:
        """Return the plan of a whole round; ``given`` belongs to the call, the rest is as in ``Engine.place``."""
        if waiting_only:
            return self._place_waiting(solver, params, given, warm=warm, prove=prove, explain=explain)
        decision: LookaheadDecision | None = None
        looks_ahead = self.state.policy.postpone.rule == "lookahead"
        method = method_of(params.method)
        if brief and (looks_ahead or not (warm or prove)):
            problem, budget = self.state.problem(), given.budget(params)
            if looks_ahead:
                decision, choice = choose_by_lookahead(problem, method, budget)
            else:
                choice = choose_by_greedy(problem, method, budget)
            plan = None if choice is None else fast_path_plan(self.state.form, problem, choice)
            if plan is not None:
                return plan
        given = replace(given, previous=self.last if warm else None)
        plan = solver.solve_compiled(self.state.problem, params, given, prove=prove, explain=explain, decision=decision)
        self._issued = self.last = plan
        return plan

    def _place_waiting(
        self, solver: Solver, params: SolveParams, given: RoundInput, *, warm: bool, prove: bool, explain: bool
    ) -> Plan:
        """Return the plan of a round over the waiting jobs alone."""
        reason = needs_running_jobs(self.state.record, self.state.policy, method_of(params.method))
        if reason is None and self.state.parts.lost:
            reason = "jobs run on nodes or GPUs that are not listed"
        if reason is None and self.state.parts.table.has_relations:
            reason = "relations between jobs look at running jobs"
        if reason is not None:
            raise Unsupported(f"waiting_only: {reason}; call place() without it")
        if self._prices[0] is not self.state.policy:
            self._prices = self.state.policy, CarriedPrices()
        previous = self.last if warm and self._still_wait(self.last) else None
        given = replace(given, previous=previous, prices=self._prices[1] if warm else None)
        self.last = solver.solve_compiled(
            self.state.waiting_problem, params, given, prove=prove, explain=explain, form=self.state.form
        )
        return self.last

    def _still_wait(self, plan: Plan | None) -> bool:
        """Whether any job that a plan starts waits."""
        record = self.state.record
        starts = () if plan is None else (placement.job for placement in plan.placements)
        return any(job in record.jobs and job not in record.running for job in starts)

    def commit(self, plan: Plan, movable: Ids, shrinkable: Ids, preemptible: Ids, *, rebased: bool) -> Committed:
        """Make what a plan says the state of the cluster; one revision, unless the plan changes nothing."""
        record = self.state.record
        if plan.instance.name != record.name:
            raise BadInput(f"plan: is of {plan.instance.name!r}, this cluster is {record.name!r}")
        if not rebased:
            record.refuse_stale(plan.instance.revision)
        if plan.policy.values.digest != self.state.policy.digest:
            raise BadInput(f"plan: made under another policy, {plan.policy.name!r}; this is {self.state.policy.name!r}")
        refused: tuple[Refused, ...] = ()
        if plan.instance.revision != record.revision or (rebased and plan is not self._issued):
            plan, refused = rebase(record, self.state.form, plan, lambda: self.state.snapshot)
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
        for job_id in stopped:
            self.state.stop(job_id)
        new = {placement.job: placement for placement in plan.placements if placement.job in keep}
        for shrink in plan.shrunk:
            record.rename_workers(shrink.job, kept_ranks(keep[shrink.job], new[shrink.job]))
        for job_id, held in keep.items():
            flags = (held.movable, held.shrinkable, held.preemptible)
            self.state.start(running_record(new[job_id], record.now_ms if job_id in moved else held.started_ms, flags))
        for placement in starting:
            allowed = (_is_among(placement.job, ids) for ids in (movable, shrinkable, preemptible))
            self.state.start(running_record(placement, record.now_ms, tuple(allowed)))
        if starting or keep or stopped:
            begun = [placement.job for placement in starting]
            changes = [
                f"{names(jobs)} {did}"
                for jobs, did in ((begun, "started"), (changed, "changed place"), (stopped, "stopped"))
                if jobs
            ]
            record.note(" and ".join(changes), changed, started=begun, stopped=stopped)
            self.state.compile_if_stale(gone)
        return Committed(committed=(*(placement.job for placement in starting), *changed, *stopped), refused=refused)

    @staticmethod
    def _refuse(broken: Sequence[object]) -> None:
        if broken:
            raise BadInput(f"plan: {broken[0]}")


def _is_among(job_id: str, ids: Ids) -> bool:
    """Tell whether ``ids`` include the job."""
    if isinstance(ids, str):  # one id, not the letters of one
        return job_id == ids
    return ids if isinstance(ids, bool) else job_id in ids
