"""What the host system reports of failures: nodes, and single GPUs of nodes."""

from __future__ import annotations

from collections.abc import Mapping

from placeopt.arguments import checked
from placeopt.check.case import names
from placeopt.errors import BadInput, Unsupported
from placeopt.live_cluster.cluster_record import NodeChange
from placeopt.live_cluster.cluster_state import ClusterState
from placeopt.live_cluster.plan_records import running_record
from placeopt.model import Job, Node
from placeopt.model.failed_gpu import failed_gpu, failed_gpu_id, is_failed_gpu


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
        there = record.ledger.on_node(node)
        stopped = tuple(job_id for job_id in there if not is_failed_gpu(job_id))
        repaired = self.gone_with_nodes({node: None} if remove else {})
        records = record.check_nodes({node: None if remove else "drain"}, there)
        self._state.change(remove=repaired, records=records, stop=(*stopped, *repaired))
        words = f"node {node!r} failed" + (f" and {names(list(stopped))} stopped" if stopped else "")
        record.note(words, nodes=[node], stopped=stopped)
        return tuple(record.jobs[job_id] for job_id in stopped)

    @checked
    def fail_gpu(self, node: str, gpu: int) -> tuple[Job, ...]:
        """
        Take a failed GPU out of use: what ran on it waits again, whole gangs with all their workers.

        From now on a job without value runs on it, ``failed-gpu:NODE:INDEX`` (`placeopt.model.failed_gpu`), which the
        snapshot states as any other: every plan and bound counts the GPU as used. It takes no work until `repair_gpu`,
        or until its node goes.

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
        Unsupported
            Under share mode ``overcommit``, where a GPU that is used takes other jobs all the same: drain the node.
        """
        record = self._state.record
        if node not in record.nodes:
            raise BadInput(f"fail_gpu: no node {node!r}")
        size = len(record.ledger.directory.machine_of[node].gpus)
        if not 0 <= gpu < size:
            raise BadInput(f"fail_gpu: no GPU {gpu} on node {node!r}; it has {size}")
        if failed_gpu_id(node, gpu) in record.jobs:
            raise BadInput(f"fail_gpu: GPU {gpu} of node {node!r} has failed already")
        if self._state.policy.share_mode == "overcommit":
            raise Unsupported(
                "fail_gpu: under share_mode 'overcommit' other jobs may join the one on a GPU; drain the node"
            )
        stopped = tuple(job for job in record.ledger.on_node(node) if self._holds(job, node, gpu))
        job, placement = failed_gpu(node, gpu)
        words = f"GPU {gpu} of node {node!r} failed" + (f" and {names(list(stopped))} stopped" if stopped else "")
        with self._state.as_one_revision(words):
            gone = [record.running[job_id] for job_id in stopped]
            for job_id in stopped:
                self._state.stop(job_id)
            self._state.adopt(running_record(placement, record.now_ms, (False, False, False)), job)
            record.note(words, nodes=[node], started=[job.id], stopped=stopped)
            self._state.drop_stand_ins(gone)
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
        record, job_id = self._state.record, failed_gpu_id(node, gpu)
        if job_id not in record.running:
            raise BadInput(f"repair_gpu: GPU {gpu} of node {node!r} has not failed")
        held = record.running[job_id]
        self._state.release(job_id)
        record.note(f"GPU {gpu} of node {node!r} was repaired", nodes=[node], stopped=[job_id])
        self._state.drop_stand_ins([held])

    def _holds(self, job_id: str, node: str, gpu: int) -> bool:
        held = self._state.record.running[job_id]
        return any(there.node == node and str(gpu) in there.gpus for there in held.assignments)

    def gone_with_nodes(self, nodes: Mapping[str, NodeChange]) -> tuple[str, ...]:
        """Return the jobs that stand for failed GPUs of nodes that go, or that change so that they lack these GPUs."""
        record, gone = self._state.record, []
        machines = record.ledger.directory.machines
        for name, change in nodes.items():
            machine = machines.get(change.machine) if isinstance(change, Node) else None
            if name in record.nodes and (change is None or machine is not None):
                for job_id in filter(is_failed_gpu, record.ledger.on_node(name)):
                    index = int(next(iter(record.running[job_id].assignments[0].gpus)))
                    if machine is None or index >= len(machine.gpus):
                        gone.append(job_id)
        return tuple(gone)
