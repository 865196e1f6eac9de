"""Slurm's nodes and jobs, as ``scontrol``, ``sinfo``, ``squeue`` and slurmrestd show them, as a round."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from placeopt.arguments import checked
from placeopt.errors import BadInput
from placeopt.importers.import_notes import ImportNotes
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.observed_round import ObservedJob, observed_instance, snapshot_policy
from placeopt.importers.priority_rule import PriorityRule, priority_rule
from placeopt.importers.slurm.cluster_settings import Licenses, Reservations, SlurmPreemption
from placeopt.importers.slurm.fields import is_mig
from placeopt.importers.slurm.job_requests import exclusive_of
from placeopt.importers.slurm.jobs import JobContext, het_jobs, job_name, starting_job, waiting_jobs
from placeopt.importers.slurm.lists import fields_read, is_set, known, milliseconds, read_list, slurm_number
from placeopt.importers.slurm.nodes import drain_unaccounted, read_nodes, with_whole_nodes, without_taints
from placeopt.importers.slurm.running_jobs import running_jobs
from placeopt.importers.source_file import SourceFile
from placeopt.model import Instance
from placeopt.model.base import MAX_JOBS


def _jobs(
    context: JobContext, entries: Sequence[JsonEntry], starting: Mapping[str, Sequence[str]]
) -> Iterator[tuple[JsonEntry, ObservedJob]]:
    """
    Yield the jobs, with their entries, in the order of the list.

    An entry without readable id, state or nodes is bad input. Any other unreadable job is left out while it waits, and
    kept with everything that it may hold while it runs.
    """
    holds, waiting, held = (known("job state", use) for use in ("holds nodes", "waits", "held"))
    states = [_states(entry) for entry in entries]
    running_tasks: Counter[int] = Counter()
    components: dict[int, list[JsonEntry]] = {}
    for entry, words in zip(entries, states, strict=True):
        if (array := slurm_number(entry, "array_job_id")) and (words & holds or job_name(entry) in starting):
            running_tasks[array] += 1
        if (het := slurm_number(entry, "het_job_id")) and not words - waiting:
            components.setdefault(het, []).append(entry)
    for entry, words in zip(entries, states, strict=True):
        name, waits, unknown = (
            job_name(entry),
            "PENDING" in words,
            words - known("job state", "holds nodes", "ended", "waits", "held"),
        )
        found: Iterable[ObservedJob] = ()
        if words & holds or (unknown and not waits and entry.text("nodes", "")):
            if not words & holds:
                context.notes.keep(f"state {min(unknown)[:40]}, which is not known", name)
            found = running_jobs(context, entry, name)
        elif waits and name in starting:
            found = [starting_job(context, entry, name, starting[name])]
        elif unknown:
            context.notes.leave_out(f"state {min(unknown)[:40]}, which is not known", name)
        elif waits and words & held:
            context.notes.not_eligible(f"state {min(words & held)}", name)
        elif waits and (het := slurm_number(entry, "het_job_id")):
            found = het_jobs(context, components.pop(het, []))
        elif waits:
            array = slurm_number(entry, "array_job_id") or slurm_number(entry, "job_id") or 0
            found = waiting_jobs(context, entry, name, running_tasks[array])
        yield from ((entry, observed) for observed in found)


def _states(entry: JsonEntry) -> set[str]:
    states = {part for word in entry.words("job_state") for part in re.split(r"[+\s,]+", word.upper()) if part}
    if not states:
        raise entry.bad("job_state", "a state such as RUNNING")
    return states


@checked
def read_slurm(
    nodes: str | Path | dict[str, Any],
    jobs: str | Path | dict[str, Any],
    topology: str | Path | SourceFile | None = None,
    *,
    name: str | None = None,
    previous: Instance | None = None,
    rule: PriorityRule | str | Path | None = None,
    preemption: Sequence[str | Path] = (),
    starting: Mapping[str, Sequence[str]] | None = None,
    licenses: str | Path | dict[str, Any] | None = None,
    reservations: str | Path | dict[str, Any] | None = None,
) -> Instance:
    """
    Return the nodes and jobs that Slurm lists at one moment, as a round.

    Parameters
    ----------
    nodes
        ``scontrol show nodes --json`` (Slurm 23.02 and later), ``sinfo --json`` (21.08 to 22.05; later it has another
        form), or slurmrestd's reply of ``.../nodes``.
    jobs
        ``squeue --json``, or slurmrestd's reply of ``.../jobs``. Both lists may be given parsed, as ``json.loads``
        returns them; messages call them ``nodes`` and ``jobs``.
    topology
        ``topology.conf``, ``topology.yaml`` or the output of ``scontrol show topology``: switches or blocks become
        domains, and gangs lie in blocks as Slurm lays them (`placeopt.model.BlockSize`). Text that is no file is given
        as a `SourceFile`.
    name
        Of the instance, ``slurm`` by default.
    previous
        An earlier reading of the same cluster. Jobs that run on keep the GPUs that it gave them where the resource
        manager does not list them, and records that did not change are the same objects (`changes_between`).
    rule
        What priority, QOS and partition decide; a file of it, or None: the defaults of `PriorityRule`.
    preemption
        Files that state what Slurm may preempt: see `SlurmPreemption`. None: nothing but what ``rule`` says.
    starting
        Pending jobs that Slurm was told to start on these nodes: by id, the node of each worker. They count as
        running there.
    licenses
        ``scontrol show licenses --json``, a file or parsed: named resources of the cluster. None: waiting jobs that ask
        for licences are left out.
    reservations
        ``scontrol show reservations --json``, a file or parsed: room that is held for the jobs that ask for it, from
        the beginning of each. None: nodes of those that have begun are closed to other jobs, as a whole.

    Returns
    -------
    Instance
        A CPU is 1000 millicores. A job that has its nodes, suspended or completing included, runs, with what it holds
        on each node; a job that holds more on one node than on another is a job for each kind. A waiting job is read
        exactly as it asked (`WaitingRequest`) or left out, as are jobs that free nodes alone would not start
        (`check_startable`). An array waits as one job for each of its tasks, a heterogeneous job as one of groups. Jobs
        and nodes that cannot be read are noted, and do not stop the import (`placeopt.importers.observed_round`).

        The value of a job follows from its priority, QOS and partition (`PriorityRule`); ``priority`` is the rank of
        Slurm's. Running jobs are preemptible by rule or by Slurm's settings, and movable by a word in their comment.

    Raises
    ------
    BadInput
        If a file cannot be read or is not a list of Slurm's, or a job has no readable id, state or nodes; names the
        field.
    Unsupported
        If a file is a reply about something else, or Slurm's plain text.

    Notes
    -----
    Field names: OpenAPI of slurmrestd, data parser v0.0.37 to v0.0.46, and Slurm's manual pages; JSON of 22.05 and
    24.11 compared with the programs' text. Which GPUs a job has stands in ``gres_detail``, which Slurm shows to
    operators and owners only; without, the lowest free ones are taken. MIG instances, which Slurm counts as GPUs of a
    type such as ``a100_1g.5gb``, are GPUs of a model of that name; that they share a GPU is not known.
    """
    notes = ImportNotes()
    cluster, listed = read_nodes(nodes, topology, notes)
    document, entries = read_list(jobs, "jobs", "'squeue --json', or slurmrestd's reply of .../jobs")
    jobs_seen: list[ObservedJob] = []
    now_ms = _time_of_list_ms(document, entries)
    reserved = Reservations(reservations)
    filtered = any(node.extra for node in listed.values())
    read = known("job", "read", "harmless").union(() if filtered else ("extra",))
    read = fields_read(entries, read, known("job", "request"), notes, "jobs")
    by_user = any(is_set(node.owner) for node in listed.values()) or any(map(_keeps_users_off, entries))
    settings = (priority_rule(rule), SlurmPreemption(preemption), read, now_ms, Licenses(licenses), by_user)
    context = JobContext(listed, cluster, notes, *settings)
    for entry, observed in _jobs(context, entries, starting or {}):
        jobs_seen.append(observed)
        reserved.admit(entry, observed.job.id)
        if len(jobs_seen) > MAX_JOBS:
            raise BadInput(f"{document.where}: more than {MAX_JOBS} jobs with all tasks of arrays")
    drain_unaccounted(listed, jobs_seen, notes)
    cluster = with_whole_nodes(cluster, context.whole_kinds)
    cluster = cluster.model_copy(update={"resources": context.licenses.left()})
    holds = list(reserved.holds(cluster, {name: node.threads for name, node in listed.items()}, now_ms, notes))
    cluster = without_taints(cluster, {hold.node for hold in holds})
    models = {gpu.model for machine in cluster.machines for gpu in machine.gpus}
    if slices := sorted(model for model in models if is_mig(model)):
        notes.assume(f"MIG instances are read as GPUs of their own ({', '.join(slices)}), not as parts of one.")
    told = f"Slurm: {_told('nodes', nodes)}, {_told('jobs', jobs)}."
    policy = snapshot_policy("slurm", cluster)
    return observed_instance(name or "slurm", told, notes, now_ms, cluster, jobs_seen, policy, previous, holds)


def _keeps_users_off(entry: JsonEntry) -> bool:
    with suppress(BadInput):  # of a job that is left out, or kept as it is
        return exclusive_of(entry) == "user"
    return False


def _time_of_list_ms(document: JsonEntry, entries: Sequence[JsonEntry]) -> int:
    """Return the time of the list (``last_update``), and not before the latest submission or start in it."""
    times = [milliseconds(document, "last_update", 1000)]
    for entry in entries:
        for key in ("submit_time", "start_time") if entry.raw("nodes") else ("submit_time",):
            with suppress(BadInput):
                times.append(milliseconds(entry, key, 1000))
    return max(time or 0 for time in times)


def _told(kind: str, source: str | Path | dict[str, Any]) -> str:
    """Return where nodes or jobs come from, for the instance's note."""
    return f"{kind} as parsed" if isinstance(source, dict) else f"{kind} of {Path(source).name}"
