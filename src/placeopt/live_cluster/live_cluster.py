"""The live cluster: loaded once, changed piece by piece, with records, compiled parts and placer in step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from placeopt.actions import kept_ranks
from placeopt.check import Violation, violations
from placeopt.check.case import names
from placeopt.errors import BadInput, PlaceoptError, Unsupported
from placeopt.formats.gc_pause import gc_paused
from placeopt.formulations.node_patterns import CarriedPrices
from placeopt.heuristics.lookahead import LookaheadDecision
from placeopt.live_cluster.cluster_record import (
    ClusterRecord,
    Ids,
    NodeChange,
    empty_plan,
    is_among,
    nodes_text,
    running_record,
)
from placeopt.live_cluster.fast_path import choose_by_greedy, choose_by_lookahead, fast_path_plan
from placeopt.live_cluster.incremental_placer import FullPlacer, IncrementalPlacer
from placeopt.live_cluster.index_remap import IndexRemap
from placeopt.live_cluster.partial_plan import places_rounds, plan_for
from placeopt.live_cluster.parts import Parts
from placeopt.live_cluster.ranking import Ranking, rank
from placeopt.live_cluster.rebase import Committed, Refused, rebase
from placeopt.live_cluster.waiting_problem import waiting_problem
from placeopt.live_cluster.waiting_round import WaitingPlan, needs_running_jobs
from placeopt.model import Instance, Job, Node, Plan, Policy, Running
from placeopt.problem import Problem, State
from placeopt.problem.compile import refuse_huge_values
from placeopt.problem.grants import refuse_overfull
from placeopt.problem.running import find_lost, running_placement
from placeopt.solving.api import RoundInput, Solver
from placeopt.solving.methods import method_of
from placeopt.solving.params import SolveParams


class LiveCluster:
    """
    A cluster between rounds. Every method either does all it says or raises and changes nothing.

    Three things are kept in step: the record (jobs, nodes, running placements, the referee's ledger, the revision), the
    parts that problems are compiled from, and the placer, which holds what is free. Methods raise as those of
    ``Engine`` that call them.
    """

    def __init__(self, instance: Instance, policy: Policy) -> None:
        self.policy = policy
        self.record = ClusterRecord(instance, policy)
        self._issued: Plan | None = None
        self.last: Plan | None = None
        """The last plan of a whole round."""
        self._prices = CarriedPrices()
        self._compile(instance)
        if self.record.has_limits:
            refuse_overfull(instance.running)
        broken = self.record.ledger.standing(self.record.nodes, empty_plan(instance, policy))
        if broken:
            raise BadInput(f"running placements: {broken[0]}; what runs contradicts itself")

    def _compile(self, instance: Instance) -> None:
        self._parts = Parts(instance, self.policy)
        table = self._parts.table
        problem = self._parts.class_problem(self.record.bare())
        refuse_huge_values(problem.options, table.count, self.policy, len(instance.running))
        self._node_number = {name: n for n, name in enumerate(problem.node_ids)}
        for running in instance.running:
            number = table.number(running.job)
            placement = running_placement(running, problem, number, self._node_number)
            self._parts.start(running.job, placement)
        whole = self._parts.whole(instance, problem)
        self._placer = IncrementalPlacer(problem, table.count, State(whole))
        self._placer.held_value = int(problem.options.value[[p.option for p in self._parts.placed.values()]].sum())

    @property
    def snapshot(self) -> Instance:
        """The cluster as it is now, as an instance."""
        return self.record.snapshot()

    def waiting_problem(self) -> Problem:
        """Return the problem of the waiting jobs alone, beside the load of all that runs."""
        columns = self._parts.table.waiting_columns()
        instance = self.record.waiting(columns[0])
        return waiting_problem(instance, self.policy, self._placer.problem, self._placer.state, columns)

    def problem(self) -> Problem:
        """Return what ``compile_problem`` makes of the snapshot, from the parts."""
        return self._parts.whole(self.snapshot, self._placer.problem)

    def update(
        self,
        add_jobs: Iterable[Job],
        remove_jobs: Iterable[str],
        nodes: Mapping[str, NodeChange],
        now_ms: int | None,
        expected_end_ms: Mapping[str, int],
    ) -> None:
        """Change nodes, then remove waiting jobs, then add some: one revision, if anything is given."""
        add, remove = tuple(add_jobs), (remove_jobs,) if isinstance(remove_jobs, str) else tuple(remove_jobs)
        records = self.record.check_nodes(nodes)
        self.record.check_jobs(add, remove, nodes)
        self._refuse_lost_nodes(records, frozenset(remove))
        if now_ms is not None and now_ms < self.record.now_ms:
            raise BadInput(f"now_ms: {now_ms}, but it is {self.record.now_ms} already; time goes forward")
        for job_id, end in expected_end_ms.items():
            if job_id not in self.record.running:
                raise BadInput(f"expected_end_ms: job {job_id!r} does not run")
            if end < 0:
                raise BadInput(f"expected_end_ms: {end} for job {job_id!r}, expected a time from 0 on")
        running = self.record.running
        expected_end_ms = {job: end for job, end in expected_end_ms.items() if running[job].expected_end_ms != end}
        if not (add or remove or records or expected_end_ms or now_ms is not None):
            return
        before = {name: self.record.nodes[name] for name in records if name in self.record.nodes}
        order = list(self.record.nodes) if None in records.values() else None
        hardware, known = self._parts.hardware, len(self._parts.table.members)
        self._put_nodes(records)
        try:
            anew = bool(records) and self._changes_lost()
            if anew:
                self._compile_anew(add, remove)
            else:
                numbers = self._parts.table.classes_of(add)
                problem = self._compile_changes(numbers, before, records)
        except PlaceoptError:
            self._put_nodes({name: before.get(name) for name in records}, order)
            self._parts.table.forget_classes(known)
            self._parts.go_back(hardware)
            raise
        for job_id in () if anew else remove:
            self._parts.table.remove(job_id)
            del self.record.jobs[job_id]
        for job, number in () if anew else zip(add, numbers, strict=True):
            self._parts.table.add(job, number)
            self.record.jobs[job.id] = job
        self.record.look_for_limits(add)
        if not anew:
            self._take_over(problem, same_hardware=self._parts.hardware is hardware)
        self.record.now_ms = self.record.now_ms if now_ms is None else now_ms
        self.record.expect(expected_end_ms)
        changes = [
            *([f"{names([job.id for job in add])} came"] if add else []),
            *([f"{names(list(remove))} went"] if remove else []),
            *([nodes_text(list(records))] if records else []),
            *([f"{names(list(expected_end_ms))} expected to end at another time"] if expected_end_ms else []),
        ]
        changed = [*(job.id for job in add), *remove, *expected_end_ms]
        self.record.note(" and ".join(changes) or "time went on", changed, records)
        if self._parts.table.mostly_empty:
            self._compile(self.snapshot)

    def place_jobs(self, jobs: Iterable[str], method: str, *, explain: bool = True) -> Plan:
        """Return the plan for some waiting jobs; see ``partial_plan.plan_for``."""
        chosen = method_of(method)
        if places_rounds(chosen):
            raise Unsupported(
                f"method: {method!r} places whole rounds; for some jobs take 'stranding', 'best-fit', 'fcfs' or "
                "another method of greedy that goes by what is free"
            )
        if self.policy.postpone.rule == "lookahead":
            raise Unsupported(
                "policy.postpone.rule: 'lookahead' weighs all waiting jobs against each other, so it decides whole "
                "rounds; call place() without jobs, or take the rule 'utility' or 'none'"
            )
        numbers: dict[str, int] = {}
        for job_id in jobs:
            if job_id in numbers:
                raise BadInput(f"jobs: {job_id!r} appears twice")
            if job_id in self.record.running:
                raise BadInput(f"jobs: job {job_id!r} runs already")
            if job_id not in self.record.jobs:
                raise BadInput(f"jobs: no job {job_id!r}; add it with update(add_jobs=...)")
            numbers[job_id] = self._parts.table.number(job_id)
        placer = self._placer
        by_neighbours = chosen.greedy.chooser is not None and self.policy.interference.model == "curve"
        if by_neighbours or self.policy.postpone.rule == "utility":
            placer = FullPlacer(self.problem())
            numbers = dict(zip(numbers, self._parts.table.positions(numbers), strict=True))
        return plan_for(self.record, placer, self.policy, numbers, chosen.greedy, explain=explain)

    def rank(self, job_id: str, nodes: Iterable[str] | None, method: str) -> Ranking:
        """Return the nodes on which a waiting job could have a worker, best first; see ``ranking.rank``."""
        chosen = method_of(method)
        if places_rounds(chosen):
            raise Unsupported(f"method: {method!r} does not score single nodes; take 'stranding', 'best-fit' or 'fcfs'")
        if job_id not in self.record.jobs or job_id in self.record.running:
            raise BadInput(f"job: no job {job_id!r} waits")
        asked = None if nodes is None else list(nodes)
        for name in asked or ():
            if name not in self._node_number:
                raise BadInput(f"nodes: no node {name!r}")
        number = self._parts.table.number(job_id)
        return rank(self._placer, number, self.record.jobs[job_id], chosen.greedy.score, self.record.revision, asked)

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
        looks_ahead = self.policy.postpone.rule == "lookahead"
        method = method_of(params.method)
        if brief and (looks_ahead or not (warm or prove)):
            with gc_paused():
                problem, budget = self.problem(), given.budget(params)
                if looks_ahead:
                    decision, choice = choose_by_lookahead(problem, method, budget)
                else:
                    choice = choose_by_greedy(problem, method, budget)
                plan = None if choice is None else fast_path_plan(self.record, self.policy, problem, choice)
            if plan is not None:
                return plan
        given = replace(given, previous=self.last if warm else None)
        plan = solver.solve_compiled(self.problem, params, given, prove=prove, explain=explain, decision=decision)
        self._issued = self.last = plan
        return plan

    def _place_waiting(
        self, solver: Solver, params: SolveParams, given: RoundInput, *, warm: bool, prove: bool, explain: bool
    ) -> Plan:
        """Return the plan of a round over the waiting jobs alone."""
        reason = needs_running_jobs(self.record, self.policy, method_of(params.method))
        if reason is None and self._parts.lost is not None:
            reason = "jobs run on nodes or GPUs that are not listed"
        if reason is not None:
            raise Unsupported(f"waiting_only: {reason}; call place() without it")
        form = WaitingPlan(self.record, self.policy, self._placer.held_value)
        previous = self.last if warm and self._still_wait(self.last) else None
        given = replace(given, previous=previous, prices=self._prices if warm else None)
        self.last = solver.solve_compiled(
            self.waiting_problem, params, given, prove=prove, explain=explain, form=form, ending=form.finish
        )
        return self.last

    def _still_wait(self, plan: Plan | None) -> bool:
        """Whether any job that a plan starts waits."""
        waiting = self._parts.table.waiting
        return plan is not None and any(placement.job in waiting for placement in plan.placements)

    def commit(self, plan: Plan, movable: Ids, shrinkable: Ids, preemptible: Ids, *, rebased: bool) -> Committed:
        """Make what a plan says the state of the cluster; one revision, unless the plan changes nothing."""
        record = self.record
        if plan.instance.name != record.name:
            raise BadInput(f"plan: is of {plan.instance.name!r}, this cluster is {record.name!r}")
        if not rebased:
            record.refuse_stale(plan.instance.revision)
        if plan.policy.values.digest != self.policy.digest:
            raise BadInput(f"plan: made under another policy, {plan.policy.name!r}; this is {self.policy.name!r}")
        refused: tuple[Refused, ...] = ()
        if plan.instance.revision != record.revision:
            plan, refused = rebase(record, self.policy, plan, lambda: self.snapshot)
        elif plan.asked is not None:
            self._refuse(record.ledger.violations(record, plan))
        elif plan is not self._issued:
            self._refuse(violations(self.snapshot, plan))
        moved = {entry.job for entry in plan.moved}
        changed = [*(entry.job for entry in plan.moved), *(entry.job for entry in plan.shrunk)]
        starting = [p for p in plan.placements if p.job not in record.running]
        keep = {job_id: record.running[job_id] for job_id in changed}
        stopped = [entry.job for entry in plan.preempted]
        for job_id in stopped:
            self._stop(job_id)
        new = {placement.job: placement for placement in plan.placements if placement.job in keep}
        for shrink in plan.shrunk:
            record.rename_workers(shrink.job, kept_ranks(keep[shrink.job], new[shrink.job]))
        for job_id, held in keep.items():
            flags = (held.movable, held.shrinkable, held.preemptible)
            self._start(running_record(new[job_id], record.now_ms if job_id in moved else held.started_ms, flags))
        for placement in starting:
            allowed = (is_among(placement.job, ids) for ids in (movable, shrinkable, preemptible))
            self._start(running_record(placement, record.now_ms, tuple(allowed)))
        if starting or keep or stopped:
            begun = [placement.job for placement in starting]
            changes = [
                f"{names(jobs)} {did}"
                for jobs, did in ((begun, "started"), (changed, "changed place"), (stopped, "stopped"))
                if jobs
            ]
            record.note(" and ".join(changes), changed, started=begun, stopped=stopped)
        return Committed(committed=(*(placement.job for placement in starting), *changed, *stopped), refused=refused)

    @staticmethod
    def _refuse(broken: list[Violation]) -> None:
        if broken:
            raise BadInput(f"plan: {broken[0]}")

    def release(self, job_id: str) -> Job:
        """Remove a running job, done or failed, and return its record."""
        if job_id not in self.record.running:
            raise BadInput(f"release: job {job_id!r} does not run")
        self._stop(job_id)
        self._parts.table.remove(job_id)
        job = self.record.jobs.pop(job_id)
        self.record.note(f"job {job_id!r} ended", stopped=[job_id])
        return job

    def _start(self, running: Running) -> None:
        """Place a job, instead of any placement that it held before."""
        number = self._parts.table.number(running.job)
        placement = running_placement(running, self._placer.problem, number, self._node_number)
        before = self._parts.placed.get(running.job)
        if before is not None:
            self._placer.take(number, before, -1)
        self._placer.take(number, placement)
        self._parts.start(running.job, placement)
        self.record.ledger.start(running)

    def _stop(self, job_id: str) -> None:
        """Release what a running job holds."""
        self.record.ledger.stop(job_id)
        self._placer.take(self._parts.table.number(job_id), self._parts.stop(job_id), -1)

    def _put_nodes(self, records: Mapping[str, Node | None], order: list[str] | None = None) -> None:
        """Add nodes to the records, or remove them; ``order`` restores the former order."""
        ledger = self.record.ledger
        for name, node in records.items():
            if node is not None:
                ledger.put_node(node)
            elif name in self.record.nodes:
                ledger.remove_node(name)
        if order is not None:
            ledger.directory.order_nodes(order)
        if records:
            self.record.nodes_changed()

    def _changes_lost(self) -> bool:
        """Whether jobs run on GPUs that are no longer listed, or did before nodes changed."""
        running = tuple(self.record.running.values())
        now = self.record.bare().model_copy(update={"running": running})
        return self._parts.lost is not None or find_lost(now) is not None

    def _compile_anew(self, add: tuple[Job, ...], remove: tuple[str, ...]) -> None:
        """Remove jobs, add some, and compile everything again; nothing is changed if that fails."""
        jobs = dict(self.record.jobs)
        for job_id in remove:
            del self.record.jobs[job_id]
        self.record.jobs.update({job.id: job for job in add})
        parts, placer, numbers = self._parts, self._placer, self._node_number
        try:
            self._refuse_impossible(list(self.record.nodes), self.record.bare())
            running = tuple(self.record.running.values())
            everything = {"jobs": tuple(self.record.jobs.values()), "running": running}
            self._compile(self.record.bare().model_copy(update=everything))
        except PlaceoptError:
            self.record.jobs.clear()
            self.record.jobs.update(jobs)
            self._parts, self._placer, self._node_number = parts, placer, numbers
            raise

    def _refuse_impossible(self, nodes: list[str], bare: Instance) -> None:
        """Raise if running placements on ``nodes`` contradict each other; limits that they exceed stand."""
        broken = self.record.ledger.standing(nodes, empty_plan(bare, self.policy))
        if broken:
            raise BadInput(f"nodes: what runs there contradicts itself: {broken[0]}")

    def _compile_changes(
        self, numbers: list[int], before: Mapping[str, Node], records: Mapping[str, Node | None]
    ) -> Problem:
        """Return the class problem after a change; raise if the change is not possible."""
        parts, table = self._parts, self._parts.table
        bare = self.record.bare()
        if records:
            changed = [name for name, node in records.items() if node is not None]
            self._refuse_impossible(changed, bare)
            parts.nodes_changed(bare, before)
        grown = len(table.members) > self._placer.problem.num_jobs
        mix_is_old = len(table) + len(numbers) > 2 * max(self._placer.jobs_known, 1)
        problem = parts.class_problem(bare) if records or grown or mix_is_old else self._placer.problem
        counts = table.count + np.bincount(np.array(numbers, dtype=np.int64), minlength=len(table.members))
        refuse_huge_values(problem.options, counts, self.policy, len(self.record.running))
        return problem

    def _take_over(self, problem: Problem, *, same_hardware: bool) -> None:
        """Switch the placer, and the placements that are kept, to the new class problem."""
        if problem is self._placer.problem:
            return
        count = self._parts.table.count
        if same_hardware:
            self._placer.use_classes(problem, count)
            return
        remap = IndexRemap(self._placer.problem, problem)
        placed = self._parts.placed
        self._placer.use_hardware(problem, count, remap, list(placed.values()))
        if remap.shifts:
            self._parts.replace({job_id: remap.placement(placement) for job_id, placement in placed.items()})
        self._node_number = {name: n for n, name in enumerate(problem.node_ids)}

    def _refuse_lost_nodes(self, records: Mapping[str, Node | None], leaving: frozenset[str]) -> None:
        """Refuse to remove a node that a remaining job names."""
        going = {name for name, node in records.items() if node is None}
        table = self._parts.table
        if not going or not any(going.intersection(job.nodes_allowed or ()) for job in table.members):
            return
        for job in self.record.jobs.values():
            lost = going.intersection(job.nodes_allowed or ())
            if lost and job.id not in leaving:
                raise BadInput(f"nodes: {min(lost)!r} cannot go: job {job.id!r} names it in nodes_allowed")
