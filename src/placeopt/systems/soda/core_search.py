"""Resources of a training job: the fewest cores for its full speed by SODA's search."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Literal

from placeopt.errors import BadInput
from placeopt.model import Job
from placeopt.scheduling.rules import CORES
from placeopt.scheduling.setting import Setting

Category = Literal["vision", "language", "speech"]
FIRST: dict[str, int] = {"vision": 3, "language": 5, "speech": 5}
"""Cores of a tenant's first job by category (SODA V-B 1)."""


def first_cores(
    category: Category | None = None,
    *,
    largest_before: int | None = None,
    pipelined: bool = False,
    many_weights: bool = False,
    heavy_preprocessing: bool = False,
) -> int:
    """
    Return the number of cores with which the search begins, at least 1 (SODA V-B 1).

    Parameters
    ----------
    category
        Category of the model; may be None if ``largest_before`` is given.
    largest_before
        Most cores of the owner's earlier jobs of the category; it takes precedence over the category's own figure.
    pipelined, many_weights, heavy_preprocessing
        One core less, one less, one more.

    Raises
    ------
    BadInput
        If neither category nor earlier jobs are known.
    """
    if largest_before is not None:
        start = largest_before
    elif category in FIRST:
        start = FIRST[category]
    else:
        raise BadInput(f"category: {category!r}; expected one of {', '.join(FIRST)}, or largest_before")
    return max(1, start - pipelined - many_weights + heavy_preprocessing)


def best_fit_cores(
    utilisation: Callable[[int], float], start: int, *, most: int, tolerance: float = 0.0
) -> tuple[int, int]:
    """
    Return the fewest cores with the highest GPU utilisation, found by measuring (SODA V-B 2).

    Parameters
    ----------
    utilisation
        Measures the job's GPU utilisation, or its speed, for a number of cores; called at most once per number.
    start
        See ``first_cores``.
    most
        Cores of a node.
    tolerance
        Differences up to this do not count.

    Returns
    -------
    tuple of int
        The cores, and the number of measurements.

    Notes
    -----
    The paper steps down first "until utilisation remains unchanged" where fewer cores raise it, else up while more
    raise it. A job at its best with fewer cores, on a plateau, would then keep the larger number, though III-A defines
    best fit as the fewest cores at the highest speed; read: it also steps down while nothing is lost.

    Raises
    ------
    BadInput
        If ``start`` is not between 1 and ``most``.
    """
    if not 1 <= start <= most:
        raise BadInput(f"start: {start}; expected 1 to {most}, the cores of a node")
    known: dict[int, float] = {}

    def at(cores: int) -> float:
        if cores not in known:
            known[cores] = utilisation(cores)
        return known[cores]

    best = start
    while best > 1 and at(best - 1) >= at(best) - tolerance:
        best -= 1
    if best == start:
        while best < most and at(best + 1) > at(best) + tolerance:
            best += 1
    return best, len(known)


class CoreSearch:
    """
    The search in the loop, a `CoreFinder`: cores for each GPU of jobs, on the core curves of a setting.

    It begins with the most cores per GPU that the user's earlier jobs of the category got, and measures as exactly as
    ``core_trial_noise_thousandths`` says.

    The search takes place when a job has started: each trial lasts ``core_trial_ms`` at the speed of its cores, instead
    of that of the cores found. Nothing is gained by a trial with more cores than are found.
    """

    def __init__(self, setting: Setting) -> None:
        self._curves = {curve.profile: curve for curve in setting.core_curves}
        self.node_cores = max(
            setting.hardware.machine_of(node).cpu_millicores // 1000 for node in setting.hardware.nodes
        )
        self._earlier: dict[tuple[str | None, str], int] = {}
        self._trial_ms = setting.core_trial_ms
        self._noise = setting.core_trial_noise_thousandths / 1000
        self._setting = setting.beginning.name
        self.steps: list[int] = []
        self.search_ms: dict[str, int] = {}

    def cores(self, job: Job) -> int:
        """Return the cores for each GPU of a job, found by the search; 0 for one without a curve, or without GPUs."""
        curve = self._curves.get(job.profile or "")
        if curve is None or not any(option.demand.gpus for option in job.options):
            return 0
        gpus = max(option.demand.gpus for option in job.options)
        most = max(1, self.node_cores // gpus)
        owner = (job.user, curve.category or curve.profile)
        earlier = self._earlier.get(owner)
        if earlier is None and curve.category is None:
            earlier = max(
                1,
                max(option.demand.cpu_millicores // option.demand.gpus for option in job.options if option.demand.gpus)
                // 1000,
            )
        start = min(most, first_cores(curve.category, largest_before=earlier))
        tried: list[int] = []

        def measured(number: int) -> float:
            tried.append(number)
            speed = curve.speed(1000 * number)
            return speed * (1 + self._error(job.id, number)) if self._noise else speed

        cores, steps = best_fit_cores(measured, start, most=most)
        self.steps.append(steps)
        full = curve.speed(1000 * cores)
        lost = sum(max(0, full - curve.speed(1000 * number)) for number in tried)
        if self._trial_ms and lost:
            self.search_ms.setdefault(job.id, self._trial_ms * lost // full)
        self._earlier[owner] = max(cores, earlier or 0)
        return cores

    def _error(self, job: str, cores: int) -> float:
        """Draw the relative error of a trial: the same for the same setting, job and cores."""
        return random.Random(f"{self._setting} {job} {cores}").gauss(0, self._noise)


CORES.register("best_fit", CoreSearch)
