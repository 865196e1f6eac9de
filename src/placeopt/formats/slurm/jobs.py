"""Slurm's job list: the jobs of each entry, and the requests of pending ones."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from placeopt.errors import BadInput
from placeopt.formats.faults import make_record
from placeopt.formats.import_notes import ImportNotes
from placeopt.formats.json_entry import JsonEntry
from placeopt.formats.observed_round import ObservedJob
from placeopt.formats.slurm.eligible_nodes import EligibleNodes
from placeopt.formats.slurm.job_requests import (
    JobLeftOut,
    is_exclusive,
    milliseconds,
    requested_shapes,
    slurm_number,
    unreadable_field,
    whole_nodes,
)
from placeopt.formats.slurm.job_states import ENDED, HELD_FLAGS, HOLDS, WAITS, why_not_started
from placeopt.formats.slurm.nodes import SlurmNode
from placeopt.formats.slurm.running_jobs import RunningJobReader, make_job
from placeopt.formats.slurm.tres import parse_tasks
from placeopt.model import Demand, Option, Split
from placeopt.model.base import MAX_JOBS


class JobListReader:
    """
    Reads the entries of the job list.

    An entry without readable id, state or nodes is bad input. Any other unreadable job is left out while it waits, and
    kept with everything that it may hold while it runs.
    """

    def __init__(self, nodes: Mapping[str, SlurmNode], entries: Sequence[JsonEntry], notes: ImportNotes) -> None:
        self._nodes, self._entries, self._notes = nodes, entries, notes
        self._where = EligibleNodes(nodes)
        self._running = RunningJobReader(nodes, self._where, notes)
        self._array_tasks: Counter[int] = Counter()

    def read(self) -> Iterator[ObservedJob]:
        """Yield the jobs in the order of the list; a waiting array yields one job for each task."""
        states = [_states(entry) for entry in self._entries]
        for entry, words in zip(self._entries, states, strict=True):
            if words & HOLDS and (array := slurm_number(entry, "array_job_id")):
                self._array_tasks[array] += 1
        for entry, words in zip(self._entries, states, strict=True):
            yield from self._read(entry, words)

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
            yield from self._running.read(entry, name)
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
            if reason is None and (entry.flag("hold") or slurm_number(entry, "priority") == 0):
                reason = "waiting, held (priority 0)"
            if reason is not None:
                raise JobLeftOut(reason)
            job = self._pending(entry, name)
        except (JobLeftOut, BadInput) as error:
            reason = str(error) if isinstance(error, JobLeftOut) else unreadable_field(entry, error)
            for one in names:
                self._notes.leave_out(reason, one)
            return
        for one in over:
            self._notes.leave_out("tasks of an array over its limit of tasks at once", one)
        for one in names[: len(names) - len(over)]:
            yield ObservedJob(
                job.job if one == name else job.job.model_copy(update={"id": one}),
                priority=job.priority,
                where=entry.where,
            )

    def _tasks(self, entry: JsonEntry, name: str, array: int, task: int | None) -> tuple[list[str], list[str]]:
        """Return the names of the tasks that an entry stands for, and the last of them, over the array's limit."""
        text = entry.text("array_task_string", "")
        if not text or task is not None:
            return [name], []
        try:
            tasks = parse_tasks(text)
        except ValueError as error:
            raise BadInput(f"{entry.path('array_task_string')}: {error}") from None
        if len(tasks) > MAX_JOBS:
            raise entry.bad("array_task_string", f"at most {MAX_JOBS} tasks")
        names = [f"{array}_{one}" for one in tasks]
        if text.endswith("..."):
            self._notes.leave_out("tasks of an array that Slurm cut off its list (SLURM_BITSTR_LEN)", f"{array}_...")
        listed_limit = re.search(r"%([0-9]{1,9})\Z", text)
        limit = slurm_number(entry, "array_max_tasks") or (int(listed_limit[1]) if listed_limit else 0)
        return names, names[max(0, limit - self._array_tasks[array]) :] if limit else []

    def _pending(self, entry: JsonEntry, name: str) -> ObservedJob:
        shapes = requested_shapes(entry)
        exclusive = is_exclusive(entry)
        where = self._where.fields(
            entry,
            one_node=all(shape.workers == 1 or shape.nodes == 1 for shape in shapes),
            nodes={shape.workers if shape.alone or shape.workers == 1 else shape.nodes for shape in shapes},
        )
        if exclusive:
            nodes = {(self._nodes[name].models, self._nodes[name].cpus) for name in self._where.allowed(where)}
            if len(nodes) != 1:
                raise JobLeftOut("--exclusive where nodes are of several shapes, or none")
            shapes = whole_nodes(shapes, *nodes.pop())
        if entry.raw("required_switches") is None and max(shape.workers for shape in shapes) > 1:
            self._notes.assume("This Slurm does not tell --switches: workers of waiting jobs may lie under any.")
        if not all(shape.memory_mib for shape in shapes):
            self._notes.assume(
                "Waiting jobs of which no memory is listed_limit (--mem=0 too) count as asking for none."
            )
        minutes = milliseconds(entry, "time_limit", 60_000)
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
                ),
                workers_per_node_max=1 if shape.alone and shape.workers > 1 else shape.per_node,
                splits=(Split(level="node", domains=shape.nodes),) if shape.nodes is not None else (),
                value=1000 * shape.workers * shape.gpus or 1,
                run_time_ms=minutes,
            )
            for shape in shapes
        )
        return ObservedJob(make_job(entry, name, options, where), priority=slurm_number(entry, "priority") or 0)


def _states(entry: JsonEntry) -> set[str]:
    states = {part for word in entry.words("job_state") for part in re.split(r"[+\s,]+", word.upper()) if part}
    if not states:
        raise entry.bad("job_state", "a state such as RUNNING")
    return states
