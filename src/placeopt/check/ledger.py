"""
The referee of a cluster that stays: judges a plan for some jobs by looking at what it touches.

The ledger is written in records of the model and plain integers, from the same placements that a caller is told, and
the rules are the referee's own. What it does not look at again is what cannot have changed: nodes that the plan does
not touch, and running jobs, which a plan for some jobs leaves as they are. Of these it keeps the sums of all amounts.

``violations(snapshot, plan)`` judges the same plan from nothing; tests compare the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from placeopt.check.amounts import Amounts, Limits
from placeopt.check.case import CheckCase, Reference, Violation
from placeopt.check.directory import Directory, PlacedJob, by_nodes, leaves_of, option_of
from placeopt.check.rules import BY_THEMSELVES, rules_since
from placeopt.model import Assignment, Hold, Instance, Job, Node, Plan, Policy, Running


class Ledger:
    """
    What each job holds by node, and what all of them take of every limited resource.

    ``directory`` has the jobs, nodes and running placements by name, in the order in which they came; jobs may be added
    to and removed from it as long as they do not run.
    """

    def __init__(self, instance: Instance, policy: Policy) -> None:
        self.directory = Directory(instance)
        self._on_node: dict[str, dict[tuple[str, str | None], tuple[PlacedJob, Assignment]]] = {}
        self._limits = Limits(self.directory, policy)
        self._used: Amounts = {}
        for running in instance.running:
            self._count(running, 1)

    def start(self, running: Running) -> None:
        """Record that a known job runs, in place of what it held before, if it ran already."""
        before = self.directory.running.get(running.job)
        if before is not None:
            self._count(before, -1)
        self.directory.running[running.job] = running
        if self.directory.jobs[running.job].relations:
            self.directory.related.add(running.job)
        self._count(running, 1)

    def stop(self, job: str) -> Running:
        """Record that a running job holds nothing any more, and return what it held."""
        running = self.directory.running.pop(job)
        self.directory.related.discard(job)
        self._count(running, -1)
        return running

    def put_job(self, job: Job) -> None:
        """Replace the record of a job by another one that asks for the same."""
        running = self.directory.running.get(job.id)
        if running is not None:  # its priority decides what it may take of holds
            self._count(running, -1)
        self.directory.jobs[job.id] = job
        if running is not None:
            self._count(running, 1)

    def on_node(self, node: str) -> tuple[str, ...]:
        """Return the jobs that hold anything on a node."""
        return tuple(dict.fromkeys(job for job, _ in self._on_node.get(node, ())))

    def put_node(self, node: Node) -> None:
        """Add a node, or replace the one of the same id; what runs there stays."""
        directory = self.directory
        there = [directory.running[job] for job in self.on_node(node.id)]
        for running in there:  # the load of uplinks goes by the domain
            self._count(running, -1)
        directory.put_node(node)
        for running in there:
            self._count(running, 1)

    def remove_node(self, name: str) -> None:
        """Take away a node on which nothing runs."""
        self.directory.remove_node(name)
        self._on_node.pop(name, None)

    def hold(self, holds: Sequence[Hold], now_ms: int) -> None:
        """Hold this room instead, ``holds`` as in `Instance.holds_now`; what runs there stays."""
        directory, by_node = self.directory, by_nodes(holds)
        other = {node for node in {**directory.holds, **by_node} if directory.holds.get(node) != by_node.get(node)}
        if now_ms != directory.now_ms:  # holds that have not begun count against some jobs alone
            other |= {hold.node for hold in holds if hold.from_ms > directory.now_ms}
        jobs = dict.fromkeys(job for node in other for job in self.on_node(node))
        there = [directory.running[job] for job in jobs]
        for running in there:
            self._count(running, -1)
        directory.holds, directory.now_ms = by_node, now_ms
        for node in other:
            self._limits.hold(node)
        for running in there:
            self._count(running, 1)

    def violations(self, instance: Reference, plan: Plan, *, since: Plan | None = None) -> list[Violation]:
        """
        List everything in which a plan for some jobs (``asked``) breaks a hard constraint, as ``violations`` does.

        ``since``: As in ``violations``; both are for some jobs.

        Time is linear in the size of the plan and in what runs on the nodes that it names.
        """
        case = CheckCase(plan, instance, self.directory, plan.placements, {})
        self._judge(case, rules_since(plan, since), self._used)
        return case.found

    def standing(self, nodes: Iterable[str], plan: Plan) -> list[Violation]:
        """
        List the rules that jobs which run on ``nodes`` break as they stand, or queues do: after a change of nodes.

        ``plan`` is one without jobs, for the policy.
        """
        directory = self.directory
        jobs = dict.fromkeys(job for node in nodes for job in self.on_node(node))
        running = {job: directory.running[job] for job in jobs}
        case = CheckCase(plan, plan.instance, directory, tuple(running.values()), running)
        own: Amounts = {}
        for held in case.held:
            self._limits.add(own, held)
        self._judge(case, BY_THEMSELVES, {resource: self._used[resource] - amount for resource, amount in own.items()})
        return case.found

    def _judge(self, case: CheckCase, rules: Iterable[Callable[[CheckCase], None]], elsewhere: Amounts) -> None:
        case.limits, case.elsewhere = self._limits, elsewhere
        self._add_others(case)
        for check in rules:
            check(case)

    def _add_others(self, case: CheckCase) -> None:
        """Add to the case what other jobs hold on its nodes."""
        known = {held.job.id for held in case.held}
        for node, entries in case.on_node.items():
            others = [entry for (job, _), entry in self._on_node.get(node, {}).items() if job not in known]
            case.on_node[node] = [*others, *entries]

    def _count(self, running: Running, sign: int) -> None:
        """Add (``sign`` 1) or subtract (-1) what a job holds."""
        job = self.directory.jobs[running.job]
        option = option_of(job, running.option)
        if option is None:
            return  # an instance cannot say so
        for held in leaves_of(job, option, running):
            for assignment in held.placement.assignments:
                there, key = self._on_node.setdefault(assignment.node, {}), (running.job, assignment.group)
                if sign > 0:
                    there[key] = held, assignment
                else:
                    del there[key]
            self._limits.add(self._used, held, sign)
