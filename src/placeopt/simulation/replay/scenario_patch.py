"""Patches of scenarios: the steps of what-if, on a cluster and its arrivals."""

from __future__ import annotations

from pydantic import ValidationError

from placeopt.errors import BadInput
from placeopt.formats.faults import validation_fault
from placeopt.model import Job
from placeopt.model.scenario import Arrival, Scenario
from placeopt.model.scheduling import Scheduling
from placeopt.simulation.replay.drawn_arrivals import with_job
from placeopt.whatif.instance_edit import Patched, edit_instance
from placeopt.whatif.patch import apply_step
from placeopt.whatif.steps import Patch, ScaleDemand, Step


def patch_scenario(scenario: Scenario, scheduling: Scheduling, *patches: Patch) -> tuple[Scenario, Scheduling]:
    """
    Carry out the steps of patches on a scenario and its policy.

    Nodes, jobs, the policy of rounds and quotas change as on an instance; ``scale_arrivals`` changes when jobs come.
    Jobs that ran at the beginning on removed nodes wait from the beginning.

    Raises
    ------
    BadInput
        If a step cannot be carried out, or applies to rounds only (``scale_demand``); names patch and step.
    """
    for patch in patches:
        for number, step in enumerate(patch.steps):
            try:
                scenario, scheduling = apply_scenario_step(scenario, scheduling, step)
            except BadInput as error:
                raise BadInput(f"{patch.name}: steps[{number}] ({step.do}): {error}") from None
    return scenario, scheduling


def apply_scenario_step(scenario: Scenario, scheduling: Scheduling, step: Step) -> tuple[Scenario, Scheduling]:
    """Carry out one step; raises `BadInput` where that is impossible."""
    if isinstance(step, ScaleDemand):
        raise BadInput("draws waiting jobs of a round; use scale_arrivals for jobs that arrive")
    round_ = edit_instance(scenario.instance(), policy=scheduling.policy)
    after = apply_step(Patched(round_), step).instance
    if after.jobs == round_.jobs:
        arrivals = scenario.arrivals
    else:
        before = {arrival.job.id: arrival for arrival in scenario.arrivals}
        arrivals = tuple(_changed(before[job.id], job) if job.id in before else _arrival(job) for job in after.jobs)
    changed = scenario.model_copy(update={"cluster": after.cluster, "running": after.running, "arrivals": arrivals})
    return changed, scheduling.model_copy(update={"policy": after.policy})


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
