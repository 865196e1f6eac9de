"""Variants of a round or a trace, by name: what is varied, and the steps of each setting."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from placeopt.arguments import checked
from placeopt.documents.faults import make_record
from placeopt.edits import (
    AddDomains,
    ChangeQueue,
    Patch,
    ReplaceNodes,
    ScaleArrivals,
    ScaleDemand,
    Step,
    free_name,
    more_nodes,
)
from placeopt.edits.levels import levels_of, nodes_under
from placeopt.edits.records import merged
from placeopt.errors import BadArgument, BadInput
from placeopt.model import Instance, Policy

MOST = 1000
"""Variants of a question, and percent of a rate or a demand."""
FORM = re.compile(r"(?P<what>[a-z]+)(?::(?P<name>[^=]+))?=(?P<settings>.+)", re.ASCII)
RANGE = re.compile(r"\s*(\d{1,9})(?:-(\d{1,9})(?::([1-9]\d{0,8}))?)?\s*", re.ASCII)
GPU_MILLI = 1000
"""A unit of quota: one GPU."""
KINDS = {
    "nodes": "nodes:TYPE=0-10",
    "demand": "demand=80-130:10",
    "arrivals": "arrivals=80-130:10",
    "quota": "quota:QUEUE=8,16",
    "machine": "machine:OLD=NEW",
    "more": "more=node,rack,quota",
    "patch": "patch=FILE,FILE",
}
"""What may be varied -> an example."""
NAMED = ("nodes", "quota", "machine")
"""Those that are of something."""


class Variant(NamedTuple):
    """One setting; ``grows``: what could be placed before can be placed in it, too."""

    name: str
    steps: Sequence[Step]
    grows: bool = False


class Variants(NamedTuple):
    """What is varied, as ``nodes:TYPE`` or ``demand``, and its settings."""

    varied: str
    settings: tuple[Variant, ...]


@checked
def parse_variants(
    text: str, base: Instance, *, seed: int = 0, patches: Callable[[str], Patch] | None = None
) -> Variants:
    """
    Read what is varied of a round.

    Parameters
    ----------
    text
        ``nodes:TYPE=0-10``: nodes more of a type, or copies of a node. ``demand=80-130:10``: percent of the GPUs that
        waiting jobs are drawn for. ``arrivals=80-130:10``: percent of a trace's rate. ``quota:QUEUE=8,16`` or
        ``quota:QUEUE@FLAVOR=8``: GPUs. ``machine:OLD=NEW,NEW``: all nodes of a type are of another one.
        ``more=node,rack,quota``: one more node of each type, one more domain of each composition, one GPU more of each
        quota. ``patch=F,G``: the steps of patches.
    base
        The round, or a trace as one.
    seed
        Of the draw of jobs.
    patches
        Returns the patch of a name; None: there are none.

    Returns
    -------
    Variants
        What is varied, and the steps of each setting, by its name.

    Raises
    ------
    BadInput
        If it is none of these, names something unknown, or has more than 1,000 settings.
    """
    match = FORM.fullmatch(text)
    if match is None or match["what"] not in KINDS or (match["what"] in NAMED) != bool(match["name"]):
        raise BadArgument(f"vary: {text!r}, expected one of {', '.join(KINDS.values())}")
    what, name, words = match["what"], match["name"] or "", match["settings"]
    if what in ("nodes", "demand", "arrivals", "quota"):
        variants = [_numbered(base, what, name, number, seed) for number in parse_range("vary", words)]
    else:
        each = [word for word in words.split(",") if word]
        if not each or len(set(each)) < len(each):
            raise BadArgument(f"{text!r}: expected names, each once, separated by commas")
        if what == "machine":
            variants = [Variant(new, [_exchanged(base, name, new)]) for new in each]
        elif what == "more":
            variants = [variant for of in each for variant in _one_more(base, of)]
        elif patches is None:
            raise BadArgument(f"vary: {text!r}; there are no patches here")
        else:
            variants = [Variant(path, patches(path).steps) for path in each]
    if len(variants) > MOST:
        raise BadArgument(f"{text!r}: {len(variants):,} variants, expected at most {MOST:,}")
    return Variants(f"{what}:{name}" if name else what, tuple(variants))


def parse_range(argument: str, words: str) -> tuple[int, ...]:
    """Return the numbers of ``0-10``, ``80-130:10`` or ``8,16,32``, each once; messages name ``argument``."""
    settings: dict[int, None] = {}
    for part in words.split(","):
        numbers = RANGE.fullmatch(part)
        if numbers is None:
            raise BadArgument(f"{argument}: {part!r} is neither a number nor a range such as 0-10 or 80-130:10")
        first, last = int(numbers[1]), int(numbers[2] or numbers[1])
        steps = range(first, last + 1, int(numbers[3] or 1))
        if not steps or len(settings) + len(steps) > MOST:
            raise BadArgument(f"{argument}: {part!r} has {len(steps):,} settings, expected 1 to {MOST:,} in all")
        settings.update(dict.fromkeys(steps))
    return tuple(settings)


def _numbered(base: Instance, what: str, name: str, number: int, seed: int) -> Variant:
    """Return the variant of one number."""
    if what == "nodes":
        more = more_nodes(base, name, max(1, number))
        return Variant(str(number), [more] if number else [], grows=True)
    if what == "quota":
        quotas = gpu_quotas(base.policy)
        if name not in quotas:
            raise BadArgument(f"vary: no queue {name!r}; there are: {', '.join(list(quotas)[:20]) or 'none'}")
        return Variant(str(number), [set_gpu_quota(base.policy, name, GPU_MILLI * number)])
    least = 1 if what == "arrivals" else 0
    if not least <= number <= MOST:
        raise BadArgument(f"{what}: {number} percent, expected {least} to {MOST}")
    if what == "demand":
        return Variant(str(number), [ScaleDemand(do="scale_demand", percent=number, seed=seed)])
    return Variant(str(number), [ScaleArrivals(do="scale_arrivals", percent=number)] if number != 100 else [])


def _exchanged(base: Instance, old: str, new: str) -> ReplaceNodes:
    """Return the step after which all nodes of a machine type are of another one."""
    types = [machine.id for machine in base.cluster.machines]
    for name in (old, new):
        if name not in types:
            raise BadArgument(f"vary: no machine type {name!r}; there are: {', '.join(types[:20])}")
    return make_record(ReplaceNodes, "machine", do="replace_nodes", of=old, machine=new)


def _one_more(base: Instance, what: str) -> Iterator[Variant]:
    """Yield one more of a kind: of nodes of each machine type, of GPUs of each quota, or of domains of a level."""
    if what == "node":
        for machine in dict.fromkeys(node.machine for node in base.cluster.nodes):
            yield Variant(f"node {machine}", [more_nodes(base, machine)], grows=True)
    elif what == "quota":
        limited = {name: milli for name, milli in gpu_quotas(base.policy).items() if milli is not None}
        if not limited:
            raise BadInput("quota: no queue of the policy has a quota of GPUs")
        for name, milli in limited.items():
            yield Variant(f"quota {name}", [set_gpu_quota(base.policy, name, milli + GPU_MILLI)], grows=True)
    elif what in levels_of(base):
        yield from _one_more_domain(base, what)
    else:
        levels = ", ".join(levels_of(base)[1:]) or "none here"
        raise BadArgument(f"more: {what!r}, expected node, quota, or a level of the network: {levels}")


def _one_more_domain(base: Instance, level: str) -> Iterator[Variant]:
    """Yield a copy, without running jobs, of the first domain of each composition."""
    machine = {node.id: node.machine for node in base.cluster.nodes}
    domains = {domain.id: domain for domain in base.cluster.domains}
    under = nodes_under(base, level)
    for name in {tuple(sorted(map(machine.__getitem__, under[name]))): name for name in reversed(under)}.values():
        copy = domains[name].model_copy(update={"id": free_name(f"{name}+", domains)})
        copies = [
            more_nodes(base, node, mark=f"-{number}").model_copy(update={"domain": copy.id})
            for number, node in enumerate(under[name])
        ]
        yield Variant(f"{level} {name}", [AddDomains(do="add_domains", domains=(copy,)), *copies], grows=True)


def gpu_quotas(policy: Policy) -> dict[str, int | None]:
    """Return the quota of GPUs, in thousandths, of each queue, and as ``QUEUE@FLAVOR`` those by flavor."""
    by_flavor = {f"{queue.id}@{of.flavor}": of.quota.gpu_milli for queue in policy.queues for of in queue.flavors}
    return {**by_flavor, **{queue.id: queue.quota.gpu_milli for queue in policy.queues}}


def set_gpu_quota(policy: Policy, name: str, gpu_milli: int) -> ChangeQueue:
    """Return the step that changes one of `gpu_quotas`."""
    changed: dict[str, Any] = {"quota": {"gpu_milli": gpu_milli}}
    if all(queue.id != name for queue in policy.queues):
        queue = next(one for one in policy.queues for of in one.flavors if name == f"{one.id}@{of.flavor}")
        flavors = [merged(of, changed, "flavors") if name == f"{queue.id}@{of.flavor}" else of for of in queue.flavors]
        fields = {"flavors": [of.model_dump(mode="json", exclude_defaults=True) for of in flavors]}
        return ChangeQueue(do="change_queue", queue=queue.id, fields=fields)
    return ChangeQueue(do="change_queue", queue=name, fields=changed)
