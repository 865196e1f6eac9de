"""What a placement does to a running job: which kind of change, its price, and whether it is allowed."""

from dataclasses import replace
from typing import Any

import pytest

from placeopt.build import instance, job, machine, option, running
from placeopt.model import Changes, Policy, Queue
from placeopt.problem import Placement, Problem, compile_problem
from placeopt.problem.changes import (
    change_limits,
    change_of,
    is_part,
    keeps_limits,
    may_become,
    open_state,
    part_of,
    price_of,
    restarted,
    same_place,
    submission_order,
)

PRICES = {"move_price": 7, "preemption_price": 11, "shrink_price_per_worker": 13}
MAY = {"movable": True, "shrinkable": True, "preemptible": True}
HOME = (("n0", [0, 1]), ("n0", [2, 3]), ("n1", [0, 1]), ("n1", [2, 3]))


def elastic(**changes: Any) -> Problem:
    """
    Job 0: one to four workers of two GPUs, four of them running on nodes 0 and 1; a second option of the same form.

    Rows 0 to 3 are its first option with 1 to 4 workers, row 4 the other with 2.
    """
    shapes = (option("e", workers=4, workers_min=1, gpus=2), option("f", workers=2, gpus=2))
    a = job("a", options=shapes)
    policy = Policy(changes=Changes(**{"moves_max": 1, "shrinks_max": 1, "preemptions_max": 1, **PRICES, **changes}))
    runs = running(a, HOME, **MAY)
    return compile_problem(instance(3, [a, job("w")], running=[runs], policy=policy))


def shrunk(*ranks: int) -> Placement:
    """The workers of these ranks, where they are: worker r holds GPUs 2r and 2r + 1."""
    return Placement(len(ranks) - 1, tuple(r // 2 for r in ranks), tuple(g for r in ranks for g in (2 * r, 2 * r + 1)))


ELSEWHERE = Placement(1, (2, 2), (8, 9, 10, 11))


class TestKinds:
    def test_kept(self) -> None:
        """As it runs, and with the GPUs of a worker in another order; not with those of two workers mixed."""
        problem = elastic()
        home = problem.running[0]
        turned = replace(home, gpus=(1, 0, *home.gpus[2:]))
        mixed = replace(home, gpus=(0, 2, 1, 3, *home.gpus[4:]))
        assert [change_of(problem, 0, one) for one in (home, replace(home), turned)] == ["kept"] * 3
        assert change_of(problem, 0, mixed) == "moved"
        assert same_place(problem, home, turned)
        assert not same_place(problem, home, mixed)
        assert not same_place(problem, home, replace(home, option=2))

    @pytest.mark.parametrize("ranks", [(0,), (0, 1), (0, 3), (0, 1, 2), (0, 2, 3)])
    def test_shrunk(self, ranks: tuple[int, ...]) -> None:
        """The chief and any others, in their order; marked as a restart it is a move."""
        problem = elastic()
        assert change_of(problem, 0, shrunk(*ranks)) == "shrunk"
        assert is_part(problem, shrunk(*ranks), problem.running[0])
        assert change_of(problem, 0, replace(shrunk(*ranks), restarts=True)) == "moved"

    @pytest.mark.parametrize("ranks", [(1,), (1, 2), (0, 2, 1), (0, 0), (0, 3, 3)])
    def test_no_part(self, ranks: tuple[int, ...]) -> None:
        """Without the chief, out of order, twice the same."""
        problem = elastic()
        assert change_of(problem, 0, shrunk(*ranks)) == "moved"
        assert not is_part(problem, shrunk(*ranks), problem.running[0])

    def test_the_whole_is_no_part_of_itself_nor_is_another_option(self) -> None:
        problem = elastic()
        home = problem.running[0]
        assert not is_part(problem, home, home)
        other = replace(shrunk(0, 1), option=4)
        assert not is_part(problem, other, home)
        assert change_of(problem, 0, other) == "moved"

    def test_moved_and_preempted(self) -> None:
        problem = elastic()
        assert change_of(problem, 0, ELSEWHERE) == "moved"
        assert change_of(problem, 0, None) == "preempted"


class TestPrice:
    def test_by_kind(self) -> None:
        """Two workers taken of four are 2 x 13, three 3 x 13."""
        problem = elastic()
        prices = {
            0: problem.running[0],
            7: ELSEWHERE,
            11: None,
            26: shrunk(0, 2),
            39: shrunk(0),
        }
        assert {price: price_of(problem, 0, placement) for price, placement in prices.items()} == {p: p for p in prices}
        assert price_of(problem, 0, replace(shrunk(0, 2), restarts=True)) == 7


class TestAllowed:
    @pytest.mark.parametrize(
        ("field", "placement"), [("moves_max", ELSEWHERE), ("shrinks_max", shrunk(0, 1)), ("preemptions_max", None)]
    )
    def test_each_kind_by_its_own_limit(self, field: str, placement: Placement | None) -> None:
        """With a limit of 0 that kind is refused, the others are not."""
        every = {"moves_max": ELSEWHERE, "shrinks_max": shrunk(0, 1), "preemptions_max": None}
        problem = elastic(**{field: 0})
        assert {name for name, one in every.items() if not may_become(problem, 0, one)} == {field}
        assert may_become(problem, 0, problem.running[0])
        for name, one in every.items():
            assert keeps_limits(problem, (one, None)) == (name != field)
        assert keeps_limits(problem, (problem.running[0], None))

    @pytest.mark.parametrize("flag", MAY)
    def test_each_kind_by_the_jobs_own_flag(self, flag: str) -> None:
        """The policy allows everything; the job does not allow one kind."""
        a = job("a", options=(option("e", workers=4, workers_min=1, gpus=2),))
        runs = running(a, HOME, **{**MAY, flag: False})
        policy = Policy(changes=Changes(moves_max=9, shrinks_max=9, preemptions_max=9))
        problem = compile_problem(instance(3, [a], running=[runs], policy=policy))
        every = {"movable": ELSEWHERE, "shrinkable": shrunk(0, 1), "preemptible": None}
        for name, one in every.items():
            assert may_become(problem, 0, one) == keeps_limits(problem, (one,)) == (name != flag)

    def test_limits(self) -> None:
        problem = elastic(moves_max=3, shrinks_max=4, preemptions_max=5)
        assert change_limits(problem) == {"moved": 3, "shrunk": 4, "preempted": 5}

    @pytest.mark.parametrize("most", [1, 2])
    def test_limits_count_jobs(self, most: int) -> None:
        """Two jobs are moved, or shrunk, or stopped."""
        jobs = [job(name, workers=2, workers_min=1) for name in "ab"]
        runs = [running(one, [("n0", [2 * i]), ("n0", [2 * i + 1])], **MAY) for i, one in enumerate(jobs)]
        for field in ("moves_max", "shrinks_max", "preemptions_max"):
            policy = Policy(changes=Changes(**{field: most}))
            problem = compile_problem(instance(2, jobs, running=runs, policy=policy))
            of_kind = {
                "moves_max": (Placement(0, (1,), (4,)), Placement(0, (1,), (5,))),
                "shrinks_max": (Placement(0, (0,), (0,)), Placement(0, (0,), (2,))),
                "preemptions_max": (None, None),
            }
            assert keeps_limits(problem, of_kind[field]) == (most == 2)

    def test_open_state_holds_jobs_that_must_stay(self) -> None:
        """Of three running jobs one may be moved, one shrunk, one nothing."""
        jobs = [job(name, workers=2, workers_min=1) for name in "abc"]
        may: list[dict[str, bool]] = [{"movable": True}, {"preemptible": True}, {"shrinkable": True}]
        runs = [running(one, [(f"n{i}", [0]), (f"n{i}", [1])], **may[i]) for i, one in enumerate(jobs)]
        policy = Policy(changes=Changes(moves_max=1, shrinks_max=1))
        problem = compile_problem(instance(3, jobs, running=runs, policy=policy))
        state = open_state(problem)
        assert state.placements == [None, problem.running[1], None]
        assert state.gpu_free_milli.tolist() == [1000] * 4 + [0, 0, 1000, 1000] + [1000] * 4


class TestOrder:
    """Submission order, by queue and arrival."""

    def problem(self, changes: Changes | None = None) -> Problem:
        """Arrivals 5, 3, 5 in queue q; 1 and 2 without a queue; 4 in q, a gang that may not be stopped."""
        of = (("a", "q", 5), ("b", "q", 3), ("c", "q", 5), ("d", None, 1), ("e", None, 2), ("f", "q", 4))
        jobs = [job(name, queue=queue, arrival_ms=at) for name, queue, at in of]
        runs = [running(one, [("n0", [i])], preemptible=one.id != "f", shrinkable=True) for i, one in enumerate(jobs)]
        changes = Changes(preemptions_max=9, shrinks_max=9, last_submitted_first=True) if changes is None else changes
        policy = Policy(queues=(Queue(id="q"),), changes=changes)
        return compile_problem(instance(1, jobs, running=runs, policy=policy, machines=[machine(gpus=8)]))

    def test_groups(self) -> None:
        assert submission_order(self.problem()) == [[[1], [0, 2]], [[3], [4]]]
        off = Changes(preemptions_max=9, shrinks_max=9)
        assert submission_order(self.problem(off)) == []

    @pytest.mark.parametrize(
        ("stopped", "fine"),
        [
            *(("", True), ("a", True), ("ac", True), ("b", False), ("ab", False), ("acb", True)),
            *(("e", True), ("d", False), ("de", True), ("ae", True)),
        ],
    )
    def test_later_jobs_are_stopped_first(self, stopped: str, fine: bool) -> None:
        """All of the next group must be taken before any of an earlier one; queues by themselves."""
        problem = self.problem()
        allocation = tuple(None if name in stopped else problem.running[j] for j, name in enumerate("abcdef"))
        assert keeps_limits(problem, allocation) == fine

    def test_shrinking_is_in_order_too(self) -> None:
        """The later job first, or both; either way of giving counts."""
        jobs = [job(name, arrival_ms=at, workers=2, workers_min=1) for at, name in enumerate("ab")]
        runs = [running(one, [("n0", [2 * i]), ("n0", [2 * i + 1])], **MAY) for i, one in enumerate(jobs)]
        changes = Changes(preemptions_max=2, shrinks_max=2, last_submitted_first=True)
        problem = compile_problem(instance(1, jobs, running=runs, policy=Policy(changes=changes)))
        a, b = problem.running[0], problem.running[1]
        less_a, less_b = Placement(0, (0,), (0,)), Placement(0, (0,), (2,))
        assert [keeps_limits(problem, both) for both in ((a, less_b), (less_a, less_b), (less_a, None))] == [True] * 3
        assert not keeps_limits(problem, (less_a, b))

    def test_groups_are_in_order_of_the_file(self) -> None:
        """Jobs 1 and 8 of nine, which came together."""
        jobs = [job(f"j{i}") for i in range(9)]
        runs = [running(one, [("n0", [i])], preemptible=i in (1, 8)) for i, one in enumerate(jobs)]
        policy = Policy(changes=Changes(preemptions_max=2, last_submitted_first=True))
        problem = compile_problem(instance(1, jobs, running=runs, policy=policy, machines=[machine(gpus=9)]))
        assert submission_order(problem) == [[[1, 8]]]

    def test_moving_gives_nothing(self) -> None:
        """The later job is moved, so the earlier may not be stopped."""
        jobs = [job("a", arrival_ms=1), job("b", arrival_ms=2)]
        runs = [running(one, [("n0", [i])], **MAY) for i, one in enumerate(jobs)]
        policy = Policy(changes=Changes(preemptions_max=2, moves_max=2, last_submitted_first=True))
        problem = compile_problem(instance(2, jobs, running=runs, policy=policy))
        assert not keeps_limits(problem, (None, Placement(0, (1,), (4,))))
        assert keeps_limits(problem, (Placement(0, (1,), (4,)), None))


class TestParts:
    @pytest.mark.parametrize("ranks", [(0,), (0, 3), (0, 1, 2)])
    def test_part_of(self, ranks: tuple[int, ...]) -> None:
        """Nodes and GPUs of those workers, in the option of that number of workers."""
        problem = elastic()
        assert part_of(problem, 0, len(ranks) - 1, ranks) == shrunk(*ranks)

    def test_restarted(self) -> None:
        """Its own place is no restart; a part of it is marked as one; elsewhere needs no mark."""
        problem = elastic()
        home = problem.running[0]
        turned = replace(home, gpus=(1, 0, *home.gpus[2:]))
        assert restarted(problem, 0, turned) is home
        assert restarted(problem, 0, shrunk(0, 2)) == replace(shrunk(0, 2), restarts=True)
        assert restarted(problem, 0, ELSEWHERE) == ELSEWHERE
        assert not restarted(problem, 0, replace(ELSEWHERE, restarts=True)).restarts
