"""May the job stand on these nodes and GPUs, and do its workers lie together and apart as its option says?"""

from collections.abc import Callable, Iterator, Mapping

from placeopt.check.case import CheckCase
from placeopt.check.directory import Directory, PlacedJob, gpu_number
from placeopt.model import Group, Job, LabelExpression, Machine, Node, Option, Placement, Spread, Taint, Toleration
from placeopt.model.machine import PART_LEVELS


def check_where(case: CheckCase) -> None:
    """
    Node selector and affinity, nodes by name, taints, drained nodes, flavors of the queue and GPU models.

    A running job that stays where it is, whole or shrunk, is exempt from all but the GPU model: labels, taints and
    the drained flag say where work may start. A moved job starts again, even on a part of its own GPUs.
    """
    marked = case.directory.some_marked
    for held in case.held:
        job = held.job
        choosy = bool(job.node_selector or job.node_affinity or job.nodes_excluded) or job.nodes_allowed is not None
        models, flavors = held.option.demand.gpu_models, case.limits.queues.flavors(job.queue)
        if flavors and not case.stays(job.id):
            _check_flavor(case, held, flavors)
        if not (choosy or models or marked):
            continue
        for assignment in held.placement.assignments:
            node = case.nodes.get(assignment.node)
            if node is None:
                continue
            if (choosy or node.taints or node.drained) and not case.stays(job.id, node.id):
                for rule, what in barriers(case.directory, job, node):
                    case.of_job(rule, job.id, what, node.id, held=True)
            if models:
                gpus = case.machine_of[node.id].gpus
                for gpu in map(gpu_number, assignment.gpus):
                    if 0 <= gpu < len(gpus) and gpus[gpu].model not in models:
                        what = f"GPU {gpu} is a {gpus[gpu].model!r}, allowed are {', '.join(map(repr, models))}"
                        case.of_job("gpu_model", job.id, what, node.id, held=True)


def _check_flavor(case: CheckCase, held: PlacedJob, flavors: frozenset[str]) -> None:
    """Its workers are on nodes of one flavor, of those of its queue."""
    charged = case.limits.queues.flavor_of(held)
    for assignment in held.placement.assignments:
        flavor = case.limits.queues.flavor_of_node(assignment.node)
        if assignment.node in case.nodes and (flavor is None or flavor != charged):
            names = ", ".join(map(repr, sorted(flavors)))
            what = f"the node is of flavor {flavor!r}, expected one of {names} for all workers"
            case.of_job("flavor", held.job.id, what, assignment.node, held=True)


Barrier = tuple[str, str]
"""A rule that keeps a job off a node, and how."""


def barriers(directory: Directory, job: Job, node: Node) -> Iterator[Barrier]:
    """Yield what keeps a job from a start on a node, apart from room."""
    if node.drained:
        yield "drained", "the node is drained and takes no new work"
    for taint in node.taints:
        if not any(_covers(toleration, taint) for toleration in job.tolerations):
            yield "taints", f"the job does not tolerate {taint.text!r}"
    yield from conditions_unmet(directory, job, node)


def conditions_unmet(directory: Directory, job: Job, node: Node) -> Iterator[Barrier]:
    """Yield the job's own conditions that a node does not meet."""
    if job.nodes_allowed is not None and node.id not in job.nodes_allowed:
        yield "nodes_allowed", f"not among the {len(job.nodes_allowed)} nodes allowed"
    if node.id in job.nodes_excluded:
        yield "nodes_excluded", f"among the {len(job.nodes_excluded)} nodes excluded"
    if not job.node_selector and not job.node_affinity:
        return
    labels = {**directory.domains_of(node.id), **node.labels, "metadata.name": node.id}
    for key, wanted in job.node_selector.items():
        if labels.get(key) != wanted:
            yield "node_selector", f"label {key!r} is {labels.get(key)!r}, the job asks for {wanted!r}"
    if job.node_affinity and not any(term and all(_is_met(one, labels) for one in term) for term in job.node_affinity):
        yield "node_affinity", "its labels meet none of the terms"


def _covers(toleration: Toleration, taint: Taint) -> bool:
    if toleration.key is not None and toleration.key != taint.key:
        return False
    if toleration.effect is not None and toleration.effect != taint.effect:
        return False
    return toleration.operator == "Exists" or _compares(toleration.operator, taint.value, toleration.value)


def _is_met(expression: LabelExpression, labels: Mapping[str, str]) -> bool:
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


def check_shape(case: CheckCase) -> None:
    """
    How the workers of each group lie: single node, workers per node, splits and spread over the domains of a level.

    A group that lies otherwise may stand as it runs, but not shrink or grow to another shape that is not allowed.
    """
    asks: dict[int, bool] = {}  # options that jobs share are looked at once
    for job, option, placement in case.known:
        key = id(option)
        if key not in asks:
            asks[key] = bool(case.directory.splits_of(option)) or _asks(option)
        if asks[key] or placement.reached:
            _Shape(case, job, placement).check(option, f"job {job.id!r}")


def _asks(group: Group) -> bool:
    """Return whether a group says how its workers lie, or one below it."""
    own = group.single_node or group.workers_per_node_max is not None or bool(group.splits or group.spread)
    return own or any(map(_asks, group.groups))


class _Shape:
    """How the workers of a placement lie."""

    def __init__(self, case: CheckCase, job: Job, placement: Placement) -> None:
        self._case, self._job, self._placement = case, job, placement
        self._relation = case.relation.get(job.id, "same")

    def check(self, group: Group, where: str) -> None:
        """Judge the workers of a group, and those of each group below it."""
        on_node = self._on_node(self._placement, group)
        if on_node:
            self._check_own(group, on_node, where)
            self._check_reached(group, on_node, where)
        for part in group.groups:
            self.check(part, f"job {self._job.id!r} group {part.id!r}")

    def _on_node(self, placement: Placement, group: Group) -> dict[str, int]:
        leaves, found = {leaf.id for leaf in group.leaves}, dict[str, int]()
        for assignment in placement.assignments:
            if assignment.group is None or assignment.group in leaves:
                found[assignment.node] = found.get(assignment.node, 0) + len(assignment.workers)
        return found

    def _check_own(self, group: Group, on_node: Mapping[str, int], where: str) -> None:
        by = [self._job.id] if self._relation == "same" else None
        grown = self._relation == "grown"
        stands = grown and self._on_node(self._case.directory.running[self._job.id], group) == on_node

        def add(rule: str, what: str, node: str | None = None) -> None:
            at = where if node is None else f"{where} on node {node!r}"
            self._case.add(rule, at, what, by=by, node=node, stands=stands)

        if group.single_node and len(on_node) > 1:
            add("single_node", f"on {len(on_node)} nodes, must be on one")
        most = group.workers_per_node_max
        for node, count in on_node.items() if most is not None else ():
            if count > (most or 0):
                add("workers_per_node", f"{count} of at most {most} workers", node)
        if group.part_level is not None:
            parts = self._parts(group, group.part_level)
            if len(on_node) > 1 or len(parts) > 1 or None in parts:
                add("split", f"its GPUs are in {len(parts)} parts of level {group.part_level!r}, must be in one")
        splits = self._case.directory.splits_of(group) if isinstance(group, Option) else group.splits
        for split in (split for split in splits if split.level not in PART_LEVELS):
            workers_in = self._inside(split.level, on_node, add)
            if len(workers_in) != split.domains:
                add("split", f"in {len(workers_in)} domains of level {split.level!r}, must be in {split.domains}")
            for domain, count in workers_in.items():
                if split.workers is not None and count != split.workers:
                    add("split", f"{count} workers in {split.level} {domain!r}, must be {split.workers}")
        for spread in group.spread:
            self._check_spread(spread, self._inside(spread.level, on_node, add), add)

    def _parts(self, group: Group, level: str) -> set[str | None]:
        """Return the parts of machines that hold the GPUs of a leaf; None: some are in none."""
        found: set[str | None] = set()
        for assignment in self._placement.assignments:
            machine = self._case.machine_of.get(assignment.node)
            if machine is not None and assignment.group in (None, group.id):
                found |= {_part_of(machine, gpu_number(gpu), level) for gpu in assignment.gpus}
        return found

    def _check_reached(self, group: Group, on_node: Mapping[str, int], where: str) -> None:
        """A plan that states the preferred levels that groups have reached states them truly."""
        if not self._placement.reached or not group.prefer:
            return
        true = None
        for level in reversed(group.prefer):
            above = [self._case.domains_of(node) if node in self._case.nodes else {} for node in on_node]
            domains = set(on_node) if level == "node" else {found.get(level) for found in above}
            true = level if len(domains) == 1 and None not in domains else true
        stated = self._placement.reached.get(group.id)
        if stated != true:
            self._case.add("reached", where, f"the plan says that level {stated!r} holds it, true is {true!r}")

    def _inside(self, level: str, on_node: Mapping[str, int], add: Callable[[str, str], None]) -> dict[str, int]:
        """Return the workers in each domain of a level; those in none are a fault."""
        found: dict[str, int] = {}
        for node, count in on_node.items():
            above = self._case.domains_of(node) if node in self._case.nodes else {}
            domain = node if level == "node" else above.get(level)
            if domain is None:
                add("split", f"has workers on node {node!r}, which is in no {level}")
            else:
                found[domain] = found.get(domain, 0) + count
        return found

    def _check_spread(self, spread: Spread, workers_in: dict[str, int], add: Callable[[str, str], None]) -> None:
        broken = [domain for domain, count in workers_in.items() if spread.segment and count % spread.segment]
        for domain in broken[1 if spread.remainder == "smaller" else 0 :]:
            what = f"{workers_in[domain]} workers in {spread.level} {domain!r}, must be a multiple of {spread.segment}"
            add("spread", what)
        for domain, count in workers_in.items():
            if spread.workers_max is not None and count > spread.workers_max:
                add("spread", f"{count} workers in {spread.level} {domain!r}, must be at most {spread.workers_max}")
        if spread.skew_max is not None:
            case, level = self._case, spread.level
            chosen = [n for n in case.nodes.values() if not any(conditions_unmet(case.directory, self._job, n))]
            others = {node.id if level == "node" else case.domains_of(node.id).get(level) for node in chosen} - {None}
            fewest = min((workers_in.get(str(domain), 0) for domain in others), default=0)
            most = max(workers_in.values(), default=0)
            if most - fewest > spread.skew_max:
                add("spread", f"{most} workers in one {level}, {fewest} in another, must differ by {spread.skew_max}")


def _part_of(machine: Machine, gpu: int, level: str) -> str | None:
    """Return the id of the closest part of a level above a GPU; None if there is no such part or GPU."""
    parts = {part.id: part for part in machine.parts}
    at = machine.gpus[gpu].part if 0 <= gpu < len(machine.gpus) else None
    while at is not None and parts[at].level != level:
        at = parts[at].parent
    return at
