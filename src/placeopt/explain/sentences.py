"""Every remedy in a sentence of its own, as text, JSON and Python show it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from placeopt.explain.records import DomainsMin, GpusToFree, Preempt, Remedies, WorkersMax
from placeopt.explain.words import count, listed
from placeopt.feasibility.requirement import Requirement

SHOWN = 6
"""Names listed before the rest is counted."""


def sentences(offered: Remedies, requirements: Sequence[Requirement]) -> dict[str, str]:
    """Return remedy -> sentence, for those that exist."""
    said = {}
    if offered.workers_max is not None:
        said["workers_max"] = _fewer(offered.workers_max, requirements)
    if offered.domains_min:
        said["domains_min"] = "; ".join(_other(one, requirements) for one in offered.domains_min)
    if offered.level is not None:
        where = "only the whole cluster" if offered.level == "cluster" else f"one {offered.level}"
        said["level"] = f"{where} takes all its workers"
    if offered.gpus_to_free is not None:
        said["gpus_to_free"] = _freed(offered.gpus_to_free, requirements)
    if offered.preempt is not None:
        said["preempt"] = _preempted(offered.preempt, requirements)
    return said


def _fewer(found: WorkersMax, requirements: Sequence[Requirement]) -> str:
    requirement = next(requirement for requirement in requirements if requirement.option == found.option)
    places = ["on one node"] if requirement.single_node else []
    places += [f"in {_domains(split.domains, split.level)}" for split in requirement.splits]
    where = listed(places) if places else "that fits"
    return f"largest gang {where}: {count(found.workers, 'worker')}, where it asks for {found.asked}" + _in(
        found.option, requirements
    )


def _other(found: DomainsMin, requirements: Sequence[Requirement]) -> str:
    return f"{_domains(found.domains, found.level)} would do, where it asks for {found.asked}" + _in(
        found.option, requirements
    )


def _freed(found: GpusToFree, requirements: Sequence[Requirement]) -> str:
    where = _some(f"{number} on {node}" for node, number in Counter(gpu.node for gpu in found.gpus).items())
    return (
        f"{count(len(found.gpus), 'GPU')} freed would do: {where}"
        + _in(found.option, requirements)
        + _sure(found.proven)
    )


def _preempted(found: Preempt, requirements: Sequence[Requirement]) -> str:
    policy = "" if found.allowed else ", more than policy.changes.preemptions_max allows"
    who = _some(one.job for one in found.jobs)
    return (
        f"without {who} it fits, for {found.price:,} in value{policy}"
        + _in(found.option, requirements)
        + _sure(found.proven)
    )


def _domains(number: int, level: str) -> str:
    return f"one {level}" if number == 1 else count(number, level)


def _in(option: str, requirements: Sequence[Requirement]) -> str:
    return f" (in option {option!r})" if len(requirements) > 1 else ""


def _sure(proven: bool) -> str:
    return "" if proven else " (perhaps less)"


def _some(names: Iterable[str]) -> str:
    names = list(names)
    return listed(names if len(names) <= SHOWN + 1 else [*names[:SHOWN], f"{len(names) - SHOWN:,} more"])
