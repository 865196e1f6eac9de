"""A job that waits put to the best of some nodes, in the best of its options."""

from __future__ import annotations

from placeopt.search import accounts, choice, gangs, home, limits, placing, rng, state
from placeopt.search.state import State


def insert(s: State, job: int, first: int, number: int) -> bool:
    """
    Place a job in its most valuable option, at the least cost, among ``number`` candidates from position ``first`` on.

    One that runs returns to where it was if it can, every other time only where it costs nothing to move it. Returns
    whether the job found room. At random some candidates are left out (Christiaens and Vanden Berghe 2020), and where
    many have room the first ``s.look`` of them decide.
    """
    if s.home[job] >= 0:
        entries = home.find_room(s, job)
        if entries and (s.movable[job] == 0 or s.away_price[job] or rng.below(s, 2)):
            put(s, job, s.home[job], s.first_trial, entries)
            return True
        if s.movable[job] == 0:
            return False
    s.best_entries = 0
    for option in range(s.first_option[job], s.end_option[job]):
        if s.best_entries and s.value_of[option] < s.value_of[s.best_option]:
            continue
        if not accounts.have_room(s, option, 0, s.workers[option], 0, s.amounts_anywhere):
            continue
        if s.bundles[option] == 1:
            _try_nodes(s, job, option, first, number)
        else:
            _try_gang(s, job, option, first, number, -1)
            _try_gang(s, job, option, first, number, s.candidates[first + rng.below(s, number)])
    if s.best_entries == 0:
        return False
    put(s, job, s.best_option, s.first_trial + s.nodes + 1, s.best_entries)
    return True


def put(s: State, job: int, option: int, first: int, entries: int) -> None:
    """Place a job in an option at the entries of some slots, from ``first`` on."""
    _copy(s, first, s.first_slot[job], entries)
    s.entries[job] = entries
    placing.place(s, job, option)


def _try_nodes(s: State, job: int, option: int, first: int, number: int) -> None:
    """Try a job of one bundle on each candidate."""
    workers = s.workers[option]
    need, at, seen = s.gpus_of[option] * workers, rng.below(s, number), 0
    for _ in range(number):
        node = s.candidates[first + at]
        at = at + 1 if at + 1 < number else 0
        if s.idle_only[option] and s.idle_count[node] < need:
            continue
        if not limits.may_hold(s, node, option) or not limits.has_room(s, node, option, workers):
            continue
        if not accounts.have_room(s, option, node, workers, s.amounts_anywhere, s.amounts):
            continue
        if s.blinks and rng.below(s, s.blinks) == 0:
            continue
        free = limits.open_gpus(s, node, option) if need else 0
        if state.count(s, free) < need:
            continue
        cost = choice.choose(s, job, node, free, need, 0) + s.option_price * s.cost_of[option]
        if _is_better(s, option, cost):
            s.best_cost, s.best_option, s.best_entries = cost, option, 1
            slot = s.first_trial + s.nodes + 1
            s.slot_node[slot], s.slot_gpus[slot], s.slot_workers[slot] = node, s.chosen, workers
        seen += 1
        if seen == s.look:
            return


def _is_better(s: State, option: int, cost: int) -> bool:
    """Return whether an option at a cost is better than what was found before."""
    if s.best_entries == 0:
        return True
    value, best = s.value_of[option], s.value_of[s.best_option]
    return value > best or (value == best and cost < s.best_cost)


def _try_gang(s: State, job: int, option: int, first: int, number: int, seed: int) -> None:
    """Try a job of several bundles, from one node on."""
    entries = gangs.grow(s, job, option, first, number, seed)
    if entries == 0:
        return
    cost = s.grown_cost + s.option_price * s.cost_of[option]
    if not _is_better(s, option, cost):
        return
    fits = limits.load_links(s, option, s.first_trial, entries, 1)
    limits.load_links(s, option, s.first_trial, entries, -1)
    if fits:
        s.best_cost, s.best_option, s.best_entries = cost, option, entries
        _copy(s, s.first_trial, s.first_trial + s.nodes + 1, entries)


def _copy(s: State, source: int, target: int, number: int) -> None:
    """Copy entries from some slots to others."""
    for i in range(number):
        s.slot_node[target + i] = s.slot_node[source + i]
        s.slot_gpus[target + i] = s.slot_gpus[source + i]
        s.slot_workers[target + i] = s.slot_workers[source + i]
