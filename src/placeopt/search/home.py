"""Running jobs that may be changed: at home, where they run now, for nothing; elsewhere, or out, at a price."""

from __future__ import annotations

from placeopt.search import accounts, limits
from placeopt.search.state import State


def is_home(s: State, job: int) -> bool:
    """Return whether a running job that is placed lies where it has run."""
    first = s.first_slot[job]
    if s.option[job] != s.home[job] or s.entries[job] != s.home_entries[job]:
        return False
    for slot in range(first, first + s.entries[job]):
        if s.slot_node[slot] != s.home_node[slot] or s.slot_gpus[slot] != s.home_gpus[slot]:
            return False
        if s.slot_workers[slot] != s.home_workers[slot]:
            return False
    return True


def count(s: State, job: int, sign: int) -> None:
    """Count a running job that has been placed (``sign`` 1), or is about to be taken away, and what that costs."""
    s.out_count -= sign
    s.value += sign * s.out_price[job]
    if not is_home(s, job):
        s.away_count += sign
        s.value -= sign * s.away_price[job]


def find_room(s: State, job: int) -> int:
    """Write the entries that a running job has run with to the trial slots; return how many, 0 without room there."""
    option, number, first, fits = s.home[job], s.home_entries[job], s.first_slot[job], True
    for i in range(number):
        node, gpus, workers = s.home_node[first + i], s.home_gpus[first + i], s.home_workers[first + i]
        slot = s.first_trial + i
        s.slot_node[slot], s.slot_gpus[slot], s.slot_workers[slot] = node, gpus, workers
        fits = fits and limits.has_room(s, node, option, workers)
        fits = fits and (gpus == 0 or gpus & ~limits.open_gpus(s, node, option) == 0)
        fits = fits and accounts.have_room(s, option, node, workers, s.amounts_anywhere, s.amounts)
        accounts.take(s, option, node, workers, s.amounts_anywhere)
    for i in range(s.first_trial, s.first_trial + number):
        accounts.take(s, option, s.slot_node[i], -s.slot_workers[i], s.amounts_anywhere)
    fits = limits.load_links(s, option, s.first_trial, number, 1) and fits
    limits.load_links(s, option, s.first_trial, number, -1)
    fits = fits and accounts.have_room(s, option, 0, s.workers[option], 0, s.amounts_anywhere)
    return number if fits else 0
