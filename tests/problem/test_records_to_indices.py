"""Records in indices: running placements and what is refused in them, classes of jobs and nodes, parts, sizes."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from placeopt import BadInput, Unsupported
from placeopt.build import instance, job, machine, node, option, placement, running
from placeopt.model import (
    Assignment,
    Changes,
    Domain,
    Fragmentation,
    Gpu,
    Instance,
    Job,
    Part,
    Policy,
    Queue,
    Slowdown,
    WorkerGpus,
)
from placeopt.problem import Placement, Problem, compile_problem, hose_loads
from placeopt.problem import compile as compile_module
from placeopt.problem.classes import admits, class_key, effective_labels, job_classes, views
from placeopt.problem.compile import compile_hardware, refuse_huge_values
from placeopt.problem.running import running_placement


def worker(rank: int, *gpus: int) -> WorkerGpus:
    return WorkerGpus(rank=rank, gpus=gpus)


class TestRunning:
    """``running_placement`` on a cluster of two nodes of four GPUs."""

    def problem(self, *jobs: Job) -> Problem:
        return compile_problem(instance(2, jobs))

    def placed(self, problem: Problem, held: Any, job_: int = 0) -> Placement:
        return running_placement(held, problem, job_, {"n0": 0, "n1": 1})

    def test_workers_in_order_of_rank(self) -> None:
        """Written in any order; GPUs of a worker as they are written."""
        gang = job("a", workers=3, gpus=2)
        problem = self.problem(gang)
        held = placement(gang, [("n1", [3, 0]), ("n0", [1, 2]), ("n1", [1, 2])])
        expected = Placement(0, (1, 0, 1), (7, 4, 1, 2, 5, 6))
        assert self.placed(problem, held) == expected
        turned = [a.model_copy(update={"workers": a.workers[::-1]}) for a in held.assignments[::-1]]
        assert self.placed(problem, held.model_copy(update={"assignments": tuple(turned)})) == expected

    def test_two_workers_written_the_other_way_round(self) -> None:
        pair = job("a", workers=2)
        held = placement(pair, [("n1", [3]), ("n0", [2])])
        turned = held.model_copy(update={"assignments": held.assignments[::-1]})
        assert self.placed(self.problem(pair), turned) == Placement(0, (1, 0), (7, 2))

    def test_shares_make_no_difference(self) -> None:
        """Whatever is granted above the request."""
        a = job("a", workers=2, gpu_milli=300, gpu_milli_limit=500)
        problem = self.problem(a)
        for milli in (300, 500):
            assert self.placed(problem, placement(a, [("n0", [3]), ("n1", [0])], milli=milli)) == Placement(
                0, (0, 1), (3, 4)
            )

    def test_the_option_of_that_name_and_number_of_workers(self) -> None:
        """Rows: x with 2 and 3 workers, y with 3."""
        a = job("a", options=(option("x", workers=3, workers_min=2, gpus=0), option("y", workers=3, gpus=0)))
        problem = self.problem(a)
        for name, count, row in (("x", 2, 0), ("x", 3, 1), ("y", 3, 2)):
            assert self.placed(problem, placement(a, [("n0", [])] * count, option=name)).option == row

    def test_jobs_of_other_classes_have_other_rows(self) -> None:
        a, b = job("a", gpus=2), job("b")
        problem = self.problem(a, b)
        assert self.placed(problem, placement(b, [("n1", [0])]), 1) == Placement(1, (1,), (4,))

    @pytest.mark.parametrize(
        ("held", "message"),
        [
            ({"node": "n9"}, "'a': no node 'n9'"),
            ({"workers": (worker(0, 4),), "gpus": {"4": 1000}}, r"'a' on node 'n1': worker 0 .* GPU 4.* 0\.\.3"),
            ({"gpus": {"1": 1000}}, r"'a' on node 'n1': worker 0 .* GPU 3.* 0\.\.3"),
            ({"workers": (worker(0, 3, 2),), "gpus": {"3": 1000, "2": 1000}}, "'a'.*'default'.* 1 GPUs"),
            ({"workers": (worker(0),), "gpus": {}}, "'a'.*'default'.* 1 GPUs"),
            ({"workers": (worker(0, 3), worker(1, 2)), "gpus": {"3": 1, "2": 1}}, "'a': runs 2 workers.*'default'"),
        ],
    )
    def test_what_does_not_agree_is_refused(self, held: dict[str, Any], message: str) -> None:
        """GPU 3 of the second node is the last there is."""
        a = job("a")
        problem = self.problem(a)
        right = placement(a, [("n1", [3])])
        assert self.placed(problem, right) == Placement(0, (1,), (7,))
        wrong: Assignment = right.assignments[0].model_copy(update=held)
        with pytest.raises(BadInput, match=message):
            self.placed(problem, right.model_copy(update={"assignments": (wrong,)}))

    def test_the_last_gpu_of_a_node_is_not_the_first_of_the_next(self) -> None:
        a = job("a")
        wrong = placement(a, [("n0", [4])])
        with pytest.raises(BadInput, match="GPU 4"):
            self.placed(self.problem(a), wrong)

    def test_a_worker_of_several_with_another_number_of_gpus(self) -> None:
        """The second of two has one of the two GPUs it needs."""
        gang = job("a", workers=2, gpus=2)
        held = placement(gang, [("n0", [0, 1]), ("n1", [0, 1])])
        short = held.assignments[1].model_copy(
            update={"workers": (WorkerGpus(rank=1, gpus=(0,)),), "gpus": {"0": 1000}}
        )
        with pytest.raises(BadInput, match="each worker 2 GPUs"):
            self.placed(self.problem(gang), held.model_copy(update={"assignments": (held.assignments[0], short)}))


class TestClasses:
    def test_keys_are_equal_just_for_jobs_of_a_class(self) -> None:
        """Nodes allowed and tolerations in another order are another class: nothing is lost, and nothing mixed up."""
        policy = Policy(queues=(Queue(id="q"), Queue(id="r")))
        jobs = [
            job("a", node_selector={"x": "1", "y": "2"}),
            job("b", node_selector={"y": "2", "x": "1"}, user="u"),
            job("c", node_selector={"x": "1"}),
            job("d", queue="q"),
            job("e", queue="r"),
            job("f"),
        ]
        members, number = job_classes(tuple(jobs), policy)
        assert number.tolist() == [0, 0, 1, 2, 3, 4]
        assert [member.id for member in members] == ["a", "c", "d", "e", "f"]
        keys = [class_key(one, policy) for one in jobs]
        assert [keys.index(key) for key in keys] == [0, 0, 2, 3, 4, 5]
        plain = [class_key(one, Policy()) for one in jobs]
        assert [plain.index(key) for key in plain] == [0, 0, 2, 3, 3, 3]

    def test_equal_options_in_other_objects_are_one_class(self) -> None:
        """And the same objects under other conditions are two."""
        shapes = (option(gpus=2),)
        jobs = (job("a", options=shapes), job("b", options=(option(gpus=2),)), job("c", options=shapes, profile="p"))
        assert job_classes(jobs, Policy())[1].tolist() == [0, 0, 1]

    def test_nodes_differ_by_what_some_job_looks_at(self) -> None:
        """Labels that nobody asks for, names in no list and domains do not make a class."""
        domains = (Domain(id="r0"), Domain(id="r1"))
        nodes = (
            node("n0", labels={"disk": "ssd", "x": "1"}, domain="r0"),
            node("n1", labels={"disk": "ssd", "x": "2"}, domain="r1"),
            node("n2", labels={"disk": "hdd"}),
            node("n3", drained=True),
            node("n4", taints=("t",)),
            node("n5", "other"),
            node("n6"),
            node("n7"),
        )
        kinds = [machine(), machine("other")]

        def classes(*jobs: Job) -> list[int]:
            return compile_problem(instance(nodes, jobs, machines=kinds, domains=domains)).node_class.tolist()

        assert classes(job("a")) == [0, 0, 0, 1, 2, 3, 0, 0]
        assert classes(job("a", node_selector={"disk": "ssd"})) == [0, 0, 1, 2, 3, 4, 5, 5]
        assert classes(job("a", node_selector={"rack": "r0"})) == [0, 1, 2, 3, 4, 5, 2, 2]
        listed = [
            job("a", nodes_allowed=("n0", "n6")),
            job("b", nodes_allowed=("n6", "n7")),
            job("c", nodes_allowed=("n6", "n0")),
        ]
        assert classes(*listed) == [0, 1, 1, 2, 3, 4, 5, 6]

    def test_views(self) -> None:
        members = [
            job("a", node_selector={"x": "1", "y": "1"}),
            job("b", nodes_allowed=("n0", "n1")),
            job("c", nodes_allowed=("n1", "n0")),
            job("d", nodes_allowed=()),
        ]
        assert views(members) == (frozenset({"x", "y"}), (frozenset({"n0", "n1"}), frozenset()))

    def test_labels_and_admission(self) -> None:
        domains = (Domain(id="z", level="zone"), Domain(id="r", parent="z"))
        nodes = (node("n0", domain="r", labels={"disk": "ssd"}), node("n1"), node("n2", domain="z"))
        round_ = instance(nodes, domains=domains)
        assert effective_labels(round_) == [{"zone": "z", "rack": "r", "disk": "ssd"}, {}, {"zone": "z"}]
        assert effective_labels(round_, [nodes[2], nodes[1]]) == [{"zone": "z"}, {}]
        labels = {"a": "1", "b": "2"}
        plain = node("n", taints=("t", "u"))
        both = ("t", "u", "v")
        assert admits(plain, labels, job("j", tolerations=both, node_selector={"a": "1"}, nodes_allowed=("n",)))
        assert not admits(plain, labels, job("j", tolerations=("t",)))
        assert not admits(plain, labels, job("j", tolerations=both, node_selector={"a": "1", "b": "1"}))
        assert not admits(plain, labels, job("j", tolerations=both, node_selector={"c": "1"}))
        assert not admits(plain, labels, job("j", tolerations=both, nodes_allowed=("m",)))
        assert not admits(plain, labels, job("j", tolerations=both, nodes_allowed=()))
        assert not admits(node("n", drained=True), labels, job("j"))


class TestHardware:
    def test_types_are_model_and_memory(self) -> None:
        """In the order in which machines that stand in a node have them."""
        kinds = [
            machine("unused", [Gpu(model="Z", memory_mib=9)]),
            machine("one", [Gpu(model="A", memory_mib=1), Gpu(model="A", memory_mib=2), Gpu(model="B", memory_mib=1)]),
            machine("two", [Gpu(model="B", memory_mib=1), Gpu(model="A", memory_mib=1)]),
        ]
        problem = compile_problem(instance([node("n0", "two"), node("n1", "one"), node("n2", "two")], machines=kinds))
        assert list(zip(problem.type_model, problem.type_memory_mib.tolist(), strict=True)) == [
            ("A", 1),
            ("A", 2),
            ("B", 1),
        ]
        assert problem.gpu_type.tolist() == [2, 0, 0, 1, 2, 2, 0]
        assert problem.gpu_memory_mib.tolist() == [1, 1, 1, 2, 1, 1, 1]
        assert problem.first_gpu == [0, 2, 5, 7]
        assert (problem.num_nodes, problem.num_gpus, problem.num_jobs) == (3, 7, 0)
        assert problem.gpu_node.tolist() == [0, 0, 1, 1, 1, 2, 2]

    def test_uplinks(self) -> None:
        """Unknown is no limit, 0 is one."""
        kinds = [machine("a", network_bandwidth_mbps=7), machine("b"), machine("c", network_bandwidth_mbps=0)]
        domains = (Domain(id="r0", uplink_mbps=5), Domain(id="r1"), Domain(id="r2", uplink_mbps=0))
        problem = compile_problem(instance([node(f"n{k}", k) for k in "abc"], machines=kinds, domains=domains))
        assert problem.machine_link_mbps.tolist() == [7, 1 << 50, 0]
        assert problem.domain_link_mbps.tolist() == [5, 1 << 50, 0]

    def test_the_closest_part_of_a_level(self) -> None:
        """A switch below a switch; GPUs on the lower, the upper, the socket; numbers go on from node to node."""
        parts = (
            Part(id="s", level="socket"),
            Part(id="up", level="switch", parent="s"),
            Part(id="low", level="switch", parent="up"),
            Part(id="t", level="socket"),
        )
        gpus = [Gpu(model="A", part=part) for part in ("low", "up", "s", "t", None)]
        kinds = [machine(gpus=gpus, parts=parts), machine("cpu", 0)]
        levels = Fragmentation(level_weights={"switch": 2, "socket": 3, "numa": 4})
        round_ = instance(
            [node("n0"), node("c", "cpu"), node("n1")], machines=kinds, policy=Policy(fragmentation=levels)
        )
        problem = compile_problem(round_)
        assert problem.gpu_switch.tolist() == [1, 0, -1, -1, -1, 3, 2, -1, -1, -1]
        assert problem.gpu_socket.tolist() == [0, 0, 0, 1, -1, 2, 2, 2, 3, -1]
        assert [(one.name, one.weight, one.total.tolist()) for one in problem.levels] == [
            ("socket", 3, [3, 1, 3, 1]),
            ("switch", 2, [1, 1, 1, 1]),
        ]

    def test_levels_without_weight_count_nothing_although_they_are_there(self) -> None:
        """NUMA domains and nodes have a weight, sockets none."""
        parts = (Part(id="s", level="socket"), Part(id="m", level="numa", parent="s"))
        kind = machine(gpus=[Gpu(model="A", part="m"), Gpu(model="A", part="s")], parts=parts)
        weights = Fragmentation(level_weights={"socket": 0, "numa": 5, "node": 7, "rack": 0})
        problem = compile_problem(instance(2, machines=[kind], policy=Policy(fragmentation=weights)))
        assert [(one.name, one.weight, one.gpu_to_domain.tolist()) for one in problem.levels] == [
            ("node", 7, [0, 0, 1, 1]),
            ("numa", 5, [0, -1, 1, -1]),
        ]

    def test_hardware_of_a_problem_can_be_used_again(self) -> None:
        round_ = instance(2, [job("a")])
        problem = compile_problem(round_)
        again = compile_problem(round_, hardware=problem)
        assert again.topology is problem.topology
        assert again.gpu_type is problem.gpu_type
        fresh = compile_hardware(round_, round_.policy)
        assert fresh.node_ids == ("n0", "n1")


class TestOptions:
    def problem(self, *shapes: Any, **fields: Any) -> Problem:
        return compile_problem(instance(fields.pop("nodes", 1), [job("a", options=shapes)], **fields))

    def test_columns(self) -> None:
        shares = {
            "gpus": 1,
            "gpu_milli": 250,
            "gpu_milli_limit": 400,
            "gpu_memory_mib": 7,
            "gpu_utilisation_percent": 33,
        }
        of_node = {"cpu_millicores": 1, "memory_mib": 2, "memory_bandwidth_mbps": 3, "pcie_bandwidth_mbps": 4}
        worth = {"cost_milli": 5, "value": 9, "network_bandwidth_mbps": 11, "workers_per_node_max": 2}
        shape = option(workers=3, **shares, **of_node, **worth)
        options = self.problem(shape, option("free", workers=4, single_node=True)).options
        assert len(options) == 2
        assert options.grants == [(250, 7, 33), (1000, 0, 0)]
        assert options.shapes == [("default", 3, 1), ("free", 4, 1)]
        assert options.milli_limit.tolist() == [400, 1000]
        assert options.bundle_workers.tolist() == [1, 4]
        assert options.total_milli.tolist() == [750, 4000]
        assert options.demand.tolist() == [[1, 2, 3, 4], [0, 0, 0, 0]]
        assert (options.cost_milli.tolist(), options.value.tolist()) == ([5, 0], [9, 1])
        assert (options.network_mbps.tolist(), options.workers_per_node.tolist()) == ([11, 0], [2, 4])

    @pytest.mark.parametrize(
        ("fields", "fits"),
        [
            ({"gpus": 4}, True),
            ({"gpus": 5}, False),
            ({"workers": 2, "gpus": 2, "single_node": True}, True),
            ({"workers": 5, "single_node": True}, False),
            ({"workers": 5}, True),
            ({"cpu_millicores": 32_000}, True),
            ({"cpu_millicores": 32_001}, False),
            ({"workers": 2, "memory_mib": 131_072, "single_node": True}, True),
            ({"workers": 2, "memory_mib": 131_073, "single_node": True}, False),
            ({"workers": 2, "single_node": True, "workers_per_node_max": 2}, True),
            ({"workers": 3, "single_node": True, "workers_per_node_max": 2}, False),
            ({"gpu_memory_mib": 16_384}, True),
            ({"gpu_memory_mib": 16_385}, False),
            ({"gpus": 0, "gpu_memory_mib": 16_385}, True),
        ],
    )
    def test_whether_a_bundle_fits_on_an_idle_node(self, fields: dict[str, Any], fits: bool) -> None:
        """Four GPUs of 16 GiB, 32 cores, 256 GiB: at the edge and one above."""
        assert self.problem(option(**fields)).node_ok(0).tolist() == [fits]

    def test_too_many_rows_are_refused_before_they_are_made(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """
        Of at most 10 beside the options stated: 1..11 adds ten, 1..12 one too many; ranges of options before count.

        Options without a range may be any number: a round of 2,000,000 jobs may have as many kinds of them.
        """
        monkeypatch.setattr(compile_module, "MAX_ELASTIC_ROWS", 10)
        eleven = option("more", workers=11, workers_min=1)
        assert len(self.problem(eleven).options) == 11
        assert len(self.problem(*(option(f"{i}") for i in range(20)), eleven).options) == 31
        with pytest.raises(BadInput, match=r"job 'a': elastic range 1..12 makes more than 10"):
            self.problem(option(workers=12, workers_min=1))
        with pytest.raises(BadInput, match=r"elastic range 2..3"):
            self.problem(eleven, option("last", workers=3, workers_min=2))

    def test_values_that_could_sum_past_2_to_the_53(self) -> None:
        """Exactly there is fine, one more is not; a change counts twice for every running job."""

        def options_of(value: int) -> Any:
            problem = self.problem(option(value=value, workers=3), option("less"))
            return problem.options

        counts = np.array([2**52])
        refuse_huge_values(options_of(2), counts, Policy(), 0)
        with pytest.raises(Unsupported):
            refuse_huge_values(options_of(2), counts + 1, Policy(), 0)
        near = np.array([2**53 - 60])
        for prices in ({"move_price": 10}, {"preemption_price": 10}, {"shrink_price_per_worker": 4}):
            policy = Policy(changes=Changes(**prices))
            each = 12 if "shrink_price_per_worker" in prices else 10
            most = 60 // (2 * each)
            refuse_huge_values(options_of(1), near, policy, most)
            with pytest.raises(Unsupported, match=f"the {most + 1} running ones cost up to {each} each"):
                refuse_huge_values(options_of(1), near, policy, most + 1)

    def test_the_best_option_of_each_class_counts(self) -> None:
        """3 x 5 + 2 x 7, against 2^53 - 29 more of a third class."""
        jobs = [job("a", options=(option("x", value=1), option("y", value=5))), job("b", value=7), job("c")]
        problem = compile_problem(instance(1, jobs))
        refuse_huge_values(problem.options, np.array([3, 2, 2**53 - 29]), Policy(), 0)
        with pytest.raises(Unsupported, match=str(2**53 + 1)):
            refuse_huge_values(problem.options, np.array([3, 2, 2**53 - 28]), Policy(), 0)


class TestTables:
    def test_slowdowns_and_profiles(self) -> None:
        """Profiles are numbered as they come; a job of an unknown one, or of none, has row -1."""
        levels = {"gpu_thousandths": 1, "switch_thousandths": 2, "socket_thousandths": 3, "node_thousandths": 4}
        slow = (Slowdown(profile="p", beside="q", **levels), Slowdown(profile="q", beside="r", node_thousandths=9))
        jobs = [job("a", profile="r"), job("b", profile="x"), job("c"), job("d", profile="p")]
        problem = compile_problem(instance(1, jobs, slowdowns=slow))
        assert problem.class_profile.tolist() == [2, -1, -1, 0]
        assert problem.slowdown[:, 0, 1].tolist() == [1, 2, 3, 4]
        assert problem.slowdown[:, 1, 2].tolist() == [0, 0, 0, 9]
        assert problem.slowdown.sum() == 19

    def test_queues_minima_and_jobs(self) -> None:
        policy = Policy(queues=(Queue(id="q"), Queue(id="r")))
        jobs = [
            job("a", queue="r", arrival_ms=5, priority=-2),
            job("b", utility_min_thousandths=0),
            job("c", queue="q", utility_min_thousandths=7, priority=3),
        ]
        problem = compile_problem(instance(1, jobs, policy=policy))
        assert problem.class_queue.tolist() == [1, -1, 0]
        assert problem.class_utility_min.tolist() == [-1, 0, 7]
        assert (problem.job_arrival_ms.tolist(), problem.job_priority.tolist()) == ([5, 0, 0], [-2, 0, 3])
        assert problem.class_option_start.tolist() == [0, 1, 2, 3]

    @pytest.mark.parametrize(
        ("mode", "most", "jobs", "bind"),
        [
            ("exclusive", None, 1, True),
            ("fraction", None, None, True),
            ("fraction", 3, 3, True),
            ("overcommit", 2, 2, False),
        ],
    )
    def test_share_modes(self, mode: Any, most: int | None, jobs: int | None, bind: bool) -> None:
        problem = compile_problem(instance(1, policy=Policy(share_mode=mode, jobs_per_gpu_max=most)))
        assert (problem.jobs_per_gpu, problem.shares_bind) == (jobs, bind)

    def test_running_records(self) -> None:
        """By number of the job, in the order of the file."""
        jobs = [job(name) for name in "abc"]
        runs = [running(jobs[2], [("n0", [0])]), running(jobs[0], [("n0", [1])])]
        problem = compile_problem(instance(1, jobs, running=runs))
        assert problem.running_records == {2: runs[0], 0: runs[1]}
        assert list(problem.running) == [2, 0]

    def test_running_records_of_a_problem_with_fewer_running_jobs(self) -> None:
        """Those that the problem has; the instance may have more."""
        jobs = [job(name) for name in "ab"]
        runs = [running(one, [("n0", [i])]) for i, one in enumerate(jobs)]
        problem = compile_problem(instance(1, jobs, running=runs))
        fewer = replace(problem, running={1: problem.running[1]})
        assert fewer.running_records == {1: runs[1]}

    def test_share_bounds(self) -> None:
        """Of every option where anything may be granted above a request; else of none."""
        limited, plain = job("a", gpu_milli=300, gpu_milli_limit=500), job("b", gpu_milli=400)
        assert compile_problem(instance(1, [limited, plain])).share_bounds == [(300, 500), (400, 400)]
        assert compile_problem(instance(1, [plain])).share_bounds == []
        for policy in (Policy(share_mode="exclusive"), Policy(share_mode="overcommit", jobs_per_gpu_max=2)):
            assert compile_problem(instance(1, [limited, plain], policy=policy)).share_bounds == []

    def test_schedulable(self) -> None:
        problem = compile_problem(instance([node("n0", drained=True), node("n1")]))
        assert problem.node_schedulable.tolist() == [False, True]


@pytest.mark.parametrize("field", ["moves_max", "shrinks_max", "preemptions_max"])
def test_jobs_that_one_kind_of_change_may_touch(field: str) -> None:
    """Each flag by its own limit; of three running jobs each has one flag, the elastic one is above its minimum."""
    jobs = [job("gone"), *(job(name, workers=3, workers_min=2) for name in "msp")]
    flags = ({"movable": True}, {"shrinkable": True}, {"preemptible": True})
    runs = [
        running(one, [(f"n{i}", [g]) for g in range(3)], **flags[i]) for i, one in enumerate(jobs[1:])
    ]  # fmt: skip
    round_: Instance = instance(3, jobs, running=runs, policy=Policy(changes=Changes(**{field: 1})))
    problem = compile_problem(round_)
    found = {"moves_max": problem.may_move, "shrinks_max": problem.may_shrink, "preemptions_max": problem.may_preempt}
    expected = {"moves_max": {1}, "shrinks_max": {2}, "preemptions_max": {3}}
    assert found == {name: expected[name] if name == field else set() for name in found}
    assert problem.changeable == expected[field]


def test_a_gang_cannot_shrink() -> None:
    """Nor can an elastic job in an option that is not."""
    jobs = [job("a", workers=2), job("b", options=(option("x", workers=2), option("y", workers=2, workers_min=1)))]
    where = [[("n0", [0]), ("n0", [1])], [("n1", [0]), ("n1", [1])]]
    for name, able in (("x", set()), ("y", {1})):
        runs = [
            running(jobs[0], where[0], shrinkable=True),
            running(jobs[1], where[1], option=name, shrinkable=True),
        ]
        problem = compile_problem(instance(2, jobs, running=runs, policy=Policy(changes=Changes(shrinks_max=1))))
        assert problem.may_shrink == able


def test_hose_loads_of_uneven_parts() -> None:
    """One worker on n0, three on n1, all in one rack: 7 each; nothing leaves the rack. One node: nothing at all."""
    nodes = (node("n0", domain="r"), node("n1", domain="r"))
    gang = job("a", workers=4, gpus=0, network_bandwidth_mbps=7)
    problem = compile_problem(instance(nodes, [gang], domains=(Domain(id="r"),)))
    assert hose_loads(problem, Placement(0, (0, 1, 1, 1), ())) == [("machine", 0, 7), ("machine", 1, 7)]
    assert hose_loads(problem, Placement(0, (1, 1, 1, 1), ())) == []
