"""What policies believe of jobs: the truth, what is stated, or estimates that are so many times as wrong."""

from __future__ import annotations

import math
import random
from collections.abc import Collection

from placeopt.errors import BadArgument
from placeopt.model import Option
from placeopt.scheduling.estimate import OF_DEMAND, Estimate
from placeopt.simulation.records.endpoint import Endpoint
from placeopt.simulation.records.scenario import Arrival, Scenario


def with_actual_estimates(scenario: Scenario) -> Scenario:
    """
    Return the scenario with perfect predictions: every option's ``run_time_ms`` is the actual one, stated or not.

    Actual run times do not change; services get no run time. Stated latencies and rates stay.
    """
    return scenario.model_copy(update={"arrivals": tuple(map(_with_actual, scenario.arrivals))})


def _with_actual(arrival: Arrival) -> Arrival:
    if arrival.service:
        return arrival
    options = tuple(
        option.model_copy(update={"run_time_ms": arrival.actual_ms(option.id)}) for option in arrival.job.options
    )
    estimates = tuple(estimate.model_copy(update={"run_time_ms": None}) for estimate in arrival.estimates)
    job = arrival.job.model_copy(update={"options": options})
    return arrival.model_copy(update={"job": job, "estimates": estimates})


def with_scaled_errors(scenario: Scenario, factor: float) -> Scenario:
    """
    Return the scenario with estimates whose errors are ``factor`` times as large; what happens stays the same.

    An error is the logarithm of what is believed over what is true: with 0 estimates are perfect, with 1 as they are,
    with 2 one of 0.8 of the truth becomes 0.64. Utilisation ends at 100 %. A figure whose truth is 0 keeps its
    estimate. Jobs without ``estimates`` state run times that may be off from the actual ones; these count as well. So
    do the profiled rates of endpoints; the noise of trials of cores is multiplied.

    Raises
    ------
    BadInput
        If ``factor`` is not a number from 0 to 10.
    """
    if not 0 <= factor <= 10:
        raise BadArgument(f"factor: {factor}; expected a number from 0 to 10")
    noise = round(scenario.physics.core_trial_noise_thousandths * factor)
    update: dict[str, object] = {
        "arrivals": tuple(_with_scaled(arrival, factor) for arrival in scenario.arrivals),
        "endpoints": tuple(_endpoint(endpoint, factor) for endpoint in scenario.endpoints),
        "physics": scenario.physics.model_copy(update={"core_trial_noise_thousandths": min(1000, noise)}),
    }
    return scenario.model_copy(update=update)


def _with_scaled(arrival: Arrival, factor: float) -> Arrival:
    if arrival.service:
        return arrival
    options = arrival.job.options
    estimates = arrival.estimates or (Estimate(),) * len(options)
    scaled = tuple(_scaled(arrival, *pair, factor) for pair in zip(options, estimates, strict=True))
    return arrival.model_copy(update={"estimates": scaled if any(one != Estimate() for one in scaled) else ()})


def _scaled(arrival: Arrival, option: Option, estimate: Estimate, factor: float) -> Estimate:
    """Return an estimate of an option with its error scaled."""
    stated = dict(estimate)
    if stated["run_time_ms"] is None and arrival.actual_run_time_ms is not None:
        stated["run_time_ms"] = option.run_time_ms
    truth = {name: getattr(option.demand if name in OF_DEMAND else option, name) for name in stated}
    truth["run_time_ms"] = arrival.actual_ms(option.id)
    if arrival.actual_gpu_memory_mib is not None:
        truth["gpu_memory_mib"] = arrival.actual_gpu_memory_mib
        stated["gpu_memory_mib"] = stated["gpu_memory_mib"] or option.demand.gpu_memory_mib
    out = {name: _times(truth[name], value, factor) for name, value in stated.items() if value is not None}
    if "gpu_utilisation_percent" in out:
        out["gpu_utilisation_percent"] = min(100, out["gpu_utilisation_percent"])
    return Estimate(**out)


def with_drawn_errors(
    scenario: Scenario, factor: float, seed: int, fields: Collection[str] = tuple(Estimate.model_fields)
) -> Scenario:
    """
    Return the scenario with estimates ``factor`` times too high or too low, drawn by a seed; what happens stays.

    A draw is of all jobs of a profile, or of a job without one: they are believed to take longer, at a lower rate, and
    to use more, or the reverse. So are the profiled rates of endpoints; trials of cores that take time err with the
    logarithm of ``factor`` as standard deviation.

    Parameters
    ----------
    factor
        From 1 to 10.
    seed
        Of the draws, one for each profile and each kind of replica of an endpoint.
    fields
        Of `Estimate`; the others are as they are stated. A figure whose truth is 0 or unknown has no estimate;
        utilisation ends at 100 %.

    Raises
    ------
    BadArgument
        If ``factor`` or a field is none of these.
    """
    if not 1 <= factor <= 10 or not set(fields) <= Estimate.model_fields.keys():
        raise BadArgument(f"factor, fields: {factor}, {', '.join(fields)}; expected 1 to 10, and fields of Estimate")

    def draw(*words: str) -> float:
        return random.Random(f"{seed} {words}").choice((factor, 1 / factor))  # noqa: S311 - no secret

    def drawn(arrival: Arrival) -> Arrival:
        if arrival.service:
            return arrival
        times = draw(arrival.job.profile or arrival.job.id)
        estimates = tuple(_off(arrival, option, times, fields) for option in arrival.job.options)
        return arrival.model_copy(
            update={"estimates": estimates if any(one != Estimate() for one in estimates) else ()}
        )

    def profiled(endpoint: Endpoint) -> Endpoint:
        kinds = {kind: getattr(endpoint, kind) for kind in ("gpu", "cpu")}
        rates = {
            kind: max(1, round(replica.rate_milli * draw(endpoint.id, kind)))
            for kind, replica in kinds.items()
            if replica is not None
        }
        return endpoint.model_copy(
            update={kind: kinds[kind].model_copy(update={"profiled_rate_milli": rate}) for kind, rate in rates.items()}
        )

    noise = round(1000 * math.log(factor)) if scenario.physics.core_trial_ms else 0
    return scenario.model_copy(
        update={
            "arrivals": tuple(map(drawn, scenario.arrivals)),
            "endpoints": tuple(map(profiled, scenario.endpoints)),
            "physics": scenario.physics.model_copy(update={"core_trial_noise_thousandths": min(1000, noise)}),
        }
    )


def _off(arrival: Arrival, option: Option, times: float, fields: Collection[str]) -> Estimate:
    """Return an estimate of an option that is so many times its truth in some fields."""
    truth = {name: getattr(option.demand if name in OF_DEMAND else option, name) for name in fields}
    if "run_time_ms" in truth:
        truth["run_time_ms"] = arrival.actual_ms(option.id)
    if "gpu_memory_mib" in truth and arrival.actual_gpu_memory_mib is not None:
        truth["gpu_memory_mib"] = arrival.actual_gpu_memory_mib
    out = {
        name: max(1, round(value / times if name == "rate_milli" else value * times))
        for name, value in truth.items()
        if value
    }
    if "gpu_utilisation_percent" in out:
        out["gpu_utilisation_percent"] = min(100, out["gpu_utilisation_percent"])
    return Estimate(**out)


def _endpoint(endpoint: Endpoint, factor: float) -> Endpoint:
    scaled = {
        kind: replica.model_copy(
            update={"profiled_rate_milli": _times(replica.rate_milli, replica.profiled_rate_milli, factor)}
        )
        for kind, replica in (("gpu", endpoint.gpu), ("cpu", endpoint.cpu))
        if replica is not None and replica.profiled_rate_milli is not None
    }
    return endpoint.model_copy(update=scaled) if scaled else endpoint


def _times(truth: int | None, believed: int, factor: float) -> int:
    if not truth or not believed:
        return believed
    return max(1, round(truth * math.exp(factor * math.log(believed / truth))))
