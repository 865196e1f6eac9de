"""
A round as ``verify.py`` reads it: what nodes have left beside running jobs that stay, and in which ways jobs may run.

What is left out makes more plans possible: domains but for counting, queues, relations, sums of GPU memory.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from math import gcd
from typing import Any, NamedTuple

Json = dict[str, Any]
Amounts = tuple[tuple[str, int], ...]
AMOUNTS = {  # of a node, with fields of their own; the part that jobs may use: field of ``policy.usable``, default
    "cpu_millicores": ("", 100),
    "memory_mib": ("", 100),
    "memory_bandwidth_mbps": ("memory_bandwidth_percent", 75),
    "pcie_bandwidth_mbps": ("pcie_bandwidth_percent", 100),
}
CHANGES = {  # of running jobs: flag of the job, and the most that the policy allows
    "move": ("movable", "moves_max"),
    "preempt": ("preemptible", "preemptions_max"),
    "shrink": ("shrinkable", "shrinks_max"),
}
PRICES = ("move_price", "preemption_price", "shrink_price_per_worker")
PARTS = ("switch", "socket", "numa")  # of machines, the closest first
WHOLE = 1000
parsed = cache(json.loads)


class Refused(Exception):
    """A claim is not proven."""


def not_negative(number: Any) -> int:
    """Return an integer of at least 0."""
    if type(number) is not int or number < 0:
        raise Refused(f"{number!r} is no price: expected an integer of at least 0")
    return int(number)


class Bundle(NamedTuple):
    """What lands on one node together: all workers of a job that are on one node, else one worker."""

    gpus: int
    share: int  # of each GPU, in units of `Round.full`
    amounts: Amounts
    gpu_memory_mib: int = 0
    models: tuple[str, ...] = ()
    conditions: str = "[]"
    profile: str | None = None  # of the job, as what follows
    weight: int = 0  # of the path of each pair of its GPUs
    job_gpus: int = 0  # at least
    scattered: bool = False  # whether it may be on several nodes

    def uncosted(self) -> Bundle:
        """Return the bundle without what decides its costs."""
        return self._replace(profile=None, weight=0, job_gpus=0, scattered=False)


class Way(NamedTuple):
    """A job in an option: ``least`` to ``most`` bundles; each below ``most`` takes ``value_per_bundle`` away."""

    option: str
    value: int
    least: int
    most: int
    value_per_bundle: int
    on_a_node: int  # bundles of the job that one node may have
    bundle: Bundle
    splits: tuple[tuple[str, int, int], ...]  # level, domains, fewest bundles in each
    stays: bool = False  # whether it runs, and goes on where it is

    def worth(self, bundles: int) -> int:
        """Return the value of a job with so many bundles."""
        return self.value - (self.most - bundles) * self.value_per_bundle


class Gpu(NamedTuple):
    """What a GPU has left."""

    model: str
    units: int
    memory_mib: int


class Node(NamedTuple):
    """A node, and what running jobs that stay leave of it."""

    id: str
    machine: str
    labels: dict[str, str]  # its own, and its domains by level
    taints: list[Json]
    drained: bool
    free: dict[str, int]
    gpus: list[Gpu]

    def suiting(self, bundle: Bundle) -> list[int]:
        """Return the GPUs that take a part of a bundle."""
        share, memory, models = bundle.share, bundle.gpu_memory_mib, bundle.models
        fits = [gpu.units >= share and gpu.memory_mib >= memory for gpu in self.gpus]
        return [at for at, gpu in enumerate(self.gpus) if fits[at] and (not models or gpu.model in models)]

    def times(self, bundle: Bundle, most: int) -> int:
        """Return how often a bundle fits by any one amount, if nothing else is there."""
        if not admits(self, bundle.conditions):
            return 0
        for name, amount in bundle.amounts:
            most = min(most, self.free.get(name, most * amount) // amount)
        suiting = [self.gpus[at] for at in self.suiting(bundle)] if bundle.gpus else []
        if not bundle.gpus or len(suiting) < bundle.gpus:
            return 0 if bundle.gpus else most
        memory = bundle.gpu_memory_mib
        parts = (min(gpu.units // bundle.share, gpu.memory_mib // memory if memory else most) for gpu in suiting)
        return min(most, sum(parts) // bundle.gpus)


class Round:
    """A round under a policy."""

    def __init__(self, document: Json, policy: Json) -> None:
        templates = document.get("templates", {})
        self.document, self.policy, self.now_ms = document, policy, document.get("now_ms", 0)
        self.jobs: dict[str, Json] = {}
        for job in document.get("jobs", []):
            self.jobs[job["id"]] = {"options": [{}], **templates.get(job.get("template"), {}), **job}
        slowdowns = document.get("slowdowns", [])
        self.profiles = {one[key] for one in slowdowns for key in ("profile", "beside")}
        self.options: list[Json] = [option for job in self.jobs.values() for option in job["options"]]
        self.running: dict[str, Json] = {held["job"]: held for held in document.get("running", [])}
        self.rules: dict[str, int] = policy.get("changes", {})
        mode = policy.get("share_mode", "fraction")
        most = 1 if mode == "exclusive" else policy.get("jobs_per_gpu_max")
        self.full = WHOLE if mode == "fraction" and most != 1 else 1  # units of a GPU; else its units are jobs
        self.units = WHOLE if self.full == WHOLE else most or 1
        self.changing = {job: kinds for job in self.running if (kinds := self._changes(job))}
        self.staying: defaultdict[str, Counter[str]] = defaultdict(Counter)  # by node: their workers there
        self.held: defaultdict[str, dict[str, list[int]]] = defaultdict(dict)  # by node: GPUs of running jobs
        self.nodes = {node.id: node for node in self._nodes(*self._taken())}
        self._room: dict[Way, int] = {}

    @property
    def unit(self) -> int:
        """A number that divides the value of every plan."""
        per_change = [self.rules.get(name, 0) for name in PRICES if self.changing]
        per_worker = [option.get("value_per_worker", 0) for option in self.options]
        return gcd(*per_change, *per_worker, *(option.get("value", 1) for option in self.options)) or 1

    def _taken(self) -> tuple[defaultdict[str, Counter[str]], defaultdict[str, Counter[str]]]:
        """Return what running jobs that stay, and holds, take of each node; and what others take that may change."""
        stays, changes = defaultdict[str, Counter[str]](Counter), defaultdict[str, Counter[str]](Counter)
        for job, record in self.running.items():
            demand = self.option(job, record["option"]).get("demand", {})
            for part in record["assignments"]:
                node, workers = part["node"], len(part["workers"])
                taken = (changes if job in self.changing else stays)[node]
                taken.update(dict(amounts_of(demand, workers)))
                share = demand.get("gpu_milli", WHOLE) if self.full == WHOLE else 1
                for index in map(int, part.get("gpus", {})):
                    taken.update({f"gpu {index}": share, f"gpu memory {index}": demand.get("gpu_memory_mib", 0)})
                    self.held[node].setdefault(job, []).append(index)
                self.staying[node].update({job: workers} if job in self.changing else {})
        for hold in self.document.get("holds", []):
            against_all = hold.get("priority") is None and not hold.get("for")
            if against_all and hold.get("from_ms", 0) <= self.now_ms < (hold.get("until_ms") or self.now_ms + 1):
                stays[hold["node"]].update(dict(amounts_of(hold, 1)))
                stays[hold["node"]].update({f"gpu {index}": self.units for index in hold.get("gpus", [])})
        return stays, changes

    def _nodes(self, stays: dict[str, Counter[str]], changes: dict[str, Counter[str]]) -> Iterator[Node]:
        """Yield the nodes. What running jobs hold too much stands, as no job that starts may add to it."""
        cluster = self.document["cluster"]
        machines = {machine["id"]: machine for machine in cluster["machines"]}
        above = {domain["id"]: domain for domain in cluster.get("domains", [])}
        asked = {name for option in self.options for name in option.get("demand", {}).get("resources", {})}
        outside = {name for part in (cluster, *above.values()) for name in part.get("resources", {})}
        resources = (asked - outside).union(*(machine.get("resources", {}) for machine in machines.values()))
        for node in cluster["nodes"]:
            machine, domains, at = machines[node["machine"]], {}, node.get("domain")
            while at is not None:
                domains[above[at].get("level", "rack")] = at
                at = above[at].get("parent")
            percent = {name: self.policy.get("usable", {}).get(*part) for name, part in AMOUNTS.items()}
            have = {name: machine[name] * percent[name] // 100 for name in AMOUNTS if machine.get(name) is not None}
            have |= {f"resource {name}": machine.get("resources", {}).get(name, 0) for name in resources}
            gpus = machine.get("gpus", [])
            for index, gpu in enumerate(gpus):
                have |= {f"gpu {index}": self.units, f"gpu memory {index}": gpu.get("memory_mib", 0)}
            own, less = changes[node["id"]], stays[node["id"]]
            free = {name: max(amount - less[name], own[name], 0) for name, amount in have.items()}
            left = [Gpu(g["model"], free.pop(f"gpu {at}"), free.pop(f"gpu memory {at}")) for at, g in enumerate(gpus)]
            held = self.held[node["id"]].items()
            known = {job: sorted(at for at in own if at < len(gpus)) for job, own in held}
            self.held[node["id"]] = {job: own for job, own in known.items() if own}
            labels = {**node.get("labels", {}), **domains, "metadata.name": node["id"]}
            taints, drained = node.get("taints", []), node.get("drained", False)
            yield Node(node["id"], node["machine"], labels, taints, drained, free, left)

    def _changes(self, job: str) -> frozenset[str]:
        """Return what policy and job allow to be done to a running job; more than that never harms a proof."""
        held, least, way = self.running[job], self.rules.get("run_time_min_ms", 0), self.held_way(job)
        if self.now_ms < max(held.get("protected_until_ms") or 0, least and held.get("started_ms", 0) + least):
            return frozenset()
        kinds = {kind for kind, (flag, most) in CHANGES.items() if held.get(flag) and self.rules.get(most)}
        return frozenset(kinds if way.most > way.least else kinds - {"shrink"})

    def is_as_stated(self, job: str) -> bool:
        """Return whether what a running job holds is bundles of its option, on nodes and GPUs that there are."""
        parts, there = self.running[job]["assignments"], self.nodes.keys()
        known = all(part["node"] in there for part in parts) and (self.held_way(job).most > 1 or len(parts) == 1)
        return known and all(
            int(gpu) < len(self.nodes[part["node"]].gpus) for part in parts for gpu in part.get("gpus", {})
        )

    def ways(self, name: str) -> Iterator[Way]:
        """Yield the ways in which a job may run: as it does, and moved or started, as far as counting finds room."""
        job, kinds, price = self.jobs[name], self.changing.get(name, frozenset()), 0
        if name in self.running:
            way, price = self.held_way(name), self.rules.get("move_price", 0)
            per_bundle = way.value_per_bundle + self.rules.get("shrink_price_per_worker", 0)
            yield way._replace(least=way.least if "shrink" in kinds else way.most, value_per_bundle=per_bundle)
        least = job.get("utility_min_thousandths")
        for option in job["options"] if name not in self.running or "move" in kinds else ():
            way, utility = self.way(job, option), option.get("utility_thousandths")
            asked = way._replace(value=0, bundle=way.bundle.uncosted())
            if asked not in self._room:
                self._room[asked] = self.most_bundles(asked)
            most = self._room[asked]
            if (least is None or utility is None or utility >= least) and most >= way.least:
                yield way._replace(most=most, value=way.worth(most) - price, on_a_node=min(most, way.on_a_node))

    def profile(self, job: Json) -> str | None:
        """Return a job's profile; None where it disturbs no job."""
        return job["profile"] if job.get("profile") in self.profiles else None

    def option(self, job: str, name: str) -> Json:
        """Return an option of a job."""
        return next(option for option in self.jobs[job]["options"] if option.get("id", "default") == name)

    def held_way(self, name: str) -> Way:
        """Return the way in which a job runs; its most bundles are those that it has."""
        held = self.running[name]
        way = self.way(self.jobs[name], self.option(name, held["option"]))
        now = sum(len(part["workers"]) for part in held["assignments"]) if way.most > 1 else way.most
        return way._replace(value=way.worth(now), most=now, stays=True)

    def way(self, job: Json, option: Json) -> Way:
        """Return what an option takes."""
        name, value, workers = option.get("id", "default"), option.get("value", 1), option.get("workers", 1)
        demand, fewest = option.get("demand", {}), option.get("workers_min") or workers
        splits, gpus = option.get("splits", []), demand.get("gpus", 1)
        alone = bool(option.get("single_node") or (gpus and any(split["level"] in PARTS for split in splits)))
        together = workers if alone and fewest == workers else 1
        most = min(workers, option.get("workers_per_node_max") or workers)
        for split in splits:
            if split["level"] == "node":
                most = min(most, split.get("workers") or workers - split["domains"] + 1)
                most = 0 if alone and split["domains"] > 1 else most
        conditions = [one for one in (job.get("conditions"), option.get("conditions")) if one]
        bundle = Bundle(
            gpus=gpus * together,
            share=demand.get("gpu_milli", WHOLE) if self.full == WHOLE else 1,
            amounts=amounts_of(demand, together),
            gpu_memory_mib=demand.get("gpu_memory_mib", 0) if gpus else 0,
            models=tuple(demand.get("gpu_models", ())) if gpus else (),
            conditions=json.dumps(conditions, sort_keys=True),
            profile=self.profile(job),
            weight=weight_of(job),
            job_gpus=gpus * fewest,
            scattered=workers > together,
        )
        parts = [(one["level"], one["domains"], -(-(one.get("workers") or 1) // together)) for one in splits]
        parts = [part for part in parts if part[0] not in PARTS] + [("node", 1, fewest)] * (alone and together == 1)
        per_bundle, bundles = option.get("value_per_worker", 0), workers // together
        return Way(name, value, fewest // together, bundles, per_bundle, most // together, bundle, tuple(parts))

    def most_bundles(self, way: Way) -> int:
        """Return how many bundles of a way there is room for, by counting on nodes and in domains; at most its own."""
        room = {node.id: min(way.on_a_node, node.times(way.bundle, way.most)) for node in self.nodes.values()}
        found = min(way.most, sum(room.values()))
        for level, domains, fewest in way.splits:
            held = Counter[str | None]()
            for name, bundles in room.items():
                held[self.nodes[name].labels.get("metadata.name" if level == "node" else level)] += bundles
            del held[None]
            most = [bundles for _, bundles in held.most_common(domains) if bundles >= fewest]
            found = min(found, sum(most)) if len(most) == domains and domains * fewest <= way.most else 0
        return found


def amounts_of(demand: Json, workers: int) -> Amounts:
    """Return what workers take of a node, by name."""
    taken = {name: demand.get(name, 0) for name in AMOUNTS}
    taken |= {f"resource {name}": amount for name, amount in demand.get("resources", {}).items()}
    return tuple((name, workers * amount) for name, amount in taken.items() if amount)


def weight_of(job: Json) -> int:
    """Return what the path of each pair of a job's GPUs counts; 0 where pairs differ."""
    traffic = job.get("communication", {})
    return 0 if traffic.get("edges") else not_negative(traffic.get("weight", 0))


def admits(node: Node, text: str) -> bool:
    """Return whether work with these conditions, in JSON, may start on a node."""
    conditions = parsed(text)
    tolerations = [one for condition in conditions for one in condition.get("tolerations", [])]
    if node.drained or any(not any(tolerates(one, taint) for one in tolerations) for taint in node.taints):
        return False
    return all(meets(node, condition) for condition in conditions)


def meets(node: Node, condition: Json) -> bool:
    """Return whether a node meets conditions, taints aside."""
    allowed = condition.get("nodes_allowed")
    if (allowed is not None and node.id not in allowed) or node.id in condition.get("nodes_excluded", ()):
        return False
    selector = condition.get("node_selector", {})
    if any(node.labels.get(key) != value for key, value in selector.items() if key != "metadata.name"):
        return False
    terms = condition.get("node_affinity") or []
    found = (term and all(holds(node.labels.get(one["key"]), **one) for one in term) for term in terms)
    return not terms or any(found)


def tolerates(toleration: Json, taint: Json) -> bool:
    """Return whether a toleration covers a taint."""
    effect = taint.get("effect", "NoSchedule")
    if toleration.get("effect") not in (None, effect) or toleration.get("key") not in (None, taint["key"]):
        return False
    return holds(taint.get("value", ""), toleration.get("operator", "Equal"), [toleration.get("value", "")])


def holds(value: str | None, operator: str, values: Sequence[str] = (), **_: object) -> bool:
    """Return whether a value, or None, is as an operator demands."""
    if operator in ("Gt", "Lt"):
        try:
            return int(value or "") > int(values[0]) if operator == "Gt" else int(value or "") < int(values[0])
        except ValueError:
            return False
    found = value in values if operator in ("In", "NotIn", "Equal") else value is not None
    return found == (operator in ("In", "Equal", "Exists"))
