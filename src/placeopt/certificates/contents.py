"""What a node can hold that pays most beyond what it costs there."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from itertools import combinations
from math import comb, gcd
from typing import NamedTuple

from placeopt.certificates.clock import check_time
from placeopt.certificates.payment import most_with
from placeopt.certificates.places import NOWHERE, Place, Places, Resident, Traffic
from placeopt.errors import OutOfTime

MOST_SETS = 1 << 14
"""Sets of GPUs of one bundle; ``tools/verify.py`` takes as many times eight."""
CLOCK = 1 << 10
"""States after which the clock is read."""


class Offer(NamedTuple):
    """Bundles of one job that a node may have together, and how many jobs like it there are."""

    bundle: int
    number: int
    """Bundles."""
    gpus: int
    share: int
    """Of each GPU."""
    traffic: Traffic
    most: int
    suits: tuple[int, ...]
    """GPUs that it may have."""


class _Spot(NamedTuple):
    """An offer on GPUs."""

    pays: int
    offer: int
    most: int
    first: int
    there: tuple[int, ...]
    """GPUs, counted from the first."""
    share: int
    size: int
    """Units of all GPUs, in steps."""
    levels: tuple[int, ...]
    """At which it meets what is on each GPU from its first one on."""
    traffic: Traffic


_Beside = tuple[int, bool, tuple[int, ...]]
_State = tuple[int, tuple[int, ...], tuple[_Beside, ...], tuple[int, ...]]


class Contents:
    """
    Searches contents of one place, at one set of prices after the other.

    GPUs are passed one after the other, each after the offers of which it is the first. What GPUs from one on can
    still pay depends on what they have left, on who meets whom there, and on which scarce offers were taken.
    """

    def __init__(self, places: Places, place: Place, offers: Sequence[Offer], deadline: float) -> None:
        """
        Prepare what each offer costs on each set of GPUs.

        ``deadline``: of ``time.monotonic()``. Raises ``OutOfTime`` after it, or if there are too many sets, or jobs on
        a node at once.
        """
        pieces = sum(place.units) // min((offer.share for offer in offers), default=1)
        if len(place.units) + pieces > sys.getrecursionlimit() // 2:
            raise OutOfTime("a node may hold too many jobs")
        self._places, self._place, self._offers, self._deadline = places, place, offers, deadline
        self._pair = places.pair.tolist()
        self._spots = [self._spots_of(number, offer) for number, offer in enumerate(offers) if check_time(deadline)]
        """Of each offer, what it costs on each set of GPUs: ``pays`` is below 0."""

    def _spots_of(self, number: int, offer: Offer) -> list[_Spot]:
        place, traffic = self._place, offer.traffic
        if comb(len(offer.suits), offer.gpus) > MOST_SETS:
            raise OutOfTime("too many sets of GPUs")
        out = []
        for gpus in combinations(offer.suits, offer.gpus):
            cost = self._places.paths(place.distance, place.out, traffic.weight, gpus, traffic.gpus)
            job = Resident(traffic.profile, traffic.scattered, gpus)
            cost += self._places.meeting(place, job, place.residents)
            near = (min(place.levels[at][gpu] for gpu in gpus) for at in range(gpus[0], len(place.units)))
            levels = tuple(self._places.farthest[traffic.profile][level] for level in near)
            there = tuple(gpu - gpus[0] for gpu in gpus)
            out.append(_Spot(-cost, number, offer.most, gpus[0], there, offer.share, 0, levels, traffic))
        return out

    def best(self, pays: Sequence[int], scale: int, need: int) -> tuple[int, dict[int, int]]:
        """
        Return the most that offers pay beyond ``scale`` times what they cost, and how often each is there.

        ``pays``: of each offer. If none pay more than ``need``, which is at least 0, a bound that is no more than that
        is returned, and nothing is there. Raises ``OutOfTime`` after the deadline.
        """
        search = _Search(self._place, self._pair, scale, self._deadline)
        for offer, spots, paid in zip(self._offers, self._spots, pays, strict=True):
            if paid > 0:
                search.add(offer, [spot._replace(pays=paid + scale * spot.pays) for spot in spots])
        return search.run(need)

    def cheapest(self, wanted: Mapping[int, int]) -> int | None:
        """Return the least cost of a number of each offer together; None if there is no room for them."""
        pays = [0] * len(self._offers)
        dearest = (
            1
            + sum(-min((s.pays for s in self._spots[n]), default=0) for n in wanted)
            + int(self._places.pair.max(initial=0)) * sum(wanted.values()) ** 2
        )
        offers = [offer._replace(most=wanted.get(n, 0)) for n, offer in enumerate(self._offers)]
        search = _Search(self._place, self._pair, 1, self._deadline)
        for n in wanted:
            pays[n] = dearest * offers[n].gpus * offers[n].share
            search.add(offers[n], [spot._replace(pays=pays[n] + spot.pays, most=wanted[n]) for spot in self._spots[n]])
        best, found = search.run(0)
        return sum(pays[n] * count for n, count in wanted.items()) - best if found == dict(wanted) else None


class _Search:
    """One search."""

    def __init__(self, place: Place, pair: list[list[list[int]]], scale: int, deadline: float) -> None:
        self._place, self._pair, self._scale, self._deadline = place, pair, scale, deadline
        self._by_first: list[list[_Spot]] = [[] for _ in place.units]
        self._added: list[tuple[Offer, list[_Spot]]] = []
        self._known: dict[_State, tuple[int, tuple[int | None, _State] | None]] = {}
        self._steps = 0

    def add(self, offer: Offer, spots: list[_Spot]) -> None:
        """Add an offer on its sets of GPUs, with what it pays beyond its own cost on each."""
        self._added.append((offer, [spot for spot in spots if spot.pays > 0]))

    def run(self, need: int) -> tuple[int, dict[int, int]]:
        """Return the most paid, or a bound of at most ``need``; and how often each offer is there if it is more."""
        units = self._place.units
        step = gcd(*units, *(offer.share for offer, _ in self._added)) or 1
        self._step, self._loose, self._scarce = step, [0] * (sum(units) // step + 1), set[int]()
        for offer, spots in self._added:
            size = offer.gpus * offer.share // step
            best = max((spot.pays for spot in spots), default=0)
            self._loose = most_with(self._loose, size, best, offer.most)
            for spot in spots:
                self._by_first[spot.first].append(spot._replace(size=size))
                if spot.most * size < len(self._loose):
                    self._scarce.add(spot.offer)
        for row in self._by_first:
            row.sort(key=lambda spot: -spot.pays / max(1, spot.size))
        self._alone = [self._loose[-1]] * len(units) + [0]
        for first in reversed(range(1, len(units))):
            self._alone[first] = self._search((first, units[first:], (), ()), 0)
        state: _State = (0, units, (), ())
        best = self._search(state, need) if units else 0
        found: dict[int, int] = {}
        while best > need and state[0] < len(units):
            taken, state = self._known[state][1] or (None, (len(units), (), (), ()))
            if taken is not None:
                found[taken] = found.get(taken, 0) + 1
        return best, found

    def _search(self, state: _State, need: int) -> int:
        """Return the most that GPUs from the first of a state on can be paid, or a bound that is at most ``need``."""
        first, units, beside, taken = state
        if first == len(self._by_first):
            return 0
        known = self._known.get(state)
        if known is not None and (known[1] is not None or known[0] <= need):
            return known[0]
        loose, pair, scale, after = self._loose, self._pair, self._scale, self._alone[first + 1]
        room = sum(units) // self._step
        bound = min(loose[room], self._alone[first])
        if bound <= need:
            return bound
        self._steps += 1
        if self._steps % CLOCK == 0:
            check_time(self._deadline)
        best = need
        choice: tuple[int | None, _State] | None = None
        for spot in self._by_first[first]:
            share = spot.share
            if share > units[0] or spot.pays + loose[room - spot.size] <= best:
                continue
            rest = min(loose[room - spot.size], after) if share == units[0] else loose[room - spot.size]
            if spot.pays + rest <= best or (taken and taken.count(spot.offer) >= spot.most):
                continue
            there = spot.there
            if min([units[at] for at in there]) < share:
                continue
            pays, traffic = spot.pays, spot.traffic
            for profile, scattered, levels in beside:
                if not (scattered and traffic.scattered):
                    pays -= scale * pair[traffic.profile][profile][min([levels[at] for at in there])]
            if pays + rest <= best:
                continue
            left = list(units)
            for at in there:
                left[at] -= share
            both = beside
            if min(spot.levels) < NOWHERE:
                both = tuple(sorted((*beside, (traffic.profile, traffic.scattered, spot.levels))))
            more = tuple(sorted((*taken, spot.offer))) if spot.offer in self._scarce else taken
            then: _State = (first, tuple(left), both, more)
            paid = pays + self._search(then, best - pays)
            if paid > best:
                best, choice = paid, (spot.offer, then)
        later = ((profile, scattered, levels[1:]) for profile, scattered, levels in beside)
        then = (
            first + 1,
            units[1:],
            tuple(sorted(job for job in later if min(job[2], default=NOWHERE) < NOWHERE)),
            taken,
        )
        paid = self._search(then, best)
        if paid > best:
            best, choice = paid, (None, then)
        self._known[state] = best, choice
        return best
