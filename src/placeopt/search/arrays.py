"""A compiled problem as the state of the local search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from placeopt.problem import UNLIMITED, Allocation, IntArray, Problem, change_of
from placeopt.problem import State as ProblemState
from placeopt.problem.changes import change_limits
from placeopt.search import memory
from placeopt.search.account_trees import account_facts
from placeopt.search.coverage import MOST_SUM, Judged, more_than_all, out_of_sight
from placeopt.search.entries import put, write
from placeopt.search.hardware import (
    INSIDE,
    MOST_GPUS,
    TABLE_GPUS,
    NodeKinds,
    in_sight,
    mask_of,
    node_kinds,
    path_of_sets,
)
from placeopt.search.state import State
from placeopt.search.tables import block, reals, row, table
from placeopt.terms import Weighted, cost
from placeopt.terms.costs.communication import Communication
from placeopt.terms.costs.fragmentation import Fragmentation
from placeopt.terms.costs.interference import Interference
from placeopt.terms.costs.resource import ResourceCost
from placeopt.terms.objective import weight_of
from placeopt.terms.protocols import Cost

LOOK = 64
"""Nodes with room that decide where a job goes, and nodes all of which are looked at: work, not quality, ends there."""
BLINKS = 50
"""
One of so many candidates is left out: 2 %, near the rate of 1 % of Christiaens and Vanden Berghe (2020). With one of 64
19 plans of 60 made rounds are better and 29 worse.
"""
QUANTILES = 1024


def state_of(
    problem: Problem,
    weighted: tuple[Weighted, ...],
    allocation: Allocation,
    seed: int = 0,
    judged: Judged | None = None,
) -> State:
    """
    Return the state of a round with the jobs of ``allocation`` placed.

    Running jobs that may be moved or preempted are changed at their price, others stay as they are there. A round may
    begin with less than nothing free. ``seed`` decides all random numbers. The cost is that of the whole plan;
    differences leave out what is ``judged``.
    """
    nothing: Allocation = (None,) * problem.num_jobs
    idle = ProblemState(problem, nothing)
    seen = in_sight(problem, seed)
    kinds, hidden = node_kinds(problem, seen), out_of_sight(problem, allocation, seen)
    may_change = jobs_that_may_change(problem, allocation) - hidden if judged is None else frozenset[int]()
    facts: dict[str, object] = {
        **_nodes(problem, kinds, seen),
        **_options(problem, kinds),
        **_jobs(problem, judged, may_change, hidden),
        **_changes(problem, allocation, may_change),
        **_search(problem, seed),
        **_zones(problem, judged),
        **_room(problem, idle, seen),
        **account_facts(problem, idle),
        "path_price": weight_of(weighted, Communication),
        "excess_price": weight_of(weighted, Interference) if problem.slowdown.any() else 0,
        "excess_counts": not _asks(judged, Interference),
        "gap_price": 0 if _asks(judged, Fragmentation) else weight_of(weighted, Fragmentation),
        "option_price": weight_of(weighted, ResourceCost),
        "cost": cost(problem, nothing, weighted),
    }
    state = State(facts)
    for job in may_change:
        first = state.first_slot[job]
        state.home_entries[job] = write(state, problem, first, problem.running[job])
        for slot in range(first, first + state.home_entries[job]):
            state.home_node[slot], state.home_gpus[slot] = state.slot_node[slot], state.slot_gpus[slot]
            state.home_workers[slot] = state.slot_workers[slot]
    for job, held in enumerate(allocation):
        if held is not None:
            put(state, problem, job, held)
            memory.note(state, job)
    memory.keep(state)
    if judged is not None or hidden:
        state.cost = cost(problem, allocation, weighted)
    memory.save(state)
    return state


def _asks(judged: Judged | None, kind: type[Cost]) -> bool:
    """Tell whether a cost is asked for by its definition alone."""
    return judged is not None and any(isinstance(w.cost, kind) for w in judged.weighted)


def _nodes(problem: Problem, kinds: NodeKinds, seen: Sequence[range]) -> dict[str, object]:
    """Return what nodes, kinds of nodes and domains are."""
    topology, size = problem.topology, problem.num_nodes
    lineage = [topology.node_ancestors(n)[::-1] for n in range(size)]
    depth = max(map(len, lineage), default=0)
    subsets = sorted(range(1 << TABLE_GPUS), key=lambda gpus: (gpus.bit_count(), gpus))
    sizes = [gpus.bit_count() for gpus in subsets]
    every = [level for level in problem.levels if level.name not in INSIDE]
    most = max((len(level.total) for level in every), default=0)
    domain_of = np.full((len(every), size), -1, dtype=np.int64)
    for i, level in enumerate(every):
        np.maximum.at(domain_of[i], problem.gpu_node, level.gpu_to_domain)
    way_of_set = [
        [sum(int(kind.way_out[g]) for g in range(kind.gpus) if gpus >> g & 1) for gpus in range(1 << TABLE_GPUS)]
        for kind in kinds.kinds
    ]
    largest = max((kind.gpus for kind in kinds.kinds), default=0)
    distance = np.zeros((len(kinds.kinds), largest, largest), dtype=np.int64)
    way_out = np.zeros((len(kinds.kinds), largest), dtype=np.int64)
    for i, kind in enumerate(kinds.kinds):
        distance[i, : kind.gpus, : kind.gpus] = kind.distance
        way_out[i, : kind.gpus] = kind.way_out
    facts: dict[str, object] = {
        "nodes": size,
        "domains": len(topology.domain_uplink),
        "resources": problem.node_capacity.shape[1],
        "depth": depth,
        "kind": row(kinds.of_node),
        "gpus": row([len(gpus) for gpus in seen]),
        "first_gpu": row([gpus.start for gpus in seen]),
        "node_class": row(problem.node_class),
        "above": table([[*domains, *[-1] * (depth - len(domains))] for domains in lineage]),
        "uplink": row(topology.domain_uplink),
        "link_most": table(problem.link_mbps),
        "ones": row([gpus.bit_count() for gpus in range(256)]),
        "subsets": row(subsets),
        "subset_start": row(np.searchsorted(sizes, np.arange(TABLE_GPUS + 2))),
        "distance": block(distance),
        "way_out": table(way_out),
        "path_of_set": table([path_of_sets(kind) for kind in kinds.kinds]),
        "way_of_set": table(way_of_set),
        "part_weight": table(kinds.sets([[weight for weight, _ in kind.parts] for kind in kinds.kinds])),
        "levels": len(every),
        "level_weight": row([level.weight for level in every]),
        "level_domain": table(domain_of),
        "level_total": table([[*level.total, *[0] * (most - len(level.total))] for level in every]),
        "listed": table(kinds.sets([kind.listed for kind in kinds.kinds])),
    }
    sets = {
        "alike": [kind.alike for kind in kinds.kinds],
        "switch": [kind.switches for kind in kinds.kinds],
        "socket": [kind.sockets for kind in kinds.kinds],
        "part": [[gpus for _, gpus in kind.parts] for kind in kinds.kinds],
    }
    plural = {"alike": "alike", "switch": "switches", "socket": "sockets", "part": "parts"}
    for name, of_kind in sets.items():
        facts[f"{name}_count"] = row([len(one) for one in of_kind])
        facts[plural[name]] = table(kinds.sets(of_kind))
    return facts


def _options(problem: Problem, kinds: NodeKinds) -> dict[str, object]:
    """Return what the options ask for, and where they may run."""
    options = problem.options
    levels = sorted({split.level for splits in options.splits for split in splits})
    splits = [of_option[0] if of_option else None for of_option in options.splits]
    ok = problem.options.gpu_type_ok
    gpu_ok = [
        [mask_of(np.flatnonzero(allowed[problem.gpu_type[kind.slots]]).tolist()) for kind in kinds.kinds]
        for allowed in ok
    ]
    whole = (options.milli == 1000) & problem.shares_bind
    return {
        "value_of": row(options.value),
        "cost_of": row(options.cost_milli),
        "workers": row(options.workers),
        "bundles": row(options.bundles),
        "gpus_of": row(options.gpus),
        "milli": row(options.milli * problem.shares_bind),
        "memory": row(options.gpu_memory_mib),
        "idle_only": row(whole | (problem.jobs_per_gpu == 1)),
        "demand": table(options.demand),
        "network": row(options.network_mbps),
        "per_node": row(options.workers_per_node),
        "node_ok": table(options.node_class_ok),
        "gpu_ok": table(gpu_ok),
        "split_level": row([-1 if split is None else levels.index(split.level) for split in splits]),
        "split_domains": row([0 if split is None else split.domains for split in splits]),
        "split_workers": row([0 if split is None else split.workers or 0 for split in splits]),
        "split_domain": table([problem.split_domain[level] for level in levels]),
    }


def _jobs(
    problem: Problem, judged: Judged | None, may_change: frozenset[int], hidden: frozenset[int]
) -> dict[str, object]:
    """Return what the jobs are, and how many slots for entries each has; those that are ``hidden`` stay."""
    k, start, options = problem.job_class, problem.class_option_start, problem.options
    most = problem.most_of_class(options.bundles)[k]
    for job, held in problem.running.items():
        most[job] = max(int(most[job]), len(set(held.nodes)))
    first = np.cumsum(most) - most
    some = start[:-1] < start[1:]
    size = np.zeros(problem.num_classes, dtype=np.int64)
    size[some] = options.total_milli[start[:-1][some]]
    fixed = np.zeros(problem.num_jobs, dtype=np.int64)
    fixed[[*problem.running, *hidden]] = 1
    possible = np.asarray(options.node_class_ok.any(axis=1), dtype=np.int64)
    fixed[problem.most_of_class(possible)[k] == 0] = 1  # it fits nowhere
    fixed[list(may_change)] = 0
    traffic = np.array([int(communication.weight) for communication in problem.class_communication], dtype=np.int64)
    trials = 2 * (problem.num_nodes + 1)
    return {
        "jobs": problem.num_jobs,
        "first_option": row(start[:-1][k]),
        "end_option": row(start[1:][k]),
        "first_slot": row(first),
        "first_trial": int(most.sum()),
        "slot_job": row(np.append(np.repeat(np.arange(problem.num_jobs), most), np.full(trials, -1))),
        "profile": row(problem.class_profile[k]),
        "traffic": row(traffic[k]),
        "path_counts": row(np.ones(problem.num_jobs) if judged is None else ~judged.by_edges),
        "fixed": row(fixed),
        "size": row(size[k]),
        "next_member": row(_rings(problem)),
        "excess": block(problem.slowdown + problem.slowdown.transpose(0, 2, 1)),
        "most_jobs": UNLIMITED if problem.jobs_per_gpu is None else problem.jobs_per_gpu,
    }


def jobs_that_may_change(problem: Problem, allocation: Allocation) -> frozenset[int]:
    """Return the running jobs that the search may move or preempt: none that is shrunk in ``allocation``."""
    may = (problem.may_move | may_be_preempted(problem)) - problem.tree_of.keys()
    return frozenset(job for job in may if change_of(problem, job, allocation[job]) != "shrunk")


def may_be_preempted(problem: Problem) -> frozenset[int]:
    """Return the running jobs that the search may preempt: one without regard to others, or none."""
    return frozenset() if problem.policy.changes.last_submitted_first else problem.may_preempt


def _changes(problem: Problem, allocation: Allocation, may_change: frozenset[int]) -> dict[str, object]:
    """Return what running jobs cost that may be changed, how many of them may, and the value while none is placed."""
    prices, most, jobs = problem.policy.changes, change_limits(problem), sorted(may_change)
    others = Counter(change_of(problem, job, allocation[job]) for job in problem.changeable - may_change)
    home, out_price = np.full(problem.num_jobs, -1, dtype=np.int64), np.zeros(problem.num_jobs, dtype=np.int64)
    movable, away_price = np.zeros((2, problem.num_jobs), dtype=np.int64)
    home[jobs] = [problem.running[job].option for job in jobs]
    movable[jobs] = [job in problem.may_move for job in jobs]
    away_price[jobs] = prices.move_price
    may_end, never = may_be_preempted(problem), more_than_all(problem)
    out_price[jobs] = [prices.preemption_price if job in may_end else never for job in jobs]
    return {
        "home": row(home),
        "movable": row(movable),
        "away_price": row(away_price),
        "out_price": row(out_price),
        "away_most": most["moved"] - others["moved"],
        "out_most": most["preempted"] - others["preempted"],
        "out_count": len(jobs),
        "value": -int(out_price.sum()),
    }


def _rings(problem: Problem) -> IntArray:
    """Shape (J,): the next member of a job's tree, and after the last one the first; the job itself without a tree."""
    after = np.arange(problem.num_jobs)
    for tree in problem.trees:
        after[list(tree.members)] = np.roll(tree.members, -1)
    return after


def _zones(problem: Problem, judged: Judged | None) -> dict[str, object]:
    """Return where jobs find each other, and what a job being placed must not take."""
    zones = np.zeros((0, problem.num_nodes), np.int64) if judged is None else judged.zones
    return {"zones": len(zones), "zone": table(zones), "whole_node": 1 << MOST_GPUS}


def _search(problem: Problem, seed: int) -> dict[str, object]:
    """Return what the search needs beside: random numbers, and which nodes are near each other."""
    domain, size = problem.topology.node_domain, problem.num_nodes
    lowest = np.where(domain < 0, len(problem.topology.domain_uplink), domain)
    order = np.argsort(lowest, kind="stable")
    starts = np.searchsorted(lowest[order], np.arange(len(problem.topology.domain_uplink) + 2))
    steps = (np.arange(QUANTILES) + 0.5) / QUANTILES
    return {
        "words": row(np.random.SeedSequence(seed).generate_state(4)),
        **dict.fromkeys(("never", "most_cost"), MOST_SUM),
        "look": LOOK,
        "few": LOOK,
        "blinks": BLINKS,
        "quantiles": reals(-np.log(steps)),
        "lowest": row(lowest),
        "domain_start": row(starts),
        "domain_nodes": row(order),
        "candidates": row(np.append(np.arange(size), np.zeros(size, dtype=np.int64))),
        "key": reals(np.zeros(problem.num_jobs)),
        "scarcity": reals(_scarcity(problem)),
        "price": reals(np.zeros(problem.node_capacity.shape[1] + 1)),
    }


def _scarcity(problem: Problem) -> NDArray[np.float64]:
    """Shape (R + 1,): what jobs ask for in their first options over the square of what there is; GPU shares last."""
    options = problem.options
    job_class, start = problem.job_class, problem.class_option_start
    some = start[:-1] < start[1:]
    first = start[:-1][job_class[some[job_class]]]
    need = np.column_stack([options.demand * options.workers[:, None], options.total_milli])[first]
    room = np.maximum(np.append(problem.node_capacity.sum(axis=0), 1000 * problem.num_gpus), 1)
    scarcity: NDArray[np.float64] = need.sum(axis=0) / room.astype(np.float64) ** 2
    return scarcity


def _room(problem: Problem, idle: ProblemState, seen: Sequence[range]) -> dict[str, object]:
    """Return what is free before any job is placed: all but what jobs hold that the problem does not list."""
    free = [mask_of(np.flatnonzero(idle.gpu_jobs[gpus.start : gpus.stop] == 0).tolist()) for gpus in seen]
    every = [left for level, left in zip(problem.levels, idle.level_free, strict=True) if level.name not in INSIDE]
    return {
        "node_free": table(idle.node_free),
        "gpu_free": row(idle.gpu_free_milli),
        "gpu_memory": row(idle.gpu_free_memory),
        "gpu_jobs": row(idle.gpu_jobs),
        "idle": row(free),
        "idle_count": row([gpus.bit_count() for gpus in free]),
        "level_free": table(_filled(every)),
        "link_load": table(idle.link_load),
    }


def _filled(rows: Iterable[IntArray]) -> list[list[int]]:
    """Return rows of numbers, each filled up with zeros to the length of the longest."""
    lists = [one.tolist() for one in rows]
    longest = max(map(len, lists), default=0)
    return [[*one, *[0] * (longest - len(one))] for one in lists]
