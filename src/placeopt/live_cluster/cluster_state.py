"""The state of a live cluster: its records, its compiled parts and what is free, changed in step."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from placeopt.check import Violation
from placeopt.errors import BadInput, PlaceoptError
from placeopt.live_cluster.cluster_record import ClusterRecord
from placeopt.live_cluster.incremental_placer import IncrementalPlacer
from placeopt.live_cluster.index_remap import IndexRemap
from placeopt.live_cluster.parts import Parts
from placeopt.live_cluster.starts_plan import StartsPlan
from placeopt.live_cluster.waiting_problem import waiting_problem
from placeopt.model import Hold, Instance, Job, Node, Policy, Running
from placeopt.problem import Placement, Problem, State
from placeopt.problem.compile import refuse_huge_values
from placeopt.problem.grants import refuse_overfull
from placeopt.problem.hardware import find_lost
from placeopt.problem.running import running_placement
from placeopt.solving.draft import plan_of


class ClusterState:
    """
    A cluster between rounds. Every method either does all it says or raises and changes nothing.

    Three things are kept in step: the record (jobs, nodes, running placements, the referee's ledger, the revision), the
    parts that problems are compiled from, and the placer, which holds what is free. No method begins a revision: the
    caller notes what changed (``ClusterRecord.note``).
    """

    def __init__(self, instance: Instance, policy: Policy) -> None:
        self.policy = policy
        self.record = ClusterRecord(instance, policy)
        self._compile(instance)
        if self.record.has_limits:
            refuse_overfull(instance.running)
        broken = self._contradictions(self.record.nodes)
        if broken:
            raise BadInput(f"running placements: {broken[0]}; what runs contradicts itself")

    def _compile(self, instance: Instance) -> None:
        self.parts = Parts(instance, self.policy)
        table = self.parts.table
        problem = self.parts.class_problem(self.record.bare())
        refuse_huge_values(problem.options, table.count, self.policy, len(instance.running))
        self.node_number = {name: n for n, name in enumerate(problem.node_ids)}
        for running in instance.running:
            number = table.number(running.job)
            self.parts.start(running.job, running_placement(running, problem, number, self.node_number))
        whole = self.parts.whole(instance, problem)
        self.placer = IncrementalPlacer(problem, table.count, State(whole))
        self.placer.held_value = int(problem.options.value[[p.option for p in self.parts.placed.values()]].sum())

    @property
    def snapshot(self) -> Instance:
        """The cluster as it is now, as an instance."""
        return self.record.snapshot()

    @property
    def form(self) -> StartsPlan:
        """How plans for some jobs are written now, and judged."""
        return StartsPlan(self.record, self.policy, self.placer.held_value)

    def waiting_problem(self) -> Problem:
        """Return the problem of the waiting jobs alone, beside the load of all that runs."""
        columns = self.parts.table.waiting_columns()
        instance = self.record.waiting(columns[0])
        return waiting_problem(instance, self.policy, self.placer.problem, self.placer.state, columns)

    def problem(self) -> Problem:
        """Return what ``compile_problem`` makes of the snapshot, from the parts."""
        if len(self.parts.placed) < len(self.record.running):
            self.parts.replace({job_id: self._placement(held) for job_id, held in self.record.running.items()})
        return self.parts.whole(self.snapshot, self.placer.problem)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Undo what ``recompile`` does inside, and all changes after it, if an exception ends the block."""
        before = self._contents()
        try:
            yield
        except BaseException:
            self.policy, self.record, self.parts, self.placer, self.node_number = before
            raise

    @contextmanager
    def as_one_revision(self, words: str | None = None) -> Iterator[None]:
        """
        Make the changes inside one revision, described by ``words``; if an exception ends the block, none happened.
        """
        before, policy, record = self.snapshot, self.policy, self.record
        try:
            yield
        except BaseException:
            self.record = record
            self.recompile(before, policy)
            raise
        self.record.join_changes(before.revision, words)

    def recompile(self, instance: Instance, policy: Policy) -> None:
        """Continue from ``instance``, the snapshot with other hardware or policy, as if it were loaded."""
        other = ClusterState(instance, policy)
        other.record.continue_history(self.record)
        self.policy, self.record, self.parts, self.placer, self.node_number = other._contents()

    def _contents(self) -> tuple[Policy, ClusterRecord, Parts, IncrementalPlacer, dict[str, int]]:
        return self.policy, self.record, self.parts, self.placer, self.node_number

    def change(
        self,
        add: tuple[Job, ...] = (),
        remove: tuple[str, ...] = (),
        records: Mapping[str, Node | None] | None = None,
        stop: tuple[str, ...] = (),
        holds: tuple[Hold, ...] | None = None,
        now_ms: int | None = None,
    ) -> None:
        """
        Stop running jobs, put other records of nodes (None removes one), remove waiting jobs, and add some.

        ``holds``: All room that is held from now on, None as before. All of it has been checked as far as the records
        can tell.
        """
        records = records or {}
        held_before, other_holds, other_classes = (self.record.holds, self.record.now_ms), False, False
        before = {name: self.record.nodes[name] for name in records if name in self.record.nodes}
        order = list(self.record.nodes) if None in records.values() else None
        hardware, known = self.parts.hardware, len(self.parts.table.members)
        running = dict(self.record.running) if stop and (add or records) else {}  # to go back
        for job_id in stop:
            self.stop(job_id)
        self._put_nodes(records)
        if records or holds is not None or now_ms is not None:
            known_holds = self.record.holds_for_some
            other_holds = self.record.hold(holds, now_ms)
            other_classes = self.record.holds_for_some != known_holds
        try:
            anew = other_classes or not self.parts.table.tells_apart(add) or self._changes_lost(records)
            if anew:
                self._compile_anew(add, remove)
            else:
                numbers = self.parts.table.classes_of(add)
                problem = self._compile_changes(numbers, before, records, other_holds=other_holds)
        except PlaceoptError:
            self._put_nodes({name: before.get(name) for name in records}, order)
            self.record.hold(*held_before)
            self.parts.table.forget_classes(known)
            self.parts.go_back(hardware)
            self._start_again(stop, running)
            raise
        self.record.look_for_limits(add)
        if anew:
            return
        for job_id in remove:
            self.parts.table.remove(job_id)
            del self.record.jobs[job_id]
        for job, number in zip(add, numbers, strict=True):
            self.parts.table.add(job, number)
            self.record.jobs[job.id] = self.parts.table.shared(job, number)
        self._take_over(problem, same_hardware=self.parts.hardware is hardware)

    def prioritise(self, priority: Mapping[str, int]) -> None:
        """Set the priority of jobs."""
        for job_id, number in priority.items():
            self.record.ledger.put_job(self.record.jobs[job_id].model_copy(update={"priority": number}))
            self.parts.table.prioritise(job_id, number)

    def set_time(self, now_ms: int) -> None:
        """Let time go on; holds begin and end."""
        if now_ms > self.record.now_ms and self.record.has_timed_holds:
            self.change(now_ms=now_ms)
        self.record.now_ms = now_ms

    def number_classes_anew(self) -> None:
        """Compile everything again where jobs have other classes now, or most classes are empty."""
        if self.parts.table.is_stale:
            self._compile(self.snapshot)

    def drop_stand_ins(self, gone: Iterable[Running]) -> None:
        """Compile everything again if ``gone``, which no longer holds, held hardware that the cluster does not list."""
        lost, listed = self.parts.lost, self.record.ledger.directory.machines
        nodes = {node.id for node in lost.nodes if node.machine not in listed} if lost else ()
        if any(held.node in nodes for running in gone for held in running.assignments):
            self._compile(self.snapshot)

    def adopt(self, running: Running) -> None:
        """Let a waiting job run where it does, whatever limits that exceeds."""
        self.start(running)
        try:
            self._refuse_impossible([held.node for held in running.assignments], "placement")
            counts = self.parts.table.count
            refuse_huge_values(self.placer.problem.options, counts, self.policy, len(self.record.running))
        except PlaceoptError:
            self.stop(running.job)
            raise

    def start(self, running: Running) -> None:
        """Place a job, instead of any placement that it held before."""
        number, before = self.parts.table.number(running.job), self.record.running.get(running.job)
        placement = running_placement(running, self.placer.problem, number, self.node_number)
        if before is not None:
            self.placer.take(number, self._placement(before), -1)
        self.placer.take(number, placement)
        self.parts.start(running.job, placement)
        self.record.ledger.start(running)

    def stop(self, job_id: str) -> None:
        """Release what a running job holds."""
        placement = self._placement(self.record.ledger.stop(job_id))
        self.parts.stop(job_id)
        self.placer.take(self.parts.table.number(job_id), placement, -1)

    def _placement(self, running: Running) -> Placement:
        """Return where a job runs; the first time after nodes were numbered anew, read from its record."""
        known = self.parts.placed.get(running.job)
        if known is not None:
            return known
        return running_placement(running, self.placer.problem, self.parts.table.number(running.job), self.node_number)

    def _start_again(self, stopped: tuple[str, ...], running: Mapping[str, Running]) -> None:
        """Undo the stop of some jobs; ``running``: all that ran before, in order."""
        if not stopped:
            return
        for job_id in stopped:
            self.start(running[job_id])
        self.record.order_running(running)
        placed = self.parts.placed
        self.parts.replace({job_id: placed[job_id] for job_id in running if job_id in placed})

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

    def _changes_lost(self, nodes: Collection[str]) -> bool:
        """Whether jobs run on GPUs of ``nodes`` that are no longer listed, or ran on such GPUs before nodes changed."""
        if not nodes:
            return False
        jobs = dict.fromkeys(job for node in nodes for job in self.record.ledger.on_node(node))
        running = tuple(self.record.running[job] for job in jobs)
        return bool(self.parts.lost or find_lost(self.record.bare().model_copy(update={"running": running})))

    def _compile_anew(self, add: tuple[Job, ...], remove: tuple[str, ...]) -> None:
        """Remove jobs, add some, and compile everything again; nothing is changed if that fails."""
        jobs = dict(self.record.jobs)
        for job_id in remove:
            del self.record.jobs[job_id]
        self.record.jobs.update({job.id: job for job in add})
        parts, placer, numbers = self.parts, self.placer, self.node_number
        try:
            self._refuse_impossible(self.record.nodes)
            running = tuple(self.record.running.values())
            everything = {"jobs": tuple(self.record.jobs.values()), "running": running}
            self._compile(self.record.bare().model_copy(update=everything))
        except PlaceoptError:
            self.record.jobs.clear()
            self.record.jobs.update(jobs)
            self.parts, self.placer, self.node_number = parts, placer, numbers
            raise

    def _contradictions(self, nodes: Iterable[str]) -> list[Violation]:
        """Return in what running placements on ``nodes`` contradict each other; limits that they exceed stand."""
        return self.record.ledger.standing(nodes, plan_of(self.record, self.policy))

    def _refuse_impossible(self, nodes: Iterable[str], argument: str = "nodes") -> None:
        """Raise if running placements on ``nodes`` contradict each other."""
        broken = self._contradictions(nodes)
        if broken:
            raise BadInput(f"{argument}: what runs there contradicts itself: {broken[0]}")

    def _compile_changes(
        self, numbers: list[int], before: Mapping[str, Node], records: Mapping[str, Node | None], *, other_holds: bool
    ) -> Problem:
        """Return the class problem after a change; raise if the change is not possible."""
        hardware = bool(records) or other_holds
        if not (numbers or hardware):
            return self.placer.problem
        parts, table, bare = self.parts, self.parts.table, self.record.bare()
        if hardware:
            self._refuse_impossible([name for name, node in records.items() if node is not None])
            parts.hardware_changed(bare, before, other_holds=other_holds)
        grown = len(table.members) > self.placer.problem.num_jobs
        mix_is_old = len(table) + len(numbers) > 2 * max(self.placer.jobs_known, 1)
        anew = hardware or grown or mix_is_old
        problem = parts.class_problem(bare) if anew else self.placer.problem
        counts = table.count + np.bincount(np.array(numbers, dtype=np.int64), minlength=len(table.members))
        refuse_huge_values(problem.options, counts, self.policy, len(self.record.running))
        return problem

    def _take_over(self, problem: Problem, *, same_hardware: bool) -> None:
        """Switch the placer, and the placements that are kept, to the new class problem."""
        if problem is self.placer.problem:
            return
        count = self.parts.table.count
        if same_hardware:
            self.placer.use_classes(problem, count)
            return
        remap = IndexRemap(self.placer.problem, problem)
        self.placer.use_hardware(problem, count, remap, map(self._placement, self.record.running.values()))
        if remap.shifts:
            self.parts.replace({})
        self.node_number = {name: n for n, name in enumerate(problem.node_ids)}
