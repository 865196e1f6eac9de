"""
Waiting allowances by hand: costs, rates, nodes taken, expected completion, and how ties are broken (GENIE 5).

The option that a job starts in shows which has the best rate for its cost; the order of jobs shows their allowances.
"""

from typing import Any

import numpy as np
import pytest

from placeopt import Engine, violations
from placeopt.build import instance, job, machine, node, option
from placeopt.heuristics import greedy, order_jobs, waiting_allowances
from placeopt.model import Job, Split
from placeopt.problem import Problem, compile_problem


def started(*jobs: Job, nodes: Any = 4, **fields: Any) -> list[str | None]:
    """Option that every job is started in, each on the idle cluster; nodes of four GPUs unless stated."""
    found = []
    for one in jobs:
        problem = compile_problem(instance(nodes, [one], **fields))
        (held,) = greedy(problem, np.array([0]), only=waiting_allowances(problem).option).allocation
        found.append(None if held is None else problem.options.name[held.option])
    return found


def chosen(stated_milli: int, shape: Any, **fields: Any) -> str | None:
    """Which of two options of rate 1 is taken: ``shape``, or one of one GPU of this cost in thousandths."""
    other = option("stated", rate_milli=1000, cost_milli=stated_milli)
    return started(job("a", options=(shape.model_copy(update={"rate_milli": 1000}), other)), **fields)[0]


def order(*jobs: Job, **fields: Any) -> list[str]:
    """Return the ids in order of their allowances."""
    problem: Problem = compile_problem(instance(4, jobs, **fields))
    return [problem.job_ids[j] for j in order_jobs(problem, "swaf").tolist()]


@pytest.mark.parametrize(
    ("fields", "rate_milli"),
    [({"rate_milli": 1500, "latency_ms": 8}, 1500), ({"latency_ms": 8}, 125_000), ({"run_time_ms": 8}, 125_000),
     ({"workers": 6}, 6000)],
)  # fmt: skip
def test_rate(fields: dict[str, int], rate_milli: int) -> None:
    """As stated; else one over the latency in seconds, which is the run time where it is not stated; else the GPUs."""
    one = option("one", cost_milli=1000, **fields)
    for other, expected in ((rate_milli + 1, "other"), (rate_milli - 1, "one")):
        shapes = (one, option("other", cost_milli=1000, rate_milli=other, latency_ms=9))
        assert started(job("a", options=shapes)) == [expected]


@pytest.mark.parametrize(
    ("fields", "nodes"),
    [
        ({"workers": 4, "single_node": True}, 1),
        ({"workers": 6, "splits": (Split(level="node", domains=3),)}, 3),
        ({"workers": 8}, 2),
        ({"workers": 9}, 3),
        ({"workers": 3, "gpus": 4}, 3),
        ({"workers": 6, "workers_per_node_max": 2}, 3),
        ({"workers": 7, "workers_per_node_max": 2}, 4),
        ({"workers": 8, "gpus": 2, "workers_per_node_max": 8}, 4),
        ({"workers": 3, "gpus": 0}, 1),
        ({"workers": 3, "gpus": 0, "workers_per_node_max": 1}, 3),
    ],
)
def test_nodes_taken(fields: dict[str, Any], nodes: int) -> None:
    """The fewest of four GPUs each that hold it, unless the shape says: GPUs / 16 + 0.4 x nodes / 4."""
    gpus = fields["workers"] * fields.get("gpus", 1)
    cost = round(1000 * (gpus / 16 + 0.4 * nodes / 4) + 0.5)
    assert chosen(cost + 1, option("own", **fields)) == "own"
    assert chosen(cost - 2, option("own", **fields)) == "stated"


@pytest.mark.parametrize(("count", "gpus", "cost"), [(1, 4, 650), (2, 1, 700), (1, 1, 1400), (4, 2, 225)])
def test_cost_counts_nodes_with_gpus(count: int, gpus: int, cost: int) -> None:
    """One GPU on one node: 1/4 + 0.4/1, 1/2 + 0.4/2, 1 + 0.4, 1/8 + 0.4/4; a node without GPUs does not count."""
    fields = {
        "nodes": [*(node(f"n{i}") for i in range(count)), node("cpu", "cpu")],
        "machines": [machine(gpus=gpus), machine("cpu", 0)],
    }
    assert (chosen(cost + 1, option("own"), **fields), chosen(cost - 1, option("own"), **fields)) == ("own", "stated")


class TestExpectedCompletion:
    """Stated, else arrival + 0, + 1 or + 2 times the latency on the fewest GPUs."""

    shapes = (
        option("4", gpus=4, latency_ms=30, rate_milli=10**6),
        option("1", gpus=1, latency_ms=100),
        option("1+1", workers=2, latency_ms=60),
    )

    @pytest.mark.parametrize(("priority", "due"), [(3, 1000), (2, 1000), (1, 1100), (0, 1200), (-1, 1200)])
    def test_by_class(self, priority: int, due: int) -> None:
        """Beside a job of no latency that is due a millisecond before or after ``due`` less 30."""
        a = job("a", options=self.shapes, arrival_ms=1000, priority=priority)
        for stated, expected in ((due - 31, "ba"), (due - 29, "ab")):
            assert order(a, job("b", expected_completion_ms=stated)) == list(expected)

    @pytest.mark.parametrize("stated", [0, 70])
    def test_as_stated(self, stated: int) -> None:
        """Also where that is 0, and before the arrival."""
        a = job("a", options=self.shapes[:1], arrival_ms=1000, expected_completion_ms=stated)
        for later, expected in ((9, "ba"), (11, "ab")):
            b = job("b", options=(option(latency_ms=40),), expected_completion_ms=stated + later)
            assert order(a, b) == list(expected)

    def test_of_equal_sizes_the_slowest_counts(self) -> None:
        """Of two shapes of 2 GPUs the longer latency, 80, which is also what is left out; 3 x 1 GPUs are more."""
        shapes = (option("3", workers=3, latency_ms=500), option("2", gpus=2, latency_ms=60, rate_milli=10**6))
        a = job("a", options=(*shapes, option("1+1", workers=2, latency_ms=80)), priority=1)
        assert order(a, job("b", expected_completion_ms=19)) == ["b", "a"]
        assert order(a, job("b", expected_completion_ms=21)) == ["a", "b"]


def test_in_time_goes_first_then_the_rate_for_the_cost_then_the_latency_then_the_file() -> None:
    """Costs are stated, so CER = rate / cost: 4, 3, 3, 3 with latencies 50, 40, 30, 30. None ends by 129: the first."""
    shapes = (
        option("late", rate_milli=4000, cost_milli=1000, latency_ms=50),
        option("slow", rate_milli=3000, cost_milli=1000, latency_ms=40),
        option("first", rate_milli=3000, cost_milli=1000, latency_ms=30),
        option("again", rate_milli=3000, cost_milli=1000, latency_ms=30),
    )
    jobs = [job(f"{due}", options=shapes, expected_completion_ms=100 + due) for due in (50, 49, 40, 39, 30, 29)]
    assert started(*jobs, now_ms=100) == ["late", "first", "first", "first", "first", "late"]


def test_an_elastic_shape_is_one_for_every_number_of_workers() -> None:
    """Rate is the GPUs: 1 / (1/16 + 0.4/4), ..., 4 / (4/16 + 0.4/4); five take another node: 5 / (5/16 + 0.8/4)."""
    problem = compile_problem(instance(4, [job("a", workers=5, workers_min=1)]))
    placed = greedy(problem, np.array([0]), only=waiting_allowances(problem).option).allocation
    assert len(placed[0].nodes) == 4


def test_what_fits_nowhere_is_not_chosen_for_its_rate() -> None:
    """Nor is its latency counted: due at 1000, 800 are left at 200, against 1000 - 30 - 200 of the other."""
    big = option("8", gpus=8, latency_ms=5, rate_milli=10**6)
    none = job("none", options=(big,), expected_completion_ms=1000)
    one = job("one", options=(big, option("1", latency_ms=30)), expected_completion_ms=1000)
    assert started(none, one, now_ms=200) == [None, "1"]
    assert order(none, one, now_ms=200) == ["one", "none"]


def test_a_cluster_without_gpus() -> None:
    """Costs are of one GPU and one node at least: nothing is divided by 0."""
    jobs = [job("cpu", gpus=0, latency_ms=10, expected_completion_ms=50), job("gpu", expected_completion_ms=50)]
    assert started(*jobs, nodes=1, machines=[machine(gpus=0)]) == ["default", None]


def test_the_shortest_allowance_first_and_in_no_other_shape(engine: Engine) -> None:
    """One node of four: the job with 60 s to spare goes before that with 160; the latter waits, though one GPU fits."""
    shapes = (
        option("1", gpus=1, rate_milli=2_000, latency_ms=120_000, value=10),
        option("4", gpus=4, rate_milli=6_000, latency_ms=40_000),
        option("2x4", workers=2, gpus=4, workers_per_node_max=1, rate_milli=8_000, latency_ms=30_000),
    )
    late = job("late", options=shapes, expected_completion_ms=200_000)
    soon = job("soon", options=shapes, expected_completion_ms=100_000, arrival_ms=5)
    round_ = instance(1, [late, job("small", gpus=1, expected_completion_ms=500_000), soon])
    plan = engine.solve(round_, method="swaf")
    assert [(one.job, one.option) for one in plan.placements] == [("soon", "4")]
    assert {one.reason for one in plan.unplaced} <= {"policy", "conflict", "outvoted"}
    assert violations(round_, plan) == []
