"""Slurm's nodes and jobs, as ``scontrol``, ``sinfo``, ``squeue`` and slurmrestd show them, as a round."""

from __future__ import annotations

import re
from pathlib import Path

from placeopt.errors import BadInput, Unsupported
from placeopt.formats.files import read_bytes
from placeopt.formats.import_notes import ImportNotes
from placeopt.formats.json_entry import JsonEntry, read_json
from placeopt.formats.observed_round import ObservedJob, observed_instance, snapshot_policy
from placeopt.formats.slurm.job_requests import milliseconds
from placeopt.formats.slurm.jobs import JobListReader
from placeopt.formats.slurm.nodes import COMMANDS, drain_unaccounted, read_nodes
from placeopt.formats.slurm.tres import is_mig
from placeopt.model import Instance
from placeopt.model.base import MAX_JOBS

STREAM = "-"
HEAD = 4096
TEXT = re.compile(r"\s*(NodeName=|JobId=|JOBID\b|NODELIST\b|PARTITION\b)")
"""How the output of scontrol, squeue and sinfo begins without ``--json``."""


def read_slurm(
    nodes: str | Path, jobs: str | Path, topology: str | Path | None = None, *, name: str | None = None
) -> Instance:
    """
    Return the nodes and jobs that Slurm lists at one moment, as a round.

    Parameters
    ----------
    nodes
        ``scontrol show nodes --json`` (Slurm 23.02 and later), ``sinfo --json`` (21.08 to 22.05; later it has another
        form), or slurmrestd's reply of ``.../nodes``.
    jobs
        ``squeue --json``, or slurmrestd's reply of ``.../jobs``.
    topology
        ``topology.conf`` or the output of ``scontrol show topology``: switches or blocks become domains.
    name
        Of the instance, ``slurm`` by default.

    Returns
    -------
    Instance
        ``cpus`` are 1000 millicores each. Partitions and active features are labels ``partition:NAME`` and
        ``feature:NAME``. A reserved node carries the taint ``reservation``, which jobs with a reservation tolerate.
        Nodes are ``drained`` by their flags (`TAKES_WORK`), and where more is in use than the listed jobs hold.

        What has its nodes, suspended or completing included, runs, with what it holds on each node; a job that holds
        more on one node than on another is a job for each kind. What waits is read exactly as it asked
        (`asked_shapes`) or left out, as are jobs that room alone would not start (`why_not_started`). An array waits
        as one job for each of its tasks. Jobs and nodes that cannot be read are counted in ``note`` and do not stop the
        import (see `placeopt.formats.observed_round`).

        A job is worth 1000 a GPU, without one 1; ``priority`` is the rank of Slurm's.

    Raises
    ------
    BadInput
        If a file cannot be read or is not a list of Slurm's, or a job has no readable id, state or nodes; names the
        field.
    Unsupported
        If a file is a reply about something else, or Slurm's plain text.

    Notes
    -----
    Field names: OpenAPI of slurmrestd, data parser v0.0.37 to v0.0.43, and Slurm's manual pages; JSON of 22.05 and
    24.11 compared with the programs' text. Which GPUs a job has stands in ``gres_detail``, which Slurm shows to
    operators and owners only; without, the lowest free ones are taken. MIG instances, which Slurm counts as GPUs of a
    type such as ``a100_1g.5gb``, are GPUs of a model of that name; that they share a GPU is not known.
    """
    refuse_text(nodes, COMMANDS)
    refuse_text(jobs, "'squeue --json', or slurmrestd's reply of .../jobs")
    notes = ImportNotes()
    cluster, listed = read_nodes(nodes, topology, notes)
    document = _jobs_document(jobs)
    seen: list[ObservedJob] = []
    for one in JobListReader(listed, document.entries("jobs"), notes).read():
        seen.append(one)
        if len(seen) > MAX_JOBS:
            raise BadInput(f"{document.where}: more than {MAX_JOBS} jobs with all tasks of arrays")
    drain_unaccounted(listed, seen, notes)
    models = {gpu.model for machine in cluster.machines for gpu in machine.gpus}
    if slices := sorted(model for model in models if is_mig(model)):
        notes.assume(f"MIG instances are read as GPUs of their own ({', '.join(slices)}), not as parts of one.")
    now = milliseconds(document, "last_update", 1000) or 0
    return observed_instance(
        name or "slurm",
        f"Slurm: nodes of {Path(nodes).name}, jobs of {Path(jobs).name}.",
        notes,
        max([now, *(max(one.job.arrival_ms, one.started_ms) for one in seen)]),
        cluster,
        seen,
        snapshot_policy("slurm", dict.fromkeys(domain.level for domain in cluster.domains)),
    )


def refuse_text(path: str | Path, command: str) -> None:
    """Raise `Unsupported` if a file is Slurm's plain text; ``command`` names the commands that print JSON."""
    if str(path) == STREAM:
        return
    head = read_bytes(path)[:HEAD].decode(errors="replace")
    if found := TEXT.match(head):
        raise Unsupported(
            f"{path}: begins with {found[1]!r}: Slurm's plain text, which is not read; give the output of {command}"
        )


def _jobs_document(path: str | Path) -> JsonEntry:
    document = read_json(path)
    if "jobs" not in document:
        raise BadInput(f"{document.where}: no list 'jobs'; expected the output of squeue --json")
    return document
