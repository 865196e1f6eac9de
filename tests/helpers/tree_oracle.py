"""Brute force for small rounds of trees of groups: all ways to lay the workers, from the records alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from placeopt.model import Group, Instance, Job, Node, NodeConditions, Option, Placement

Layout = Mapping[str, Counter[str]]
"""Leaf -> node -> workers."""


@dataclass(frozen=True)
class Way:
    """One way to run a job: what it is worth, what its preferences cost, GPUs and millicores that it takes of nodes."""

    value: int
    prefer: int
    gpus: Mapping[str, int]
    cpu: Mapping[str, int]


class TreeOracle:
    """The best value of a round, and the least that preferences cost at that value."""

    def __init__(self, round_: Instance) -> None:
        self.round = round_
        self.nodes = {node.id: node for node in round_.cluster.nodes}
        self.parent = {domain.id: domain.parent for domain in round_.cluster.domains}
        self.level = {domain.id: domain.level for domain in round_.cluster.domains}
        machines = {machine.id: machine for machine in round_.cluster.machines}
        self.gpus = {node.id: len(machines[node.machine].gpus) for node in round_.cluster.nodes}
        self.cpu = {node.id: machines[node.machine].cpu_millicores for node in round_.cluster.nodes}
        self.running = {held.job: held for held in round_.running}

    def best(self) -> tuple[int, int]:
        """Return the best value, and the least cost of preferences at it."""
        ways = [self.ways(job) for job in self.round.jobs]
        return max(self._values(ways, 0, dict(self.gpus), dict(self.cpu)), key=lambda one: (one[0], -one[1]))

    def _values(
        self, ways: list[list[Way]], j: int, gpus: dict[str, int], cpu: dict[str, int]
    ) -> Iterator[tuple[int, int]]:
        if j == len(ways):
            yield 0, 0
            return
        for way in ways[j]:
            left = {node: free - way.gpus.get(node, 0) for node, free in gpus.items()}
            cores = {node: free - way.cpu.get(node, 0) for node, free in cpu.items()}
            if min(left.values()) >= 0 and min(cores.values()) >= 0:
                value, prefer = max(self._values(ways, j + 1, left, cores), key=lambda one: (one[0], -one[1]))
                yield way.value + value, way.prefer + prefer

    def ways(self, job: Job) -> list[Way]:
        """Return the ways to run a job, or to leave it waiting, without what is no better than another."""
        held = self.running.get(job.id)
        found: dict[tuple[object, ...], Way] = {}
        if held is None:
            found[()] = Way(0, 0, {}, {})
        for option in job.options:
            if held is not None and held.option != option.id:
                continue
            for layout in self._layouts(job, option, held):
                way = self._way(option, layout, complete=self.is_whole(option, layout))
                key = (tuple(sorted(way.gpus.items())), tuple(sorted(way.cpu.items())))
                if key not in found or (found[key].value, -found[key].prefer) < (way.value, -way.prefer):
                    found[key] = way
        return list(found.values())

    def fits_alone(self, job: Job) -> bool:
        """Whether what does not run of a job has a lawful layout beside the other jobs that run."""
        held = self.running.get(job.id)
        gpus, cpu = Counter(self.gpus), Counter(self.cpu)
        for assignment in (a for other in self.running.values() if other is not held for a in other.assignments):
            gpus[assignment.node] -= len(assignment.gpus)
            cpu[assignment.node] -= assignment.cpu_millicores
        return any(
            all(count <= gpus[node] for node, count in way.gpus.items())
            and all(count <= cpu[node] for node, count in way.cpu.items())
            for option in job.options
            if held is None or held.option == option.id
            for layout in self._layouts(job, option, held)
            if layout != layout_of(option, held)
            for way in [self._way(option, layout, complete=True)]
        )

    def _layouts(self, job: Job, option: Option, held: Placement | None) -> Iterator[Layout]:
        now = layout_of(option, held)
        if held is not None:
            yield now
            if self.is_whole(option, now):
                return
        leaves = list(option.leaves)
        choices = [list(self._of_leaf(leaf, now[leaf.id])) for leaf in leaves]
        for counts in product(*choices):
            layout = {leaf.id: count for leaf, count in zip(leaves, counts, strict=True)}
            if layout != now and self.is_lawful(job, option, layout, now):
                yield layout

    def _of_leaf(self, leaf: Group, now: Counter[str]) -> Iterator[Counter[str]]:
        """Yield the ways to lay the workers of a leaf over nodes, those that run where they are."""
        names = list(self.nodes)
        for counts in product(range(leaf.workers + 1), repeat=len(names)):
            if sum(counts) <= leaf.workers:
                made = Counter({name: count for name, count in zip(names, counts, strict=True) if count})
                if made >= now:
                    yield made

    def is_lawful(self, job: Job, option: Option, layout: Layout, now: Layout) -> bool:
        """Whether workers that are added are allowed on their nodes, and the whole is as the tree asks."""
        for leaf, groups in paths(option):
            for node in layout[leaf.id] - now[leaf.id]:
                at = self.nodes[node]
                tolerated = {one.key for asks in (job.conditions, *stated(groups)) for one in asks.tolerations}
                if at.drained or {taint.key for taint in at.taints} - tolerated or not self.chooses(job, at, groups):
                    return False
        return self.is_whole(option, layout) and self._lies(job, option, layout, now)

    def is_whole(self, group: Group, layout: Layout) -> bool:
        """Whether no worker is missing that may not be."""
        count = sum(sum(layout[leaf.id].values()) for leaf in group.leaves)
        if not group.groups:
            least = group.workers if group.workers_min is None else group.workers_min
            return least <= count <= group.workers
        return all(
            (part.optional and not any(layout[leaf.id] for leaf in part.leaves)) or self.is_whole(part, layout)
            for part in group.groups
        )

    def chooses(self, job: Job, node: Node, groups: tuple[Group, ...]) -> bool:
        """Whether what the job and some groups of it say about nodes admits a node, which has all labels asked for."""
        for asks in (job.conditions, *stated(groups)):
            terms = [
                bool(term) and all((node.labels.get(e.key) in e.values) == (e.operator == "In") for e in term)
                for term in asks.node_affinity
            ]
            selected = all(node.labels.get(key) == value for key, value in asks.node_selector.items())
            if not selected or node.id in asks.nodes_excluded or (terms and not any(terms)):
                return False
        return True

    def domain(self, node: str, level: str) -> str | None:
        """Return the domain of a level above a node."""
        if level == "node":
            return node
        at = self.nodes[node].domain
        while at is not None and self.level[at] != level:
            at = self.parent[at]
        return at

    def _lies(self, job: Job, group: Group, layout: Layout, now: Layout, above: tuple[Group, ...] = ()) -> bool:
        groups = (*above, group)
        workers = sum((layout[leaf.id] for leaf in group.leaves), Counter[str]())
        if all(layout[leaf.id] == now[leaf.id] for leaf in group.leaves):
            return True  # nothing is added to what runs, however it lies
        if group.single_node and len(workers) > 1:
            return False
        if group.workers_per_node_max is not None and max(workers.values()) > group.workers_per_node_max:
            return False
        for split in group.splits:
            inside = self._inside(workers, split.level)
            if None in inside or len(inside) != split.domains:
                return False
            if split.workers is not None and set(inside.values()) != {split.workers}:
                return False
        for spread in group.spread:
            inside = self._inside(workers, spread.level)
            if None in inside:
                return False
            odd = [count for count in inside.values() if spread.segment is not None and count % spread.segment]
            if len(odd) > (1 if spread.remainder == "smaller" else 0):
                return False
            if spread.workers_max is not None and max(inside.values()) > spread.workers_max:
                return False
            if spread.skew_max is not None:
                chosen = [name for name, node in self.nodes.items() if self.chooses(job, node, groups)]
                every = {self.domain(name, spread.level) for name in chosen} - {None}
                fewest = min((inside[domain] for domain in every), default=0)
                if max(inside.values()) - fewest > spread.skew_max:
                    return False
        return all(self._lies(job, part, layout, now, groups) for part in group.groups)

    def _inside(self, workers: Counter[str], level: str) -> Counter[str | None]:
        inside: Counter[str | None] = Counter()
        for node, count in workers.items():
            inside[self.domain(node, level)] += count
        return inside

    def _way(self, option: Option, layout: Layout, *, complete: bool) -> Way:
        gpus: Counter[str] = Counter()
        cpu: Counter[str] = Counter()
        value = option.value if complete else 0
        for leaf in option.leaves:
            count = sum(layout[leaf.id].values())
            value -= (leaf.workers - count) * leaf.value_per_worker if complete else 0
            for node, number in layout[leaf.id].items():
                gpus[node] += number * leaf.demand.gpus
                cpu[node] += number * leaf.demand.cpu_millicores
        return Way(value, self._preferred(option, layout), gpus, cpu)

    def _preferred(self, group: Group, layout: Layout) -> int:
        workers = sum((layout[leaf.id] for leaf in group.leaves), Counter[str]())
        own = 0
        if workers and group.prefer:
            own = len(group.prefer)
            for i, level in reversed(list(enumerate(group.prefer))):
                inside = self._inside(workers, level)
                own = i if len(inside) == 1 and None not in inside else own
        return own + sum(self._preferred(part, layout) for part in group.groups)


def layout_of(option: Option, held: Placement | None) -> dict[str, Counter[str]]:
    """Return where the workers of a placement are, by leaf."""
    layout = {leaf.id: Counter[str]() for leaf in option.leaves}
    for assignment in held.assignments if held is not None else ():
        layout[option.id if assignment.group is None else assignment.group][assignment.node] += len(assignment.workers)
    return layout


def paths(group: Group, above: tuple[Group, ...] = ()) -> Iterator[tuple[Group, tuple[Group, ...]]]:
    """Yield the leaves of a group, each with the groups that it is in, itself last."""
    here = (*above, group)
    for part in group.groups:
        yield from paths(part, here)
    if not group.groups:
        yield group, here


def stated(groups: tuple[Group, ...]) -> list[NodeConditions]:
    """Return what groups ask of nodes."""
    return [group.conditions for group in groups]
