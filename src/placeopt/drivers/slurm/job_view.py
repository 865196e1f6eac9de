"""One entry of Slurm's list of jobs as the driver sees it: whose it is, and what may be done with it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Any

from placeopt.drivers.slurm.note import STOPPED, Note, read_note
from placeopt.errors import BadArgument
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.slurm.lists import expand_node_list, known, slurm_number

CONSENT = re.compile(r"(?<![\w/.-])placeopt(?![\w/.-])")
"""The word in a job's comment by which its owner gives the job to placeopt."""


@dataclass(frozen=True)
class Ownership:
    """
    Which jobs the driver may touch.

    ``partition`` None: ``--own held``, jobs under a user hold whose comment says ``placeopt``. Otherwise the jobs that
    wait in this partition alone: the driver places the user holds, and releases no other.
    """

    partition: str | None = None

    @classmethod
    def parse(cls, text: str) -> Ownership:
        """Read ``held`` or ``partition=NAME``."""
        if text == "held":
            return cls()
        name = re.fullmatch(r"partition=([\w.+-]+)", text)
        if name is None:
            raise BadArgument(f"--own {text!r}: expected held or partition=NAME")
        return cls(name[1])


class Standing(Enum):
    """What the driver makes of a job."""

    FOREIGN = "foreign"
    """Not the driver's, and holding nothing: it is not read."""
    HOLDS = "holds"
    """It has its nodes, whoever started it."""
    WAITS = "waits"
    """The driver's: it may be placed."""
    TO_HOLD = "to hold"
    """The driver's, without a hold: Slurm might start it anywhere."""
    STARTING = "starting"
    """Released with a list of nodes, and not running yet."""
    HALF_DONE = "half done"
    """Told its nodes and not released, because the driver or Slurm stopped in between, or stopped for others."""
    DELAYED = "delayed"
    """The driver's, not to be placed yet: its starts failed."""
    GIVEN_UP = "given up"
    """The driver's, left alone: its starts failed too often."""
    ENDED = "ended"


@dataclass(frozen=True)
class JobView:
    """
    One entry. ``job``: Slurm's id, ``12_3`` for one task of an array, ``12`` for all tasks of it that wait.

    ``note``: What the driver wrote, None if nothing, or of another job. ``fields``: The entry, as parsed.
    """

    job: str
    standing: Standing
    note: Note | None
    fields: dict[str, Any]
    states: frozenset[str]
    nodes: frozenset[str] = frozenset()
    """Those that it has, or had."""

    @property
    def entry(self) -> JsonEntry:
        """The entry, for reading single fields."""
        return JsonEntry("jobs", self.fields)

    @property
    def whole(self) -> str:
        """How holds and releases name it: a heterogeneous job is released at once, by the id of its first component."""
        return str(slurm_number(self.entry, "het_job_id") or self.job)

    @property
    def is_component(self) -> bool:
        """Whether it is one of a heterogeneous job."""
        return bool(slurm_number(self.entry, "het_job_id"))

    @property
    def called(self) -> str:
        """How updates name it; the plain id of a first component means all of them."""
        return f"{self.whole}+{slurm_number(self.entry, 'het_job_offset') or 0}" if self.is_component else self.job

    @property
    def stopped_by_driver(self) -> bool:
        """Whether the driver has put it back into the queue; its hold is the driver's then, until it starts again."""
        note = self.note
        if note is None or note.why != STOPPED:
            return False
        return self.restarts == note.restarts + (note.kind == "stop")

    @property
    def can_be_stopped(self) -> bool:
        """Whether the driver started it, and Slurm can requeue it: batch jobs, unless their owner forbids it."""
        ours = self.note is not None and self.note.kind in ("start", "stop") and not self.is_component
        return ours and self.fields.get("batch_flag") is True and self.fields.get("requeue") is True

    @property
    def reason(self) -> str:
        """Why it waits, Slurm's word."""
        return str(self.fields.get("state_reason") or "None")

    @property
    def reason_in_words(self) -> str:
        """Why it waits, with Slurm's description, such as ``launch failed requeued held``, where it gives one."""
        described = str(self.fields.get("state_description") or "")
        return f"{self.reason}, {described}" if described else self.reason

    @property
    def restarts(self) -> int:
        """How often Slurm has started it again."""
        return slurm_number(self.entry, "restart_cnt") or 0

    @property
    def comment(self) -> str:
        """What its owner wrote."""
        return str(self.fields.get("comment") or "")

    @property
    def admin_comment(self) -> str:
        """What operators wrote."""
        return str(self.fields.get("admin_comment") or "")

    @property
    def hold_name(self) -> str:
        """How a hold names it: of an array the tasks that wait, not those that run."""
        tasks = str(self.fields.get("array_task_string") or "").partition("%")[0]
        return f"{self.job}_[{tasks}]" if tasks and "_" not in self.job and not tasks.endswith("...") else self.whole


def view_job(fields: dict[str, Any], own: Ownership, now_s: float) -> JobView:
    """Return an entry with its standing; raises `BadInput` if id, state or nodes cannot be read."""
    entry = JsonEntry("jobs", fields)
    number = slurm_number(entry, "job_id")
    if number is None:
        raise entry.bad("job_id", "a number")
    array, task = slurm_number(entry, "array_job_id") or 0, slurm_number(entry, "array_task_id")
    job = f"{array}_{task}" if array and task is not None else str(number)
    states = frozenset(word for text in entry.words("job_state") for word in re.split(r"[+\s,]+", text.upper()) if word)
    note = _own_note(entry, job, str(array or number))
    nodes = (
        frozenset(expand_node_list(entry, "nodes"))
        if states & known("job state", "holds nodes", "ended")
        else frozenset()
    )
    view = JobView(job, Standing.FOREIGN, note, fields, states, nodes)
    return JobView(job, _standing(view, own, now_s), note, fields, states, nodes)


def _own_note(entry: JsonEntry, job: str, array: str) -> Note | None:
    """Return the note of a job: its own, or a hold that was placed on the whole array."""
    for key in ("admin_comment", "comment"):
        note = read_note(entry.text(key, ""))
        if note is not None and (note.job == job or (note.kind == "hold" and note.job == array)):
            return note
    return None


def _standing(view: JobView, own: Ownership, now_s: float) -> Standing:
    if view.states & known("job state", "holds nodes"):
        return Standing.HOLDS
    if "PENDING" not in view.states:
        return (
            Standing.ENDED if view.states & known("job state", "ended") else Standing.HOLDS
        )  # an unknown state may hold nodes
    if _held_by_others(view):
        return Standing.FOREIGN
    if not _is_owned(view, own):
        return Standing.FOREIGN
    note = view.note
    if view.reason != "JobHeldUser":
        released = note is not None and note.kind == "start" and note.restarts == view.restarts
        return Standing.STARTING if released else Standing.TO_HOLD
    if note is None:
        return Standing.WAITS
    if note.kind in ("start", "stop"):
        return Standing.HALF_DONE
    if note.kind == "given-up":
        return Standing.GIVEN_UP
    return Standing.DELAYED if note.retry_s > now_s else Standing.WAITS


def _is_owned(view: JobView, own: Ownership) -> bool:
    """Whether the driver may touch a pending job that no operator holds."""
    held = view.reason == "JobHeldUser"
    if own.partition is None:  # a job without a hold is its own only while it starts or was requeued
        started = view.note is not None and view.note.kind == "start"
        return CONSENT.search(view.comment) is not None and (held or started)
    if view.entry.text("partition", "") != own.partition:
        return False
    return not held or (view.note is not None and view.note.own_hold)


def _held_by_others(view: JobView) -> bool:
    """Whether Slurm or an operator holds a job: such a hold is never touched."""
    described = re.search(r"\bheld\b", str(view.fields.get("state_description") or "")) is not None
    requeued = described or bool(view.states & known("job state", "held"))
    return view.reason in ("JobHeldAdmin", "JobHoldMaxRequeue") or (requeued and not view.stopped_by_driver)
