"""May the job stand on these nodes and GPUs, do its workers lie as its option says, and what do labels say?"""

from collections.abc import Iterator, Mapping, Sequence

from placeopt.check.case import CheckCase
from placeopt.check.directory import Directory, PlacedJob, gpu_number, workers_by_node
from placeopt.model import Group, Job, Machine, Node, Option, Placement, Split, Spread
from placeopt.model.conditions import LabelExpression, NodeConditions, Taint, Toleration
from placeopt.model.machine import PART_LEVELS

Barrier = tuple[str, str]
"""A rule that keeps a job off a node, and how."""


def check_where(case: CheckCase) -> None:
    """
    Node selector and affinity, nodes by name, taints, drained nodes, flavors of the queue and GPU models.

    A running job that stays where it is, whole or shrunk, is exempt from all but the GPU model: labels, taints and
    the drained flag say where work may start. A moved job starts again, even on a part of its own GPUs.
    """
    marked = case.directory.some_marked
    for held in case.fresh_held:
        job = held.job
        models, flavors = held.option.demand.gpu_models, case.limits.queues.flavors(job.queue)
        if flavors and not case.stays(job.id):
            _check_flavor(case, held, flavors)
        choosy = any(asks.restricts for asks in held.asked)
        if not (choosy or models or marked):
            continue
        for assignment in held.placement.assignments:
            node = case.nodes.get(assignment.node)
            if node is None:
                continue
            leaf = assignment.group
            if (choosy or node.taints or node.drained) and not case.stays(job.id, node.id, leaf):
                for rule, what in barriers(case.directory, node, *held.asked):
                    case.of_job(rule, job.id, what, node.id, held=True)
            if models:
                gpus = case.machine_of[node.id].gpus
                for gpu in map(gpu_number, assignment.gpus):
                    if 0 <= gpu < len(gpus) and gpus[gpu].model not in models:
                        what = f"GPU {gpu} is a {gpus[gpu].model!r}, allowed are {', '.join(map(repr, models))}"
                        case.of_job("gpu_model", job.id, what, node.id, held=True, leaf=leaf)


def _check_flavor(case: CheckCase, held: PlacedJob, flavors: frozenset[str]) -> None:
    """Its workers are on nodes of one flavor, of those of its queue."""
    charged = case.limits.queues.flavor_of(held)
    for assignment in held.placement.assignments:
        flavor = case.limits.queues.flavor_of_node(assignment.node)
        if assignment.node in case.nodes and (flavor is None or flavor != charged):
            names = ", ".join(map(repr, sorted(flavors)))
            what = f"the node is of flavor {flavor!r}, expected one of {names} for all workers"
            case.of_job("flavor", held.job.id, what, assignment.node, held=True)


def check_shape(case: CheckCase) -> None:
    """
    How the workers of each group lie: single node, workers per node, splits and spread over the domains of a level.

    A group that lies otherwise may stand as it runs, but not shrink or grow to another shape that is not allowed. A
    plan that states the preferred levels that groups have reached states them truly.
    """
    asks: dict[int, bool] = {}  # options that jobs share are looked at once
    for job, option, placement in case.fresh:
        key = id(option)
        if key not in asks:
            asks[key] = bool(case.directory.splits_of(option)) or _asks(option)
        if asks[key] or placement.reached:
            _check_group(case, job, placement, option, (job.conditions,), f"job {job.id!r}")


def _asks(group: Group) -> bool:
    """Return whether a group says how its workers lie, or one below it."""
    own = group.single_node or group.workers_per_node_max is not None or bool(group.splits or group.spread)
    return own or any(map(_asks, group.groups))


def _check_group(
    case: CheckCase, job: Job, placement: Placement, group: Group, above: tuple[NodeConditions, ...], where: str
) -> None:
    """Judge the workers of a group and of each one below it; ``above``: what its job and groups above ask of nodes."""
    asked = (*above, group.conditions)
    leaves = {leaf.id for leaf in group.leaves}
    on_node, relation = workers_by_node(placement, leaves), case.relation.get(job.id, "same")
    if on_node:
        stands = relation == "grown" and workers_by_node(case.directory.running[job.id], leaves) == on_node
        by = [job.id] if relation == "same" else None
        for rule, what, node in _faults(case, placement, group, on_node, asked):
            case.add(rule, where + (f" on node {node!r}" if node else ""), what, by=by, node=node, stands=stands)
        stated = placement.reached.get(group.id) if placement.reached else None
        domains = {level: {case.directory.domain_at(node, level) for node in on_node} for level in group.prefer}
        true = next((level for level, held in domains.items() if len(held) == 1 and None not in held), None)
        if placement.reached and group.prefer and stated != true:
            case.add("reached", where, f"the plan says that level {stated!r} holds it, true is {true!r}")
    for part in group.groups:
        _check_group(case, job, placement, part, asked, f"job {job.id!r} group {part.id!r}")


def _faults(
    case: CheckCase,
    placement: Placement,
    group: Group,
    on_node: Mapping[str, int],
    asked: Sequence[NodeConditions],
) -> Iterator[tuple[str, str, str | None]]:
    """Yield what is wrong with how the workers of a group lie: the rule, the words, and the node if it is about one."""
    directory = case.directory
    if group.single_node and len(on_node) > 1:
        yield "single_node", f"on {len(on_node)} nodes, must be on one", None
    most = group.workers_per_node_max
    for node, count in on_node.items():
        if most is not None and count > most:
            yield "workers_per_node", f"{count} of at most {most} workers", node
    if (inside := group.part_level) is not None:
        held = [one for one in placement.assignments if one.group in (None, group.id) and one.node in case.machine_of]
        parts = {_part_of(case.machine_of[one.node], gpu_number(gpu), inside) for one in held for gpu in one.gpus}
        if len(on_node) > 1 or len(parts) > 1 or None in parts:
            yield "split", f"its GPUs are in {len(parts)} parts of level {inside!r}, must be in one", None
    splits = directory.splits_of(group) if isinstance(group, Option) else group.splits
    rules: list[Split | Spread] = [split for split in splits if split.level not in PART_LEVELS]
    for rule in [*rules, *group.spread]:
        level, workers_in = rule.level, dict[str, int]()
        for node, count in on_node.items():
            domain = directory.domain_at(node, level)
            if domain is None:
                yield "split", f"has workers on node {node!r}, which is in no {level}", None
            else:
                workers_in[domain] = workers_in.get(domain, 0) + count
        if isinstance(rule, Spread):
            for what in _uneven(case, rule, workers_in, asked):
                yield "spread", what, None
            continue
        if len(workers_in) != rule.domains:
            yield "split", f"in {len(workers_in)} domains of level {level!r}, must be in {rule.domains}", None
        for domain, count in workers_in.items():
            if rule.workers is not None and count != rule.workers:
                yield "split", f"{count} workers in {level} {domain!r}, must be {rule.workers}", None


def _uneven(
    case: CheckCase, spread: Spread, workers_in: Mapping[str, int], asked: Sequence[NodeConditions]
) -> Iterator[str]:
    """Tell what is wrong with the workers in each domain of the level of a spread."""
    level, directory = spread.level, case.directory
    broken = [domain for domain, count in workers_in.items() if spread.segment and count % spread.segment]
    for domain in broken[1 if spread.remainder == "smaller" else 0 :]:
        yield f"{workers_in[domain]} workers in {level} {domain!r}, must be a multiple of {spread.segment}"
    for domain, count in workers_in.items():
        if spread.workers_max is not None and count > spread.workers_max:
            yield f"{count} workers in {level} {domain!r}, must be at most {spread.workers_max}"
    if spread.skew_max is not None:
        chosen = [node for node in directory.nodes.values() if not any(conditions_unmet(directory, node, *asked))]
        others = {directory.domain_at(node.id, level) for node in chosen} - {None}
        fewest = min((workers_in.get(str(domain), 0) for domain in others), default=0)
        most = max(workers_in.values(), default=0)
        if most - fewest > spread.skew_max:
            yield f"{most} workers in one {level}, {fewest} in another, must differ by {spread.skew_max}"


def _part_of(machine: Machine, gpu: int, level: str) -> str | None:
    """Return the id of the closest part of a level above a GPU; None if there is no such part or GPU."""
    parts = {part.id: part for part in machine.parts}
    at = machine.gpus[gpu].part if 0 <= gpu < len(machine.gpus) else None
    while at is not None and parts[at].level != level:
        at = parts[at].parent
    return at


def barriers(directory: Directory, node: Node, *asked: NodeConditions) -> Iterator[Barrier]:
    """Yield what keeps workers from a start on a node, apart from room; ``asked``: by their job and their groups."""
    if node.drained:
        yield "drained", "the node is drained and takes no new work"
    for taint in node.taints:
        if not any(_covers(toleration, taint) for asks in asked for toleration in asks.tolerations):
            yield "taints", f"the job does not tolerate {taint.text!r}"
    yield from conditions_unmet(directory, node, *asked)


def conditions_unmet(directory: Directory, node: Node, *asked: NodeConditions) -> Iterator[Barrier]:
    """Yield the conditions of a job, and of groups of it, that a node does not meet."""
    for asks in asked:
        if asks.nodes_allowed is not None and node.id not in asks.nodes_allowed:
            yield "nodes_allowed", f"not among the {len(asks.nodes_allowed)} nodes allowed"
        if node.id in asks.nodes_excluded:
            yield "nodes_excluded", f"among the {len(asks.nodes_excluded)} nodes excluded"
        labels = directory.labels_of(node) if asks.node_selector or asks.node_affinity else {}
        for key, wanted in asks.node_selector.items():
            if labels.get(key) != wanted:
                yield "node_selector", f"label {key!r} is {labels.get(key)!r}, the job asks for {wanted!r}"
        terms = asks.node_affinity
        if terms and not any(term and all(is_met(one, labels) for one in term) for term in terms):
            yield "node_affinity", "its labels meet none of the terms"


def _covers(toleration: Toleration, taint: Taint) -> bool:
    if toleration.key is not None and toleration.key != taint.key:
        return False
    if toleration.effect is not None and toleration.effect != taint.effect:
        return False
    return toleration.operator == "Exists" or _compares(toleration.operator, taint.value, toleration.value)


def is_met(expression: LabelExpression, labels: Mapping[str, str]) -> bool:
    """Return whether labels meet an expression."""
    stated = expression.key in labels
    if expression.operator == "Exists":
        return stated
    if expression.operator == "DoesNotExist":
        return not stated
    if not stated:
        return expression.operator == "NotIn"
    return _compares(expression.operator, labels[expression.key], *expression.values)


def _compares(operator: str, own: str, *values: str) -> bool:
    if operator in ("Gt", "Lt"):
        number = _integer(own)
        return number is not None and (number > int(values[0]) if operator == "Gt" else number < int(values[0]))
    return (own in values) != (operator == "NotIn")


def _integer(text: str) -> int | None:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
