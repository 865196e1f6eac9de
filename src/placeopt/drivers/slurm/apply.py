"""
The driver's changes of one job: start it on nodes, take a start back, hold it, stop it.

The order of the commands is what makes them safe. An update of the list of nodes resizes a job that runs (no other
field of the same command prevents it, see docs/slurm.md), so it is sent only while a user hold keeps the job from
starting, and after its state was read again. The note goes with the same update, before the release: whatever happens
in between, the next reading shows what was done.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from placeopt.drivers.round_report import CHANGED, DONE, Applied
from placeopt.drivers.slurm.commands import Slurm, SlurmRefused, Verb, scontrol_words
from placeopt.drivers.slurm.job_view import JobView
from placeopt.drivers.slurm.note import Note, host_list, with_note
from placeopt.importers.slurm.fields import parse_tres
from placeopt.importers.slurm.lists import slurm_number

_DENIED = re.compile(r"permission|denied|privilege", re.IGNORECASE)
_PASSING = re.compile(r"not available right now|already finished", re.IGNORECASE)
"""Slurm refuses some updates for a moment after another one, and all changes of a job that ended since it was read."""
MAX_WHY = 80
"""Characters of the reason in a note."""


class JobChanges:
    """
    Changes jobs through Slurm's commands.

    ``on_command`` hears of every command before it is sent. ``dry_run``: Nothing is sent. Calls raise
    `Unreachable`; what took effect then shows at the next reading.
    """

    def __init__(self, slurm: Slurm, on_command: Callable[[str], None], *, dry_run: bool = False) -> None:
        self._slurm, self._on_command, self._dry_run = slurm, on_command, dry_run
        self._in_admin_comment = True

    def start(self, begun: Sequence[tuple[JobView, Note]], every: Collection[str]) -> Applied:
        """
        Release a held job on the nodes of its ``note``, a ``start``; ``every``: names of all nodes.

        A heterogeneous job is released at once after its components, each with a note of its own. They receive the
        nodes that they may not use: scontrol refuses the list of nodes of the first.
        """
        if not self._dry_run and not all(self._held(view) for view, _ in begun):
            return CHANGED
        try:
            for view, note in begun:
                fields = {"ReqNodeList": host_list(note.nodes)}
                if view.is_component:
                    fields = {"ExcNodeList": host_list([name for name in every if name not in note.nodes])}
                elif note.was:
                    fields["NumNodes"] = f"{len(set(note.nodes))}-{len(set(note.nodes))}"
                self._update(view, note, fields)
            self._scontrol("release", begun[0][0].whole)
        except SlurmRefused as error:
            return self._refused(error)
        return DONE

    def take_back(self, view: JobView, note: Note, *, hold: bool) -> Applied:
        """
        Let a job wait again as it did before its start: held, with its own nodes. ``note`` replaces that of the start.

        ``hold``: Whether it has to be held first. A job that began to run meanwhile is left as it is.
        """
        try:
            if hold:
                self._scontrol("uhold", view.whole)
            if not self._dry_run and not self._held(view):
                if hold and (now := self._slurm.job_now(view.called)) is not None and now.state != "PENDING":
                    self._scontrol("release", view.whole)  # a requeued job would stay held
                return CHANGED
            former = view.note
            nodes = "ExcNodeList" if view.is_component else "ReqNodeList"
            fields = {nodes: former.required if former is not None else ""}
            if former is not None and former.was:
                fields["NumNodes"] = own_range(former.was, view)
            self._update(view, note, fields)
        except SlurmRefused as error:
            return self._refused(error)
        return DONE

    def hold(self, held: Sequence[tuple[JobView, Note]]) -> Applied:
        """Place a user hold on a pending job, or all components of one; notes say first whose they are."""
        try:
            for view, _ in held if not self._dry_run else ():
                now = self._slurm.job_now(view.called)
                if now is None or now.state != "PENDING" or now.reason.startswith("JobHeld"):
                    return CHANGED
            for view, note in held:
                self._update(view, note, {})
            self._scontrol("uhold", held[0][0].hold_name)
        except SlurmRefused as error:
            return self._refused(error)
        return DONE

    def stop(self, view: JobView, note: Note) -> Applied:
        """
        Stop a job that runs, so that it waits again under a hold; ``note``, a ``stop``, says first whose that is.

        Its list of nodes stays that of its start until a later turn takes it back: an update would resize it now.
        """
        try:
            if not self._dry_run:
                now = self._slurm.job_now(view.called)
                if now is None or now.state != "RUNNING":
                    return CHANGED
            self._update(view, note, {})
            self._scontrol("requeuehold", view.job)
        except SlurmRefused as error:
            return self._refused(error)
        return DONE

    def _held(self, view: JobView) -> bool:
        now = self._slurm.job_now(view.called)
        return now is not None and now.held_by_user

    def _update(self, view: JobView, note: Note, fields: Mapping[str, str]) -> None:
        """Set fields with the note in the admin comment; in the comment, where this user may not write the former."""
        if self._in_admin_comment:
            try:
                self._scontrol("update", view.called, {"AdminComment": with_note(view.admin_comment, note), **fields})
                return
            except SlurmRefused as error:
                if not _DENIED.search(str(error)):
                    raise
                self._in_admin_comment = False
        self._scontrol("update", view.called, {"Comment": with_note(view.comment, note), **fields})

    def _scontrol(self, verb: Verb, job: str, fields: Mapping[str, str] = MappingProxyType({})) -> None:
        self._on_command(shlex.join(scontrol_words(verb, job, fields)))
        if not self._dry_run:
            self._slurm.scontrol(verb, job, fields)

    @staticmethod
    def _refused(error: SlurmRefused) -> Applied:
        return CHANGED if _PASSING.search(str(error)) else Applied("refused", str(error))


def range_to_pin(view: JobView, count: int) -> str:
    """
    Return a job's own range of nodes, ``MIN-MAX``, if Slurm could give it others than ``count`` nodes; else nothing.

    A list of nodes means all of these and perhaps more. A job with no more tasks than nodes has no use for more.
    """
    entry = view.entry
    least = entry.parsed("tres_req_str", parse_tres).nodes or slurm_number(entry, "node_count") or 1
    most = slurm_number(entry, "max_nodes") or 0
    tasks = slurm_number(entry, "tasks") or 1
    if most == count or (not most and least == count and tasks <= count and not entry.text("tres_per_job", "")):
        return ""
    return f"{least}-{most}"


def own_range(was: str, view: JobView) -> str:
    """Return a range of nodes that means what ``was`` did; Slurm cannot take a maximum back, so none is one a task."""
    least, _, most = was.partition("-")
    if most not in ("", "0"):
        return was
    tasks = slurm_number(view.entry, "tasks") or 1
    return f"{least}-{max(tasks, int(least) if least.isdigit() else 1, 64)}"


def taken_back(former: Note, why: str, tries: int, retry_s: int) -> Note:
    """Return the note of a job whose start was taken back."""
    reason = why[:MAX_WHY] or "unknown"
    return replace(former, kind="wait", nodes=(), was="", required="", why=reason, tries=tries, retry_s=retry_s)
