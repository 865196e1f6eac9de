"""The accounts of a round: trees of queues, of domains below the cluster, and nodes beside holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from placeopt.problem import UNLIMITED, IntArray, Problem
from placeopt.problem import State as ProblemState
from placeopt.problem.places import Place
from placeopt.search.tables import row, table

Amount = tuple[IntArray, IntArray]
"""What a worker takes in each option, (O,), and accounts: one an option, or one a node; -1 without."""


@dataclass(eq=False)
class Accounts:
    """Accounts under construction: of each the most that may be taken, what is taken, what it keeps, the one above."""

    most: list[int] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)
    above: list[int] = field(default_factory=list)

    def open(self, most: int, taken: int, kept: int = 0, above: int = -1) -> int:
        """Open an account; return its number."""
        for of_all, own in ((self.most, most), (self.taken, taken), (self.kept, kept), (self.above, above)):
            of_all.append(own)
        return len(self.most) - 1


def account_facts(problem: Problem, idle: ProblemState) -> dict[str, object]:
    """Return the accounts, with what ``idle`` has taken, and of which a worker takes how much in each option."""
    accounts = Accounts()
    by_option = list(_queue_amounts(problem, idle, accounts))
    by_node = [*_place_amounts(problem, idle, accounts), *_hold_amounts(problem, idle, accounts)]
    takes = [taken for taken, _ in (*by_option, *by_node)]
    return {
        "amounts": len(takes),
        "amounts_anywhere": len(by_option),
        "takes": table(np.array(takes, dtype=np.int64).reshape(len(takes), len(problem.options)).T),
        "account_of_option": table(_columns(len(problem.options), (of for _, of in by_option))),
        "account_of_node": table(_columns(problem.num_nodes, (of for _, of in by_node))),
        "account_most": row(accounts.most),
        "account_taken": row(accounts.taken),
        "account_kept": row(accounts.kept),
        "account_above": row(accounts.above),
    }


def _columns(length: int, of_amounts: Iterable[IntArray]) -> IntArray:
    """Shape (length, n): one column for each of n amounts."""
    columns = list(of_amounts)
    return np.array(columns, dtype=np.int64).reshape(len(columns), length).T


def _queue_amounts(problem: Problem, idle: ProblemState, accounts: Accounts) -> Iterator[Amount]:
    """Yield of each amount that some queue limits what workers take, and the account of each option."""
    tree, options = problem.queue_tree, problem.options
    queue = problem.class_queue[options.job_class]
    for r in np.flatnonzero((tree.ceilings < UNLIMITED).any(axis=0)).tolist():
        number = np.full(len(tree.above) + 1, -1, dtype=np.int64)  # the last one is that of no queue
        for q in sorted(range(len(tree.above)), key=lambda q: len(tree.above[q])):
            above = number[tree.above[q][1]] if len(tree.above[q]) > 1 else -1
            most, taken, kept = (int(of[q, r]) for of in (tree.ceilings, idle.queue_used, tree.kept))
            number[q] = accounts.open(most, taken, kept, int(above))
        yield problem.queue_use[:, r] // options.workers, number[queue]


def _place_amounts(problem: Problem, idle: ProblemState, accounts: Accounts) -> Iterator[Amount]:
    """Yield of each resource that domains or the cluster limit what workers take, and the account of each node."""
    places = [(place, place.room(idle)) for place in problem.places if not place.holds]
    places.sort(key=lambda one: -len(one[0].nodes))  # those outside first
    for r, demand in enumerate(problem.options.demand.T):
        at = np.full(problem.num_nodes, -1, dtype=np.int64)
        for place, room in places:
            if place.most[r] < UNLIMITED:
                at[place.nodes] = accounts.open(*_state(place, room, r), above=int(at[place.nodes[0]]))
        if at.max(initial=-1) >= 0:
            yield demand, at


def _hold_amounts(problem: Problem, idle: ProblemState, accounts: Accounts) -> Iterator[Amount]:
    """Yield of each resource beside holds what workers that count take, and the account of each node."""
    alike: dict[tuple[bytes, int], list[Place]] = {}  # for the same jobs, and one a node
    number = Counter[tuple[bytes, int]]()
    for place in problem.places:
        if place.holds:
            counted = place.counted.tobytes()
            alike.setdefault((counted, number[counted, int(place.nodes[0])]), []).append(place)
            number[counted, int(place.nodes[0])] += 1
    for places in alike.values():
        counts = places[0].counted[problem.options.job_class]
        for r, demand in enumerate(problem.options.demand.T):
            at = np.full(problem.num_nodes, -1, dtype=np.int64)
            for place in places:
                if place.most[r] < UNLIMITED:
                    at[place.nodes] = accounts.open(*_state(place, place.room(idle), r))
            if at.max(initial=-1) >= 0:
                yield demand * counts, at


def _state(place: Place, room: IntArray, r: int) -> tuple[int, int]:
    """Return the most of a resource that may be taken in a place, and how much is."""
    return int(place.most[r]), int(place.most[r] - room[r])
