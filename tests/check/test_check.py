"""The referee: every rule has a plan that just keeps it and one that just breaks it, made by hand."""

import ast
import sys
from pathlib import Path
from typing import Any

import pytest

import placeopt.check as check_package
from helpers.plans import plan_for
from placeopt.build import instance, job, machine, node, option, placement, running
from placeopt.check import Violation, violations
from placeopt.model import (
    Changes,
    Domain,
    Gpu,
    Instance,
    Moved,
    Plan,
    Policy,
    Preempted,
    Queue,
    Quota,
    Shrunk,
    Split,
    Unplaced,
    Usable,
    WorkerGpus,
)


def rules(instance: Instance, plan: Plan) -> set[str]:
    """Names of the rules that ``plan`` breaks."""
    return {violation.rule for violation in violations(instance, plan)}


def changed(plan: Plan, job: str, **fields: Any) -> Plan:
    """Change fields of the first assignment of ``job``."""
    placements = []
    for held in plan.placements:
        if held.job == job:
            first = held.assignments[0].model_copy(update=fields)
            held = held.model_copy(update={"assignments": (first, *held.assignments[1:])})
        placements.append(held)
    return plan.model_copy(update={"placements": tuple(placements)})


def test_a_message_names_fault_place_and_numbers() -> None:
    """The wording is what people act upon; the numbers are 750 + 500 = 1250 by hand."""
    round_ = instance(4, [job("a", gpu_milli=750), job("b", gpu_milli=500)])
    plan = plan_for(round_, {"a": [("n3", [2])], "b": [("n3", [2])]})
    assert violations(round_, plan) == [
        Violation("gpu_share", "node 'n3' gpu 2", "node 'n3' gpu 2: 1250 of 1000 milli held by jobs 'a', 'b'")
    ]
    assert str(violations(round_, plan)[0]).endswith("jobs 'a', 'b' [gpu_share]")


def test_messages_stay_short_and_name_what_was_expected() -> None:
    """Five of seven jobs are named; a share has one right value or a range, a bandwidth its usable part."""
    seven = [job(f"j{i}", gpu_milli=200) for i in range(7)]
    round_ = instance(1, seven)
    plan = plan_for(round_, {f"j{i}": [("n0", [0])] for i in range(7)})
    assert [violation.message for violation in violations(round_, plan)] == [
        "node 'n0' gpu 0: 1400 of 1000 milli held by jobs 'j0', 'j1', 'j2', 'j3', 'j4' and 2 more"
    ]
    five = instance(1, [job(f"j{i}", gpu_milli=201) for i in range(5)])
    assert violations(five, plan_for(five, {f"j{i}": [("n0", [0])] for i in range(5)}))[0].message.endswith("'j4'")
    for limit, expected in ((None, "expected 200"), (300, "expected 200 to 300")):
        one = instance(1, [job("a", gpu_milli=200, gpu_milli_limit=limit)])
        found = violations(one, plan_for(one, {"a": placement(one.jobs[0], [("n0", [0])], milli=100)}))
        assert found[0].message == f"job 'a' on node 'n0': 100 milli of GPU 0, {expected}"
    for least, expected in ((None, "has 3"), (2, "has 2 to 3")):
        gang = instance(1, [job("a", workers=3, workers_min=least)])
        found = violations(gang, plan_for(gang, {"a": [("n0", [0])]}))
        assert found[0].message == f"job 'a': 1 workers, option 'default' {expected}"
    slow = instance(1, [job("a", memory_bandwidth_mbps=76)], machines=[machine(memory_bandwidth_mbps=100)])
    assert violations(slow, plan_for(slow, {"a": [("n0", [0])]}))[0].message == (
        "node 'n0': 76 of 75 % of 100 MB/s of memory bandwidth held by job 'a'"
    )
    small = instance(1, [job("a", cpu_millicores=11)], machines=[machine(cpu_millicores=10)])
    assert violations(small, plan_for(small, {"a": [("n0", [0])]}))[0].message == (
        "node 'n0': 11 of 10 millicores held by job 'a'"
    )


def test_the_referee_stands_on_the_model_alone() -> None:
    """No fault of compile, decode or solver can hide from a module that shares no code with them."""
    allowed = {"placeopt.model", "placeopt.check"}
    for path in Path(check_package.__file__).parent.glob("*.py"):
        for line in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [line.module or ""] if isinstance(line, ast.ImportFrom) else []
            names += [alias.name for alias in line.names] if isinstance(line, ast.Import) else []
            for name in names:
                assert name.split(".")[0] in sys.stdlib_module_names or ".".join(name.split(".")[:2]) in allowed


def test_a_copy_with_other_words_is_judged_by_its_words() -> None:
    """With ``since``, the same placements are not read again, but whoever waits is; other placements are read."""
    round_ = instance(1, [job("a"), job("b")])
    good = plan_for(round_, {"a": [("n0", [0])]})
    assert violations(round_, good) == []
    silent = good.model_copy(update={"unplaced": ()})
    assert {v.rule for v in violations(round_, silent, since=good)} == {"account"}
    broken = changed(good, "a", cpu_millicores=7)
    assert {v.rule for v in violations(round_, broken, since=good)} == {"amounts"}


def test_an_empty_plan_is_valid() -> None:
    """Leaving every job out breaks no hard constraint."""
    round_ = instance(1, [job("a"), job("b")])
    assert violations(round_, plan_for(round_, {})) == []


class TestAccount:
    """Every job once, of this instance, under this policy."""

    round = instance(2, [job("a"), job("b")], name="tiny", revision=3)

    @pytest.mark.parametrize("field", ["name", "digest", "revision"])
    def test_reference_to_the_instance(self, field: str) -> None:
        """A plan for another instance or snapshot is refused whatever it holds."""
        plan = plan_for(self.round, {"a": [("n0", [0])]})
        assert rules(self.round, plan) == set()
        other = plan.instance.model_copy(update={field: 4 if field == "revision" else "other"})
        assert rules(self.round, plan.model_copy(update={"instance": other})) == {"reference"}

    def test_digest_depends_on_content_not_on_spelling(self) -> None:
        """A copy with other content must not keep the digest that was computed before."""
        before = self.round.digest
        assert self.round.model_copy(update={"revision": 4}).digest != before
        one = instance([node("n", labels={"a": "1", "b": "2"})])
        two = instance([node("n", labels={"b": "2", "a": "1"})])
        assert one.digest == two.digest

    def test_digest_of_the_policy(self) -> None:
        """The policy's digest is that of the values in the plan."""
        plan = plan_for(self.round, {})
        for field in ("name", "digest"):
            other = plan.policy.model_copy(update={field: "other"})
            assert rules(self.round, plan.model_copy(update={"policy": other})) == {"reference"}

    def test_job_missing_twice_or_unknown(self) -> None:
        """Placements and unplaced together are exactly the jobs."""
        plan = plan_for(self.round, {"a": [("n0", [0])]})
        assert rules(self.round, plan.model_copy(update={"unplaced": ()})) == {"account"}
        twice = (*plan.unplaced, Unplaced(job="a", reason="conflict", detail=""))
        assert rules(self.round, plan.model_copy(update={"unplaced": twice})) == {"account"}
        unknown = (*plan.unplaced, Unplaced(job="zz", reason="conflict", detail=""))
        assert rules(self.round, plan.model_copy(update={"unplaced": unknown})) == {"account"}
        stranger = plan.placements[0].model_copy(update={"job": "zz"})
        assert rules(self.round, plan.model_copy(update={"placements": (*plan.placements, stranger)})) == {"account"}

    def test_unplaced_without_reason(self) -> None:
        """Types refuse an empty reason in a file; a plan built without validation must not slip through."""
        blank = Unplaced.model_construct(job="b", reason="", detail="")
        plan = plan_for(self.round, {"a": [("n0", [0])]})
        assert rules(self.round, plan.model_copy(update={"unplaced": (blank,)})) == {"account"}


class TestForm:
    """One placement by itself."""

    def test_option_must_exist(self) -> None:
        """An option of another job is none of this one."""
        round_ = instance(1, [job("a", options=(option("big"), option("small")))])
        plan = plan_for(round_, {"a": placement(round_.jobs[0], [("n0", [0])], option="small")})
        assert rules(round_, plan) == set()
        wrong = plan.placements[0].model_copy(update={"option": "medium"})
        assert rules(round_, plan.model_copy(update={"placements": (wrong,)})) == {"option"}

    @pytest.mark.parametrize(("utility", "expected"), [(500, set()), (499, {"option"}), (None, set())])
    def test_option_below_the_minimal_utility(self, utility: int | None, expected: set[str]) -> None:
        """Below the minimum is refused, at the minimum and unknown are taken."""
        round_ = instance(1, [job("a", utility_thousandths=utility, utility_min_thousandths=500)])
        assert rules(round_, plan_for(round_, {"a": [("n0", [0])]})) == expected

    def test_node_must_exist(self) -> None:
        """A node of no name is reported once, not raised."""
        round_ = instance(1, [job("a")])
        assert rules(round_, plan_for(round_, {"a": [("nowhere", [0])]})) == {"unknown_node"}

    def test_gang_is_all_or_nothing(self) -> None:
        """Three of four workers are no gang, nor are five."""
        round_ = instance(2, [job("a", workers=4)])
        four = [("n0", [0]), ("n0", [1]), ("n1", [0]), ("n1", [1])]
        assert rules(round_, plan_for(round_, {"a": four})) == set()
        assert rules(round_, plan_for(round_, {"a": four[:3]})) == {"workers"}
        assert rules(round_, plan_for(round_, {"a": [*four, ("n1", [2])]})) == {"workers"}

    @pytest.mark.parametrize(("count", "expected"), [(1, {"workers"}), (2, set()), (4, set()), (5, {"workers"})])
    def test_elastic_between_min_and_max(self, count: int, expected: set[str]) -> None:
        """Elastic jobs take any number from workers_min to workers."""
        round_ = instance(2, [job("a", workers=4, workers_min=2)])
        where = [(f"n{i // 4}", [i % 4]) for i in range(count)]
        assert rules(round_, plan_for(round_, {"a": where})) == expected

    @pytest.mark.parametrize("ranks", [(0, 0), (1, 2), (0, 2)])
    def test_ranks_are_zero_to_w_minus_one(self, ranks: tuple[int, int]) -> None:
        """Ranks repeat or leave a hole."""
        round_ = instance(1, [job("a", workers=2)])
        plan = plan_for(round_, {"a": [("n0", [0]), ("n0", [1])]})
        workers = tuple(
            worker.model_copy(update={"rank": rank})
            for worker, rank in zip(plan.placements[0].assignments[0].workers, ranks, strict=True)
        )
        assert rules(round_, changed(plan, "a", workers=workers)) == {"workers"}

    def test_single_worker_has_rank_zero(self) -> None:
        """The only worker is the chief."""
        round_ = instance(1, [job("a", gpus=0)])
        plan = plan_for(round_, {"a": [("n0", [])]})
        worker = plan.placements[0].assignments[0].workers[0].model_copy(update={"rank": 1})
        assert rules(round_, changed(plan, "a", workers=(worker,))) == {"workers"}

    def test_node_in_two_assignments(self) -> None:
        """The model refuses it in a file; the referee does not rely on that."""
        round_ = instance(1, [job("a", workers=2)])
        one, two = (plan_for(round_, {"a": [("n0", [0])]}), plan_for(round_, {"a": [("n0", [0]), ("n0", [1])]}))
        second = (
            one.placements[0]
            .assignments[0]
            .model_copy(update={"workers": two.placements[0].assignments[0].workers[1:], "gpus": {"1": 1000}})
        )
        both = one.placements[0].model_copy(update={"assignments": (one.placements[0].assignments[0], second)})
        assert rules(round_, one.model_copy(update={"placements": (both,)})) == {"workers"}

    @pytest.mark.parametrize("where", [[("n0", [0])], [("n0", [0, 1, 2])], [("n0", [0, 0])], [("n0", [0, 4])]], ids=str)
    def test_gpus_of_a_worker(self, where: Any) -> None:
        """Two different GPUs of the four that the node has."""
        round_ = instance(1, [job("a", gpus=2)])
        assert rules(round_, plan_for(round_, {"a": [("n0", [1, 3])]})) == set()
        assert rules(round_, plan_for(round_, {"a": where})) == {"gpu_indexes"}

    @pytest.mark.parametrize("workers", [1, 2])
    def test_gpu_indexes_begin_with_zero(self, workers: int) -> None:
        """A negative index, which only an unchecked record can hold, must not be read from the end of the list."""
        round_ = instance(1, [job("a", workers=workers)])
        plan = plan_for(round_, {"a": [("n0", [gpu]) for gpu in range(workers)]})
        held = plan.placements[0].assignments[0]
        first = WorkerGpus.model_construct(rank=0, gpus=(-1,))
        gpus = {"-1": 1000, **{str(gpu): 1000 for gpu in range(1, workers)}}
        wrong = held.model_copy(update={"workers": (first, *held.workers[1:]), "gpus": gpus})
        placement = plan.placements[0].model_copy(update={"assignments": (wrong,)})
        assert rules(round_, plan.model_copy(update={"placements": (placement,)})) == {"gpu_indexes"}

    def test_gpu_in_two_workers_of_a_job(self) -> None:
        """Two workers of one job never share a GPU, even where two jobs could."""
        round_ = instance(1, [job("a", workers=2, gpu_milli=400)])
        assert rules(round_, plan_for(round_, {"a": [("n0", [0]), ("n0", [1])]})) == set()
        assert rules(round_, plan_for(round_, {"a": [("n0", [0]), ("n0", [0])]})) == {"gpu_indexes"}

    @pytest.mark.parametrize("gpus", [{"0": 1000, "1": 1000}, {}, {"1": 1000}])
    def test_gpus_are_those_of_the_workers(self, gpus: dict[str, int]) -> None:
        """The shares of an assignment are of its workers' GPUs, no more and no fewer."""
        round_ = instance(1, [job("a")])
        plan = plan_for(round_, {"a": [("n0", [0])]})
        assert rules(round_, changed(plan, "a", gpus=gpus)) == {"gpu_indexes"}

    @pytest.mark.parametrize(
        ("limit", "milli", "expected"),
        [
            (None, 300, set()),
            (None, 301, {"gpu_milli"}),
            (500, 500, set()),
            (500, 400, {"gpu_grant"}),
            (500, 501, {"gpu_milli"}),
            (500, 299, {"gpu_milli"}),
        ],
    )
    def test_share_between_request_and_limit(self, limit: int | None, milli: int, expected: set[str]) -> None:
        """The limit left out is the request; alone on its GPU a job is granted its limit."""
        round_ = instance(1, [job("a", gpu_milli=300, gpu_milli_limit=limit)])
        plan = plan_for(round_, {"a": placement(round_.jobs[0], [("n0", [0])], milli=milli)})
        assert rules(round_, plan) == expected

    @pytest.mark.parametrize("field", ["cpu_millicores", "memory_mib"])
    @pytest.mark.parametrize("off", [-1, 1])
    def test_amounts_are_workers_times_demand(self, field: str, off: int) -> None:
        """Two workers x 1000; one more or less is refused."""
        round_ = instance(1, [job("a", workers=2, cpu_millicores=1000, memory_mib=1000)])
        plan = plan_for(round_, {"a": [("n0", [0]), ("n0", [1])]})
        assert rules(round_, plan) == set()
        assert rules(round_, changed(plan, "a", **{field: 2000 + off})) == {"amounts"}


class TestWhere:
    """Where a job may stand."""

    def test_selector_matches_labels_and_domains(self) -> None:
        """Effective labels are the node's own and level -> domain for every domain above."""
        domains = [Domain(id="z", level="zone"), Domain(id="r0", parent="z"), Domain(id="r1", parent="z")]
        nodes = [node("n0", domain="r0", labels={"disk": "ssd"}), node("n1", domain="r1")]
        for selector, expected in (
            ({"zone": "z"}, set()),
            ({"zone": "z", "rack": "r0", "disk": "ssd"}, set()),
            ({"rack": "r1"}, {"node_selector"}),
            ({"disk": "hdd"}, {"node_selector"}),
            ({"gone": "x"}, {"node_selector"}),
        ):
            round_ = instance(nodes, [job("a", node_selector=selector)], domains=domains)
            assert rules(round_, plan_for(round_, {"a": [("n0", [0])]})) == expected

    def test_nodes_allowed(self) -> None:
        """A list of nodes is a list, an empty one allows none."""
        for allowed, expected in ((("n1",), set()), (("n0",), {"nodes_allowed"}), ((), {"nodes_allowed"})):
            round_ = instance(2, [job("a", nodes_allowed=allowed)])
            assert rules(round_, plan_for(round_, {"a": [("n1", [0])]})) == expected

    def test_taints_are_all_tolerated(self) -> None:
        """One of two tolerated is not enough."""
        nodes = [node("n0", taints=("gpu", "beta"))]
        for tolerations, expected in ((("beta", "gpu", "x"), set()), (("gpu",), {"taints"}), ((), {"taints"})):
            round_ = instance(nodes, [job("a", tolerations=tolerations)])
            assert rules(round_, plan_for(round_, {"a": [("n0", [0])]})) == expected

    def test_drained(self) -> None:
        """A drained node takes no new work."""
        round_ = instance([node("n0", drained=True), node("n1")], [job("a")])
        assert rules(round_, plan_for(round_, {"a": [("n0", [0])]})) == {"drained"}
        assert rules(round_, plan_for(round_, {"a": [("n1", [0])]})) == set()

    def test_running_job_that_stays_is_exempt(self) -> None:
        """Drain, taint and label say where work may start; a job that moves onto such a node is refused."""
        bad = node("n0", drained=True, taints=("t",))
        a = job("a", node_selector={"disk": "ssd"}, nodes_allowed=("n1",))
        policy = Policy(changes=Changes(moves_max=1))
        round_ = instance([bad, node("n1")], [a], running=[running(a, [("n0", [0])], movable=True)], policy=policy)
        assert rules(round_, plan_for(round_, {})) == set()
        moved = plan_for(round_, {"a": [("n0", [1])]}, moved=["a"])
        assert rules(round_, moved) == {"drained", "taints", "node_selector", "nodes_allowed"}

    def test_gpu_model_of_a_gpu_that_is_not_there(self) -> None:
        """Reported as the missing GPU that it is, not raised."""
        round_ = instance(1, [job("a", gpu_models=("V100",))])
        assert rules(round_, plan_for(round_, {"a": [("n0", [4])]})) == {"gpu_indexes"}

    def test_gpu_model(self) -> None:
        """Models may differ inside a node: only the GPUs held count."""
        mixed = machine(gpus=[Gpu(model="V100"), Gpu(model="P100")])
        round_ = instance(1, [job("a", gpu_models=("V100", "T4"))], machines=[mixed])
        assert rules(round_, plan_for(round_, {"a": [("n0", [0])]})) == set()
        assert rules(round_, plan_for(round_, {"a": [("n0", [1])]})) == {"gpu_model"}


class TestGpus:
    """What one GPU holds."""

    def test_exclusive(self) -> None:
        """Two small jobs do not share an exclusive GPU."""
        round_ = instance(1, [job("a", gpu_milli=100), job("b", gpu_milli=100)], policy=Policy(share_mode="exclusive"))
        assert rules(round_, plan_for(round_, {"a": [("n0", [0])], "b": [("n0", [1])]})) == set()
        assert rules(round_, plan_for(round_, {"a": [("n0", [0])], "b": [("n0", [0])]})) == {"gpu_exclusive"}

    @pytest.mark.parametrize(("milli", "expected"), [(400, set()), (401, {"gpu_share"})])
    def test_fractions_sum_to_a_gpu(self, milli: int, expected: set[str]) -> None:
        """600 + 400 fills a GPU, 600 + 401 overfills it."""
        round_ = instance(1, [job("a", gpu_milli=600), job("b", gpu_milli=milli)])
        assert rules(round_, plan_for(round_, {"a": [("n0", [0])], "b": [("n0", [0])]})) == expected

    def test_overcommit_has_no_sum_but_a_number(self) -> None:
        """Two whole jobs share a GPU, a third is one too many."""
        policy = Policy(share_mode="overcommit", jobs_per_gpu_max=2)
        round_ = instance(1, [job("a"), job("b"), job("c")], policy=policy)
        assert rules(round_, plan_for(round_, {"a": [("n0", [0])], "b": [("n0", [0])]})) == set()
        three = {name: [("n0", [0])] for name in "abc"}
        assert rules(round_, plan_for(round_, three)) == {"gpu_jobs"}

    def test_jobs_per_gpu_with_fractions(self) -> None:
        """The number binds in fraction mode too, where the sum would allow more."""
        round_ = instance(1, [job(name, gpu_milli=100) for name in "abc"], policy=Policy(jobs_per_gpu_max=2))
        assert rules(round_, plan_for(round_, {name: [("n0", [0])] for name in "ab"})) == set()
        assert rules(round_, plan_for(round_, {name: [("n0", [0])] for name in "abc"})) == {"gpu_jobs"}

    @pytest.mark.parametrize(("memory", "expected"), [(8_192, set()), (8_193, {"gpu_memory"})])
    def test_gpu_memory(self, memory: int, expected: set[str]) -> None:
        """8192 + 8192 fills 16 GiB."""
        jobs = [job("a", gpu_milli=500, gpu_memory_mib=8_192), job("b", gpu_milli=500, gpu_memory_mib=memory)]
        round_ = instance(1, jobs)
        assert rules(round_, plan_for(round_, {"a": [("n0", [0])], "b": [("n0", [0])]})) == expected

    def test_gpu_of_unknown_memory(self) -> None:
        """Memory 0 means unknown: only jobs without a memory need."""
        round_ = instance(1, [job("a"), job("b", gpu_memory_mib=1)], machines=[machine(gpus=[Gpu(model="X")] * 2)])
        assert rules(round_, plan_for(round_, {"a": [("n0", [0])]})) == set()
        assert rules(round_, plan_for(round_, {"b": [("n0", [0])]})) == {"gpu_memory"}


class TestNodes:
    """What one node holds."""

    @pytest.mark.parametrize("off", [0, 1])
    @pytest.mark.parametrize(
        ("rule", "demand", "field", "load"),
        [
            ("cpu", "cpu_millicores", "cpu_millicores", 1000),
            ("memory", "memory_mib", "memory_mib", 1000),
            ("memory_bandwidth", "memory_bandwidth_mbps", "memory_bandwidth_mbps", 750),
            ("pcie_bandwidth", "pcie_bandwidth_mbps", "pcie_bandwidth_mbps", 900),
        ],
    )
    def test_node_resource(self, rule: str, demand: str, field: str, load: int, off: int) -> None:
        """Of 1000, all CPU and memory, 75 % of the memory bandwidth and here 90 % of PCIe: at the edge and 1 above."""
        jobs = [job("a", gpus=0, **{demand: 250}), job("b", workers=2, gpus=0, **{demand: (load - 250) // 2})]
        jobs.append(job("c", gpus=0, **{demand: off}))
        policy = Policy(usable=Usable(pcie_bandwidth_percent=90))
        round_ = instance(1, jobs, machines=[machine(**{field: 1000})], policy=policy)
        plan = plan_for(round_, {"a": [("n0", [])], "b": [("n0", [])] * 2, "c": [("n0", [])]})
        assert rules(round_, plan) == ({rule} if off else set())

    def test_unknown_bandwidth_is_no_limit(self) -> None:
        """None means not known."""
        round_ = instance(1, [job("a", memory_bandwidth_mbps=10**9, pcie_bandwidth_mbps=10**9)])
        assert rules(round_, plan_for(round_, {"a": [("n0", [0])]})) == set()


class TestLinks:
    """The hose model."""

    domains = (
        Domain(id="r0", uplink_mbps=1000),
        Domain(id="r1", uplink_mbps=1000),
        Domain(id="r2"),
    )
    nodes = tuple(node(f"n{i}", domain=f"r{i // 2}") for i in range(6))

    def broken(
        self, workers_on: dict[str, int], mbps: int, *, gpus: int = 1, machine_mbps: int | None = None
    ) -> set[str]:
        total = sum(workers_on.values())
        round_ = instance(
            self.nodes,
            [job("a", workers=total, gpus=gpus, network_bandwidth_mbps=mbps)],
            machines=[machine(gpus=8, network_bandwidth_mbps=machine_mbps)],
            domains=self.domains,
        )
        where = [(name, list(range(i, i + gpus))) for name, count in workers_on.items() for i in range(count)]
        found = violations(round_, plan_for(round_, {"a": where}))
        assert {violation.rule for violation in found} <= {"uplink"}
        return {violation.where for violation in found}

    def test_domain_uplink(self) -> None:
        """3 workers in r0, 5 in r2: r0 carries min(3, 5) x 250 = 750 = 75 % of 1000; at 251 it is too much."""
        assert self.broken({"n0": 2, "n1": 1, "n4": 5}, 250) == set()
        assert self.broken({"n0": 2, "n1": 1, "n4": 5}, 251) == {"domain 'r0' uplink"}

    def test_most_workers_inside(self) -> None:
        """5 in r0, 3 outside: the load is min(5, 3), both ends of the cut carry it."""
        assert self.broken({"n0": 5, "n2": 3}, 251) == {"domain 'r0' uplink", "domain 'r1' uplink"}

    def test_inside_one_domain_loads_no_uplink_of_it(self) -> None:
        """All workers below the uplink: nothing crosses it, but the link of each machine carries min(1, 3)."""
        assert self.broken({"n0": 1, "n1": 3}, 10_000) == set()
        assert self.broken({"n0": 1, "n1": 3}, 751, machine_mbps=1000) == {"node 'n0' uplink", "node 'n1' uplink"}
        assert self.broken({"n0": 1, "n1": 3}, 750, machine_mbps=1000) == set()

    def test_cpu_jobs_have_their_own_part(self) -> None:
        """25 % of 1000 for CPU jobs."""
        assert self.broken({"n0": 1, "n4": 1}, 250, gpus=0) == set()
        assert self.broken({"n0": 1, "n4": 1}, 251, gpus=0) == {"domain 'r0' uplink"}

    def test_jobs_add_up_within_their_kind_only(self) -> None:
        """400 + 350 = 750 of GPU jobs beside 250 of CPU jobs fill the uplink; 1 more of either is refused."""
        for gpu, cpu, expected in ((350, 250, set()), (351, 250, {"uplink"}), (350, 251, {"uplink"})):
            jobs = [
                job("a", workers=2, network_bandwidth_mbps=400),
                job("b", workers=2, network_bandwidth_mbps=gpu),
                job("c", workers=2, gpus=0, network_bandwidth_mbps=cpu),
            ]
            round_ = instance(self.nodes, jobs, domains=self.domains)
            placed = {"a": [("n0", [0]), ("n4", [0])], "b": [("n1", [1]), ("n4", [1])], "c": [("n0", []), ("n4", [])]}
            assert rules(round_, plan_for(round_, placed)) == expected

    def test_one_worker_loads_nothing(self) -> None:
        """A single worker talks to nobody."""
        assert self.broken({"n0": 1}, 10**6, machine_mbps=1) == set()


class TestShape:
    """How workers lie."""

    def test_single_node(self) -> None:
        """All workers on one node."""
        round_ = instance(2, [job("a", workers=2, single_node=True)])
        assert rules(round_, plan_for(round_, {"a": [("n0", [0]), ("n0", [1])]})) == set()
        assert rules(round_, plan_for(round_, {"a": [("n0", [0]), ("n1", [1])]})) == {"single_node"}

    def test_workers_per_node(self) -> None:
        """1 is anti-affinity."""
        round_ = instance(2, [job("a", workers=2, workers_per_node_max=1)])
        assert rules(round_, plan_for(round_, {"a": [("n0", [0]), ("n1", [0])]})) == set()
        assert rules(round_, plan_for(round_, {"a": [("n0", [0]), ("n0", [1])]})) == {"workers_per_node"}

    def test_split_over_racks_and_nodes(self) -> None:
        """4 = 2 x 2 per rack = 4 x 1 per node; then 3 + 1, then all in one rack, then two on a node."""
        domains = [Domain(id="r0"), Domain(id="r1")]
        nodes = [node(f"n{i}", domain=f"r{i // 4}") for i in range(8)]
        splits = (Split(level="rack", domains=2, workers=2), Split(level="node", domains=4, workers=1))
        round_ = instance(nodes, [job("a", workers=4, splits=splits)], domains=domains)
        for on, expected in (
            ("0145", set()),
            ("0124", {"split"}),
            ("0123", {"split"}),
            ("0044", {"split"}),
        ):
            where = [(f"n{name}", [i]) for i, name in enumerate(on)]
            assert rules(round_, plan_for(round_, {"a": where})) == expected

    def test_split_of_an_elastic_job_counts_domains_only(self) -> None:
        """``domains`` = 1 keeps a job together, however many workers it has."""
        domains = [Domain(id="r0"), Domain(id="r1")]
        nodes = [node(f"n{i}", domain=f"r{i // 2}") for i in range(4)]
        split = (Split(level="rack", domains=1),)
        round_ = instance(nodes, [job("a", workers=4, workers_min=2, splits=split)], domains=domains)
        assert rules(round_, plan_for(round_, {"a": [("n0", [0]), ("n1", [0]), ("n1", [1])]})) == set()
        assert rules(round_, plan_for(round_, {"a": [("n0", [0]), ("n2", [0])]})) == {"split"}

    def test_split_outside_any_domain(self) -> None:
        """A worker on a node in no rack is in no rack at all, not in one more."""
        nodes = [node("n0", domain="r0"), node("n1")]
        split = (Split(level="rack", domains=1),)
        round_ = instance(nodes, [job("a", workers=2, splits=split)], domains=[Domain(id="r0")])
        assert rules(round_, plan_for(round_, {"a": [("n0", [0]), ("n0", [1])]})) == set()
        assert rules(round_, plan_for(round_, {"a": [("n0", [0]), ("n1", [1])]})) == {"split"}


class TestQueues:
    """What one queue holds."""

    @pytest.mark.parametrize("off", [0, 1])
    @pytest.mark.parametrize("field", ["gpu_milli", "cpu_millicores", "memory_mib"])
    def test_quota_and_borrow(self, field: str, off: int) -> None:
        """500 own and 100 borrowed; a running job counts; jobs of other queues and of none do not."""
        queue = Queue(id="q", quota=Quota(**{field: 500}), borrow=Quota(**{field: 100}))
        policy = Policy(queues=(queue, Queue(id="other")))
        jobs = [
            job("a", queue="q", **{field: 400}),
            job("b", queue="q", **{field: 200 + off}),
            job("c", queue="other", **{field: 900}),
            job("d", **{field: 900}),
        ]
        round_ = instance(1, jobs, running=[running(jobs[0], [("n0", [0])])], policy=policy)
        plan = plan_for(round_, {name: [("n0", [i])] for i, name in enumerate("abcd") if name != "a"})
        assert rules(round_, plan) == ({"queue_quota"} if off else set())

    @pytest.mark.parametrize(("milli", "expected"), [(400, set()), (401, {"queue_share"})])
    def test_dominant_share_counts_drained_nodes(self, milli: int, expected: set[str]) -> None:
        """20 % + 10 % of 8 GPUs, half of them drained: 2400 milli."""
        policy = Policy(queues=(Queue(id="q", dominant_share_percent=20, borrow_percent=10),))
        jobs = [job("a", gpus=2, queue="q"), job("b", gpu_milli=milli, queue="q")]
        round_ = instance([node("n0"), node("n1", drained=True)], jobs, policy=policy)
        assert rules(round_, plan_for(round_, {"a": [("n0", [0, 1])], "b": [("n0", [2])]})) == expected

    def test_dominant_share_of_cpu_and_memory(self) -> None:
        """The dominant share is that of whichever resource is used most: here 10 % of 32 cores, of 256 GiB."""
        policy = Policy(queues=(Queue(id="q", dominant_share_percent=10),))
        for fields, expected in (
            ({"cpu_millicores": 3_200}, set()),
            ({"cpu_millicores": 3_201}, {"queue_share"}),
            ({"memory_mib": 26_214}, set()),
            ({"memory_mib": 26_215}, {"queue_share"}),
        ):
            round_ = instance(1, [job("a", gpus=0, queue="q", **fields)], policy=policy)
            assert rules(round_, plan_for(round_, {"a": [("n0", [])]})) == expected


class TestRunning:
    """Running jobs are left alone, or touched as policy and job allow and as the plan says."""

    allowed = Changes(moves_max=1, shrinks_max=1, preemptions_max=1)
    free = {"movable": True, "shrinkable": True, "preemptible": True}  # noqa: RUF012
    home = (("n0", [0]), ("n0", [1]), ("n1", [0]))

    def round(self, *, changes: Changes | None = None, **flags: bool) -> Instance:
        """One elastic job of 2 to 3 workers on two nodes, one waiting job."""
        a = job("a", workers=3, workers_min=2, gpu_milli=500, gpu_milli_limit=1000)
        policy = Policy(changes=self.allowed if changes is None else changes)
        return instance(2, [a, job("w")], running=[running(a, self.home, **{**self.free, **flags})], policy=policy)

    def test_stays(self) -> None:
        """Equal in other spelling is equal."""
        round_ = self.round()
        plan = plan_for(round_, {"w": [("n1", [1])]})
        assert rules(round_, plan) == set()
        held = plan.placements[0]
        turned = held.model_copy(update={"assignments": held.assignments[::-1]})
        assert rules(round_, plan.model_copy(update={"placements": (turned, *plan.placements[1:])})) == set()

    def test_unlisted_change(self) -> None:
        """Another GPU or swapped ranks without a word; a share is granted anew each time, and so is no change."""
        round_ = self.round()
        a = round_.jobs[0]
        assert rules(round_, plan_for(round_, {"a": [("n0", [0]), ("n0", [2]), ("n1", [0])]})) == {"running"}
        assert rules(round_, plan_for(round_, {"a": placement(a, self.home, milli=501)})) == {"gpu_grant"}
        assert rules(round_, plan_for(round_, {"a": placement(a, self.home, milli=1000)})) == set()
        assert rules(round_, plan_for(round_, {"a": [("n1", [0]), ("n0", [1]), ("n0", [0])]})) == {"running"}
        assert rules(round_, plan_for(round_, {"a": self.home[:2]})) == {"running"}
        quiet = plan_for(round_, {}, preempted=["a"]).model_copy(update={"preempted": ()})
        assert rules(round_, quiet) == {"running"}

    def test_move(self) -> None:
        """Allowed by job and policy, and told truly."""
        there = [("n1", [0]), ("n1", [1]), ("n1", [2])]
        round_ = self.round()
        plan = plan_for(round_, {"a": there}, moved=["a"])
        assert rules(round_, plan) == set()
        for ends in (("n0",), ("n1",)), (("n0", "n1"), ("n0",)), (("n0", "n1"), ("n1", "n1")):
            lie = Moved.model_validate({"job": "a", "from": ends[0], "to": ends[1]})
            assert rules(round_, plan.model_copy(update={"moved": (lie,)})) == {"moved"}
        fixed = self.round(movable=False)
        assert rules(fixed, plan_for(fixed, {"a": there}, moved=["a"])) == {"moved"}
        still = self.round(changes=Changes())
        assert rules(still, plan_for(still, {"a": there}, moved=["a"])) == {"moved"}

    def test_a_move_is_a_restart(self) -> None:
        """Elsewhere with fewer or more workers, on a part of its own GPUs, and in another option."""
        round_ = self.round(shrinkable=False)
        for fewer in ([("n1", [0]), ("n1", [1])], self.home[:2]):
            assert rules(round_, plan_for(round_, {"a": fewer}, moved=["a"])) == set()
        assert rules(round_, plan_for(round_, {"a": [("n1", [0])]}, moved=["a"])) == {"workers"}
        small = instance(2, round_.jobs, running=[running(round_.jobs[0], self.home[:2], movable=True)])
        moves = small.policy.model_copy(update={"changes": self.allowed})
        assert rules(small, plan_for(small, {"a": self.home}, policy=moves, moved=["a"])) == set()
        b = job("b", options=(option("x"), option("y")))
        other = instance(2, [b], running=[running(b, [("n0", [0])], movable=True)], policy=round_.policy)
        plan = plan_for(other, {"b": placement(b, [("n0", [0])], option="y")}, moved=["b"])
        assert rules(other, plan) == set()

    def test_a_job_on_a_part_of_its_gpus_is_shrunk_or_moved(self) -> None:
        """Just one of the two; and where it restarts, work must be allowed to start."""
        round_ = self.round()
        assert rules(round_, plan_for(round_, {"a": self.home[:2]}, moved=["a"], shrunk=["a"])) == {"running"}
        nodes = (round_.cluster.nodes[0].model_copy(update={"drained": True}), round_.cluster.nodes[1])
        drained = round_.model_copy(update={"cluster": round_.cluster.model_copy(update={"nodes": nodes})})
        assert rules(drained, plan_for(drained, {"a": self.home[:2]}, shrunk=["a"])) == set()
        assert rules(drained, plan_for(drained, {"a": self.home[:2]}, moved=["a"])) == {"drained"}

    def test_nothing_listed_that_did_not_happen(self) -> None:
        """Lists are true: no untouched, waiting, unknown or repeated job."""
        round_ = self.round()
        stays = plan_for(round_, {})
        two = {"job": "a", "from": ("n0", "n1"), "to": ("n0", "n1")}
        for update, rule in (
            ({"moved": (Moved.model_validate(two),)}, "moved"),
            ({"moved": (Moved.model_validate({**two, "job": "w"}),)}, "moved"),
            ({"shrunk": (Shrunk(job="a", workers=3),)}, "shrunk"),
            ({"shrunk": (Shrunk(job="w", workers=1),)}, "shrunk"),
            ({"preempted": (Preempted(job="a", freed_gpu_milli=1500),)}, "preempted"),
            ({"preempted": (Preempted(job="w", freed_gpu_milli=0),)}, "preempted"),
            ({"preempted": (Preempted(job="zz", freed_gpu_milli=0),)}, "preempted"),
        ):
            assert rules(round_, stays.model_copy(update=update)) == {rule}
        moved = plan_for(round_, {"a": [("n0", [0]), ("n0", [2]), ("n1", [0])]}, moved=["a"])
        assert rules(round_, moved) == set()
        assert rules(round_, moved.model_copy(update={"moved": moved.moved * 2})) == {"moved"}

    @pytest.mark.parametrize("kept", [(0, 1), (0, 2)])
    def test_shrink(self, kept: tuple[int, int]) -> None:
        """The chief and any others stay where they are; ranks close up in order."""
        where = [self.home[rank] for rank in kept]
        round_ = self.round()
        plan = plan_for(round_, {"a": where}, shrunk=["a"])
        assert rules(round_, plan) == set()
        lie = plan.model_copy(update={"shrunk": (Shrunk(job="a", workers=1),)})
        assert rules(round_, lie) == {"shrunk"}
        for refused in self.round(shrinkable=False), self.round(changes=Changes()):
            assert rules(refused, plan_for(refused, {"a": where}, shrunk=["a"])) == {"shrunk"}

    @pytest.mark.parametrize(
        "where",
        [
            [("n0", [1]), ("n1", [0])],
            [("n0", [0]), ("n0", [2])],
            [("n0", [0]), ("n1", [1])],
        ],
        ids=["chief taken", "other gpu", "other gpu of another node"],
    )
    def test_shrink_keeps_chief_and_places(self, where: Any) -> None:
        """The chief is never taken, and nobody moves on the way."""
        round_ = self.round()
        assert rules(round_, plan_for(round_, {"a": where}, shrunk=["a"])) == {"shrunk"}

    def test_shrink_keeps_order_of_ranks(self) -> None:
        """Renumbering keeps the order; shares of the kept GPUs are granted anew."""
        a = job("a", workers=4, workers_min=2, gpu_milli=500, gpu_milli_limit=900)
        home = [("n0", [i]) for i in range(4)]
        policy = Policy(changes=self.allowed)
        round_ = instance(1, [a], running=[running(a, home, shrinkable=True)], policy=policy)
        assert rules(round_, plan_for(round_, {"a": [home[i] for i in (0, 1, 3)]}, shrunk=["a"])) == set()
        assert rules(round_, plan_for(round_, {"a": [home[i] for i in (0, 3, 1)]}, shrunk=["a"])) == {"shrunk"}
        more = placement(a, home[:2], milli=600)
        assert rules(round_, plan_for(round_, {"a": more}, shrunk=["a"])) == {"gpu_grant"}

    def test_shrink_needs_an_elastic_option_and_its_minimum(self) -> None:
        """A gang cannot shrink, and no job falls below its minimal number of workers."""
        gang = job("a", workers=3)
        round_ = instance(
            2, [gang], running=[running(gang, self.home, shrinkable=True)], policy=Policy(changes=self.allowed)
        )
        assert rules(round_, plan_for(round_, {"a": self.home[:2]}, shrunk=["a"])) == {"shrunk", "workers"}
        elastic = self.round()
        assert rules(elastic, plan_for(elastic, {"a": self.home[:1]}, shrunk=["a"])) == {"shrunk", "workers"}

    def test_shrink_of_cpu_workers(self) -> None:
        """Workers without GPUs are told apart by their node only."""
        a = job("a", workers=3, workers_min=1, gpus=0)
        home = [("n0", []), ("n1", []), ("n1", [])]
        policy = Policy(changes=self.allowed)
        round_ = instance(2, [a], running=[running(a, home, shrinkable=True)], policy=policy)
        assert rules(round_, plan_for(round_, {"a": [("n0", []), ("n1", [])]}, shrunk=["a"])) == set()
        assert rules(round_, plan_for(round_, {"a": [("n1", []), ("n1", [])]}, shrunk=["a"])) == {"shrunk"}

    def test_preempt(self) -> None:
        """Stands in unplaced, with the true share freed: 3 x 500."""
        round_ = self.round()
        plan = plan_for(round_, {}, preempted=["a"])
        assert plan.preempted[0].freed_gpu_milli == 1500
        assert rules(round_, plan) == set()
        lie = plan.model_copy(update={"preempted": (Preempted(job="a", freed_gpu_milli=1000),)})
        assert rules(round_, lie) == {"preempted"}
        for refused in self.round(preemptible=False), self.round(changes=Changes()):
            assert rules(refused, plan_for(refused, {}, preempted=["a"])) == {"preempted"}

    def test_limits_count_jobs(self) -> None:
        """Two moves where the policy allows one."""
        jobs = [job("a"), job("b")]
        runs = [running(jobs[0], [("n0", [0])], movable=True), running(jobs[1], [("n0", [1])], movable=True)]
        placed = {"a": [("n1", [0])], "b": [("n1", [1])]}
        for most, expected in ((2, set()), (1, {"moved"})):
            policy = Policy(changes=Changes(moves_max=most))
            round_ = instance(2, jobs, running=runs, policy=policy)
            assert rules(round_, plan_for(round_, placed, moved=["a", "b"])) == expected

    @pytest.mark.parametrize(
        ("stopped", "later", "expected"),
        [
            ("b", {}, set()),
            ("a", {}, {"last_submitted_first"}),
            ("a", {"preemptible": False}, set()),
            ("a", {"arrival_ms": 1}, set()),
            ("a", {"queue": "other"}, set()),
        ],
        ids=["the later", "the earlier", "later is fixed", "arrived together", "another queue"],
    )
    def test_last_submitted_first(self, stopped: str, later: dict[str, Any], expected: set[str]) -> None:
        """Of two jobs of a queue the one that arrived later goes first, if it may go at all."""
        a = job("a", queue="q", arrival_ms=1)
        b = job("b", queue=later.get("queue", "q"), arrival_ms=later.get("arrival_ms", 2))
        runs = [
            running(a, [("n0", [0])], preemptible=True),
            running(b, [("n0", [1])], preemptible=later.get("preemptible", True)),
        ]
        changes = Changes(preemptions_max=1, last_submitted_first=True)
        policy = Policy(queues=(Queue(id="q"), Queue(id="other")), changes=changes)
        round_ = instance(1, [a, b], running=runs, policy=policy)
        assert rules(round_, plan_for(round_, {}, preempted=[stopped])) == expected
        any_order = policy.model_copy(update={"changes": Changes(preemptions_max=1)})
        assert rules(round_, plan_for(round_, {}, policy=any_order, preempted=[stopped])) == set()

    @pytest.mark.parametrize(("on", "expected"), [(2, {"last_submitted_first"}), (1, set())])
    def test_last_submitted_first_counts_what_could_shrink(self, on: int, expected: set[str]) -> None:
        """A later elastic job above its minimum could have given a worker; at its minimum it could not."""
        a = job("a", arrival_ms=1)
        b = job("b", workers=2, workers_min=1, arrival_ms=2)
        runs = [
            running(a, [("n0", [3])], preemptible=True),
            running(b, [("n0", [i]) for i in range(on)], shrinkable=True),
        ]
        changes = Changes(preemptions_max=1, shrinks_max=1, last_submitted_first=True)
        round_ = instance(1, [a, b], running=runs, policy=Policy(changes=changes))
        assert rules(round_, plan_for(round_, {}, preempted=["a"])) == expected


def test_judged_by_the_policy_of_the_plan() -> None:
    """The instance's default policy does not count: the plan carries the one it was made by."""
    round_ = instance(1, [job("a", gpu_milli=500), job("b", gpu_milli=500)], policy=Policy(share_mode="exclusive"))
    placed = {"a": [("n0", [0])], "b": [("n0", [0])]}
    assert rules(round_, plan_for(round_, placed)) == {"gpu_exclusive"}
    assert rules(round_, plan_for(round_, placed, policy=Policy())) == set()
