"""The resident cluster: loaded once, changed piece by piece, with records, compiled parts and desk in step."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping

import numpy as np

from placeopt.check import violations
from placeopt.check.case import names
from placeopt.errors import BadInput, PlaceoptError
from placeopt.formats.gc_pause import gc_paused
from placeopt.heuristics import CHOOSERS, greedy
from placeopt.heuristics.job_orders import order_jobs
from placeopt.heuristics.lookahead import LookaheadDecision, look_ahead
from placeopt.live_cluster.cluster_record import ClusterRecord, NodeChange
from placeopt.live_cluster.fast_path import fast_path_plan
from placeopt.live_cluster.incremental_placer import FullPlacer, IncrementalPlacer
from placeopt.live_cluster.index_remap import IndexRemap
from placeopt.live_cluster.partial_plan import plan_for
from placeopt.live_cluster.parts import Parts
from placeopt.model import Instance, Job, Node, Plan, Policy, Running
from placeopt.model import Placement as PlacementRecord
from placeopt.model.plan import InstanceRef, Level, PolicyRef
from placeopt.problem import Problem, State
from placeopt.problem.compile import refuse_huge_values
from placeopt.problem.grants import refuse_overfull
from placeopt.problem.indexing import running_placement
from placeopt.problem.lost import find_lost
from placeopt.solving.methods import Method
from placeopt.solving.pipeline import score_and_order
from placeopt.solving.stages.lookahead import decides_all, lookahead_summary

Ids = bool | Collection[str]
"""All jobs that a plan starts (true), none of them, or some by id."""


class ClusterState:
    """
    A cluster between rounds. Every method either does all it says or raises and changes nothing.

    Three things are kept in step: the book (records, the referee's ledger, the revision), the parts that problems are
    compiled from, and the desk, which knows what is free.
    """

    def __init__(self, instance: Instance, policy: Policy) -> None:
        self.policy = policy
        self.book = ClusterRecord(instance, policy)
        self._issued: Plan | None = None
        self.last: Plan | None = None
        """The last plan of a whole round."""
        self._compile(instance)
        if self.book.has_limits:
            refuse_overfull(instance.running)
        broken = self.book.ledger.standing(self.book.nodes, _empty_plan(instance, policy))
        if broken:
            raise BadInput(f"running placements: {broken[0]}; what runs contradicts itself")

    def _compile(self, instance: Instance) -> None:
        self._parts = Parts(instance, self.policy)
        table = self._parts.table
        problem = self._parts.vocabulary(self.book.bare())
        refuse_huge_values(problem.options, table.count, self.policy, len(instance.running))
        self._node_number = {name: n for n, name in enumerate(problem.node_ids)}
        for running in instance.running:
            number = table.number(running.job)
            placement = running_placement(running, problem, number, self._node_number)
            self._parts.start(running.job, placement)
        whole = self._parts.whole(instance, problem)
        self._desk = IncrementalPlacer(problem, table.count, State(whole))

    @property
    def snapshot(self) -> Instance:
        """The cluster as it is now, as an instance."""
        return self.book.snapshot()

    def problem(self) -> Problem:
        """Return what ``compile_problem`` makes of the snapshot, from the parts."""
        return self._parts.whole(self.snapshot, self._desk.problem)

    def update(
        self,
        add_jobs: Iterable[Job],
        remove_jobs: Iterable[str],
        nodes: Mapping[str, NodeChange],
        now_ms: int | None,
        expected_end_ms: Mapping[str, int],
    ) -> None:
        """
        Change nodes, then take waiting jobs away, then add some: one revision, if anything is asked at all.

        Raises
        ------
        BadInput
            If any of it contradicts the records, or what runs contradicts itself.
        Unsupported
            If the jobs can be worth more than 2^53 together.
        """
        add, remove = tuple(add_jobs), (remove_jobs,) if isinstance(remove_jobs, str) else tuple(remove_jobs)
        records = self.book.check_nodes(nodes)
        self.book.check_jobs(add, remove, nodes)
        self._refuse_lost_nodes(records, frozenset(remove))
        if now_ms is not None and now_ms < self.book.now_ms:
            raise BadInput(f"now_ms: {now_ms}, but it is {self.book.now_ms} already; time goes forward")
        for job_id, end in expected_end_ms.items():
            if job_id not in self.book.running:
                raise BadInput(f"expected_end_ms: job {job_id!r} does not run")
            if end < 0:
                raise BadInput(f"expected_end_ms: {end} for job {job_id!r}, expected a time from 0 on")
        running = self.book.running
        expected_end_ms = {job: end for job, end in expected_end_ms.items() if running[job].expected_end_ms != end}
        if not (add or remove or records or expected_end_ms or now_ms is not None):
            return
        before = {name: self.book.nodes[name] for name in records if name in self.book.nodes}
        order = list(self.book.nodes) if None in records.values() else None
        hardware, known = self._parts.hardware, len(self._parts.table.members)
        self._put_nodes(records)
        try:
            afresh = bool(records) and self._changes_lost()
            if afresh:
                self._compile_afresh(add, remove)
            else:
                numbers = self._parts.table.classes_of(add)
                problem = self._compile_changes(numbers, before, records)
        except PlaceoptError:
            self._put_nodes({name: before.get(name) for name in records}, order)
            self._parts.table.forget_classes(known)
            self._parts.go_back(hardware)
            raise
        for job_id in () if afresh else remove:
            self._parts.table.remove(job_id)
            del self.book.jobs[job_id]
        for job, number in () if afresh else zip(add, numbers, strict=True):
            self._parts.table.add(job, number)
            self.book.jobs[job.id] = job
        self.book.look_for_limits(add)
        if not afresh:
            self._take_over(problem, same_hardware=self._parts.hardware is hardware)
        self.book.now_ms = self.book.now_ms if now_ms is None else now_ms
        self.book.expect(expected_end_ms)
        lookahead_summary = [
            *([f"{names([job.id for job in add])} came"] if add else []),
            *([f"{names(list(remove))} went"] if remove else []),
            *([_told_of_nodes(list(records))] if records else []),
            *([f"{names(list(expected_end_ms))} expected to end at another time"] if expected_end_ms else []),
        ]
        changed = [*(job.id for job in add), *remove, *expected_end_ms]
        self.book.note(" and ".join(lookahead_summary) or "time went on", changed, records)
        if self._parts.table.mostly_empty:
            self._compile(self.snapshot)

    def place(self, jobs: Iterable[str], method: Method, versions: dict[str, str], *, explain: bool = True) -> Plan:
        """
        Return the plan for some waiting jobs; see ``partial.plan_for``.

        Raises
        ------
        BadInput
            If a job is not there, runs already, or stands twice.
        """
        asked: dict[str, int] = {}
        for job_id in jobs:
            if job_id in asked:
                raise BadInput(f"jobs: {job_id!r} stands twice")
            if job_id in self.book.running:
                raise BadInput(f"jobs: job {job_id!r} runs already")
            if job_id not in self.book.jobs:
                raise BadInput(f"jobs: no job {job_id!r}; add it with update(add_jobs=...)")
            asked[job_id] = self._parts.table.number(job_id)
        desk = self._desk
        by_neighbours = method.chooser is not None and self.policy.interference.model == "curve"
        if by_neighbours or self.policy.postpone.rule == "utility":
            desk = FullPlacer(self.problem())
            asked = dict(zip(asked, self._parts.table.positions(asked), strict=True))
        return plan_for(self.book, desk, self.policy, asked, method, versions, explain=explain)

    def look_ahead(
        self, method: Method, until: float, cancel: threading.Event | None, versions: dict[str, str]
    ) -> tuple[LookaheadDecision, Plan | None]:
        """Return what look-ahead decides now, and the plan where that is all there is to decide."""
        with gc_paused():
            problem = self.problem()
            score, order = score_and_order(method, problem)
            ahead = look_ahead(
                problem,
                order_jobs(problem, order),
                score,
                reorder=not method.strict,
                deadline=until,
                cancelled=None if cancel is None else cancel.is_set,
            )
            if not decides_all(problem, ahead):
                return ahead, None
            stage = "lookahead", bool(ahead.starts or ahead.waits), lookahead_summary(ahead)
            return ahead, fast_path_plan(self.book, self.policy, problem, ahead.starts, stage, versions)

    def greedily(
        self, method: Method, seed: int, until: float, cancel: threading.Event | None, versions: dict[str, str]
    ) -> Plan | None:
        """Return the plan of greedy for those who start; None where stages may find more, or time has run out."""
        with gc_paused():
            problem = self.problem()
            talk = any(communication.edges for communication in problem.class_communication)
            if not method.is_greedy or method.shape != "value" or problem.changeable or talk:
                return None
            score, order = score_and_order(method, problem)
            found = greedy(
                problem,
                order_jobs(problem, order),
                score,
                deadline=until,
                cancelled=None if cancel is None else cancel.is_set,
                stop_at_first_failure=method.strict,
                seed=seed,
                chooser=None if method.chooser is None else CHOOSERS[method.chooser],
            )
            if found.not_reached:
                return None
            starts = {
                job: placement
                for job, placement in enumerate(found.allocation)
                if placement is not None and job not in problem.running
            }
            if starts and not any(problem.options.value[placement.option] for placement in starts.values()):
                return None  # a round places what is worth nothing only where that costs less
            stage = "heuristic", True, f"{method.chooser or score} in order {order}"
            return fast_path_plan(self.book, self.policy, problem, starts, stage, versions)

    def issued(self, plan: Plan) -> None:
        """Note that ``plan`` is a checked one of the whole snapshot."""
        self._issued = self.last = plan

    def commit(self, plan: Plan, movable: Ids, shrinkable: Ids, preemptible: Ids) -> None:
        """
        Make what a plan says the state of the cluster; one revision, unless the plan changes nothing.

        Raises
        ------
        StaleSnapshot
            If the cluster has changed since the plan was made.
        BadInput
            If the plan is of another cluster or policy, or the referee refuses it.
        """
        book = self.book
        if plan.instance.name != book.name:
            raise BadInput(f"plan: is of {plan.instance.name!r}, this cluster is {book.name!r}")
        book.refuse_stale(plan.instance.revision)
        if plan.policy.values.digest != self.policy.digest:
            raise BadInput(f"plan: made under another policy, {plan.policy.name!r}; this is {self.policy.name!r}")
        if plan.asked is not None:
            broken = book.ledger.violations(book, plan)
        else:
            broken = [] if plan is self._issued else violations(self.snapshot, plan)
        if broken:
            raise BadInput(f"plan: {broken[0]}")
        anew = {entry.job for entry in plan.moved}
        changed = [*(entry.job for entry in plan.moved), *(entry.job for entry in plan.shrunk)]
        starting = [p for p in plan.placements if p.job not in book.running]
        keep = {job_id: book.running[job_id] for job_id in changed}
        stopped = [entry.job for entry in plan.preempted]
        for job_id in stopped:
            self._stop(job_id)
        new = {placement.job: placement for placement in plan.placements if placement.job in keep}
        for job_id, held in keep.items():
            flags = (held.movable, held.shrinkable, held.preemptible)
            self._start(_runs(new[job_id], book.now_ms if job_id in anew else held.started_ms, flags))
        for placement in starting:
            allowed = (_among(placement.job, ids) for ids in (movable, shrinkable, preemptible))
            self._start(_runs(placement, book.now_ms, tuple(allowed)))
        if starting or keep or stopped:
            begun = [placement.job for placement in starting]
            lookahead_summary = [
                f"{names(jobs)} {did}"
                for jobs, did in ((begun, "started"), (changed, "changed place"), (stopped, "stopped"))
                if jobs
            ]
            book.note(" and ".join(lookahead_summary), [*begun, *changed, *stopped])

    def release(self, job_id: str) -> Job:
        """
        Take a running job away, done or failed, and return its record.

        Raises
        ------
        BadInput
            If no such job runs.
        """
        if job_id not in self.book.running:
            raise BadInput(f"release: job {job_id!r} does not run")
        self._stop(job_id)
        self._parts.table.remove(job_id)
        job = self.book.jobs.pop(job_id)
        self.book.note(f"job {job_id!r} ended", [job_id])
        return job

    def _start(self, running: Running) -> None:
        """Let a job hold something, in the place of what it held before."""
        number = self._parts.table.number(running.job)
        placement = running_placement(running, self._desk.problem, number, self._node_number)
        before = self._parts.placed.get(running.job)
        if before is not None:
            self._desk.take(number, before, -1)
        self._desk.take(number, placement)
        self._parts.start(running.job, placement)
        self.book.ledger.start(running)

    def _stop(self, job_id: str) -> None:
        self.book.ledger.stop(job_id)
        self._desk.take(self._parts.table.number(job_id), self._parts.stop(job_id), -1)

    def _put_nodes(self, records: Mapping[str, Node | None], order: list[str] | None = None) -> None:
        """Put nodes into the records, or take them away; ``order`` restores the order of before."""
        ledger = self.book.ledger
        for name, node in records.items():
            if node is not None:
                ledger.put_node(node)
            elif name in self.book.nodes:
                ledger.remove_node(name)
        if order is not None:
            ledger.directory.order_nodes(order)
        if records:
            self.book.nodes_changed()

    def _changes_lost(self) -> bool:
        """Whether jobs run on GPUs that are no longer listed, or did before nodes changed."""
        running = tuple(self.book.running.values())
        now = self.book.bare().model_copy(update={"running": running})
        return self._parts.lost is not None or find_lost(now) is not None

    def _compile_afresh(self, add: tuple[Job, ...], remove: tuple[str, ...]) -> None:
        """Take jobs away, add some, and compile all of it anew; nothing is changed if that fails."""
        jobs = dict(self.book.jobs)
        for job_id in remove:
            del self.book.jobs[job_id]
        self.book.jobs.update({job.id: job for job in add})
        parts, desk, numbers = self._parts, self._desk, self._node_number
        try:
            self._refuse_impossible(list(self.book.nodes), self.book.bare())
            running = tuple(self.book.running.values())
            everything = {"jobs": tuple(self.book.jobs.values()), "running": running}
            self._compile(self.book.bare().model_copy(update=everything))
        except PlaceoptError:
            self.book.jobs.clear()
            self.book.jobs.update(jobs)
            self._parts, self._desk, self._node_number = parts, desk, numbers
            raise

    def _refuse_impossible(self, nodes: list[str], bare: Instance) -> None:
        """Raise if what runs on ``nodes`` contradicts itself; limits that it exceeds stand."""
        broken = self.book.ledger.standing(nodes, _empty_plan(bare, self.policy))
        if broken:
            raise BadInput(f"nodes: what runs there contradicts itself: {broken[0]}")

    def _compile_changes(
        self, numbers: list[int], before: Mapping[str, Node], records: Mapping[str, Node | None]
    ) -> Problem:
        """Return the vocabulary's problem after a change; raise what is wrong with the change."""
        parts, table = self._parts, self._parts.table
        bare = self.book.bare()
        if records:
            changed = [name for name, node in records.items() if node is not None]
            self._refuse_impossible(changed, bare)
            parts.nodes_changed(bare, before)
        grown = len(table.members) > self._desk.problem.num_jobs
        mix_is_old = len(table) + len(numbers) > 2 * max(self._desk.jobs_known, 1)
        problem = parts.vocabulary(bare) if records or grown or mix_is_old else self._desk.problem
        counts = table.count + np.bincount(np.array(numbers, dtype=np.int64), minlength=len(table.members))
        refuse_huge_values(problem.options, counts, self.policy, len(self.book.running))
        return problem

    def _take_over(self, problem: Problem, *, same_hardware: bool) -> None:
        """Let the desk, and what is kept of placements, go on under the new problem of the vocabulary."""
        if problem is self._desk.problem:
            return
        count = self._parts.table.count
        if same_hardware:
            self._desk.learn(problem, count)
            return
        carry = IndexRemap(self._desk.problem, problem)
        placed = self._parts.placed
        self._desk.move(problem, count, carry, list(placed.values()))
        if carry.shifts:
            self._parts.replace({job_id: carry.placement(placement) for job_id, placement in placed.items()})
        self._node_number = {name: n for n, name in enumerate(problem.node_ids)}

    def _refuse_lost_nodes(self, records: Mapping[str, Node | None], leaving: frozenset[str]) -> None:
        """No job that stays may name a node that goes."""
        going = {name for name, node in records.items() if node is None}
        table = self._parts.table
        if not going or not any(going.intersection(job.nodes_allowed or ()) for job in table.members):
            return
        for job in self.book.jobs.values():
            lost = going.intersection(job.nodes_allowed or ())
            if lost and job.id not in leaving:
                raise BadInput(f"nodes: {min(lost)!r} cannot go: job {job.id!r} names it in nodes_allowed")


def _runs(placement: PlacementRecord, started_ms: int, flags: tuple[bool, ...]) -> Running:
    movable, shrinkable, preemptible = flags
    return Running.model_construct(
        job=placement.job,
        option=placement.option,
        assignments=placement.assignments,
        started_ms=started_ms,
        movable=movable,
        shrinkable=shrinkable,
        preemptible=preemptible,
    )


def _among(job_id: str, ids: Ids) -> bool:
    if isinstance(ids, str):  # one id, not the letters of one
        return job_id == ids
    return ids if isinstance(ids, bool) else job_id in ids


def _empty_plan(instance: Instance, policy: Policy) -> Plan:
    """A plan that places nothing: it carries the policy by which what runs is judged."""
    return Plan(
        instance=InstanceRef(name=instance.name, digest=None, revision=instance.revision),
        policy=PolicyRef(name=policy.name, digest=policy.digest, values=policy),
        status="feasible",
        limit="none",
        levels=(Level(name="value", sense="max", objective=0, bound=None),),
        gap=None,
    )


def _told_of_nodes(ids: list[str]) -> str:
    shown = ", ".join(repr(name) for name in ids[:5])
    more = f" and {len(ids) - 5} more" if len(ids) > 5 else ""
    return f"node{'s' * (len(ids) > 1)} {shown}{more} changed"
