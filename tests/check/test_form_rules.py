"""Rules ``option``, ``workers``, ``unknown_node``, ``gpu_indexes``, ``gpu_milli`` and ``amounts``, at their edges."""

from typing import Any

import pytest

from helpers.plans import plan_for
from helpers.referee_messages import Finding, faults, findings, places
from placeopt.build import instance, job, machine, option, placement
from placeopt.check import violations
from placeopt.model import Assignment, Instance, Job, Placement, Plan, Policy, WorkerGpus


def held(workers: str, node: str = "n0", **fields: Any) -> Assignment:
    """
    Let workers stand on a node, without any check: ``0:1,3 1:`` are rank 0 on GPUs 1 and 3, and rank 1 without any.

    The shares are 1000 unless stated.
    """
    pairs = [worker.split(":") for worker in workers.split()]
    ranks = [(int(rank), tuple(int(gpu) for gpu in on.split(",") if gpu)) for rank, on in pairs]
    own = {
        "node": node,
        "gpus": {str(gpu): 1000 for _, on in ranks for gpu in on},
        "cpu_millicores": 0,
        "memory_mib": 0,
        "workers": tuple(WorkerGpus.model_construct(rank=rank, gpus=on) for rank, on in ranks),
    }
    return Assignment.model_construct(**{**own, **fields})


def with_placement(round_: Instance, *assignments: Assignment) -> Plan:
    """Return a plan in which job ``a`` holds this."""
    mine = Placement.model_construct(job="a", option="default", assignments=assignments)
    return plan_for(round_, {"a": [("n0", [0])]}).model_copy(update={"placements": (mine,)})


def found(a: Job, *assignments: Assignment, **fields: Any) -> list[Finding]:
    """Judge one job on two nodes."""
    round_ = instance(2, [a], **fields)
    return findings(round_, with_placement(round_, *assignments))


def told(rule: str, numbers: str = "", on: str | None = None) -> Finding:
    """Return what is told of job ``a``, as a whole or on a node: the numbers and names of the message."""
    return rule, "job 'a'" if on is None else f"job 'a' on node '{on}'", numbers.split()


def indexes(numbers: str, on: str = "n0") -> Finding:
    return told("gpu_indexes", numbers, on)


ONE, TWO, THREE, PAIR, CPU = job("a"), job("a", workers=2), job("a", workers=3), job("a", gpus=2), job("a", gpus=0)
TWO_FOR_ONE = [told("workers", "2 'default' 1")]
Case = tuple[Job, list[Assignment], list[Finding]]
CASES: dict[str, Case] = {
    # option: not below the minimal utility
    "utility 0 without a minimum": (job("a", utility_thousandths=0), [held("0:0")], []),
    "an unknown utility": (job("a", utility_min_thousandths=5), [held("0:0")], []),
    "just the minimum": (job("a", utility_thousandths=5, utility_min_thousandths=5), [held("0:0")], []),
    "utility 0 is below 1": (
        job("a", utility_thousandths=0, utility_min_thousandths=1), [held("0:0")], [told("option", "'default' 0 1")]),
    # workers: their number; in all else two for one look like one
    "an elastic job of one worker": (job("a", workers=2, workers_min=1), [held("0:0")], []),
    "one worker of a fixed two": (TWO, [held("0:0")], [told("workers", "1 'default' 2")]),
    "two for one on a node": (ONE, [held("0:0 1:1")], TWO_FOR_ONE),
    "two for one on two nodes": (ONE, [held("0:0"), held("1:0", "n1")], TWO_FOR_ONE),
    "two for one without GPUs": (CPU, [held("0: 1:")], TWO_FOR_ONE),
    "two for one without GPUs on two nodes": (CPU, [held("0:"), held("1:", "n1")], TWO_FOR_ONE),
    "an assignment without workers beside another": (CPU, [held(""), held("0:", "n1")], [told("workers", "", "n0")]),
    "an assignment without workers alone": (
        CPU, [held("")], [told("workers", "0 'default' 1"), told("workers", "", "n0")]),
    # workers: their ranks, once each from 0, in whatever order and on whatever nodes they are written
    **{
        f"ranks {a}, {b}, {c} of three": (THREE, [held(f"{a}:0 {b}:1 {c}:2")], [told("workers", "3 0 2")])
        for a, b, c in ((0, 1, 1), (0, 0, 2), (1, 2, 3), (0, 1, 3), (0, 2, 2))
    },
    "ranks in another order": (THREE, [held("2:0 0:1"), held("1:0", "n1")], []),
    **{
        f"ranks {a}, {b} of two": (TWO, [held(f"{a}:0 {b}:1")], [told("workers", "2 0 1")])
        for a, b in ((0, 0), (1, 1), (1, 2), (0, 2), (-1, 1))
    },
    **{f"rank {a} of one": (ONE, [held(f"{a}:0")], [told("workers", "1 0 0")]) for a in (1, -1)},
    # workers: no node in two assignments
    "the first node again": (THREE, [held("0:0"), held("1:0", "n1"), held("2:1")], [told("workers")]),
    "the second node again": (THREE, [held("0:0"), held("1:0", "n1"), held("2:1", "n1")], [told("workers")]),
    "two nodes": (TWO, [held("0:0"), held("1:0", "n1")], []),
    # gpu_indexes: as many as the worker needs, of one and of the second of two, which is named by its rank
    **{
        f"{n} GPUs for two": (PAIR, [held(f"0:{gpus}")], [indexes(f"0 {n} 2")])
        for n, gpus in ((0, ""), (1, "0"), (3, "0,1,2"))
    },
    **{
        f"{n} GPUs for two of the second worker": (
            job("a", workers=2, gpus=2), [held("0:1,3"), held(f"1:{gpus}", "n1")], [indexes(f"1 {n} 2", "n1")])
        for n, gpus in ((0, ""), (1, "0"), (3, "0,1,2"))
    },
    "no GPUs, though a share is listed": (
        ONE, [held("0:", gpus={"0": 1000})], [indexes("0 0 1"), indexes("'gpus' 0")]),
    "three GPUs and two shares": (
        PAIR, [held("0:0,1,2", gpus={"0": 1000, "1": 1000})], [indexes("0 3 2"), indexes("'gpus' 0 1 0 1 2")]),
    "a CPU worker": (CPU, [held("0:")], []),
    "a CPU worker with a GPU": (CPU, [held("0:0")], [indexes("0 1 0")]),
    "a CPU worker with a share": (
        CPU, [held("0:", gpus={"1": 1000})], [indexes("'gpus' 1")]),
    # gpu_indexes: each once; the lowest such GPU is named
    "a GPU twice of one worker": (PAIR, [held("0:3,3")], [indexes("3")]),
    "a GPU of two workers": (THREE, [held("0:2 1:1 2:2")], [indexes("2")]),
    "two GPUs of two workers": (job("a", workers=2, gpus=2), [held("0:2,1 1:2,1")], [indexes("1")]),
    # gpu_indexes: a share of each GPU held, and of no other
    "no share": (ONE, [held("0:0", gpus={})], [indexes("'gpus' 0")]),
    "a share of another": (ONE, [held("0:0", gpus={"1": 1000})], [indexes("'gpus' 1 0")]),
    "a share too many": (ONE, [held("0:0", gpus={"0": 1000, "1": 1000})], [indexes("'gpus' 0 1 0")]),
    "a share of another of two": (PAIR, [held("0:0,1", gpus={"0": 1000, "2": 1000})], [indexes("'gpus' 0 2 0 1")]),
    # gpu_indexes: of the four that the node has; the highest is named, of a pair and of two workers
    **{f"GPUs {a}, {b}": (PAIR, [held(f"0:{a},{b}")], [indexes(f"{most} 4")])
       for a, b, most in ((0, 4, 4), (3, 7, 7), (4, 5, 5))},
    **{
        f"GPUs {a}, {b} of two workers": (TWO, [held(f"0:{a} 1:{b}")], [indexes(f"{m} 4")])
        for a, b, m in ((0, 4, 4), (3, 7, 7), (4, 5, 5))
    },
    "GPUs 0 and 3": (PAIR, [held("0:0,3")], []),
    **{f"GPU {gpu} of one": (ONE, [held(f"0:{gpu}")], [indexes(f"{gpu} 4")]) for gpu in (4, 5)},
    "GPU 3 of one": (ONE, [held("0:3")], []),
    # gpu_indexes: a machine has no GPU -1, although a list has
    **{f"GPU -1 of {name}": (of, [held(on)], [indexes("-1 0")])
       for name, of, on in (("one", ONE, "0:-1"), ("a pair", PAIR, "0:3,-1"), ("two workers", TWO, "0:3 1:-1"))},
    **{f"GPU -2 of {name}": (of, [held(on)], [indexes("-2 0")])
       for name, of, on in (("a pair", PAIR, "0:-2,0"), ("two workers", TWO, "0:-2 1:0"))},
    "a share of GPU 4": (ONE, [held("0:0", gpus={"0": 1000, "4": 1000})], [indexes("'gpus' 0 4 0"), indexes("4 4")]),
    "a share of GPU -1": (
        ONE, [held("0:0", gpus={"0": 1000, "-1": 1000})], [indexes("'gpus' -1 0 0"), indexes("-1 0")]),
    # gpu_indexes: a key that is no number stands for no GPU, -1
    **{f"a share of {key!r}": (ONE, [held("0:0", gpus={key: 1000})], [indexes("'gpus' -1 0"), indexes("-1 0")])
       for key in ("x", "", "1.0")},
    **{f"a share of {key!r} and of GPU 1": (
        PAIR, [held("0:0,1", gpus={key: 1000, "1": 1000})], [indexes("'gpus' -1 1 0 1"), indexes("-1 0")])
       for key in ("x", "", "1.0")},
    # an unknown node has no GPUs to be judged by
    "an unknown node": (ONE, [held("0:9", "n9")], [told("unknown_node", "", "n9")]),
    "an unknown node of two": (
        job("a", workers=2, gpus=0), [held("0:"), held("1:", "n9")], [told("unknown_node", "", "n9")]),
    # gpu_milli: whole GPUs, of which 999 is too little; more than the whole only an unchecked record can hold
    **{f"999 of GPU {gpu}": (
        PAIR, [held("0:0,1", gpus={"0": 1000, "1": 1000, gpu: 999})], [told("gpu_milli", f"999 {gpu} 1000", "n0")])
       for gpu in ("0", "1")},
}  # fmt: skip
"""What job ``a`` holds on nodes of four GPUs, and all that is told."""


@pytest.mark.parametrize("name", CASES)
def test_form(name: str) -> None:
    a, assignments, expected = CASES[name]
    assert found(a, *assignments) == expected


def test_unknown_options() -> None:
    """The message lists what the job has; a second placement that is right changes nothing."""
    jobs = [job("a", options=(option("big", gpus=2), option("small"))), job("b")]
    wrong = placement(jobs[0], [("n0", [0])], option="small").model_copy(update={"option": "medium"})
    expected = [told("option", "'medium' 'big' 'small'")]
    assert faults(instance(2, jobs), {"a": wrong, "b": [("n0", [1])]}) == expected


@pytest.mark.parametrize(("least", "expected"), [(None, []), (8, [told("option", "'y' 7 8")])])
def test_the_option_that_is_named_counts(least: int | None, expected: list[Finding]) -> None:
    """The second of three: its demand and its utility, not the first's."""
    shapes = (option("x", gpus=3), option("y", gpus=2, utility_thousandths=7), option("z"))
    a = job("a", options=shapes, utility_min_thousandths=least)
    assert faults(instance(1, [a]), {"a": placement(a, [("n0", [0, 1])], option="y")}) == expected


@pytest.mark.parametrize(
    ("least", "count", "wanted"), [(None, 2, "3"), (None, 4, "3"), (2, 1, "2 3"), (2, 4, "2 3"), (3, 2, "3")]
)
def test_number_of_workers(least: int | None, count: int, wanted: str) -> None:
    """A fixed number is one number, a range is both; ``workers_min`` = ``workers`` is a fixed number."""
    a = job("a", workers=3, workers_min=least)
    several = {n: held(" ".join(f"{i}:{i}" for i in range(n))) for n in range(1, 5)}
    assert found(a, several[count]) == [told("workers", f"{count} 'default' {wanted}")]
    assert all(found(a, several[right]) == [] for right in range(3 if least is None else least, 4))


def test_more_than_a_whole_gpu() -> None:
    """Only an unchecked record can hold it."""
    assert found(PAIR, held("0:0,1", gpus={"0": 1000, "1": 1001}))[0] == told("gpu_milli", "1001 1 1000", "n0")


@pytest.mark.parametrize(
    ("milli", "limit", "wanted"),
    [(299, None, "300"), (301, None, "300"), (299, 500, "300 500"), (501, 500, "300 500"), (300, 300, ""),
     (300, 500, "")],
)  # fmt: skip
def test_shares_between_request_and_limit(milli: int, limit: int | None, wanted: str) -> None:
    """Of one worker, and of the second of two; what is due within that is another rule (test_grant_rule)."""
    fields = {"gpu_milli": 300, "gpu_milli_limit": limit}
    policy = Policy(share_mode="overcommit", jobs_per_gpu_max=2)
    fault = [told("gpu_milli", f"{milli} 0 {wanted}", "n0")] if wanted else []
    assert found(job("a", **fields), held("0:0", gpus={"0": milli}), policy=policy) == fault
    two = held("0:1 1:0", gpus={"0": milli, "1": 300})
    assert found(job("a", workers=2, **fields), two, policy=policy) == fault


class TestAmounts:
    """CPU and memory are the number of workers on the node times the demand."""

    @pytest.mark.parametrize("field", ["cpu_millicores", "memory_mib"])
    @pytest.mark.parametrize("stated", [0, 499, 500, 501, 1000])
    def test_one_worker(self, field: str, stated: int) -> None:
        expected = [] if stated == 500 else [told("amounts", f"{stated} 1 500 500", "n0")]
        assert found(job("a", **{field: 500}), held("0:0", **{field: stated})) == expected

    @pytest.mark.parametrize("field", ["cpu_millicores", "memory_mib"])
    @pytest.mark.parametrize(("stated", "numbers"), [(1000, None), (500, "500 2 500 1000")])
    def test_two_workers_here_and_one_there(self, field: str, stated: int, numbers: str | None) -> None:
        """1000 and 500; the message names the field."""
        here, there = held("0:0 1:1", **{field: stated}), held("2:0", "n1", **{field: 500})
        expected = [] if numbers is None else [told("amounts", numbers, "n0")]
        assert found(job("a", workers=3, **{field: 500}), here, there) == expected

    def test_both_are_reported_in_order(self) -> None:
        """By their names in the file."""
        round_ = instance(1, [job("a", cpu_millicores=3, memory_mib=5)])
        plan = with_placement(round_, held("0:0"))
        assert findings(round_, plan) == [told("amounts", "0 1 3 3", "n0"), told("amounts", "0 1 5 5", "n0")]
        cpu, memory = violations(round_, plan)
        assert ": cpu_millicores is 0," in cpu.message
        assert ": memory_mib is 0," in memory.message


def test_faults_of_one_job_are_reported_in_the_order_of_its_assignments() -> None:
    """And of jobs in the order of the plan."""
    round_ = instance(2, [job("a", workers=2), job("b")], machines=[machine(gpus=1)])
    assert places(round_, {"b": [("n0", [2])], "a": [("n1", [1]), ("n9", [0])]}) == [
        ("gpu_indexes", "job 'b' on node 'n0'"),
        ("gpu_indexes", "job 'a' on node 'n1'"),
        ("unknown_node", "job 'a' on node 'n9'"),
    ]
