"""Steps carried out on a live cluster: those about some jobs or nodes at once, all others by a new compile."""

from __future__ import annotations

from collections.abc import Sequence

from placeopt.arguments import checked
from placeopt.edits import (
    AddJobs,
    ChangeJob,
    ChangeQueue,
    ChangeRunning,
    Drain,
    HardwareStep,
    RemoveHolds,
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
    edit_instance,
)
from placeopt.errors import BadInput
from placeopt.live_cluster.changes import ClusterChanges, changed_nodes, held_gpus
from placeopt.live_cluster.host_reports import HostReports
from placeopt.model import Cluster

BESIDE_NODES = tuple(name for name in Cluster.model_fields if name != "nodes")


class Edits(HostReports):
    """Steps of `placeopt.edits` over the cluster."""

    @checked
    def edit(self, steps: Sequence[Step]) -> tuple[str, ...]:
        """
        Carry out steps, in order: one new revision, or none if nothing changes. All of them, or none and an error.

        The cluster is then that of `placeopt.edits.apply` on the snapshot. A single step about jobs, nodes, holds, GPUs
        or the time changes what it names; any other, and several together, may take as long as ``load``.

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
            self._carry_out(step)
        except BadInput as error:
            try:
                step.edited(self._state.snapshot)  # what a patch would be refused for is said in the same words
            except BadInput as refused:
                raise at_step(number, step, refused) from None
            raise at_step(number, step, error) from None

    def _carry_out(self, step: Step) -> None:
        """Change what a step about some jobs or nodes names, or compile everything again."""
        record = self._state.record
        match step:
            case AddJobs():
                self._change(ClusterChanges(add_jobs=step.jobs))
            case RemoveJobs():
                ended = tuple(job for job in step.jobs if job in record.running)
                waiting = tuple(job for job in dict.fromkeys(step.jobs) if job not in record.running)
                self._change(ClusterChanges(release=ended, remove_jobs=waiting))
            case ChangeJob(fields={"priority": int(priority), **others}) if not others:
                self._change(ClusterChanges(priorities={step.job: priority}))
            case Start():
                self._adopt(step.running)
            case Stop():
                self._change(ClusterChanges(), step.jobs)
            case ChangeRunning():
                self._change_running(step)
            case SetTime() if step.now_ms >= record.now_ms:
                self._change(ClusterChanges(now_ms=step.now_ms))
            case SetPolicy() | ChangeQueue():
                self._set_policy(step)
            case HardwareStep() | RemoveHolds():
                self._change_hardware(step)
            case _:
                self._compile(step)

    def _change_hardware(self, step: HardwareStep | RemoveHolds) -> None:
        record = self._state.record
        before = record.bare()
        after = step.edited(before)
        beside = any(getattr(after.cluster, name) is not getattr(before.cluster, name) for name in BESIDE_NODES)
        if beside or isinstance(step, ReplaceNodes):
            self._compile(step)
            return
        nodes = changed_nodes(before, after)
        left = [name for name, node in nodes.items() if node is None]
        if isinstance(step, Drain) and step.stop:
            left = list(step.nodes or record.nodes)
        stop = [job for name in left for job in record.ledger.on_node(name)]
        failed = after.failed_gpus.keys() - before.failed_gpus.keys()
        there = dict.fromkeys(job for name, _ in sorted(failed) for job in record.ledger.on_node(name))
        stop += [job for job in there if failed & held_gpus([record.running[job]])]
        self._change(ClusterChanges(nodes=nodes, holds=after.holds), stop)

    def _change_running(self, step: ChangeRunning) -> None:
        record = self._state.record
        held = record.running.get(step.job)
        if held is None:
            raise BadInput(f"job: {step.job!r} does not run")
        changed = step.of(held)
        if changed != held:
            record.running[step.job] = changed
            record.note(step.words, [step.job])

    def _set_policy(self, step: SetPolicy | ChangeQueue) -> None:
        state, before = self._state, self._state.policy.name
        now = edit_instance(state.snapshot, policy=step.edited(state.record.bare()).policy)
        other = state.anew(now, now.policy)
        other.record.note(f"policy {now.policy.name!r} took the place of {before!r}")
        state.become(other)

    def _compile(self, step: Step) -> None:
        """Carry out a step on the snapshot, and continue from there."""
        state, before = self._state, self._state.snapshot
        after = checked_round(step.edited(before))
        had, have = ({job.id: job for job in one.jobs} for one in (before, after))
        jobs = [name for name in {**had, **have} if had.get(name) != have.get(name)]
        other = state.anew(after, state.policy)
        other.record.note(step.words, jobs, changed_nodes(before, after), stopped=displaced(before, after))
        state.become(other)
