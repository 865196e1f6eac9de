"""What nodes can be paid beyond what jobs on them cost each other, and for paths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from placeopt.certificates.clock import check_time
from placeopt.certificates.contents import Contents, Offer
from placeopt.certificates.master import Column
from placeopt.certificates.places import Place, Places
from placeopt.certificates.prices import Paid, dot
from placeopt.certificates.room import Room


class NodeCosts:
    """The nodes of a room at one set of prices after the other."""

    scale = 1 << 20
    """Parts of a unit of cost in which prices are stated."""
    joint: frozenset[int] = frozenset()

    def __init__(self, room: Room, places: Places, deadline: float) -> None:
        """``deadline``: of ``time.monotonic()``. Raises ``OutOfTime`` after it, or where nodes hold too much."""
        self._room, self._ways = room, dict[int, list[tuple[int, int]]]()
        for group in room.groups:
            for way in group.ways:  # of a bundle: how many jobs, and most of one job on a node
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

    def held(self, contents: Iterable[tuple[int, Counter[tuple[int, int]]]]) -> Iterator[Paid]:
        """Yield what nodes hold: pairs of a state and, by bundle and number of it together, how often."""
        for s, wanted in contents:
            at = {(offer.bundle, offer.number): n for n, offer in enumerate(self._offers[s])}
            if all(key in at for key in wanted):
                counts = {at[key]: count for key, count in wanted.items()}
                cost = self._contents[s].cheapest(counts)
                if cost is not None:
                    yield Paid(0, self._column(s, counts), cost)

    def _column(self, s: int, counts: dict[int, int]) -> Column:
        """Return contents by offer as a filling."""
        filling = Counter[int]()
        for n, count in counts.items():
            filling[self._offers[s][n].bundle] += self._offers[s][n].number * count
        return Column(s, tuple(sorted(filling.items())))

    def most(self, bundle: Sequence[int], amounts: Sequence[Sequence[int]], known: Sequence[int]) -> Iterator[Paid]:
        """Yield what a node of each state can be paid, and a filling that pays more than is known; see `Nodes`."""
        room, best_of = self._room, dict[tuple[Contents, tuple[int, ...]], tuple[int, dict[int, int]]]()
        for s, state in enumerate(room.states):
            pays = {b: bundle[b] - dot(amounts[s], room.bundles[b].amounts) for b, _ in state.fitting}
            paid = tuple(offer.number * pays[offer.bundle] for offer in self._offers[s])
            key = self._contents[s], paid
            if key not in best_of:
                best_of[key] = self._contents[s].best(paid, self.scale, known[s])
            best, found = best_of[key]
            alone = sum(most * max(0, pays[b]) for b, most in state.fitting if not room.bundles[b].gpus)
            cost = sum(paid[n] * count for n, count in found.items()) - best
            column = self._column(s, found) if found else None
            yield Paid(best + alone + dot(amounts[s], state.free), column, cost // self.scale)
