"""May the job stand on these nodes and GPUs?"""

from placeopt.check.case import CheckCase, PlacedJob, gpu_number
from placeopt.model import Node


def check_where(case: CheckCase) -> None:
    """
    Node selector, allowed nodes, taints, drained nodes and GPU models.

    A running job that stays where it is, whole or shrunk, is exempt from all but the GPU model: labels, taints and
    the drained flag say where work may start. A moved job starts anew, even on a part of its own GPUs.
    """
    marked = case.directory.marked > 0
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
    if node.drained:
        case.add("drained", where, "the node is drained and takes no new work")
    for taint in node.taints:
        if taint not in job.tolerations:
            case.add("taints", where, f"the job does not tolerate {taint!r}")
    if job.nodes_allowed is not None and node.id not in job.nodes_allowed:
        case.add("nodes_allowed", where, f"not among the {len(job.nodes_allowed)} nodes allowed")
    if job.node_selector:
        domains = case.domains_of(node.id)
        for key, wanted in job.node_selector.items():
            label = node.labels.get(key, domains.get(key))
            if label != wanted:
                case.add("node_selector", where, f"label {key!r} is {label!r}, the job asks for {wanted!r}")
