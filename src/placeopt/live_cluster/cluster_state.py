"""The state of a live cluster: its records, its compiled parts and what is free, changed in step."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import filterfalse

import numpy as np

from placeopt.check import Violation
from placeopt.errors import BadInput, PlaceoptError
from placeopt.live_cluster.changes import ClusterChanges
from placeopt.live_cluster.cluster_record import ClusterRecord
from placeopt.live_cluster.incremental_placer import IncrementalPlacer
from placeopt.live_cluster.index_remap import IndexRemap
from placeopt.live_cluster.parts import Parts
from placeopt.live_cluster.starts_plan import StartsPlan
from placeopt.live_cluster.waiting_problem import waiting_problem
from placeopt.model import Instance, Job, Policy, Running
from placeopt.problem import Placement, Problem, State
from placeopt.problem.compile import refuse_huge_values
from placeopt.problem.grants import refuse_overfull
from placeopt.problem.hardware import Hardware, find_lost
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
        classes, problem = self.parts.classes, self.parts.class_problem(self.record.bare())
        refuse_huge_values(problem.options, classes.count, self.policy, len(instance.running))
        self.node_number = {name: n for n, name in enumerate(problem.node_ids)}
        self.placed: dict[str, Placement] = {
            held.job: running_placement(held, problem, classes.number(held.job), self.node_number)
            for held in instance.running
        }
        """Where jobs run, in options of the class problem, as far as that is known in present numbers of nodes."""
        whole = self.parts.whole(instance, problem, self.placed)
        self._whole = instance, whole
        self.placer = IncrementalPlacer(problem, classes.count, State(whole))
        self.placer.held_value = int(problem.options.value[[held.option for held in self.placed.values()]].sum())

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
        record, placer = self.record, self.placer
        ids = tuple(filterfalse(record.running.__contains__, record.jobs))
        columns = ids, *self.parts.classes.columns(ids)
        return waiting_problem(record.waiting(ids), self.policy, placer.problem, placer.state, columns)

    def problem(self) -> Problem:
        """Return what ``compile_problem`` makes of the snapshot, from the parts."""
        instance = self.snapshot
        if self._whole[0] is not instance:
            if len(self.placed) < len(self.record.running):
                self.placed = {job_id: self._placement(held) for job_id, held in self.record.running.items()}
            self._whole = instance, self.parts.whole(instance, self.placer.problem, self.placed)
        return self._whole[1]

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Bring back the cluster of now if an exception ends the block."""
        before, policy, record = self.snapshot, self.policy, self.record
        try:
            yield
        except BaseException:
            self.record = record
            self.become(self.anew(before, policy))
            raise

    @contextmanager
    def as_one_revision(self, words: str | None = None) -> Iterator[None]:
        """
        Make the changes inside one revision, described by ``words``; if an exception ends the block, none happened.
        """
        before = self.record.revision
        with self.restored():
            yield
        self.record.join_changes(before, words)

    def anew(self, instance: Instance, policy: Policy) -> ClusterState:
        """Return the state that goes on from ``instance``, the snapshot with other hardware or policy."""
        other = ClusterState(instance, policy)
        other.record.continue_history(self.record)
        return other

    def become(self, other: ClusterState) -> None:
        """Take over all of another state."""
        vars(self).update(vars(other))

    def change(self, changes: ClusterChanges, remove: tuple[str, ...], stop: tuple[str, ...]) -> None:
        """
        Stop running jobs, put other records of nodes and holds, remove waiting jobs, and add some.

        ``remove``: Jobs that go, ``stop`` those of them, and others, that run until now. All of it has been checked as
        far as the records can tell.
        """
        record, add, now_ms = self.record, changes.add_jobs, max(changes.now_ms, self.record.now_ms)
        other_holds = changes.holds is not None and changes.holds != record.holds
        time_tells = now_ms > record.now_ms and record.has_timed_holds
        if changes.nodes or other_holds or time_tells or not self.parts.classes.tells_apart(add):
            with self.restored():
                for job_id in stop:
                    self.stop(job_id)
                self._change_hardware(changes, remove, now_ms)
        else:
            self._change_jobs(add, remove, stop)
        record.now_ms = now_ms

    def _change_hardware(self, changes: ClusterChanges, remove: tuple[str, ...], now_ms: int) -> None:
        """Change the hardware, or all that it takes to tell jobs apart; the caller undoes what fails on the way."""
        record, parts, add, nodes = self.record, self.parts, changes.add_jobs, changes.nodes
        before = {name: record.nodes[name] for name in nodes if name in record.nodes}
        for name, node in nodes.items():
            if node is not None:
                record.ledger.put_node(node)
            else:
                record.ledger.remove_node(name)
        if nodes:
            record.nodes_changed()
        known_holds = record.holds_for_some
        other_holds = record.hold(changes.holds, now_ms)
        self._refuse_impossible([name for name, node in nodes.items() if node is not None], "nodes")
        if record.holds_for_some == known_holds and parts.classes.tells_apart(add) and not self._changes_lost(nodes):
            hardware = parts.hardware if nodes or other_holds else None
            if hardware is not None:
                parts.hardware_changed(record.bare(), before, other_holds=other_holds)
            self._change_jobs(add, remove, (), hardware)
            return
        for job_id in remove:
            del record.jobs[job_id]
        record.jobs.update({job.id: job for job in add})
        record.look_for_limits(add)
        everything = {"jobs": tuple(record.jobs.values()), "running": tuple(record.running.values())}
        self._compile(record.bare().model_copy(update=everything))

    def _change_jobs(
        self, add: tuple[Job, ...], remove: tuple[str, ...], stop: tuple[str, ...], hardware: Hardware | None = None
    ) -> None:
        """Let jobs come, go and stop, or raise and change no job; ``hardware``: what was there before, None: as now."""
        classes, record, placer = self.parts.classes, self.record, self.placer
        known = len(classes.members)
        numbers = classes.of(add)
        problem = placer.problem
        try:
            grown = len(classes.members) > problem.num_jobs
            if hardware is not None or grown or len(record.jobs) + len(add) > 2 * max(placer.jobs_known, 1):
                problem = self.parts.class_problem(record.bare())
            if add or hardware is not None:
                counts = classes.count + np.bincount(np.array(numbers, dtype=np.int64), minlength=len(classes.members))
                refuse_huge_values(problem.options, counts, self.policy, len(record.running))
        except PlaceoptError:
            classes.forget(known)
            raise
        for job_id in stop:
            self.stop(job_id)
        for job_id in remove:
            classes.remove(job_id)
            del record.jobs[job_id]
        for job, number in zip(add, numbers, strict=True):
            record.jobs[job.id] = classes.add(job, number)
        record.look_for_limits(add)
        if problem is placer.problem:
            return
        if hardware is None or hardware is self.parts.hardware:
            placer.use_classes(problem, classes.count)
            return
        remap = IndexRemap(placer.problem, problem)
        placer.use_hardware(problem, classes.count, remap, map(self._placement, record.running.values()))
        if remap.shifts:
            self.placed.clear()
        self.node_number = {name: n for n, name in enumerate(problem.node_ids)}

    def prioritise(self, priority: Mapping[str, int]) -> None:
        """Set the priority of jobs."""
        for job_id, number in priority.items():
            self.record.ledger.put_job(self.record.jobs[job_id].model_copy(update={"priority": number}))
            self.parts.classes.prioritise(job_id, number)

    def compile_if_stale(self, gone: Iterable[Running] = ()) -> None:
        """
        Compile everything again where jobs have other classes now, or most classes are empty.

        Or if ``gone``, which no longer holds anything, held hardware that the cluster does not list.
        """
        lost, listed = self.parts.lost, self.record.ledger.directory.machines
        nodes = {node.id for node in lost.nodes if node.machine not in listed} if lost else ()
        if self.parts.classes.is_stale or any(held.node in nodes for one in gone for held in one.assignments):
            self._compile(self.snapshot)

    def adopt(self, running: Collection[Running]) -> None:
        """Let waiting jobs run where they do, whatever limits that exceeds; or raise and change nothing."""
        begun: list[str] = []
        try:
            for held in running:
                self.start(held)
                begun.append(held.job)
            self._refuse_impossible([at.node for held in running for at in held.assignments], "placement")
            counts = self.parts.classes.count
            refuse_huge_values(self.placer.problem.options, counts, self.policy, len(self.record.running))
        except PlaceoptError:
            for job_id in begun:
                self.stop(job_id)
            raise

    def start(self, running: Running) -> None:
        """Place a job, instead of any placement that it held before."""
        number, before = self.parts.classes.number(running.job), self.record.running.get(running.job)
        placement = running_placement(running, self.placer.problem, number, self.node_number)
        if before is not None:
            self.placer.take(number, self._placement(before), -1)
        self.placer.take(number, placement)
        self.placed[running.job] = placement
        self.record.ledger.start(running)

    def stop(self, job_id: str) -> None:
        """Release what a running job holds."""
        placement = self._placement(self.record.ledger.stop(job_id))
        self.placed.pop(job_id, None)
        self.placer.take(self.parts.classes.number(job_id), placement, -1)

    def _placement(self, running: Running) -> Placement:
        """Return where a job runs; the first time after nodes were numbered anew, read from its record."""
        known = self.placed.get(running.job)
        if known is not None:
            return known
        return running_placement(running, self.placer.problem, self.parts.classes.number(running.job), self.node_number)

    def _changes_lost(self, nodes: Collection[str]) -> bool:
        """Whether jobs run on GPUs of ``nodes`` that are no longer listed, or ran on such GPUs before nodes changed."""
        if not nodes:
            return False
        jobs = dict.fromkeys(job for node in nodes for job in self.record.ledger.on_node(node))
        running = tuple(self.record.running[job] for job in jobs)
        return bool(self.parts.lost or find_lost(self.record.bare().model_copy(update={"running": running})))

    def _contradictions(self, nodes: Iterable[str]) -> list[Violation]:
        """Return in what running placements on ``nodes`` contradict each other; limits that they exceed stand."""
        return self.record.ledger.standing(nodes, plan_of(self.record, self.policy))

    def _refuse_impossible(self, nodes: Iterable[str], argument: str) -> None:
        """Raise if running placements on ``nodes`` contradict each other."""
        broken = self._contradictions(nodes)
        if broken:
            raise BadInput(f"{argument}: what runs there contradicts itself: {broken[0]}")
