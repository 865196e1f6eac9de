"""GENIE's model database in the loop: rate and latency of every shape of a task (eq. 4 to 8), of unseen types too."""

from __future__ import annotations

from collections.abc import Sequence

from placeopt.errors import BadInput
from placeopt.heuristics.job_orders import nodes_of
from placeopt.model import Cluster, Option
from placeopt.predict import Fitted, Provenance, relative_errors
from placeopt.scheduling.estimate import Estimate
from placeopt.scheduling.predictions import PROFILE, Row
from placeopt.systems.genie.rate import LEAST_RATE, ProfiledRun, RateModel, fit_rate
from placeopt.systems.genie.unseen import Unseen, adopted, unseen_errors
from placeopt.systems.predictors import number_in
from placeopt.systems.similar import most_similar

MILLI = 1000
RUN = (PROFILE, "nodes", "gpus", "batch", "rate")
"""Columns of a run; all others are features of its network's structure."""


class Rates(Fitted):
    """Rates of several job types: GENIE's model database."""

    models: dict[str, RateModel]
    """By profile."""
    structures: dict[str, dict[str, float]]
    """Profile -> features, where the table states them: by them an unseen type finds the most similar one."""
    unseen: Unseen | None = None
    """Errors on types that were left out; None where fewer than two have a structure and runs on several GPUs."""

    @property
    def held_out(self) -> str:
        """The errors on types that were left out, as text."""
        return "" if self.unseen is None else str(self.unseen)


def fit_rates(rows: Sequence[Row], *, source: str, licence: str) -> Rates:
    """
    Return the formula of each profile, fitted to its runs: nodes, GPUs of each, batch, and samples a second.

    All other columns are features of the profile's structure. A profile with a structure and with runs on one GPU alone
    loses by communication what the most similar one does.
    """
    runs: dict[str, list[ProfiledRun]] = {}
    structures: dict[str, dict[str, float]] = {}
    for row in rows:
        nodes, gpus, batch = (int(number_in(row, name)) for name in RUN[1:4])
        runs.setdefault(row[PROFILE], []).append(ProfiledRun(nodes, gpus, batch, number_in(row, RUN[4])))
        features = {name: number_in(row, name) for name in row if name not in RUN}
        if features and structures.setdefault(row[PROFILE], features) != features:
            raise BadInput(
                f"table: profile {row[PROFILE]!r}: features differ between its rows; a profile is one network"
            )
    models = {name: fit_rate(name, mine, source=source, licence=licence) for name, mine in runs.items()}
    whole = {name: mine for name, mine in runs.items() if any(run.nodes * run.gpus > 1 for run in mine)}
    known = {name: structures[name] for name in whole if name in structures}
    for name in structures.keys() - whole.keys() if known else ():
        models[name] = adopted(models[name], models[most_similar(structures[name], known)])
    pairs = [(models[name].rate(*run[:3]), run.rate) for name, mine in runs.items() for run in mine]
    return Rates(
        name="rates",
        provenance=Provenance(source=source, licence=licence, rows=len(rows)),
        errors=relative_errors([predicted for predicted, _ in pairs], [measured for _, measured in pairs]),
        models=models,
        structures=structures,
        unseen=unseen_errors({name: whole[name] for name in known}, models, known) if len(known) > 1 else None,
    )


def rates(model: Rates, row: Row, options: Sequence[Option], cluster: Cluster) -> tuple[Estimate, ...]:
    """Return rate and latency of each option, by its GPUs and the fewest nodes that hold them."""
    formula, largest = _formula(model, row), max(1, *cluster.gpus_by_node.values())
    batch, iterations = int(number_in(row, "batch")), int(number_in(row, "iterations"))
    found = []
    for option in options:
        nodes = nodes_of(option, option.workers, largest)
        gpus = -(-option.workers * option.demand.gpus // nodes)
        if not gpus:
            found.append(Estimate())
            continue
        rate = max(LEAST_RATE, formula.rate(nodes, gpus, batch))
        latency_s = min(batch * iterations / LEAST_RATE, formula.latency_s(nodes, gpus, batch, iterations))
        latency_ms = max(1, round(MILLI * latency_s))
        found.append(Estimate(run_time_ms=latency_ms, latency_ms=latency_ms, rate_milli=round(MILLI * rate)))
    return tuple(found)


def _formula(model: Rates, row: Row) -> RateModel:
    """Return the formula of a row's profile, else of the profile whose structure is most similar to the row's."""
    if row[PROFILE] in model.models:
        return model.models[row[PROFILE]]
    features = {feature for known in model.structures.values() for feature in known}
    stated = {name: number_in(row, name) for name in sorted(features & row.keys())}
    if not stated:
        raise BadInput(
            f"profile {row[PROFILE]!r}: no runs were fitted; known: {', '.join(model.models)}; state features of its "
            f"structure, by which the most similar one is taken: {', '.join(sorted(features)) or 'the fit had none'}"
        )
    return model.models[most_similar(stated, model.structures)]
