"""What has to hold of the state of the local search after every step, by the definitions in `placeopt.terms`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from random import Random
from typing import TypeVar

import numpy as np

from helpers.brute_force import all_places
from helpers.plan_records import plan_of
from placeopt import search, violations
from placeopt.problem import Allocation, IntArray, Placement, Problem, change_of
from placeopt.problem import State as ProblemState
from placeopt.search import LocalSearch
from placeopt.terms import cost, value, weighted_costs
from placeopt.terms.rules import fits

T = TypeVar("T")
PLACES = 1000
"""First ones of a job, of which some are tried: those that an empty cluster allows are more likely."""


class Checks:
    """A round whose state in the search is compared with what it must be: all numbers, and some placements a step."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem, self.weighted, self._seed = problem, weighted_costs(problem), seed
        self.before = tuple(problem.running.get(job) for job in range(problem.num_jobs))
        rng = Random(seed)
        waiting = [job for job in range(problem.num_jobs) if job not in problem.running]
        self._places: list[tuple[int, list[Placement]]] = []
        start = ProblemState(problem)
        for job in waiting:
            some = sampled(rng, list(islice(all_places(problem, job), PLACES)), 60)
            some += 4 * [way for way in some if fits(start, job, way)]
            self._places += [(job, some)] if some else []
        self.begin()

    def begin(self) -> None:
        """Try the same placements as in the first run."""
        self._rng = Random(self._seed)

    def faults(self, taken: LocalSearch) -> Iterator[str]:
        """Yield what is not as it must be after a step."""
        s, problem = taken.state, self.problem
        allocation = standing(s, problem, self.before)
        true = ProblemState(problem, allocation)
        yield from differing(s, problem, true)
        if s.value != value(problem, allocation):
            yield "value"
        if s.cost != cost(problem, allocation, self.weighted):
            yield "cost"
        may = [job for job in problem.changeable if s.home[job] >= 0]
        changes = Counter(change_of(problem, job, allocation[job]) for job in may)
        if (s.away_count, s.out_count) != (changes["moved"], changes["preempted"]):
            yield "changes of running jobs"
        best = taken.allocation()
        if (taken.value, taken.cost) != (value(problem, best), cost(problem, best, self.weighted)):
            yield "best plan"
        yield from lists_broken(s)
        yield from self._wrong_limits(s, true)

    def lawless(self, taken: LocalSearch) -> Iterator[str]:
        """Yield what the referee has against the best plan."""
        yield from map(str, violations(self.problem.given, plan_of(self.problem, taken.allocation())))

    def _wrong_limits(self, s: search.State, true: ProblemState) -> Iterator[str]:
        """Compare what the limits of the search say of some placements with what the rules say."""
        for job, places in sampled(self._rng, self._places, 3):
            for way in sampled(self._rng, places, 6) if s.option[job] < 0 and not s.fixed[job] else ():
                one = len(set(way.nodes)) == 1 or (s.split_level[way.option] < 0 and s.amounts == s.amounts_anywhere)
                if one and may_take(s, self.problem, job, way) != fits(true, job, way):
                    yield f"limits for job {job} at {way}"


def standing(s: search.State, problem: Problem, before: Allocation) -> Allocation:
    """Return the placements as they stand; fixed jobs as in ``before``."""
    return tuple(held if s.fixed[job] else search.placement_of(s, problem, job) for job, held in enumerate(before))


def sampled(rng: Random, among: Sequence[T], most: int) -> list[T]:
    """Return at most so many of ``among``."""
    return rng.sample(among, min(len(among), most))


def differing(s: search.State, problem: Problem, true: ProblemState) -> Iterator[str]:
    """Yield the names of what is free, or loaded, in the search other than in truth."""
    above = [i for i, level in enumerate(problem.levels) if level.name not in ("node", "socket", "numa", "switch")]
    idle = [true.gpu_jobs[a:b] == 0 for a, b in zip(problem.first_gpu, problem.first_gpu[1:], strict=False)]
    pairs: list[tuple[str, object, IntArray]] = [
        ("node_free", s.node_free, true.node_free),
        *([("gpu_free", s.gpu_free, true.gpu_free_milli)] if problem.shares_bind else []),
        ("gpu_memory", s.gpu_memory, true.gpu_free_memory),
        ("gpu_jobs", s.gpu_jobs, true.gpu_jobs),
        ("link_load", s.link_load, true.link_load),
        ("idle", s.idle, np.array([sum(1 << int(g) for g in np.flatnonzero(one)) for one in idle])),
        ("idle_count", s.idle_count, np.array([int(one.sum()) for one in idle])),
        ("account_taken", s.account_taken, np.array(search.account_facts(problem, true)["account_taken"])),
        ("in_domain", s.in_domain, np.zeros(s.domains)),
        ("touched", s.touched, np.zeros(s.jobs)),
        *((f"level_free {i}", np.asarray(s.level_free)[i], true.level_free[one]) for i, one in enumerate(above)),
    ]
    for name, mine, expected in pairs:
        corner = tuple(slice(size) for size in expected.shape)
        if not np.array_equal(np.asarray(mine)[corner], expected):
            yield name


def lists_broken(s: search.State) -> Iterator[str]:
    """Yield which lists do not hold what is placed, and where."""
    free = [job for job in range(s.jobs) if not s.fixed[job]]
    for name, row, size, members in (
        ("placed", s.placed, s.placed_count, [job for job in free if s.option[job] >= 0]),
        ("waiting", s.waiting, s.waiting_count, [job for job in free if s.option[job] < 0]),
    ):
        listed = [row[i] for i in range(size)]
        if sorted(listed) != members or [s.position[job] for job in listed] != list(range(size)):
            yield name
    there: dict[int, list[int]] = {node: [] for node in range(s.nodes)}
    for job in range(s.jobs):
        for slot in range(s.first_slot[job], s.first_slot[job] + s.entries[job] if s.option[job] >= 0 else 0):
            there[s.slot_node[slot]].append(slot)
    for node, slots in there.items():
        found, slot, before = list[int](), s.first_of_node[node], -1
        while slot >= 0 and len(found) <= len(slots) and s.previous_slot[slot] == before:
            found.append(slot)
            slot, before = s.next_slot[slot], slot
        if slot >= 0 or sorted(found) != slots:
            yield f"entries on node {node}"


def may_take(s: search.State, problem: Problem, job: int, way: Placement) -> bool:
    """Return whether the limits of the search allow a placement: on one node, or in an option without splits."""
    option, first = way.option, s.first_trial
    number = search.write(s, problem, first, way)
    if number > s.bundles[option]:
        return False
    if not search.have_room(s, option, 0, len(way.nodes), 0, s.amounts_anywhere):
        return False
    for slot in range(first, first + number):
        node, here = s.slot_node[slot], s.slot_workers[slot]
        if number == 1 and not search.may_hold(s, node, option):
            return False
        if here > s.per_node[option] or not s.node_ok[option, s.node_class[node]]:
            return False
        if not search.have_room(s, option, node, here, s.amounts_anywhere, s.amounts):
            return False
        if not search.has_room(s, node, option, here) or s.slot_gpus[slot] & ~search.open_gpus(s, node, option):
            return False
    fits = search.load_links(s, option, first, number, 1)
    search.load_links(s, option, first, number, -1)
    return fits


Insert = Callable[[search.State, int, int, int], bool]


def with_estimates(insert: Insert) -> Insert:
    """Return what inserts a job, and raises `AssertionError` where that costs other than was said and is exact."""

    def checked(s: search.State, job: int, first: int, number: int) -> bool:
        before = s.cost
        placed = insert(s, job, first, number)
        if placed and s.home[job] < 0 and is_exact(s, job):  # what returns home is not compared with anything
            assert s.cost - before == s.best_cost
        return placed

    return checked


def is_exact(s: search.State, job: int) -> bool:
    """Return whether what the search says that a job will cost is exact."""
    ways = ({s.way_out[s.kind[node], g] for g in range(s.gpus[node])} for node in range(s.nodes))
    apart = (s.excess_price == 0 or s.profile[job] < 0) and (s.gap_price == 0 or s.levels == 0)
    return s.bundles[s.best_option] == 1 or (apart and all(len(of_node) < 2 for of_node in ways))
