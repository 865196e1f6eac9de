"""A task of a type that was never profiled takes the prediction model of the most similar structure (section 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from placeopt.model.base import Record
from placeopt.predict import Errors, relative_errors
from placeopt.systems.genie.profiles import lightweight
from placeopt.systems.genie.rate import ProfiledRun, RateModel, fit_rate
from placeopt.systems.similar import Structure, most_similar


def adopted(model: RateModel, similar: RateModel) -> RateModel:
    """
    Return a model of runs on one GPU with the penalty of a similar one.

    The lightweight profiling begins with one GPU; what communication costs is not seen before it uses several.
    """
    return model.model_copy(update={"across": similar.across, "inside": similar.inside})


class Unseen(Record):
    """Errors on all runs of each type, while the others alone were the database; and what was then profiled of it."""

    similar: Errors
    """Nothing: the model of the most similar structure."""
    one_gpu: Errors
    """Its runs on one GPU; what communication costs is that of the most similar structure."""
    light: Errors
    """The runs of the lightweight profiling (5.1.5)."""

    def __str__(self) -> str:
        """Return the mean errors in percent as text."""
        similar, one_gpu, light = (f"{100 * one.mean:.1f} %" for one in (self.similar, self.one_gpu, self.light))
        return (
            f"mean error on types left out: {similar} by the most similar structure, {one_gpu} with its runs on one "
            f"GPU, {light} with those of the lightweight profiling"
        )


def unseen_errors(
    runs: Mapping[str, Sequence[ProfiledRun]], models: Mapping[str, RateModel], structures: Mapping[str, Structure]
) -> Unseen:
    """Return the errors of predictions of each type by the models of the others, and by what is profiled of it."""
    pairs: dict[str, list[tuple[float, float]]] = {name: [] for name in Unseen.model_fields}
    for name, mine in runs.items():
        similar = models[most_similar(structures[name], {other: structures[other] for other in runs if other != name})]
        alone = fit_rate(name, [run for run in mine if run.nodes * run.gpus == 1], source="")
        by = {
            "similar": similar,
            "one_gpu": adopted(alone, similar),
            "light": fit_rate(name, lightweight(mine), source=""),
        }
        for stage, model in by.items():
            pairs[stage] += [(model.rate(*run[:3]), run.rate) for run in mine]
    errors = {
        stage: relative_errors([one for one, _ in found], [true for _, true in found]) for stage, found in pairs.items()
    }
    return Unseen(**errors)
