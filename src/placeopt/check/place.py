"""May the job stand on these nodes and GPUs, and do its workers lie together and apart as its option says?"""

from placeopt.check.case import CheckCase, gpu_number
from placeopt.check.directory import PlacedJob
from placeopt.model import Node, Split


def check_where(case: CheckCase) -> None:
    """
    Node selector, allowed nodes, taints, drained nodes and GPU models.

    A running job that stays where it is, whole or shrunk, is exempt from all but the GPU model: labels, taints and
    the drained flag say where work may start. A moved job starts again, even on a part of its own GPUs.
    """
    marked = bool(case.directory.marked)
    for held in case.held:
        job = held.job
        choosy = bool(job.node_selector) or job.nodes_allowed is not None
        models = held.option.demand.gpu_models
        if not (choosy or models or marked):
            continue
        stays = case.stays(job.id)
        for assignment in held.placement.assignments:
            node = case.nodes.get(assignment.node)
            if node is None:
                continue
            if (choosy or node.taints or node.drained) and not stays:
                _check_node(case, held, node)
            if models:
                gpus = case.machine_of[node.id].gpus
                for gpu in map(gpu_number, assignment.gpus):
                    if 0 <= gpu < len(gpus) and gpus[gpu].model not in models:
                        case.add(
                            "gpu_model",
                            f"job {held.job.id!r} on node {node.id!r}",
                            f"GPU {gpu} is a {gpus[gpu].model!r}, allowed are {', '.join(map(repr, models))}",
                            by=[job.id],
                            node=node.id,
                        )


def _check_node(case: CheckCase, held: PlacedJob, node: Node) -> None:
    job = held.job
    where = f"job {job.id!r} on node {node.id!r}"

    def add(rule: str, what: str) -> None:
        case.add(rule, where, what, by=[job.id], node=node.id)

    if node.drained:
        add("drained", "the node is drained and takes no new work")
    for taint in node.taints:
        if taint not in job.tolerations:
            add("taints", f"the job does not tolerate {taint!r}")
    if job.nodes_allowed is not None and node.id not in job.nodes_allowed:
        add("nodes_allowed", f"not among the {len(job.nodes_allowed)} nodes allowed")
    if job.node_selector:
        domains = case.domains_of(node.id)
        for key, wanted in job.node_selector.items():
            label = node.labels.get(key, domains.get(key))
            if label != wanted:
                add("node_selector", f"label {key!r} is {label!r}, the job asks for {wanted!r}")


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
        node = assignment.node
        above = case.domains_of(node) if node in case.nodes else {}
        domain = node if split.level == "node" else above.get(split.level)
        if domain is None:
            what = f"has workers on node {node!r}, which is in no {split.level}"
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
