"""May the job stand on these nodes and GPUs, and do its workers lie together and apart as its option says?"""

from collections.abc import Callable, Mapping, Sequence

from placeopt.check.case import CheckCase
from placeopt.check.conditions import barriers, conditions_of_leaf, conditions_unmet
from placeopt.check.directory import PlacedJob, gpu_number, workers_by_node
from placeopt.model import Group, Job, Machine, NodeConditions, Option, Placement, Spread
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
        of_groups = _of_groups(held)
        choosy = choosy or bool(of_groups)
        if not (choosy or models or marked):
            continue
        for assignment in held.placement.assignments:
            node = case.nodes.get(assignment.node)
            if node is None:
                continue
            if (choosy or node.taints or node.drained) and not case.stays(job.id, node.id):
                for rule, what in barriers(case.directory, job, node, of_groups):
                    case.of_job(rule, job.id, what, node.id, held=True)
            if models:
                gpus = case.machine_of[node.id].gpus
                for gpu in map(gpu_number, assignment.gpus):
                    if 0 <= gpu < len(gpus) and gpus[gpu].model not in models:
                        what = f"GPU {gpu} is a {gpus[gpu].model!r}, allowed are {', '.join(map(repr, models))}"
                        case.of_job("gpu_model", job.id, what, node.id, held=True)


def _of_groups(held: PlacedJob) -> Sequence[NodeConditions]:
    """Return what the groups of workers of a leaf ask of nodes."""
    placement = held.placement
    leaf = placement.assignments[0].group if placement.assignments else None
    root = held.option if leaf is None else held.job.option(placement.option)
    return conditions_of_leaf(root, leaf) or ()


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
        self._here: tuple[NodeConditions, ...] = ()
        """What the group that is judged, and those above it, ask of nodes."""

    def check(self, group: Group, where: str) -> None:
        """Judge the workers of a group, and those of each group below it."""
        above = self._here
        self._here = above if group.conditions is None else (*above, group.conditions)
        on_node = workers_by_node(self._placement, {leaf.id for leaf in group.leaves})
        if on_node:
            self._check_own(group, on_node, where)
            self._check_reached(group, on_node, where)
        for part in group.groups:
            self.check(part, f"job {self._job.id!r} group {part.id!r}")
        self._here = above

    def _check_own(self, group: Group, on_node: Mapping[str, int], where: str) -> None:
        by, stands = [self._job.id] if self._relation == "same" else None, False
        if self._relation == "grown":
            running = self._case.directory.running[self._job.id]
            stands = workers_by_node(running, {leaf.id for leaf in group.leaves}) == on_node

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
        domains = {level: {self._case.directory.domain_at(node, level) for node in on_node} for level in group.prefer}
        true = next((level for level, held in domains.items() if len(held) == 1 and None not in held), None)
        stated = self._placement.reached.get(group.id)
        if stated != true:
            self._case.add("reached", where, f"the plan says that level {stated!r} holds it, true is {true!r}")

    def _inside(self, level: str, on_node: Mapping[str, int], add: Callable[[str, str], None]) -> dict[str, int]:
        """Return the workers in each domain of a level; those in none are a fault."""
        found: dict[str, int] = {}
        for node, count in on_node.items():
            domain = self._case.directory.domain_at(node, level)
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
            directory, level, here = self._case.directory, spread.level, self._here
            chosen = [n for n in directory.nodes.values() if not any(conditions_unmet(directory, self._job, n, here))]
            others = {directory.domain_at(node.id, level) for node in chosen} - {None}
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
