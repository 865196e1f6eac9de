"""
Trees of groups: the workers of each leaf are compiled as a job of its own, a *member*; a `Tree` says what binds them.

So arrays, states, capacities and costs have jobs of alike workers only. What a tree adds is who runs with whom, and how
the workers of several members lie together. Where a tree runs in part, what runs of a leaf is one member, which stays
as it is, and what is missing another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from placeopt.model import Assignment, Communication, Group, Instance, Job, Option, Running, Split, Spread, WorkerGpus
from placeopt.problem.tree import LeafName, Tree, TreeForm, TreeGroup
from placeopt.problem.tree_conditions import Stated, conditions_with, positions, stated_of_leaves
from placeopt.problem.tree_placements import regrouped


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
    cluster = instance.cluster.model_copy(update={"block_sizes": ()})
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


@dataclass
class _Member:
    """Workers of a leaf: how many, whether they run already, and how many of those that start may be missing."""

    leaf: LeafName
    own: Group  # a leaf of so many workers
    runs: bool
    can_miss: int
    stated: Stated = ()  # what the groups that it is in ask of nodes


@dataclass
class _Draft:
    """One option: its members, and what binds them, by their positions."""

    option: Option
    members: list[_Member]
    anchor: int  # a member that runs wherever any other does
    needs: list[tuple[int, int]]
    held: Mapping[LeafName, list[tuple[Assignment, WorkerGpus]]]
    at: list[int] = field(default_factory=list)
    """Position of each member among those of the tree."""


def _drafts(job: Job, running: Running | None) -> list[_Draft]:
    """Return a draft of each option that the job may take; of one that runs, the option that it has."""
    if running is None:
        return [_draft(option, {}) for option in job.options if not job.is_below_minimum(option)]
    held: dict[LeafName, list[tuple[Assignment, WorkerGpus]]] = {}
    for assignment in running.assignments:
        held.setdefault(assignment.group, []).extend((assignment, worker) for worker in assignment.workers)
    for workers in held.values():
        workers.sort(key=lambda entry: entry[1].rank)
    return [_draft(job.option(running.option), held)]


def _draft(option: Option, held: Mapping[LeafName, list[tuple[Assignment, WorkerGpus]]]) -> _Draft:
    names = {id(leaf): name for name, leaf in named_leaves(option)}
    count = {key: len(held.get(name, ())) for key, name in names.items()}
    running = ((name, leaf, count[id(leaf)]) for name, leaf in named_leaves(option))
    members = [_Member(name, _sized(leaf, now, None), runs=True, can_miss=0) for name, leaf, now in running if now]
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
    stated = dict(zip((name for name, _ in named_leaves(option)), stated_of_leaves(option), strict=True))
    for member in members:
        member.stated = stated[member.leaf]
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
    places, stated = positions([[member.stated for member in draft.members] for draft in drafts])
    for draft, place in zip(drafts, places, strict=True):
        draft.at = place
    stated = stated or [()]
    number = len(stated)
    traffic = job.communication
    own_traffic = traffic if number == 1 else Communication(weight=0 if traffic.edges else traffic.weight)
    names = [job.id if number == 1 else f"{job.id}/{i}" for i in range(number)]
    members = [
        job.model_copy(
            update={
                "id": names[i],
                "options": tuple(_own_option(draft, draft.at.index(i)) for draft in drafts if i in draft.at),
                "communication": own_traffic,
                "utility_min_thousandths": job.utility_min_thousandths if number == 1 else None,
                "origin": job.origin if number == 1 else None,
                **(conditions_with(job, stated[i]) if stated[i] else {}),
            }
        )
        for i in range(number)
    ]
    runs = [] if running is None else [_own_running(running, drafts[0], i, names) for i in _running(drafts[0])]
    tree = Tree(
        job=job.id,
        members=tuple(range(first, first + number)),
        runs=tuple(first + draft.at[i] for draft in drafts for i in _running(draft)),
        forms={draft.option.id: _form(draft, first) for draft in drafts},
        communication=Communication() if number == 1 else traffic,
    )
    return tree, members, runs


def _running(draft: _Draft) -> list[int]:
    return [i for i, member in enumerate(draft.members) if member.runs]


def _form(draft: _Draft, first: int) -> TreeForm:
    option, members = draft.option, draft.members
    number = [first + position for position in draft.at]
    of_leaf = {name: [i for i, member in enumerate(members) if member.leaf == name] for name, _ in named_leaves(option)}
    groups = []
    for group in _groups(option):
        mine = [i for leaf in group.leaves for i in of_leaf[leaf.id if option.groups else None]]
        stated = not group.groups and all(members[i].own is group for i in mine)
        lies = () if stated else rules_of(group)
        if mine and (lies or group.prefer):
            groups.append(TreeGroup(group.id, tuple(number[i] for i in mine), lies, group.prefer))
    return TreeForm(
        anchor=number[draft.anchor],
        leaves=tuple((name, tuple(number[i] for i in mine)) for name, mine in of_leaf.items()),
        starts=tuple(number[i] for i, member in enumerate(members) if not member.runs),
        needs=tuple((number[a], number[b]) for a, b in draft.needs),
        groups=tuple(groups),
    )


def named_leaves(option: Option) -> list[tuple[LeafName, Group]]:
    """Return the leaves of an option, each with its name in assignments."""
    return [(leaf.id if option.groups else None, leaf) for leaf in option.leaves]


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
        missing = [(leaf.workers - len(draft.held.get(name, ())), leaf) for name, leaf in named_leaves(option)]
        return least - sum(count * leaf.value_per_worker for count, leaf in missing) if i == anchor else 0
    together, needs = {anchor}, set(draft.needs)
    while more := {a for a, b in needs if b in together and (b, a) in needs} - together:
        together |= more
    own = {m: members[m].own for m in together}
    milli = {m: leaf.fewest * leaf.demand.gpus * leaf.demand.gpu_milli for m, leaf in own.items()}
    total = max(sum(milli.values()), 1)
    shares = {m: least * milli[m] // total for m in together if m != anchor}
    return least - sum(shares.values()) if i == anchor else shares.get(i, 0)


OF_LEAF = ("workers", "workers_min", "demand", "single_node", "workers_per_node_max", "splits", "spread")
"""What the option of a member has of its leaf."""


def _own_running(running: Running, draft: _Draft, i: int, names: Sequence[str]) -> Running:
    """Return what runs of a leaf as a job of its own, which stays as it is."""
    workers = [(assignment, worker.gpus) for assignment, worker in draft.held[draft.members[i].leaf]]
    return Running(
        job=names[draft.at[i]],
        option=running.option,
        assignments=regrouped(workers, None, 0),
        started_ms=running.started_ms,
        expected_end_ms=running.expected_end_ms,
    )
