"""What happens to a live cluster from outside: steps and differences, carried out in place or by a new compile."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from placeopt.arguments import checked
from placeopt.check.case import names
from placeopt.edits import (
    AddJobs,
    ChangeJob,
    ChangeRunning,
    Drain,
    HardwareStep,
    RemoveHolds,
    RemoveJobs,
    ReplaceNodes,
    SetTime,
    Start,
    Step,
    Stop,
    at_step,
    checked_round,
    displaced,
)
from placeopt.errors import BadInput
from placeopt.live_cluster.change_checks import (
    check_jobs,
    check_nodes,
    check_places,
    new_fields,
    new_holds,
    new_priorities,
)
from placeopt.live_cluster.changes import ClusterChanges, changed_nodes, held_gpus
from placeopt.live_cluster.cluster_state import ClusterState
from placeopt.model import Cluster, Hold, Node, Running

BESIDE_NODES = tuple(name for name in Cluster.model_fields if name != "nodes")


class Edits:
    """Steps of `placeopt.edits` and differences over the cluster: each call is one revision, or changes nothing."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    @checked
    def apply(self, changes: ClusterChanges) -> None:
        """
        Carry out differences: jobs end, come, go and start elsewhere, nodes change. One revision; none without any.

        Parameters
        ----------
        changes
            Of ``changes_between(before, after)``, where ``before`` is this cluster's snapshot, or a reading that it
            agrees with; or made by the caller. Afterwards the cluster is that of ``after``, but for the order of jobs
            and nodes, and for what the differences leave out. Time does not go back. What runs on a node that changes
            stays there; limits that it exceeds after the change stand (``Plan.standing``). A node goes once nothing
            runs there.

        Raises
        ------
        BadInput
            If they ask for a load (``reload``), or are differences from another state: unknown jobs and nodes, jobs
            that do not run or run already.
        Unsupported
            If the jobs can be worth more than 2^53 together.
        """
        if changes.reload:
            raise BadInput(f"changes: load the later reading as a whole: {changes.reload[0]}")
        with self._state.one_revision(restores=bool(changes.adopt)):
            if changes.adopt:
                failed = self._state.snapshot.failed_gpus
                holds = self._state.record.holds if changes.holds is None else changes.holds
                repaired = {failed[gpu].id for gpu in failed.keys() & held_gpus(changes.adopt)}
                if repaired:
                    left = tuple(hold for hold in holds if hold.id not in repaired)
                    changes = changes.model_copy(update={"holds": left})
            self._change(changes)
            self._adopt(changes.adopt)

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
        state, revision = self._state, self._state.record.revision
        words = "; ".join(step.words for step in steps) if len(steps) > 1 else ""
        with state.one_revision(words, restores=len(steps) > 1):
            for number, step in enumerate(steps):
                self._edit(number, step)
        record = state.record
        stopped = record.history.stopped_since(revision)
        return tuple(job for job in stopped if job in record.jobs and job not in record.running)

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
            case ChangeRunning() if step.job in record.running:
                self._change_running(step)
            case SetTime() if step.now_ms >= record.now_ms:
                self._change(ClusterChanges(now_ms=step.now_ms))
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
        held = record.running[step.job]
        changed = step.of(held)
        if changed != held:
            record.running[step.job] = changed
            record.history.note(step.words, [step.job])

    def _compile(self, step: Step) -> None:
        """Carry out a step on the snapshot, and continue from there."""
        state, before = self._state, self._state.snapshot
        after = checked_round(step.edited(before))
        had, have = ({job.id: job for job in one.jobs} for one in (before, after))
        jobs = [name for name in {**had, **have} if had.get(name) != have.get(name)]
        text, policy = step.words, state.policy
        if after.policy is not before.policy:
            text, policy = f"policy {after.policy.name!r} took the place of {policy.name!r}", after.policy
        state.become(state.anew(after, policy))
        state.record.history.note(text, jobs, changed_nodes(before, after), stopped=displaced(before, after))

    def _change(self, changes: ClusterChanges, stop: Collection[str] = ()) -> None:
        """Carry out differences but for ``adopt``; jobs of ``stop`` wait again."""
        state, record = self._state, self._state.record
        ended, stopped = dict.fromkeys(changes.release), dict.fromkeys(stop)
        halted = (*ended, *stopped)
        for job_id in halted:
            if job_id not in record.running:
                raise BadInput(f"job {job_id!r} does not run")
        remove = (*changes.remove_jobs, *ended)
        check_nodes(record, changes.nodes, halted)
        held, holds = new_holds(record, changes.holds)
        check_jobs(record, changes.add_jobs, remove, ended)
        fields = new_fields(record, changes, halted)
        priority = new_priorities(record, changes.priorities, frozenset(remove))
        notes = record.reading if changes.reading is None else changes.reading
        jobs: tuple[tuple[str, Collection[str], str], ...] = (
            ("stopped", ended, "ended"),
            ("stopped", stopped, "stopped"),
            ("jobs", [job.id for job in changes.add_jobs], "came"),
            ("jobs", changes.remove_jobs, "went"),
            ("jobs", fields, "got other flags or another expected end"),
            ("jobs", priority, "got another priority"),
        )
        told = [(f"{names(ids)} {did}", {kind: ids}) for kind, ids, did in jobs if ids]
        told += [(text, {"nodes": changes.nodes}) for text in _texts("node", record.nodes, changes.nodes)]
        at = [hold.node for name, one in holds.items() for hold in (held.get(name), one) if hold]
        told += [(text, {"nodes": at}) for text in _texts("hold", held, holds)]
        told += [("notes of the reading changed", {})] if notes != record.reading else []
        told += [("time went on", {})] if changes.now_ms > record.now_ms and not told else []
        if not told:
            return
        gone = [record.running[job_id] for job_id in halted]
        state.change(changes, remove, halted)
        state.prioritise(priority)
        for job_id, new in fields.items():
            record.running[job_id] = record.running[job_id].model_copy(update=new)
        if notes is not record.reading:
            record.read(notes)
        for text, ids in told:
            record.history.note(text, **ids)
        state.compile_if_stale(gone)

    def _adopt(self, running: Collection[Running]) -> None:
        """Count waiting jobs as running where another system started them, whatever keeps jobs from starting there."""
        if running:
            check_places(self._state.record, running)
            self._state.adopt(running)
            begun = [held.job for held in running]
            self._state.record.history.note(f"{names(begun)} started elsewhere", started=begun)


def _texts(kind: str, before: Mapping[str, Node | Hold], after: Mapping[str, Node | Hold | None]) -> list[str]:
    """Say which nodes or holds came, changed and went; ``after``: None of those that went, else the new record."""
    did: dict[str, list[str]] = {}
    for name, record in after.items():
        did.setdefault("went" if record is None else "changed" if name in before else "came", []).append(name)
    return [f"{names(ids, kind)} {what}" for what, ids in did.items()]
