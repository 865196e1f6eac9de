"""
Prices that bound the cost of plans of a value, by column generation.

What `placeopt.certificates.prices` says of value holds of ``value x (what a unit of value is worth) - cost``: bundles
pay prices to nodes. So no plan worth V costs less than what V is worth, less what jobs are worth beyond what their
bundles pay, less what nodes are paid beyond what they hold costs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from placeopt.certificates.clock import check_time
from placeopt.certificates.contents import Contents, Offer
from placeopt.certificates.cost_master import CostDuals, CostMaster
from placeopt.certificates.master import Branch, Column, Counted
from placeopt.certificates.places import Place, Places
from placeopt.certificates.prices import Prices, Solve
from placeopt.certificates.room import Room
from placeopt.linear import MAX_EXACT

SCALE = 1 << 20
"""Parts of a unit of cost in which prices are stated."""
TOLERANCE = 1e-6
"""Of what a solution of a program costs."""


class CostPriceSearch:
    """Searches prices for one branch after the other; contents of nodes stay."""

    def __init__(self, room: Room, places: Places, value: int, claim: int, solve: Solve, deadline: float) -> None:
        """``value``: of the plans whose cost is at least ``claim``; ``deadline``: of ``time.monotonic()``."""
        self._room, self._places, self._value, self._solve, self._deadline = room, places, value, solve, deadline
        self._penalty = max(1, min(claim, MAX_EXACT // 4 // max(1, value)))
        self._ways: dict[int, list[tuple[int, int]]] = {}  # of a bundle: how many jobs, and most of one job on a node
        for group in room.groups:
            for way in group.ways:
                self._ways.setdefault(way.bundle, []).append((len(group.jobs), way.on_a_node))
        self._offers = [self._offers_of(s) for s in range(len(room.states)) if check_time(deadline)]
        made: dict[tuple[Place, tuple[Offer, ...]], Contents] = {}
        self._contents = []
        for state, offers in zip(room.states, self._offers, strict=True):
            place = places.place(state.nodes[0])
            key = (place, tuple(offers))
            if key not in made:
                made[key] = Contents(places, place, offers, deadline)
            self._contents.append(made[key])
        self._columns: dict[Column, int] = {}

    def _offers_of(self, s: int) -> list[Offer]:
        room, state = self._room, self._room.states[s]
        offers = []
        for fit, suits in zip(state.fitting, state.suits, strict=True):
            bundle = room.bundles[fit.bundle]
            ways = self._ways.get(fit.bundle, [])
            for number in range(1, max((own for _, own in ways), default=0) + 1):
                gpus = bundle.gpus * number
                if bundle.traffic is not None and gpus <= len(suits):
                    jobs = sum(count for count, own in ways if own >= number)
                    offers.append(Offer(fit.bundle, number, gpus, bundle.share, bundle.traffic, jobs, suits))
        return offers

    def begin(self, held: Iterable[tuple[int, Counter[tuple[int, int]]]]) -> None:
        """Add what nodes of a plan hold: pairs of a state and, by bundle and number of it together, how often."""
        for s, wanted in held:
            at = {(offer.bundle, offer.number): n for n, offer in enumerate(self._offers[s])}
            if all(key in at for key in wanted):
                counts = {at[key]: count for key, count in wanted.items()}
                cost = self._contents[s].cheapest(counts)
                if cost is not None:
                    self._add(s, counts, cost)

    def _add(self, s: int, counts: dict[int, int], cost: int) -> bool:
        """Add contents, by offer; return whether they are new, or cost less than was known."""
        filling = Counter[int]()
        for n, count in counts.items():
            filling[self._offers[s][n].bundle] += self._offers[s][n].number * count
        column = Column(s, tuple(sorted(filling.items())))
        new = column not in self._columns or cost < self._columns[column]
        if new:
            self._columns[column] = cost
        return new

    def search(
        self, branches: Sequence[Branch], enough: Callable[[int], bool]
    ) -> tuple[Prices | None, dict[Counted, float] | None]:
        """
        Return the best prices, or the first that prove ``enough``, called with a bound in parts of `SCALE`.

        Bounds are on what costs are below 0, running jobs that stay aside. Also returned is what branches may count in
        the relaxation where no prices prove enough; None where it was not solved. Raises ``OutOfTime``.
        """
        best: Prices | None = None
        center: CostDuals | None = None
        while True:
            columns, value = self._columns, self._value
            master = CostMaster(self._room, columns, value, branches, self._penalty, self._deadline)
            relaxed = self._solve(master.model)
            if relaxed is None:
                return best, None
            duals, cost = master.duals(relaxed.duals), master.cost(relaxed.values)
            counts = master.counts(relaxed.values)
            if not enough(-int(SCALE * (cost + TOLERANCE * max(1.0, cost)))):
                return best, counts
            new = False
            for tried in (duals,) if center is None else (duals.halfway(center), duals):  # Wentges 1997
                prices, new = self._price(tried, branches)
                if best is None or prices.bound < best.bound:
                    best, center = prices, tried
                if new or enough(best.bound):
                    break
            if best is not None and (enough(best.bound) or not new):
                return best, counts

    def _price(self, duals: CostDuals, branches: Sequence[Branch]) -> tuple[Prices, bool]:
        """Return what prices prove, and whether contents pay more than their state is paid; those are new columns."""
        room, new, most = self._room, False, []
        bundle, worth = [_price(dual) for dual in duals.bundle], _price(duals.value)
        amounts = [tuple(_price(dual) for dual in row) for row in duals.amounts.tolist()]
        total = worth * (room.held - self._value)
        known: dict[tuple[Contents, tuple[int, ...]], tuple[int, dict[int, int]]] = {}
        for s, state in enumerate(room.states):
            check_time(self._deadline)
            pays = {
                fit.bundle: bundle[fit.bundle] - _dot(amounts[s], room.bundles[fit.bundle].amounts)
                for fit in state.fitting
            }
            paid = tuple(offer.number * pays[offer.bundle] for offer in self._offers[s])
            if (self._contents[s], paid) not in known:
                need = _price(duals.states[s])
                known[self._contents[s], paid] = self._contents[s].best(paid, SCALE, need)
            best, found = known[self._contents[s], paid]
            if found:
                cost = sum(paid[n] * count for n, count in found.items()) - best
                new |= self._add(s, found, cost // SCALE)
            alone = sum(
                fit.most * max(0, pays[fit.bundle]) for fit in state.fitting if not room.bundles[fit.bundle].gpus
            )
            most.append(best + alone + _dot(amounts[s], state.free))
            total += most[-1] * len(state.nodes)
        more: dict[Counted, int] = {}
        sides = [_price(dual) for dual in duals.branches]
        for branch, price in zip(branches, sides, strict=True):
            sign = 1 if branch.at_most else -1
            more[branch.counted] = more.get(branch.counted, 0) + sign * price
            total += sign * price * branch.limit
        for g, group in enumerate(room.groups):
            over = [
                worth * way.value
                - more.get(Counted(g, None), 0)
                - way.bundles * (bundle[way.bundle] + more.get(Counted(g, way.option), 0))
                for way in group.ways
            ]
            total += len(group.jobs) * max([0, *over])
        return Prices(tuple(bundle), tuple(amounts), tuple(sides), tuple(most), total, worth), new


def _price(dual: float) -> int:
    """Return a dual as a price; what is beyond all reason is 0: any prices will do."""
    return round(dual * SCALE) if 0 < dual < 2.0**60 else 0


def _dot(prices: Sequence[int], amounts: Sequence[int]) -> int:
    return sum(price * amount for price, amount in zip(prices, amounts, strict=True))
