"""Questions about traces: how many nodes to add for a goal, and a measure at several settings."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from placeopt.deadline import Deadline
from placeopt.errors import BadArgument, BadInput
from placeopt.parallel import width_of
from placeopt.scheduling.policy import Scheduling
from placeopt.simulation.records.scenario import Scenario
from placeopt.simulation.replay.campaign import PARAMS, RunSetup, play, point_of
from placeopt.simulation.replay.goals import Goal, measures, refuse_unmeasured, unit_of
from placeopt.simulation.replay.series import MeasuredRun, ReplayPoint, ReplaySeries
from placeopt.simulation.replay.variations import ReplayVariant, with_added_nodes
from placeopt.solving.params import SolveParams
from placeopt.whatif.least import LeastSearch
from placeopt.whatif.rows import Rows

MOST_NODES = 10_000
BEYOND = 2
"""How many numbers above the found one are also tried, to check that they meet the goal too."""


def add(
    scenario: Scenario,
    scheduling: Scheduling,
    node_type: str,
    goal: Goal,
    *,
    draws: Sequence[int] = (),
    most: int | None = None,
    limits: SolveParams | None = None,
    rows: Path | None = None,
    jobs: int | None = 1,
    cancel: threading.Event | None = None,
    on_news: Callable[[int, int], None] | None = None,
) -> ReplaySeries:
    """
    Find the fewest nodes of a type, added to the cluster, with which a goal is met.

    Parameters
    ----------
    scenario, scheduling
        The trace to replay, and the policy under which.
    node_type
        A machine type, or the id of a node to copy with domain, labels and taints.
    goal
        As `placeopt.simulation.replay.parse_goal` returns it.
    draws
        Seeds of drawn arrivals (`placeopt.simulation.replay.variations`): the goal is met if the whole 95 %
        interval of the mean over them meets it. Empty: the trace as it is, with one run for each number.
    most
        The largest number to try; by default the number of workers, beyond which nothing changes.
    limits
        Of rounds.
    rows
        A file of finished runs, which are not repeated.
    jobs, cancel, on_news
        As of `placeopt.whatif.fail`, for runs in place of scenarios.

    Returns
    -------
    ReplaySeries
        Every number that was tried. Nothing is proven: ``found`` is the smallest number tried from which on all
        meet the goal.

    Raises
    ------
    BadInput
        If there is no such machine type or node, a number is out of range, or no job has what is measured.

    Notes
    -----
    The number is doubled until the goal is met, then found by halving, which assumes that more nodes are never worse.
    That need not hold (Graham's anomalies: more machines may end later), so the `BEYOND` numbers above the found one
    are tried too, and ``monotone`` states whether any number tried breaks the order. With ``jobs`` above the number of
    draws, several numbers are tried at once.
    """
    deadline = Deadline(cancel=cancel)
    replays = _Replays(draws, limits or PARAMS, goal.measure, goal, on_news)
    if most is not None and not 1 <= most <= MOST_NODES:
        raise BadArgument(f"most: {most}, expected 1 to {MOST_NODES}")
    refuse_unmeasured(scenario, goal.measure)
    workers = sum(max(option.workers for option in arrival.job.options) for arrival in scenario.arrivals)
    most = min(MOST_NODES, workers) if most is None else most
    larger = with_added_nodes(scenario, node_type, 1).cluster

    def added(nodes: int) -> ReplayVariant:
        return ReplayVariant(str(nodes), with_added_nodes(scenario, node_type, nodes), scheduling)

    with _kept(rows, jobs, deadline) as runs:
        search, points = LeastSearch([1], most, [1]), dict[int, ReplayPoint]()
        longest: dict[int, float] = {}  # number of nodes -> the longest wait of any job
        width = max(1, width_of(jobs) // max(1, len(draws)))
        while not deadline.is_set() and (numbers := _next(search, points, longest, width)):
            for number, played in zip(numbers, replays.points(runs, [added(nodes) for nodes in numbers]), strict=True):
                if played is not None:
                    points[number], longest[number] = played
                    search.know((number,), fits=bool(points[number].met))
        found = None if search.found is None else search.found[0]
        below = [nodes for nodes, point in points.items() if not point.met and (found is None or nodes < found)]
        tried = tuple(points[nodes] for nodes in sorted(points))
        return replays.series(
            runs,
            tried,
            question="add",
            replayed=f"nodes:{node_type}",
            scenario=scenario.name,
            policy=scheduling.name,
            found=found,
            missed=max(below, default=None),
            monotone=_monotone(tried, goal),
            price_milli_per_hour=larger.price_of(larger.nodes[-1]),
            gpus=larger.gpus_by_node[larger.nodes[-1].id],
            left=int(deadline.is_set()),
        )


def _next(
    search: LeastSearch, points: Mapping[int, ReplayPoint], longest: Mapping[int, float], width: int
) -> list[int]:
    """
    Return numbers of nodes to play side by side: larger ones until the goal is met, fewer, and some beyond.

    None where no job waits with the largest number: more nodes only change the distances of GPUs.
    """
    if search.found is None:
        if longest.get(max(points, default=0)) == 0.0:
            return []
        return [counts[0] for _ in range(width) if (counts := search.grown()) is not None]
    if fewer := search.next(width):
        return [counts[0] for counts in fewer]
    found = search.found[0]
    return [number for number in range(found + 1, min(search.most, found + BEYOND) + 1) if number not in points]


def _kept(rows: Path | None, jobs: int | None, deadline: Deadline) -> Rows[MeasuredRun]:
    """Return the file of runs: each is carried out once, whatever question asks for it."""
    return Rows(rows, MeasuredRun, ("replay", *measures()), jobs, deadline)


class _Replays:
    """The points of a measure: every setting is simulated with every draw."""

    def __init__(
        self,
        draws: Sequence[int],
        params: SolveParams,
        measure: str,
        goal: Goal | None,
        on_news: Callable[[int, int], None] | None,
    ) -> None:
        if len(set(draws)) == 1:
            raise BadArgument("draws: one seed gives no interval; expected none, or two and more")
        self._began = time.monotonic()
        self._draws, self._params, self._measure, self._goal = tuple(draws), params, measure, goal
        self._on_news = on_news

    def points(
        self, runs: Rows[MeasuredRun], variants: Sequence[ReplayVariant]
    ) -> list[tuple[ReplayPoint, float] | None]:
        """Return for each setting its point and the longest wait of any job; None where a run was interrupted."""
        draws = self._draws or (None,)
        setups = [
            RunSetup(variant.scenario, variant.scheduling, draw, self._params) for variant in variants for draw in draws
        ]
        played = runs.answers(play, {setup.key: setup for setup in setups}, self._on_news)
        rows = iter([played.get(setup.key) for setup in setups])
        return [
            point_of(variant.name, variant.scenario.cluster, [next(rows) for _ in draws], self._measure, self._goal)
            for variant in variants
        ]

    def series(self, runs: Rows[MeasuredRun], points: Sequence[ReplayPoint], **fields: object) -> ReplaySeries:
        """Return the answer; ``fields`` beside measure, goal and points."""
        common = {
            "measure": self._measure,
            "unit": unit_of(self._measure),
            "goal": None if self._goal is None else self._goal.text,
            "draws": self._draws,
            "spots": tuple(points),
            "kept": runs.num_kept,
            "seconds": time.monotonic() - self._began,
        }
        return ReplaySeries.model_validate({**common, **fields})


def _monotone(points: Sequence[ReplayPoint], goal: Goal) -> bool:
    """Return whether the measure never gets worse from one number to the next larger one."""
    sign = 1 if goal.sign == "<=" else -1
    values = [float("inf") if point.mean is None else sign * point.mean for point in points]
    return all(b <= a for a, b in pairwise(values))


def compare(
    varied: str,
    settings: Sequence[ReplayVariant],
    measure: str,
    *,
    goal: Goal | None = None,
    draws: Sequence[int] = (),
    limits: SolveParams | None = None,
    rows: Path | None = None,
    jobs: int | None = 1,
    cancel: threading.Event | None = None,
    on_news: Callable[[int, int], None] | None = None,
) -> ReplaySeries:
    """
    Simulate every setting with every draw, and return a measure of each.

    Parameters
    ----------
    varied, settings
        As `parse_settings` returns them.
    measure
        One of `placeopt.simulation.replay.goals.measures`.
    goal
        Of that measure; None: settings are not compared with a goal.
    draws, limits, rows, jobs, cancel, on_news
        As of `placeopt.simulation.replay.add`; all runs are carried out side by side.

    Raises
    ------
    BadInput
        If there is no setting or no such measure, or no job has what is measured.
    """
    if measure not in measures():
        raise BadArgument(f"measure {measure!r}: expected one of {', '.join(measures())}")
    replays = _Replays(draws, limits or PARAMS, measure, goal, on_news)
    if not settings:
        raise BadInput("settings: none")
    for variant in settings:
        refuse_unmeasured(variant.scenario, measure)
    with _kept(rows, jobs, Deadline(cancel=cancel)) as runs:
        points = [played[0] for played in replays.points(runs, settings) if played is not None]
        return replays.series(
            runs,
            points,
            question="compare",
            replayed=varied,
            scenario=settings[0].scenario.name,
            policy=settings[0].scheduling.name if varied != "policy" else "several",
            left=len(settings) - len(points),
        )
