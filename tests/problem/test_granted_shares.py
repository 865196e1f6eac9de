"""Shares of GPUs as the engine writes them: the same cases as the referee's, and the records around them."""

from typing import Any

import pytest

from helpers.grant_cases import CASES
from placeopt import BadInput
from placeopt.build import instance, job, option, placement, running
from placeopt.model import Placement, Policy
from placeopt.problem import compile_problem
from placeopt.problem.grants import (
    bounds_of,
    granted,
    grants,
    has_limit,
    refuse_overfull,
    with_grants,
    with_shares,
)


def shares(placements: list[Any]) -> list[list[int]]:
    return [[milli for a in one.assignments for milli in a.gpus.values()] for one in placements]


@pytest.mark.parametrize("name", CASES)
def test_what_is_due(name: str) -> None:
    """As worked out by hand for the referee."""
    bounds = {job_: (low, low if high is None else high) for job_, (low, high, _) in CASES[name].items()}
    assert grants(bounds) == {job_: due for job_, (_, _, due) in CASES[name].items()}


def test_more_is_requested_than_there_is() -> None:
    """Nothing is granted above the requests, be it a thousandth too much."""
    assert grants({"a": (500, 900), "b": (501, 700)}) == {"a": 500, "b": 501}
    assert grants({"a": (1000, 1000)}) == {"a": 1000}
    assert grants({}) == {}


class TestPlacements:
    jobs = {  # noqa: RUF012
        "a": job("a", workers=2, gpu_milli=300, gpu_milli_limit=900),
        "b": job("b", gpu_milli=600),
        "c": job("c", gpu_milli=100, gpu_milli_limit=400),
    }

    def held(self, name: str, where: Any, milli: int | None = None) -> Placement:
        return placement(self.jobs[name], where, milli=milli)

    def test_with_grants(self) -> None:
        """a is alone on one GPU and beside b on another; c beside a job that is not in the list, of 800."""
        a = self.held("a", [("n0", [0]), ("n1", [3])])
        b, c = self.held("b", [("n1", [3])]), self.held("c", [("n0", [3])])
        beside = placement(job("x", gpu_milli=800), [("n0", [3])])
        found = with_grants([b, a, c], [(600, 600), (300, 900), (100, 400)], [(beside, (800, 800))])
        assert shares(found) == [[600], [900, 400], [200]]
        assert found[0] is b
        assert (found[1].job, found[1].assignments[0].workers) == ("a", a.assignments[0].workers)
        again = with_grants(found, [(600, 600), (300, 900), (100, 400)], [(beside, (800, 800))])
        assert all(one is other for one, other in zip(again, found, strict=True))

    def test_only_jobs_with_a_limit_are_touched(self) -> None:
        """b is alone on a GPU on which nobody has one."""
        b, c = self.held("b", [("n0", [1])]), self.held("c", [("n0", [0])])
        found = with_grants([b, c], [(600, 600), (100, 400)])
        assert found[0] is b
        assert shares(found) == [[600], [400]]

    def test_without_limits_nothing_is_touched(self) -> None:
        one = self.held("b", [("n1", [3])], milli=1)
        assert with_grants([one], [(600, 600)])[0] is one
        assert with_grants([], []) == []

    @pytest.mark.parametrize(
        ("mode", "most", "share"), [("fraction", None, 400), ("exclusive", None, 100), ("overcommit", 2, 100)]
    )
    def test_granted_by_the_policys_mode(self, mode: Any, most: int | None, share: int) -> None:
        """Alone, up to its limit, or just the request."""
        policy = Policy(share_mode=mode, jobs_per_gpu_max=most)
        c = self.held("c", [("n0", [0])])
        assert shares(granted([c], self.jobs, policy)) == [[share]]
        assert bounds_of(c, self.jobs, mode) == (100, share)

    def test_granted_beside_others(self) -> None:
        """300 requested beside 100: 600 left of 600 + 300, so 400 and 200 above the requests."""
        policy = Policy()
        a, c = self.held("a", [("n0", [0]), ("n0", [1])]), self.held("c", [("n0", [0])])
        assert shares(granted([c], self.jobs, policy, [a])) == [[300]]
        assert shares(granted([a, c], self.jobs, policy)) == [[700, 900], [300]]

    def test_bounds(self) -> None:
        """Of the option that is taken; (0, 0) where there is none."""
        two = job("t", options=(option("x", gpu_milli=100, gpu_milli_limit=200), option("y", gpu_milli=300)))
        jobs = {"t": two}
        held = placement(two, [("n0", [0])])
        assert bounds_of(held, jobs, "fraction") == (100, 200)
        assert bounds_of(held.model_copy(update={"option": "y"}), jobs, "fraction") == (300, 300)
        assert bounds_of(held.model_copy(update={"option": "z"}), jobs, "fraction") == (0, 0)
        assert bounds_of(held, {}, "fraction") == (0, 0)

    def test_has_limit(self) -> None:
        """In any option, above the request."""
        assert has_limit(self.jobs["c"])
        assert not has_limit(self.jobs["b"])
        assert not has_limit(job("d", gpu_milli=500, gpu_milli_limit=500))
        assert has_limit(job("e", options=(option("x"), option("y", gpu_milli=1, gpu_milli_limit=2))))

    def test_with_shares(self) -> None:
        """The same object where nothing differs; else only the shares do."""
        a = self.held("a", [("n0", [0]), ("n1", [3])])
        assert with_shares(a, [{"0": 300}, {"3": 300}]) is a
        found = with_shares(a, [{"0": 300}, {"3": 301}])
        assert shares([found]) == [[300, 301]]
        assert found.model_copy(update={"assignments": a.assignments}) == a
        assert type(found) is Placement


class TestOverfull:
    def running(self, *held: tuple[str, str, int, int]) -> list[Placement]:
        """Jobs by name, node, GPU and share."""
        return [placement(job(name, gpu_milli=1), [(at, [gpu])], milli=milli) for name, at, gpu, milli in held]

    def test_up_to_the_whole(self) -> None:
        """1000 on a GPU, 999 on the same index elsewhere, 2 on another index."""
        refuse_overfull(self.running(("a", "n0", 0, 600), ("b", "n0", 0, 400), ("c", "n1", 0, 999), ("d", "n0", 1, 2)))

    def test_one_thousandth_more(self) -> None:
        """The jobs on that GPU are named, up to five of them."""
        held = self.running(("a", "n0", 0, 600), ("x", "n0", 1, 9), ("y", "n1", 0, 9), ("b", "n0", 0, 401))
        with pytest.raises(BadInput, match=r"node 'n0' gpu 0: 1001 of 1000 milli held by jobs 'a', 'b';"):
            refuse_overfull(held)
        with pytest.raises(BadInput, match=r"1200 of 1000 milli held by jobs 'j0', 'j1', 'j2', 'j3', 'j4';"):
            refuse_overfull(self.running(*((f"j{i}", "n0", 0, 200) for i in range(6))))

    def test_a_gang_on_a_gpu_that_is_overfull_and_on_another(self) -> None:
        gang = placement(job("g", workers=2, gpu_milli=1), [("n0", [0]), ("n1", [0])], milli=600)
        with pytest.raises(BadInput, match="held by jobs 'g', 'b';"):
            refuse_overfull([gang, *self.running(("b", "n0", 0, 401))])

    def test_compiling_refuses_it_where_shares_bind(self) -> None:
        """And only there, and where somebody has a limit."""
        jobs = [job(name, gpu_milli=300, gpu_milli_limit=600) for name in "ab"]
        runs = [running(one, [("n0", [0])], milli=600) for one in jobs]
        with pytest.raises(BadInput, match="1200 of 1000 milli"):
            compile_problem(instance(1, jobs, running=runs))
        for mode in ("exclusive", "overcommit"):
            policy = Policy(share_mode=mode, jobs_per_gpu_max=1 if mode == "exclusive" else 2)
            assert len(compile_problem(instance(1, jobs, running=runs, policy=policy)).running) == 2


def test_an_instance_needs_no_grants() -> None:
    """Nobody runs."""
    refuse_overfull(instance(1).running)
