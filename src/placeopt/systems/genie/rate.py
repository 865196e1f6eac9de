"""Rate and latency by placement, fitted by least squares: GENIE's model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from placeopt.errors import BadInput
from placeopt.predict import Fitted, Provenance, relative_errors

LEAST_RATE = 0.01
"""Samples a second that are predicted at least: the formula has none where communication takes all GPUs."""
DEGREE = 2
"""Of the rate of one GPU in the local batch (GENIE eq. 7)."""


class ProfiledRun(NamedTuple):
    """A profiling run: ``rate`` samples a second with a global ``batch`` on ``nodes`` of ``gpus`` GPUs each."""

    nodes: int
    gpus: int
    batch: int
    rate: float


class RateModel(Fitted):
    """
    Rate of one job type on one platform (GENIE eq. 5 to 8).

    ``PR = (n g - Comm) sPR(b / (n g))`` in samples a second, with ``sPR(x) = k0 + k1 x + k2 x^2`` and
    ``Comm = ((n - 1) g + lambda (g - 1)) gamma / (n g - 1)``. ``across`` is gamma, ``inside`` is lambda gamma, so a
    platform without traffic between nodes is no division by zero.
    """

    single: tuple[float, float, float]
    """k0, k1, k2."""
    across: float
    inside: float
    local_batch_min: float
    local_batch_max: float
    """Range of local batches profiled on one GPU; a batch outside is replaced by the nearer end."""

    def penalty(self, nodes: int, gpus: int) -> float:
        """
        Return how many GPUs communication costs; 0 on one GPU.

        Eq. 8 prints its second case for n, g > 1, which leaves n x 1 and 1 x g without any; read: more than one GPU.
        """
        if nodes * gpus == 1:
            return 0.0
        return ((nodes - 1) * gpus * self.across + (gpus - 1) * self.inside) / (nodes * gpus - 1)

    def rate(self, nodes: int, gpus: int, batch: int) -> float:
        """Return samples a second, at least 0; raises ``BadInput`` below one node, GPU or sample."""
        if min(nodes, gpus, batch) < 1:
            raise BadInput(f"nodes, gpus, batch: {nodes}, {gpus}, {batch}; expected 1 or more of each")
        local = min(max(batch / (nodes * gpus), self.local_batch_min), self.local_batch_max)
        return max(0.0, nodes * gpus - self.penalty(nodes, gpus)) * float(np.polyval(self.single[::-1], local))

    def latency_s(self, nodes: int, gpus: int, batch: int, iterations: int, startup_s: float = 0.0) -> float:
        """Return seconds for a number of iterations (GENIE eq. 4); infinite where nothing is processed."""
        rate = self.rate(nodes, gpus, batch)
        return batch * iterations / rate + startup_s if rate > 0 else float("inf")


def fit_rate(
    name: str, runs: Sequence[ProfiledRun], *, source: str, licence: str = "", communicates: bool = True
) -> RateModel:
    """
    Fit the model to runs: ``single`` to those on one GPU, then the penalty to the others.

    Both are linear least squares of the relative error, the second since eq. 5 is linear in gamma and lambda gamma once
    ``single`` is known. Coefficients of the penalty are at least 0 (non-negative least squares).

    Parameters
    ----------
    name, source, licence
        Stored in the model.
    runs
        At least one on one GPU, all with a rate above 0.
    communicates
        False for inference, which has no penalty (GENIE 5.1.4).

    Returns
    -------
    RateModel
        Coefficients of the rate in samples per second, and the errors of the fit.

    Raises
    ------
    BadInput
        If there is no run on one GPU, or a figure of a run is out of range.
    """
    check_runs(name, runs)
    alone = [run for run in runs if run.nodes * run.gpus == 1]
    if not alone:
        raise BadInput(f"runs of {name!r}: none on one GPU; the rate of one GPU is what all others are built on")
    batch = np.array([run.batch for run in alone], dtype=float)
    rate = np.array([run.rate for run in alone])
    terms = min(DEGREE, len(set(batch.tolist())) - 1) + 1
    powers = np.vander(batch, terms, increasing=True) / rate[:, None]
    single = np.zeros(DEGREE + 1)
    single[:terms] = np.linalg.lstsq(powers, np.ones(len(rate)), rcond=None)[0]
    model = RateModel(
        name=name,
        provenance=Provenance(source=source, licence=licence, rows=len(runs)),
        errors=relative_errors([1.0], [1.0]),
        single=(float(single[0]), float(single[1]), float(single[2])),
        across=0.0,
        inside=0.0,
        local_batch_min=float(batch.min()),
        local_batch_max=float(batch.max()),
    )
    several = [run for run in runs if run.nodes * run.gpus > 1]
    if communicates and several:
        across, inside = _penalty(model, several)
        model = model.model_copy(update={"across": across, "inside": inside})
    predicted = [model.rate(run.nodes, run.gpus, run.batch) for run in runs]
    return model.model_copy(update={"errors": relative_errors(predicted, [run.rate for run in runs])})


def check_runs(name: str, runs: Sequence[ProfiledRun]) -> None:
    """Raise ``BadInput`` with the first impossible run."""
    for number, run in enumerate(runs):
        if min(run.nodes, run.gpus, run.batch) < 1 or not 0 < run.rate < float("inf"):
            raise BadInput(
                f"runs of {name!r}: runs[{number}]: {run.nodes} nodes of {run.gpus} GPUs, batch {run.batch}, rate "
                f"{run.rate}; expected 1 or more of each, and a rate above 0; leave out what was not measured"
            )


def _penalty(model: RateModel, runs: list[ProfiledRun]) -> tuple[float, float]:
    """Return gamma and lambda gamma, both at least 0."""
    from scipy.optimize import nnls  # loaded where a model is fitted: it takes longer than all else of this package

    nodes, gpus = (np.array([getattr(run, field) for run in runs], dtype=float) for field in ("nodes", "gpus"))
    ideal = np.array([model.rate(run.nodes, run.gpus, run.batch) for run in runs])  # still without a penalty
    rate, total = np.array([run.rate for run in runs]), nodes * gpus
    a = np.stack([(nodes - 1) * gpus, gpus - 1], axis=1) * (ideal / (rate * total * (total - 1)))[:, None]
    across, inside = nnls(a, ideal / rate - 1)[0].tolist()
    return across, inside
