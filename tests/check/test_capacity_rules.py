"""What a GPU, a node, an uplink and a queue hold: at the edge, one above it, who is named, and what adds up."""

from typing import Any

import pytest

from helpers.plans import plan_for, with_assignment
from helpers.referee_messages import Finding, faults, findings, places, rules
from placeopt.build import instance, job, machine, node, placement, running
from placeopt.check import violations
from placeopt.model import Domain, Gpu, Instance, Plan, Policy, Queue, Quota, Usable


def at(*gpus: int, on: str = "n0") -> list[tuple[str, list[int]]]:
    return [(on, list(gpus))]


def on_gpu(rule: str, gpu: str, numbers: str) -> Finding:
    """Return what is told of a GPU, as ``n0 1``: the numbers and names of the message."""
    node, index = gpu.split()
    return rule, f"node '{node}' gpu {index}", numbers.split()


def share(milli: int) -> dict[str, int]:
    return {"gpu_milli": milli}


def need(mib: int) -> dict[str, int]:
    return {"gpu_milli": 500, "gpu_memory_mib": mib}


def mode(name: Any, most: int | None = None) -> dict[str, Policy]:
    return {"policy": Policy(share_mode=name, jobs_per_gpu_max=most)}


HALVES = {"a": (share(500), "n0:2"), "b": (share(500), "n0:2")}
THREE = {name: (share(1000), "n0:0") for name in "abc"}
UNEQUAL = {"machines": [machine(gpus=[Gpu(model="A", memory_mib=mib) for mib in (16_384, 16_384, 16_385)])]}
GPUS: dict[str, tuple[dict[str, tuple[dict[str, Any], str]], dict[str, Any], list[Finding]]] = {
    # not the holders of other GPUs of the node, nor of the same GPU of another node
    "the holders of that GPU are named": (
        {name: (share(600), on) for name, on in zip("abcd", ("n0:0", "n0:1", "n1:1", "n0:1"), strict=True)}, {},
        [on_gpu("gpu_share", "n0 1", "1200 1000 'b' 'd'")]),
    # in the order of the plan; a GPU that is not there and a full one are none of them
    "every GPU of every node is judged": (
        {"x": ({}, "n2:9"), "p0": (share(501), "n0:0"), "p1": (share(501), "n0:0"), "q0": (share(501), "n2:1"),
         "q1": (share(501), "n2:1"), "r0": (share(501), "n2:2"), "r1": (share(501), "n2:2"), "whole": ({}, "n2:3")}, {},
        [("gpu_indexes", "job 'x' on node 'n2'", ["9", "4"]), on_gpu("gpu_share", "n0 0", "1002 1000 'p0' 'p1'"),
         on_gpu("gpu_share", "n2 1", "1002 1000 'q0' 'q1'"), on_gpu("gpu_share", "n2 2", "1002 1000 'r0' 'r1'")]),
    # two halves on a GPU; the sum is in order in every mode
    "two, exclusive": (HALVES, mode("exclusive"), [on_gpu("gpu_exclusive", "n0 2", "2 1 'a' 'b'")]),
    "two, exclusive of one": (HALVES, mode("exclusive", 1), [on_gpu("gpu_exclusive", "n0 2", "2 1 'a' 'b'")]),
    "two fractions of one": (HALVES, mode("fraction", 1), [on_gpu("gpu_jobs", "n0 2", "2 1 'a' 'b'")]),
    "two overcommitted of one": (HALVES, mode("overcommit", 1), [on_gpu("gpu_jobs", "n0 2", "2 1 'a' 'b'")]),
    "two fractions of two": (HALVES, mode("fraction", 2), []),
    "two overcommitted of two": (HALVES, mode("overcommit", 2), []),
    "two fractions of any number": (HALVES, mode("fraction"), []),
    # the sum binds unless GPUs are overcommitted: three whole jobs on a GPU
    "three fractions of two": (
        THREE, mode("fraction", 2),
        [on_gpu("gpu_share", "n0 0", "3000 1000 'a' 'b' 'c'"), on_gpu("gpu_jobs", "n0 0", "3 2 'a' 'b' 'c'")]),
    "three overcommitted of two": (THREE, mode("overcommit", 2), [on_gpu("gpu_jobs", "n0 0", "3 2 'a' 'b' 'c'")]),
    "three overcommitted of three": (THREE, mode("overcommit", 3), []),
    "three, exclusive": (
        THREE, mode("exclusive"),
        [on_gpu("gpu_share", "n0 0", "3000 1000 'a' 'b' 'c'"), on_gpu("gpu_exclusive", "n0 0", "3 1 'a' 'b' 'c'")]),
    # memory of each GPU: 8192 + 8193 of 16384; 16384 fits, beside who needs none, 16385 on a larger one alone
    "memory of two": (
        {"a": (need(8192), "n0:1"), "b": (need(8193), "n0:1"), "c": (need(16_384), "n0:0"), "d": (need(16_385), "n0:2"),
         "none": (share(500), "n0:0")}, UNEQUAL, [on_gpu("gpu_memory", "n0 1", "16385 16384 'a' 'b'")]),
    "memory of one": ({"d": (need(16_385), "n0:0")}, UNEQUAL, [on_gpu("gpu_memory", "n0 0", "16385 16384 'd'")]),
    # too many without a need on a GPU of unknown memory are too many, and nothing is said of memory
    "unknown memory": (
        {"a": ({}, "n0:0"), "b": ({}, "n0:0")}, {"machines": [machine(gpus=[Gpu(model="A")])]},
        [on_gpu("gpu_share", "n0 0", "2000 1000 'a' 'b'")]),
    "memory of a gang on each of its GPUs": (
        {"a": ({"gpus": 2, "gpu_memory_mib": 16_385}, "n0:1,3")}, {},
        [on_gpu("gpu_memory", f"n0 {gpu}", "16385 16384 'a'") for gpu in (1, 3)]),
    "all faults of a GPU": (
        {name: ({"gpu_memory_mib": 10_000}, "n0:0") for name in "ab"}, mode("fraction", 1),
        [on_gpu(rule, "n0 0", f"{numbers} 'a' 'b'") for rule, numbers in (
            ("gpu_share", "2000 1000"), ("gpu_jobs", "2 1"), ("gpu_memory", "20000 16384"))]),
}  # fmt: skip
"""Fields and GPUs of each job, cluster or policy, and what is told."""


@pytest.mark.parametrize("name", GPUS)
def test_gpus(name: str) -> None:
    """``gpu_exclusive``, ``gpu_share``, ``gpu_jobs``, ``gpu_memory``."""
    jobs, fields, expected = GPUS[name]
    round_ = instance(3, [job(name, **own) for name, (own, _) in jobs.items()], **fields)
    where = {name: on.split(":") for name, (_, on) in jobs.items()}
    placed = {name: [(node, [int(gpu) for gpu in gpus.split(",")])] for name, (node, gpus) in where.items()}
    assert faults(round_, placed) == expected


def test_requests_count_not_what_is_granted() -> None:
    """Request 300, granted 700: 700 are left for others, not 701."""
    jobs = [job("a", gpu_milli=300, gpu_milli_limit=700), job("b", gpu_milli=700), job("c", gpu_milli=701)]
    round_, over = instance(1, jobs), on_gpu("gpu_share", "n0 0", "1001 1000 'a' 'c'")
    assert faults(round_, {"a": at(0), "b": at(0)}) == []
    assert faults(round_, {"a": at(0), "c": at(0)}) == [over]
    assert faults(round_, {"a": placement(jobs[0], at(0), milli=700), "c": at(0)})[0] == over


def test_a_gpu_that_is_listed_without_a_worker_is_held() -> None:
    """It was once subtracted from what others hold there."""
    round_ = instance(1, [job("a"), job("b")])
    plan = with_assignment(plan_for(round_, {"a": at(0), "b": at(0)}), workers=())
    assert "gpu_share" in [violation.rule for violation in violations(round_, plan)]


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
        assert "32001 of 32000 millicores of CPU held" in cpu.message
        assert "262145 of 262144 MiB of memory held" in memory.message

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

    @pytest.mark.parametrize("stated", [0, 600, 601])
    @pytest.mark.parametrize(("field", "rule"), [("cpu_millicores", "cpu"), ("memory_mib", "memory")])
    def test_what_the_workers_need_counts(self, field: str, rule: str, stated: int) -> None:
        """A plan that states too little does not free anything; what it states is judged by rule ``amounts``."""
        round_ = instance(1, [job("a", **{field: 600}), job("b", **{field: 401})], machines=[machine(**{field: 1000})])
        lie = with_assignment(plan_for(round_, {"a": at(0), "b": at(1)}), **{field: stated})
        assert (rule, "node 'n0'", ["1001", "1000", "'a'", "'b'"]) in findings(round_, lie)

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
    assert f"MB/s for {word} jobs held by job 'a'" in first.message


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
            ("queue_quota", "queue 'y'", ["2000", "1999", "1999", "0", "'j-y'"]),
            ("queue_quota", "queue 'y'", ["10", "9", "9", "0", "'j-y'"]),
            ("queue_quota", "queue 'y'", ["10", "9", "9", "0", "'j-y'"]),
        ]

    @pytest.mark.parametrize(("field", "amount"), [("gpu_milli", 2000), ("cpu_millicores", 7), ("memory_mib", 7)])
    def test_quota_plus_what_is_borrowed_of_the_same_resource(self, field: str, amount: int) -> None:
        """What is borrowed on top of no limit is no limit."""
        quota, numbers = Quota(**{field: amount - 5}), [*map(str, (amount, amount - 1, amount - 5, 4)), "'j-q'"]
        short = ("queue_quota", "queue 'q'", numbers)
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
        assert found == [("queue_share", "queue 'q'", [*of_resource, "'j-q'"]) for of_resource in numbers]

    def test_the_total_is_of_the_nodes_there_are(self) -> None:
        """Machines count as often as nodes stand in them: 4 + 1 + 1 GPUs, of which 50 % are 3000."""
        kinds = [machine("big"), machine("small", 1), machine("unused", 100)]
        nodes = [node("n0", "big"), node("n1", "small"), node("n2", "small")]
        queues = (Queue(id="q", dominant_share_percent=50),)
        jobs = [job("a", queue="q", gpus=3), job("b", queue="q", gpu_milli=1)]
        round_ = instance(nodes, jobs, machines=kinds, policy=Policy(queues=queues))
        assert faults(round_, {"a": at(0, 1, 2)}) == []
        over = faults(round_, {"a": at(0, 1, 2), "b": at(3)})
        assert over == [("queue_share", "queue 'q'", ["3001", "50", "6000", "'a'", "'b'"])]

    @pytest.mark.parametrize(
        ("quota", "expected"), [(600, []), (599, [("queue_quota", "queue 'q'", ["600", "599", "599", "0", "'a'"])])]
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
        assert faults(round_, {"a": at(2)}) == [
            ("queue_quota", "queue 'q'", ["3000", "2500", "2500", "0", "'r'", "'a'"])
        ]


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
