"""One job or one node of Slurm, beside a cluster that is known already."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from placeopt.arguments import checked
from placeopt.errors import BadInput, Unsupported
from placeopt.formats.import_notes import ImportNotes
from placeopt.formats.json_entry import JsonEntry
from placeopt.formats.known_machines import known_machine
from placeopt.formats.observed_round import ObservedJob
from placeopt.formats.priority_rule import PriorityRule, priority_rule
from placeopt.formats.slurm.nodes import read_nodes
from placeopt.formats.slurm.preemption import read_preemption
from placeopt.formats.slurm.snapshot import JobListReader
from placeopt.model import Cluster, Job, Machine, Node


class SlurmObjects:
    """
    Reads single jobs and nodes of a cluster, as `read_slurm` would read them in its lists.

    ``nodes``, ``topology``: As for `read_slurm`. ``cluster``: Of the instance that was read of the same nodes: machine
    types keep its ids. ``rule``, ``preemption``: As for `read_slurm`. Raises as `read_slurm`.
    """

    @checked
    def __init__(
        self,
        nodes: str | Path | dict[str, Any],
        topology: str | Path | None = None,
        *,
        cluster: Cluster | None = None,
        rule: PriorityRule | str | Path | None = None,
        preemption: Sequence[str | Path] = (),
    ) -> None:
        own, self._nodes = read_nodes(nodes, topology, ImportNotes())
        self._cluster = cluster or own
        self._rule, self._preemption = priority_rule(rule), read_preemption(preemption)
        self._domains = {node.id: node.domain for node in own.nodes}

    @checked
    def jobs(self, job: dict[str, Any]) -> tuple[Job, ...]:
        """
        Return the jobs of one entry of the list of jobs.

        Parameters
        ----------
        job
            The entry, as ``json.loads`` returns it.

        Returns
        -------
        tuple[Job, ...]
            An array that waits is a job for each task, and a job that holds more on one node than on another is one for
            each kind. They are the jobs of the whole list but for ``priority``, there a rank among all jobs, here 0,
            and the limit of an array (``%2``), which here does not count tasks that run.

        Raises
        ------
        BadInput
            If the entry has no readable id, state or nodes, or the job has ended.
        Unsupported
            If `read_slurm` would leave it out, or keep it without knowing what it holds; says why.
        """
        notes = ImportNotes()
        read = self._read(job, notes)
        unknown = [one.unreadable_reason for one in read if one.unreadable_reason is not None]
        reasons = [*unknown, *(reason for _, reason in notes.names)]
        if unknown or (not read and reasons):
            raise Unsupported(f"job: {reasons[0]}")
        if not read:
            raise BadInput("job: it has ended, expected one that runs or waits")
        return tuple(one.job for one in read)

    @checked
    def flags(self, job: dict[str, Any]) -> dict[str, dict[str, bool]]:
        """
        Return what may be done to the running jobs of one entry: ``flags`` of ``Engine.update``.

        Parameters
        ----------
        job
            The entry, as ``json.loads`` returns it.

        Returns
        -------
        dict
            By id of the job: ``movable`` and ``preemptible``. Empty, where it does not run.

        Raises
        ------
        BadInput
            If the entry has no readable id, state or nodes.
        """
        return {
            one.job.id: {"movable": one.movable, "preemptible": one.preemptible}
            for one in self._read(job, ImportNotes())
            if one.workers
        }

    def _read(self, job: dict[str, Any], notes: ImportNotes) -> list[ObservedJob]:
        entries = [JsonEntry("job", job)]
        return list(JobListReader(self._nodes, entries, notes, self._rule, self._preemption).read())

    @checked
    def node(self, node: dict[str, Any]) -> tuple[Node, Machine]:
        """
        Return a node and its machine type.

        Parameters
        ----------
        node
            The entry, as ``json.loads`` returns it.

        Returns
        -------
        tuple[Node, Machine]
            The machine type is the equal one of the known cluster, or one whose id is new there. A node that
            ``topology`` does not name has no domain. A node of the whole lists may be drained for more: where more is
            in use there than the listed jobs hold.

        Raises
        ------
        BadInput
            If the node has no name.
        """
        notes = ImportNotes()
        read, _ = read_nodes({"nodes": [node]}, None, notes)
        machine = known_machine(read.machines[0], self._cluster)
        record = read.nodes[0]
        place = {"machine": machine.id, "domain": self._domains.get(record.id), "drained": record.id in notes.drained}
        return record.model_copy(update=place), machine
