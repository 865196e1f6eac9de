"""Horus's predictors in the loop: utilisation by a regressor (4.1.1), GPU memory by eq. 2."""

from __future__ import annotations

from collections.abc import Sequence

from placeopt.model import Cluster, Option
from placeopt.scheduling.estimate import Estimate
from placeopt.scheduling.predictions import PROFILE, Row
from placeopt.systems.horus.memory import gpu_memory_mib
from placeopt.systems.horus.regressor import Regressor, fit_regressor
from placeopt.systems.predictors import number_in

TARGET = "gpu_utilisation_percent"
PERCENT = 100


def fit_utilisation(rows: Sequence[Row], *, source: str, licence: str) -> Regressor:
    """Return gradient boosting from all other columns to ``gpu_utilisation_percent`` (table 4's best)."""
    table = [{name: number_in(row, name) for name in row if name != PROFILE} for row in rows]
    return fit_regressor("boosting", table, TARGET, source=source, licence=licence)


def utilisation(model: Regressor, row: Row, options: Sequence[Option], cluster: Cluster) -> tuple[Estimate, ...]:
    """Return the utilisation that is predicted, the same for all options."""
    del cluster
    percent = float(model.predict([{name: number_in(row, name) for name in model.features}])[0])
    return (Estimate(gpu_utilisation_percent=min(PERCENT, round(percent))),) * len(options)


def memory(model: None, row: Row, options: Sequence[Option], cluster: Cluster) -> tuple[Estimate, ...]:
    """Return GPU memory by eq. 2, the same for all options; gradients are as many as activations unless stated."""
    del model, cluster
    counts = {name: int(number_in(row, name)) for name in ("batch", "activations", "parameters")}
    others = {name: int(number_in(row, name)) for name in ("gradients", "startup_mib") if row.get(name)}
    mib = gpu_memory_mib(**{"gradients": counts["activations"], **counts, **others})
    return (Estimate(gpu_memory_mib=mib),) * len(options)
