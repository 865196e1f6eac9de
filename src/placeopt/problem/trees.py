"""
Trees of groups: the workers of each leaf are compiled as a job of its own, a *member*; a `Tree` says what binds them.

So arrays, states, capacities and costs know jobs of alike workers only. What a tree adds is who runs with whom, and how
the workers of several members lie together. Where a tree runs in part, what runs of a leaf is one member, which stays
as it is, and what is missing another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from placeopt.errors import BadInput
from placeopt.model import (
    Assignment,
    Communication,
    Group,
    Instance,
    Job,
    Option,
    Placement,
    Running,
    Split,
    Spread,
    WorkerGpus,
)

LeafName = str | None
"""As assignments state it: None where the option has no groups."""


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


def with_members(instance: Instance) -> tuple[Instance, tuple[Tree, ...]]:
    """Return the round with the members of each tree in its place, and the trees."""
    kinds = {id(job.options): job.options for job in instance.jobs}
    if not any(option.is_tree for options in kinds.values() for option in options):
        return instance, ()
    held = {running.job: running for running in instance.running}
    jobs, running, made = list[Job](), dict[str, list[Running]](), list[Tree]()
    for job in _in_blocks(instance):
        if any(option.is_tree for option in job.options):
            drafts = _drafts(job, held.get(job.id))
            tree, members, runs = _tree(job, held.get(job.id), drafts, len(jobs))
            made.append(tree)
            jobs += members
            running[job.id] = runs
        else:
            jobs.append(job)
    parts = tuple(part for record in instance.running for part in running.get(record.job, [record]))
    cluster = (
        instance.cluster.model_copy(update={"block_sizes": ()}) if instance.cluster.block_sizes else instance.cluster
    )
    names = {tree.job: [jobs[member].id for member in tree.members] for tree in made}
    holds = tuple(
        hold.model_copy(update={"jobs": (*hold.jobs, *(name for job in hold.jobs for name in names.get(job, ())))})
        for hold in instance.holds
    )
    changed = {"cluster": cluster, "jobs": tuple(jobs), "running": parts, "holds": holds}
    return instance.model_copy(update=changed), tuple(made)


def _in_blocks(instance: Instance) -> Iterable[Job]:
    """Return the jobs with the splits of the cluster's blocks as their own: members of a tree have none of theirs."""
    if not instance.cluster.block_sizes:
        return instance.jobs
    splits_of = instance.cluster.splits_of
    kinds = {id(job.options): job.options for job in instance.jobs}
    stated = {
        key: tuple(option.model_copy(update={"splits": splits_of(option)}) for option in options)
        for key, options in kinds.items()
    }
    return [job.model_copy(update={"options": stated[id(job.options)]}) for job in instance.jobs]


def levels_of(trees: Iterable[Tree]) -> set[str]:
    """Return the levels of domains that trees look at."""
    groups = [group for tree in trees for form in tree.forms.values() for group in form.groups]
    return {rule.level for one in groups for rule in one.lies} | {level for one in groups for level in one.prefer}


@dataclass
class _Member:
    """Workers of a leaf: how many, whether they run already, and how many of those that start may be missing."""

    leaf: LeafName
    own: Group  # a leaf of so many workers
    runs: bool
    can_miss: int


@dataclass
class _Draft:
    """One option: its members, and what binds them, by their positions."""

    option: Option
    members: list[_Member]
    anchor: int  # a member that runs wherever any other does
    needs: list[tuple[int, int]]
    held: Mapping[LeafName, list[tuple[Assignment, WorkerGpus]]]


def _drafts(job: Job, running: Running | None) -> list[_Draft]:
    """Return a draft of each option that the job may take; of one that runs, the option that it has."""
    least = job.utility_min_thousandths or 0
    if running is None:
        possible = (one for one in job.options if one.utility_thousandths is None or one.utility_thousandths >= least)
        return [_draft(option, {}) for option in possible]
    held: dict[LeafName, list[tuple[Assignment, WorkerGpus]]] = {}
    for assignment in running.assignments:
        held.setdefault(assignment.group, []).extend((assignment, worker) for worker in assignment.workers)
    for workers in held.values():
        workers.sort(key=lambda entry: entry[1].rank)
    return [_draft(job.option(running.option), held)]


def _draft(option: Option, held: Mapping[LeafName, list[tuple[Assignment, WorkerGpus]]]) -> _Draft:
    names = {id(leaf): leaf.id if option.groups else None for leaf in option.leaves}
    count = {key: len(held.get(name, ())) for key, name in names.items()}
    members = [
        _Member(names[id(leaf)], _sized(leaf, count[id(leaf)], None), runs=True, can_miss=0)
        for leaf in option.leaves
        if count[id(leaf)]
    ]
    needs: list[tuple[int, int]] = []

    def bind(group: Group, *, optional: bool) -> tuple[list[int], list[int]]:
        """Add the members below that may start; return those that must with the group, and those that only may."""
        runs = any(count[id(leaf)] for leaf in group.leaves)
        optional = not runs and (optional or group.optional)
        if group.groups:
            must, may = list[int](), list[int]()
            for part in group.groups:
                firmly, loosely = bind(part, optional=optional)
                absent = part.optional and not any(count[id(leaf)] for leaf in part.leaves)
                (may if absent else must).extend(firmly)
                may += loosely
        else:
            must, may = _missing(group, names[id(group)], count[id(group)], members, optional=optional)
        if not must:
            return [], may
        for other in must[1:]:
            needs.extend([(must[0], other), (other, must[0])])
        needs.extend((other, must[0]) for other in may)
        return must[:1], []

    must, _ = bind(option, optional=False)
    if held and not must:  # it runs whole, or with all that it needs
        members, needs = [member for member in members if member.runs], []
    return _Draft(option, members, must[0] if must else 0, needs, held)


def _missing(
    leaf: Group, name: LeafName, running: int, members: list[_Member], *, optional: bool
) -> tuple[list[int], list[int]]:
    """Add the workers of a leaf that do not run as a member, which must start with its group or only may."""
    if running == leaf.workers:
        return [], []
    more, missing = leaf.workers - running, leaf.fewest - running
    least = max(missing, 1)
    own = leaf if not running else _sized(leaf, more, least if least < more else None)
    may_wait = running > 0 and missing <= 0
    members.append(_Member(name, own, runs=False, can_miss=more if optional or may_wait else more - least))
    return ([], [len(members) - 1]) if may_wait else ([len(members) - 1], [])


def _sized(leaf: Group, workers: int, workers_min: int | None) -> Group:
    """Return a part of a leaf; how the leaf lies is asked of all its members together."""
    free = {"single_node": False, "workers_per_node_max": None, "splits": (), "spread": ()}
    return leaf.model_copy(update={"workers": workers, "workers_min": workers_min, **free})


def _tree(job: Job, running: Running | None, drafts: list[_Draft], first: int) -> tuple[Tree, list[Job], list[Running]]:
    """Return the tree, with its members numbered from ``first``, their records, and what runs of them."""
    number = max((len(draft.members) for draft in drafts), default=1)
    traffic = job.communication
    own_traffic = traffic if number == 1 else Communication(weight=0 if traffic.edges else traffic.weight)
    names = [job.id if number == 1 else f"{job.id}/{i}" for i in range(number)]
    members = [
        job.model_copy(
            update={
                "id": names[i],
                "options": tuple(_own_option(draft, i) for draft in drafts if i < len(draft.members)),
                "communication": own_traffic,
                "utility_min_thousandths": job.utility_min_thousandths if number == 1 else None,
                "origin": job.origin if number == 1 else None,
            }
        )
        for i in range(number)
    ]
    runs = [] if running is None else [_own_running(running, drafts[0], i, names[i]) for i in _running(drafts[0])]
    tree = Tree(
        job=job.id,
        members=tuple(range(first, first + number)),
        runs=tuple(first + i for draft in drafts for i in _running(draft)),
        forms={draft.option.id: _form(draft, first) for draft in drafts},
        communication=Communication() if number == 1 else traffic,
    )
    return tree, members, runs


def _running(draft: _Draft) -> list[int]:
    return [i for i, member in enumerate(draft.members) if member.runs]


def _form(draft: _Draft, first: int) -> TreeForm:
    option, members = draft.option, draft.members
    of_leaf: dict[LeafName, list[int]] = {leaf.id if option.groups else None: [] for leaf in option.leaves}
    for i, member in enumerate(members):
        of_leaf[member.leaf].append(first + i)
    groups = []
    for group in _groups(option):
        mine = [m for leaf in group.leaves for m in of_leaf[leaf.id if option.groups else None]]
        stated = not group.groups and all(members[m - first].own is group for m in mine)
        lies = () if stated else rules_of(group)
        if mine and (lies or group.prefer):
            groups.append(TreeGroup(group.id, tuple(mine), lies, group.prefer))
    return TreeForm(
        leaves=tuple((name, tuple(mine)) for name, mine in of_leaf.items()),
        starts=tuple(first + i for i, member in enumerate(members) if not member.runs),
        needs=tuple((first + a, first + b) for a, b in draft.needs),
        groups=tuple(groups),
    )


def _groups(group: Group) -> Iterator[Group]:
    """Yield a group and all below it."""
    yield group
    for part in group.groups:
        yield from _groups(part)


def rules_of(group: Group) -> tuple[Split | Spread, ...]:
    """Return how the workers of a group must lie, as splits and spreads alone."""
    at_node: list[Split | Spread] = []
    if group.single_node:
        at_node.append(Split(level="node", domains=1))
    if group.workers_per_node_max is not None:
        at_node.append(Spread(level="node", workers_max=group.workers_per_node_max))
    return (*at_node, *group.splits, *group.spread)


def _own_option(draft: _Draft, i: int) -> Option:
    """Return the option of a member, with its part of what the tree is worth; what it costs goes with the anchor."""
    option, member, leaf = draft.option, draft.members[i], draft.members[i].own
    own: dict[str, Any] = {name: getattr(leaf, name) for name in OF_LEAF}
    own["value"] = member.can_miss * leaf.value_per_worker + _share_of_value(draft, i)
    own["value_per_worker"] = leaf.value_per_worker if leaf.workers_min is not None else 0
    own |= {name: getattr(option, name) for name in ("utility_thousandths", "run_time_ms", "latency_ms")}
    if i == draft.anchor:
        own |= {"rate_milli": option.rate_milli, "cost_milli": option.cost_milli}
    return Option.model_construct(id=option.id, **own)


def _share_of_value(draft: _Draft, i: int) -> int:
    """
    Return a member's part of the least that the tree is worth.

    It is divided among the members that always run together, by the GPU share that each requests: so the value for a
    GPU is the same for all, in orders of jobs and in relaxations that do not see that they run together.
    """
    option, members, anchor = draft.option, draft.members, draft.anchor
    least = option.value - sum(member.can_miss * member.own.value_per_worker for member in members)
    if all(member.runs for member in members):
        runs = {leaf.id if option.groups else None: leaf for leaf in option.leaves}
        missing = {name: leaf.workers - len(draft.held.get(name, ())) for name, leaf in runs.items()}
        least -= sum(count * runs[name].value_per_worker for name, count in missing.items())
        return least if i == anchor else 0
    together, needs = {anchor}, set(draft.needs)
    while more := {a for a, b in needs if b in together and (b, a) in needs} - together:
        together |= more
    milli = {m: members[m].own.fewest * _milli(members[m].own) for m in together}
    total = max(sum(milli.values()), 1)
    shares = {m: least * milli[m] // total for m in together if m != anchor}
    return least - sum(shares.values()) if i == anchor else shares.get(i, 0)


def _milli(leaf: Group) -> int:
    return leaf.demand.gpus * leaf.demand.gpu_milli


OF_LEAF = ("workers", "workers_min", "demand", "single_node", "workers_per_node_max", "splits", "spread")
"""What the option of a member has of its leaf."""


def _own_running(running: Running, draft: _Draft, i: int, name: str) -> Running:
    """Return what runs of a leaf as a job of its own, which stays as it is."""
    workers = [(assignment, worker.gpus) for assignment, worker in draft.held[draft.members[i].leaf]]
    assignments = regrouped(workers, None, 0)
    return Running(
        job=name,
        option=running.option,
        assignments=assignments,
        started_ms=running.started_ms,
        expected_end_ms=running.expected_end_ms,
    )


HeldBy = tuple[Assignment, tuple[int, ...]]
"""The GPUs of a worker, and the assignment that they are of."""


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
        workers = [worker for member in members if member in parts for worker in _by_rank(parts[member])]
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
    for entry in _by_rank(placement):
        workers.setdefault(entry[0].group, []).append(entry)
    parts: dict[int, Placement] = {}
    for name, members in form.leaves:
        rest = workers.pop(name, [])
        for member in members:
            mine = rest if member not in running else _taken_out(rest, _by_rank(running[member]))
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


def _by_rank(placement: Placement) -> list[tuple[Assignment, tuple[int, ...]]]:
    workers = [(worker, assignment) for assignment in placement.assignments for worker in assignment.workers]
    workers.sort(key=lambda entry: entry[0].rank)
    return [(assignment, worker.gpus) for worker, assignment in workers]
