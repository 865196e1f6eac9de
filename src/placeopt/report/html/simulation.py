"""Figures of simulations from their logs: jobs by GPU and time, GPUs held over time, waiting, slowdowns."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placeopt.errors import BadInput
from placeopt.formats.bounds import check_lines
from placeopt.formats.figure import COLOURS, MARKS, STYLES, Figure, Tips
from placeopt.formats.files import read_bytes
from placeopt.metrics import GpuUse, fragments_over_time, slots_over_time
from placeopt.model import Running
from placeopt.model.scenario import Scenario

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_GANTT_GPUS, MOST_GANTT_JOBS = 64, 400
"""Numbers of GPUs and jobs up to which bars by GPU are drawn."""
SHORT_H = 2.0
"""Hours below which the time axis is in minutes."""


@dataclass(frozen=True)
class SimulationLog:
    """
    Contents of a log, times in milliseconds.

    ``held`` maps (node, GPU) to (start, end, job, share in thousandths); ``end`` of a job that still runs is the log's.
    ``options`` has the option in which each job started first, where the log states it. ``stranded``: jobs that never
    end; empty as long as the simulation is not over.
    """

    name: str
    arrivals: dict[str, int]
    starts: dict[str, int]
    ends: dict[str, int]
    held: dict[tuple[str, int], list[tuple[int, int, str, int]]]
    end_ms: int
    options: dict[str, str]
    stranded: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Name of the log, with the number of jobs that never end."""
        return self.name + (f" ({len(self.stranded):,} never end)" if self.stranded else "")

    def stays(self) -> list[GpuUse]:
        """Return the GPU shares held over time, in the form of `placeopt.metrics`."""
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
    return SimulationLog(source.stem, arrivals, starts, ends, dict(held), now, options, stranded)


def simulation_figures(logs: list[SimulationLog], scenario: Scenario | None = None) -> list[Figure]:
    """
    Return the figures of logs: bars by GPU for each small log, GPUs held and waiting for all together.

    With the scenario, which holds the cluster and run times, also idle GPUs on nodes partly in use, slots for jobs to
    come, and slowdowns. Raises `BadInput` if a log has nodes that the scenario lacks.
    """
    figures = [
        gantt(log, i)
        for i, log in enumerate(logs)
        if 0 < len(log.held) <= MOST_GANTT_GPUS and len(log.starts) <= MOST_GANTT_JOBS
    ]
    held = {log.name: _steps([(s, e, m) for spans in log.held.values() for s, e, _, m in spans]) for log in logs}
    figures.append(
        step_figure(
            "held",
            "GPUs held over time",
            "Sum of the shares held by jobs.",
            {name: [(t / 3_600_000, v / 1000) for t, v in steps] for name, steps in held.items()},
            ("hours", "GPUs"),
        )
    )
    if scenario is not None:
        figures += _idle(logs, _gpus_of(scenario))
    waits = {
        log.label: [
            (wait, (i + 1) / len(log.arrivals))
            for i, wait in enumerate(
                sorted((log.starts[j] - log.arrivals[j]) / 1000 for j in log.starts.keys() & log.arrivals.keys())
            )
        ]
        for log in logs
    }
    figures.append(
        step_figure(
            "waits",
            "Waiting",
            "Part of the arrived jobs that waited at most this long; a curve that ends below 1 has jobs that never "
            "started.",
            waits,
            ("seconds", "part of the jobs"),
        )
    )
    if scenario is not None:
        figures.append(_slowdowns(logs, scenario))
    return figures


def _slowdowns(logs: list[SimulationLog], scenario: Scenario) -> Figure:
    """Return a figure of each log's slowdowns in descending order."""
    known = {arrival.job.id: arrival for arrival in scenario.arrivals if not arrival.service}
    curves = {}
    for log in logs:
        ratios = []
        for job in log.ends.keys() & known.keys():
            options = {option.id: option for option in known[job].job.options}
            option = options.get(log.options.get(job, ""), known[job].job.options[0])
            alone = known[job].alone_ms(option)
            ratios.append((log.ends[job] - known[job].job.arrival_ms) / alone)
        first = len(set(log.stranded) & known.keys())  # jobs that never end are the worst and have no ratio
        curves[log.label] = [(float(first + i), ratio) for i, ratio in enumerate(sorted(ratios, reverse=True))]
    return step_figure(
        "slowdowns",
        "Slowdown with waiting",
        "Time from arrival to end, over the run time alone and well placed; jobs from the worst on. A curve begins "
        "after the jobs that never end.",
        curves,
        ("jobs", "times"),
    )


def _idle(logs: list[SimulationLog], gpus_of: dict[str, int]) -> list[Figure]:
    """Return figures of idle GPUs on nodes partly in use, and of slots as large as the largest node and half of it."""
    for log in logs:
        strange = next((node for node, _ in log.held if node not in gpus_of), None)
        if strange is not None:
            raise BadInput(f"log {log.name!r}: node {strange!r} is not in the scenario; name the scenario of the log")
    stays = {log.name: log.stays() for log in logs}
    largest = max(gpus_of.values(), default=0)
    return [
        _amounts(
            "fragments",
            "Idle GPUs on nodes partly in use, over time",
            "Idle GPUs on nodes of which other GPUs are held.",
            {name: fragments_over_time(those, gpus_of) for name, those in stays.items()},
            "GPUs",
        ),
        *(
            _amounts(
                f"idle-slots-{size}",
                f"Slots of {size} idle {'GPU' if size == 1 else 'GPUs'} on one node, over time",
                "Number of jobs of one worker with that many GPUs that would fit at once.",
                {name: slots_over_time(those, gpus_of, size) for name, those in stays.items()},
                "slots",
            )
            for size in sorted({largest, largest // 2} - {0})
        ),
    ]


def _amounts(name: str, title: str, caption: str, steps: dict[str, list[tuple[int, int]]], unit: str) -> Figure:
    """Return a figure of amounts over time; times are converted from milliseconds to hours."""
    hours = {log: [(t / 3_600_000, float(v)) for t, v in points] for log, points in steps.items()}
    return step_figure(name, title, caption, hours, ("hours", unit))


def gantt(log: SimulationLog, number: int) -> Figure:
    """Return bars by GPU, as SC'17 figure 8."""
    name = f"bars-{number}"
    gpus = sorted(log.held)
    rows = [
        (node, gpu, job, start / 1000, end / 1000, milli)
        for node, gpu in gpus
        for start, end, job, milli in sorted(log.held[node, gpu])
    ]

    def draw(axes: Axes) -> Tips:
        tips: dict[str, str] = {}
        colours = dict(zip(sorted(log.starts, key=lambda j: (log.starts[j], j)), cycle(COLOURS[:6]), strict=False))
        span = max(log.end_ms / 1000, 1e-9)
        for y, key in enumerate(gpus):
            for start, end, job, milli in log.held[key]:
                gid, length = f"{name}-{len(tips)}", (end - start) / 1000
                height = 0.85 * milli / 1000
                bar = axes.barh(
                    y, length, height, left=start / 1000, color=colours[job], edgecolor="white", linewidth=0.5
                )
                bar.patches[0].set_gid(gid)
                tips[gid] = f"{job} on {key[0]} GPU {key[1]}: {start / 1000:,.1f} to {end / 1000:,.1f} s, {milli}/1000"
                if length > 0.012 * span * len(job):
                    axes.text(
                        (start + (end - start) / 2) / 1000, y, job, ha="center", va="center", color="white", fontsize=6
                    )
        axes.set_yticks(range(len(gpus)), [f"{node} {gpu}" for node, gpu in gpus], fontsize=6)
        axes.invert_yaxis()
        axes.set_xlabel("seconds")
        return tips

    return Figure(
        name=name,
        title=f"Jobs by GPU: {log.name}",
        caption="From start to end; a bar as high as the share of the GPU that the job holds. Colours repeat.",
        inches=(9.0, max(2.0, 0.22 * len(gpus) + 0.8)),
        draw=draw,
        header=("node", "gpu", "job", "start_s", "end_s", "milli"),
        rows=rows,
    )


def _steps(spans: list[tuple[int, int, int]]) -> list[tuple[int, int]]:
    """Return pairs (time, sum held from then on)."""
    change: dict[int, int] = defaultdict(int)
    for start, end, amount in spans:
        change[start] += amount
        change[end] -= amount
    out, total = [], 0
    for moment in sorted(change):
        total += change[moment]
        out.append((moment, total))
    return out


def _gpus_of(scenario: Scenario) -> dict[str, int]:
    count = {machine.id: len(machine.gpus) for machine in scenario.cluster.machines}
    return {node.id: count[node.machine] for node in scenario.cluster.nodes}


def step_figure(
    name: str, title: str, caption: str, curves: dict[str, list[tuple[float, float]]], labels: tuple[str, str]
) -> Figure:
    """
    Return a figure of step curves, one per log; fewer than two hours are drawn as minutes.

    ``curves``: Points (x, y) by label, x ascending. ``labels``: Of the axes: what x is in, what y counts.
    """
    longest = max([x for points in curves.values() for x, _ in points], default=0.0)
    short = labels[0] == "hours" and longest < SHORT_H
    scale, unit = (60.0, "minutes") if short else (1.0, labels[0])

    def draw(axes: Axes) -> Tips:
        from matplotlib.ticker import MaxNLocator

        for i, (label, points) in enumerate(curves.items()):
            colour, style = COLOURS[i % len(COLOURS)], STYLES[i // len(COLOURS) % len(STYLES)]
            axes.step(
                [scale * x for x, _ in points],
                [y for _, y in points],
                where="post",
                label=label,
                color=colour,
                linestyle=style,
                marker=MARKS[i % len(MARKS)],
                markevery=max(1, len(points) // 8),
                markersize=3,
                linewidth=1.2,
            )
        axes.set_xlabel(unit)
        axes.set_ylabel(labels[1])
        axes.set_ylim(bottom=0)
        if all(y == int(y) for points in curves.values() for _, y in points):
            axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        if len(curves) <= 2 * len(COLOURS):
            axes.legend(frameon=False, fontsize=7)
        return {}

    rows = [(label, x, y) for label, points in curves.items() for x, y in points]
    header = ("log", labels[0].replace(" ", "_"), labels[1].replace(" ", "_"))
    return Figure(name, title, caption, (8.0, 3.6), draw, header, rows)
