"""What a placement takes of every limited resource, quotas of queues included, and how much of it there is, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from placeopt.check.directory import Directory, PlacedJob, gpu_number, leaves_of
from placeopt.model import Demand, Flavor, Hold, Job, Option, Placement, Policy, hold_groups
from placeopt.model.machine import NODE_AMOUNTS
from placeopt.model.queues import Allowance

Resource = tuple[str, ...]
"""The rule that limits it, then of what: node, GPU, domain, name, uplink; queue, amount and, of some, flavor."""

Facts = tuple[int | None, int, tuple[str, str, str], str]
"""How much there is, the percentage that may be taken; kind, name and part of the place; and of what."""

Amounts = dict[Resource, int]

WHOLE_GPU_MILLI = 1000
QUEUE_AMOUNTS = ("gpu_milli", "cpu_millicores", "memory_mib")
UNITS = {
    "gpu_share": "milli",
    "gpu_exclusive": "jobs",
    "gpu_jobs": "jobs",
    "gpu_memory": "MiB",
    **{amount.group: amount.words for amount in NODE_AMOUNTS},
}
RULES = (*UNITS, "gpu_slots", "resource", "hold", "uplink", "queue_quota", "queue_share")
"""In the order in which they complain."""

OF_GPUS = frozenset({"gpu_share", "gpu_exclusive", "gpu_jobs", "gpu_memory"})
OF_QUEUES = frozenset({"queue_quota", "queue_share"})
"""What one leaves to others also depends on what those below it take."""
NEVER_EXCEEDED = frozenset({"gpu_share", "gpu_slots"})
"""Running jobs may exceed all others and stay; no GPU can hold more than the whole of it."""


def on_node(rule: Resource, node: str) -> Resource:
    """Return what a rule, as `Limits.of_node` names it, limits on a node."""
    return (rule[0], node) if len(rule) == 1 else (rule[0], node, rule[1])


class Limits:
    """
    The one statement of all limits on sums, from the records: referee, live cluster, actions and simulation use it.

    Of a GPU requests count: what is granted above them is free for others.
    """

    def __init__(self, directory: Directory, policy: Policy) -> None:
        self._directory, self._usable = directory, policy.usable
        self._shares_bind = policy.share_mode != "overcommit"
        self._jobs_rule = "gpu_exclusive" if policy.share_mode == "exclusive" else "gpu_jobs"
        self._jobs_per_gpu = 1 if policy.share_mode == "exclusive" else policy.jobs_per_gpu_max
        self.queues = QueueLimits(directory, policy)
        self._groups: dict[str, dict[str, tuple[Hold, ...]]] = {}
        """By node: the holds that jobs leave free together, by their names."""
        for node in directory.holds:
            self.hold(node)

    def hold(self, node: str) -> None:
        """Limit what jobs take beside the holds on a node, as the directory has them now."""
        groups = hold_groups(tuple(self._directory.holds.get(node, ())), self._directory.now_ms)
        self._groups[node] = {" and ".join(repr(hold.id) for hold in group): group for group in groups}

    def of_placement(self, job: Job, option: Option, placement: Placement) -> Amounts:
        """Return what all groups of a job take."""
        used: Amounts = {}
        for held in leaves_of(job, option, placement):
            self.add(used, held)
        return used

    def add(self, used: Amounts, held: PlacedJob, sign: int = 1) -> Amounts:
        """Add what a placed job takes to ``used``, or subtract it with ``sign`` -1, and return ``used``."""
        for resource, amount in self._taken(held):
            used[resource] = used.get(resource, 0) + sign * amount
        return used

    def _taken(self, held: PlacedJob) -> Iterator[tuple[Resource, int]]:
        demand, directory = held.option.demand, self._directory
        for assignment in held.placement.assignments:
            node, workers = assignment.node, len(assignment.workers)
            yield from self.of_workers(demand, node, workers, assignment.gpus)
            for gpu, start in assignment.starts.items():
                for slot in range(start, start + directory.width(node, gpu, demand.gpu_profile)):
                    yield ("gpu_slots", node, gpu, str(slot)), 1
            if directory.named_beyond and demand.resources and node in directory.nodes:
                yield from self._of_places(demand, node, workers)
            for label, group in self._groups.get(node, {}).items():
                if all(hold.counts_against(held.job, directory.now_ms) for hold in group):
                    for rule, each in self.of_node(demand):
                        yield ("hold", node, label, *rule), workers * each
                    kept = {str(gpu) for hold in group for gpu in hold.gpus} if len(group) == 1 else ()
                    yield from ((("hold", node, label, "gpu", gpu), 1) for gpu in assignment.gpus if gpu in kept)
        if len(held.placement.assignments) > 1:
            yield from crossing_loads(directory, held)
        yield from self.queues.taken(held)

    def of_workers(
        self, demand: Demand, node: str, workers: int, gpus: Iterable[str]
    ) -> Iterator[tuple[Resource, int]]:
        """Yield what workers take of a node and its GPUs."""
        for rule, each in self.of_node(demand):
            yield on_node(rule, node), workers * each
        if gpus:
            of_gpu = self.of_gpu(demand)
            yield from (((kind, node, gpu), each) for gpu in gpus for kind, each in of_gpu)

    def _of_places(self, demand: Demand, node: str, workers: int) -> Iterator[tuple[Resource, int]]:
        """Yield what workers take of the domains above their node and of the cluster."""
        stated, everywhere = self._directory.domain_resources, self._directory.cluster_resources
        above = [domain for domain in self._directory.domains_of(node).values() if domain in stated]
        for name, each in demand.resources.items():
            places = [("domain", domain) for domain in above if name in stated[domain]]
            for place in [*places, *([("cluster", "")] if name in everywhere else [])] if each else ():
                yield ("resource", *place, name), workers * each

    @staticmethod
    def of_node(demand: Demand) -> list[tuple[Resource, int]]:
        """Return what one worker takes of its node: the rule, and the name of a named resource."""
        amounts: list[tuple[Resource, int]]
        amounts = [((one.group,), each) for one in NODE_AMOUNTS if (each := getattr(demand, one.field))]
        amounts += [(("resource", name), each) for name, each in demand.resources.items() if each]
        return amounts

    def of_gpu(self, demand: Demand) -> list[tuple[str, int]]:
        """Return what one worker takes of each of its GPUs: the rule and the amount."""
        amounts = [("gpu_share", demand.gpu_milli)] if self._shares_bind else []
        if self._jobs_per_gpu is not None:
            amounts.append((self._jobs_rule, 1))
        if demand.gpu_memory_mib:
            amounts.append(("gpu_memory", demand.gpu_memory_mib))
        return amounts

    def limit(self, resource: Resource) -> int | None:
        """Return how much of a resource jobs may take together; None where nothing limits it, or it is not listed."""
        capacity, percent, _, _ = self._facts(resource)
        return capacity if capacity is None or percent == 100 else percent * capacity // 100

    def describe(self, resource: Resource) -> tuple[str, str, str | None]:
        """Return where a resource is and how much of what it is, for messages; and the node, if it is one's."""
        capacity, percent, (kind, name, part), what = self._facts(resource)
        share = "" if percent == 100 else f"{percent} % of "
        where = f"{kind} {name!r}{part}" if name else kind
        return where, f"{share}{capacity} {what}", name if kind == "node" else None

    def _facts(self, resource: Resource) -> Facts:
        directory, usable = self._directory, self._usable
        match resource:
            case "uplink", group, kind, name:
                percent = usable.network_gpu_jobs_percent if group == "GPU jobs" else usable.network_cpu_jobs_percent
                mbps = directory.machine_of[name].network_bandwidth_mbps if kind == "node" else directory.uplinks[name]
                return mbps, percent, (kind, name, " uplink"), f"MB/s for {group}"
            case (("queue_quota" | "queue_share"), *_):
                return self.queues.facts(resource)
            case "gpu_slots", node, gpu, slot:
                return 1, 100, ("node", node, f" gpu {gpu}"), f"shares in slot {slot}"
            case "hold", node, label, "gpu", gpu:
                return 0, 100, ("node", node, f" gpu {gpu}"), f"jobs beside hold {label}"
            case "hold", node, label, rule, *named:
                left = self.limit((rule, node, *named))
                left = (
                    None
                    if left is None
                    else left - sum(_kept(hold, rule, *named) for hold in self._groups[node][label])
                )
                return left, 100, ("node", node, ""), f"{UNITS.get(rule) or named[0]} beside hold {label}"
            case "resource", kind, name, what:
                amounts = directory.domain_resources[name] if kind == "domain" else directory.cluster_resources
                return amounts[what], 100, (kind, name, ""), what
            case rule, node, gpu if rule in OF_GPUS:
                return self._most_of_gpu(rule, node, gpu_number(gpu)), 100, ("node", node, f" gpu {gpu}"), UNITS[rule]
            case rule, node, *named:
                amount, percent = self._most_of_node(rule, node, *named)
                return amount, percent, ("node", node, ""), UNITS.get(rule) or named[0]
        raise KeyError(resource)

    def _most_of_gpu(self, rule: str, node: str, gpu: int) -> int | None:
        """Return how much of a GPU there is; None where there is no such GPU."""
        machine = self._directory.machine_of.get(node)
        if machine is None or not 0 <= gpu < len(machine.gpus):
            return None
        if rule == "gpu_memory":
            return machine.gpus[gpu].memory_mib
        return WHOLE_GPU_MILLI if rule == "gpu_share" else self._jobs_per_gpu

    def _most_of_node(self, rule: str, node: str, name: str = "") -> tuple[int | None, int]:
        """Return how much of a node there is, None without limit or node, and which percentage of it may be taken."""
        machine, usable = self._directory.machine_of.get(node), self._usable
        if machine is None:
            return None, 100
        for amount in NODE_AMOUNTS:
            if rule == amount.group:
                return getattr(machine, amount.field), usable.percent(amount)
        counted = name in self._directory.named or name not in self._directory.named_beyond
        return machine.resources.get(name, 0) if counted else None, 100


def crossing_loads(directory: Directory, held: PlacedJob) -> list[tuple[Resource, int]]:
    """
    Return the uplinks of machines and domains that a job loads, and with how many MB/s each, by the hose model.

    The lesser of what its workers below an uplink and its other workers may send together. GPU jobs and CPU jobs each
    have their usable part of an uplink.
    """
    assignments = held.placement.assignments
    demand = held.option.demand
    total = sum(len(assignment.workers) for assignment in assignments)
    if not demand.network_bandwidth_mbps:
        return []
    group = "GPU jobs" if demand.gpus else "CPU jobs"
    inside: Amounts = {}
    for assignment in assignments:
        if assignment.node in directory.nodes:
            above = directory.domains_of(assignment.node).values()
            for place in (("node", assignment.node), *(("domain", domain) for domain in above)):
                inside[place] = inside.get(place, 0) + len(assignment.workers)
    each = demand.network_bandwidth_mbps
    return [(("uplink", group, *at), min(k, total - k) * each) for at, k in inside.items() if k < total]


def _kept(hold: Hold, rule: str, name: str = "") -> int:
    """Return what a hold keeps of what a rule of its node limits."""
    if rule == "resource":
        return hold.resources.get(name, 0)
    return {"cpu": hold.cpu_millicores, "memory": hold.memory_mib}.get(rule, 0)


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
                for number, name in enumerate(QUEUE_AMOUNTS):
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
            total = self._directory.total[QUEUE_AMOUNTS.index(amount)]
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
