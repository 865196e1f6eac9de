"""What the host system reports of failures: nodes, and single GPUs of nodes."""

from __future__ import annotations

from itertools import count

from placeopt.arguments import checked
from placeopt.check.case import names
from placeopt.errors import BadInput
from placeopt.live_cluster.cluster_state import ClusterState
from placeopt.model import Hold, Job
from placeopt.model.instance import FAILED_GPU


class FailureReports:
    """Reports of failures and repairs; each begins one revision, or raises and changes nothing."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    @checked
    def fail_node(self, node: str, *, remove: bool = False) -> tuple[Job, ...]:
        """
        Take a failed node out of use: what ran there waits again, whole gangs with all their workers.

        Parameters
        ----------
        node
            Id of the node.
        remove
            Whether the node is removed; otherwise it stays, drained.

        Returns
        -------
        tuple of Job
            The records of the jobs that wait again.

        Raises
        ------
        BadInput
            If there is no such node; with ``remove`` also if it is the only one.
        """
        record = self._state.record
        stopped = tuple(record.ledger.on_node(node))
        records = record.check_nodes({node: None if remove else "drain"}, stopped)
        self._state.change(records=records, stop=stopped)
        words = f"node {node!r} failed" + (f" and {names(list(stopped))} stopped" if stopped else "")
        record.note(words, nodes=[node], stopped=stopped)
        self._state.drop_gone_gpus()
        return tuple(record.jobs[job_id] for job_id in stopped)

    @checked
    def fail_gpu(self, node: str, gpu: int) -> tuple[Job, ...]:
        """
        Take a failed GPU out of use: what ran on it waits again, whole gangs with all their workers.

        From now on it is held (`Instance.failed_gpus`): no plan starts a job on it, and bounds count it as no room. It
        takes no work until `repair_gpu`, or until its node goes.

        Parameters
        ----------
        node
            Id of the node.
        gpu
            Index of the GPU there.

        Returns
        -------
        tuple of Job
            The records of the jobs that wait again.

        Raises
        ------
        BadInput
            If there is no such node or GPU, or the GPU has failed already.
        """
        record = self._state.record
        if node not in record.nodes:
            raise BadInput(f"fail_gpu: no node {node!r}")
        size = len(record.ledger.directory.machine_of[node].gpus)
        if not 0 <= gpu < size:
            raise BadInput(f"fail_gpu: no GPU {gpu} on node {node!r}; it has {size}")
        now = self._state.snapshot
        if (node, gpu) in now.failed_gpus:
            raise BadInput(f"fail_gpu: GPU {gpu} of node {node!r} has failed already")
        stopped = tuple(job for job in record.ledger.on_node(node) if self._holds(job, node, gpu))
        taken = {hold.id for hold in now.holds}
        name = next(name for name in map(f"{FAILED_GPU}{{}}".format, count()) if name not in taken)
        words = f"GPU {gpu} of node {node!r} failed" + (f" and {names(list(stopped))} stopped" if stopped else "")
        with self._state.as_one_revision(words):
            for job_id in stopped:
                self._state.stop(job_id)
            record.note(words, nodes=[node], stopped=stopped)
            self._state.hold((*now.holds, Hold(id=name, node=node, gpus=(gpu,))))
        return tuple(self._state.record.jobs[job_id] for job_id in stopped)

    @checked
    def repair_gpu(self, node: str, gpu: int) -> None:
        """
        Put a failed GPU into use again.

        Parameters
        ----------
        node
            Id of the node.
        gpu
            Index of the GPU there.

        Raises
        ------
        BadInput
            If no such GPU has failed.
        """
        now = self._state.snapshot
        failed = now.failed_gpus.get((node, gpu))
        if failed is None:
            raise BadInput(f"repair_gpu: GPU {gpu} of node {node!r} has not failed")
        self._state.hold(tuple(hold for hold in now.holds if hold is not failed))
        self._state.record.note(f"GPU {gpu} of node {node!r} was repaired", nodes=[node])

    def _holds(self, job_id: str, node: str, gpu: int) -> bool:
        held = self._state.record.running[job_id]
        return any(there.node == node and str(gpu) in there.gpus for there in held.assignments)
