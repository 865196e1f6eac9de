"""Figures of simulations from their logs: jobs by GPU and time, GPUs held over time, waiting, slowdowns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, cycle
from typing import TYPE_CHECKING, NamedTuple

from placeopt.benchmark.figure import COLOURS, Figure, Tips, ink_on
from placeopt.errors import BadInput
from placeopt.readable import amount, time_unit
from placeopt.report.html.curves import Points, step_figure
from placeopt.report.html.simulation_log import SimulationLog, labels_of
from placeopt.simulation.gpu_time import fragments_over_time, slots_over_time
from placeopt.simulation.records.scenario import Scenario

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_GANTT_GPUS, MOST_GANTT_JOBS = 64, 400
"""Numbers of GPUs and jobs up to which bars by GPU are drawn."""
JOB_COLOURS = (*COLOURS[:6], "#882255", "#999933", "#117733", "#332288", "#44AA99", "#AA4499")
"""Okabe and Ito's palette without black, then Tol's muted one."""
LETTER = 0.012
"""Width of a letter in a bar, as a part of the axis."""
SHARE_NAMED = 500
"""Share of a GPU, in thousandths, from which on a bar is high enough for a name."""


def policy_colours(labels: Sequence[str]) -> dict[str, str]:
    """Return the colour of each policy, in all figures and tables."""
    return dict(zip(labels, cycle(COLOURS), strict=False))


def job_colours(logs: Sequence[SimulationLog]) -> dict[str, str]:
    """Return the colour of each job, in all figures: by arrival, so that it is the same under every policy."""
    first: dict[str, int] = {}
    for log in logs:
        for job in log.starts.keys() | log.arrivals.keys():
            first[job] = min(first.get(job, log.end_ms), log.arrivals.get(job, 0))
    return dict(zip(sorted(first, key=lambda job: (first[job], job)), cycle(JOB_COLOURS), strict=False))


def simulation_figures(
    logs: Sequence[SimulationLog],
    scenario: Scenario | None = None,
    before: Sequence[SimulationLog] = (),
    scenario_before: Scenario | None = None,
) -> list[Figure]:
    """
    Return the figures of logs: GPUs held and waiting, a panel for each log, then bars by GPU for each small log.

    With the scenario, which holds the cluster and run times, also idle GPUs on nodes partly in use, slots for jobs to
    come, and slowdowns. ``before``: Logs drawn behind those of the same policy, and ``scenario_before`` theirs, by
    default the same. Raises `BadInput` if a log has nodes that the scenario lacks.
    """
    labels = labels_of(logs)
    colours = policy_colours(list(labels.values()))
    shown = [(_counted(labels[log.name], log), colours[labels[log.name]], log) for log in logs]
    pairs = [(_counted(labels[log.name], log), earlier) for log, earlier in paired_logs(logs, before)]
    earlier_curves = {curve.name: curve.points for curve in _curves(before, scenario_before or scenario)}
    figures = []
    for curve in _curves(logs, scenario):
        points_before = earlier_curves.get(curve.name, curve.points)
        figures.append(
            step_figure(
                curve.name,
                curve.title,
                curve.caption,
                {label: curve.points(log) for label, _, log in shown},
                curve.labels,
                colours={label: colour for label, colour, _ in shown},
                before={label: points_before(earlier) for label, earlier in pairs},
                most=curve.most,
            )
        )
    of_job, last_ms = job_colours(logs), max(log.end_ms for log in logs)
    bars = [
        gantt(log, i, label=labels[log.name], colours=of_job, last_ms=last_ms)
        for i, log in enumerate(logs)
        if 0 < len(log.held) <= MOST_GANTT_GPUS and len(log.starts) <= MOST_GANTT_JOBS
    ]
    return figures + bars


def paired_logs(
    logs: Sequence[SimulationLog], before: Sequence[SimulationLog]
) -> list[tuple[SimulationLog, SimulationLog]]:
    """Return each log with the earlier one of its policy; a single log on each side is a pair whatever its policy."""
    if len(logs) == len(before) == 1:
        return [(logs[0], before[0])]
    earlier = {log.policy: log for log in before}
    return [(log, earlier[log.policy]) for log in logs if log.policy in earlier]


def _counted(label: str, log: SimulationLog) -> str:
    """Return the label with the number of jobs that never end."""
    return label + (f" ({len(log.stranded):,} never end)" if log.stranded else "")


class _Curve(NamedTuple):
    """What one figure shows of every log."""

    name: str
    title: str
    caption: str
    labels: tuple[str, str]
    points: Callable[[SimulationLog], Points]
    most: tuple[float, str] | None = None


def _curves(logs: Sequence[SimulationLog], scenario: Scenario | None) -> list[_Curve]:
    """Return the curves that can be drawn; without the scenario those that logs alone tell."""
    gpus_of = {} if scenario is None else scenario.cluster.gpus_by_node
    most = (float(sum(gpus_of.values())), "all GPUs of the cluster") if gpus_of else None
    hours = ("hours", "GPUs")
    curves = [_Curve("held", "GPUs held over time", "Sum of the shares held by jobs.", hours, _held, most)]
    if scenario is not None:
        for log in logs:
            strange = next((node for node, _ in log.held if node not in gpus_of), None)
            if strange is not None:
                raise BadInput(
                    f"log {log.name!r}: node {strange!r} is not in the scenario; name the scenario of the log"
                )
        curves += [
            _Curve(
                "fragments",
                "Idle GPUs on nodes partly in use, over time",
                "Idle GPUs on nodes of which other GPUs are held.",
                hours,
                lambda log: _hours(fragments_over_time(log.stays(), gpus_of)),
            ),
            *(_slots(size, gpus_of) for size in sorted({*_sizes(gpus_of)} - {0})),
        ]
    curves.append(
        _Curve(
            "waits",
            "Waiting",
            "Part of the arrived jobs that waited at most this long; a curve that ends below 1 has jobs that never "
            "started.",
            ("seconds", "part of the jobs"),
            _waits,
        )
    )
    if scenario is not None:
        curves.append(
            _Curve(
                "slowdowns",
                "Slowdown with waiting",
                "Time from arrival to end, over the run time alone and well placed; jobs from the worst on. A curve "
                "begins after the jobs that never end.",
                ("jobs", "times"),
                lambda log: _slowdowns(log, scenario),
            )
        )
    return curves


def _slots(size: int, gpus_of: Mapping[str, int]) -> _Curve:
    """Return the curve of the number of slots of so many idle GPUs on one node."""
    return _Curve(
        f"idle-slots-{size}",
        f"Slots of {size} idle {'GPU' if size == 1 else 'GPUs'} on one node, over time",
        "Number of jobs of one worker with that many GPUs that would fit at once.",
        ("hours", "slots"),
        lambda log: _hours(slots_over_time(log.stays(), gpus_of, size)),
    )


def _sizes(gpus_of: Mapping[str, int]) -> tuple[int, int]:
    """Return the number of GPUs of the largest node, and half of it."""
    largest = max(gpus_of.values(), default=0)
    return largest, largest // 2


def _hours(steps: Iterable[tuple[int, int]]) -> Points:
    """Return points with times in hours instead of milliseconds."""
    return [(t / 3_600_000, float(value)) for t, value in steps]


def _held(log: SimulationLog) -> Points:
    """Return the sum of GPU shares held over time."""
    change: dict[int, int] = defaultdict(int)
    for spans in log.held.values():
        for start, end, _, milli in spans:
            change[start] += milli
            change[end] -= milli
    times = sorted(change)
    return [(t / 3_600_000, total / 1000) for t, total in zip(times, accumulate(change[t] for t in times), strict=True)]


def _waits(log: SimulationLog) -> Points:
    """Return the part of the arrived jobs that waited at most so many seconds."""
    waits = sorted((log.starts[job] - log.arrivals[job]) / 1000 for job in log.starts.keys() & log.arrivals.keys())
    return [(wait, (i + 1) / len(log.arrivals)) for i, wait in enumerate(waits)]


def slowdowns_with_wait(log: SimulationLog, scenario: Scenario) -> list[float]:
    """Return (end - arrival) / run time alone of the jobs of the scenario that ended, in no particular order."""
    known = {arrival.job.id: arrival for arrival in scenario.arrivals if not arrival.service}
    ratios = []
    for job in log.ends.keys() & known.keys():
        options = {option.id: option for option in known[job].job.options}
        option = options.get(log.options.get(job, ""), known[job].job.options[0])
        ratios.append((log.ends[job] - known[job].job.arrival_ms) / max(1, known[job].alone_ms(option)))
    return ratios


def _slowdowns(log: SimulationLog, scenario: Scenario) -> Points:
    """Return slowdowns in descending order; jobs that never end come first and have no ratio."""
    first = len(set(log.stranded) & {arrival.job.id for arrival in scenario.arrivals if not arrival.service})
    return [
        (float(first + i), ratio) for i, ratio in enumerate(sorted(slowdowns_with_wait(log, scenario), reverse=True))
    ]


def gantt(
    log: SimulationLog,
    number: int,
    *,
    label: str = "",
    colours: Mapping[str, str] | None = None,
    last_ms: int = 0,
) -> Figure:
    """
    Return bars by GPU, as SC'17 figure 8.

    ``label``: What the title calls the log. ``colours``: Of each job. ``last_ms``: Where the axis ends, if not with
    the log.
    """
    name = f"bars-{number}"
    gpus = sorted(log.held)
    of_job = job_colours([log]) if colours is None else colours
    span = max(last_ms, log.end_ms, 1) / 1000
    seconds, unit = time_unit(span)
    rows = [
        (node, gpu, job, start / 1000 / seconds, end / 1000 / seconds, milli)
        for node, gpu in gpus
        for start, end, job, milli in sorted(log.held[node, gpu])
    ]

    def draw(axes: Axes) -> Tips:
        tips: dict[str, str] = {}
        at = {key: y for y, key in enumerate(gpus)}
        for node, gpu, job, start, end, milli in rows:
            gid, face = f"{name}-{len(tips)}", of_job[job]
            bar = axes.barh(
                at[node, gpu],
                end - start,
                0.85 * milli / 1000,
                left=start,
                color=face,
                edgecolor="white",
                linewidth=0.5,
            )
            bar.patches[0].set_gid(gid)
            tips[gid] = f"{job} on {node} GPU {gpu}: {amount(start)} to {amount(end)} {unit}, {milli}/1000"
            if (end - start) * seconds > LETTER * span * len(job) and milli >= SHARE_NAMED:
                middle = (start + end) / 2, at[node, gpu]
                axes.text(*middle, job, ha="center", va="center", color=ink_on(face), fontsize=7)
        axes.set_yticks(range(len(gpus)), [f"{node} {gpu}" for node, gpu in gpus], fontsize=7)
        axes.invert_yaxis()
        axes.set_xlim(0, span / seconds)
        axes.set_xlabel(unit)
        return tips

    return Figure(
        name=name,
        title=f"Jobs by GPU: {label or log.policy}",
        caption="From start to end; a bar as high as the share of the GPU that the job holds. A job has one colour in "
        "all figures; colours repeat.",
        inches=(9.0, max(2.0, 0.22 * len(gpus) + 0.8)),
        draw=draw,
        header=("node", "gpu", "job", f"start_{unit}", f"end_{unit}", "milli"),
        rows=rows,
        keys=3,
    )
