"""Rate and latency by placement from the time of a step: ours, after Pollux."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placeopt import BadInput
from placeopt.predict import Fitted, Provenance, relative_errors
from placeopt.systems.genie.rate import ProfiledRun, check_runs

TERMS, COMPUTING = 6, 2


class StepModel(Fitted):
    """
    Seconds of a step: ``c0 + c1 x`` with the local batch x, plus what synchronising k GPUs takes.

    On one node ``i0 + i1 (k - 2)``, over several ``a0 + a1 (k - 2)``, on one GPU nothing. GENIE's penalty is a part of
    the whole rate, the same at every batch; here it is seconds a step, which weigh less the more a step computes. The
    split into computing and synchronising follows Pollux (OSDI'21), without the overlap of both.
    """

    coefficients: tuple[float, float, float, float, float, float]
    """c0, c1, i0, i1, a0, a1; each at least 0."""

    def step_s(self, nodes: int, gpus: int, batch: int, *, synchronises: bool = True) -> float:
        """
        Return the seconds of a step with a global ``batch``; inference computes only (GENIE 5.1.4).

        Raises
        ------
        BadInput
            Below one node, GPU or sample.
        """
        if min(nodes, gpus, batch) < 1:
            raise BadInput(f"nodes, gpus, batch: {nodes}, {gpus}, {batch}; expected 1 or more of each")
        seconds = _terms([ProfiledRun(nodes, gpus, batch, 1.0)])[0] * np.array(self.coefficients)
        return float(seconds.sum() if synchronises else seconds[:COMPUTING].sum())

    def rate(self, nodes: int, gpus: int, batch: int, *, synchronises: bool = True) -> float:
        """Return samples per second; 0 if a step takes no time, which no measured run shows."""
        seconds = self.step_s(nodes, gpus, batch, synchronises=synchronises)
        return batch / seconds if seconds > 0 else 0.0


def fit_step(name: str, runs: Sequence[ProfiledRun], *, source: str, licence: str = "") -> StepModel:
    """
    Fit the model by least squares of the relative error of a step, coefficients of at least 0.

    Raises
    ------
    BadInput
        If there are no runs, or a figure of a run is out of range.
    """
    from scipy.optimize import nnls  # loaded where a model is fitted: it takes longer than all else of this package

    if not runs:
        raise BadInput(f"runs of {name!r}: none; expected at least one")
    check_runs(name, runs)
    seconds = np.array([run.batch / run.rate for run in runs])
    a = _terms(runs) / seconds[:, None]
    c = nnls(a, np.ones(len(runs)))[0].tolist()
    model = StepModel(
        name=name,
        provenance=Provenance(source=source, licence=licence, rows=len(runs)),
        errors=relative_errors([1.0], [1.0]),
        coefficients=(c[0], c[1], c[2], c[3], c[4], c[5]),
    )
    predicted = [model.rate(run.nodes, run.gpus, run.batch) for run in runs]
    return model.model_copy(update={"errors": relative_errors(predicted, [run.rate for run in runs])})


def _terms(runs: Sequence[ProfiledRun]) -> np.ndarray:
    """Return the factors of the coefficients, shape (runs, 6)."""
    out = np.zeros((len(runs), TERMS))
    for row, run in zip(out, runs, strict=True):
        total = run.nodes * run.gpus
        row[:2] = 1.0, run.batch / total
        if total > 1:
            first = 2 if run.nodes == 1 else 4
            row[first : first + 2] = 1.0, total - 2
    return out
