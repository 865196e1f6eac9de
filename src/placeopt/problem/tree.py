"""
A tree of groups in a compiled problem: its members, which are jobs of alike workers, and what binds them.

What a tree holds, from the placements of its members and back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from placeopt.errors import BadInput
from placeopt.model import Assignment, Communication, Placement, Split, Spread, WorkerGpus

LeafName = str | None
"""As assignments state it: None where the option has no groups."""
HeldBy = tuple[Assignment, tuple[int, ...]]
"""The GPUs of a worker, and the assignment that they are of."""


@dataclass(frozen=True)
class TreeGroup:
    """What is asked of the workers of some members together."""

    name: str
    members: tuple[int, ...]
    lies: tuple[Split | Spread, ...]
    prefer: tuple[str, ...]


@dataclass(frozen=True)
class TreeForm:
    """One option of a tree."""

    anchor: int  # a member that runs wherever any other does
    leaves: tuple[tuple[LeafName, tuple[int, ...]], ...]  # each leaf, and the members that have its workers
    starts: tuple[int, ...]  # members that may start
    needs: tuple[tuple[int, int], ...]  # a member, and one that runs wherever it does
    groups: tuple[TreeGroup, ...]


@dataclass(frozen=True)
class Tree:
    """A job that is compiled as members: its name, their numbers, and its options by their ids."""

    job: str
    members: tuple[int, ...]
    runs: tuple[int, ...]  # of the members
    forms: Mapping[str, TreeForm]
    communication: Communication
    """Traffic between workers of different members; with edges, of all its workers."""


def levels_of(trees: Iterable[Tree]) -> set[str]:
    """Return the levels of domains that trees look at."""
    groups = [group for tree in trees for form in tree.forms.values() for group in form.groups]
    return {rule.level for one in groups for rule in one.lies} | {level for one in groups for level in one.prefer}


def regrouped(workers: Sequence[HeldBy], name: LeafName, first: int) -> tuple[Assignment, ...]:
    """Return the assignments of alike workers, ranked from ``first`` on."""
    on_node: dict[str, list[tuple[Assignment, WorkerGpus]]] = {}
    for rank, (assignment, gpus) in enumerate(workers, first):
        on_node.setdefault(assignment.node, []).append((assignment, WorkerGpus(rank=rank, gpus=gpus)))
    return tuple(
        Assignment(
            node=node,
            group=name,
            gpus={str(gpu): assignment.gpus[str(gpu)] for assignment, worker in here for gpu in worker.gpus},
            starts={str(gpu): held.starts[str(gpu)] for held, worker in here for gpu in worker.gpus if held.starts},
            cpu_millicores=sum(held.cpu_millicores // len(held.workers) for held, _ in here),
            memory_mib=sum(held.memory_mib // len(held.workers) for held, _ in here),
            workers=tuple(worker for _, worker in here),
        )
        for node, here in on_node.items()
    )


def whole_assignments(tree: Tree, option: str, parts: Mapping[int, Placement]) -> tuple[Assignment, ...]:
    """Return what a tree holds from the placements of its members that run, by their numbers."""
    assignments: list[Assignment] = []
    rank = 0
    for name, members in tree.forms[option].leaves:
        workers = [worker for member in members if member in parts for worker in by_rank(parts[member])]
        assignments += regrouped(workers, name, rank)
        rank += len(workers)
    return tuple(assignments)


def member_placements(tree: Tree, placement: Placement, running: Mapping[int, Placement]) -> dict[int, Placement]:
    """
    Return the placements of a tree's members from that of the tree: what `whole_assignments` puts together.

    ``running``: those of members that run, which keep their workers.

    Raises ``BadInput`` where the option, or a leaf, is none of the tree's.
    """
    form = tree.forms.get(placement.option)
    if form is None:
        raise BadInput(f"placements: job {tree.job!r} has no option {placement.option!r}")
    workers: dict[LeafName, list[HeldBy]] = {}
    for entry in by_rank(placement):
        workers.setdefault(entry[0].group, []).append(entry)
    parts: dict[int, Placement] = {}
    for name, members in form.leaves:
        rest = workers.pop(name, [])
        for member in members:
            mine = rest if member not in running else _taken_out(rest, by_rank(running[member]))
            rest = [] if mine is rest else rest
            if mine:
                parts[member] = Placement(job=tree.job, option=placement.option, assignments=regrouped(mine, None, 0))
    if workers:
        raise BadInput(f"placements: job {tree.job!r} has no group {next(iter(workers))!r}")
    return parts


def _taken_out(workers: list[HeldBy], known: Iterable[HeldBy]) -> list[HeldBy]:
    """Take the workers that hold what known ones hold out of a list, and return them."""
    wanted, out = Counter((held.node, gpus) for held, gpus in known), list[HeldBy]()
    for worker in list(workers):
        held, gpus = worker
        if wanted[held.node, gpus]:
            wanted[held.node, gpus] -= 1
            workers.remove(worker)
            out.append(worker)
    return out


def by_rank(placement: Placement) -> list[HeldBy]:
    """Return the workers of a placement in the order of their ranks."""
    workers = [(worker, assignment) for assignment in placement.assignments for worker in assignment.workers]
    workers.sort(key=lambda entry: entry[0].rank)
    return [(assignment, worker.gpus) for worker, assignment in workers]
