"""Which GPUs of a node a job takes: all sets on small nodes, sets grown one by one on large ones."""

from __future__ import annotations

from placeopt.search import costs, state
from placeopt.search.state import State


def choose(s: State, job: int, node: int, free: int, number: int, held: int) -> int:
    """
    Choose the cheapest ``number`` of the GPUs ``free`` of a node, for a job that holds the GPUs ``held`` there.

    There are at least so many. Returns the cost; ``s.chosen`` are the GPUs.
    """
    s.chosen = 0
    if number == 0:
        return 0
    if state.count(s, free) == number:
        s.chosen = free
        return cost_of_choice(s, job, node, free, held, s.never)
    if s.gpus[node] > 8:
        return _grow(s, job, node, free, number, held)
    kind, alike, best = s.kind[node], s.idle[node] & free, s.never
    for i in range(s.subset_start[number], s.subset_start[number + 1]):
        gpus = s.subsets[i]
        if gpus > free:
            break
        if gpus & free == gpus and _is_first(s, kind, gpus, alike):
            cost = cost_of_choice(s, job, node, gpus, held, best)
            if cost < best:
                best = cost
                s.chosen = gpus
    return best


def cost_of_choice(s: State, job: int, node: int, gpus: int, held: int, best: int) -> int:
    """
    Return what a job that holds ``held`` of a node costs more with ``gpus``, but for paths to other nodes.

    At least ``best`` where it is not below that.
    """
    cost = 0
    if s.traffic[job] and s.path_price:
        kind, number = s.kind[node], s.gpus[node]
        path = costs.path_inside(s, kind, number, gpus | held)
        if held:
            path -= costs.path_inside(s, kind, number, held)
        cost = s.path_price * s.traffic[job] * path
    newly = s.idle[node] & gpus
    if newly and s.gap_price:
        cost += s.gap_price * costs.gap_change(s, node, newly)
    if cost < best and s.excess_price and s.profile[job] >= 0:
        cost += s.excess_price * costs.excess_here(s, node, gpus, s.profile[job])
    return cost


def _is_first(s: State, kind: int, gpus: int, alike: int) -> bool:
    """Return whether a set takes the first of those GPUs of ``alike`` that cannot be told apart."""
    for i in range(s.alike_count[kind]):
        same = s.alike[kind, i] & alike
        taken = gpus & same
        left = same ^ taken
        if left & -left < taken and left:
            return False
    return True


def _grow(s: State, job: int, node: int, free: int, number: int, held: int) -> int:
    """Choose from every first GPU on the cheapest next one, and the cheapest of these sets."""
    kind, alike, best, chosen = s.kind[node], s.idle[node] & free, s.never, 0
    first = 1
    while first <= free:
        if first & free and _is_first(s, kind, first, alike):
            gpus, cost = first, cost_of_choice(s, job, node, first, held, s.never)
            for _ in range(number - 1):
                least, more, bit = s.never, 0, 1
                while bit <= free:
                    if bit & free & ~gpus and _is_first(s, kind, gpus | bit, alike):
                        cost = cost_of_choice(s, job, node, gpus | bit, held, least)
                        if cost < least:
                            least, more = cost, bit
                    bit <<= 1
                gpus |= more
                cost = least
            if cost < best:
                best, chosen = cost, gpus
        first <<= 1
    s.chosen = chosen
    return best
