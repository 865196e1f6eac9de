"""Jobs of several bundles: their workers are placed one by one, each where it costs least beside those before."""

from __future__ import annotations

from placeopt.search import accounts, choice, costs, limits, rng, state
from placeopt.search.state import State


def grow(s: State, job: int, option: int, first: int, number: int, seed: int) -> int:
    """
    Find entries for a job on ``number`` candidates, from position ``first`` on, beginning with node ``seed`` (-1: any).

    Writes them to the trial slots; returns how many there are, 0 where the workers have no room. ``s.grown_cost`` is
    an estimate of the cost: exact where GPUs of a node are equally far from the network, and where no two jobs meet on
    several nodes.
    """
    workers, per_worker, total, used, entries, node = s.workers[option], s.gpus_of[option], 0, 0, 0, 0
    for i in range(first, first + number):
        _look_at(s, job, option, s.candidates[i])
    for placed in range(workers):
        node = _cheapest(s, option, first, number, seed if placed == 0 else -1, placed, used)
        if node < 0:
            break
        total += s.near_cost[node] + s.far_cost[node]
        if s.grown_workers[node] == 0:
            s.slot_node[s.first_trial + entries] = node
            entries += 1
        s.grown_workers[node] += 1
        newly = s.near_gpus[node]
        s.grown_gpus[node] |= newly
        if s.split_level[option] >= 0:
            domain = s.split_domain[s.split_level[option], node]
            used += 1 if s.in_split[domain] == 0 else 0
            s.in_split[domain] += 1
        if s.traffic[job] and s.path_price and per_worker:
            _add_paths(s, job, node, newly, per_worker, first, number)
        accounts.take(s, option, node, 1, s.amounts_anywhere)
        _look_again(s, job, option, node)
    for i in range(s.first_trial, s.first_trial + entries):
        s.slot_gpus[i] = s.grown_gpus[s.slot_node[i]]
        s.slot_workers[i] = s.grown_workers[s.slot_node[i]]
        accounts.take(s, option, s.slot_node[i], -s.slot_workers[i], s.amounts_anywhere)
    s.grown_cost = total
    if node < 0 or (s.split_level[option] >= 0 and used != s.split_domains[option]):
        return 0
    return entries


def shift(s: State, job: int, option: int, slot: int, target: int, workers: int) -> int:
    """
    Find entries for a job that was taken away: those at its slots, but for ``workers`` of one, which go to ``target``.

    Writes them to the trial slots; returns how many there are, 0 where the workers have no room.
    """
    at, there, held, fits = s.first_trial, 0, 0, True
    for i in range(s.first_slot[job], s.first_slot[job] + s.entries[job]):
        node, gpus, left = s.slot_node[i], s.slot_gpus[i], s.slot_workers[i]
        if node == target:
            there, held = left, gpus
            continue
        if i == slot:
            left -= workers
            choice.choose(s, job, node, gpus, left * s.gpus_of[option], 0)
            gpus = s.chosen
        if left:
            s.slot_node[at], s.slot_gpus[at], s.slot_workers[at] = node, gpus, left
            at += 1
    need = s.gpus_of[option] * workers
    if there + workers > s.per_node[option] or not limits.has_room(s, target, option, there + workers):
        return 0
    free = limits.open_gpus(s, target, option) & ~held if need else 0
    if state.count(s, free) < need:
        return 0
    choice.choose(s, job, target, free, need, held)
    s.slot_node[at], s.slot_gpus[at], s.slot_workers[at] = target, held | s.chosen, there + workers
    at += 1
    for i in range(s.first_trial, at):
        node, left = s.slot_node[i], s.slot_workers[i]
        fits = fits and accounts.have_room(s, option, node, left, s.amounts_anywhere, s.amounts)
        accounts.take(s, option, node, left, s.amounts_anywhere)
    for i in range(s.first_trial, at):
        accounts.take(s, option, s.slot_node[i], -s.slot_workers[i], s.amounts_anywhere)
    fits = limits.load_links(s, option, s.first_trial, at - s.first_trial, 1) and fits
    limits.load_links(s, option, s.first_trial, at - s.first_trial, -1)
    return at - s.first_trial if fits else 0


def _look_at(s: State, job: int, option: int, node: int) -> None:
    """Note what a first worker costs on a node."""
    s.grown_workers[node], s.grown_gpus[node], s.far_cost[node] = 0, 0, 0
    s.near_cost[node] = s.never
    if s.closed[node] & s.whole_node:
        return
    level = s.split_level[option]
    if level >= 0:
        domain = s.split_domain[level, node]
        if domain < 0:
            return
        s.in_split[domain] = 0
    if s.node_ok[option, s.node_class[node]] and s.per_node[option] > 0 and limits.has_room(s, node, option, 1):
        free = limits.open_gpus(s, node, option) if s.gpus_of[option] else 0
        if state.count(s, free) >= s.gpus_of[option]:
            s.near_cost[node] = choice.choose(s, job, node, free, s.gpus_of[option], 0)
            s.near_gpus[node] = s.chosen


def _look_again(s: State, job: int, option: int, node: int) -> None:
    """Note what a further worker costs on a node that has some."""
    there, held, per_worker = s.grown_workers[node], s.grown_gpus[node], s.gpus_of[option]
    s.near_cost[node] = s.never
    if there < s.per_node[option] and limits.has_room(s, node, option, there + 1):
        free = limits.open_gpus(s, node, option) & ~held if per_worker else 0
        if state.count(s, free) >= per_worker:
            s.near_cost[node] = choice.choose(s, job, node, free, per_worker, held)
            s.near_gpus[node] = s.chosen


def _cheapest(s: State, option: int, first: int, number: int, seed: int, placed: int, used: int) -> int:
    """Return the candidate where the next worker costs least, -1 without; some are left out at random."""
    best, chosen, level = s.never, -1, s.split_level[option]
    for i in range(first, first + number):
        node = s.candidates[i]
        if s.near_cost[node] == s.never:
            continue
        if level >= 0 and not _may_join(s, option, s.split_domain[level, node], placed, used):
            continue
        if not accounts.have_room(s, option, node, 1, s.amounts_anywhere, s.amounts):
            continue
        if node == seed:
            return node
        cost = s.near_cost[node] + s.far_cost[node]
        if cost < best and not (s.blinks and rng.below(s, s.blinks) == 0):
            best, chosen = cost, node
    return chosen


def _may_join(s: State, option: int, domain: int, placed: int, used: int) -> bool:
    """Return whether the next worker may lie in a domain: enough are left for the domains that are still to come."""
    inside, to_come = s.in_split[domain], s.split_domains[option] - used
    if inside == 0:
        return to_come > 0
    if s.split_workers[option]:
        return inside < s.split_workers[option]
    return s.workers[option] - placed > to_come


def _add_paths(s: State, job: int, node: int, gpus: int, per_worker: int, first: int, number: int) -> None:
    """Add the paths from GPUs of a node just taken to those of a further worker on each other candidate."""
    kind, weight = s.kind[node], s.path_price * s.traffic[job] * per_worker
    out = costs.path_out(s, kind, s.gpus[node], gpus)
    for i in range(first, first + number):
        other = s.candidates[i]
        if other != node and s.near_cost[other] != s.never:
            there = costs.path_out(s, s.kind[other], s.gpus[other], s.near_gpus[other])
            between = per_worker * costs.path_between(s, node, other)
            s.far_cost[other] += weight * (out + between) + s.path_price * s.traffic[job] * per_worker * there
