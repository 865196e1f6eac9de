"""The log of a simulation as views need it: arrivals, starts, ends, who waits, and what held each GPU."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from placeopt.documents.files import check_lines, read_bytes
from placeopt.errors import BadInput
from placeopt.model import Running
from placeopt.simulation import GpuUse
from placeopt.simulation.journal import logged_policy


@dataclass
class SimulationLog:
    """Contents of a log, times in milliseconds."""

    name: str
    policy: str
    """The name in the log's file name, as `log_name` made it; all of the file's name if another program chose it."""
    arrivals: dict[str, int] = field(default_factory=dict)
    starts: dict[str, int] = field(default_factory=dict)
    """The first start of each job."""
    ends: dict[str, int] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)
    """Job -> the option in which it started first, where the log states it."""
    held: dict[tuple[str, int], list[tuple[int, int, str, int]]] = field(default_factory=lambda: defaultdict(list))
    """
    (node, GPU) -> (start, end, job, share in thousandths); ``end`` of a job that still runs is that of the log.
    """
    queue: dict[int, int] = field(default_factory=dict)
    """Time -> number of jobs that wait from then on: that have arrived, or were stopped, and hold nothing."""
    stranded: tuple[str, ...] = ()
    """Jobs that never end; empty as long as the simulation is not over."""

    def stays(self) -> list[GpuUse]:
        """Return the GPU shares held over time, in the form of `placeopt.simulation`."""
        return [GpuUse(start, end, {gpu: milli}) for gpu, spans in self.held.items() for start, end, _, milli in spans]


def read_log(path: str | os.PathLike[str], running: Sequence[Running] = ()) -> SimulationLog:
    """
    Read the log of a simulation.

    Parameters
    ----------
    path
        JSON lines, as ``placeopt simulate --out`` writes them.
    running
        Jobs that the scenario lets run from its beginning, which the log does not contain. They hold their GPUs from 0
        and have not waited; left out, they are missing until they are placed again.

    Returns
    -------
    SimulationLog
        What happened, up to the last whole line.

    Raises
    ------
    BadInput
        If the file cannot be read, or is no such log.
    """
    source = Path(path)
    try:
        text = read_bytes(source).decode()
        check_lines(text, str(source))
        *lines, _ = text.split("\n")  # names may hold what splitlines splits at
        events: list[dict[str, Any]] = [json.loads(line) for line in lines]
        if not events:
            raise BadInput(f"{source}: empty; expected the log of a simulation, as 'placeopt simulate --out' writes it")
        log = SimulationLog(source.stem, _policy(source, events[0]))
        player = _Player(log)
        for held in running:
            player.place(held.model_dump(mode="json"))
        for event in events:
            player.play(event)
        player.end()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadInput(f"{source}: not the log of a simulation ({type(error).__name__}: {error})") from None
    return log


def _policy(source: Path, head: Mapping[str, Any]) -> str:
    if isinstance(head.get("scenario"), str) and isinstance(head.get("seed"), int):
        return logged_policy(source.name, head["scenario"], head["seed"])
    return source.stem


class _Player:
    """Carries out the events of a log, one after the other."""

    def __init__(self, log: SimulationLog) -> None:
        self._log = log
        self._now = 0
        self._waiting: set[str] = set()
        self._placed: dict[str, tuple[int, Mapping[str, Any]]] = {}
        """Job -> since when, and its placement."""

    def play(self, event: Mapping[str, Any]) -> None:
        """Carry out an event."""
        self._now = event.get("t", self._now)
        what = event["e"]
        if what == "arrival":
            self._log.arrivals[event["job"]] = self._now
            self._waiting.add(event["job"])
        elif what == "failure":
            self._stop(event["job"])
        elif what in ("end", "leave"):
            self._leave(event["job"])
            self._waiting.discard(event["job"])
            self._log.ends[event["job"]] = self._now
        elif what == "over":
            self._log.stranded = tuple(event["stranded"])
        changed = [*event.get("move", ()), *event.get("resize", ())]
        for job in event.get("stop", ()):
            self._stop(job)
        for placement in changed:
            self._leave(placement["job"])
        for placement in (*changed, *event.get("start", ())):
            self.place(placement)
        self._log.queue[self._now] = len(self._waiting)

    def place(self, placement: Mapping[str, Any]) -> None:
        """Start a job, or let it go on elsewhere."""
        job = placement["job"]
        self._waiting.discard(job)
        self._log.starts.setdefault(job, self._now)
        if "option" in placement:
            self._log.options.setdefault(job, placement["option"])
        self._placed[job] = self._now, placement

    def _stop(self, job: str) -> None:
        self._leave(job)
        self._waiting.add(job)

    def _leave(self, job: str) -> None:
        if job not in self._placed:  # a service that left while it waited, or a job that has run from the beginning
            return
        since, placement = self._placed.pop(job)
        for assignment in placement["assignments"]:
            for gpu, milli in assignment.get("gpus", {}).items():
                self._log.held[assignment["node"], int(gpu)].append((since, self._now, job, milli))

    def end(self) -> None:
        """Let what still runs end with the log."""
        for job in list(self._placed):
            self._leave(job)


def labels_of(logs: Sequence[SimulationLog]) -> dict[str, str]:
    """Return what views call each log, by its name: its policy, where no other log has the same one."""
    policies = [log.policy for log in logs]
    return {log.name: log.policy if policies.count(log.policy) == 1 else log.name for log in logs}
