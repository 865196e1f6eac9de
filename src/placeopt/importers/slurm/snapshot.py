"""Slurm's nodes and jobs, as ``scontrol``, ``sinfo``, ``squeue`` and slurmrestd show them, as a round."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from placeopt.arguments import checked
from placeopt.documents.faults import make_record
from placeopt.documents.files import read_bytes
from placeopt.errors import BadInput, Unsupported
from placeopt.importers.import_notes import ImportNotes
from placeopt.importers.json_entry import JsonEntry, read_json
from placeopt.importers.observed_round import (
    ObservedHold,
    ObservedJob,
    ObservedWorker,
    observed_instance,
    origin_of,
    snapshot_policy,
)
from placeopt.importers.priority_rule import DEFAULT_RULE, PriorityRule, priority_rule
from placeopt.importers.slurm.blocks import block_rules
from placeopt.importers.slurm.eligibility import ENDED, HELD_FLAGS, HOLDS, WAITS, node_fields, nodes_of, why_not_started
from placeopt.importers.slurm.fields import is_mig, parse_tasks
from placeopt.importers.slurm.job_requests import (
    JobLeftOut,
    is_exclusive,
    milliseconds,
    reason_of,
    requested_shapes,
    slurm_number,
    whole_nodes,
)
from placeopt.importers.slurm.licenses import Licenses
from placeopt.importers.slurm.nodes import COMMANDS, FOR_ALL, SlurmNode, drain_unaccounted, read_nodes, without_taints
from placeopt.importers.slurm.preemption import NO_PREEMPTION, SlurmPreemption, read_preemption
from placeopt.importers.slurm.reservations import Reservations
from placeopt.importers.slurm.running_jobs import RunningJobReader, job_value, make_job
from placeopt.importers.slurm.unread_fields import JOB_FIELDS, JOB_REQUESTS, UnreadFields
from placeopt.model import Cluster, Demand, Instance, Job, Option, Split
from placeopt.model.base import MAX_JOBS


class JobListReader:
    """
    Reads the entries of the job list.

    An entry without readable id, state or nodes is bad input. Any other unreadable job is left out while it waits, and
    kept with everything that it may hold while it runs.
    """

    def __init__(
        self,
        nodes: Mapping[str, SlurmNode],
        entries: Sequence[JsonEntry],
        notes: ImportNotes,
        rule: PriorityRule = DEFAULT_RULE,
        preemption: SlurmPreemption = NO_PREEMPTION,
        starting: Mapping[str, Sequence[str]] | None = None,
        now_ms: int = 0,
        cluster: Cluster | None = None,
        licenses: Licenses | None = None,
        reservations: Reservations | None = None,
    ) -> None:
        self._nodes, self._entries, self._notes, self._rule = nodes, entries, notes, rule
        self._starting = starting or {}
        self._cluster, self._licenses, self._reservations = cluster, licenses, reservations
        self._kept = {node.cpus_per_gpu for node in nodes.values()} - {0}
        read = JOB_FIELDS | ({"licenses"} if licenses is not None else set())
        if not any(node.extra for node in nodes.values()):
            read |= {"extra"}
        self._unread = UnreadFields(entries, read, JOB_REQUESTS, notes, "jobs")
        self._running = RunningJobReader(nodes, notes, rule, preemption, self._unread, now_ms)
        self._array_tasks: Counter[int] = Counter()

    def read(self) -> Iterator[ObservedJob]:
        """Yield the jobs in the order of the list; a waiting array yields one job for each task."""
        states = [_states(entry) for entry in self._entries]
        for entry, words in zip(self._entries, states, strict=True):
            if (array := slurm_number(entry, "array_job_id")) and (
                words & HOLDS or f"{array}_{slurm_number(entry, 'array_task_id')}" in self._starting
            ):
                self._array_tasks[array] += 1
        for entry, words in zip(self._entries, states, strict=True):
            for observed in self._read(entry, words):
                if self._reservations is not None:
                    self._reservations.admit(entry, observed.job.id)
                yield observed

    def _read(self, entry: JsonEntry, states: set[str]) -> Iterator[ObservedJob]:
        own = slurm_number(entry, "job_id")
        if own is None:
            raise entry.bad("job_id", "a number")
        array, task = slurm_number(entry, "array_job_id") or 0, slurm_number(entry, "array_task_id")
        name = f"{array}_{task}" if array and task is not None else str(own)
        unknown = states - HOLDS - ENDED - WAITS - HELD_FLAGS
        if states & HOLDS or (unknown and "PENDING" not in states and entry.text("nodes", "")):
            if not states & HOLDS:
                self._notes.keep(f"state {min(unknown)[:40]}, which is not known", name)
            parts = self._running.read(entry, name)
            if self._licenses is not None and len(parts) == 1:
                parts = [self._licenses.running(entry, parts[0])]
            yield from parts
        elif "PENDING" in states and name in self._starting:
            yield self._promised(entry, name, self._starting[name])
        elif "PENDING" not in states and not unknown:
            return
        elif unknown or states & HELD_FLAGS:
            known = "" if not unknown else ", which is not known"
            self._notes.leave_out(f"state {min(unknown or states & HELD_FLAGS)[:40]}{known}", name)
        else:
            yield from self._waiting(entry, name, array or own, task)

    def _waiting(self, entry: JsonEntry, name: str, array: int, task: int | None) -> Iterator[ObservedJob]:
        names = [name]
        try:
            names, over = self._tasks(entry, name, array, task)
            reason = why_not_started(entry.text("state_reason", "None"), entry.text("state_description", ""))
            if self._licenses is not None and reason == "waiting for Licenses":
                reason = None
            if reason is None and (entry.flag("hold") or slurm_number(entry, "priority") == 0):
                reason = "waiting, held (priority 0)"
            if reason is not None:
                raise JobLeftOut(reason)
            job = self._pending(entry, name)
        except (JobLeftOut, BadInput) as error:
            reason = reason_of(entry, error)
            for task_name in names:
                self._notes.leave_out(reason, task_name)
            return
        for task_name in over:
            self._notes.leave_out("tasks of an array over its limit of tasks at once", task_name)
        called = entry.text("name", "") or name
        for task_name in names[: len(names) - len(over)]:
            own = {"id": task_name, "origin": origin_of(called, task_name)}
            task_job = job.job if task_name == name else job.job.model_copy(update=own)
            yield ObservedJob(task_job, priority=job.priority, where=entry.where)

    def _promised(self, entry: JsonEntry, name: str, nodes: Sequence[str]) -> ObservedJob:
        """Return a job that starts on these nodes as running there; one that cannot be read holds all of them."""
        workers = tuple(ObservedWorker(node) for node in nodes)
        try:
            job = self._pending(entry, name).job
            option = next((option for option in job.options if option.workers == len(workers)), None)
            if option is None:
                raise JobLeftOut("starts with another number of workers than it asks for")
            return ObservedJob(job.model_copy(update={"options": (option,)}), workers, where=entry.where)
        except (JobLeftOut, BadInput) as error:
            reason = reason_of(entry, error)
            held = tuple(ObservedWorker(node) for node in dict.fromkeys(nodes))
            unread = Job(id=name, kind="cpu", options=(Option(workers=len(held), demand=Demand(gpus=0)),))
            return ObservedJob(unread, held, where=entry.where, unreadable_reason=reason)

    def _tasks(self, entry: JsonEntry, name: str, array: int, task: int | None) -> tuple[list[str], list[str]]:
        """Return the names of the tasks that an entry stands for, and the last of them, over the array's limit."""
        text = entry.text("array_task_string", "")
        if not text or task is not None:
            return [name], []
        tasks = entry.parsed("array_task_string", parse_tasks)
        if len(tasks) > MAX_JOBS:
            raise entry.bad("array_task_string", f"at most {MAX_JOBS} tasks")
        names = [f"{array}_{index}" for index in tasks]
        if text.endswith("..."):
            self._notes.leave_out("tasks of an array that Slurm cut off its list (SLURM_BITSTR_LEN)", f"{array}_...")
        listed_limit = re.search(r"%([0-9]{1,9})\Z", text)
        limit = slurm_number(entry, "array_max_tasks") or (int(listed_limit[1]) if listed_limit else 0)
        return names, names[max(0, limit - self._array_tasks[array]) :] if limit else []

    def _pending(self, entry: JsonEntry, name: str) -> ObservedJob:
        if field := self._unread.of(entry):
            raise JobLeftOut(f"states {field[:60]}, which is not read")
        shapes = requested_shapes(entry)
        exclusive = is_exclusive(entry)
        where = node_fields(
            entry,
            self._nodes,
            one_node=all(shape.workers == 1 or shape.nodes == 1 for shape in shapes),
            counts={shape.workers if shape.alone or shape.workers == 1 else shape.nodes for shape in shapes},
        )
        if exclusive:
            nodes = {(node.models, node.cpus) for node in nodes_of(where, self._nodes)}
            if len(nodes) != 1:
                raise JobLeftOut("--exclusive where nodes are of several shapes, or none")
            shapes = whole_nodes(shapes, *nodes.pop())
        if self._kept:
            beside = [(FOR_ALL, max(0, shape.cpus - shape.gpus * min(self._kept))) for shape in shapes]
            shapes = [replace(one, named=(*one.named, cpus)) for one, cpus in zip(shapes, beside, strict=True)]
        if "required_switches" not in entry and max(shape.workers for shape in shapes) > 1:
            self._notes.assume("This Slurm does not list --switches: workers of waiting jobs may lie under any.")
        if not all(shape.memory_mib for shape in shapes):
            self._notes.assume("Waiting jobs for which no memory is stated (--mem=0 too) count as asking for none.")
        minutes = milliseconds(entry, "time_limit", 60_000)
        blocks = block_rules(entry, shapes, self._cluster)
        options = tuple(
            make_record(
                Option,
                entry.where,
                id="default" if len(shapes) == 1 else f"nodes{shape.nodes or shape.workers}",
                workers=shape.workers,
                demand=make_record(
                    Demand,
                    entry.where,
                    gpus=shape.gpus,
                    gpu_models=shape.models,
                    cpu_millicores=1000 * shape.cpus,
                    memory_mib=shape.memory_mib,
                    resources=dict(shape.named),
                ),
                workers_per_node_max=1 if shape.alone and shape.workers > 1 else shape.per_node,
                splits=(
                    *((Split(level="node", domains=shape.nodes),) if shape.nodes is not None else ()),
                    *rules.splits,
                ),
                spread=rules.spread,
                value=job_value(self._rule, entry, shape.workers * shape.gpus),
                run_time_ms=minutes,
            )
            for shape, rules in zip(shapes, blocks, strict=True)
        )
        job = make_job(entry, name, options, where)
        if self._licenses is not None:
            job = self._licenses.waiting(entry, job)
        return ObservedJob(job, priority=slurm_number(entry, "priority") or 0)


def _states(entry: JsonEntry) -> set[str]:
    states = {part for word in entry.words("job_state") for part in re.split(r"[+\s,]+", word.upper()) if part}
    if not states:
        raise entry.bad("job_state", "a state such as RUNNING")
    return states


STREAM = "-"
HEAD = 4096
TEXT = re.compile(r"\s*(NodeName=|JobId=|JOBID\b|NODELIST\b|PARTITION\b)")
"""How the output of scontrol, squeue and sinfo begins without ``--json``."""


@checked
def read_slurm(
    nodes: str | Path | dict[str, Any],
    jobs: str | Path | dict[str, Any],
    topology: str | Path | None = None,
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
        domains, and gangs lie in blocks as Slurm lays them (`placeopt.model.BlockSize`).
    name
        Of the instance, ``slurm`` by default.
    previous
        An earlier reading of the same cluster. Jobs that run on keep the GPUs that it gave them where the resource
        manager does not list them, and records that did not change are the same objects (`changes_between`).
    rule
        What priority, QOS and partition decide; a file of it, or None: the defaults of `PriorityRule`.
    preemption
        Files that state what Slurm may preempt: see `read_preemption`. None: nothing but what ``rule`` says.
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
        ``cpus`` are 1000 millicores each. Partitions and active features are labels ``partition:NAME`` and
        ``feature:NAME``. A reserved node carries the taint ``reservation``, which jobs with a reservation tolerate,
        or is held (``reservations``).
        Nodes are ``drained`` by their flags (`TAKES_WORK`), and where more is in use than the listed jobs hold.

        A job that has its nodes, suspended or completing included, runs, with what it holds on each node; a job that
        holds more on one node than on another is a job for each kind. A waiting job is read exactly as it asked
        (`requested_shapes`) or left out, as are jobs that free nodes alone would not start (`why_not_started`). An
        array waits as one job for each of its tasks. Jobs and nodes that cannot be read are counted in ``note`` and do
        not stop the import (see `placeopt.importers.observed_round`).

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
    refuse_text(nodes, COMMANDS)
    refuse_text(jobs, "'squeue --json', or slurmrestd's reply of .../jobs")
    notes = ImportNotes()
    cluster, listed = read_nodes(nodes, topology, notes)
    document = read_json(jobs, "jobs")
    if "jobs" not in document:
        raise BadInput(f"{document.where}: no list 'jobs'; expected the output of squeue --json")
    jobs_seen: list[ObservedJob] = []
    entries = document.entries("jobs")
    now_ms = _time_of_list_ms(document, entries)
    counted = None if licenses is None else Licenses(licenses)
    reserved = None if reservations is None else Reservations(reservations)
    reader = JobListReader(
        listed,
        entries,
        notes,
        priority_rule(rule),
        read_preemption(preemption),
        starting,
        now_ms,
        cluster,
        counted,
        reserved,
    )
    for observed in reader.read():
        jobs_seen.append(observed)
        if len(jobs_seen) > MAX_JOBS:
            raise BadInput(f"{document.where}: more than {MAX_JOBS} jobs with all tasks of arrays")
    drain_unaccounted(listed, jobs_seen, notes)
    if counted is not None:
        cluster = cluster.model_copy(update={"resources": counted.left()})
    holds: list[ObservedHold] = []
    if reserved is not None:
        holds += reserved.holds(cluster, {name: node.threads for name, node in listed.items()}, now_ms, notes)
        cluster = without_taints(cluster, {hold.node for hold in holds})
    models = {gpu.model for machine in cluster.machines for gpu in machine.gpus}
    if slices := sorted(model for model in models if is_mig(model)):
        notes.assume(f"MIG instances are read as GPUs of their own ({', '.join(slices)}), not as parts of one.")
    return observed_instance(
        name or "slurm",
        f"Slurm: {_told('nodes', nodes)}, {_told('jobs', jobs)}.",
        notes,
        now_ms,
        cluster,
        jobs_seen,
        snapshot_policy("slurm", dict.fromkeys(domain.level for domain in cluster.domains)),
        previous,
        holds,
    )


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


def refuse_text(path: str | Path | dict[str, Any], command: str) -> None:
    """Raise `Unsupported` if a file is Slurm's plain text; ``command`` names the commands that print JSON."""
    if isinstance(path, dict) or str(path) == STREAM:
        return
    head = read_bytes(path)[:HEAD].decode(errors="replace")
    if match := TEXT.match(head):
        raise Unsupported(
            f"{path}: begins with {match[1]!r}: Slurm's plain text, which is not read; give the output of {command}"
        )
