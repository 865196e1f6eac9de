"""What nodes, GPUs and uplinks have room for."""

from __future__ import annotations

from placeopt.search.state import State


def has_room(s: State, node: int, option: int, workers: int) -> bool:
    """Return whether a node has the resources for so many workers."""
    for r in range(s.resources):
        need = s.demand[option, r]
        if need and need * workers > s.node_free[node, r]:
            return False
    return True


def may_hold(s: State, node: int, option: int) -> bool:
    """Return whether all workers of an option may lie on a node, apart from room."""
    if s.closed[node] & s.whole_node:
        return False
    if not s.node_ok[option, s.node_class[node]] or s.per_node[option] < s.workers[option]:
        return False
    if s.split_level[option] < 0:
        return True
    together = s.split_workers[option] == 0 or s.split_workers[option] == s.workers[option]
    return s.split_domains[option] == 1 and together and s.split_domain[s.split_level[option], node] >= 0


def open_gpus(s: State, node: int, option: int) -> int:
    """Return the GPUs of a node that can take a job in an option."""
    allowed = s.gpu_ok[option, s.kind[node]] & ~s.closed[node]
    if s.idle_only[option]:
        return s.idle[node] & allowed
    milli, memory, found = s.milli[option], s.memory[option], 0
    gpu, bit = s.first_gpu[node], 1
    for _ in range(s.gpus[node]):
        if (
            allowed & bit
            and s.gpu_free[gpu] >= milli
            and (memory == 0 or s.gpu_memory[gpu] >= memory)
            and s.gpu_jobs[gpu] < s.most_jobs
        ):
            found |= bit
        gpu += 1
        bit <<= 1
    return found


def load_links(s: State, option: int, first: int, number: int, sign: int) -> bool:
    """
    Add the load of the uplinks of a job's entries, from slot ``first`` on, or take it away; whether all have room.

    That is min(k, K - k) x the load of a worker where k of its K workers are below an uplink.
    """
    if s.network[option] == 0 or number == 1:
        return True
    workers, side, fits = s.workers[option], 0 if s.gpus_of[option] else 1, True
    load = s.network[option] * sign
    for i in range(first, first + number):
        node, here = s.slot_node[i], s.slot_workers[i]
        s.link_load[node, side] += min(here, workers - here) * load
        fits = fits and s.link_load[node, side] <= s.link_most[node, side]
        for a in range(s.depth):
            domain = s.above[node, a]
            if domain >= 0:
                s.in_domain[domain] += here
    for i in range(first, first + number):
        for a in range(s.depth):
            domain = s.above[s.slot_node[i], a]
            if domain >= 0 and s.in_domain[domain]:
                below, link = s.in_domain[domain], s.nodes + domain
                if below < workers:
                    s.link_load[link, side] += min(below, workers - below) * load
                    fits = fits and s.link_load[link, side] <= s.link_most[link, side]
                s.in_domain[domain] = 0
    return fits
