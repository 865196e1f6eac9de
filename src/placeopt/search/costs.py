"""Costs of a job where its entries lie, and of sets of GPUs on a node, as exact differences."""

from __future__ import annotations

from placeopt.search import state
from placeopt.search.state import State


def gap(free: int, total: int) -> int:
    """Return the free GPUs of a domain that count: none where all are free."""
    return free if free < total else 0


def gap_change(s: State, node: int, gpus: int) -> int:
    """Return the change of fragmentation where idle GPUs of a node become busy, in weighted GPUs."""
    kind, idle, change = s.kind[node], s.idle[node], 0
    for i in range(s.part_count[kind]):
        part = s.parts[kind, i]
        if part & gpus:
            total, free = state.count(s, part), state.count(s, idle & part)
            change += s.part_weight[kind, i] * (gap(free - state.count(s, gpus & part), total) - gap(free, total))
    for level in range(s.levels):
        domain = s.level_domain[level, node]
        taken = gpus & s.listed[kind, level]
        if domain >= 0 and taken:
            total, free = s.level_total[level, domain], s.level_free[level, domain]
            change += s.level_weight[level] * (gap(free - state.count(s, taken), total) - gap(free, total))
    return change


def path_inside(s: State, kind: int, number: int, gpus: int) -> int:
    """Return the path length between all pairs of a set of the ``number`` GPUs of a node."""
    if number <= 8:
        return s.path_of_set[kind, gpus]
    path = 0
    for a in range(number):
        if gpus >> a & 1:
            for b in range(a):
                if gpus >> b & 1:
                    path += s.distance[kind, a, b]
    return path


def path_out(s: State, kind: int, number: int, gpus: int) -> int:
    """Return the sum of the ways from a set of the ``number`` GPUs of a node to its domain."""
    if number <= 8:
        return s.way_of_set[kind, gpus]
    path = 0
    for a in range(number):
        if gpus >> a & 1:
            path += s.way_out[kind, a]
    return path


def path_between(s: State, one: int, other: int) -> int:
    """Return the path length between the domains of two nodes."""
    path = 0
    for i in range(s.depth):
        a, b = s.above[one, i], s.above[other, i]
        if a != b:
            path += (s.uplink[a] if a >= 0 else 0) + (s.uplink[b] if b >= 0 else 0)
    return path


def path_of_entries(s: State, first: int, number: int) -> int:
    """
    Return the path length between all pairs of the GPUs of ``number`` entries, from slot ``first`` on.

    The k GPUs of a job that lie below an uplink, of K in all, use it for k (K - k) pairs.
    """
    path, total = 0, 0
    for i in range(first, first + number):
        node = s.slot_node[i]
        path += path_inside(s, s.kind[node], s.gpus[node], s.slot_gpus[i])
        total += state.count(s, s.slot_gpus[i])
    if number == 1 or total < 2:
        return path
    for i in range(first, first + number):
        node = s.slot_node[i]
        here = state.count(s, s.slot_gpus[i])
        path += path_out(s, s.kind[node], s.gpus[node], s.slot_gpus[i]) * (total - here)
        for a in range(s.depth):
            domain = s.above[node, a]
            if domain >= 0:
                s.in_domain[domain] += here
    for i in range(first, first + number):
        for a in range(s.depth):
            domain = s.above[s.slot_node[i], a]
            if domain >= 0:
                below = s.in_domain[domain]
                path += s.uplink[domain] * below * (total - below)
                s.in_domain[domain] = 0
    return path


def widened(s: State, sets: int, kind: int, gpus: int) -> int:
    """Return all GPUs of those switches (``sets`` 1) or sockets (2) that have one of a set."""
    out = 0
    if sets == 1:
        for i in range(s.switch_count[kind]):
            if s.switches[kind, i] & gpus:
                out |= s.switches[kind, i]
    else:
        for i in range(s.socket_count[kind]):
            if s.sockets[kind, i] & gpus:
                out |= s.sockets[kind, i]
    return out


def meeting_level(gpus: int, switch: int, socket: int, others: int) -> int:
    """Return where GPUs, all those of their switches, and all those of their sockets, first meet ``others``: 0 to 3."""
    if gpus & others:
        return 0
    if switch & others:
        return 1
    return 2 if socket & others else 3


def excess_here(s: State, node: int, gpus: int, profile: int) -> int:
    """Return what a job of a profile on GPUs of a node, and the jobs there, suffer by each other, in thousandths."""
    kind, felt = s.kind[node], 0
    switch, socket = widened(s, 1, kind, gpus), widened(s, 2, kind, gpus)
    slot = s.first_of_node[node]
    while slot >= 0:
        others, beside = s.slot_gpus[slot], s.profile[s.slot_job[slot]]
        if others and beside >= 0:
            felt += s.excess[meeting_level(gpus, switch, socket, others), profile, beside]
        slot = s.next_slot[slot]
    return felt


def excess_of_entries(s: State, profile: int, first: int, number: int) -> int:
    """
    Return what a job of a profile and all others suffer by each other, its entries not being in the lists yet.

    Two jobs that meet on several nodes count once, at the closest level.
    """
    if number == 1:
        gpus = s.slot_gpus[first]
        return excess_here(s, s.slot_node[first], gpus, profile) if gpus else 0
    s.searches += 1
    felt = 0
    for i in range(first, first + number):
        node, gpus = s.slot_node[i], s.slot_gpus[i]
        if gpus:
            kind = s.kind[node]
            switch, socket = widened(s, 1, kind, gpus), widened(s, 2, kind, gpus)
            slot = s.first_of_node[node]
            while slot >= 0:
                job, others = s.slot_job[slot], s.slot_gpus[slot]
                beside = s.profile[job]
                if others and beside >= 0:
                    level = meeting_level(gpus, switch, socket, others)
                    if s.met[job] != s.searches:
                        s.met[job] = s.searches
                        s.met_level[job] = level
                        felt += s.excess[level, profile, beside]
                    elif level < s.met_level[job]:
                        felt += s.excess[level, profile, beside] - s.excess[s.met_level[job], profile, beside]
                        s.met_level[job] = level
                slot = s.next_slot[slot]
    return felt


def cost_of_entries(s: State, job: int, option: int, first: int, number: int) -> int:
    """Return all that a job costs at some entries, but for fragmentation; they are not in the lists."""
    cost = s.option_price * s.cost_of[option]
    if s.traffic[job] and s.path_price and s.path_counts[job]:
        cost += s.path_price * s.traffic[job] * path_of_entries(s, first, number)
    if s.excess_price and s.excess_counts and s.profile[job] >= 0:
        cost += s.excess_price * excess_of_entries(s, s.profile[job], first, number)
    return cost
