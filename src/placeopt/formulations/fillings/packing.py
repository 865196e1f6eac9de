"""
The filling of one node that pays most, exactly: branch and bound over how often it holds each item.

Items come by what they pay for a unit of weight, the most first; the weight of an item is a sum of what it takes of
every amount, at prices that the caller chooses (a surrogate constraint, Glover 1968), so the fractional knapsack over
what is undecided is an upper bound (Dantzig 1957). Whether GPUs can hold the shares is a bin packing, which is solved
by itself where the tightest fit finds no room. Plain loops over integers, so that the module can be compiled.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable

try:
    import cython
except ImportError:  # it is needed to compile, not to run
    from placeopt import uncompiled as cython

LOOK = 1 << 12
"""Branches between two looks at the clock: compiled some milliseconds, not compiled a hundred times as long."""


class Packing:
    """
    A node, the items that may lie there, and the best filling found so far.

    - ``pays``, ``wide``, ``milli``, ``most``, ``weight``: Shape (n,): what an item pays, the GPUs that it takes, the
      share of each, how many there are, and their weight. In the order of pays / weight, descending.
    - ``need``: Shape (n x R,): what an item takes of each amount; ``free``, shape (R,): what is left of it.
    - ``left``: Shape ((1 + most items) x G,): what is left of each GPU, ascending; in the empty node first, then with
      each item that was put there.
    - ``best``: What fillings have to exceed to be of interest; then what the best one pays.
    - ``most_steps``: Branches and tries after which the search ends.
    - ``check_time``: Is called now and then, from ``look`` branches and tries on, and may raise.
    - ``open``: What fillings may pay that the search did not look at.
    - ``listed``, ``fits``: Items that the node still takes, and how many of each by themselves: with ``c`` items there,
      those from ``begins[c]`` up to ``ends[c]``.
    - ``number``: Shape (n,): how often the node holds each item.
    - ``held``, ``parts``: The items that were put there, in that order, and the largest shares first.
    - ``found``: The items of fillings of interest, each better than the one before.
    """

    items: int
    amounts: int
    gpus: int
    pays: array[int]
    wide: array[int]
    milli: array[int]
    most: array[int]
    weight: array[int]
    need: array[int]
    free: array[int]
    left: array[int]
    best: int
    open: int
    copies: int
    steps: int
    most_steps: int
    check_time: Callable[[], object]
    look: int
    number: array[int]
    found: list[list[int]]
    held: array[int]
    parts: array[int]
    listed: array[int]
    fits: array[int]
    begins: array[int]
    ends: array[int]

    def __init__(
        self,
        pays: array[int],
        wide: array[int],
        milli: array[int],
        most: array[int],
        weight: array[int],
        need: array[int],
        free: array[int],
        left: array[int],
    ) -> None:
        """Begin with an empty node: ``left`` is that of its GPUs."""
        self.items, self.amounts, self.gpus = len(pays), len(free), len(left)
        self.pays, self.wide, self.milli, self.most, self.weight = pays, wide, milli, most, weight
        self.need, self.free = need, free
        copies = _copies_at_most(self)
        self.number, self.found = _zeros(self.items), []
        self.left = left + _zeros(self.gpus * copies)
        self.held, self.parts = _zeros(copies + 1), _zeros(copies + 1)
        self.listed, self.fits = _zeros(self.items * (copies + 2)), _zeros(self.items * (copies + 2))
        self.begins, self.ends = _zeros(copies + 2), _zeros(copies + 2)
        self.best = self.open = self.copies = self.steps = self.most_steps = 0
        self.check_time, self.look = int, LOOK


def _copies_at_most(s: Packing) -> int:
    """Return how many items the node holds at most: of each amount the least of it each time, and those without any."""
    copies = 0
    for i in range(s.items):
        copies += s.most[i]
    for r in range(s.amounts):
        without, least = 0, 0
        for i in range(s.items):
            need = s.need[i * s.amounts + r]
            if need == 0:
                without += s.most[i]
            elif least == 0 or need < least:
                least = need
        copies = min(copies, without + (max(0, s.free[r]) // least if least else 0))
    return copies


def _zeros(size: int) -> array[int]:
    return array("q", bytes(8 * size))


def fill(s: Packing, room: int) -> None:
    """Search all fillings; ``room`` is the weight that the empty node takes."""
    for i in range(s.items):
        s.listed[i] = i
        s.fits[i] = s.most[i]
    _list(s, 0, 0, s.items)
    with cython.nogil:  # the local search goes on beside it
        _add(s, 0, room)


def _add(s: Packing, paid: int, room: int) -> int:
    """
    Try each of the listed items as the next one, beside what the node holds, which has ``paid``.

    All that are still to come pay at most: each as often as it fits by itself, the last one in part. Of one item after
    the other that sum loses its first ones and goes on behind its last, item ``to``; they weigh ``weight``.

    Returns 0, or raises what ``check_time`` does.
    """
    begin, end = s.begins[s.copies], s.ends[s.copies]
    to, weight, pays = begin, 0, 0
    for at in range(begin, end):
        while to < end and weight + s.fits[to] * s.weight[s.listed[to]] <= room:
            weight += s.fits[to] * s.weight[s.listed[to]]
            pays += s.fits[to] * s.pays[s.listed[to]]
            to += 1
        bound = paid + pays
        if to < end:
            bound += s.pays[s.listed[to]] * (room - weight) // s.weight[s.listed[to]]
        if bound <= s.best:
            return 0
        if s.steps >= s.most_steps:
            s.open = max(s.open, bound)
            return 0
        s.steps += 1
        if s.steps >= s.look:
            with cython.gil:
                s.look = s.steps + LOOK
                s.check_time()
        item = s.listed[at]
        if to > at:
            weight -= s.fits[at] * s.weight[item]
            pays -= s.fits[at] * s.pays[item]
        else:
            to = at + 1
        if not _put(s, item, bound):
            continue
        if paid + s.pays[item] > s.best:
            s.best = paid + s.pays[item]
            with cython.gil:
                s.found.append(list(s.held[: s.copies]))
        _list(s, s.copies, at, end)
        _add(s, paid + s.pays[item], room - s.weight[item])
        _take_away(s, item)
    return 0


def _list(s: Packing, copies: int, begin: int, end: int) -> None:
    """List those of some listed items that the node, with so many copies, still takes, and how many of each."""
    s.begins[copies] = to = end if copies else 0
    for at in range(begin, end):
        item = s.listed[at]
        fits = s.most[item] - s.number[item]
        for r in range(s.amounts):
            need = s.need[item * s.amounts + r]
            if need > 0:
                fits = min(fits, s.free[r] // need)
        if fits > 0:
            s.listed[to], s.fits[to] = item, fits
            to += 1
    s.ends[copies] = to


def _put(s: Packing, item: int, bound: int) -> bool:
    """Put one more of an item onto the node; false where its GPUs cannot hold it beside what is there."""
    before, after = s.copies * s.gpus, (s.copies + 1) * s.gpus
    for g in range(s.gpus):
        s.left[after + g] = s.left[before + g]
    s.number[item] += 1
    s.held[s.copies] = item
    if not _take_tightest(s, after, item):
        outcome = _repack(s, after)
        if outcome < 0:
            s.open = max(s.open, bound)
        if outcome <= 0:
            s.number[item] -= 1
            return False
    for r in range(s.amounts):
        s.free[r] -= s.need[item * s.amounts + r]
    s.copies += 1
    return True


def _take_away(s: Packing, item: int) -> None:
    s.copies -= 1
    s.number[item] -= 1
    for r in range(s.amounts):
        s.free[r] += s.need[item * s.amounts + r]


def _take_tightest(s: Packing, at: int, item: int) -> bool:
    """Take the GPUs with least left that an item fits, of the row that begins at ``at``. False where it fits none."""
    share, first = s.milli[item], 0
    while first < s.gpus and s.left[at + first] < share:
        first += 1
    if first + s.wide[item] > s.gpus:
        return False
    for g in range(first, first + s.wide[item]):
        s.left[at + g] -= share
    _sort(s, at)
    return True


def _sort(s: Packing, at: int) -> None:
    """Sort a row of GPUs by what is left of them, ascending."""
    for g in range(at + 1, at + s.gpus):
        left, other = s.left[g], g - 1
        while other >= at and s.left[other] > left:
            s.left[other + 1] = s.left[other]
            other -= 1
        s.left[other + 1] = left


def _repack(s: Packing, at: int) -> int:
    """
    Pack all that the node holds anew, the largest shares first.

    Returns 1 where that worked, 0 where there is no way, -1 where steps ran out.
    """
    for g in range(s.gpus):
        s.left[at + g] = s.left[g]
    for k in range(s.copies + 1):
        item, j = s.held[k], k
        while j > 0 and s.milli[s.parts[j - 1]] < s.milli[item]:
            s.parts[j] = s.parts[j - 1]
            j -= 1
        s.parts[j] = item
    outcome = _pack(s, at, 0, s.wide[s.parts[0]], 0)
    _sort(s, at)
    return outcome


def _pack(s: Packing, at: int, part: int, wide: int, first: int) -> int:
    """Pack ``wide`` more GPUs of a part, from GPU ``first`` on, and all parts after it."""
    while wide == 0:
        part += 1
        if part > s.copies:
            return 1
        wide, first = s.wide[s.parts[part]], 0
    if s.steps >= s.most_steps:
        return -1
    s.steps += 1
    share, outcome = s.milli[s.parts[part]], 0
    for g in range(first, s.gpus):
        left, same = s.left[at + g], False
        for other in range(first, g):
            same = same or s.left[at + other] == left  # it was tried with that one
        if left >= share and not same:
            s.left[at + g] -= share
            outcome = _pack(s, at, part, wide - 1, g + 1)
            if outcome != 0:
                break
            s.left[at + g] += share
    return outcome
