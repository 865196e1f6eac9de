"""
Check the certificate of a plan against its round, with nothing but the Python standard library.

    python tools/verify.py ROUND CERTIFICATE

Prints of each claim: verified, refused, or not certified, as the certificate itself says (docs/files.md,
"Certificate"). The exit code is 1 where a claim was refused, 2 where a file could not be read.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from math import gcd
from pathlib import Path
from typing import Any, NamedTuple

from verify_costs import STEPS, Bundle, Costs, Item, Node, Refused, not_negative, suits, with_more

Json = dict[str, Any]
Counts = Counter[tuple["Bundle", int, int]]  # bundle, price, how many of a job together -> how often on a node
Branch = tuple[list[str], str | None, int, int]  # jobs that start, or bundles in an option: at most (1), at least (-1)
AMOUNTS = {  # of a node, with fields of their own; the part that jobs may use: field of ``policy.usable``, default
    "cpu_millicores": ("", 100),
    "memory_mib": ("", 100),
    "memory_bandwidth_mbps": ("memory_bandwidth_percent", 75),
    "pcie_bandwidth_mbps": ("pcie_bandwidth_percent", 100),
}
PARTS = ("socket", "numa", "switch")
WHOLE = 1000
LARGE = "large"  # GPUs with more than half left, of which each takes one share of more than half
parsed = cache(json.loads)


def read(path: str) -> Json:
    """Return the document of a JSON file, plain or gzip."""
    data = Path(path).read_bytes()
    return dict(json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data))


class Way(NamedTuple):
    """A job in an option: ``least`` to ``most`` bundles; each below ``most`` takes ``value_per_bundle`` away."""

    option: str
    value: int
    least: int
    most: int
    value_per_bundle: int
    on_a_node: int  # bundles of the job that one node may have
    bundle: Bundle | None  # None where nothing is known to be taken
    splits: tuple[tuple[str, int, int], ...] = ()  # level, domains, fewest bundles in each

    def worth(self, bundles: int) -> int:
        """Return the value of a job with so many bundles."""
        return self.value - (self.most - bundles) * self.value_per_bundle


class Round:
    """A round under a policy: what nodes have left beside running jobs that stay, and in which ways jobs may run."""

    def __init__(self, document: Json, policy: Json) -> None:
        templates = document.get("templates", {})
        self.document, self.policy, self.now_ms = document, policy, document.get("now_ms", 0)
        self.jobs: dict[str, Json] = {}
        for job in document.get("jobs", []):
            self.jobs[job["id"]] = {"options": [{}], **templates.get(job.get("template"), {}), **job}
        self.running: dict[str, Json] = {held["job"]: held for held in document.get("running", [])}
        self.holds: list[Json] = document.get("holds", [])
        mode = policy.get("share_mode", "fraction")
        most = 1 if mode == "exclusive" else policy.get("jobs_per_gpu_max")
        self.full = WHOLE if mode == "fraction" and most != 1 else 1  # units of a GPU; else its units are jobs
        self.units = WHOLE if self.full == WHOLE else most or 1
        cluster = document["cluster"]
        self.beyond = {name for one in (cluster, *cluster.get("domains", [])) for name in one.get("resources", {})}
        self.nodes = self._nodes(cluster)
        self.changing = {job: kinds for job in self.running if (kinds := self.changes(job))}
        self._place()
        self._room: dict[Way, int] = {}

    def _nodes(self, cluster: Json) -> dict[str, Node]:
        machines = {machine["id"]: machine for machine in cluster["machines"]}
        above = {domain["id"]: domain for domain in cluster.get("domains", [])}
        named = sorted({name for machine in machines.values() for name in machine.get("resources", {})})
        usable = self.policy.get("usable", {})
        nodes = {}
        for node in cluster["nodes"]:
            machine, domains, at = machines[node["machine"]], {}, node.get("domain")
            while at is not None:
                domains[above[at].get("level", "rack")] = at
                at = above[at].get("parent")
            percent = {name: usable.get(*part) for name, part in AMOUNTS.items()}
            free = {name: machine[name] * percent[name] // 100 for name in AMOUNTS if machine.get(name) is not None}
            free |= {f"resource {name}": machine.get("resources", {}).get(name, 0) for name in named}
            gpus = [[self.units, gpu["model"], gpu.get("memory_mib", 0), 0] for gpu in machine.get("gpus", [])]
            labels = {**node.get("labels", {}), **domains, "metadata.name": node["id"]}
            taints, drained = node.get("taints", []), node.get("drained", False)
            nodes[node["id"]] = Node(
                node["id"], domains, labels, taints, drained, free, gpus, {}, {}, dict(free), node["machine"]
            )
        return nodes

    def changes(self, job: str) -> frozenset[str]:
        """Return what policy and job allow to be done to a running job; more than that never harms a proof."""
        held, changes = self.running[job], self.policy.get("changes", {})
        least = changes.get("run_time_min_ms", 0)
        protected = max(held.get("protected_until_ms") or 0, least and held.get("started_ms", 0) + least)
        allowed = {"move": ("movable", "moves_max"), "preempt": ("preemptible", "preemptions_max")}
        way, now = self.held_way(job)
        if now > way.least:
            allowed["shrink"] = ("shrinkable", "shrinks_max")
        able = self.now_ms >= protected
        return frozenset(
            kind for kind, (flag, most) in allowed.items() if able and held.get(flag) and changes.get(most)
        )

    def _place(self) -> None:
        """Subtract running jobs that stay; what they exceed stands, as no job that starts may add to it."""
        for job, record in self.running.items():
            for part in record["assignments"]:
                if (node := self.nodes.get(part["node"])) is None:
                    continue
                leaf = named(self.jobs[job]["options"], record["option"])
                if part.get("group") is not None:
                    leaf = named(leaves_of(leaf), part["group"])
                demand, stays = leaf.get("demand", {}), job not in self.changing
                for name, amount in amounts_of(demand, len(part["workers"])):
                    if stays and name in node.free:
                        node.free[name] -= amount
                    elif not stays:
                        node.own[name] = node.own.get(name, 0) + amount
                share = demand.get("gpu_milli", WHOLE) if self.full == WHOLE else 1
                for index in map(int, part.get("gpus", {})):
                    if index < len(node.gpus):
                        gpu = node.gpus[index]
                        node.held.setdefault(job, []).append(index)
                        gpu[0] -= share * stays
                        gpu[2] -= demand.get("gpu_memory_mib", 0) * stays
                        gpu[3] += share * (not stays)
                if not stays:
                    node.staying[job] = node.staying.get(job, 0) + len(part["workers"])
        for hold in self.holds:
            against_all = hold.get("priority") is None and not hold.get("for")
            until = hold.get("until_ms") or self.now_ms + 1
            if (node := self.nodes.get(hold["node"])) and against_all and hold.get("from_ms", 0) <= self.now_ms < until:
                for name, amount in amounts_of(hold, 1):
                    node.free[name] = node.free.get(name, amount) - amount
                for index in hold.get("gpus", []):
                    node.gpus[index][0] = 0
        for node in self.nodes.values():
            for name, left in node.free.items():
                node.free[name] = max(left, node.own.get(name, 0), 0)
            for gpu in node.gpus:
                gpu[0], gpu[2] = max(gpu[0], gpu[3], 0), max(gpu[2], 0)

    def left(self, node: Node, name: str, amount: int) -> int:
        """Return how much a node has of what is asked for; of what nothing limits, as much."""
        beyond = name.removeprefix("resource ")
        return node.free.get(name, amount if beyond == name or beyond in self.beyond else 0)

    def most_bundles(self, way: Way) -> int:
        """Return how many bundles of a way there is room for, by counting on nodes and in domains; at most its own."""
        if way.bundle is None:
            return way.most
        room = {node.id: min(way.on_a_node, self.times(node, way.bundle, way.most)) for node in self.nodes.values()}
        found = min(way.most, sum(room.values()))
        for level, domains, fewest in way.splits:
            held: dict[str, int] = {}
            for name, bundles in room.items():
                domain = name if level == "node" else self.nodes[name].domains.get(level)
                if domain is not None:
                    held[domain] = held.get(domain, 0) + bundles
            most = sorted(held.values(), reverse=True)
            enough = sum(count >= fewest for count in most) >= domains and domains * fewest <= way.most
            found = min(found, sum(most[:domains])) if enough else 0
        return found

    def times(self, node: Node, bundle: Bundle, most: int) -> int:
        """Return how often a bundle fits on a node by any one amount, if nothing else does."""
        if not admits(node, bundle.conditions):
            return 0
        for name, amount in bundle.amounts:
            fits = amount <= node.capacity.get(name, amount)
            most = min(most, self.left(node, name, most * amount) // amount) if fits else 0
        memory, usable, together = bundle.gpu_memory_mib, 0, 0
        for units, _, left, _ in (gpu for gpu in node.gpus if bundle.gpus and suits(gpu, bundle)):
            usable += 1
            together += min(units // bundle.share, left // memory if memory else units)
        return min(most, together // bundle.gpus if usable >= bundle.gpus else 0) if bundle.gpus else most

    def is_listed(self, job: str, way: Way) -> bool:
        """Return whether what a running job holds is bundles of its option, on nodes and GPUs that there are."""
        parts = self.running[job]["assignments"]
        there = {node.id: range(len(node.gpus)) for node in self.nodes.values()}
        known = all(int(gpu) in there.get(part["node"], ()) for part in parts for gpu in part.get("gpus", {}))
        return known and all(part["node"] in there for part in parts) and (way.most > 1 or len(parts) == 1)

    def ways(self, name: str) -> Iterator[Way]:
        """Yield the ways in which a job may start."""
        job = self.jobs[name]
        least = job.get("utility_min_thousandths")
        for option in job["options"]:
            utility = option.get("utility_thousandths")
            way = self.way(job, option)
            if way not in self._room:
                self._room[way] = self.most_bundles(way)
            most = self._room[way]
            if (least is None or utility is None or utility >= least) and most >= way.least:
                yield way._replace(most=most, value=way.worth(most), on_a_node=min(most, way.on_a_node))

    def held_way(self, name: str) -> tuple[Way, int]:
        """Return the way in which a job runs, and its number of bundles."""
        held = self.running[name]
        way = self.way(self.jobs[name], named(self.jobs[name]["options"], held["option"]))
        return way, sum(len(part["workers"]) for part in held["assignments"]) if way.most > 1 else way.most

    def way(self, job: Json, option: Json) -> Way:
        """Return what an option takes."""
        name, value, workers = option.get("id", "default"), option.get("value", 1), option.get("workers", 1)
        if option.get("groups"):
            return Way(name, value, 0, 0, 0, 0, None)
        demand, fewest = option.get("demand", {}), option.get("workers_min") or workers
        splits, gpus = option.get("splits", []), demand.get("gpus", 1)
        inside = gpus and any(split["level"] in PARTS for split in splits)
        alone = bool(option.get("single_node") or inside)
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
        )
        parts = tuple(
            (one["level"], one["domains"], -(-(one.get("workers") or 1) // together))
            for one in splits
            if one["level"] not in PARTS
        )
        parts += (("node", 1, fewest),) * (alone and together == 1)
        if together > 1:
            return Way(name, value, 1, 1, 0, int(most >= together), bundle, parts)
        return Way(name, value, fewest, workers, option.get("value_per_worker", 0), most, bundle, parts)


def named(groups: Iterable[Json], name: str) -> Json:
    """Return the option, or the group, of that name."""
    return next(group for group in groups if group.get("id", "default") == name)


def leaves_of(group: Json) -> list[Json]:
    """Return the leaves of a tree of groups."""
    return [leaf for part in group.get("groups") or () for leaf in leaves_of(part)] or [group]


def amounts_of(demand: Json, workers: int) -> tuple[tuple[str, int], ...]:
    """Return what workers take of a node, by name."""
    taken = {name: demand.get(name, 0) for name in AMOUNTS}
    taken |= {f"resource {name}": amount for name, amount in demand.get("resources", {}).items()}
    return tuple((name, workers * amount) for name, amount in taken.items() if amount)


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
    return not terms or any(term and all(expression_holds(node, one) for one in term) for term in terms)


def expression_holds(node: Node, expression: Json) -> bool:
    """Return whether a node's label meets an expression."""
    value, operator, values = node.labels.get(expression["key"]), expression["operator"], expression.get("values", [])
    if operator in ("Gt", "Lt"):
        return value is not None and compares(value, operator, values[0])
    found = value in values if operator in ("In", "NotIn") else value is not None
    return bool(found) == (operator in ("In", "Exists"))


def compares(value: str, operator: str, bound: str) -> bool:
    """Return whether a text is another, or an integer above or below it."""
    if operator == "Equal":
        return value == bound
    try:
        return int(value) > int(bound) if operator == "Gt" else int(value) < int(bound)
    except ValueError:
        return False


def tolerates(toleration: Json, taint: Json) -> bool:
    """Return whether a toleration covers a taint."""
    effect = taint.get("effect", "NoSchedule")
    if toleration.get("effect") not in (None, effect) or toleration.get("key") not in (None, taint["key"]):
        return False
    operator, value, own = toleration.get("operator", "Equal"), toleration.get("value", ""), taint.get("value", "")
    return bool(operator == "Exists" or compares(own, operator, value))


# Value: prices of bundles and of rows. A plan is worth what its jobs are worth beyond what they pay, and what they pay.


def exceeds(units: list[int], full: int, free: dict[str, int], items: list[Item], beyond: int, most: int) -> bool:
    """
    Return whether bundles that are on a node together can pay more than ``most``.

    No more is paid than ``beyond``, for amounts, and what is paid for GPUs: by bundles of whole ones in a knapsack,
    each as often as there are jobs, or by shares, as often as they fit. Where units are jobs (``full`` 1), those of all
    GPUs count together. Where that is too much, numbers of bundles are tried, with all amounts and the sum of shares.
    """
    shares = {item.share for item in items if item.gpus}
    step = gcd(*shares) or 1
    filled = [0] * (max(units, default=0) // step + 1)
    idle = sum(units) if full == 1 else sum(unit == full for unit in units)
    for item in items:
        if item.gpus and item.share < full:
            filled = with_more(filled, item.share // step, item.pays, len(filled))
    best = [count * filled[full // step] if full > 1 and idle else 0 for count in range(idle + 1)]
    for item in items:
        if not item.gpus or item.share == full:
            best = with_more(best, item.gpus, item.pays, item.most)
    if beyond + best[-1] + sum(filled[unit // step] for unit in units if unit < full) <= most:
        return False
    room, steps = sum(unit for unit in units if unit >= min(shares, default=0)) // step, iter(range(STEPS))
    tables = [[0] * (room + 1)]
    for item in reversed(items):
        tables.append(with_more(tables[-1], item.gpus * item.share // step, item.pays, item.most))

    def search(at: int, room: int, free: dict[str, int], pays: int, paid: int) -> bool:
        if beyond + pays + tables[len(items) - at][room] <= most:
            return False
        if at == len(items) or next(steps, None) is None:
            return paid > most or at < len(items)
        item, size = items[at], items[at].gpus * items[at].share // step
        for count in range(item.most + 1):
            left = {name: free[name] - count * amount for name, amount in item.amounts}
            if count * size > room or min(left.values(), default=0) < 0:
                break
            if search(at + 1, room - count * size, free | left, pays + count * item.pays, paid + count * item.price):
                return True
        return False

    return search(0, room, free, 0, 0)


class Prices:
    """One leaf of the proof: prices of bundles by job and option, of amounts by node, and of rows."""

    def __init__(self, round_: Round, proof: Json, costs: Costs | None = None) -> None:
        self.round, self.costs = round_, costs
        self.scale, self.cost = not_negative(proof["scale"]), not_negative(proof["cost"]) if costs else 0
        self.of: dict[tuple[str, str], int] = {}
        self.staying: dict[tuple[str, str], int] = {}
        self.more = Counter[tuple[str, str | None]]()  # paid for branches: by a bundle in an option, or for starting
        for entry in proof["prices"]:
            of = self.staying if entry.get("stays") else self.of
            of |= dict.fromkeys(((job, entry["option"]) for job in entry["jobs"]), not_negative(entry["price"]))
        self.charged = {job for job in round_.changing if round_.is_listed(job, round_.held_way(job)[0])}
        self.units: dict[str, Json] = {node: unit for unit in proof["nodes"] for node in unit["nodes"]}

    def bound(self, branches: list[Branch], prices: list[int]) -> int:
        """Return the bound on value, in parts of ``scale``, over plans that are in all of ``branches``."""
        total = self._of_nodes()
        for (jobs, option, sign, limit), price in zip(branches, prices, strict=True):
            total += sign * not_negative(price) * limit
            for job in jobs:
                self.more[job, option] += sign * price
        return total + sum(map(self._of_job, self.round.jobs))

    def _of_job(self, job: str) -> int:
        """Return the most that a job is worth beyond what it pays."""
        round_, scale = self.round, self.scale
        if job not in round_.running:
            return max([0, *(self._start(job, way) for way in round_.ways(job))])
        way, now = round_.held_way(job)
        kinds = round_.changing.get(job, frozenset())
        changes: dict[str, int] = round_.policy.get("changes", {})
        price = self.staying.get((job, way.option), 0) if job in self.charged else 0
        least = way.least if "shrink" in kinds else now
        taken = changes.get("shrink_price_per_worker", 0)
        found = [scale * (way.worth(n) - taken * (now - n)) - n * price for n in {least, now}]
        if "move" in kinds:
            less = scale * changes.get("move_price", 0)
            found += [self._start(job, way) - less for way in round_.ways(job)]
        if "preempt" in kinds:
            found.append(-scale * changes.get("preemption_price", 0))
        return max(found)

    def _start(self, job: str, way: Way) -> int:
        """Return the most that a job is worth in a way beyond what it pays."""
        price = self.of.get((job, way.option), 0) + self.more[job, way.option]
        return max(int(self.scale * way.worth(n) - n * price) for n in {way.least, way.most}) - self.more[job, None]

    def _of_nodes(self) -> int:
        """Return what the bundles on all nodes can pay: what the certificate says, after it was looked at."""
        round_, counts, costs = self.round, Counter[tuple[Bundle, int, int]](), self.costs
        for job in round_.jobs:
            own = Counter[tuple[Bundle, int, int]]()  # a job runs in one way
            for way in round_.ways(job) if job not in round_.running or "move" in round_.changing.get(job, ()) else ():
                price = self.of.get((job, way.option), 0)
                if (bundle := way.bundle) is not None and price:
                    if costs and bundle.gpus:
                        bundle = bundle._replace(traffic=costs.traffic(job, way.least * bundle.gpus, way.most > 1))
                        own |= Counter((bundle, price, together) for together in range(1, way.on_a_node + 1))
                    else:
                        own |= Counter({(bundle, price, 1): way.on_a_node})
            counts.update(own)
        asked, total, known = sorted({bundle.conditions for bundle, *_ in counts}), 0, set[Any]()
        for node in round_.nodes.values():
            unit = self.units.get(node.id, {"most": 0, "amounts": {}})
            most, amounts = not_negative(unit["most"]), unit.get("amounts", {})
            admitted = tuple(admits(node, conditions) for conditions in asked)
            beside = (costs.residents(node), node.machine) if costs else ()
            key = (json.dumps([most, amounts, node.free, node.gpus]), admitted, node.id if node.staying else beside)
            if key not in known:
                self._check_node(node, amounts, most, counts)
                known.add(key)
            total += most
        return total

    def _check_node(self, node: Node, amounts: dict[str, int], most: int, counts: Counts) -> None:
        """Refuse if a node can be paid more than ``most``."""
        if unlimited := sorted(name for name in amounts if name not in node.free):
            raise Refused(f"node {node.id!r} has no limit of {unlimited[0]!r}, which has a price")
        beyond = sum(not_negative(price) * node.free[name] for name, price in amounts.items())
        items = self._items(node, amounts, counts)
        if self.costs:
            beyond += sum(item.most * max(0, item.pays) for item in items if not item.gpus)
            if self.costs.overpaid(node, [item for item in items if item.gpus], most - beyond, self.cost):
                raise Refused(f"node {node.id!r} can be paid more than the {most} stated, beyond what that costs")
            return
        units, full = [gpu[0] for gpu in node.gpus], self.round.full
        if exceeds(units, full, node.free | {LARGE: sum(2 * unit > full for unit in units)}, items, beyond, most):
            raise Refused(f"node {node.id!r} can be paid more than the {most} stated")

    def _items(self, node: Node, amounts: dict[str, int], counts: Counts) -> list[Item]:
        """Return what may be on a node: what starts there, and what running jobs hold that may be changed."""
        here = [(*key, most) for key, most in counts.items() if self.round.times(node, key[0], 1)]
        for job, workers in node.staying.items():
            way, _ = self.round.held_way(job)
            price = self.staying.get((job, way.option), 0) if job in self.charged else 0
            if way.bundle is not None and price:
                here.append((way.bundle, price, 1, workers if way.most > 1 else way.most))
        items: dict[Item, int] = {}
        for bundle, price, together, most in here:
            pays = together * (price - sum(amounts.get(name, 0) * amount for name, amount in bundle.amounts))
            limited = [(name, amount) for name, amount in bundle.amounts if name in node.free]
            limited += [(LARGE, bundle.gpus)] if self.round.full == WHOLE < 2 * bundle.share else []
            item = Item(
                bundle.gpus * together, bundle.share, pays, price, tuple(limited), 0, bundle if self.costs else None
            )
            items[item] = items.get(item, 0) + most
        return sorted((item._replace(most=most) for item, most in items.items()), key=lambda item: -item.pays)


def bound_of(round_: Round, proof: Json, branches: list[Branch], costs: Costs | None = None, value: int = 0) -> int:
    """
    Return a bound on the value of all plans that are in all of ``branches``.

    Where ``costs`` count it is one on what costs are below 0, of those of them that are worth ``value`` or more.
    """
    if "jobs" not in proof:
        leaf = Prices(round_, proof, costs)
        total = leaf.bound(branches, proof.get("branches", [])) - leaf.scale * value
        if (unit := leaf.cost if costs else leaf.scale) < 1:
            raise Refused("a unit of what is bounded has no price")
        return total // unit
    jobs, most, option = proof["jobs"], not_negative(proof["most"]), proof.get("option")
    if len(set(jobs)) < len(jobs) or any(job in round_.running or job not in round_.jobs for job in jobs):
        raise Refused("a branch names a job twice, or one that does not wait")
    at_most = bound_of(round_, proof["at_most"], [*branches, (jobs, option, 1, most)], costs, value)
    return max(at_most, bound_of(round_, proof["more"], [*branches, (jobs, option, -1, most + 1)], costs, value))


def check_value(round_: Round, claim: Json) -> None:
    """No plan is worth more than ``bound``: what is proven, rounded down to what divides the value of every plan."""
    changes = round_.policy.get("changes", {})
    prices = [changes.get(name, 0) for name in ("move_price", "preemption_price", "shrink_price_per_worker")]
    options = [option for job in round_.jobs.values() for option in job["options"]]
    missing = [leaf.get("value_per_worker", 0) for option in options for leaf in leaves_of(option)]
    unit = gcd(*(prices if round_.changing else ()), *missing, *(option.get("value", 1) for option in options)) or 1
    proven = bound_of(round_, claim["proof"], []) // unit * unit
    if proven > claim["bound"]:
        raise Refused(f"it proves {proven} only")


def check_cost(round_: Round, claim: Json) -> None:
    """No plan that is worth ``value`` costs less than ``bound``, under ``weights``; no cost is negative."""
    if claim["bound"] <= 0 and claim["proof"] == "never negative":
        return
    if round_.changing:
        raise Refused("what running jobs cost that may be changed is not known")
    costs = Costs(round_.document, round_.policy, round_.jobs, round_.nodes.values(), claim["weights"])
    proven = costs.standing - bound_of(round_, claim["proof"], [], costs, claim["value"])
    if proven < claim["bound"]:
        raise Refused(f"it proves {proven} only")


def check_fit(round_: Round, claim: Json) -> None:
    """A waiting job has no room beside the running jobs that stay, whatever else starts."""
    if claim["job"] in round_.running or list(round_.ways(claim["job"])):
        raise Refused("it runs, or counting finds room for it")


CLAIMS = {"value": check_value, "does not fit": check_fit, "cost": check_cost}


def main(arguments: list[str]) -> int:
    """Check all claims; return the exit code."""
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        document, certificate = map(read, arguments)
        round_, claims = Round(document, certificate["policy"]), certificate["claims"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"cannot be read: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    if certificate["policy"] != document.get("policy", {}):
        print("the policy is the certificate's, not the round's own")
    print(*(answers := [answer(round_, claim) for claim in claims]), sep="\n")
    return 1 if any(one.startswith("refused") for one in answers) else 0


def answer(round_: Round, claim: Json) -> str:
    """Return what is to be said of a claim."""
    text = ", ".join(f"{key} {claim[key]}" for key in ("claim", "bound", "job", "value", "weights") if key in claim)
    if claim.get("proof") is None:
        return f"not certified: {text}: {claim.get('why')}"
    try:
        if any(type(claim.get(key, 0)) is not int for key in ("bound", "value")):
            raise Refused("what is claimed is no integer")
        CLAIMS[claim["claim"]](round_, claim)
    except Refused as error:
        return f"refused: {text}: {error}"
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        return f"refused: {text}: malformed: {type(error).__name__}: {error}"
    return f"verified: {text}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
