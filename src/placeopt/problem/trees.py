"""
Trees of groups: the workers of each leaf are compiled as a job of its own, a *member*; a `Tree` says what binds them.

So arrays, states, capacities and costs have jobs of alike workers only. What a tree adds is who runs with whom, and how
the workers of several members lie together. Where a tree runs in part, what runs of a leaf is one member, which stays
as it is, and what is missing another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from operator import and_
from typing import Any

from placeopt.model import (
    Communication,
    Group,
    Instance,
    Job,
    NodeConditions,
    Option,
    Running,
    Split,
    Spread,
)
from placeopt.model.conditions import ANY_NODE
from placeopt.problem.tree import HeldBy, LeafName, Tree, TreeForm, TreeGroup, by_rank, regrouped

OF_LEAF = ("workers", "workers_min", "demand", "single_node", "workers_per_node_max", "splits", "spread")
"""What the option of a member has of its leaf."""
Stated = tuple[NodeConditions, ...]
"""The conditions of the groups that a leaf is in, from the root down."""


def with_members(instance: Instance) -> tuple[Instance, tuple[Tree, ...]]:
    """Return the round with the members of each tree in its place, and the trees."""
    kinds = {id(job.options): job.options for job in instance.jobs}
    if not any(option.is_tree for options in kinds.values() for option in options):
        return instance, ()
    held = {running.job: running for running in instance.running}
    jobs, running, trees = list[Job](), dict[str, list[Running]](), list[Tree]()
    for job in _in_blocks(instance):
        if any(option.is_tree for option in job.options):
            tree, members, running[job.id] = _tree(job, held.get(job.id), len(jobs))
            trees.append(tree)
            jobs += members
        else:
            jobs.append(job)
    names = {tree.job: [jobs[member].id for member in tree.members] for tree in trees}
    changed = {
        "cluster": instance.cluster.model_copy(update={"block_sizes": ()}),
        "jobs": tuple(jobs),
        "running": tuple(part for record in instance.running for part in running.get(record.job, [record])),
        "holds": tuple(
            hold.model_copy(update={"jobs": (*hold.jobs, *(name for job in hold.jobs for name in names.get(job, ())))})
            for hold in instance.holds
        ),
    }
    return instance.model_copy(update=changed), tuple(trees)


def _in_blocks(instance: Instance) -> Iterable[Job]:
    """Return the jobs with the splits of the cluster's blocks as their own: members of a tree have none of theirs."""
    if not instance.cluster.block_sizes:
        return instance.jobs
    splits_of = instance.cluster.splits_of
    stated = {
        key: tuple(option.model_copy(update={"splits": splits_of(option)}) for option in options)
        for key, options in {id(job.options): job.options for job in instance.jobs}.items()
    }
    return [job.model_copy(update={"options": stated[id(job.options)]}) for job in instance.jobs]


@dataclass
class _Member:
    """Workers of a leaf: how many, whether they run already, and how many of those that start may be missing."""

    leaf: LeafName
    own: Group  # a leaf of so many workers
    runs: bool
    can_miss: int
    stated: Stated  # what the groups that it is in ask of nodes
    at: int = -1
    """Its position among the members of the tree."""


class _Draft:
    """One option: its members, and what binds them, by their positions here; ``held``: what runs of each leaf."""

    def __init__(self, option: Option, held: Mapping[LeafName, list[HeldBy]]) -> None:
        self.option, self.held = option, held
        self.leaves = [(leaf.id if option.groups else None, leaf, stated) for leaf, stated in _leaves(option, ())]
        self.count = {id(leaf): len(held.get(name, ())) for name, leaf, _ in self.leaves}
        self.members: list[_Member] = []
        for name, leaf, stated in self.leaves:
            if now := self.count[id(leaf)]:
                self.members.append(_Member(name, _sized(leaf, now, None), True, 0, stated))
        self.needs: list[tuple[int, int]] = []
        self.together, _ = self._bind(option, optional=False)
        """The members that start wherever any does; none if it runs whole, or with all that it needs."""
        if held and not self.together:
            self.members, self.needs = [member for member in self.members if member.runs], []
        self.anchor = self.together[0] if self.together else 0  # runs wherever any other does

    def _runs(self, group: Group) -> bool:
        return any(self.count[id(leaf)] for leaf in group.leaves)

    def _bind(self, group: Group, *, optional: bool) -> tuple[list[int], list[int]]:
        """Add the members below that may start; return those that must with the group, and those that only may."""
        optional = not self._runs(group) and (optional or group.optional)
        if not group.groups:
            return self._add_missing(group, optional=optional)
        must, may = list[int](), list[int]()
        for part in group.groups:
            firmly, loosely = self._bind(part, optional=optional)
            if part.optional and not self._runs(part):
                may += firmly[:1]
            else:
                self.needs += [pair for a, b in product(must[:1], firmly[:1]) for pair in ((a, b), (b, a))]
                must += firmly
            may += loosely
        self.needs += [(other, must[0]) for other in may if must]
        return must, [] if must else may

    def _add_missing(self, leaf: Group, *, optional: bool) -> tuple[list[int], list[int]]:
        """Add the workers of a leaf that do not run as a member, which must start with its group or only may."""
        running = self.count[id(leaf)]
        if running == leaf.workers:
            return [], []
        name, stated = next((name, stated) for name, one, stated in self.leaves if one is leaf)
        more, missing = leaf.workers - running, leaf.fewest - running
        least = max(missing, 1)
        own = leaf if not running else _sized(leaf, more, least if least < more else None)
        may_wait = running > 0 and missing <= 0
        can_miss = more if optional or may_wait else more - least
        self.members.append(_Member(name, own, False, can_miss, stated))
        mine = [len(self.members) - 1]
        return ([], mine) if may_wait else (mine, [])

    def value_of(self, i: int) -> int:
        """
        Return a member's part of what the tree is worth.

        The least that it is worth is divided among the members that always run together, by the GPU share that each
        requests: so the value for a GPU is the same for all, in orders of jobs and in relaxations that do not see that
        they run together.
        """
        members, own = self.members, self.members[i].can_miss * self.members[i].own.value_per_worker
        least = self.option.value - sum(member.can_miss * member.own.value_per_worker for member in members)
        if all(member.runs for member in members):
            missing = sum((leaf.workers - self.count[id(leaf)]) * leaf.value_per_worker for _, leaf, _ in self.leaves)
            return own + (least - missing if i == self.anchor else 0)
        leaves = {m: members[m].own for m in self.together}
        milli = {m: leaf.fewest * leaf.demand.gpus * leaf.demand.gpu_milli for m, leaf in leaves.items()}
        total = max(sum(milli.values()), 1)
        shares = {m: least * milli[m] // total for m in self.together[1:]}
        return own + (least - sum(shares.values()) if i == self.anchor else shares.get(i, 0))

    def option_of(self, i: int) -> Option:
        """Return the option of a member, with its part of the value; what it costs goes with the anchor."""
        option, leaf = self.option, self.members[i].own
        own: dict[str, Any] = {name: getattr(leaf, name) for name in OF_LEAF}
        own |= {name: getattr(option, name) for name in ("utility_thousandths", "run_time_ms", "latency_ms")}
        own["value_per_worker"] = leaf.value_per_worker if leaf.workers_min is not None else 0
        if i == self.anchor:
            own |= {"rate_milli": option.rate_milli, "cost_milli": option.cost_milli}
        return Option.model_construct(id=option.id, value=self.value_of(i), **own)

    def form(self, first: int) -> TreeForm:
        """Return the option's form, the tree's members being numbered from ``first``."""
        number = [first + member.at for member in self.members]
        of_leaf = {name: [i for i, m in enumerate(self.members) if m.leaf == name] for name, *_ in self.leaves}
        groups = []
        for _, group in self.option.walk():
            mine = [i for leaf in group.leaves for i in of_leaf[leaf.id if self.option.groups else None]]
            stated = not group.groups and all(self.members[i].own is group for i in mine)
            lies = () if stated else rules_of(group)
            if mine and (lies or group.prefer):
                groups.append(TreeGroup(group.id, tuple(number[i] for i in mine), lies, group.prefer))
        return TreeForm(
            anchor=number[self.anchor],
            leaves=tuple((name, tuple(number[i] for i in mine)) for name, mine in of_leaf.items()),
            starts=tuple(at for at, member in zip(number, self.members, strict=True) if not member.runs),
            needs=tuple((number[a], number[b]) for a, b in self.needs),
            groups=tuple(groups),
        )


def _leaves(group: Group, above: Stated) -> Iterator[tuple[Group, Stated]]:
    """Yield each leaf with what it and the groups above it state, from the root down."""
    here = above if group.conditions == ANY_NODE else (*above, group.conditions)
    for part in group.groups:
        yield from _leaves(part, here)
    if not group.groups:
        yield group, here


def _sized(leaf: Group, workers: int, workers_min: int | None) -> Group:
    """Return a part of a leaf; how the leaf lies is asked of all its members together."""
    free = {"single_node": False, "workers_per_node_max": None, "splits": (), "spread": ()}
    return leaf.model_copy(update={"workers": workers, "workers_min": workers_min, **free})


def _tree(job: Job, running: Running | None, first: int) -> tuple[Tree, list[Job], list[Running]]:
    """Return the tree, with its members numbered from ``first``, their records, and what runs of them."""
    if running is None:
        drafts = [_Draft(option, {}) for option in job.options if not job.is_below_minimum(option)]
    else:  # only the option that it has
        held: dict[LeafName, list[HeldBy]] = {}
        for entry in by_rank(running):
            held.setdefault(entry[0].group, []).append(entry)
        drafts = [_Draft(job.option(running.option), held)]
    stated = _number(drafts) or [()]
    alone, traffic = len(stated) == 1, job.communication
    names = [job.id if alone else f"{job.id}/{i}" for i in range(len(stated))]
    own: dict[str, object] = {}
    if not alone:
        share = Communication(weight=0 if traffic.edges else traffic.weight)
        own = {"communication": share, "utility_min_thousandths": None, "origin": None}
    options: list[list[Option]] = [[] for _ in stated]
    runs: dict[int, Running] = {}
    for draft in drafts:
        for i, member in enumerate(draft.members):
            options[member.at].append(draft.option_of(i))
            if member.runs and running is not None:  # as a job of its own, which stays as it is
                runs[first + member.at] = Running(
                    job=names[member.at],
                    option=running.option,
                    assignments=regrouped(draft.held[member.leaf], None, 0),
                    started_ms=running.started_ms,
                    expected_end_ms=running.expected_end_ms,
                )
    members = [
        job.model_copy(
            update={"id": name, "options": tuple(mine), **own, "conditions": reduce(and_, asked, job.conditions)}
        )
        for name, mine, asked in zip(names, options, stated, strict=True)
    ]
    tree = Tree(
        job=job.id,
        members=tuple(range(first, first + len(members))),
        runs=tuple(runs),
        forms={draft.option.id: draft.form(first) for draft in drafts},
        communication=Communication() if alone else traffic,
    )
    return tree, members, list(runs.values())


def _number(drafts: Sequence[_Draft]) -> list[Stated]:
    """
    Give each member of each option a position in the tree; return what is stated of each position.

    A member is one job in all options that have it, so what it asks of nodes is the same in all of them.
    """
    stated: list[Stated] = []
    for draft in drafts:
        free = list(range(len(stated)))
        for member in draft.members:
            member.at = next((at for at in free if stated[at] == member.stated), len(stated))
            if member.at == len(stated):
                stated.append(member.stated)
            else:
                free.remove(member.at)
    return stated


def rules_of(group: Group) -> tuple[Split | Spread, ...]:
    """Return how the workers of a group must lie, as splits and spreads alone."""
    at_node: list[Split | Spread] = []
    if group.single_node:
        at_node.append(Split(level="node", domains=1))
    if group.workers_per_node_max is not None:
        at_node.append(Spread(level="node", workers_max=group.workers_per_node_max))
    return (*at_node, *group.splits, *group.spread)
