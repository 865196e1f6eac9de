"""What all rules of the referee look at: instance and plan, resolved by name."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, Protocol

from placeopt.check.amounts import OF_QUEUES, Amounts, Limits, Resource
from placeopt.check.directory import Directory, PlacedJob, leaves_of, option_of, workers_by_node
from placeopt.model import Assignment, Job, Option, Placement, Plan, Running

Relation = Literal["same", "shrunk", "grown", "other"]

Key = tuple[int, Relation | None, bool]
"""Of a placement: which record it is, how it compares with what runs, and whether the plan says that it was moved."""


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


class Reference(Protocol):
    """The reference of a plan to its instance; an ``Instance`` has all of it."""

    @property
    def name(self) -> str:
        """Name of the instance."""

    @property
    def revision(self) -> int:
        """Number of its state."""

    @property
    def digest(self) -> str | None:
        """Digest of its content; None where it is not known."""


@dataclass(frozen=True, eq=False)
class Clean:
    """A plan in which nothing was found, not even what stands: what another one has of it needs no second look."""

    placements: Mapping[Key, Placement]
    used: Amounts
    """What these take, all together."""


@dataclass(eq=False)
class CheckCase:
    """One plan before the referee."""

    plan: Plan
    instance: Reference
    """Name, revision and digest of what the plan is for."""
    directory: Directory
    """The same instance by name."""
    placements: tuple[Placement, ...]
    """What is judged: the plan's placements; of a plan for some jobs maybe also those of running jobs, which stay."""
    running: Mapping[str, Running]
    """Running jobs that the plan must leave alone or say what it does to them."""
    elsewhere: Mapping[Resource, int] = field(default_factory=dict)
    """What jobs hold that are not in ``held``."""
    clean: Clean | None = None
    """An earlier plan of the same instance under the same policy, of which some records may stand here again."""
    found: list[Violation] = field(default_factory=list)
    """The violations so far."""
    standing: list[Violation] = field(default_factory=list)
    """Limits that are broken, but by nothing other than running jobs that stay where they are."""

    def __post_init__(self) -> None:
        self.policy, directory = self.plan.policy.values, self.directory
        self.jobs, self.nodes, self.machine_of = directory.jobs, directory.nodes, directory.machine_of
        self._moved = {move.job for move in self.plan.moved}

    @cached_property
    def relation(self) -> dict[str, Relation]:
        """How the first placement of a running job compares with the one it has now; those without are left out."""
        running = self.running
        placed = (placement for placement in reversed(self.placements if running else ()) if placement.job in running)
        return {placement.job: compare(running[placement.job], placement) for placement in placed}

    @cached_property
    def limits(self) -> Limits:
        """What placements take, and how much of it there is."""
        return Limits(self.directory, self.policy)

    @cached_property
    def held(self) -> list[PlacedJob]:
        """What can be judged further: workers of known jobs in known options, leaf by leaf, as often as they stand."""
        return [held for job, option, placement in self.known for held in leaves_of(job, option, placement)]

    @cached_property
    def known(self) -> list[tuple[Job, Option, Placement]]:
        """The placements of known jobs in known options, as often as they stand."""
        found = []
        for placement in self.placements:
            job = self.jobs.get(placement.job)
            option = None if job is None else option_of(job, placement.option)
            if job is not None and option is not None:
                found.append((job, option, placement))
        return found

    @cached_property
    def keys(self) -> dict[Key, Placement]:
        """Placements of `known` by their keys, each once."""
        moved, relation = self._moved, self.relation
        return {(id(at), relation.get(at.job), at.job in moved): at for _, _, at in self.known}

    @cached_property
    def fresh(self) -> list[tuple[Job, Option, Placement]]:
        """Of `known` what is not in the clean plan."""
        if self.clean is None or len(self.keys) < len(self.known):
            return self.known
        there = self.clean.placements
        return [entry for entry, key in zip(self.known, self.keys, strict=True) if key not in there]

    @cached_property
    def fresh_held(self) -> list[PlacedJob]:
        """Of `held` the same."""
        known = self.fresh is self.known
        return self.held if known else [held for entry in self.fresh for held in leaves_of(*entry)]

    @cached_property
    def amounts(self) -> tuple[Amounts, Collection[Resource]]:
        """What is taken of each resource, and those of which more may be taken than there is."""
        limits, used = self.limits, Amounts()
        if self.fresh is self.known or self.clean is None:
            for held in self.held:
                limits.add(used, held)
            return used, used
        used, more = self.clean.used, Amounts()
        for key, placement in self.clean.placements.items():
            if key not in self.keys:
                job = self.jobs[placement.job]
                option = option_of(job, placement.option)
                for held in leaves_of(job, option, placement) if option is not None else ():
                    limits.add(used, held, -1)
        for held in self.fresh_held:
            limits.add(used, held)
            limits.add(more, held)
        return used, [*more, *(resource for resource in used if resource[0] in OF_QUEUES and resource not in more)]

    @cached_property
    def on_node(self) -> dict[str, list[tuple[PlacedJob, Assignment]]]:
        """What is held on each known node."""
        found: dict[str, list[tuple[PlacedJob, Assignment]]] = {}
        for entry in self.held:
            for assignment in entry.placement.assignments:
                if assignment.node in self.nodes:
                    found.setdefault(assignment.node, []).append((entry, assignment))
        return found

    def add(
        self,
        rule: str,
        where: str,
        what: str,
        *,
        by: Sequence[str] | None = None,
        node: str | None = None,
        stands: bool = False,
    ) -> None:
        """
        Record that ``rule`` is broken at ``where``.

        ``by`` names the jobs that break it by what they hold, for rules that running jobs may break: if all of them run
        and stay, the limit was broken before and is not broken further, so it is a standing one; ``stands`` says so
        where that is known.
        """
        stands = stands or (by is not None and all(self.stays(job, node) for job in by))
        only = by[0] if by and len(by) == 1 else None
        (self.standing if stands else self.found).append(Violation(rule, where, f"{where}: {what}", only, node))

    def of_job(
        self, rule: str, job: str, what: str, node: str | None = None, *, held: bool = False, leaf: str | None = None
    ) -> None:
        """
        Record that a job breaks ``rule``, on a node where one is given.

        ``held``: By what it holds, as in `add`; with a ``leaf``, what this group of its workers holds.
        """
        where = f"job {job!r}" if node is None else f"job {job!r} on node {node!r}"
        self.add(rule, where, what, node=node, by=[job] if held else None, stands=held and self.stays(job, node, leaf))

    def stays(self, job: str, node: str | None = None, leaf: str | None = None) -> bool:
        """
        Return whether a job runs and keeps its place, whole or shrunk; one moved onto its own GPUs does not.

        Where workers were added, it does on a node where none was; ``leaf``: where none of this group was.
        """
        if job not in self.directory.running:
            return False
        relation = self.relation.get(job, "same")
        if relation == "grown":
            (*_, now) = (placement for placement in self.placements if placement.job == job)
            leaves = None if leaf is None else (leaf,)
            before = workers_by_node(self.directory.running[job], leaves)
            return node is not None and before[node] == workers_by_node(now, leaves)[node]
        return relation == "same" or (relation == "shrunk" and job not in self._moved)

    def kept(self, job: str) -> Running | None:
        """Return what a job held before, where the workers that it still has stay; more of them may start."""
        is_kept = self.stays(job) or self.relation.get(job) == "grown"
        return self.directory.running.get(job) if is_kept else None


def names(ids: Iterable[str], kind: str = "job") -> str:
    """Write a list of ids of a kind for a message, the first five in full."""
    distinct = list(dict.fromkeys(ids))
    shown = ", ".join(repr(name) for name in distinct[:5])
    more = f" and {len(distinct) - 5} more" if len(distinct) > 5 else ""
    return f"{kind}{'s' * (len(distinct) != 1)} {shown}{more}"


def workers_by_rank(placement: Placement) -> list[tuple[int, str | None, str, frozenset[int]]]:
    """List (rank, leaf, node, GPUs) of a placement's workers in order of rank."""
    return sorted(
        (
            (worker.rank, assignment.group, assignment.node, frozenset(worker.gpus))
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
    one on its former GPUs, the chief (rank 0) still the chief and the others in their former order. ``grown``: of an
    option with groups, all former workers where they were, and more. ``other``: anything else.
    """
    if running.option != placement.option:
        return "other"
    if running.assignments == placement.assignments:
        return "same"
    now, then = workers_by_rank(placement), workers_by_rank(running)
    if any(assignment.group is not None for assignment in running.assignments):  # ranks shift where workers are added
        more, fewer = (Counter(worker[1:] for worker in workers) for workers in (now, then))
        return "same" if more == fewer else "grown" if more > fewer else "other"
    if now == then:
        return "same"
    if not now or len(now) >= len(then) or now[0][1:] != then[0][1:]:
        return "other"
    # Is `now` a subsequence of `then`? Taking the first match each time finds one if there is one.
    rest = iter(then)
    if not all(any(worker[1:] == former[1:] for former in rest) for worker in now):
        return "other"
    return "shrunk"
