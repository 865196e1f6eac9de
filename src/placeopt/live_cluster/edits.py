"""Steps carried out on a live cluster: those about some jobs or nodes at once, all others by a new compile."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from placeopt.arguments import checked
from placeopt.edits import (
    AddJobs,
    ChangeJob,
    ChangeQueue,
    ChangeRunning,
    Drain,
    HardwareStep,
    RemoveJobs,
    ReplaceNodes,
    SetPolicy,
    SetTime,
    Start,
    Step,
    Stop,
    at_step,
    checked_round,
    displaced,
)
from placeopt.errors import BadInput
from placeopt.live_cluster.changes import changed_nodes
from placeopt.live_cluster.host_reports import HostReports
from placeopt.model import Cluster, Node

Calls = list[Callable[[], object]]
BESIDE_NODES = tuple(name for name in Cluster.model_fields if name != "nodes")


class Edits(HostReports):
    """Steps of `placeopt.edits` over the cluster."""

    @checked
    def edit(self, steps: Sequence[Step]) -> tuple[str, ...]:
        """
        Carry out steps, in order: one new revision, or none if nothing changes. All of them, or none and an error.

        The cluster is then that of `placeopt.edits.apply` on the snapshot. A single step about jobs, nodes, the time or
        the policy changes what it names; any other, and several together, may take as long as ``load``.

        Parameters
        ----------
        steps
            As patch files hold them.

        Returns
        -------
        tuple of str
            The jobs that ran and wait now.

        Raises
        ------
        BadInput
            If a step names something unknown, or leads to a cluster that contradicts itself; names step and field.
        Unsupported
            If the jobs can be worth more than 2^53 together, or a new job has groups or profiles.
        """
        revision = self._state.record.revision
        if len(steps) == 1:
            self._edit(0, steps[0])
        elif steps:
            with self._state.as_one_revision("; ".join(step.words for step in steps)):
                for number, step in enumerate(steps):
                    self._edit(number, step)
        return self._state.record.stopped_since(revision)

    def _edit(self, number: int, step: Step) -> None:
        try:
            calls = self._calls(step)
            if len(calls) == 1:
                calls[0]()
            elif calls:
                with self._state.as_one_revision(step.words):
                    for call in calls:
                        call()
        except BadInput as error:
            try:
                step.edited(self._state.snapshot)  # what a patch would be refused for is said in the same words
            except BadInput as refused:
                raise at_step(number, step, refused) from None
            raise at_step(number, step, error) from None

    def _calls(self, step: Step) -> Calls:
        """Return the changes of the cluster that carry out a step."""
        record = self._state.record
        match step:
            case AddJobs():
                return [partial(self.update, add_jobs=step.jobs)]
            case RemoveJobs():
                waiting = tuple(job for job in step.jobs if job not in record.running)
                gone: Calls = [partial(self.update, remove_jobs=waiting)] if waiting else []
                return [*gone, *(partial(self.release, job) for job in step.jobs if job in record.running)]
            case ChangeJob(fields={"priority": int(priority), **others}) if not others:
                return [partial(self.update, priority={step.job: priority})]
            case Start():
                return [partial(self._start, held) for held in step.running]
            case Stop():
                return [partial(self.undo, job) for job in step.jobs]
            case ChangeRunning():
                return [partial(self._change_running, step)]
            case SetTime():
                return [partial(self.update, now_ms=step.now_ms)]
            case SetPolicy() | ChangeQueue():
                return [partial(self.set_policy, step.edited(record.bare()).policy)]
        if isinstance(step, HardwareStep) and not isinstance(step, ReplaceNodes):
            before = record.bare()
            after = step.edited(before)
            if all(getattr(after.cluster, name) is getattr(before.cluster, name) for name in BESIDE_NODES):
                return self._calls_of_nodes(step, changed_nodes(before, after))
        return [partial(self._compile, step)]

    def _calls_of_nodes(self, step: Step, nodes: Mapping[str, Node | None]) -> Calls:
        gone = [name for name, node in nodes.items() if node is None]
        if gone:
            return [partial(self.fail_node, name, remove=True) for name in gone]
        if isinstance(step, Drain) and step.stop:
            return [partial(self.fail_node, name) for name in step.nodes or self._state.record.nodes]
        return [partial(self.update, nodes=nodes)] if nodes else []

    def _change_running(self, step: ChangeRunning) -> None:
        record = self._state.record
        held = record.running.get(step.job)
        if held is None:
            raise BadInput(f"job: {step.job!r} does not run")
        changed = step.of(held)
        if changed != held:
            record.running[step.job] = changed
            record.note(step.words, [step.job])

    def _compile(self, step: Step) -> None:
        """Carry out a step on the snapshot, and continue from there."""
        state = self._state
        before = state.snapshot
        after = checked_round(step.edited(before))
        had, have = ({job.id: job for job in one.jobs} for one in (before, after))
        jobs = [name for name in {**had, **have} if had.get(name) != have.get(name)]
        with state.kept():
            state.recompile(after, state.policy)
            state.record.note(step.words, jobs, changed_nodes(before, after), stopped=displaced(before, after))
