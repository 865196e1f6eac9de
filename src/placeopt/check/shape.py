"""Do a job's workers lie together and apart as its option says?"""

from placeopt.check.case import CheckCase, PlacedJob
from placeopt.model import Split


def check_shape(case: CheckCase) -> None:
    """
    Single node, workers per node, and splits over the domains of a level.

    A running job that lies otherwise may stand as it is, but not shrink to another shape that is not allowed either.
    """
    for held in case.held:
        option, assignments = held.option, held.placement.assignments
        if option.single_node and len(assignments) > 1:
            what = f"on {len(assignments)} nodes, must be on one"
            case.add("single_node", f"job {held.job.id!r}", what, by=_whole(case, held))
        if option.workers_per_node_max is not None:
            for assignment in assignments:
                if len(assignment.workers) > option.workers_per_node_max:
                    case.add(
                        "workers_per_node",
                        f"job {held.job.id!r} on node {assignment.node!r}",
                        f"{len(assignment.workers)} of at most {option.workers_per_node_max} workers",
                        by=_whole(case, held),
                        node=assignment.node,
                    )
        for split in option.splits:
            _check_split(case, held, split)


def _whole(case: CheckCase, held: PlacedJob) -> list[str] | None:
    """The job, as the one that breaks its shape, unless it is a new shape: that must be allowed."""
    return [held.job.id] if case.relation.get(held.job.id, "same") == "same" else None


def _check_split(case: CheckCase, held: PlacedJob, split: Split) -> None:
    where, by = f"job {held.job.id!r}", _whole(case, held)
    workers_in: dict[str, int] = {}
    for assignment in held.placement.assignments:
        if assignment.node not in case.nodes:
            continue
        domain = assignment.node if split.level == "node" else case.domains_of(assignment.node).get(split.level)
        if domain is None:
            what = f"has workers on node {assignment.node!r}, which is in no {split.level}"
            case.add("split", where, what, by=by)
        else:
            workers_in[domain] = workers_in.get(domain, 0) + len(assignment.workers)
    if len(workers_in) != split.domains:
        what = f"in {len(workers_in)} domains of level {split.level!r}, must be in {split.domains}"
        case.add("split", where, what, by=by)
    for domain, count in workers_in.items():
        if split.workers is not None and count != split.workers:
            what = f"{count} workers in {split.level} {domain!r}, must be {split.workers}"
            case.add("split", where, what, by=by)
