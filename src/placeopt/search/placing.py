"""A job placed, or taken away: capacity, lists, value and cost change by exact differences."""

from __future__ import annotations

from placeopt.search import accounts, costs, home, limits, state
from placeopt.search.state import State


def place(s: State, job: int, option: int) -> None:
    """Place a job, which is not placed, in an option at the entries of its slots."""
    first, number = s.first_slot[job], s.entries[job]
    cost = costs.cost_of_entries(s, job, option, first, number)
    for slot in range(first, first + number):
        node, gpus = s.slot_node[slot], s.slot_gpus[slot]
        for r in range(s.resources):
            s.node_free[node, r] -= s.demand[option, r] * s.slot_workers[slot]
        accounts.take(s, option, node, s.slot_workers[slot], 0)
        newly = s.idle[node] & gpus
        if newly:
            cost += s.gap_price * costs.gap_change(s, node, newly)
            _count_idle(s, node, newly, -1)
        _load_gpus(s, node, gpus, option, 1)
        state.enter(s, slot)
    limits.load_links(s, option, first, number, 1)
    s.option[job] = option
    s.value += s.value_of[option]
    s.cost += cost
    if s.home[job] >= 0:
        home.count(s, job, 1)
    if s.fixed[job] == 0:
        state.begin(s, job)


def take_away(s: State, job: int) -> None:
    """Take away a job that is placed; its entries stay at its slots."""
    first, number, option, gaps = s.first_slot[job], s.entries[job], s.option[job], 0
    if s.home[job] >= 0:
        home.count(s, job, -1)
    for slot in range(first, first + number):
        state.leave(s, slot)
    for slot in range(first, first + number):
        node, gpus = s.slot_node[slot], s.slot_gpus[slot]
        for r in range(s.resources):
            s.node_free[node, r] += s.demand[option, r] * s.slot_workers[slot]
        accounts.take(s, option, node, -s.slot_workers[slot], 0)
        _load_gpus(s, node, gpus, option, -1)
        freed = _without_jobs(s, node, gpus)
        if freed:
            _count_idle(s, node, freed, 1)
            gaps += costs.gap_change(s, node, freed)
    limits.load_links(s, option, first, number, -1)
    s.cost -= costs.cost_of_entries(s, job, option, first, number) + s.gap_price * gaps
    s.value -= s.value_of[option]
    s.option[job] = -1
    if s.fixed[job] == 0:
        state.end(s, job)


def _load_gpus(s: State, node: int, gpus: int, option: int, sign: int) -> None:
    """Take from each GPU what the option asks for; ``sign`` -1 gives it back."""
    gpu = s.first_gpu[node]
    while gpus:
        if gpus & 1:
            s.gpu_free[gpu] -= sign * s.milli[option]
            s.gpu_memory[gpu] -= sign * s.memory[option]
            s.gpu_jobs[gpu] += sign
        gpu += 1
        gpus >>= 1


def _without_jobs(s: State, node: int, gpus: int) -> int:
    """Return those of a set of GPUs that no job holds."""
    gpu, bit, found = s.first_gpu[node], 1, 0
    while bit <= gpus:
        if gpus & bit and s.gpu_jobs[gpu] == 0:
            found |= bit
        gpu += 1
        bit <<= 1
    return found


def _count_idle(s: State, node: int, gpus: int, sign: int) -> None:
    """Let GPUs of a node become idle, all of which are busy, or busy, all of which are idle (``sign`` -1)."""
    s.idle[node] ^= gpus
    s.idle_count[node] += sign * state.count(s, gpus)
    for level in range(s.levels):
        domain = s.level_domain[level, node]
        if domain >= 0:
            s.level_free[level, domain] += sign * state.count(s, gpus & s.listed[s.kind[node], level])
