"""Variants of a trace: policies, drawn arrivals, and the steps that vary a round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import ValidationError

from placeopt.documents.faults import validation_fault
from placeopt.edits import Patch, ScaleDemand, Step, apply, edit_instance, job_arriving_at, more_nodes
from placeopt.errors import BadArgument, BadInput
from placeopt.model import Job
from placeopt.scheduling.policy import Scheduling
from placeopt.simulation.records.scenario import Arrival, Scenario
from placeopt.whatif import parse_variants


@dataclass(frozen=True)
class ReplayVariant:
    """One setting: its name, and the scenario and policy to simulate."""

    name: str
    scenario: Scenario
    scheduling: Scheduling


def parse_settings(
    text: str,
    scenario: Scenario,
    scheduling: Scheduling,
    *,
    policies: Callable[[str], Scheduling],
    patches: Callable[[str], Patch],
) -> tuple[str, list[ReplayVariant]]:
    """
    Read the varied quantity; return its name and the settings.

    Parameters
    ----------
    text
        ``policy=A,B``: under each of them. All else as `placeopt.whatif.parse_variants` reads it.
    policies, patches
        Return the policy or patch of a name.

    Raises
    ------
    BadInput
        If it is none of these, names something unknown, or has more than 1,000 settings.
    """
    if not text.startswith("policy="):
        round_ = edit_instance(scenario.instance(), policy=scheduling.policy)
        variants = parse_variants(text, round_, patches=patches)
        found = [
            ReplayVariant(one.name, *_patched(scenario, scheduling, one.name, one.steps)) for one in variants.settings
        ]
        return variants.varied, found
    names = [word for word in text.removeprefix("policy=").split(",") if word]
    if not names or len(set(names)) < len(names):
        raise BadArgument(f"{text!r}: expected policies, each once, separated by commas")
    return "policy", [ReplayVariant(name, scenario, policies(name)) for name in names]


def with_added_nodes(scenario: Scenario, node_type: str, count: int) -> Scenario:
    """Return the scenario with more nodes of a machine type, or copies of a node; raises `BadInput`."""
    more = more_nodes(scenario.instance(), node_type, max(1, count))
    return _edited(scenario, [more]) if count else scenario


def patch_scenario(scenario: Scenario, scheduling: Scheduling, *patches: Patch) -> tuple[Scenario, Scheduling]:
    """
    Carry out the steps of patches on a scenario and its policy; `BadInput` names patch and step.

    Nodes, jobs, the policy of rounds and quotas change as on an instance; ``scale_arrivals`` changes when jobs come.
    Jobs that ran at the beginning on removed nodes wait from the beginning. ``scale_demand`` applies to rounds only.
    """
    for patch in patches:
        scenario, scheduling = _patched(scenario, scheduling, patch.name, patch.steps)
    return scenario, scheduling


def _patched(
    scenario: Scenario, scheduling: Scheduling, name: str, steps: Sequence[Step]
) -> tuple[Scenario, Scheduling]:
    try:
        return edit_scenario(scenario, scheduling, steps)
    except BadInput as error:
        raise BadInput(f"{name}: {error}") from None


def edit_scenario(scenario: Scenario, scheduling: Scheduling, steps: Sequence[Step]) -> tuple[Scenario, Scheduling]:
    """Carry out steps; raises `BadInput` where that is impossible."""
    for number, step in enumerate(steps):
        if isinstance(step, ScaleDemand):
            what = "draws waiting jobs of a round; use scale_arrivals for jobs that arrive"
            raise BadInput(f"steps[{number}] ({step.do}): {what}")
    round_ = edit_instance(scenario.instance(), policy=scheduling.policy)
    after = apply(round_, steps)
    if after.jobs == round_.jobs:
        arrivals = scenario.arrivals
    else:
        before = {arrival.job.id: arrival for arrival in scenario.arrivals}
        arrivals = tuple(_changed(before[job.id], job) if job.id in before else _arrival(job) for job in after.jobs)
    changed = scenario.model_copy(update={"cluster": after.cluster, "running": after.running, "arrivals": arrivals})
    return changed, scheduling.model_copy(update={"policy": after.policy})


def _edited(scenario: Scenario, steps: Sequence[Step]) -> Scenario:
    return edit_scenario(scenario, Scheduling(name="none"), steps)[0]


def _changed(arrival: Arrival, job: Job) -> Arrival:
    changed = with_job(arrival, job)
    if job.options == arrival.job.options:
        return changed
    try:
        return Arrival(**{name: getattr(changed, name) for name in Arrival.model_fields})
    except ValidationError as error:
        raise validation_fault(Arrival, error, f"job {job.id!r} as it is then") from None


def _arrival(job: Job) -> Arrival:
    try:
        return Arrival(job=job)
    except ValueError:
        raise BadInput("a job that arrives must say how long it runs: options[0].run_time_ms") from None


def with_drawn_arrivals(scenario: Scenario, seed: int) -> Scenario:
    """
    Return the scenario with arrivals drawn by a seed; it needs two or more.

    Each new arrival is a job drawn from the trace with replacement, at an independent time: uniform between a drawn
    arrival of the trace and the next one. That keeps the rate over the day and the mix of jobs, but not that users
    submit similar jobs in a row. Jobs that run at the beginning stay.
    """
    begin = {held.job for held in scenario.running}
    arriving = [arrival for arrival in scenario.arrivals if arrival.job.id not in begin]
    if len(arriving) < 2:
        raise BadInput(f"{scenario.name}: {len(arriving)} jobs arrive; arrivals are drawn from two or more")
    times = np.sort(np.array([arrival.job.arrival_ms for arrival in arriving], dtype=np.int64))
    rng = np.random.default_rng(seed)
    gap = rng.integers(len(times) - 1, size=len(arriving))
    moments = times[gap] + np.floor(rng.random(len(arriving)) * (times[gap + 1] - times[gap])).astype(np.int64)
    chosen = rng.integers(len(arriving), size=len(arriving))
    copies = []
    for number, (index, moment) in enumerate(zip(chosen.tolist(), np.sort(moments).tolist(), strict=True)):
        drawn = arriving[index]
        job = job_arriving_at(drawn.job, moment).model_copy(update={"id": f"{drawn.job.id}~{number}"})
        copies.append(with_job(drawn, job))
    stay = [arrival for arrival in scenario.arrivals if arrival.job.id in begin]
    return scenario.model_copy(update={"arrivals": (*stay, *copies)})


def with_job(arrival: Arrival, job: Job) -> Arrival:
    """Return the arrival of a changed job; a service stays as long as before, whenever it comes."""
    by, leaves_ms = job.arrival_ms - arrival.job.arrival_ms, arrival.leaves_ms
    return arrival.model_copy(update={"job": job, "leaves_ms": None if leaves_ms is None else leaves_ms + by})
