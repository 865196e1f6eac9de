"""Constraints and remedies in words, as text, JSON and Python show them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from placeopt.explain.records import Constraint, DomainsMin, Preempt, Remedies, WorkersMax
from placeopt.feasibility.requirement import NAMED, Requirement
from placeopt.model import Job, NodeConditions, Spread
from placeopt.model.machine import NODE_AMOUNTS

NAMES = {
    "utility": "utility",
    "queue": "queue",
    "hold": "room held",
    "drained": "drained nodes",
    "taints": "taints",
    "nodes_allowed": "nodes allowed",
    "nodes_excluded": "nodes excluded",
    "node_selector": "node selector",
    "node_affinity": "node affinity",
    **{amount.group: amount.name for amount in NODE_AMOUNTS},
    "network_bandwidth": "network bandwidth",
    "jobs_per_gpu": "jobs per GPU",
    "gpu_memory": "GPU memory",
    "gpu_model": "GPU model",
    "gpu_profile": "profile of the GPU",
    "gpu_share": "GPU share",
    "workers_per_node": "workers per node",
    "single_node": "single node",
    "gang": "gang",
    "gpu_count": "GPU count",
}

SHOWN = 6
"""Names listed before the rest is counted."""


def constraints(groups: Sequence[str], requirements: Sequence[Requirement], job: Job) -> tuple[Constraint, ...]:
    """Put groups into words; options that ask differently are joined by "or"."""
    out = []
    for group in groups:
        texts = dict.fromkeys(
            _asks(group, requirement, job) for requirement in requirements if group in requirement.groups
        )
        out.append(Constraint(group=group, name=constraint_name(group), asks=" or ".join(texts)))
    return tuple(out)


def constraint_name(group: str) -> str:
    """Return the name of a group of constraints; of splits the level, of a named resource its name."""
    return NAMES.get(group, group.removeprefix("split:").removeprefix(NAMED))


def listed(words: Sequence[str]) -> str:
    """Join words as in a sentence: "a, b and c"."""
    return "".join(words) if len(words) < 2 else f"{', '.join(words[:-1])} and {words[-1]}"


def does_not_fit(reason: str, names: Sequence[str]) -> str:
    """Say that a job does not fit, and which constraints, by name, cannot hold together."""
    beside = "the running jobs that must stay" if reason == "conflict" else "the plan"
    rules = f"by {names[0]} alone" if len(names) == 1 else f"{listed(names)} cannot hold together" if names else ""
    return f"does not fit beside {beside}{': ' if rules else ''}{rules}"


def _asks(group: str, requirement: Requirement, job: Job) -> str:
    many = requirement.most > 1
    each = " a worker" if many else ""
    units = (*(amount.unit for amount in NODE_AMOUNTS), *requirement.named)
    amounts = zip(requirement.resources, requirement.demand, units, strict=True)
    texts = {
        "utility": f"utility of at least {job.utility_min_thousandths}/1000",
        "queue": f"quota of queue {job.queue!r}",
        "hold": f"room beside {_some_names(sorted(requirement.holds))}",
        "drained": "no drained node",
        **condition_words(job),
        **{resource: f"{amount:,} {unit}{each}" for resource, amount, unit in amounts},
        "network_bandwidth": f"{requirement.network_mbps:,} MB/s{each}",
        "jobs_per_gpu": f"at most {count(requirement.jobs_per_gpu or 0, 'job')} on a GPU",
        "gpu_memory": f"{requirement.gpu_memory_mib:,} MiB of each GPU",
        "gpu_model": " or ".join(requirement.gpu_models),
        "gpu_profile": requirement.gpu_profile or "a GPU that jobs without a profile take",
        "gpu_share": "whole GPUs" if requirement.milli == 1000 else f"{requirement.milli}/1000 of a GPU",
        "workers_per_node": f"at most {requirement.workers_per_node} on a node",
        "single_node": f"all {requirement.fewest} workers on one node",
        "gang": f"all {requirement.most} workers"
        if requirement.fewest == requirement.most
        else f"at least {requirement.fewest} workers",
        "gpu_count": f"{count(requirement.gpus, 'GPU')}{each}",
    }
    return texts[group] if group in texts else _split(group.removeprefix("split:"), requirement)


def condition_words(job: Job) -> dict[str, str]:
    """Return what a job asks of nodes, by the groups of constraints that it may be."""
    return {
        "taints": f"no taint but {', '.join(one.text for one in job.conditions.tolerations)}"
        if job.conditions.tolerations
        else "no tainted node",
        **_stated(job.conditions),
    }


def group_condition_words(conditions: NodeConditions) -> str:
    """Return what a group asks of nodes."""
    return "; ".join(filter(None, _stated(conditions).values())) or "tolerations"


def _stated(asks: NodeConditions) -> dict[str, str]:
    terms = (" and ".join(expression.text for expression in term) or "no node" for term in asks.node_affinity)
    allowed = asks.nodes_allowed
    return {
        "nodes_allowed": "" if allowed is None else f"node {_some(allowed)}" if allowed else "no node",
        "nodes_excluded": f"not node {_some(asks.nodes_excluded)}" if asks.nodes_excluded else "",
        "node_selector": ", ".join(f"{label}={value}" for label, value in asks.node_selector.items()),
        "node_affinity": " or ".join(terms),
    }


def _some_names(names: Sequence[str]) -> str:
    """Return the first names, and how many there are beside them."""
    more = [f"{len(names) - SHOWN} more"] if len(names) > SHOWN else []
    return listed([*map(repr, names[:SHOWN]), *more]) if names else "nothing"


def _split(level: str, requirement: Requirement) -> str:
    texts = []
    for split in requirement.splits:
        if split.level == level:
            equal = "" if split.workers is None else f", {split.workers} workers in each"
            texts.append(f"in exactly {split.domains}{equal}")
    texts += [spread_words(spread) for spread in requirement.spread if spread.level == level]
    return " and ".join([*texts, *(["all GPUs in one"] if level == requirement.part_level else [])])


def spread_words(spread: Spread) -> str:
    """Return what a spread asks of each domain."""
    said = [
        (spread.segment, f"segments of {spread.segment}"),
        (spread.workers_max, f"at most {count(spread.workers_max or 0, 'worker')}"),
        (spread.skew_max, f"a skew of at most {spread.skew_max}"),
    ]
    return ", ".join(words for number, words in said if number is not None)


def count(number: int, noun: str) -> str:
    """Write a number and its noun: 1 GPU, 2 GPUs."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def sentences(offered: Remedies, requirements: Sequence[Requirement]) -> dict[str, str]:
    """Return remedy -> sentence, for those that exist."""
    texts = {}
    if offered.workers_max is not None:
        texts["workers_max"] = _fewer(offered.workers_max, requirements)
    if offered.domains_min:
        texts["domains_min"] = "; ".join(_other(remedy, requirements) for remedy in offered.domains_min)
    if offered.level is not None:
        where = "only the whole cluster" if offered.level == "cluster" else f"one {offered.level}"
        texts["level"] = f"{where} takes all its workers"
    if offered.preempt is not None:
        texts["preempt"] = _preempted(offered.preempt, requirements)
    if offered.changes:
        texts["changes"] = "; or ".join(one.change for one in offered.changes)
    return texts


def _fewer(remedy: WorkersMax, requirements: Sequence[Requirement]) -> str:
    requirement = next(requirement for requirement in requirements if requirement.option == remedy.option)
    places = ["on one node"] if requirement.on_one_node else []
    places += [f"in {_domains(split.domains, split.level)}" for split in requirement.splits]
    where = listed(places) if places else "that fits"
    return f"largest gang {where}: {count(remedy.workers, 'worker')}, where it asks for {remedy.asked}" + _in(
        remedy.option, requirements
    )


def _other(remedy: DomainsMin, requirements: Sequence[Requirement]) -> str:
    return f"{_domains(remedy.domains, remedy.level)} would be enough, where it asks for {remedy.asked}" + _in(
        remedy.option, requirements
    )


def _preempted(remedy: Preempt, requirements: Sequence[Requirement]) -> str:
    policy = "" if remedy.allowed else ", more than policy.changes.preemptions_max allows"
    who = _some(victim.job for victim in remedy.jobs)
    return (
        f"without {who} it fits, at the price of {remedy.price:,} in value{policy}"
        + _in(remedy.option, requirements)
        + _sure(remedy.proven)
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
