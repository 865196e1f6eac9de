"""Nodes emptied by moves: fronts worked out by hand, orders that hold, bounds that are none too high."""

import itertools
import threading
from typing import Any

import pytest
from hypothesis import given, settings

from placeopt import BadInput
from placeopt.build import instance, job, node, running
from placeopt.model import Domain, Group, Instance
from placeopt.whatif import Defrag, Limits, defrag
from strategies import Choice, choices

SHORT = Limits(time_limit_s=10.0, threads=1)


def held(*on_nodes: tuple[int, ...], movable: bool = True, per_rack: int = 2) -> Instance:
    """Nodes of four GPUs in racks; on node i a running job of each of ``on_nodes[i]`` GPUs, named ``j<i>.<n>``."""
    jobs, runs = [], []
    for i, sizes in enumerate(on_nodes):
        first = 0
        for n, size in enumerate(sizes):
            one = job(f"j{i}.{n}", gpus=size)
            jobs.append(one)
            runs.append(running(one, [(f"n{i}", range(first, first + size))], movable=movable))
            first += size
    nodes = [node(f"n{i}", domain=f"rack-{i // per_rack}") for i in range(len(on_nodes))]
    domains = [Domain(id=f"rack-{i}") for i in range(-(-len(on_nodes) // per_rack))]
    return instance(nodes, jobs, domains=domains, running=runs)


def front(found: Defrag) -> list[tuple[int, int, int]]:
    return [(point.freed, len(point.moves), point.at_least) for point in found.front]


FIVE = held((1,), (1,), (1,), (1,), (1,))
FRONTS: list[tuple[Instance, dict[str, Any], list[tuple[int, int, int]], int]] = [
    # one move empties n0, and n1 or n2 could follow, the other being filled; six GPUs need two nodes of four
    (held((1,), (1, 1), (2,), ()), {}, [(2, 1, 1)], 2),
    # all five jobs fit on two nodes, so three are emptied, a move each
    (FIVE, {}, [(1, 1, 1), (2, 2, 2), (3, 3, 3)], 3),
    (FIVE, {"most_moves": 2}, [(1, 1, 1), (2, 2, 2)], 3),
    # racks are emptied whole: 2 + 1 do not fit into 1 + 1 free; beside a free node they do
    (held((2,), (1,), (3,), (3,)), {"level": "rack"}, [], 0),
    (held((2,), (1,), (3,), ()), {"level": "rack"}, [(1, 1, 1)], 1),
]


@pytest.mark.parametrize(("base", "more", "points", "most"), FRONTS)
def test_fronts_by_hand(base: Instance, more: dict[str, Any], points: list[tuple[int, int, int]], most: int) -> None:
    """Domains free after so many moves, of which at least so many are needed."""
    found = defrag(base, limits=SHORT, **more)
    assert (front(found), found.most, found.stuck) == (points, most, 0)


def test_no_move_goes_to_what_is_free() -> None:
    """The job alone on its node moves; n3 is empty already."""
    found = defrag(held((1,), (1, 1), (2,), ()), limits=SHORT)
    assert (found.domains, found.free_before) == (4, 1)
    [move] = found.front[0].moves
    assert move.from_nodes in (("n0",), ("n2",))
    assert move.to_nodes != ("n3",)


def test_jobs_that_must_stay_are_not_moved() -> None:
    """Jobs that are exempt, and those that are not marked as movable unless all are."""
    base = held((1,), (1,), (3,))
    assert defrag(base, exempt=("j0.0", "j1.0", "j2.0"), limits=SHORT).stuck == 3
    assert {move.job for point in defrag(base, exempt=("j0.0",), limits=SHORT).front for move in point.moves} == {
        "j1.0"
    }
    fixed = held((1,), (1,), (3,), movable=False)
    assert defrag(fixed, limits=SHORT).stuck == 3
    assert defrag(fixed, everyone=True, limits=SHORT).front
    with pytest.raises(BadInput, match="job 'x' is not running"):
        defrag(base, exempt=("x",))


def test_jobs_with_groups_stay() -> None:
    """A leader and one of its two workers run on n2; the jobs of the other nodes move there."""
    base = held((1,), (1,), ())
    team = job("team", groups=(Group(id="lead"), Group(id="work", workers=2)))
    part = running(team, [("n2", (0,), "lead"), ("n2", (1,), "work")], movable=True)
    base = base.model_copy(update={"jobs": (*base.jobs, team), "running": (*base.running, part)})
    found = defrag(base, everyone=True, limits=SHORT)
    assert (front(found), found.stuck) == ([(1, 1, 1), (2, 2, 2)], 1)


def test_an_interrupted_search_keeps_its_bounds() -> None:
    """No front yet, but what is proven without one."""
    event = threading.Event()
    event.set()
    found = defrag(held((1,), (1,)), limits=SHORT, cancel=event)
    assert (found.front, found.most) == ((), 1)


@settings(max_examples=6)
@given(choices)
def test_random_clusters_against_all_ways(choice: Choice) -> None:
    """
    Jobs of whole GPUs on up to five nodes, every way to lay them tried.

    The true most is at most ``most``, the front reaches no further, and no point takes fewer moves than are needed.
    """
    rows = [tuple(choice.pick((1, 1, 2, 3)) for _ in range(choice.number(0, 2))) for _ in range(choice.number(2, 4))]
    rows = [row if sum(row) <= 4 else row[:1] for row in rows]
    base = held(*rows)
    found = defrag(base, limits=SHORT)
    jobs = [(i, size) for i, row in enumerate(rows) for size in row]
    fewest: dict[int, int] = {}
    for places in itertools.product(range(len(rows)), repeat=len(jobs)):
        load = [0] * len(rows)
        for (_, size), place in zip(jobs, places, strict=True):
            load[place] += size
        if max(load) <= 4:
            moves = sum(place != home for (home, _), place in zip(jobs, places, strict=True))
            empty = load.count(0)
            fewest[empty] = min(moves, fewest.get(empty, moves))
    assert max(fewest) <= found.most
    for point in found.front:
        needed = min(moves for empty, moves in fewest.items() if empty >= point.freed)
        assert point.at_least <= needed <= len(point.moves)


def test_moves_stand_in_an_order_that_holds() -> None:
    """One after the other on the GPUs that are free at the time; at the end the referee has no objection."""
    base = held((1, 1), (2,), (1,), (3,), (1,))
    point = defrag(base, limits=SHORT).front[-1]
    assert point.ordered
    free = {f"n{i}": 4 - used for i, used in enumerate((2, 2, 1, 3, 1))}
    size = {one.id: one.options[0].demand.gpus for one in base.jobs}
    for move in point.moves:
        [source], [target] = move.from_nodes, move.to_nodes
        free[source] += size[move.job]
        free[target] -= size[move.job]
        assert min(free.values()) >= 0
    assert sum(left == 4 for left in free.values()) == point.freed
