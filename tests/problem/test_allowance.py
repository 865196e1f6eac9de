"""Waiting allowances by hand: costs, rates, nodes taken, expected completion, and how ties are broken (GENIE 5)."""

from typing import Any

import pytest

from placeopt.build import instance, job, machine, node, option
from placeopt.heuristics.job_orders import (
    cost_of,
    due_ms,
    latency_of,
    nodes_of,
    rate_of,
    waiting_allowances,
)
from placeopt.model import Job, Option, Split
from placeopt.problem import compile_problem


def settled(*jobs: Job, nodes: Any = 4, **fields: Any) -> list[tuple[str, int]]:
    """Of every job: the option settled on, and the allowance in ms; nodes of four GPUs unless stated."""
    problem = compile_problem(instance(nodes, jobs, **fields))
    found = waiting_allowances(problem)
    names = [problem.options.name[o] if o >= 0 else "none" for o in found.option.tolist()]
    return list(zip(names, found.slack_ms.tolist(), strict=True))


@pytest.mark.parametrize(
    ("fields", "latency"),
    [
        ({"latency_ms": 7, "run_time_ms": 9}, 7),
        ({"latency_ms": 0, "run_time_ms": 9}, 0),
        ({"run_time_ms": 9}, 9),
        ({}, 0),
    ],
)
def test_latency(fields: dict[str, int], latency: int) -> None:
    """As stated, also as 0; else the run time; else 0."""
    assert latency_of(option(**fields)) == latency


@pytest.mark.parametrize(
    ("fields", "rate"),
    [
        ({"rate_milli": 1500, "latency_ms": 8}, 1.5),
        ({"rate_milli": 0, "latency_ms": 8}, 0.0),
        ({"latency_ms": 8}, 125.0),
        ({}, 6.0),
    ],
)
def test_rate(fields: dict[str, int], rate: float) -> None:
    """As stated in thousandths, also as 0; else one over the latency in seconds; else the GPUs, here 6."""
    assert rate_of(option(**fields), 6) == rate


def test_cost() -> None:
    """Stated in thousandths; else 6 of 24 GPUs and 0.4 x 2 of 8 nodes; a cluster without GPUs counts as one of 1."""
    assert cost_of(option(cost_milli=2500), 6, 2, 24, 8) == 2.5
    assert cost_of(option(), 6, 2, 24, 8) == pytest.approx(0.25 + 0.4 * 0.25)
    assert cost_of(option(), 0, 2, 0, 0) == pytest.approx(0.8)
    assert cost_of(option(), 1, 0, 1, 1) == 1.0


@pytest.mark.parametrize(
    ("shape", "nodes"),
    [
        (option(workers=4, gpus=4, single_node=True), 1),
        (option(workers=6, gpus=1, splits=(Split(level="node", domains=3),)), 3),
        (option(workers=6, gpus=1, splits=(Split(level="rack", domains=5), Split(level="node", domains=3))), 3),
        (option(workers=8, gpus=1), 2),
        (option(workers=9, gpus=1), 3),
        (option(workers=3, gpus=4), 3),
        (option(workers=6, gpus=1, workers_per_node_max=2), 3),
        (option(workers=7, gpus=1, workers_per_node_max=2), 4),
        (option(workers=8, gpus=2, workers_per_node_max=8), 4),
        (option(workers=3, gpus=0), 1),
        (option(workers=3, gpus=0, workers_per_node_max=1), 3),
    ],
)
def test_nodes_taken(shape: Option, nodes: int) -> None:
    """The fewest of up to four GPUs each that hold it, unless the shape says."""
    assert nodes_of(shape, shape.workers, 4) == nodes


class TestExpectedCompletion:
    """Stated, else arrival + 0, + 1 or + 2 times the latency on the fewest GPUs."""

    shapes = (
        option("4", gpus=4, latency_ms=30),
        option("1", gpus=1, latency_ms=100),
        option("2", gpus=2, latency_ms=60),
    )

    @pytest.mark.parametrize(("priority", "due"), [(3, 1000), (2, 1000), (1, 1100), (0, 1200), (-1, 1200)])
    def test_by_class(self, priority: int, due: int) -> None:
        assert due_ms(job("a", options=self.shapes, arrival_ms=1000, priority=priority)) == due

    @pytest.mark.parametrize("priority", [0, 1, 2])
    def test_as_stated(self, priority: int) -> None:
        """Also where that is 0, and before the arrival."""
        for stated in (0, 70):
            fields = {"arrival_ms": 1000, "priority": priority, "expected_completion_ms": stated}
            assert due_ms(job("a", options=self.shapes, **fields)) == stated

    def test_the_fewest_gpus_are_of_all_workers_and_of_equals_the_slowest_counts(self) -> None:
        """3 x 1 GPUs are more than 1 x 2; of two shapes of 2 GPUs the longer latency."""
        shapes = (
            option("3", workers=3, latency_ms=500),
            option("2", gpus=2, latency_ms=60),
            option("1+1", workers=2, latency_ms=80),
        )
        assert due_ms(job("a", options=shapes, priority=1)) == 80


def test_in_time_goes_first_then_the_rate_for_the_cost_then_the_latency_then_the_file() -> None:
    """Costs are stated, so CER = rate / cost: 4, 3, 3, 3 with latencies 50, 40, 30, 30."""
    shapes = (
        option("late", rate_milli=4000, cost_milli=1000, latency_ms=50),
        option("slow", rate_milli=3000, cost_milli=1000, latency_ms=40),
        option("first", rate_milli=3000, cost_milli=1000, latency_ms=30),
        option("again", rate_milli=3000, cost_milli=1000, latency_ms=30),
    )
    jobs = [job(f"{due}", options=shapes, expected_completion_ms=100 + due) for due in (50, 49, 40, 39, 30, 29)]
    assert settled(*jobs, now_ms=100) == [
        ("late", 0),
        ("first", 19),
        ("first", 10),
        ("first", 9),
        ("first", 0),
        ("late", -21),
    ]


def test_cost_is_of_the_whole_cluster() -> None:
    """
    Rate 1 each. Nodes of 4 and 2 GPUs and one without: 6 GPUs, 2 nodes with GPUs, at most 4 on one.

    4 GPUs on one node cost 4/6 + 0.4/2 = 0.867; stated 0.868 is dearer, 0.866 cheaper. So are 3 x 2 on two nodes:
    6/6 + 0.4 x 2/2 = 1.4.
    """
    nodes = [node("n0"), node("n1", "two"), node("n2", "cpu")]
    kinds = [machine(), machine("two", 2), machine("cpu", 0)]
    for stated, chosen in ((868, "own"), (866, "stated")):
        shapes = (option("own", gpus=4, rate_milli=1000), option("stated", rate_milli=1000, cost_milli=stated))
        assert settled(job("a", options=shapes), nodes=nodes, machines=kinds)[0][0] == chosen
    for stated, chosen in ((1401, "own"), (1399, "stated")):
        shapes = (
            option("own", workers=3, gpus=2, rate_milli=1000),
            option("stated", rate_milli=1000, cost_milli=stated),
        )
        assert settled(job("a", options=shapes), nodes=nodes, machines=kinds)[0][0] == chosen


@pytest.mark.parametrize(("count", "gpus", "cost"), [(1, 4, 650), (2, 1, 700), (1, 1, 1400), (4, 2, 225)])
def test_cost_counts_nodes_with_gpus(count: int, gpus: int, cost: int) -> None:
    """One GPU on one node: 1/4 + 0.4/1, 1/2 + 0.4/2, 1 + 0.4, 1/8 + 0.4/4; a node without GPUs does not count."""
    nodes = [*(node(f"n{i}") for i in range(count)), node("cpu", "cpu")]
    for stated, chosen in ((cost + 1, "own"), (cost - 1, "stated")):
        shapes = (option("own", rate_milli=1000), option("stated", rate_milli=1000, cost_milli=stated))
        kinds = [machine(gpus=gpus), machine("cpu", 0)]
        assert settled(job("a", options=shapes), nodes=nodes, machines=kinds)[0][0] == chosen


def test_two_workers_on_nodes_of_one_gpu_take_two() -> None:
    """2/4 + 0.4 x 2/4 = 0.7."""
    for stated, chosen in ((701, "own"), (699, "stated")):
        shapes = (option("own", workers=2, rate_milli=1000), option("stated", rate_milli=1000, cost_milli=stated))
        assert settled(job("a", options=shapes), machines=[machine(gpus=1)])[0][0] == chosen


def test_an_elastic_shape_is_one_for_every_number_of_workers() -> None:
    """Rate is the GPUs: 1 / (1/16 + 0.4/4), ..., 4 / (4/16 + 0.4/4); five take another node: 5 / (5/16 + 0.8/4)."""
    elastic = option("e", workers=5, workers_min=1)
    problem = compile_problem(instance(4, [job("a", options=(elastic,))]))
    (chosen,) = waiting_allowances(problem).option.tolist()
    assert problem.options.workers[chosen] == 4


def test_a_job_that_fits_nowhere_waits_until_it_is_due() -> None:
    """Its latency is left out; and what fits nowhere is not chosen for its rate."""
    big = option("8", gpus=8, latency_ms=5, rate_milli=10**6)
    jobs = [
        job("none", options=(big,), expected_completion_ms=1000),
        job("one", options=(big, option("1", latency_ms=30)), expected_completion_ms=1000),
    ]
    assert settled(*jobs, now_ms=200) == [("none", 800), ("1", 770)]
    assert waiting_allowances(compile_problem(instance(4, jobs))).option.tolist() == [-1, 2]


def test_a_cluster_without_gpus() -> None:
    """Costs are of one GPU and one node at least: nothing is divided by 0."""
    jobs = [job("cpu", gpus=0, latency_ms=10, expected_completion_ms=50), job("gpu", expected_completion_ms=50)]
    assert settled(*jobs, nodes=1, machines=[machine(gpus=0)]) == [("default", 40), ("none", 50)]
