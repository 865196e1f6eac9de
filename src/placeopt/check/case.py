"""What all rules of the referee look at: instance and plan, resolved by name."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from placeopt.model import Assignment, Instance, Job, Machine, Node, Option, Placement, Plan, Running, Slowdown

Relation = Literal["same", "shrunk", "other"]


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule: its name, where it was broken, and a whole sentence with the numbers."""

    rule: str
    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.message} [{self.rule}]"


class Held(NamedTuple):
    """A placement whose job and option exist."""

    job: Job
    option: Option
    placement: Placement


class Case:
    """
    One plan before the referee.

    Attributes
    ----------
    jobs, nodes, machine_of, running
        By id: of the job, the node, the node, the job.
    held
        The placements that can be judged further: those of a known job in a known option, as often as they stand.
    on_node
        Per known node, what is held there.
    relation
        How the placement of a running job compares with the one it has now; jobs without placement are left out.
    found
        The violations so far.
    """

    def __init__(self, instance: Instance, plan: Plan, *, resolve: bool = True) -> None:
        """``resolve`` False leaves ``held``, ``on_node`` and ``relation`` empty, for rules that do not look there."""
        self.instance = instance
        self.plan = plan
        self.policy = plan.policy.values
        self.found: list[Violation] = []
        machines = {machine.id: machine for machine in instance.cluster.machines}
        self.jobs: dict[str, Job] = {job.id: job for job in instance.jobs}
        self.nodes: dict[str, Node] = {node.id: node for node in instance.cluster.nodes}
        self.machine_of: dict[str, Machine] = {node.id: machines[node.machine] for node in instance.cluster.nodes}
        self.running: dict[str, Running] = {running.job: running for running in instance.running}
        self.held: list[Held] = []
        self.on_node: dict[str, list[tuple[Held, Assignment]]] = {}
        self.relation: dict[str, Relation] = {}
        if resolve:
            self._resolve()
        self.on_node = {node: entries for node, entries in self.on_node.items() if node in self.nodes}
        self.slowdowns: dict[tuple[str | None, str | None], Slowdown] = {
            (slowdown.profile, slowdown.beside): slowdown for slowdown in instance.slowdowns
        }
        self.domains_above = _domains_above(instance)

    def _resolve(self) -> None:
        """Look up what every placement names; this and the rules' own loops are the referee's time."""
        jobs, running, held, on_node = self.jobs, self.running, self.held, self.on_node
        for placement in self.plan.placements:
            name = placement.job
            if name in running and name not in self.relation:
                self.relation[name] = compare(running[name], placement)
            job = jobs.get(name)
            if job is None:
                continue  # told by rule `account`
            option = option_of(job, placement.option)
            if option is None:
                continue  # told by rule `option`
            entry = Held(job, option, placement)
            held.append(entry)
            for assignment in placement.assignments:
                on_node.setdefault(assignment.node, []).append((entry, assignment))

    def add(self, rule: str, where: str, what: str) -> None:
        """Note that ``rule`` is broken at ``where``."""
        self.found.append(Violation(rule, where, f"{where}: {what}"))

    def domains_of(self, node: str) -> dict[str, str]:
        """Return level -> domain id for every domain above a known node."""
        domain = self.nodes[node].domain
        return {} if domain is None else self.domains_above[domain]


def option_of(job: Job, option: str) -> Option | None:
    """Return the job's option of that id, or None."""
    for candidate in job.options:
        if candidate.id == option:
            return candidate
    return None


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

    ``same``: option, nodes, GPUs of every worker and shares are equal; the order in which they are written does not
    matter. ``shrunk``: the same option with fewer workers, each of them a former one on its former GPUs with its
    former shares, the chief (rank 0) still the chief and the others in their former order. ``other``: anything else.
    """
    if running.option != placement.option:
        return "other"
    if running.assignments == placement.assignments:
        return "same"
    now, then = workers_by_rank(placement), workers_by_rank(running)
    shares_now, shares_then = _shares(placement), _shares(running)
    if now == then:
        return "same" if shares_now == shares_then else "other"
    if len(now) >= len(then) or now[0][1:] != then[0][1:]:
        return "other"
    # Is `now` a subsequence of `then`? Taking the first match each time finds one if there is one.
    rest = iter(then)
    if not all(any(worker[1:] == former[1:] for former in rest) for worker in now):
        return "other"
    return "shrunk" if shares_now.items() <= shares_then.items() else "other"


def _shares(placement: Placement) -> dict[tuple[str, str], int]:
    return {
        (assignment.node, gpu): milli for assignment in placement.assignments for gpu, milli in assignment.gpus.items()
    }


def _domains_above(instance: Instance) -> dict[str, dict[str, str]]:
    above: dict[str, dict[str, str]] = {}
    for domain in instance.cluster.domains:
        above[domain.id] = {**(above[domain.parent] if domain.parent is not None else {}), domain.level: domain.id}
    return above
