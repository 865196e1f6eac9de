"""Steps carried out on a copy of a round, and what came of them."""

from __future__ import annotations

from collections.abc import Sequence

from placeopt.arguments import checked
from placeopt.edits.records import checked_round
from placeopt.edits.step import Step
from placeopt.errors import BadInput, Fault
from placeopt.model import Instance


@checked
def apply(instance: Instance, steps: Sequence[Step]) -> Instance:
    """
    Carry out steps, one after the other.

    Parameters
    ----------
    instance
        The round to change; it stays as it is.
    steps
        As a `Patch` holds them.

    Returns
    -------
    Instance
        The changed round. Running jobs that a step displaces wait.

    Raises
    ------
    BadInput
        If a step names something unknown, or leads to a round that contradicts itself; names step and field.
    """
    try:
        return checked_round(_made(instance, steps))
    except (BadInput, LookupError, TypeError, ValueError):
        for number, step in enumerate(steps):  # check the round after every step, so that the one at fault is named
            try:
                instance = checked_round(step.edited(instance))
            except BadInput as error:
                raise at_step(number, step, error) from None
        return instance


def _made(instance: Instance, steps: Sequence[Step]) -> Instance:
    for step in steps:
        instance = step.edited(instance)
    return instance


def at_step(number: int, step: Step, error: BadInput) -> BadInput:
    """Return the error of a step with the place of the step before its own."""
    where = f"steps[{number}]"
    raised = BadInput(f"{where} ({step.do}): {error}")
    raised.faults = tuple(
        Fault(f"{where}.{fault.where}" if fault.where else where, fault.what)
        for fault in error.faults or (Fault("", str(error)),)
    )
    return raised


def displaced(before: Instance, after: Instance) -> tuple[str, ...]:
    """Return the jobs that ran before some steps and wait after them."""
    runs, there = {held.job for held in after.running}, {job.id for job in after.jobs}
    return tuple(held.job for held in before.running if held.job not in runs and held.job in there)


def added(before: Instance, after: Instance) -> tuple[str, ...]:
    """Return the ids of the nodes that steps have added."""
    known = {node.id for node in before.cluster.nodes}
    return tuple(node.id for node in after.cluster.nodes if node.id not in known)
