"""
What plans cost on nodes, for ``verify.py``: paths between a job's GPUs, and jobs that meet there.

What is no matter of one node alone is left out, and other costs are at least 0: what is counted is a lower bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import comb, gcd
from typing import Any, NamedTuple

Json = dict[str, Any]
Resident = tuple[str | None, bool, tuple[int, ...]]  # of a job: profile, whether on several nodes, GPUs or levels
Ints = tuple[int, ...]
MEET = ("gpu", "switch", "socket", "node", "nowhere")  # jobs, the closest first
UPLINKS = {"gpu": 1, "switch": 10, "numa": 10, "socket": 20, "machine": 100}  # what they weigh unless stated
STEPS = 1 << 17  # for a node


class Refused(Exception):
    """A claim is not proven."""


def not_negative(number: Any) -> int:
    """Return an integer of at least 0."""
    if type(number) is not int or number < 0:
        raise Refused(f"{number!r} is no price: expected an integer of at least 0")
    return int(number)


class Traffic(NamedTuple):
    """Of a job, what decides what its bundles cost on a node."""

    profile: str | None
    weight: int  # of each pair of its GPUs
    gpus: int  # of the whole job, at least
    scattered: bool  # whether it may be on several nodes


class Bundle(NamedTuple):
    """What lands on one node together: all workers of a job that are on one node, else one worker."""

    gpus: int
    share: int  # of each GPU, in units of `Round.full`
    amounts: tuple[tuple[str, int], ...]
    gpu_memory_mib: int
    models: tuple[str, ...]
    conditions: str
    traffic: Traffic | None = None  # where costs count


class Item(NamedTuple):
    """Bundles that may be on a node."""

    gpus: int
    share: int
    pays: int  # for GPUs, beyond the prices of its amounts
    price: int  # in all
    amounts: tuple[tuple[str, int], ...]  # those that the node limits
    most: int
    bundle: Bundle | None = None  # where costs count


@dataclass
class Node:
    """A node with what running jobs that stay leave of it."""

    id: str
    domains: dict[str, str]
    labels: dict[str, str]
    taints: list[Json]
    drained: bool
    free: dict[str, int]
    gpus: list[list[Any]]  # units left, model, memory left, units of jobs that may be changed
    staying: dict[str, int] = field(default_factory=dict)  # jobs that may be changed: workers here
    own: dict[str, int] = field(default_factory=dict)  # what these take
    capacity: dict[str, int] = field(default_factory=dict)  # of the idle node
    machine: str = ""
    held: dict[str, list[int]] = field(default_factory=dict)  # GPUs of running jobs that stay


class Spot(NamedTuple):
    """An item on GPUs of a node."""

    pays: int  # beyond what it costs there, others that start aside
    number: int  # of the item
    most: int
    gpus: tuple[int, ...]  # counted from its first
    share: int
    size: int
    meets: Resident  # closest level, of `MEET`, at each GPU from the first on


def suits(gpu: list[Any], bundle: Bundle) -> bool:
    """Return whether a GPU takes a part of a bundle."""
    units, model, left, _ = gpu
    return bool(units >= bundle.share and left >= bundle.gpu_memory_mib and model in (bundle.models or (model,)))


def with_more(best: list[int], size: int, pays: int, times: int) -> list[int]:
    """Return the most paid in 0 to as many units as ``best`` tells, with up to so many of an item more."""
    best, part = best[:], 1
    times = min(times, (len(best) - 1) // size) if size else times
    while times > 0 and pays > 0:  # in powers of two
        part = min(part, times)
        times -= part
        for used in range(len(best) - 1, size * part - 1, -1):
            best[used] = max(best[used], best[used - size * part] + part * pays)
        part *= 2
    return best


class Machine:
    """Distances of the GPUs of a type of machine, how far each is from its domain, and in which parts it is."""

    def __init__(self, machine: Json) -> None:
        parts, paths = {part["id"]: part for part in machine.get("parts", [])}, list[dict[Any, int]]()
        self.out, self.parts = list[int](), list[dict[str, str]]()
        for index, gpu in enumerate(machine.get("gpus", [])):
            path, length, at, above = {index: 0}, uplink(gpu, "gpu"), gpu.get("part"), dict[str, str]()
            while at is not None:
                path[at], level = length, parts[at]["level"]
                above.setdefault(level, at)
                length, at = length + uplink(parts[at], level), parts[at].get("parent")
            paths.append(path | {None: length})
            self.out.append(length + uplink(machine, "machine"))
            self.parts.append(above)
        far = [[min(a[at] + b[at] for at in a.keys() & b.keys()) for b in paths] for a in paths]
        for link in machine.get("links", []):
            a, b = link["gpus"]
            far[a][b] = far[b][a] = min(far[a][b], link.get("weight", 1))
        for over in range(len(far)) if machine.get("links") else ():
            far = [[min(to, row[over] + on) for to, on in zip(row, far[over], strict=True)] for row in far]
        self.far: list[list[int]] = machine.get("gpu_distance_matrix") or far

    def level(self, gpu: int, others: Iterable[int]) -> int:
        """Return the closest level, of `MEET`, at which a GPU meets others of the node."""
        own = [(at, self.parts[gpu][MEET[at]]) for at in (1, 2) if MEET[at] in self.parts[gpu]]
        near = (at for at, part in own if any(self.parts[other].get(MEET[at]) == part for other in others))
        return 0 if gpu in others else next(near, 3)


def uplink(vertex: Json, level: str) -> int:
    """Return the weight of the edge from a machine, or from what is in it, to what is above."""
    return UPLINKS[level] if vertex.get("uplink_weight") is None else int(vertex["uplink_weight"])


class Costs:
    """What plans cost on nodes, under weights of paths and of pairs of jobs that meet; no other cost is below 0."""

    def __init__(
        self, document: Json, policy: Json, jobs: dict[str, Json], nodes: Iterable[Node], weights: Json
    ) -> None:
        """``jobs``: by id, with what templates say. ``weights``: by name of the cost; 0 unless given."""
        self.jobs, self.weight = jobs, not_negative(weights.get("communication", 0))
        pairwise = policy.get("interference", {}).get("model", "pairwise") == "pairwise"
        weight = not_negative(weights.get("interference", 0)) * pairwise
        slow = {(one["profile"], one["beside"]): one for one in document.get("slowdowns", [])}
        names: list[str | None] = [None, *sorted({name for pair in slow for name in pair})]
        self.pair = {  # what jobs of two profiles cost by the level at which they meet; nowhere, nothing
            (a, b): [weight * sum(slow.get(k, {}).get(f"{at}_thousandths", 0) for k in ((a, b), (b, a))) for at in MEET]
            for a in names
            for b in names
        }
        self.farthest = {  # level at which meeting a profile costs any job the same
            (a, at): max(to for to in range(at, 5) if all(len({*self.pair[a, b][at : to + 1]}) == 1 for b in names))
            for a in names
            for at in range(len(MEET))
        }
        self.machines = {machine["id"]: Machine(machine) for machine in document["cluster"]["machines"]}
        self.gpus, self.nodes, nodes = Counter[str](), Counter[str](), list(nodes)  # of running jobs
        for node in nodes:
            self.gpus.update({job: len(gpus) for job, gpus in node.held.items()})
            self.nodes.update(list(node.held))
        self.standing = sum(map(self._standing, nodes))

    def _standing(self, node: Node) -> int:
        """Return what running jobs cost on a node."""
        machine, beside = self.machines[node.machine], self.residents(node)
        total = sum(self._paths(machine, self._weight(job), gpus, self.gpus[job]) for job, gpus in node.held.items())
        return total + sum(self._meetings(machine, one, beside[:at]) for at, one in enumerate(beside))

    def residents(self, node: Node) -> tuple[Resident, ...]:
        """Return the running jobs on a node."""
        held = node.held.items()
        return tuple((self._profile(job), self.nodes[job] > 1, tuple(sorted(gpus))) for job, gpus in held)

    def _meetings(self, machine: Machine, job: Resident, others: Iterable[Resident]) -> int:
        """Return what a job and others on its node cost each other; nothing where they may meet on several nodes."""
        profile, scattered, gpus = job
        near = ((a, min(machine.level(g, there) for g in gpus)) for a, far, there in others if not (far and scattered))
        return sum(self.pair[profile, other][level] for other, level in near)

    def _paths(self, machine: Machine, weight: int, gpus: Sequence[int], total: int) -> int:
        """Return the cost of the paths between GPUs of a job, and of each of them to its domain for all others."""
        inside = sum(machine.far[a][b] for a, b in combinations(gpus, 2))
        return self.weight * weight * (inside + max(0, total - len(gpus)) * sum(machine.out[gpu] for gpu in gpus))

    def _profile(self, job: str) -> str | None:
        """Return a job's profile; None: it disturbs no job."""
        profile = self.jobs[job].get("profile")
        return profile if (profile, None) in self.pair else None

    def _weight(self, job: str) -> int:
        """Return what the path of each pair of a job's GPUs counts; 0 where that differs."""
        traffic = self.jobs[job].get("communication", {})
        alike = not traffic.get("edges") and not any(option.get("groups") for option in self.jobs[job]["options"])
        return not_negative(traffic.get("weight", 0)) * alike

    def traffic(self, job: str, gpus: int, scattered: bool) -> Traffic:
        """Return what decides the cost of a job's bundles, of so many GPUs in all, at least."""
        return Traffic(self._profile(job), self._weight(job) if gpus > 1 else 0, gpus, scattered)

    def overpaid(self, node: Node, items: Sequence[Item], most: int, cost: int) -> bool:
        """
        Return whether items on a node can pay more than ``most`` beyond ``cost`` times what they cost.

        GPUs are passed one after the other, each after items of which it is the first. What can be paid on those that
        are left depends on what they have left, who meets whom there, and which scarce items were taken.
        """
        machine, residents, scarce = self.machines[node.machine], self.residents(node), set[int]()
        units, known = tuple(gpu[0] for gpu in node.gpus), dict[Any, tuple[int, bool]]()
        step = gcd(*units, *(item.share for item in items)) or 1
        loose, spots = [0] * (sum(units) // step + 1), [list[Spot]() for _ in units]
        for number, item in enumerate(items):
            bundle, size, found = item.bundle, item.gpus * item.share // step, 0
            if bundle is None or bundle.traffic is None:
                raise Refused("what something costs is not known")
            profile, weight, total, scattered = bundle.traffic
            fits = [at for at, gpu in enumerate(node.gpus) if suits(gpu, bundle)]
            if comb(len(fits), item.gpus) > STEPS:
                raise Refused(f"node {node.id!r} has too many sets of GPUs")
            for gpus in combinations(fits, item.gpus):
                meets = self._meetings(machine, (profile, scattered, gpus), residents)
                pays = item.pays - cost * (meets + self._paths(machine, weight, gpus, total))
                near = (machine.level(at, gpus) for at in range(gpus[0], len(units)))
                if pays > 0:
                    own = (profile, scattered, tuple(self.farthest[profile, level] for level in near))
                    there = tuple(at - gpus[0] for at in gpus)
                    spots[gpus[0]].append(Spot(pays, number, item.most, there, item.share, size, own))
                    found = max(found, pays)
            loose = with_more(loose, size, found, item.most)
            if item.most * size < len(loose):
                scarce.add(number)
        for row in spots:
            row.sort(key=lambda spot: -spot.pays // spot.size)
        steps, alone = iter(range(STEPS)), [loose[-1]] * len(units) + [0]

        def search(first: int, units: Ints, beside: tuple[Resident, ...], taken: Ints, need: int) -> int:
            """Return the most that is paid on GPUs from ``first`` on, or a bound on it that is at most ``need``."""
            state, room = (first, units, beside, taken), sum(units) // step
            best, exact = known.get(state, (min(loose[room], alone[first]), False))
            if exact or best <= need or first == len(spots) or next(steps, None) is None:
                return best
            best = need
            for spot in spots[first]:
                pays, there, (profile, scattered, levels) = spot.pays, spot.gpus, spot.meets
                if pays + loose[max(0, room - spot.size)] <= best or min([units[at] for at in there]) < spot.share:
                    continue
                if taken.count(spot.number) >= spot.most:
                    continue
                rest = min(loose[room - spot.size], alone[first + (units[0] == spot.share)])
                for other, far, near in beside if pays + rest > best else ():
                    if not (far and scattered):
                        pays -= cost * self.pair[profile, other][min([near[at] for at in there])]
                if pays + rest > best:
                    left = tuple(unit - spot.share * (at in there) for at, unit in enumerate(units))
                    both = tuple(sorted((*beside, spot.meets), key=str)) if min(levels) < len(MEET) - 1 else beside
                    more = tuple(sorted((*taken, spot.number))) if spot.number in scarce else taken
                    best = max(best, pays + search(first, left, both, more, best - pays))
            later = ((other, far, near[1:]) for other, far, near in beside)
            still = tuple(sorted((job for job in later if min(job[2], default=4) < len(MEET) - 1), key=str))
            best = max(best, search(first + 1, units[1:], still, taken, best))
            known[state] = best, best > need
            return best

        for first in reversed(range(len(units))):
            alone[first] = search(first, units[first:], (), (), 0 if first else most)
        return bool(units) and alone[0] > most
