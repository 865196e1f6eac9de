"""
The referee of a cluster that stays: judges a plan for some jobs by looking at what it touches.

The ledger is written in records of the model and plain integers, from the same placements that a caller is told, and
the rules are the referee's own. What it does not look at again is what cannot have changed: nodes that the plan does
not touch, and running jobs, which a plan for some jobs leaves as they are. Uplinks and queues are sums over the whole
cluster; of those it keeps the totals of what runs.

``violations(snapshot, plan)`` judges the same plan from nothing; tests compare the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from placeopt.check.capacity import add_use, crossing_loads
from placeopt.check.case import CheckCase, Elsewhere, Reference, Violation
from placeopt.check.directory import Directory, PlacedJob, option_of
from placeopt.check.rules import BY_THEMSELVES, RULES
from placeopt.model import Assignment, Instance, Node, Plan, Policy, Running


class Ledger:
    """
    What each job holds by node, and the use of every uplink and queue.

    ``directory`` has the jobs, nodes and running placements by name, in the order in which they came; jobs may be added
    to and removed from it as long as they do not run.
    """

    def __init__(self, instance: Instance, policy: Policy) -> None:
        self.directory = Directory(instance)
        self._on_node: dict[str, dict[str, tuple[PlacedJob, Assignment]]] = {}
        self._totals = Elsewhere(queues={queue.id: [0, 0, 0] for queue in policy.queues})
        for running in instance.running:
            self._count(running, 1)

    def start(self, running: Running) -> None:
        """Record that a known job runs, in place of what it held before, if it ran already."""
        before = self.directory.running.get(running.job)
        if before is not None:
            self._count(before, -1)
        self.directory.running[running.job] = running
        self._count(running, 1)

    def stop(self, job: str) -> Running:
        """Record that a running job holds nothing any more, and return what it held."""
        running = self.directory.running.pop(job)
        self._count(running, -1)
        return running

    def on_node(self, node: str) -> tuple[str, ...]:
        """Return the jobs that hold anything on a node."""
        return tuple(self._on_node.get(node, ()))

    def put_node(self, node: Node) -> None:
        """Add a node, or replace the one of the same id; what runs there stays."""
        directory = self.directory
        if node.id not in directory.nodes:
            directory.put_node(node)
            return
        there = [directory.running[job] for job in self.on_node(node.id)]
        for running in there:  # the load of uplinks goes by the domain
            self._count(running, -1)
        directory.replace_node(node)
        for running in there:
            self._count(running, 1)

    def remove_node(self, name: str) -> None:
        """Take away a node on which nothing runs."""
        self.directory.remove_node(name)
        self._on_node.pop(name, None)

    def violations(self, instance: Reference, plan: Plan) -> list[Violation]:
        """
        List everything in which a plan for some jobs (``asked``) breaks a hard constraint, as ``violations`` does.

        Time is linear in the size of the plan and in what runs on the nodes that it names.
        """
        nodes = [assignment.node for placement in plan.placements for assignment in placement.assignments]
        case = CheckCase(plan, instance, self.directory, plan.placements, {})
        self._add_others(case, nodes, frozenset())
        case.elsewhere = self._totals
        for check in RULES:
            check(case)
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
        if len(running) == len(directory.running):  # no job is elsewhere
            self._judge_standing(case)
            return case.found
        self._add_others(case, list(case.on_node), running.keys())
        for placement in running.values():
            self._count(placement, -1)
        case.elsewhere = self._totals
        self._judge_standing(case)
        for placement in running.values():
            self._count(placement, 1)
        return case.found

    def _judge_standing(self, case: CheckCase) -> None:
        for check in BY_THEMSELVES:
            check(case)

    def _add_others(self, case: CheckCase, nodes: Sequence[str], known: Iterable[str]) -> None:
        """Add what jobs other than ``known`` hold on ``nodes`` to the case."""
        for node in dict.fromkeys(nodes):
            others = [entry for job, entry in self._on_node.get(node, {}).items() if job not in known]
            if others and node in self.directory.nodes:
                case.on_node[node] = [*others, *case.on_node.get(node, ())]

    def _count(self, running: Running, sign: int) -> None:
        """Add (``sign`` 1) or subtract (-1) what a job holds."""
        job = self.directory.jobs[running.job]
        option = option_of(job, running.option)
        if option is None:
            return  # an instance cannot say so
        held = PlacedJob(job, option, running)
        for assignment in running.assignments:
            if sign > 0:
                self._on_node.setdefault(assignment.node, {})[running.job] = (held, assignment)
            else:
                del self._on_node[assignment.node][running.job]
        totals = self._totals
        add_use(totals.queues, held, sign)
        links = totals.gpu_links if option.demand.gpus else totals.cpu_links
        for place, load in crossing_loads(self.directory, held):
            links[place] = links.get(place, 0) + sign * load
