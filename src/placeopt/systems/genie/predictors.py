"""GENIE's predictor in the loop: rate and latency of every shape of a task (eq. 4 to 8)."""

from __future__ import annotations

from collections.abc import Sequence

from placeopt.errors import BadInput
from placeopt.heuristics.job_orders import nodes_of
from placeopt.model import Cluster, Job
from placeopt.predict import Fitted, Provenance, relative_errors
from placeopt.scheduling.estimate import Estimate
from placeopt.scheduling.predictions import PROFILE, Row
from placeopt.systems.genie.rate import ProfiledRun, RateModel, fit_rate
from placeopt.systems.predictors import number_in

MILLI = 1000


class Rates(Fitted):
    """Rates of several job types."""

    models: dict[str, RateModel]
    """By profile."""


def fit_rates(rows: Sequence[Row], *, source: str, licence: str) -> Rates:
    """Return the formula of each profile, fitted to its runs: nodes, GPUs of each, batch, and samples a second."""
    runs: dict[str, list[ProfiledRun]] = {}
    for row in rows:
        nodes, gpus, batch = (int(number_in(row, name)) for name in ("nodes", "gpus", "batch"))
        runs.setdefault(row[PROFILE], []).append(ProfiledRun(nodes, gpus, batch, number_in(row, "rate")))
    models = {name: fit_rate(name, mine, source=source, licence=licence) for name, mine in runs.items()}
    pairs = [(models[name].rate(*run[:3]), run.rate) for name, mine in runs.items() for run in mine]
    errors = relative_errors([predicted for predicted, _ in pairs], [measured for _, measured in pairs])
    return Rates(
        name="rates",
        provenance=Provenance(source=source, licence=licence, rows=len(rows)),
        errors=errors,
        models=models,
    )


def rates(model: Rates, row: Row, job: Job, cluster: Cluster) -> tuple[Estimate, ...]:
    """Return rate and latency of each option, by its GPUs and the fewest nodes that hold them."""
    if row[PROFILE] not in model.models:
        raise BadInput(f"profile {row[PROFILE]!r}: no runs were fitted; known: {', '.join(model.models)}")
    formula, largest = model.models[row[PROFILE]], max(1, *cluster.gpus_by_node.values())
    batch, iterations = int(number_in(row, "batch")), int(number_in(row, "iterations"))
    found = []
    for option in job.options:
        nodes = nodes_of(option, option.workers, largest)
        gpus = -(-option.workers * option.demand.gpus // nodes)
        if not gpus:
            found.append(Estimate())
            continue
        rate = formula.rate(nodes, gpus, batch)
        if rate <= 0:
            raise BadInput(f"profile {row[PROFILE]!r}: by its formula {nodes} x {gpus} GPUs process nothing")
        latency_ms = max(1, round(MILLI * formula.latency_s(nodes, gpus, batch, iterations)))
        found.append(Estimate(run_time_ms=latency_ms, latency_ms=latency_ms, rate_milli=round(MILLI * rate)))
    return tuple(found)
