"""Brute force for small rounds of jobs with relations: all ways to lay all workers, from the records alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations, combinations_with_replacement, product
from typing import NamedTuple

from placeopt.model import Instance, Job, LabelExpression, Placement, Relation


class Worker(NamedTuple):
    """A worker of a job that is placed, on a node; whether it stays where it runs, and whether its job ran."""

    job: str
    node: str
    stays: bool
    ran: bool


class Way(NamedTuple):
    """One way to run a job, or not to: its workers, GPUs by node, value less prices, and what is done to it."""

    workers: tuple[Worker, ...]
    gpus: Mapping[str, int]
    value: int
    change: str


class RelationOracle:
    """The best value of a round of jobs with one option, and the least cost of soft relations at it."""

    def __init__(self, round_: Instance) -> None:
        self.round = round_
        self.jobs = {job.id: job for job in round_.jobs}
        self.nodes = {node.id: node for node in round_.cluster.nodes}
        self.domains = {domain.id: domain for domain in round_.cluster.domains}
        machines = {machine.id: machine for machine in round_.cluster.machines}
        self.gpus = {node.id: len(machines[node.machine].gpus) for node in round_.cluster.nodes}
        self.running = {held.job: held for held in round_.running}

    def best(self) -> tuple[int, int]:
        """Return the best value, and the least cost of soft relations at it."""
        best = (-1, 0)
        for plan in product(*(self.ways(job) for job in self.round.jobs)):
            value = sum(way.value for way in plan)
            if value >= best[0] and self._has_room(plan) and self._is_allowed(plan):
                workers = [worker for way in plan for worker in way.workers]
                cost = -self.cost(workers)
                if (value, cost) > best and self.is_lawful(workers):
                    best = value, cost
        return best[0], -best[1]

    def ways(self, job: Job) -> list[Way]:
        """Return the ways to run a job; of a running one also to keep it, to move it and to stop it."""
        option, held, changes = job.options[0], self.running.get(job.id), self.round.policy.changes
        if held is None:
            return [Way((), {}, 0, "waits"), *self._layouts(job, {}, option.value, "starts")]
        now = {leaf.id: Counter[str]() for leaf in option.leaves} | nodes_of(held)
        stay = self._way(job, now, {}, 0, "kept")
        whole = all(sum(now[leaf.id].values()) == leaf.workers for leaf in option.leaves)
        if not whole:
            return [stay, *self._layouts(job, now, option.value, "completed")]
        ways = [stay._replace(value=option.value)]
        if held.movable:
            moved = self._layouts(job, {}, option.value - changes.move_price, "moved")
            ways += [way for way in moved if Counter(w.node for w in way.workers) != now["default"]]
        if held.preemptible:
            ways.append(Way((), {}, -changes.preemption_price, "preempted"))
        return ways

    def _layouts(self, job: Job, now: Mapping[str, Counter[str]], value: int, change: str) -> Iterator[Way]:
        leaves = job.options[0].leaves
        choices = [
            combinations_with_replacement(self.nodes, leaf.workers - sum(now.get(leaf.id, Counter()).values()))
            for leaf in leaves
        ]
        for nodes in product(*map(list, choices)):
            more = {leaf.id: Counter(chosen) for leaf, chosen in zip(leaves, nodes, strict=True)}
            if not any(self.nodes[node].drained for chosen in nodes for node in chosen):
                yield self._way(job, now, more, value, change)

    def _way(
        self, job: Job, now: Mapping[str, Counter[str]], more: Mapping[str, Counter[str]], value: int, change: str
    ) -> Way:
        workers, gpus = list[Worker](), Counter[str]()
        for leaf in job.options[0].leaves:
            for counts, stays in ((now.get(leaf.id, {}), True), (more.get(leaf.id, {}), False)):
                for node, count in counts.items():
                    workers += [Worker(job.id, node, stays, job.id in self.running)] * count
                    gpus[node] += count * leaf.demand.gpus
        return Way(tuple(workers), gpus, value, change)

    def _has_room(self, plan: tuple[Way, ...]) -> bool:
        used = Counter[str]()
        for way in plan:
            used.update(way.gpus)
        return all(used[node] <= count for node, count in self.gpus.items())

    def _is_allowed(self, plan: tuple[Way, ...]) -> bool:
        count, changes = Counter(way.change for way in plan), self.round.policy.changes
        return count["moved"] <= changes.moves_max and count["preempted"] <= changes.preemptions_max

    def domain(self, name: str, level: str) -> str | None:
        """Return the domain of a node: itself, or the value of its label or of the domain level above it."""
        node = self.nodes[name]
        if level == "node":
            return name
        if level in node.labels:
            return node.labels[level]
        at = node.domain
        while at is not None and self.domains[at].level != level:
            at = self.domains[at].parent
        return at

    def is_lawful(self, workers: list[Worker]) -> bool:
        """Whether all relations that must hold do, of workers that start."""
        relations = {relation for worker in workers for relation in self.jobs[worker.job].relations}
        return all(self._holds(relation, workers) for relation in relations if relation.weight is None)

    def _holds(self, relation: Relation, workers: list[Worker]) -> bool:
        where = [(worker, self.domain(worker.node, relation.level)) for worker in workers]
        chosen = [self._selects(relation, worker) for worker in workers]
        having = [relation in self.jobs[worker.job].relations for worker in workers]
        if relation.kind == "apart":
            for a, b in combinations(range(len(workers)), 2):
                if not (having[a] and chosen[b]) and not (having[b] and chosen[a]):
                    continue
                (one, domain), (other, beside) = where[a], where[b]
                if domain is not None and domain == beside and not (one.stays and other.stays):
                    return False
            return True
        closed = set()
        for (worker, domain), has in zip(where, having, strict=True):
            if has and not worker.stays:
                anchors = [
                    other
                    for (other, there), is_chosen, has_too in zip(where, chosen, having, strict=True)
                    if is_chosen and there == domain and (other.stays or not has_too)
                ]
                if domain is None:
                    return False
                if not anchors:
                    closed.add(domain)
        if not closed:
            return True
        if len(closed) > 1:
            return False
        seeds = [w for (w, there), c, h in zip(where, chosen, having, strict=True) if c and h and there in closed]
        ran = [w for (w, there), c in zip(where, chosen, strict=True) if c and w.ran and there not in (None, *closed)]
        return bool(seeds) and not ran

    def cost(self, workers: list[Worker]) -> int:
        """Return what broken soft relations cost."""
        total = 0
        for i, worker in enumerate(workers):
            for relation in set(self.jobs[worker.job].relations):
                if relation.weight is not None:
                    domain = self.domain(worker.node, relation.level)
                    beside = any(
                        domain is not None
                        and self.domain(other.node, relation.level) == domain
                        and self._selects(relation, other)
                        for k, other in enumerate(workers)
                        if k != i
                    )
                    total += relation.weight * (beside == (relation.kind == "apart"))
        return total

    def _selects(self, relation: Relation, worker: Worker) -> bool:
        labels = self.jobs[worker.job].labels
        return all(_meets(expression, labels) for expression in relation.selector)


def _meets(expression: LabelExpression, labels: Mapping[str, str]) -> bool:
    key, operator = expression.key, expression.operator
    if operator == "Exists":
        return key in labels
    if operator == "DoesNotExist":
        return key not in labels
    if operator in ("In", "NotIn"):
        return (labels.get(key) in expression.values) == (operator == "In")
    if key not in labels or not labels[key].isdigit():
        return False
    bound = int(expression.values[0])
    return int(labels[key]) > bound if operator == "Gt" else int(labels[key]) < bound


def nodes_of(held: Placement) -> dict[str, Counter[str]]:
    """Return where the workers of a placement are, by leaf; of a job without groups under ``default``."""
    found: dict[str, Counter[str]] = {}
    for assignment in held.assignments:
        found.setdefault(assignment.group or "default", Counter())[assignment.node] += len(assignment.workers)
    return found
