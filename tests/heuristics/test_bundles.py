"""Bundles of jobs that share a GPU, onto nodes: balanced, and mended by exchange."""

import random
from dataclasses import dataclass

import numpy as np
import pytest

from placeopt import build
from placeopt.heuristics.bundles import BundleQuota, _Nodes, _Options, realise
from placeopt.heuristics.exchange import BundleItem, exchange
from placeopt.problem import Problem, State, compile_problem


@dataclass(eq=False)
class Piece:
    """A bundle of one GPU that needs so much of one resource."""

    need: list[int]
    worth: int = 1
    gpus: int = 1
    share: int = 1000
    allowed: frozenset[int] = frozenset({0})


def halves_and_quarters(nodes: int = 2, cpus: tuple[int, ...] = (9, 7, 5, 3)) -> Problem:
    """Compile nodes of 2 GPUs and 16 cores, and a job of half a GPU for each number of cores."""
    jobs = [
        build.job(f"j{i}", gpu_milli=500, gpu_memory_mib=0, cpu_millicores=1000 * cpu, memory_mib=0)
        for i, cpu in enumerate(cpus)
    ]
    machine = build.machine(gpus=2, cpu_millicores=16_000)
    return compile_problem(build.instance(nodes, jobs, machines=[machine]))


class TestRealise:
    def test_heavy_jobs_share_gpus_with_light_ones(self) -> None:
        """Two bundles of two halves: 9 goes with 3 and 7 with 5, and each bundle to a node of its own."""
        problem = halves_and_quarters()
        quota = BundleQuota(0, tuple((o, (o,)) for o in range(4)), ((2, 1000, (500, 500)),))
        placed, short = realise(State(problem), [quota])
        gpu = {job: placement.gpus for job, placement in placed}
        assert not short
        assert gpu[0] == gpu[3]
        assert gpu[1] == gpu[2]
        assert {placement.nodes for _, placement in placed} == {(0,), (1,)}

    def test_jobs_that_fit_no_node_are_counted(self) -> None:
        """One node of 16 cores: of bundles of 9 + 3 and 7 + 5 cores the heavier is placed, the other's two jobs not."""
        problem = halves_and_quarters(nodes=1)
        quota = BundleQuota(0, tuple((o, (o,)) for o in range(4)), ((2, 1000, (500, 500)),))
        placed, short = realise(State(problem), [quota])
        assert len(placed) == 2
        assert short.total() == 2
        assert all(node_class == 0 for node_class, _ in short)

    def test_a_job_of_two_gpus_gets_both(self) -> None:
        """Whole GPUs are taken before bundles, and from one node."""
        jobs = [build.job("two", gpus=2), build.job("one")]
        problem = compile_problem(build.instance(2, jobs, machines=[build.machine(gpus=2)]))
        two, one = (problem.options_of(job)[0] for job in (0, 1))
        placed, _ = realise(State(problem), [BundleQuota(0, ((one, (1,)), (two, (0,))), ((3, 1000, (1000,)),))])
        at = dict(placed)
        assert len(at[0].gpus) == 2
        assert at[0].nodes != at[1].nodes


class TestNodes:
    @pytest.mark.parametrize("seed", range(20))
    def test_an_item_goes_to_the_node_with_most_left_per_idle_gpu_of_all_that_fit(self, seed: int) -> None:
        """As a look at every node would choose, on nodes whose GPUs have three free shares, until nothing fits."""
        rng = random.Random(seed)
        problem = halves_and_quarters(nodes=6)
        nodes = _Nodes(State(problem), np.arange(6), _Options(problem))
        for n in range(6):
            nodes.idle[n].clear()
            nodes.idle[n].update({share: rng.randrange(4) for share in (250, 500, 1000)})
            nodes._num_idle[n] = sum(nodes.idle[n].values())
            nodes._rank[n] = -nodes._room(n)
        for _ in range(60):
            gpus = rng.choice((0, 1, 1, 1, 2))
            need = [rng.randrange(0, 6_000, 500)]
            item = BundleItem(gpus, rng.choice((250, 500, 1000)), [], need, 0.0, 0, 0, frozenset({0}))
            fits = [
                (-nodes._room(n), n)
                for n in range(6)
                if nodes.free[n][0] >= need[0] and (not gpus or nodes.idle[n].get(item.share, 0) >= gpus)
            ]
            before = [len(held) for held in nodes.held]
            assert nodes.place(item) == bool(fits)
            changed = [n for n in range(6) if len(nodes.held[n]) > before[n]]
            assert changed == [n for _, n in sorted(fits)[:1]]


class TestExchange:
    def test_a_heavy_bundle_makes_room(self) -> None:
        """Node 0 holds 5 + 5 of 11, node 1 holds 6 of 9: a 4 fits once the 6 and a 5 have changed places."""
        held = [[Piece([5]), Piece([5])], [Piece([6])]]
        free, idle = [[1], [3]], [{1000: 0}, {1000: 1}]
        assert exchange(np.zeros(len(free), dtype=np.int64), free, idle, held, [Piece([4])], [1.0]) == []
        assert sorted(piece.need[0] for piece in held[0]) == [5, 6]
        assert sorted(piece.need[0] for piece in held[1]) == [4, 5]
        assert free == [[0], [0]]
        assert idle[1] == {1000: 0}

    def test_the_bundle_worth_least_has_to_go(self) -> None:
        """There is room for one of two: the newcomer is worth more."""
        old, new = Piece([5]), Piece([5], worth=9)
        held, free, idle = [[old]], [[4]], [{1000: 1}]
        assert exchange(np.zeros(len(free), dtype=np.int64), free, idle, held, [new], [1.0]) == [old]
        assert held == [[new]]
        assert free == [[4]]
        assert idle == [{1000: 1}]

    def test_who_finds_no_room_goes_again(self) -> None:
        """The newcomer, worth nothing, fits nowhere: it goes, the others stay, and no node is too full."""
        held = [[Piece([5]), Piece([5])], [Piece([6])]]
        free, idle = [[1], [2]], [{1000: 0}, {1000: 1}]
        new = Piece([9], worth=0)
        assert exchange(np.zeros(len(free), dtype=np.int64), free, idle, held, [new], [1.0]) == [new]
        assert sorted(piece.need[0] for pieces in held for piece in pieces) == [5, 5, 6]
        for capacity, (left,), pieces in zip((11, 8), free, held, strict=True):
            assert left == capacity - sum(piece.need[0] for piece in pieces) >= 0
        assert idle == [{1000: 0}, {1000: 1}]

    def test_items_without_gpus_move(self) -> None:
        """Node 0 is too full by the newcomer until the item without a GPU goes to node 1, which has none idle."""
        loose = Piece([4])
        loose.gpus = 0
        held, free, idle = [[loose, Piece([3])], [Piece([5])]], [[1], [4]], [{1000: 1}, {1000: 0}]
        assert exchange(np.zeros(len(free), dtype=np.int64), free, idle, held, [Piece([5])], [1.0]) == []
        assert free == [[0], [0]]
        assert loose in held[1]

    def test_an_item_without_gpus_goes_to_the_best_of_several_nodes(self) -> None:
        """As above, but with two other nodes to go to: node 2 has room for all of it, node 1 for half."""
        loose = Piece([4])
        loose.gpus = 0
        held = [[loose, Piece([3])], [Piece([5])], [Piece([5])]]
        free, idle = [[1], [2], [4]], [{1000: 1}, {1000: 0}, {1000: 0}]
        assert exchange(np.zeros(len(free), dtype=np.int64), free, idle, held, [Piece([5])], [1.0]) == []
        assert free == [[0], [2], [0]]
        assert loose in held[2]

    def test_no_node_ends_too_full(self) -> None:
        """Of random items none is lost or doubled, no node holds more than it has, and GPUs are counted right."""
        random = np.random.default_rng(5)
        for _ in range(30):
            capacity = random.integers(10, 20, size=(6, 2))
            held: list[list[BundleItem]] = [[] for _ in capacity]
            free, idle = capacity.tolist(), [{1000: 4} for _ in capacity]
            new: list[BundleItem] = [Piece(random.integers(0, 8, 2).tolist(), worth=int(w)) for w in range(24)]
            out = exchange(np.zeros(6, dtype=np.int64), free, idle, held, new, [5.0, 4.0])
            assert sorted(map(id, new)) == sorted(id(item) for items in (*held, out) for item in items)
            for n, items in enumerate(held):
                used = np.sum([item.need for item in items], axis=0) if items else np.zeros(2)
                assert (capacity[n] - used).tolist() == free[n]
                assert min(free[n]) >= 0
                assert idle[n][1000] == 4 - len(items) >= 0

    def test_bundles_keep_to_classes_that_take_them(self) -> None:
        """As above, but the 6 may not leave its class of nodes: the 4 finds no node."""
        held = [[Piece([5]), Piece([5])], [Piece([6], allowed=frozenset({1}))]]
        free, idle = [[1], [3]], [{1000: 0}, {1000: 1}]
        new = Piece([4], worth=0, allowed=frozenset({0, 1}))
        assert exchange(np.array([0, 1]), free, idle, held, [new], [1.0]) == [new]

    def test_nothing_is_put_anywhere_once_time_is_over(self) -> None:
        """Each item is a pass over all nodes: 10,000 of them took a second after the deadline."""
        held: list[list[BundleItem]] = [[]]
        free, idle, new = [[9]], [{1000: 2}], [Piece([1]), Piece([2])]
        assert exchange(np.zeros(1, dtype=np.int64), free, idle, held, new, [1.0], lambda: True) == new
        assert (free, idle, held) == ([[9]], [{1000: 2}], [[]])

    def test_time_may_end_while_items_are_put(self) -> None:
        """The second of two items is left where the clock ends between them."""
        held: list[list[BundleItem]] = [[]]
        free, idle, new = [[9]], [{1000: 2}], [Piece([1]), Piece([2])]
        answers = iter([False])
        assert (
            exchange(np.zeros(1, dtype=np.int64), free, idle, held, new, [1.0], lambda: next(answers, True)) == new[1:]
        )
        assert (free, idle, held) == ([[8]], [{1000: 1}], [new[:1]])

    def test_a_node_that_running_jobs_overload_takes_what_adds_nothing(self) -> None:
        """
        Node 0 lacks 2 of the first resource before the call, which no exchange can mend: there is nothing on it.

        What needs some of that resource stays off it, what needs none may go there: limits bind who adds to them.
        """
        for need, on_it in (([0, 1], True), ([1, 0], False)):
            free, idle, new = [[-2, 4], [0, 0]], [{1000: 1}, {1000: 1}], Piece(need)
            held: list[list[BundleItem]] = [[], []]
            out = exchange(np.zeros(2, dtype=np.int64), free, idle, held, [new], [1.0, 1.0])
            assert (out, held[0]) == (([], [new]) if on_it else ([new], []))
            assert idle == [{1000: 1 - on_it}, {1000: 1}]

    def test_an_overloaded_node_gives_up_none_of_its_items_for_what_ran_before(self) -> None:
        """What fits beside the running jobs stays; only what is put there on top of it goes."""
        stays = Piece([0, 3])
        free, idle, held = [[-2, 1]], [{1000: 1}], [[stays]]
        new = Piece([0, 2], worth=5)
        assert exchange(np.zeros(1, dtype=np.int64), free, idle, held, [new], [1.0, 1.0]) == [stays]
        free, idle, held = [[-2, 1]], [{1000: 1}], [[stays]]
        assert exchange(np.zeros(1, dtype=np.int64), free, idle, held, [Piece([0, 1])], [1.0, 1.0]) == []
