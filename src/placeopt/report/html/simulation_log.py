"""The log of a simulation as figures need it: arrivals, starts, ends, and what held each GPU."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from placeopt.documents.files import check_lines, read_bytes
from placeopt.errors import BadInput
from placeopt.model import Running
from placeopt.simulation.gpu_time import GpuUse
from placeopt.simulation.journal import logged_policy


@dataclass(frozen=True)
class SimulationLog:
    """
    Contents of a log, times in milliseconds.

    ``held`` maps (node, GPU) to (start, end, job, share in thousandths); ``end`` of a job that still runs is the log's.
    ``options`` has the option in which each job started first, where the log states it. ``stranded``: jobs that never
    end; empty as long as the simulation is not over. ``policy``: The name in the log's file name, as `log_name`
    made it; all of the file's name if another program chose it. ``scenario``: Its name, where the log states it.
    """

    name: str
    arrivals: dict[str, int]
    starts: dict[str, int]
    ends: dict[str, int]
    held: dict[tuple[str, int], list[tuple[int, int, str, int]]]
    end_ms: int
    options: dict[str, str]
    stranded: tuple[str, ...] = ()
    policy: str = ""
    scenario: str = ""

    def stays(self) -> list[GpuUse]:
        """Return the GPU shares held over time, in the form of `placeopt.simulation`."""
        return [GpuUse(start, end, {gpu: milli}) for gpu, spans in self.held.items() for start, end, _, milli in spans]


def read_log(path: str | os.PathLike[str], running: Sequence[Running] = ()) -> SimulationLog:
    """
    Read the log of a simulation.

    ``running``: Jobs that the scenario lets run from its beginning, which the log does not contain. They hold their
    GPUs from 0 and have not waited; left out, they are missing until they are placed again.
    """
    source = Path(path)
    try:
        text = read_bytes(source).decode()
        check_lines(text, str(source))
        *lines, _ = text.split("\n")  # names may hold what splitlines splits at
        events: list[dict[str, Any]] = [json.loads(line) for line in lines]
        arrivals: dict[str, int] = {}
        starts: dict[str, int] = {}
        ends: dict[str, int] = {}
        options: dict[str, str] = {}
        placed: dict[str, tuple[int, dict[str, Any]]] = {}
        held: dict[tuple[str, int], list[tuple[int, int, str, int]]] = defaultdict(list)
        stranded: tuple[str, ...] = ()
        now = 0

        for earlier in running:
            starts[earlier.job] = 0
            options[earlier.job] = earlier.option
            placed[earlier.job] = 0, earlier.model_dump(mode="json")

        def leave(job: str) -> None:
            if job not in placed:  # a service that left while it waited, or a job that has run from the beginning
                return
            since, placement = placed.pop(job)
            for assignment in placement["assignments"]:
                for gpu, milli in assignment.get("gpus", {}).items():
                    held[assignment["node"], int(gpu)].append((since, now, job, milli))

        for event in events:
            now = event.get("t", now)
            if event["e"] == "arrival":
                arrivals[event["job"]] = now
            elif event["e"] in ("end", "failure", "leave"):
                leave(event["job"])
                if event["e"] != "failure":
                    ends[event["job"]] = now
            elif event["e"] == "over":
                stranded = tuple(event["stranded"])
            changed = [*event.get("move", ()), *event.get("resize", ())]
            for job in (*event.get("stop", ()), *(placement["job"] for placement in changed)):
                leave(job)
            for placement in (*changed, *event.get("start", ())):
                starts.setdefault(placement["job"], now)
                if "option" in placement:
                    options.setdefault(placement["job"], placement["option"])
                placed[placement["job"]] = now, placement
        for job in list(placed):
            leave(job)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadInput(f"{source}: not the log of a simulation ({type(error).__name__}: {error})") from None
    if not events:
        raise BadInput(f"{source}: empty; expected the log of a simulation, as 'placeopt simulate --out' writes it")
    head, policy = events[0], source.stem
    if isinstance(head.get("scenario"), str) and isinstance(head.get("seed"), int):
        policy = logged_policy(source.name, head["scenario"], head["seed"])
    return SimulationLog(
        source.stem, arrivals, starts, ends, dict(held), now, options, stranded, policy, str(head.get("scenario", ""))
    )


def labels_of(logs: Sequence[SimulationLog]) -> dict[str, str]:
    """Return what figures call each log, by its name: its policy, where no other log has the same one."""
    policies = [log.policy for log in logs]
    return {log.name: log.policy if policies.count(log.policy) == 1 else log.name for log in logs}
