"""
Check the certificate of a plan against its round, with nothing but the Python standard library.

    python tools/verify.py ROUND CERTIFICATE

Prints of each claim: verified, refused, or not certified, as the certificate itself says (docs/files.md,
"Certificate"). The exit code is 1 where a claim was refused, 2 where a file could not be read.

One sum bounds value and cost: bundles of workers pay prices to nodes, and ``scale x value - cost x costs`` of a plan
is no more than what its jobs are worth beyond what they pay, and what nodes are paid beyond what they hold costs.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from math import comb, gcd
from operator import sub
from pathlib import Path
from typing import Any, NamedTuple

from verify_round import PARTS, WHOLE, Bundle, Json, Node, Refused, Round, admits, not_negative, weight_of

Ints = tuple[int, ...]
Branch = tuple[list[str], str | None, int, int]  # jobs that start, or bundles in an option: at most (1), at least (-1)
Resident = tuple[str | None, bool, Ints]  # of a job: profile, whether on several nodes, GPUs or levels
MEET = ("gpu", "switch", "socket", "node", "nowhere")  # jobs, the closest first
NOWHERE = 4
UPLINKS = {"gpu": 1, "switch": 10, "numa": 10, "socket": 20, "machine": 100}  # what they weigh unless stated
STEPS = 1 << 17  # for a node
sys.setrecursionlimit(1 << 12)  # a call for each bundle on a node


class Offer(NamedTuple):
    """Bundles of a job that may be on a node together, and what each pays."""

    bundle: Bundle
    price: int
    together: int


class Item(NamedTuple):
    """Bundles that may be on a node."""

    gpus: int
    pays: int  # beyond the prices of its amounts, in parts of the proof's ``scale``
    bundle: Bundle
    most: int = 0


class Spot(NamedTuple):
    """An item on GPUs of a node; where nothing costs anything there, on all of them as one."""

    pays: int  # beyond what it costs there, others that start aside
    number: int  # of the item
    place: int  # in the order in which they are passed
    gpus: Ints  # counted from its first
    share: int
    takes: Ints = ()  # amounts
    meets: Resident = (None, False, (NOWHERE,))  # levels at which it meets what is on each GPU from its first on


class Machine:
    """Of the GPUs of a type of machine: distances, how far each is from its domain, closest levels of `MEET`."""

    def __init__(self, machine: Json) -> None:
        parts, paths = {part["id"]: part for part in machine.get("parts", [])}, list[dict[Any, int]]()
        for index, gpu in enumerate(machine.get("gpus", [])):
            path, length, at = {index: 0}, uplink(gpu, "gpu"), gpu.get("part")
            while at is not None:
                path[at] = length
                length, at = length + uplink(parts[at], parts[at]["level"]), parts[at].get("parent")
            paths.append(path | {None: length})
        self.out = [path[None] + uplink(machine, "machine") for path in paths]
        far = [[min(a[at] + b[at] for at in a.keys() & b.keys()) for b in paths] for a in paths]
        for link in machine.get("links", []):
            a, b = link["gpus"]
            far[a][b] = far[b][a] = min(far[a][b], link.get("weight", 1))
        for over in range(len(far)) if machine.get("links") else ():
            far = [[min(to, row[over] + on) for to, on in zip(row, far[over], strict=True)] for row in far]
        self.far: list[list[int]] = machine.get("gpu_distance_matrix") or far
        inside = [{parts[at]["level"]: at for at in reversed(path) if at in parts} for path in paths]
        near = [{1 + PARTS.index(level): at for level, at in own.items()} | {0: gpu} for gpu, own in enumerate(inside)]
        self.level = [[min([at for at, _ in a.items() & b.items()], default=3) for b in near] for a in near]


def uplink(vertex: Json, level: str) -> int:
    """Return the weight of the edge from a machine, or from what is in it, to what is above."""
    return UPLINKS[level] if vertex.get("uplink_weight") is None else int(vertex["uplink_weight"])


class Costs:
    """What plans cost on nodes, under weights of paths and of pairs of jobs that meet."""

    def __init__(self, round_: Round, weights: Json) -> None:
        """``weights``: by name of the cost; 0 unless given."""
        self.round, self.weight = round_, not_negative(weights.get("communication", 0))
        pairwise = round_.policy.get("interference", {}).get("model", "pairwise") == "pairwise"
        weight = not_negative(weights.get("interference", 0)) * pairwise
        self.count = bool(self.weight or weight)
        slow = {(one["profile"], one["beside"]): one for one in round_.document.get("slowdowns", [])}
        names = [None, *sorted(round_.profiles)]
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
        self.machines = {machine["id"]: Machine(machine) for machine in round_.document["cluster"]["machines"]}
        self.gpus, self.nodes = Counter[str](), Counter[str]()  # of running jobs
        for held in round_.held.values():
            self.gpus.update({job: len(gpus) for job, gpus in held.items()})
            self.nodes.update(list(held))
        self.standing = 0
        for node in round_.nodes.values() if self.count else ():
            beside = self.residents(node)
            self.standing += sum(self._meetings(node, one, beside[:at]) for at, one in enumerate(beside))
            for job, gpus in round_.held[node.id].items():
                self.standing += self._paths(node, weight_of(round_.jobs[job]), gpus, self.gpus[job])

    def residents(self, node: Node) -> tuple[Resident, ...]:
        """Return the running jobs on a node."""
        jobs, held = self.round.jobs, self.round.held[node.id].items()
        return tuple((self.round.profile(jobs[job]), self.nodes[job] > 1, tuple(gpus)) for job, gpus in held)

    def _meetings(self, node: Node, job: Resident, others: Iterable[Resident]) -> int:
        """Return what a job and others on its node cost each other; nothing where they may meet on several nodes."""
        (profile, scattered, gpus), level = job, self.machines[node.machine].level
        met = ((other, there) for other, far, there in others if not (far and scattered))
        return sum(self.pair[profile, other][min(level[a][b] for a in gpus for b in there)] for other, there in met)

    def _paths(self, node: Node, weight: int, gpus: Sequence[int], total: int) -> int:
        """Return the cost of the paths between GPUs of a job, and of each of them to its domain for all others."""
        machine = self.machines[node.machine]
        inside = sum(machine.far[a][b] for a, b in combinations(gpus, 2))
        return self.weight * weight * (inside + max(0, total - len(gpus)) * sum(machine.out[gpu] for gpu in gpus))

    def offers(self, bundle: Bundle, price: int, most: int) -> Counter[Offer]:
        """Return what a job may have on a node that has at most so many of its bundles, and how often."""
        if self.count and bundle.gpus:
            return Counter(Offer(bundle, price, together) for together in range(1, most + 1))
        return Counter({Offer(bundle.uncosted(), price, 1): most})

    def overpaid(self, node: Node, items: list[Item], prices: dict[str, int], most: int, cost: int) -> bool:
        """
        Return whether items on a node can pay more than ``most`` beyond ``cost`` times what they cost there.

        Places are passed one after the other: where costs count GPUs, each after the items of which it is the first;
        else items, with GPUs as one, and amounts. What can be paid on those that are left depends on what they have
        left, who meets whom there, and which scarce items were taken.
        """
        units, full, spots = [gpu.units for gpu in node.gpus], self.round.full, list[Spot]()
        if self.count:
            most -= sum(item.most * max(0, item.pays) for item in items if not item.gpus)
            spots = [spot for at, item in enumerate(items) if item.gpus for spot in self._spots(node, item, at, cost)]
            best = {spot.number: spot.pays for spot in sorted(spots, key=lambda spot: spot.pays)}
            items = [item._replace(pays=best.get(number, 0)) for number, item in enumerate(items)]
        if quick_bound(units, full, items) <= most:
            return False
        if self.count:
            pair = {key: [cost * level for level in levels] for key, levels in self.pair.items()}
            return most_paid(items, spots, tuple(units), most, pair) > most
        least = min((item.bundle.share for item in items if item.gpus), default=0)
        together = sum(unit for unit in units if unit >= least)
        free = (*node.free.values(), sum(2 * unit > full for unit in units))
        for number, item in enumerate(items):
            amounts = dict(item.bundle.amounts)
            takes = (*(amounts.get(name, 0) for name in node.free), item.gpus * (full == WHOLE < 2 * item.bundle.share))
            spots.append(Spot(item.pays, number, number, (0,), item.gpus * item.bundle.share, takes))
        lost = (*(prices.get(name, 0) for name in node.free), 0)
        return most_paid(items, spots, (together,), most, {}, free, lost) > most

    def _spots(self, node: Node, item: Item, number: int, cost: int) -> Iterator[Spot]:
        """Yield the sets of GPUs on which an item pays more than it costs there."""
        machine, bundle, residents = self.machines[node.machine], item.bundle, self.residents(node)
        fits = node.suiting(bundle)
        if comb(len(fits), item.gpus) > STEPS:
            raise Refused(f"node {node.id!r} has too many sets of GPUs")
        for gpus in combinations(fits, item.gpus):
            costs = self._meetings(node, (bundle.profile, bundle.scattered, gpus), residents)
            costs += self._paths(node, bundle.weight if bundle.job_gpus > 1 else 0, gpus, bundle.job_gpus)
            near = (min(machine.level[at][gpu] for gpu in gpus) for at in range(gpus[0], len(node.gpus)))
            levels = tuple(self.farthest[bundle.profile, level] for level in near)
            if item.pays > cost * costs:
                there = tuple(at - gpus[0] for at in gpus)
                meets = bundle.profile, bundle.scattered, levels
                yield Spot(item.pays - cost * costs, number, gpus[0], there, bundle.share, (), meets)


def most_paid(
    items: list[Item],
    spots: list[Spot],
    units: Ints,
    need: int,
    pair: dict[Any, list[int]],
    free: Ints = (),
    lost: Ints = (),
) -> int:
    """
    Return the most that is paid on a node, or a bound on it that is at most ``need``.

    Places are passed one after the other. What can be paid on those that are left depends on what is left of GPUs and
    amounts, on who meets whom there, and on which scarce items were taken. ``lost``: for what is left of amounts.
    """
    joint, step = bool(lost), gcd(*(spot.share for spot in spots)) or 1
    known, steps = dict[Any, tuple[int, bool]](), iter(range(STEPS))
    places = [list[Spot]() for _ in (items if joint else units)]
    for spot in sorted(spots, key=lambda spot: -spot.pays // max(1, len(spot.gpus) * spot.share)):
        places[spot.place].append(spot)
    scarce = {at for at, item in enumerate(items) if item.most * item.gpus * item.bundle.share <= sum(units)}
    last = {spot.number: spot.place for row in places for spot in row if spot.number in scarce}
    tables = [[0] * (sum(units) // step + 1)]
    for item in reversed(items):
        tables.append(with_more(tables[-1], item.gpus * item.bundle.share // step, item.pays, item.most))
    tables = tables[::-1] if joint else tables[-1:] * (1 + len(places))
    alone = [tables[0][-1]] * len(places) + [0]

    def search(at: int, units: Ints, beside: tuple[Resident, ...], taken: Ints, free: Ints, need: int) -> int:
        """Return the most that is paid from a place on, or a bound on it that is at most ``need``."""
        if at == len(places):
            return -sum(price * left for price, left in zip(lost, free, strict=True))
        state, room = (at, units, beside, taken, free), sum(units) // step
        best, exact = known.get(state, (min(tables[at][room], alone[at]), False))
        if exact or best <= need or next(steps, None) is None:
            return best
        best = need
        for spot in places[at]:
            pays, size, (profile, scattered, levels) = spot.pays, len(spot.gpus) * spot.share // step, spot.meets
            rest = min(tables[at][max(0, room - size)], alone[at if joint or units[0] > spot.share else at + 1])
            if pays + rest <= best or min([units[gpu] for gpu in spot.gpus]) < spot.share:
                continue
            left = tuple(map(sub, free, spot.takes))
            if taken.count(spot.number) >= items[spot.number].most or min(left, default=0) < 0:
                continue
            for other, far, near in beside:
                if not (far and scattered):
                    pays -= pair[profile, other][min([near[gpu] for gpu in spot.gpus])]
            if pays + rest > best:
                then = tuple(unit - spot.share * (gpu in spot.gpus) for gpu, unit in enumerate(units))
                both = beside if min(levels) == NOWHERE else tuple(sorted((*beside, spot.meets), key=str))
                more = tuple(sorted((*taken, spot.number))) if spot.number in scarce else taken
                best = max(best, pays + search(at, then, both, more, left, best - pays))
        later = ((other, far, near[1:]) for other, far, near in beside)
        still = tuple(sorted((job for job in later if min(job[2], default=NOWHERE) < NOWHERE), key=str))
        kept = tuple(number for number in taken if last[number] > at)
        best = max(best, search(at + 1, units[not joint :], still, kept, free, best))
        known[state] = best, best > need
        return best

    for at in range(len(units) - 1, 0, -1) if not joint else ():
        alone[at] = search(at, units[at:], (), (), free, 0)
    return search(0, units, (), (), free, need)


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


def quick_bound(units: list[int], full: int, items: list[Item]) -> int:
    """
    Return a bound on what items pay.

    Those of whole GPUs fill a knapsack, each as often as there are jobs; shares fill each GPU, as often as they fit.
    Where units are jobs (``full`` 1), those of all GPUs count together.
    """
    shares = [item for item in items if item.gpus and item.bundle.share < full]
    step = gcd(full, *(item.bundle.share for item in shares))
    filled = [0] * (max(units, default=0) // step + 1)
    for item in shares:
        filled = with_more(filled, item.bundle.share // step, item.pays, len(filled))
    idle = sum(units) if full == 1 else sum(unit == full for unit in units)
    best = [count * filled[full // step] if shares and idle else 0 for count in range(idle + 1)]
    for item in items:
        if item not in shares:
            best = with_more(best, item.gpus, item.pays, item.most)
    return best[-1] + sum(filled[unit // step] for unit in units if unit < full)


class Proof:
    """Prices and branches that bound what plans are worth, or what those cost that are worth ``value``."""

    def __init__(self, round_: Round, costs: Costs, value: int) -> None:
        self.round, self.costs, self.value = round_, costs, value

    def bound(self, proof: Json, branches: list[Branch], unit: str) -> int:
        """Return a bound on value, or on what costs are below 0, of all plans that are in all of ``branches``."""
        if "jobs" not in proof:
            if not_negative(proof[unit]) < 1:
                raise Refused("a unit of what is bounded has no price")
            return (self._sum(proof, branches) - not_negative(proof["scale"]) * self.value) // int(proof[unit])
        jobs, most, option = proof["jobs"], not_negative(proof["most"]), proof.get("option")
        if len(set(jobs)) < len(jobs) or any(job in self.round.running or job not in self.round.jobs for job in jobs):
            raise Refused("a branch names a job twice, or one that does not wait")
        at_most = self.bound(proof["at_most"], [*branches, (jobs, option, 1, most)], unit)
        return max(at_most, self.bound(proof["more"], [*branches, (jobs, option, -1, most + 1)], unit))

    def _sum(self, leaf: Json, branches: list[Branch]) -> int:
        """Return the bound in parts of ``scale``."""
        round_, scale, prices = self.round, not_negative(leaf["scale"]), dict[tuple[str, str, bool], int]()
        for entry in leaf["prices"]:
            stays, price = entry.get("stays", False), not_negative(entry["price"])
            prices |= {(job, entry["option"], stays): price for job in entry["jobs"]}
        total, offers, more = 0, Counter[Offer](), Counter[tuple[str, str | None]]()
        for (jobs, option, sign, limit), price in zip(branches, leaf.get("branches", []), strict=True):
            total += sign * not_negative(price) * limit
            more.update({(job, option): sign * price for job in jobs})
        staying: dict[str, Offer] = {}
        for job in round_.jobs:
            kinds, own = round_.changing.get(job, ()), Counter[Offer]()  # a job runs in one way
            worth = [0] if job not in round_.running else []
            if "preempt" in kinds:
                worth.append(-scale * round_.rules.get("preemption_price", 0))
            for way in round_.ways(job):
                price = prices.get((job, way.option, way.stays), 0) if kinds or not way.stays else 0
                each = price + more[job, way.option]
                worth += [scale * way.worth(n) - n * each - more[job, None] for n in (way.least, way.most)]
                if price and way.stays:
                    staying[job] = Offer(way.bundle, price, 1)
                elif price:
                    own |= self.costs.offers(way.bundle, price, way.on_a_node)
            total += max(worth)
            offers.update(own)
        return total + self._paid_to_nodes(leaf, offers, staying)

    def _paid_to_nodes(self, leaf: Json, offers: Counter[Offer], staying: dict[str, Offer]) -> int:
        """Return what the bundles on all nodes can pay: what the certificate says, after it was looked at."""
        asked, total, known = sorted({offer.bundle.conditions for offer in offers}), 0, set[Any]()
        units, costs = {node: unit for unit in leaf["nodes"] for node in unit["nodes"]}, self.costs
        cost = not_negative(leaf["cost"]) if costs.count else 0
        for node in self.round.nodes.values():
            unit = units.get(node.id, {"most": 0})
            most, amounts = not_negative(unit["most"]), unit.get("amounts", {})
            total += most
            stay = {job: workers for job, workers in self.round.staying[node.id].items() if job in staying}
            beside = (costs.residents(node), node.machine) if costs.count else ()
            admitted = tuple(admits(node, conditions) for conditions in asked)
            key = (json.dumps([most, amounts, node.free, node.gpus]), admitted, node.id if stay else beside)
            if key in known:
                continue
            known.add(key)
            here = [(offer, count) for offer, count in offers.items() if node.times(offer.bundle, 1)]
            for job, workers in stay.items():
                here.append((staying[job], workers if self.round.held_way(job).most > 1 else 1))
            items = Counter[Item]()
            for (bundle, price, together), count in here:
                pays = together * (price - sum(amounts.get(name, 0) * amount for name, amount in bundle.amounts))
                items[Item(bundle.gpus * together, pays, bundle if costs.count else Bundle(*bundle[:3]))] += count
            if unlimited := amounts.keys() - node.free.keys():
                raise Refused(f"node {node.id!r} has no limit of {min(unlimited)!r}, which has a price")
            beyond = sum(not_negative(price) * node.free[name] for name, price in amounts.items())
            ranked = sorted((item._replace(most=count) for item, count in items.items()), key=lambda item: -item.pays)
            if costs.overpaid(node, ranked, amounts, most - beyond, cost):
                raise Refused(f"node {node.id!r} can be paid more than the {most} stated, beyond what that costs")
        return total


def check(round_: Round, claim: Json) -> None:
    """Refuse a claim that its proof does not show."""
    kind, bound, proof = claim["claim"], claim.get("bound", 0), claim["proof"]
    if kind == "cost" and bound <= 0 and proof == "never negative":
        return
    if any(option.get("groups") for option in round_.options):
        raise Refused("trees of groups are not known")
    if kind == "does not fit":  # a waiting job has no room beside the running jobs that stay, whatever else starts
        if claim["job"] in round_.running or list(round_.ways(claim["job"])):
            raise Refused("it runs, or counting finds room for it")
        return
    if not all(map(round_.is_as_stated, round_.changing)):
        raise Refused("a running job that may be changed holds what its option does not say, or what is gone")
    if kind == "value":  # no plan is worth more, rounded down to what divides the value of every plan
        proven = Proof(round_, Costs(round_, {}), 0).bound(proof, [], "scale") // round_.unit * round_.unit
    elif kind == "cost" and not round_.changing:  # no plan that is worth ``value`` costs less, under ``weights``
        costs = Costs(round_, claim["weights"])
        proven = costs.standing - Proof(round_, costs, claim["value"]).bound(proof, [], "cost")
    else:
        raise Refused("how to prove it is not known")
    if proven > bound if kind == "value" else proven < bound:
        raise Refused(f"it proves {proven} only")


def answer(round_: Round, claim: Json) -> str:
    """Return what is to be said of a claim."""
    text = ", ".join(f"{key} {claim[key]}" for key in ("claim", "bound", "job", "value", "weights") if key in claim)
    if claim.get("proof") is None:
        return f"not certified: {text}: {claim.get('why')}"
    try:
        if any(type(claim.get(key, 0)) is not int for key in ("bound", "value")):
            raise Refused("what is claimed is no integer")
        check(round_, claim)
    except Refused as error:
        return f"refused: {text}: {error}"
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        return f"refused: {text}: malformed: {type(error).__name__}: {error}"
    return f"verified: {text}"


def read(path: str) -> Json:
    """Return the document of a JSON file, plain or gzip."""
    data = Path(path).read_bytes()
    return dict(json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data))


def main(arguments: list[str]) -> int:
    """Check all claims; return the exit code."""
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        document, certificate = map(read, arguments)
        round_, claims = Round(document, certificate["policy"]), certificate["claims"]
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RuntimeError, StopIteration) as error:
        print(f"cannot be read: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    if certificate["policy"] != document.get("policy", {}):
        print("the policy is the certificate's, not the round's own")
    print(*(answers := [answer(round_, claim) for claim in claims]), sep="\n")
    return 1 if any(one.startswith("refused") for one in answers) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
