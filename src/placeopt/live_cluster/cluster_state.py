"""The state of a live cluster: its records, its compiled parts and what is free, changed in step."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import filterfalse

import numpy as np

from placeopt.errors import BadInput, PlaceoptError
from placeopt.live_cluster.changes import ClusterChanges
from placeopt.live_cluster.cluster_record import ClusterRecord
from placeopt.live_cluster.history import History
from placeopt.live_cluster.incremental_placer import IncrementalPlacer, carried_over
from placeopt.live_cluster.parts import Parts
from placeopt.live_cluster.starts_plan import StartsPlan
from placeopt.live_cluster.waiting_rounds import nodes_with_room
from placeopt.model import Instance, Job, Node, Policy, Running
from placeopt.problem import Placement, Problem, State
from placeopt.problem.compile import refuse_huge_values
from placeopt.problem.grants import refuse_overfull
from placeopt.problem.running import running_placement
from placeopt.solving.draft import plan_of


class ClusterState:
    """
    A cluster between rounds. Every method either does all it says or raises and changes nothing.

    Three things are kept in step: the record (jobs, nodes, running placements, the referee's ledger, the revision), the
    parts that problems are compiled from, and the placer, which holds what is free. No method notes what changed
    (``History.note``): callers do, inside `one_revision`.
    """

    def __init__(self, instance: Instance, policy: Policy, history: History | None = None) -> None:
        """``history``: That of the cluster that this one goes on from."""
        self.policy = policy
        self.record = ClusterRecord(instance, policy, history)
        self._compile(instance)
        if self.record.has_limits:
            refuse_overfull(instance.running)
        self._refuse_contradictions("running placements", self.record.nodes)

    def _compile(self, instance: Instance) -> None:
        self.parts = Parts(instance, self.policy)
        classes, problem = self.parts.classes, self.parts.class_problem(self.record.bare())
        refuse_huge_values(problem.options, classes.count, self.policy, len(instance.running))
        self._number_nodes(problem, moved=True)
        whole = self.parts.problem(instance, problem, classes.rows, self.placed)
        self._whole = instance, whole
        self.placer = IncrementalPlacer(problem, classes.count, State(whole))
        self.placer.held_value = int(problem.options.value[[held.option for held in self.placed.values()]].sum())

    def _number_nodes(self, problem: Problem, *, moved: bool) -> None:
        """Take the numbers of nodes that the class problem has; ``moved``: whether nodes with jobs had others."""
        classes = self.parts.classes
        self.node_number = {name: n for n, name in enumerate(problem.node_ids)}
        if not moved:
            return
        self.placed: dict[str, Placement] = {
            job: running_placement(held, problem, classes.number(job), self.node_number)
            for job, held in self.record.running.items()
        }
        """Where jobs run, in options of the class problem."""

    @property
    def snapshot(self) -> Instance:
        """The cluster as it is now, as an instance."""
        return self.record.snapshot()

    @property
    def form(self) -> StartsPlan:
        """How plans for some jobs are written now, and judged."""
        return StartsPlan(self.record, self.policy, self.placer.held_value)

    def waiting_problem(self) -> Problem:
        """Return the problem of the waiting jobs alone, on nodes with room for any; what runs is a load on these."""
        record, state, parts = self.record, self.placer.state, self.parts
        waiting = tuple(filterfalse(record.running.__contains__, record.jobs))
        instance = record.bare(tuple(map(record.jobs.__getitem__, waiting)))
        nodes = nodes_with_room(state, np.unique(parts.classes.columns(waiting)[0]))
        problem = parts.problem(instance, state.problem, waiting, {}, nodes)
        load = state if nodes is None else carried_over(state, problem, nodes)
        return replace(problem, base_load=load.base_load())

    def problem(self) -> Problem:
        """Return what ``compile_problem`` makes of the snapshot, from the parts."""
        instance = self.snapshot
        if self._whole[0] is not instance:
            parts = self.parts
            self._whole = instance, parts.problem(instance, self.placer.problem, parts.classes.rows, self.placed)
        return self._whole[1]

    @contextmanager
    def one_revision(self, words: str = "", *, restores: bool = False) -> Iterator[None]:
        """
        Make one revision of all that is noted inside; see `History.one_revision`.

        ``restores``: Whether the block makes several changes, so that those before an exception have to be undone.
        """
        with self.restored() if restores else nullcontext(), self.record.history.one_revision(words):
            yield

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Bring back the cluster of now if an exception ends the block."""
        before, policy = self.snapshot, self.policy
        try:
            yield
        except BaseException:
            self.become(self.anew(before, policy))
            raise

    def anew(self, instance: Instance, policy: Policy) -> ClusterState:
        """Return the state that goes on from ``instance``, the snapshot with other hardware or policy."""
        return ClusterState(instance, policy, self.record.history)

    def become(self, other: ClusterState) -> None:
        """Take over all of another state."""
        vars(self).update(vars(other))

    def change(self, changes: ClusterChanges, remove: tuple[str, ...], stop: tuple[str, ...]) -> None:
        """
        Stop running jobs, put other records of nodes and holds, remove waiting jobs, and add some.

        ``remove``: Jobs that go, ``stop`` those of them, and others, that run until now. All of it has been checked as
        far as the records can tell.
        """
        record, add, nodes = self.record, changes.add_jobs, changes.nodes
        now_ms = max(changes.now_ms, record.now_ms)
        other_holds = changes.holds is not None and changes.holds != record.holds
        time_tells = now_ms > record.now_ms and record.has_timed_holds
        if not (nodes or other_holds or time_tells) and self.parts.classes.tells_apart(add):
            self._change_jobs(add, remove, stop)
            record.now_ms = now_ms
            return
        with self.restored():
            for job_id in stop:
                self.stop(job_id)
            keeps_machines = not nodes or (not self.parts.lost and all(map(self._keeps_machine, nodes.items())))
            keeps_nodes = all(node is not None and name in record.nodes for name, node in nodes.items())
            known_holds = record.holds_for_some
            record.put_nodes(nodes)
            other_holds = record.hold(changes.holds, now_ms)
            self._refuse_contradictions("nodes", [name for name, node in nodes.items() if node is not None])
            if keeps_machines and record.holds_for_some == known_holds and self.parts.classes.tells_apart(add):
                # which flavor a node has may hang on its labels
                other_nodes = not keeps_nodes or bool(nodes and self.policy.flavors)
                self.parts.nodes_changed(record.bare(), other_nodes=other_nodes, other_holds=other_holds)
                self._change_jobs(add, remove, (), other_hardware=True)
                self._number_nodes(self.placer.problem, moved=None in nodes.values())
                return
            for job_id in remove:
                del record.jobs[job_id]
            record.jobs.update({job.id: job for job in add})
            record.look_for_limits(add)
            self._compile(record.bare(tuple(record.jobs.values()), tuple(record.running.values())))

    def _keeps_machine(self, change: tuple[str, Node | None]) -> bool:
        """Return whether a node comes or goes, or has the machine type and the domain that it had."""
        name, node = change
        before = self.record.nodes.get(name)
        return node is None or before is None or (node.machine, node.domain) == (before.machine, before.domain)

    def _change_jobs(
        self, add: tuple[Job, ...], remove: tuple[str, ...], stop: tuple[str, ...], *, other_hardware: bool = False
    ) -> None:
        """Let jobs come, go and stop, or raise and change no job; ``other_hardware``: whether the parts' changed."""
        classes, record, placer = self.parts.classes, self.record, self.placer
        known = len(classes.members)
        numbers = classes.of(add)
        problem = placer.problem
        try:
            grown = len(classes.members) > problem.num_jobs
            if other_hardware or grown or len(record.jobs) + len(add) > 2 * max(placer.jobs_known, 1):
                problem = self.parts.class_problem(record.bare())
            if add or other_hardware:
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
        if other_hardware:
            placer.use_hardware(problem, classes.count)
        elif problem is not placer.problem:
            placer.use_classes(problem, classes.count)

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
            self._refuse_contradictions("placement", [at.node for held in running for at in held.assignments])
            counts = self.parts.classes.count
            refuse_huge_values(self.placer.problem.options, counts, self.policy, len(self.record.running))
        except PlaceoptError:
            for job_id in begun:
                self.stop(job_id)
            raise

    def start(self, running: Running) -> None:
        """Place a job, instead of any placement that it held before."""
        number, before = self.parts.classes.number(running.job), self.placed.get(running.job)
        placement = running_placement(running, self.placer.problem, number, self.node_number)
        if before is not None:
            self.placer.take(number, before, -1)
        self.placer.take(number, placement)
        self.placed[running.job] = placement
        self.record.ledger.start(running)

    def stop(self, job_id: str) -> None:
        """Release what a running job holds."""
        self.record.ledger.stop(job_id)
        self.placer.take(self.parts.classes.number(job_id), self.placed.pop(job_id), -1)

    def _refuse_contradictions(self, what: str, nodes: Iterable[str]) -> None:
        """Raise if running placements on ``nodes`` contradict each other; limits that they exceed stand."""
        broken = self.record.ledger.standing(nodes, plan_of(self.record, self.policy))
        if broken:
            raise BadInput(f"{what}: what runs there contradicts itself: {broken[0]}")
