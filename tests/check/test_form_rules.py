"""Rules ``option``, ``workers``, ``unknown_node``, ``gpu_indexes``, ``gpu_milli`` and ``amounts``, at their edges."""

from typing import Any

import pytest

from helpers.plans import plan_for
from helpers.referee_messages import Finding, findings
from placeopt.build import instance, job, machine, option, placement
from placeopt.check import violations
from placeopt.model import Assignment, Instance, Job, Placement, Plan, Policy, WorkerGpus


def held(workers: list[tuple[int, list[int]]], node: str = "n0", **fields: Any) -> Assignment:
    """Let these workers (rank, GPUs) stand on a node, without any check; the shares are 1000 unless stated."""
    shares = {str(gpu): 1000 for _, gpus in workers for gpu in gpus}
    ranks = tuple(WorkerGpus.model_construct(rank=rank, gpus=tuple(gpus)) for rank, gpus in workers)
    own = {"node": node, "gpus": shares, "cpu_millicores": 0, "memory_mib": 0, "workers": ranks}
    return Assignment.model_construct(**{**own, **fields})


def with_placement(round_: Instance, *assignments: Assignment, option: str = "default") -> Plan:
    """Return a plan in which job ``a`` holds this."""
    mine = Placement.model_construct(job="a", option=option, assignments=assignments)
    plan = plan_for(round_, {"a": [("n0", [0])]})
    return plan.model_copy(update={"placements": (mine,)})


def found(a: Job, *assignments: Assignment, **fields: Any) -> list[Finding]:
    """Judge one job on two nodes."""
    round_ = instance(2, [a], **fields)
    return findings(round_, with_placement(round_, *assignments))


class TestOption:
    """One of the job's own, and not below its minimal utility."""

    def test_unknown(self) -> None:
        """The message lists what the job has; a second placement that is right changes nothing."""
        jobs = [job("a", options=(option("big", gpus=2), option("small"))), job("b")]
        round_ = instance(2, jobs)
        wrong = placement(jobs[0], [("n0", [0])], option="small").model_copy(update={"option": "medium"})
        plan = plan_for(round_, {"a": wrong, "b": [("n0", [1])]})
        assert findings(round_, plan) == [("option", "job 'a'", ["'medium'", "'big'", "'small'"])]

    def test_the_option_that_is_named_counts(self) -> None:
        """The second of three: its demand, not the first's."""
        a = job("a", options=(option("x", gpus=3), option("y", gpus=2, utility_thousandths=7), option("z")))
        round_ = instance(1, [a])
        assert findings(round_, plan_for(round_, {"a": placement(a, [("n0", [0, 1])], option="y")})) == []
        poor = instance(1, [a.model_copy(update={"utility_min_thousandths": 8})])
        assert findings(poor, plan_for(poor, {"a": placement(a, [("n0", [0, 1])], option="y")})) == [
            ("option", "job 'a'", ["'y'", "7", "8"])
        ]

    @pytest.mark.parametrize(("utility", "least"), [(0, None), (None, 5), (5, 5)])
    def test_unknown_utility_and_no_minimum(self, utility: int | None, least: int | None) -> None:
        assert found(job("a", utility_thousandths=utility, utility_min_thousandths=least), held([(0, [0])])) == []

    def test_utility_0_is_below_1(self) -> None:
        a = job("a", utility_thousandths=0, utility_min_thousandths=1)
        assert found(a, held([(0, [0])])) == [("option", "job 'a'", ["'default'", "0", "1"])]


class TestWorkers:
    """Their number, their ranks, their nodes."""

    @pytest.mark.parametrize(
        ("least", "count", "wanted"),
        [(None, 2, ["3"]), (None, 4, ["3"]), (2, 1, ["2", "3"]), (2, 4, ["2", "3"]), (3, 2, ["3"])],
    )
    def test_number(self, least: int | None, count: int, wanted: list[str]) -> None:
        """A fixed number is one number, a range is both; ``workers_min`` = ``workers`` is a fixed number."""
        a = job("a", workers=3, workers_min=least)
        expected = [("workers", "job 'a'", [str(count), "'default'", *wanted])]
        assert found(a, held([(i, [i]) for i in range(count)])) == expected
        for right in range(3 if least is None else least, 4):
            assert found(a, held([(i, [i]) for i in range(right)])) == []

    def test_an_elastic_job_of_one_worker(self) -> None:
        """1 to 2 workers, one of them: well formed; a fixed job of two is not."""
        assert found(job("a", workers=2, workers_min=1), held([(0, [0])])) == []
        assert [rule for rule, *_ in found(job("a", workers=2), held([(0, [0])]))] == ["workers"]
        assert [rule for rule, *_ in found(job("a"), held([(0, [0]), (1, [1])]))] == ["workers"]

    def test_two_workers_for_one(self) -> None:
        """On two nodes, and on one without GPUs: in all else they look like one."""
        two = [("workers", "job 'a'", ["2", "'default'", "1"])]
        assert found(job("a"), held([(0, [0])]), held([(1, [0])], "n1")) == two
        assert found(job("a", gpus=0), held([(0, []), (1, [])])) == two
        assert found(job("a", gpus=0), held([(0, [])]), held([(1, [])], "n1")) == two

    def test_an_assignment_without_workers(self) -> None:
        """Only an unchecked record can be one; beside another assignment, and alone."""
        nobody = ("workers", "job 'a' on node 'n0'", [])
        assert found(job("a", gpus=0), held([]), held([(0, [])], "n1")) == [nobody]
        assert found(job("a", gpus=0), held([])) == [("workers", "job 'a'", ["0", "'default'", "1"]), nobody]

    @pytest.mark.parametrize("ranks", [(0, 1, 1), (0, 0, 2), (1, 2, 3), (0, 1, 3), (0, 2, 2)])
    def test_ranks_of_three(self, ranks: tuple[int, ...]) -> None:
        """Once each, from 0; in whatever order and on whatever nodes they are written."""
        a = job("a", workers=3)
        faults = [("workers", "job 'a'", ["3", "0", "2"])]
        assert found(a, held([(rank, [i]) for i, rank in enumerate(ranks)])) == faults
        assert found(a, held([(2, [0]), (0, [1])]), held([(1, [0])], "n1")) == []

    @pytest.mark.parametrize("ranks", [(0, 0), (1, 1), (1, 2), (0, 2), (-1, 1)])
    def test_ranks_of_two(self, ranks: tuple[int, int]) -> None:
        a = job("a", workers=2)
        assert found(a, held([(ranks[0], [0]), (ranks[1], [1])])) == [("workers", "job 'a'", ["2", "0", "1"])]

    @pytest.mark.parametrize("rank", [1, -1])
    def test_rank_of_one(self, rank: int) -> None:
        assert found(job("a"), held([(rank, [0])])) == [("workers", "job 'a'", ["1", "0", "0"])]

    def test_a_node_in_two_assignments(self) -> None:
        """Of two and of three; two different nodes are no fault."""
        a = job("a", workers=3)
        parts = [held([(0, [0])]), held([(1, [0])], "n1"), held([(2, [1])])]
        assert found(a, *parts) == [("workers", "job 'a'", [])]
        assert found(a, *parts[:2], held([(2, [1])], "n1")) == [("workers", "job 'a'", [])]
        assert found(job("a", workers=2), *parts[:2]) == []


class TestGpuIndexes:
    """As many GPUs as the worker needs, each once, of those the node has, with a share each."""

    @pytest.mark.parametrize("gpus", [[], [0], [0, 1, 2]])
    def test_number(self, gpus: list[int]) -> None:
        """Two needed; of a single worker, and of the second of two, which is named by its rank."""
        one = [("gpu_indexes", "job 'a' on node 'n0'", ["0", str(len(gpus)), "2"])]
        assert found(job("a", gpus=2), held([(0, gpus)])) == one
        two = [("gpu_indexes", "job 'a' on node 'n1'", ["1", str(len(gpus)), "2"])]
        assert found(job("a", workers=2, gpus=2), held([(0, [1, 3])]), held([(1, gpus)], "n1")) == two

    def test_no_gpus_although_shares_are_listed(self) -> None:
        """As many shares as GPUs are needed, of no worker; and a worker of three with two shares."""
        assert found(job("a"), held([(0, [])], gpus={"0": 1000})) == [
            ("gpu_indexes", "job 'a' on node 'n0'", ["0", "0", "1"]),
            ("gpu_indexes", "job 'a' on node 'n0'", ["'gpus'", "0"]),
        ]
        assert found(job("a", gpus=2), held([(0, [0, 1, 2])], gpus={"0": 1000, "1": 1000})) == [
            ("gpu_indexes", "job 'a' on node 'n0'", ["0", "3", "2"]),
            ("gpu_indexes", "job 'a' on node 'n0'", ["'gpus'", "0", "1", "0", "1", "2"]),
        ]

    def test_a_cpu_worker_holds_none(self) -> None:
        cpu = job("a", gpus=0)
        assert found(cpu, held([(0, [])])) == []
        expected = [("gpu_indexes", "job 'a' on node 'n0'", ["0", "1", "0"])]
        shares = [("gpu_milli", "job 'a' on node 'n0'", ["1000", "0", "1000"])]
        assert [fault for fault in found(cpu, held([(0, [0])])) if fault not in shares] == expected
        listed = found(cpu, held([(0, [])], gpus={"1": 1000}))
        assert ("gpu_indexes", "job 'a' on node 'n0'", ["'gpus'", "1"]) in listed

    def test_a_gpu_held_twice(self) -> None:
        """By one worker and by two; the lowest such GPU is named. The share is listed once."""
        assert found(job("a", gpus=2), held([(0, [3, 3])])) == [("gpu_indexes", "job 'a' on node 'n0'", ["3"])]
        three = held([(0, [2]), (1, [1]), (2, [2])])
        assert found(job("a", workers=3), three) == [("gpu_indexes", "job 'a' on node 'n0'", ["2"])]
        four = held([(0, [2, 1]), (1, [2, 1])])
        assert found(job("a", workers=2, gpus=2), four) == [("gpu_indexes", "job 'a' on node 'n0'", ["1"])]

    @pytest.mark.parametrize(("gpus", "listed"), [({}, []), ({"1": 1000}, ["1"]), ({"0": 1000, "1": 1000}, ["0", "1"])])
    def test_shares_are_of_the_gpus_held(self, gpus: dict[str, int], listed: list[str]) -> None:
        """The worker holds GPU 0."""
        expected = [("gpu_indexes", "job 'a' on node 'n0'", ["'gpus'", *listed, "0"])]
        assert found(job("a"), held([(0, [0])], gpus=gpus)) == expected

    def test_shares_of_a_worker_of_two(self) -> None:
        """Holds 0 and 1; shares of 0 and 2."""
        wrong = held([(0, [0, 1])], gpus={"0": 1000, "2": 1000})
        expected = [("gpu_indexes", "job 'a' on node 'n0'", ["'gpus'", "0", "2", "0", "1"])]
        assert found(job("a", gpus=2), wrong) == expected

    @pytest.mark.parametrize(("gpus", "first"), [([0, 4], "4"), ([3, 7], "7"), ([4, 5], "5")])
    def test_the_node_has_four(self, gpus: list[int], first: str) -> None:
        """The highest is named; 0 to 3 are there."""
        assert found(job("a", gpus=2), held([(0, gpus)])) == [("gpu_indexes", "job 'a' on node 'n0'", [first, "4"])]
        assert found(job("a", gpus=2), held([(0, [0, 3])])) == []
        apart = held([(0, gpus[:1]), (1, gpus[1:])])
        assert found(job("a", workers=2), apart) == [("gpu_indexes", "job 'a' on node 'n0'", [first, "4"])]

    @pytest.mark.parametrize("gpu", [4, 5])
    def test_of_one_gpu(self, gpu: int) -> None:
        assert found(job("a"), held([(0, [gpu])])) == [("gpu_indexes", "job 'a' on node 'n0'", [str(gpu), "4"])]
        assert found(job("a"), held([(0, [3])])) == []

    @pytest.mark.parametrize("gpus", [[-1], [-2, 0], [3, -1]])
    def test_indexes_begin_with_0(self, gpus: list[int]) -> None:
        """A machine has no GPU -1, although a list has."""
        expected = [("gpu_indexes", "job 'a' on node 'n0'", [str(min(gpus)), "0"])]
        assert found(job("a", gpus=len(gpus)), held([(0, gpus)])) == expected
        workers = [(i, [gpu]) for i, gpu in enumerate(gpus)]
        assert found(job("a", workers=len(gpus)), held(workers)) == expected

    def test_shares_of_gpus_that_are_not_there(self) -> None:
        """The worker holds GPU 0, the list names 4 and -1 as well."""
        for gpu, numbers in (("4", ["4", "4"]), ("-1", ["-1", "0"])):
            wrong = held([(0, [0])], gpus={"0": 1000, gpu: 1000})
            listed = sorted([0, int(gpu)])
            assert found(job("a"), wrong) == [
                ("gpu_indexes", "job 'a' on node 'n0'", ["'gpus'", *map(str, listed), "0"]),
                ("gpu_indexes", "job 'a' on node 'n0'", numbers),
            ]

    @pytest.mark.parametrize("key", ["x", "", "1.0"])
    def test_a_key_that_is_no_number(self, key: str) -> None:
        """Stands for no GPU: -1, of a worker of one GPU and of one of two."""
        assert found(job("a"), held([(0, [0])], gpus={key: 1000})) == [
            ("gpu_indexes", "job 'a' on node 'n0'", ["'gpus'", "-1", "0"]),
            ("gpu_indexes", "job 'a' on node 'n0'", ["-1", "0"]),
        ]
        two = held([(0, [0, 1])], gpus={key: 1000, "1": 1000})
        assert found(job("a", gpus=2), two) == [
            ("gpu_indexes", "job 'a' on node 'n0'", ["'gpus'", "-1", "1", "0", "1"]),
            ("gpu_indexes", "job 'a' on node 'n0'", ["-1", "0"]),
        ]

    def test_an_unknown_node_has_no_gpus_to_be_judged_by(self) -> None:
        assert found(job("a"), held([(0, [9])], "n9")) == [("unknown_node", "job 'a' on node 'n9'", [])]
        two = job("a", workers=2, gpus=0)
        assert found(two, held([(0, [])]), held([(1, [])], "n9")) == [("unknown_node", "job 'a' on node 'n9'", [])]


class TestShares:
    """Between request and limit, both included."""

    @pytest.mark.parametrize(
        ("milli", "limit", "wanted"),
        [
            (299, None, ["300"]),
            (301, None, ["300"]),
            (299, 500, ["300", "500"]),
            (501, 500, ["300", "500"]),
            (300, 300, None),
            (300, 500, None),
        ],
    )
    def test_one_gpu(self, milli: int, limit: int | None, wanted: list[str] | None) -> None:
        """Of one worker, and of the second of two; what is due within that is another rule (test_grant_rule)."""
        a = {"gpu_milli": 300, "gpu_milli_limit": limit}
        policy = Policy(share_mode="overcommit", jobs_per_gpu_max=2)
        fault = [] if wanted is None else [("gpu_milli", "job 'a' on node 'n0'", [str(milli), "0", *wanted])]
        assert found(job("a", **a), held([(0, [0])], gpus={"0": milli}), policy=policy) == fault
        two = held([(0, [1]), (1, [0])], gpus={"0": milli, "1": 300})
        assert found(job("a", workers=2, **a), two, policy=policy) == fault

    def test_each_gpu_of_a_worker_of_two(self) -> None:
        """Whole GPUs: 999 of either is too little."""
        for gpu in ("0", "1"):
            wrong = held([(0, [0, 1])], gpus={"0": 1000, "1": 1000, gpu: 999})
            assert found(job("a", gpus=2), wrong) == [("gpu_milli", "job 'a' on node 'n0'", ["999", gpu, "1000"])]

    def test_more_than_a_whole_gpu(self) -> None:
        """Only an unchecked record can hold it."""
        wrong = held([(0, [0, 1])], gpus={"0": 1000, "1": 1001})
        faults = found(job("a", gpus=2), wrong)
        assert faults[0] == ("gpu_milli", "job 'a' on node 'n0'", ["1001", "1", "1000"])


class TestAmounts:
    """CPU and memory are the number of workers on the node times the demand."""

    @pytest.mark.parametrize("field", ["cpu_millicores", "memory_mib"])
    @pytest.mark.parametrize("stated", [0, 499, 501, 1000])
    def test_one_worker(self, field: str, stated: int) -> None:
        a = job("a", **{field: 500})
        expected = [("amounts", "job 'a' on node 'n0'", [str(stated), "1", "500", "500"])]
        assert found(a, held([(0, [0])], **{field: stated})) == expected
        assert found(a, held([(0, [0])], **{field: 500})) == []

    @pytest.mark.parametrize("field", ["cpu_millicores", "memory_mib"])
    def test_two_workers_here_and_one_there(self, field: str) -> None:
        """1000 and 500; the message names the field."""
        a = job("a", workers=3, **{field: 500})
        right = [held([(0, [0]), (1, [1])], **{field: 1000}), held([(2, [0])], "n1", **{field: 500})]
        assert found(a, *right) == []
        wrong = held([(0, [0]), (1, [1])], **{field: 500})
        assert found(a, wrong, right[1]) == [("amounts", "job 'a' on node 'n0'", ["500", "2", "500", "1000"])]

    def test_both_are_reported_in_order(self) -> None:
        """By their names in the file."""
        a = job("a", cpu_millicores=3, memory_mib=5)
        round_ = instance(1, [a])
        plan = with_placement(round_, held([(0, [0])]))
        assert [numbers for _, _, numbers in findings(round_, plan)] == [
            ["0", "1", "3", "3"],
            ["0", "1", "5", "5"],
        ]
        cpu, memory = violations(round_, plan)
        assert ": cpu_millicores is 0," in cpu.message
        assert ": memory_mib is 0," in memory.message


def test_faults_of_one_job_are_reported_in_the_order_of_its_assignments() -> None:
    """And of jobs in the order of the plan."""
    jobs = [job("a", workers=2), job("b")]
    round_ = instance(2, jobs, machines=[machine(gpus=1)])
    plan = plan_for(round_, {"b": [("n0", [2])], "a": [("n1", [1]), ("n9", [0])]})
    assert [(rule, where) for rule, where, _ in findings(round_, plan)] == [
        ("gpu_indexes", "job 'b' on node 'n0'"),
        ("gpu_indexes", "job 'a' on node 'n1'"),
        ("unknown_node", "job 'a' on node 'n9'"),
    ]
