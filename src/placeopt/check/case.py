"""What all rules of the referee look at: instance and plan, resolved by name."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, Self

from placeopt.model import Assignment, Instance, Job, Machine, Node, Option, Placement, Plan, Running, Slowdown

Relation = Literal["same", "shrunk", "other"]


@dataclass(frozen=True, slots=True)
class Violation:
    """
    One broken rule: its name, where it was broken, and a whole sentence with the numbers.

    ``job`` is the only job that breaks it, None if several do or none; ``node`` the node where, None if it is not one.
    """

    rule: str
    where: str
    message: str
    job: str | None = None
    node: str | None = None

    def __str__(self) -> str:
        return f"{self.message} [{self.rule}]"


class PlacedJob(NamedTuple):
    """A placement whose job and option exist."""

    job: Job
    option: Option
    placement: Placement


class Reference(Protocol):
    """The reference of a plan to its instance; an ``Instance`` has all of it."""

    @property
    def name(self) -> str:
        """Name of the instance."""
        ...

    @property
    def revision(self) -> int:
        """Number of its state."""
        ...

    @property
    def digest(self) -> str | None:
        """Digest of its content; None where it is not known."""
        ...


class Directory:
    """
    What an instance says, by name.

    Attributes
    ----------
    jobs, nodes, machine_of, running
        By id: of the job, the node, the node, the job.
    slowdowns
        By profile of the job and of the one beside it.
    uplinks, domains_above
        By id of the domain: its uplink's capacity, and level -> domain for itself and all above it.
    total
        GPU-milli, millicores and MiB of all nodes together.
    marked
        How many nodes are tainted or drained.
    """

    def __init__(self, instance: Instance) -> None:
        self.machines: dict[str, Machine] = {machine.id: machine for machine in instance.cluster.machines}
        self.jobs: dict[str, Job] = {job.id: job for job in instance.jobs}
        nodes = instance.cluster.nodes
        self.nodes: dict[str, Node] = {node.id: node for node in nodes}
        self.machine_of: dict[str, Machine] = {node.id: self.machines[node.machine] for node in nodes}
        self.total = [0, 0, 0]
        self.marked = sum(bool(node.taints or node.drained) for node in nodes)
        for machine, number in Counter(node.machine for node in nodes).items():
            self._add_up(self.machines[machine], number)
        self.running: dict[str, Running] = {running.job: running for running in instance.running}
        self.slowdowns: dict[tuple[str | None, str | None], Slowdown] = {
            (slowdown.profile, slowdown.beside): slowdown for slowdown in instance.slowdowns
        }
        self.domains = instance.cluster.domains
        self.uplinks: dict[str, int | None] = {domain.id: domain.uplink_mbps for domain in instance.cluster.domains}
        self.domains_above = _domains_above(instance)

    def put_node(self, node: Node) -> None:
        """Add a node that is not there yet, last."""
        self.nodes[node.id] = node
        self.machine_of[node.id] = self.machines[node.machine]
        self._count(node, 1)

    def replace_node(self, node: Node) -> None:
        """Put a node in the place of the one of the same id."""
        self._count(self.nodes[node.id], -1)
        self.put_node(node)

    def remove_node(self, name: str) -> None:
        """Take a node away."""
        self._count(self.nodes[name], -1)
        del self.nodes[name], self.machine_of[name]

    def order_nodes(self, ids: Iterable[str]) -> None:
        """Bring the nodes into this order; ``ids`` names each."""
        for name in ids:
            self.nodes[name] = self.nodes.pop(name)

    def _count(self, node: Node, sign: int) -> None:
        self.marked += sign * bool(node.taints or node.drained)
        self._add_up(self.machine_of[node.id], sign)

    def _add_up(self, machine: Machine, number: int) -> None:
        """Add the capacity of ``number`` nodes of a machine type."""
        for r, amount in enumerate((1000 * len(machine.gpus), machine.cpu_millicores, machine.memory_mib)):
            self.total[r] += number * amount

    def domains_of(self, node: str) -> dict[str, str]:
        """Return level -> domain id for every domain above a known node."""
        domain = self.nodes[node].domain
        return {} if domain is None else self.domains_above[domain]


Place = tuple[str, str]
"""An uplink: (``node`` or ``domain``, its id)."""


@dataclass
class Elsewhere:
    """What jobs hold that are not before the referee, where a plan is for some jobs only: amounts that add up."""

    gpu_links: dict[Place, int] = field(default_factory=dict)  # MB/s of an uplink held by GPU jobs
    cpu_links: dict[Place, int] = field(default_factory=dict)  # and by CPU jobs
    queues: dict[str, list[int]] = field(default_factory=dict)  # GPU-milli, millicores, MiB held by a queue


class CheckCase:
    """
    One plan before the referee.

    Attributes
    ----------
    instance
        Name, revision and digest of what the plan is for.
    directory
        The same instance by name; ``jobs``, ``nodes`` and ``machine_of`` are its dictionaries.
    placements
        What is judged: the plan's placements; of a plan for some jobs also those of the running jobs, which stay.
    running
        Running jobs that the plan must leave alone or say what it does to them.
    held
        The placements that can be judged further: those of a known job in a known option, as often as they stand.
    on_node
        Per known node, what is held there.
    elsewhere
        What else is held, by jobs that are not in ``held``.
    relation
        How the placement of a running job compares with the one it has now; jobs without placement are left out.
    found
        The violations so far.
    standing
        Limits that are broken, but by nothing other than running jobs that stay where they are.
    """

    def __init__(
        self,
        plan: Plan,
        instance: Reference,
        directory: Directory,
        placements: tuple[Placement, ...],
        running: dict[str, Running],
    ) -> None:
        self.instance = instance
        self.plan = plan
        self.policy = plan.policy.values
        self.found: list[Violation] = []
        self.standing: list[Violation] = []
        self._moved = {move.job for move in plan.moved}
        self.directory = directory
        self.jobs, self.nodes, self.machine_of = directory.jobs, directory.nodes, directory.machine_of
        self.running = running
        self.placements = placements
        self.held: list[PlacedJob] = []
        self.on_node: dict[str, list[tuple[PlacedJob, Assignment]]] = {}
        self.elsewhere = Elsewhere()
        self.relation: dict[str, Relation] = {}
        self._resolve()
        self.on_node = {node: entries for node, entries in self.on_node.items() if node in self.nodes}

    @classmethod
    def of(cls, instance: Instance, plan: Plan, *, resolve: bool = True) -> Self:
        """
        Bring a plan before the referee, with everything that runs.

        ``resolve`` False leaves ``held``, ``on_node`` and ``relation`` empty, for rules that do not look there.
        """
        directory = Directory(instance)
        placements = plan.placements
        if plan.asked is not None:
            named = {placement.job for placement in placements}
            placements += tuple(running for running in instance.running if running.job not in named)
        return cls(plan, instance, directory, placements if resolve else (), directory.running)

    def _resolve(self) -> None:
        """Look up what every placement names; this and the loops of the rules take most of the referee's time."""
        jobs, running, held, on_node = self.jobs, self.running, self.held, self.on_node
        for placement in self.placements:
            name = placement.job
            if name in running and name not in self.relation:
                self.relation[name] = compare(running[name], placement)
            job = jobs.get(name)
            if job is None:
                continue  # told by rule `account`
            option = option_of(job, placement.option)
            if option is None:
                continue  # told by rule `option`
            entry = PlacedJob(job, option, placement)
            held.append(entry)
            for assignment in placement.assignments:
                on_node.setdefault(assignment.node, []).append((entry, assignment))

    def add(
        self, rule: str, where: str, what: str, *, by: Sequence[str] | None = None, node: str | None = None
    ) -> None:
        """
        Record that ``rule`` is broken at ``where``.

        ``by`` names the jobs that break it by what they hold, for rules that running jobs may break: if all of them run
        and stay, the limit was broken before and is not broken further, so it is a standing one.
        """
        stands = by is not None and all(self.stays(job) for job in by)
        only = by[0] if by and len(by) == 1 else None
        (self.standing if stands else self.found).append(Violation(rule, where, f"{where}: {what}", only, node))

    def stays(self, job: str) -> bool:
        """Return whether a job runs and keeps its place, whole or shrunk; one moved onto its own GPUs does not."""
        if job not in self.directory.running:
            return False
        relation = self.relation.get(job, "same")
        return relation == "same" or (relation == "shrunk" and job not in self._moved)

    def domains_of(self, node: str) -> dict[str, str]:
        """Return level -> domain id for every domain above a known node."""
        return self.directory.domains_of(node)


def option_of(job: Job, option: str) -> Option | None:
    """Return the job's option of that id, or None."""
    for candidate in job.options:
        if candidate.id == option:
            return candidate
    return None


def gpu_number(key: str) -> int:
    """Return the GPU index of a key of an assignment's ``gpus``; -1 where it is no number."""
    try:
        return int(key)
    except ValueError:
        return -1


def names(ids: list[str]) -> str:
    """Write a list of job ids for a message, the first five in full."""
    distinct = list(dict.fromkeys(ids))
    shown = ", ".join(repr(name) for name in distinct[:5])
    more = f" and {len(distinct) - 5} more" if len(distinct) > 5 else ""
    return f"{'job' if len(distinct) == 1 else 'jobs'} {shown}{more}"


def workers_by_rank(placement: Placement) -> list[tuple[int, str, frozenset[int]]]:
    """List (rank, node, GPUs) of a placement's workers in order of rank."""
    return sorted(
        (
            (worker.rank, assignment.node, frozenset(worker.gpus))
            for assignment in placement.assignments
            for worker in assignment.workers
        ),
        key=lambda worker: worker[0],
    )


def compare(running: Running, placement: Placement) -> Relation:
    """
    Compare a placement with the one that runs now.

    ``same``: option, nodes and GPUs of every worker are equal; the order in which they are written does not matter, nor
    do shares, which grants change at no price. ``shrunk``: the same option with fewer workers, each of them a former
    one on its former GPUs, the chief (rank 0) still the chief and the others in their former order. ``other``: anything
    else.
    """
    if running.option != placement.option:
        return "other"
    if running.assignments == placement.assignments:
        return "same"
    now, then = workers_by_rank(placement), workers_by_rank(running)
    if now == then:
        return "same"
    if not now or len(now) >= len(then) or now[0][1:] != then[0][1:]:
        return "other"
    # Is `now` a subsequence of `then`? Taking the first match each time finds one if there is one.
    rest = iter(then)
    if not all(any(worker[1:] == former[1:] for former in rest) for worker in now):
        return "other"
    return "shrunk"


def _domains_above(instance: Instance) -> dict[str, dict[str, str]]:
    above: dict[str, dict[str, str]] = {}
    for domain in instance.cluster.domains:
        above[domain.id] = {**(above[domain.parent] if domain.parent is not None else {}), domain.level: domain.id}
    return above
