"""What a GPU, a node, an uplink and a queue hold: at the edge, one above it, who is named, and what adds up."""

from typing import Any

import pytest

from helpers.plans import plan_for, with_assignment
from helpers.referee_messages import Finding, faults, findings, places, rules
from placeopt.build import instance, job, machine, node, placement, running
from placeopt.check import violations
from placeopt.model import Domain, Gpu, Instance, Plan, Policy, Queue, Quota, Usable

HALF = {"gpu_milli": 500}


def at(*gpus: int, on: str = "n0") -> list[tuple[str, list[int]]]:
    return [(on, list(gpus))]


class TestGpus:
    """``gpu_exclusive``, ``gpu_share``, ``gpu_jobs``, ``gpu_memory``."""

    def test_the_holders_of_that_gpu_are_named(self) -> None:
        """Not those of other GPUs of the node, nor of the same GPU of another node."""
        jobs = [job(name, gpu_milli=600) for name in "abcd"]
        round_ = instance(2, jobs)
        plan = plan_for(round_, {"a": at(0), "b": at(1), "c": at(1, on="n1"), "d": at(1)})
        assert findings(round_, plan) == [("gpu_share", "node 'n0' gpu 1", ["1200", "1000", "'b'", "'d'"])]

    def test_every_gpu_of_every_node_is_judged(self) -> None:
        """A GPU that is not there, a full one and a node in order come before those that are not."""
        jobs = [job("x"), *(job(f"{name}{i}", gpu_milli=501) for name in "pqr" for i in range(2)), job("whole")]
        round_ = instance(3, jobs)
        placed = {"x": at(9, on="n2"), "whole": at(3, on="n2"), "p0": at(0), "p1": at(0)}
        placed |= {"q0": at(1, on="n2"), "q1": at(1, on="n2"), "r0": at(2, on="n2"), "r1": at(2, on="n2")}
        assert places(round_, placed) == [
            ("gpu_indexes", "job 'x' on node 'n2'"),
            ("gpu_share", "node 'n2' gpu 1"),
            ("gpu_share", "node 'n2' gpu 2"),
            ("gpu_share", "node 'n0' gpu 0"),
        ]

    @pytest.mark.parametrize(
        ("mode", "most", "expected"),
        [
            ("exclusive", None, [("gpu_exclusive", "node 'n0' gpu 2", ["2", "1", "'a'", "'b'"])]),
            ("exclusive", 1, [("gpu_exclusive", "node 'n0' gpu 2", ["2", "1", "'a'", "'b'"])]),
            ("fraction", 1, [("gpu_jobs", "node 'n0' gpu 2", ["2", "1", "'a'", "'b'"])]),
            ("overcommit", 1, [("gpu_jobs", "node 'n0' gpu 2", ["2", "1", "'a'", "'b'"])]),
            ("fraction", 2, []),
            ("overcommit", 2, []),
            ("fraction", None, []),
        ],
    )
    def test_number_of_jobs(self, mode: Any, most: int | None, expected: list[Finding]) -> None:
        """Two halves on a GPU; the sum is in order in every mode."""
        round_ = instance(1, [job("a", **HALF), job("b", **HALF)])
        policy = Policy(share_mode=mode, jobs_per_gpu_max=most)
        assert faults(round_, {"a": at(2), "b": at(2)}, policy=policy) == expected

    @pytest.mark.parametrize(
        ("mode", "most", "expected"),
        [
            ("fraction", 2, ["gpu_jobs", "gpu_share"]),
            ("overcommit", 2, ["gpu_jobs"]),
            ("overcommit", 3, []),
            ("exclusive", None, ["gpu_exclusive"]),
        ],
    )
    def test_the_sum_binds_in_fraction_mode_only(self, mode: Any, most: int | None, expected: list[str]) -> None:
        """Three whole jobs on a GPU; in exclusive mode only their number is told."""
        round_ = instance(1, [job(name) for name in "abc"])
        policy = Policy(share_mode=mode, jobs_per_gpu_max=most)
        assert rules(round_, {name: at(0) for name in "abc"}, policy=policy) == expected

    def test_requests_count_not_what_is_granted(self) -> None:
        """Request 300, granted 700: 700 are left for others, not 701."""
        jobs = [job("a", gpu_milli=300, gpu_milli_limit=700), job("b", gpu_milli=700), job("c", gpu_milli=701)]
        round_ = instance(1, jobs)
        assert faults(round_, {"a": at(0), "b": at(0)}) == []
        over = ("gpu_share", "node 'n0' gpu 0", ["1001", "1000", "'a'", "'c'"])
        assert faults(round_, {"a": at(0), "c": at(0)}) == [over]
        big = placement(jobs[0], at(0), milli=700)
        assert faults(round_, {"a": big, "c": at(0)})[0] == over

    def test_memory_of_each_gpu(self) -> None:
        """8192 + 8193 of 16384 on GPU 1 of two; on GPU 0 a job of 16384 fits, of 16385 on a smaller one not."""
        jobs = [job(f"m{mib}", gpu_milli=500, gpu_memory_mib=mib) for mib in (8_192, 8_193, 16_384, 16_385)]
        jobs.append(job("none", gpu_milli=500))
        big = [Gpu(model="A", memory_mib=16_384), Gpu(model="A", memory_mib=16_384), Gpu(model="B", memory_mib=16_385)]
        round_ = instance(1, jobs, machines=[machine(gpus=big)])
        placed = {"m8192": at(1), "m8193": at(1), "m16384": at(0), "none": at(0), "m16385": at(2)}
        fault = [("gpu_memory", "node 'n0' gpu 1", ["16385", "16384", "'m8192'", "'m8193'"])]
        assert faults(round_, placed) == fault
        fault = [("gpu_memory", "node 'n0' gpu 0", ["16385", "16384", "'m16385'"])]
        assert faults(round_, {"m16385": at(0)}) == fault

    def test_jobs_without_a_memory_need_on_a_gpu_of_unknown_memory(self) -> None:
        """Too many of them are too many, and nothing is said of memory."""
        round_ = instance(1, [job("a"), job("b")], machines=[machine(gpus=[Gpu(model="A")])])
        assert rules(round_, {"a": at(0), "b": at(0)}) == ["gpu_share"]

    def test_memory_of_a_gang_counts_on_each_of_its_gpus(self) -> None:
        round_ = instance(1, [job("a", gpus=2, gpu_memory_mib=16_385)])
        assert [where for _, where in places(round_, {"a": at(1, 3)})] == ["node 'n0' gpu 1", "node 'n0' gpu 3"]

    def test_all_faults_of_a_gpu_are_reported(self) -> None:
        round_ = instance(1, [job(name, gpu_memory_mib=10_000) for name in "ab"])
        found = faults(round_, {"a": at(0), "b": at(0)}, policy=Policy(jobs_per_gpu_max=1))
        expected = [("gpu_jobs", "2", "1"), ("gpu_share", "2000", "1000"), ("gpu_memory", "20000", "16384")]
        assert [(rule, *numbers[:2]) for rule, _, numbers in found] == expected


class TestNodes:
    """``cpu``, ``memory``, ``memory_bandwidth``, ``pcie_bandwidth``, ``resource``."""

    def broken(self, jobs: dict[str, dict[str, Any]], **fields: Any) -> list[Finding]:
        """Put CPU jobs of one worker each on one of two nodes with these fields."""
        policy = Policy(usable=Usable(memory_bandwidth_percent=75, pcie_bandwidth_percent=90))
        cpus = [job(name, gpus=0, **demand) for name, demand in jobs.items()]
        round_ = instance(2, cpus, machines=[machine(**fields)], policy=policy)
        return faults(round_, {name: [("n1", [])] for name in jobs})

    @pytest.mark.parametrize(
        ("field", "rule", "numbers"),
        [
            ("cpu_millicores", "cpu", ["1001", "1000"]),
            ("memory_mib", "memory", ["1001", "1000"]),
            ("memory_bandwidth_mbps", "memory_bandwidth", ["751", "75", "1000"]),
            ("pcie_bandwidth_mbps", "pcie_bandwidth", ["901", "90", "1000"]),
        ],
    )
    def test_the_load_of_all_jobs(self, field: str, rule: str, numbers: list[str]) -> None:
        """500 and the rest; all are named."""
        rest = int(numbers[0]) - 500
        jobs = {"a": {field: 500}, "b": {field: rest}}
        assert self.broken(jobs, **{field: 1000}) == [(rule, "node 'n1'", [*numbers, "'a'", "'b'"])]
        assert self.broken({"a": {field: 500}, "b": {field: rest - 1}}, **{field: 1000}) == []

    def test_named_resources(self) -> None:
        """Each by itself, as many as all workers take; a node has none of what its machine does not name."""
        jobs = {"a": {"resources": {"lic": 2, "port": 1}}, "b": {"resources": {"lic": 1}}, "c": {"cpu_millicores": 1}}
        lic, port = ["3", "2", "'a'", "'b'"], ["1", "0", "'a'"]
        for there, expected in (
            ({"lic": 3, "port": 1}, []),
            ({"lic": 2, "port": 0}, [lic, port]),
            ({"lic": 3}, [port]),
        ):
            assert self.broken(jobs, resources=there) == [("resource", "node 'n1'", numbers) for numbers in expected]
        assert self.broken({"a": {"resources": {"dongle": 0}}}) == []

    @pytest.mark.parametrize(
        ("heavy", "capacity", "expected"),
        [
            (("memory_bandwidth", "pcie_bandwidth"), {}, []),
            (("memory_bandwidth", "pcie_bandwidth"), {"memory_bandwidth": 0, "pcie_bandwidth": 0},
             [("memory_bandwidth", "1", "75", "0"), ("pcie_bandwidth", "1", "90", "0")]),
            (("pcie_bandwidth",), {"pcie_bandwidth": 1}, [("pcie_bandwidth", "1", "90", "1")]),
            (("pcie_bandwidth",), {"pcie_bandwidth": 2}, []),
        ],
    )  # fmt: skip
    def test_what_is_not_stated_is_no_limit_and_what_is_0_is(
        self, heavy: tuple[str, ...], capacity: dict[str, int], expected: list[tuple[str, ...]]
    ) -> None:
        """A job of 1 MB/s."""
        demand = {f"{name}_mbps": 1 for name in heavy}
        found = self.broken({"a": demand}, **{f"{name}_mbps": mbps for name, mbps in capacity.items()})
        assert [(rule, *numbers[:3]) for rule, _, numbers in found] == expected

    def test_all_faults_of_a_node_are_reported(self) -> None:
        """In this order; the other node is fine."""
        fields = dict.fromkeys(("cpu_millicores", "memory_mib", "memory_bandwidth_mbps", "pcie_bandwidth_mbps"), 10)
        found = self.broken({"a": dict.fromkeys(fields, 11)}, **fields)
        expected = ("cpu", "memory", "memory_bandwidth", "pcie_bandwidth")
        assert [(rule, where) for rule, where, _ in found] == [(rule, "node 'n1'") for rule in expected]

    def test_units(self) -> None:
        """Amounts are told with their units."""
        round_ = instance(1, [job("a", cpu_millicores=32_001), job("b", memory_mib=262_145)])
        cpu, memory = violations(round_, plan_for(round_, {"a": at(0), "b": at(1)}))
        assert "32001 of 32000 millicores held" in cpu.message
        assert "262145 of 262144 MiB held" in memory.message

    @pytest.mark.parametrize(("capacity", "broken"), [(1002, 0), (1001, 4)])
    def test_workers_multiply(self, capacity: int, broken: int) -> None:
        """Three workers of 334 of each."""
        demand = {"cpu_millicores": 334, "memory_mib": 334, "memory_bandwidth_mbps": 334, "pcie_bandwidth_mbps": 334}
        policy = Policy(usable=Usable(memory_bandwidth_percent=100))
        kind = machine(**dict.fromkeys(demand, capacity))
        round_ = instance(1, [job("a", workers=3, gpus=0, **demand)], machines=[kind], policy=policy)
        assert len(rules(round_, {"a": [("n0", [])] * 3})) == broken

    def test_each_node_is_judged_by_its_own_machine(self) -> None:
        """A node in order before, one after, each of another type."""
        kinds = [machine("big"), machine("small", cpu_millicores=10, memory_mib=10)]
        nodes = [node("n0", "big"), node("n1", "small"), node("n2", "small")]
        jobs = [job(name, gpus=0, cpu_millicores=cpu) for name, cpu in (("a", 11), ("b", 10), ("c", 11))]
        placed = {name: [(f"n{i}", [])] for i, name in enumerate("abc")}
        assert faults(instance(nodes, jobs, machines=kinds), placed) == [("cpu", "node 'n2'", ["11", "10", "'c'"])]

    @pytest.mark.parametrize(("stated", "load"), [(0, "1001"), (600, "1001"), (601, "1002")])
    @pytest.mark.parametrize(("field", "rule"), [("cpu_millicores", "cpu"), ("memory_mib", "memory")])
    def test_the_larger_of_need_and_statement_counts(self, field: str, rule: str, stated: int, load: str) -> None:
        """A plan that states too little does not free anything, nor one that states too much."""
        round_ = instance(1, [job("a", **{field: 600}), job("b", **{field: 401})], machines=[machine(**{field: 1000})])
        lie = with_assignment(plan_for(round_, {"a": at(0), "b": at(1)}), **{field: stated})
        assert (rule, "node 'n0'", [load, "1000", "'a'", "'b'"]) in findings(round_, lie)

    @pytest.mark.parametrize(("count", "more"), [(4, []), (5, []), (6, ["1"]), (7, ["2"])])
    def test_five_are_named(self, count: int, more: list[str]) -> None:
        """Of more, the first five and how many there are beside them."""
        found = self.broken({f"j{i}": {"cpu_millicores": 2} for i in range(count)}, cpu_millicores=7)
        named = [f"'j{i}'" for i in range(min(count, 5))]
        assert found == [("cpu", "node 'n1'", [f"{2 * count}", "7", *named, *more])]


def uplink(where: str, load: int, part: int, of: int, *jobs: str) -> Finding:
    return "uplink", f"{where} uplink", [str(load), str(part), str(of), *(f"'{name}'" for name in jobs)]


Z, R0, R1 = "domain 'z'", "domain 'r0'", "domain 'r1'"
PARTS = {"policy": Policy(usable=Usable(network_gpu_jobs_percent=60, network_cpu_jobs_percent=30))}
BESIDE = {"g1": (1, 400, "04"), "home": (1, 900, "00"), "c1": (0, 200, "04")}
UPLINKS: dict[str, tuple[dict[str, tuple[int, int, str]], dict[str, Any], list[Finding]]] = {
    # three workers in r0, one in r1, two outside the zone; 750 of each domain are usable; at 300 MB/s each r0 carries
    # min(3, 3) x 300 = 900, r1 min(1, 5) x 300, the zone min(4, 2) x 300 = 600
    "every domain above carries what leaves it": ({"a": (1, 300, "001246")}, {}, [uplink(R0, 900, 75, 1000, "a")]),
    "also the zone": (
        {"a": (1, 376, "001246")}, {}, [uplink(Z, 752, 75, 1000, "a"), uplink(R0, 1128, 75, 1000, "a")]),
    # all in the zone, two and two in its racks: the zone carries nothing, whatever the bandwidth
    "what stays inside loads nothing": ({"a": (1, 375, "0123")}, {}, []),
    "what stays inside loads the racks": (
        {"a": (1, 10**9, "0123")}, {}, [uplink(R0, 2 * 10**9, 75, 1000, "a"), uplink(R1, 2 * 10**9, 75, 1000, "a")]),
    # three on n0, two on n6: min(3, 2) and min(2, 3) x 250 = 500 of 75 % of 666 = 499
    "machines have uplinks too": (
        {"a": (1, 250, "00066")}, {"mbps": 666}, [uplink(f"node '{n}'", 500, 75, 666, "a") for n in ("n0", "n6")]),
    "machines just carry it": ({"a": (1, 250, "00066")}, {"mbps": 667}, []),
    # GPU jobs 400 + 351, CPU jobs 200 + 51, of 750 and 250; one that stays on a node is not named
    "jobs add up by kind": (
        {**BESIDE, "g2": (1, 351, "16"), "c2": (0, 51, "14")}, {},
        [*(uplink(at, 751, 75, 1000, "g1", "g2") for at in (Z, R0)),
         *(uplink(at, 251, 25, 1000, "c1", "c2") for at in (Z, R0))]),
    "jobs of both kinds just fit": ({**BESIDE, "g2": (1, 350, "16"), "c2": (0, 50, "14")}, {}, []),
    # a leaves rack and zone, b its rack alone, c needs no bandwidth
    **{
        f"those that load it are named, {kind}": (
            {"c": (gpus, 0, "06"), "b": (gpus, 1, "12"), "a": (gpus, 751, "04")}, {},
            [uplink(R0, 752, part, 1000, "b", "a"), uplink(Z, 751, part, 1000, "a")])
        for gpus, part, kind in ((1, 75, "GPU"), (0, 25, "CPU"))
    },
    # the usable part is the policy's
    **{f"just {part} %": ({"a": (gpus, part * 10, "04")}, PARTS, []) for gpus, part in ((1, 60), (0, 30))},
    **{
        f"above {part} %": (
            {"a": (gpus, part * 10 + 1, "04")}, PARTS, [uplink(at, part * 10 + 1, part, 1000, "a") for at in (Z, R0)])
        for gpus, part in ((1, 60), (0, 30))
    },
    # a job without bandwidth loads nothing, not even an uplink of capacity 0
    "no bandwidth of none": ({"a": (1, 0, "06")}, {"mbps": 0}, []),
    "1 MB/s of none": ({"a": (1, 1, "06")}, {"mbps": 0}, [uplink(f"node '{n}'", 1, 75, 0, "a") for n in ("n0", "n6")]),
    # a node that is not there has no uplink; its workers are outside for the others: min(1, 2) x 751
    "a node that is not there": (
        {"a": (1, 751, "099")}, {},
        [("unknown_node", "job 'a' on node 'n9'", []), *(uplink(at, 751, 75, 1000, "a") for at in (Z, R0))]),
}  # fmt: skip
"""Jobs of (GPUs, MB/s, number of the node of each worker), bandwidth of machines or the policy, and what is told."""


def crossing(jobs: dict[str, tuple[int, int, str]], mbps: int | None = None, **fields: Any) -> tuple[Instance, Plan]:
    """Two racks in a zone, a rack outside, each of two nodes of 8 GPUs, and n6 in no domain; 1000 MB/s inside."""
    domains = (
        Domain(id="z", level="zone", uplink_mbps=1000),
        *(Domain(id=f"r{i}", parent="z", uplink_mbps=1000) for i in (0, 1)),
        Domain(id="r2"),
    )
    nodes = (*(node(f"n{i}", domain=f"r{i // 2}") for i in range(6)), node("n6"))
    records = [
        job(name, workers=len(on), gpus=gpus, gpu_milli=200 if gpus else 1000, network_bandwidth_mbps=each)
        for name, (gpus, each, on) in jobs.items()
    ]
    kinds = [machine(gpus=8, network_bandwidth_mbps=mbps)]
    round_ = instance(nodes, records, machines=kinds, domains=domains, **fields)
    placed = {name: [(f"n{n}", [i] if gpus else []) for i, n in enumerate(on)] for name, (gpus, _, on) in jobs.items()}
    return round_, plan_for(round_, placed)


@pytest.mark.parametrize("name", UPLINKS)
def test_uplinks(name: str) -> None:
    """The hose model on machines and domains."""
    jobs, fields, expected = UPLINKS[name]
    assert findings(*crossing(jobs, **fields)) == expected


@pytest.mark.parametrize(("gpus", "word"), [(1, "GPU"), (0, "CPU")])
def test_the_kind_of_jobs_on_an_uplink_is_told(gpus: int, word: str) -> None:
    first = violations(*crossing({"a": (gpus, 751, "04")}))[0]
    assert first.message.endswith(f"held by {word} job 'a'")


class TestQueues:
    """``queue_quota`` and ``queue_share``."""

    def judged(self, queues: tuple[Queue, ...], use: dict[str, dict[str, Any]], **fields: Any) -> list[Finding]:
        """Place one job of each queue, with GPUs as stated, on a node of its own."""
        jobs = [job(f"j-{name}", queue=name, **demand) for name, demand in use.items()]
        round_ = instance(len(jobs), jobs, policy=Policy(queues=queues), **fields)
        placed = {f"j-{n}": at(*range(use[n].get("gpus", 1)), on=f"n{i}") for i, n in enumerate(use)}
        return faults(round_, placed)

    def test_all_resources_of_all_queues(self) -> None:
        """Quotas of 1999, 9 and 9, nothing borrowed; 2 GPUs, 10 and 10 used. The other queue is at its limits."""
        tight, right = Quota(gpu_milli=1999, cpu_millicores=9, memory_mib=9), Quota(gpu_milli=2000, cpu_millicores=10)
        use = {"gpus": 2, "cpu_millicores": 10, "memory_mib": 10}
        queues = (Queue(id="x", quota=right), Queue(id="y", quota=tight), Queue(id="z", quota=right))
        assert self.judged(queues, {"x": use, "y": use, "z": use}) == [
            ("queue_quota", "queue 'y'", ["2000", "1999", "0"]),
            ("queue_quota", "queue 'y'", ["10", "9", "0"]),
            ("queue_quota", "queue 'y'", ["10", "9", "0"]),
        ]

    @pytest.mark.parametrize(("field", "amount"), [("gpu_milli", 2000), ("cpu_millicores", 7), ("memory_mib", 7)])
    def test_quota_plus_what_is_borrowed_of_the_same_resource(self, field: str, amount: int) -> None:
        """What is borrowed on top of no limit is no limit."""
        quota, short = Quota(**{field: amount - 5}), ("queue_quota", "queue 'q'", [str(amount), str(amount - 5), "4"])
        for of_queue, expected in (
            ({"quota": quota, "borrow": Quota(**{field: 5})}, []),
            ({"quota": quota, "borrow": Quota(**{field: 4})}, [short]),
            ({"borrow": Quota(**{field: 1})}, []),
        ):
            use = {"q": {"gpus": 2, "cpu_millicores": 7, "memory_mib": 7}}
            assert self.judged((Queue(id="q", **of_queue),), use) == expected

    @pytest.mark.parametrize(
        ("limit", "rule"),
        [({"quota": Quota(gpu_milli=0)}, "queue_quota"), ({"dominant_share_percent": 0}, "queue_share")],
    )
    def test_a_limit_of_0_is_one(self, limit: dict[str, Any], rule: str) -> None:
        assert [found for found, *_ in self.judged((Queue(id="q", **limit),), {"q": {}})] == [rule]

    def test_dominant_share_of_each_resource(self) -> None:
        """
        10 % and 15 % borrowed of two nodes: 8 GPUs, 64 cores, 512 GiB; a queue without a share has no limit.

        25 % are 2000 milli, 16000 millicores, 131072 MiB.
        """
        queues = (Queue(id="q", dominant_share_percent=10, borrow_percent=15), Queue(id="free"))
        free = {"gpus": 4, "cpu_millicores": 32_000, "memory_mib": 262_144}
        full = {"gpus": 2, "cpu_millicores": 16_000, "memory_mib": 131_072}
        assert self.judged(queues, {"q": full, "free": free}) == []
        found = self.judged(queues, {"q": {field: amount + 1 for field, amount in full.items()}, "free": free})
        numbers = (["3000", "25", "8000"], ["16001", "25", "64000"], ["131073", "25", "524288"])
        assert found == [("queue_share", "queue 'q'", of_resource) for of_resource in numbers]

    def test_the_total_is_of_the_nodes_there_are(self) -> None:
        """Machines count as often as nodes stand in them: 4 + 1 + 1 GPUs, of which 50 % are 3000."""
        kinds = [machine("big"), machine("small", 1), machine("unused", 100)]
        nodes = [node("n0", "big"), node("n1", "small"), node("n2", "small")]
        queues = (Queue(id="q", dominant_share_percent=50),)
        jobs = [job("a", queue="q", gpus=3), job("b", queue="q", gpu_milli=1)]
        round_ = instance(nodes, jobs, machines=kinds, policy=Policy(queues=queues))
        assert faults(round_, {"a": at(0, 1, 2)}) == []
        over = faults(round_, {"a": at(0, 1, 2), "b": at(3)})
        assert over == [("queue_share", "queue 'q'", ["3001", "50", "6000"])]

    @pytest.mark.parametrize(
        ("quota", "expected"), [(600, []), (599, [("queue_quota", "queue 'q'", ["600", "599", "0"])])]
    )
    def test_what_is_granted_does_not_count(self, quota: int, expected: list[Finding]) -> None:
        """Requests of 300 for each of two workers on two nodes, 500 granted each: 600."""
        a = job("a", queue="q", workers=2, gpu_milli=300, gpu_milli_limit=500)
        round_ = instance(2, [a], policy=Policy(queues=(Queue(id="q", quota=Quota(gpu_milli=quota)),)))
        assert faults(round_, {"a": placement(a, [("n0", [0]), ("n1", [0])], milli=500)}) == expected

    def test_jobs_of_queues_that_the_policy_does_not_have(self) -> None:
        """Judged by a policy of other queues, or of none: nothing to judge, and nothing is raised."""
        round_ = instance(1, [job("a", queue="q", gpus=4), job("b")], policy=Policy(queues=(Queue(id="q"),)))
        other = Policy(queues=(Queue(id="r", quota=Quota(gpu_milli=0)),))
        for policy in (other, Policy()):
            assert faults(round_, {"a": at(0, 1, 2, 3)}, policy=policy) == []

    def test_running_jobs_count(self) -> None:
        runs, policy = job("r", queue="q", gpus=2), Policy(queues=(Queue(id="q", quota=Quota(gpu_milli=2500)),))
        round_ = instance(1, [runs, job("a", queue="q")], running=[running(runs, at(0, 1))], policy=policy)
        assert faults(round_, {"a": at(2)}) == [("queue_quota", "queue 'q'", ["3000", "2500", "0"])]


def test_a_plan_for_some_jobs_adds_to_what_runs() -> None:
    """GPU, CPU, uplink and queue that running jobs use, without their standing in the plan."""
    fields = {"gpu_milli": 600, "cpu_millicores": 600, "network_bandwidth_mbps": 400, "queue": "q", "workers": 2}
    a, r, where = job("a", **fields), job("r", **fields), [("n0", [0]), ("n1", [0])]
    round_ = instance(
        [node("n0", domain="r0"), node("n1")],
        [a, r],
        domains=(Domain(id="r0", uplink_mbps=1000),),
        machines=[machine(cpu_millicores=1199)],
        running=[running(r, where)],
        policy=Policy(queues=(Queue(id="q", quota=Quota(gpu_milli=2399)),)),
    )
    assert places(round_, {"a": where}, asked="a") == [
        ("gpu_share", "node 'n0' gpu 0"),
        ("gpu_share", "node 'n1' gpu 0"),
        ("cpu", "node 'n0'"),
        ("cpu", "node 'n1'"),
        ("uplink", "domain 'r0' uplink"),
        ("queue_quota", "queue 'q'"),
    ]
