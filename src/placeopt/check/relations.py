"""Are jobs near those, and apart from those, that they say they must be?"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from placeopt.check.case import CheckCase
from placeopt.check.directory import workers_by_node
from placeopt.check.place import is_met
from placeopt.model import Job, Placement, Relation


@dataclass
class _Workers:
    """Workers of a job in domains of a level; those in none are at None."""

    job: Job
    stays: Counter[str | None] = field(default_factory=Counter)
    starts: Counter[str | None] = field(default_factory=Counter)


def check_relations(case: CheckCase) -> None:
    """Judge every relation that must hold, of what starts or moves; what runs and stays breaks none by itself."""
    holders: dict[Relation, set[str]] = {}
    jobs = [job for job, _, _ in case.known]
    if case.plan.asked is not None:
        jobs += [case.jobs[name] for name in case.directory.related if name in case.jobs]
    for job in jobs:
        for relation in job.relations:
            if relation.weight is None:
                holders.setdefault(relation, set()).add(job.id)
    if not holders:
        return
    on_nodes = {job.id: (job, *_by_node(case, job, placement)) for job, placement in _placed(case)}
    for relation, names in holders.items():
        workers = [
            _Workers(job, _by_domain(case, relation.level, stays), _by_domain(case, relation.level, starts))
            for job, stays, starts in on_nodes.values()
        ]
        having = [one for one in workers if one.job.id in names]
        chosen = [one for one in workers if _selects(relation, one.job)]
        (_check_apart if relation.kind == "apart" else _check_near)(case, relation, having, chosen)


def _placed(case: CheckCase) -> Iterator[tuple[Job, Placement]]:
    """Yield what the plan places, and what runs that a plan for some jobs does not name."""
    named = set()
    for job, _, placement in case.known:
        named.add(job.id)
        yield job, placement
    if case.plan.asked is not None:
        for name, running in case.directory.running.items():
            if name not in named and name in case.jobs:
                yield case.jobs[name], running


def _by_node(case: CheckCase, job: Job, placement: Placement) -> tuple[Counter[str], Counter[str]]:
    """Return the workers of a job on each node: those that stay, and those that start or move."""
    now = workers_by_node(placement)
    if case.stays(job.id):
        return now, Counter()
    if job.id not in case.directory.running or case.relation.get(job.id) != "grown":
        return Counter(), now
    before = workers_by_node(case.directory.running[job.id])
    return now & before, now - before


def _by_domain(case: CheckCase, level: str, on_node: Counter[str]) -> Counter[str | None]:
    found: Counter[str | None] = Counter()
    for name, count in on_node.items():
        node = case.nodes.get(name)
        labels = {} if node is None else case.directory.labels_of(node)
        found[name if level == "node" else labels.get(level)] += count
    return found


def _selects(relation: Relation, job: Job) -> bool:
    return all(is_met(expression, job.labels) for expression in relation.selector)


def _check_apart(case: CheckCase, relation: Relation, having: list[_Workers], chosen: list[_Workers]) -> None:
    """No worker of one side that starts beside another worker of the other side."""
    stays, starts = Counter[str | None](), Counter[str | None]()
    for one in chosen:
        stays.update(one.stays)
        starts.update(one.starts)
    selected = {one.job.id for one in chosen}
    for one in having:
        own = one.job.id in selected
        for domain in one.stays | one.starts:
            others = starts[domain] - own * one.starts[domain]
            if one.starts[domain]:
                others += stays[domain] - own * one.stays[domain]
            itself = own and one.starts[domain] > 0 and one.stays[domain] + one.starts[domain] > 1
            if domain is not None and (others or itself):
                where = f"job {one.job.id!r} in {relation.level} {domain!r}"
                beside = "another of its workers" if itself else f"job {_there(chosen, one, domain)!r}"
                case.add("apart", where, f"must be {relation.text}, is with {beside}")


def _there(chosen: list[_Workers], but: _Workers, domain: str) -> str:
    return next(one.job.id for one in chosen if one is not but and one.stays[domain] + one.starts[domain])


def _check_near(case: CheckCase, relation: Relation, having: list[_Workers], chosen: list[_Workers]) -> None:
    """All that starts with the relation is where selected workers stay or start without it, or in one more domain."""
    names = {one.job.id for one in having}
    anchored = {domain for one in chosen for domain in one.stays}
    anchored |= {domain for one in chosen if one.job.id not in names for domain in one.starts}
    closed = {domain for one in having for domain in one.starts} - (anchored - {None})
    seeds = {domain for one in chosen if one.job.id in names for domain in one.starts} - {None}
    ran = {domain for one in chosen if one.job.id in case.directory.running for domain in one.stays + one.starts}
    if len(closed) == 1 and closed <= seeds and ran <= closed | {None}:
        return
    for one in having:
        for domain in [domain for domain in one.starts if domain in closed]:
            where = f"job {one.job.id!r}" + ("" if domain is None else f" in {relation.level} {domain!r}")
            beside = "is in none" if domain is None else "is with none of them"
            case.add("near", where, f"must be {relation.text}, {beside}")
