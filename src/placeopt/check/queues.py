"""What the jobs of queues take of quotas and shares, of all nodes and by flavor, and what queues keep to themselves."""

from collections.abc import Callable

from placeopt.check.directory import Directory, PlacedJob
from placeopt.model import Flavor, Policy
from placeopt.model.queues import Allowance

Resource = tuple[str, ...]
"""The rule that limits it, then of what: node, GPU, domain, name, uplink; queue, amount and, of some, flavor."""

Facts = tuple[int | None, int, tuple[str, str, str], str]
"""How much there is, the percentage that may be taken; kind, name and part of the place; and of what."""

AMOUNTS = ("gpu_milli", "cpu_millicores", "memory_mib")


class QueueLimits:
    """Limits of the queues of a policy, from the records."""

    def __init__(self, directory: Directory, policy: Policy) -> None:
        self._directory, self._policy = directory, policy
        self._queues = {queue.id: queue for queue in policy.queues}
        self._allowances: dict[tuple[str, ...], Allowance] = {}
        own: dict[str, list[tuple[int, str | None, Resource]]] = {}
        for queue in policy.queues:
            entries = own[queue.id] = []
            for flavor, allowance in ((None, queue), *((one.flavor, one) for one in queue.flavors)):
                of = [] if flavor is None else [flavor]
                for number, name in enumerate(AMOUNTS):
                    if allowance.most(name) is not None:
                        self._allowances[queue.id, name, *of] = allowance
                        entries.append((number, flavor, ("queue_quota", queue.id, name, *of)))
                    if flavor is None and queue.dominant_share_percent is not None:
                        entries.append((number, flavor, ("queue_share", queue.id, name)))
        self._of_queue = {name: [entry for above in policy.queues_above(name) for entry in own[above]] for name in own}
        self._keeping: dict[Resource, list[Resource]] = {}
        for key, allowance in self._allowances.items():
            if allowance.kept(key[1]):
                self._add_keeping(("queue_quota", *key))

    def _add_keeping(self, resource: Resource) -> None:
        """Note the limits above a queue that keeps some for itself, up to and with the next queue that does."""
        _, name, *of = resource
        for above in self._policy.queues_above(name)[1:]:
            for rule in ("queue_quota", "queue_share"):
                self._keeping.setdefault((rule, above, *of), []).append(resource)
            allowance = self._allowances.get((above, *of))
            if allowance is not None and allowance.kept(of[0]):
                return

    def taken(self, held: PlacedJob) -> list[tuple[Resource, int]]:
        """Return what alike workers of a job take."""
        entries = self._of_queue.get(held.job.queue) if held.job.queue is not None else None
        if not entries:
            return []
        demand, assignments = held.option.demand, held.placement.assignments
        gpus, workers = sum(len(at.gpus) for at in assignments), sum(len(at.workers) for at in assignments)
        amounts = (gpus * demand.gpu_milli, workers * demand.cpu_millicores, workers * demand.memory_mib)
        flavor = self.flavor_of(held)
        return [
            (resource, amounts[number])
            for number, of, resource in entries
            if amounts[number] and (of is None or of == flavor)
        ]

    def flavors(self, queue: str | None) -> frozenset[str]:
        """Return the flavors on whose nodes jobs of a queue start; none: any nodes."""
        return frozenset(of.flavor for of in self._policy.flavors_of(queue))

    def flavor_of(self, held: PlacedJob) -> str | None:
        """Return the flavor that a job's workers are charged for: that of the node of the first of them."""
        allowed = self.flavors(held.job.queue)
        if not allowed:
            return None
        at = min(
            ((worker.rank, one.node) for one in held.placement.assignments for worker in one.workers), default=None
        )
        flavor = None if at is None else self.flavor_of_node(at[1])
        return flavor if flavor in allowed else None

    def flavor_of_node(self, node: str) -> str | None:
        """Return the flavor of a node, the first whose conditions it meets."""
        return next((flavor.id for flavor in self._policy.flavors if self._meets(node, flavor)), None)

    def _meets(self, node: str, flavor: Flavor) -> bool:
        record = self._directory.nodes.get(node)
        if record is None:
            return False
        labels = self._directory.labels_of(record)
        models = {gpu.model for gpu in self._directory.machine_of[node].gpus}
        selected = all(labels.get(key) == value for key, value in flavor.node_selector.items())
        return selected and (not flavor.gpu_models or any(model in models for model in flavor.gpu_models))

    def facts(self, resource: Resource) -> Facts:
        """Return how much a queue may hold, as `Limits` does of all resources."""
        rule, name, amount, *of = resource
        if rule == "queue_share":
            percent = (self._queues[name].dominant_share_percent or 0) + self._queues[name].borrow_percent
            total = self._directory.total[AMOUNTS.index(amount)]
            return total, percent, ("queue", name, ""), f"{amount} of the cluster"
        allowance = self._allowances[name, amount, *of]
        quota, borrow = (getattr(part, amount) or 0 for part in (allowance.quota, allowance.borrow))
        part = f" flavor {of[0]!r}" if of else ""
        return allowance.most(amount) or 0, 100, ("queue", name, part), f"{amount} (quota {quota}, {borrow} borrowed)"

    def kept(self, resource: Resource, taken: Callable[[Resource], int]) -> int:
        """Return what the queues below one keep beyond what their jobs take."""
        total = 0
        for below in self._keeping.get(resource, ()):
            _, name, *of = below
            more = self.kept(below, taken)
            total += max(more, self._allowances[name, *of].kept(of[0]) - taken(below))
        return total
