"""Slurm's commands, in one small class: what the driver reads, and what it does to a job."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, Protocol

from placeopt.drivers.answers import Unreachable, json_object
from placeopt.errors import BadInput, PlaceoptError, printable

TIMEOUT_S = 30.0
"""Until a command counts as unanswered: Slurm's own limit for a message is 10 s, and it tries again."""
_UNREACHABLE = re.compile(
    r"Unable to contact|Connection (?:refused|timed out)|timed out|Zero Bytes|communication|authentication|"
    r"Transport|Resource temporarily unavailable",
    re.IGNORECASE,
)
_GONE = re.compile(r"Invalid job id|does not exist", re.IGNORECASE)


class SlurmRefused(PlaceoptError):
    """Slurm refused a command, with its own words."""


@dataclass(frozen=True)
class SlurmReading:
    """
    Lists of nodes and jobs, as ``json.loads`` returns them.

    ``topology``: ``scontrol show topology``, or empty. ``reservations``: None where Slurm prints no list of them.
    """

    nodes: dict[str, Any]
    jobs: dict[str, Any]
    topology: str = ""
    reservations: dict[str, Any] | None = None


@dataclass(frozen=True)
class JobNow:
    """State of a job at this moment, as Slurm's words: ``PENDING``, ``JobHeldUser``, and its priority."""

    state: str
    reason: str
    priority: int

    @property
    def held_by_user(self) -> bool:
        """Whether the job waits under a user hold, or under that of a requeue, which squeue describes instead."""
        held = self.reason == "JobHeldUser" or self.reason.replace("_", " ") == "job requeued in held state"
        return self.state == "PENDING" and held and self.priority == 0


Verb = Literal["update", "release", "uhold", "requeuehold"]
"""Of scontrol; holds are such as the job's owner can release, and ``requeuehold`` stops a batch job that runs."""


class Slurm(Protocol):
    """What the driver needs of Slurm; calls raise `Unreachable`, `scontrol` also `SlurmRefused`."""

    def read(self) -> SlurmReading:
        """Return nodes, then jobs: a job that starts in between is among the jobs."""

    def job_now(self, job: str) -> JobNow | None:
        """Return the state of a job; None if it is gone."""

    def scontrol(self, verb: Verb, job: str, fields: Mapping[str, str] = MappingProxyType({})) -> None:
        """Change a job; ``fields``: What ``update`` sets. Where it is refused, some of them may be set."""


class SlurmCommands:
    """
    Slurm by its commands, in the environment of this process; arguments are never read by a shell.

    ``timeout_s``: Until a command counts as unanswered. Commands run in a process group of their own: Ctrl-C at a
    terminal does not reach them.
    """

    def __init__(self, environment: Mapping[str, str] | None = None, timeout_s: float = TIMEOUT_S) -> None:
        self._environment, self._timeout_s = environment, timeout_s
        self._nodes_command: tuple[str, ...] | None = None

    def read(self) -> SlurmReading:
        """Return nodes, then jobs. A refusal is no answer."""
        try:
            if self._nodes_command is None:
                self._nodes_command = nodes_command(self._call("sinfo", "--version"))
            nodes = self._json(*self._nodes_command)
            jobs = self._json("squeue", "--json")
        except SlurmRefused as error:  # as where no configuration of Slurm is found
            raise Unreachable(str(error)) from None
        return SlurmReading(nodes, jobs, self._topology(), self._reservations())

    def job_now(self, job: str) -> JobNow | None:
        """Return the state of a job; None if it is gone."""
        try:
            text = self._call("squeue", "--noheader", "--states=all", "--jobs", job, "--format=%T|%r|%Q|%i")
        except SlurmRefused as error:
            if _GONE.search(str(error)):
                return None
            raise
        return job_now_of(text, job)

    def scontrol(self, verb: Verb, job: str, fields: Mapping[str, str] = MappingProxyType({})) -> None:
        """Change a job, see `Slurm`."""
        self._call(*scontrol_words(verb, job, fields))

    def _topology(self) -> str:
        try:
            text = self._call("scontrol", "show", "topology")
        except SlurmRefused:
            return ""
        return text if re.search(r"^(SwitchName|BlockName)=", text, re.MULTILINE) else ""

    def _reservations(self) -> dict[str, Any] | None:
        """Return None where Slurm (before 23.02) prints no such list."""
        command = "scontrol", "show", "reservations", "--json"
        try:
            text = self._call(*command)
        except SlurmRefused:
            return None
        return whole_answer(text, " ".join(command)) if '"reservations"' in text else None

    def _json(self, *command: str) -> dict[str, Any]:
        return whole_answer(self._call(*command), " ".join(command))

    def _call(self, *command: str) -> str:
        """Return the standard output of a command."""
        try:
            done = subprocess.run(  # noqa: S603 - a fixed program, arguments without a shell
                command,
                env=None if self._environment is None else dict(self._environment),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=self._timeout_s,
                start_new_session=True,
                check=False,
            )
        except FileNotFoundError:
            raise BadInput(f"{command[0]}: no such command; the driver runs where Slurm's commands are") from None
        except subprocess.TimeoutExpired:
            raise Unreachable(f"{command[0]} {command[1]}: no answer in {self._timeout_s:g} s") from None
        output = done.stdout.decode(errors="replace")
        if done.returncode == 0:
            return output
        words = " ".join(done.stderr.decode(errors="replace").split()) or f"exit code {done.returncode}"
        message = printable(f"{command[0]} {command[1]}: {words[:300]}")
        raise Unreachable(message) if _UNREACHABLE.search(words) else SlurmRefused(message)


def scontrol_words(verb: Verb, job: str, fields: Mapping[str, str]) -> list[str]:
    """Return the command that changes a job."""
    named = f"JobId={job}" if verb == "update" else job
    return ["scontrol", verb, named, *(f"{name}={value}" for name, value in fields.items())]


def whole_answer(text: str | bytes, source: str) -> dict[str, Any]:
    """
    Return a list that Slurm answered with; raises `Unreachable` for one that states errors.

    Where the controller is away, ``sinfo`` and ``squeue`` print an empty list beside such an error, with exit code 0.
    """
    found = json_object(text, source)
    if errors := found.get("errors"):
        raise Unreachable(printable(f"{source}: {json.dumps(errors)[:300]}"))
    return found


def nodes_command(version: str) -> tuple[str, ...]:
    """Return the command that lists nodes as JSON, by what ``sinfo --version`` prints: ``slurm-wlm 22.05.8``."""
    found = re.search(r"\b(\d\d)\.(\d\d)", version)
    if found is not None and (int(found[1]), int(found[2])) < (23, 2):
        return "sinfo", "--json"
    return "scontrol", "show", "nodes", "--json"


def job_now_of(text: str, job: str = "") -> JobNow | None:
    """
    Read ``STATE|REASON|PRIORITY|JOB``: the line of a job, else the first of the list; None if it is empty.

    Slurm lists all components of a heterogeneous job where one is asked for.
    """
    lines = text.strip().splitlines()
    if not lines:
        return None
    line = next((line for line in lines if line.split("|")[3:] == [job]), lines[0])
    state, reason, priority = (*line.split("|"), "", "")[:3]
    return JobNow(state, reason.partition(",")[0], int(priority) if re.fullmatch(r"[0-9]{1,20}", priority) else -1)
