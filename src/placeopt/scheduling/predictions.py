"""Predictions that a policy carries: predictors of systems, fitted, with what is known of profiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, reduce
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from placeopt.errors import BadArgument, BadInput
from placeopt.model import Cluster, Instance, Job, Option
from placeopt.model.base import Id, Record
from placeopt.scheduling.estimate import Estimate, believed
from placeopt.scheduling.systems import Predictor, load_systems

if TYPE_CHECKING:
    from placeopt.scheduling.policy import Scheduling

Row = Mapping[str, str]
Estimates = Callable[[Job], tuple[Estimate, ...]]
PROFILE = "profile"
"""Column that names the profile of the jobs that a row is about."""
KEPT = 100_000
"""Most predictions that are kept, by profile and options: more than the kinds of jobs that wait in a round."""


class Prediction(Record):
    """What a predictor says of jobs by their profiles."""

    predictor: Id
    """Name of a predictor of an installed system."""
    model: dict[str, Any] | None = None
    """What was fitted; None where nothing has to be."""
    table: tuple[dict[str, str], ...] = ()
    """What is known of profiles: the column ``profile``, and those that the predictor reads."""


def predictors() -> dict[str, Predictor]:
    """Return the predictors of installed systems, by name."""
    return {name: one for system in load_systems().values() for name, one in system.predictors.items()}


def named_predictor(name: str) -> Predictor:
    """Return a predictor; `BadArgument` for an unknown name lists the others."""
    known = predictors()
    if not isinstance(name, str) or name not in known:
        raise BadArgument(f"predictor: no predictor {name!r}; known: {', '.join(sorted(known))}")
    return known[name]


def rows_by_profile(rows: Sequence[Row]) -> dict[str, Row]:
    """Return the rows of a table by the profile that each is about; raises `BadInput` where one names none."""
    by_profile = {}
    for number, row in enumerate(rows):
        if not row.get(PROFILE):
            raise BadInput(f"table, row {number + 1}: no {PROFILE!r}: it says which jobs a row is about")
        by_profile[row[PROFILE]] = row
    return by_profile


def estimates_by(predictor: Predictor, model: object, rows: Sequence[Row], cluster: Cluster) -> Estimates:
    """
    Return what predicts the options of a job; jobs of profiles without a row have no estimates.

    Jobs of one profile and with equal options are predicted once, however many rounds they wait.
    """
    by_profile, predict = rows_by_profile(rows), resolve_name(predictor.estimates)

    @lru_cache(maxsize=KEPT)
    def predicted(profile: str, options: tuple[Option, ...]) -> tuple[Estimate, ...]:
        row = by_profile.get(profile)
        return () if row is None else tuple(predict(model, row, options, cluster))

    def estimates(job: Job) -> tuple[Estimate, ...]:
        return predicted(job.profile, job.options) if job.profile is not None else ()

    return estimates


def predicts(scheduling: Scheduling, cluster: Cluster) -> Callable[[Job], Job]:
    """
    Return what makes a job as a policy believes it to be; the same job where the policy predicts nothing of it.

    Raises ``BadInput`` if a predictor is unknown, or what was fitted is none of its kind.
    """
    every = [_of(one, cluster) for one in scheduling.predictions]
    return lambda job: reduce(lambda seen, estimates: believed(seen, estimates(seen)), every, job)


class Beliefs:
    """What a policy predicts of the jobs of one cluster's readings: once for as long as the cluster stays as it is."""

    def __init__(self, scheduling: Scheduling) -> None:
        self._scheduling = scheduling
        self._on: tuple[Cluster, Callable[[Job], Job]] | None = None

    def believed(self, now: Instance) -> Instance:
        """
        Return a reading with jobs as they are believed to be.

        What runs keeps the memory that it holds; where not all GPUs state theirs, what waits keeps what it asks for,
        since those would take nothing that is believed to need some.
        """
        if not self._scheduling.predictions:
            return now
        if self._on is None or self._on[0] != now.cluster:
            self._on = now.cluster, predicts(self._scheduling, now.cluster)
        running, believes = {held.job for held in now.running}, self._on[1]
        keeps_all = not now.cluster.states_gpu_memory
        jobs = (
            _with_memory_of(job, believes(job)) if keeps_all or job.id in running else believes(job) for job in now.jobs
        )
        return now.model_copy(update={"jobs": tuple(jobs)})


def _with_memory_of(held: Job, job: Job) -> Job:
    """Return a job with the GPU memory that its options have in another record of it."""
    kept = [Estimate(gpu_memory_mib=option.demand.gpu_memory_mib) for option in held.options]
    return believed(job, kept)


def _of(prediction: Prediction, cluster: Cluster) -> Estimates:
    predictor = named_predictor(prediction.predictor)
    if not predictor.estimates:
        raise BadInput(f"predictions: {prediction.predictor!r} is of how jobs slow each other; apply it to a round")
    model = None
    if predictor.model:
        if prediction.model is None:
            raise BadInput(f"predictions: {prediction.predictor!r} has to be fitted: no 'model'")
        from placeopt.documents.documents import as_record

        model = as_record(resolve_name(predictor.model), prediction.model, f"predictions: {prediction.predictor}")
    return estimates_by(predictor, model, prediction.table, cluster)
