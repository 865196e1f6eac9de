"""What owners state of their jobs in marks, since hosts have no field for it: kind, profile, what it will use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from placeopt.documents.faults import make_record
from placeopt.errors import BadInput
from placeopt.model import Communication, Demand, Job, Option

OF_JOB = ("kind", "profile")
COUNTS_OF_JOB = ("utility_min_thousandths",)
OF_OPTION = ("run_time_ms", "latency_ms")
OF_DEMAND = ("gpu_utilisation_percent", "gpu_memory_mib")
WEIGHT = "communication_weight"
MAX_DIGITS = 18
"""Of a value: more than any field takes, and far less than Python's own limit of what it reads."""
UNREAD_MARKS = "marks of its owner that cannot be read: it counts as its host lists it"
STATED = (*OF_JOB, *COUNTS_OF_JOB, WEIGHT, *OF_OPTION, *OF_DEMAND)
"""Names of marks: of the fields of jobs, options and demands that they set, and of ``communication.weight``."""


def with_stated(job: Job, marks: Iterable[Mapping[str, str]], where: str) -> Job:
    """
    Return a job as its owner states it to be.

    Parameters
    ----------
    job
        As its host lists it.
    marks
        Of each of its parts, by name; those in `STATED` count.
    where
        Entry of the list, for messages.

    Raises
    ------
    BadInput
        If a mark has no value of its field, or two parts of the job state different ones.
    """
    stated: dict[str, str] = {}
    for part in marks:
        for name in STATED:
            if name in part and stated.setdefault(name, part[name]) != part[name]:
                raise BadInput(f"{where}: parts of a job state different values of its mark {name}; state one")
    if not stated:
        return job
    of_demand = {name: _count(stated, name, where) for name in OF_DEMAND if name in stated}
    of_option = {name: _count(stated, name, where) for name in OF_OPTION if name in stated}
    of_job: dict[str, object] = {name: stated[name] for name in OF_JOB if name in stated}
    of_job |= {name: _count(stated, name, where) for name in COUNTS_OF_JOB if name in stated}
    if WEIGHT in stated:
        fields = {**dict(job.communication), "weight": _count(stated, WEIGHT, where)}
        of_job["communication"] = make_record(Communication, where, **fields)
    options = tuple(_with_fields(option, of_option, of_demand, where) for option in job.options)
    return make_record(Job, where, **{**dict(job), **of_job, "options": options})


def without_gpu_memory(job: Job) -> Job:
    """Return a job that asks for no GPU memory: where GPUs do not state theirs, none would take one that does."""
    if not any(option.demand.gpu_memory_mib for option in job.options):
        return job
    asks = {"gpu_memory_mib": 0}
    options = (one.model_copy(update={"demand": one.demand.model_copy(update=asks)}) for one in job.options)
    return job.model_copy(update={"options": tuple(options)})


def _with_fields(option: Option, own: Mapping[str, int], of_demand: Mapping[str, int], where: str) -> Option:
    """Return an option with these fields; unlike groups keep the demands that they have."""
    fields = {**dict(option), **own}
    if of_demand and not option.groups:
        fields["demand"] = make_record(Demand, where, **{**dict(option.demand), **of_demand})
    return make_record(Option, where, **fields)


def _count(stated: Mapping[str, str], name: str, where: str) -> int:
    text = stated[name]
    if not (text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS):
        raise BadInput(f"{where}: mark {name}: {text!r}, expected a whole number")
    return int(text)
