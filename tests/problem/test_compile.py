"""
What compiling refuses, and the few things of a compiled round that no rule or cost shows.

That arrays say what records say is shown where they are used: `terms/test_rules.py` compares what the compiled rules
allow with the referee, and brute force every optimum and every cost.
"""

import numpy as np
import pytest

from placeopt import BadInput, Policy, Unsupported
from placeopt.build import instance, job, machine, node, option, running
from placeopt.model import (
    Changes,
    Communication,
    Domain,
    Fragmentation,
    Gpu,
    Job,
    LabelExpression,
    Part,
    Queue,
    Taint,
    Toleration,
    Weights,
)
from placeopt.problem import compile_problem
from placeopt.terms import weighted_costs


def expression(key: str, operator: str, *values: str) -> LabelExpression:
    return LabelExpression.model_validate({"key": key, "operator": operator, "values": values})


class TestClasses:
    """Everything folds by class: a field left out of the key would make two different jobs, or nodes, one."""

    def test_of_jobs(self) -> None:
        same = [job("a"), job("b", priority=5, arrival_ms=7, user="u"), job("c", options=(option(),))]
        different = [
            job("value", value=2),
            job("profile", profile="p"),
            job("traffic", communication=Communication(weight=1)),
            job("selector", node_selector={"x": "1"}),
            job("two-keys", node_selector={"x": "1", "y": "2"}),
            job("nodes", nodes_allowed=("n0",)),
            job("taints", tolerations=(Toleration(key="old"),)),
            job("affinity", node_affinity=((LabelExpression(key="x", operator="Exists"),),)),
            job("names", nodes_excluded=("n0",)),
            job("utility", utility_min_thousandths=1),
            job("queue", queue="q"),
            job("another-queue", queue="r"),
        ]
        again = job("another-order", node_selector={"y": "2", "x": "1"})
        policy = Policy(queues=(Queue(id="q"), Queue(id="r")))
        problem = compile_problem(instance(2, [*same, *different, again], policy=policy))
        assert problem.job_class.tolist() == [0, 0, 0, *range(1, 13), 5]
        without = compile_problem(instance(2, [*same, *different]))
        assert without.job_class[-2:].tolist() == [0, 0]  # no queues in the policy: a job's queue means nothing

    @pytest.mark.parametrize(
        ("jobs", "classes"),
        [
            ([job("a")], [0, 0, 0, 1, 2, 3, 0]),
            ([job("a", node_selector={"disk": "ssd"})], [0, 0, 1, 2, 3, 4, 1]),
            ([job("a", node_selector={"rack": "r0"})], [0, 1, 1, 2, 3, 4, 1]),
            ([job("a", nodes_allowed=("n0", "n6")), job("b", nodes_allowed=("n6",))], [0, 1, 1, 2, 3, 4, 5]),
            ([job("a", nodes_excluded=("n0", "gone"))], [0, 1, 1, 2, 3, 4, 1]),
            ([job("a", node_affinity=((expression("x", "In", "1", "2"),),))], [0, 0, 1, 2, 3, 4, 1]),
            (
                [job("a", node_affinity=((expression("x", "Gt", "1"),), (expression("disk", "Exists"),)))],
                [0, 0, 1, 2, 3, 4, 1],
            ),
            ([job("a", node_affinity=((expression("x", "Lt", "9"),),))], [0, 0, 1, 2, 3, 4, 1]),
            ([job("a", node_affinity=((expression("x", "Lt", "2"),),))], [0, 1, 1, 2, 3, 4, 1]),
        ],
    )
    def test_of_nodes_by_which_jobs_choose_them(self, jobs: list[Job], classes: list[int]) -> None:
        """Labels that no job asks for, names in no list and domains do not make a class."""
        nodes = (
            node("n0", labels={"disk": "ssd", "x": "1"}, domain="r0"),
            node("n1", labels={"disk": "ssd", "x": "2"}, domain="r1"),
            node("n2"),
            node("n3", drained=True),
            node("n4", taints=(Taint(key="t"),)),
            node("n5", "other"),
            node("n6"),
        )
        kinds = [machine(), machine("other")]
        problem = compile_problem(instance(nodes, jobs, machines=kinds, domains=(Domain(id="r0"), Domain(id="r1"))))
        assert problem.node_class.tolist() == classes


def test_a_machine_that_is_only_listed_is_no_part_of_the_cluster() -> None:
    """Its small GPU would make the memory of a job look dear, and so change the weights of all costs."""
    small, used = machine("small", [Gpu(model="A", memory_mib=100)]), machine()
    weights = Weights(communication=0, interference=0, fragmentation=0, horus=1000)
    rounds = [
        instance(2, [job("a", gpu_memory_mib=100)], machines=kinds, policy=Policy(weights=weights))
        for kinds in ([used], [used, small])
    ]
    assert len({weighted_costs(compile_problem(round_))[0].worst for round_ in rounds}) == 1


def test_levels_are_those_that_have_a_weight_and_exist() -> None:
    """A level the cluster lacks counts nothing, nor one of weight 0."""
    weights = {"node": 2, "rack": 3, "socket": 1, "zone": 1, "numa": 0}
    policy = Policy(fragmentation=Fragmentation(level_weights=weights))
    nodes = (node("n0", domain="r0"), node("n1"))
    problem = compile_problem(instance(nodes, machines=[machine(gpus=2)], domains=[Domain(id="r0")], policy=policy))
    assert [(level.name, level.weight) for level in problem.levels] == [("node", 2), ("rack", 3)]


def test_a_cluster_without_gpus_or_jobs_compiles() -> None:
    """The empty shapes are where array code breaks."""
    problem = compile_problem(instance(1, machines=[machine(gpus=0)]))
    assert (problem.num_gpus, problem.num_jobs, len(problem.options)) == (0, 0, 0)
    assert compile_problem(instance(1, [job("a", gpus=0)], machines=[machine(gpus=0)])).node_ok(0).tolist() == [True]


def test_arrays_are_read_only() -> None:
    """States share them."""
    problem = compile_problem(instance(1, [job("a")]))
    for array in (problem.node_capacity, problem.options.value, problem.levels[0].total):
        with pytest.raises(ValueError, match="read-only"):
            np.add(array, 1, out=array)


def test_hardware_of_a_problem_can_be_used_again() -> None:
    """Its distances are not computed twice."""
    round_ = instance(2, [job("a")])
    problem = compile_problem(round_)
    assert compile_problem(round_, hardware=problem).topology is problem.topology


class TestRefused:
    def test_running_jobs_in_an_option_without_utility(self) -> None:
        """The referee would refuse every plan of such a round, so it is said at the door."""
        low = job("a", options=(option(utility_thousandths=1),), utility_min_thousandths=2)
        with pytest.raises(BadInput, match=r"running job 'a'.*utility"):
            compile_problem(instance(1, [low], running=[running(low, [("n0", [0])])]))

    def test_jobs_that_run_on_more_than_the_whole_of_a_gpu(self) -> None:
        """1200 granted: where shares bind such a file contradicts itself; up to five of the jobs are named."""
        jobs = [job(name, gpu_milli=100, gpu_milli_limit=200) for name in "abcdef"]
        runs = [running(one, [("n0", [0])], milli=200) for one in jobs]
        with pytest.raises(BadInput, match=r"gpu 0: 1200 of 1000 milli held by jobs 'a', 'b', 'c', 'd', 'e';"):
            compile_problem(instance(1, jobs, running=runs))
        assert len(compile_problem(instance(1, jobs, running=runs[:5])).running) == 5
        policy = Policy(share_mode="overcommit", jobs_per_gpu_max=6)
        assert len(compile_problem(instance(1, jobs, running=runs, policy=policy)).running) == 6

    def test_a_queue_that_another_policy_does_not_know(self) -> None:
        """``policy=`` may override the instance's own, whose queues its jobs name."""
        one = instance(1, [job("a", queue="q")], policy=Policy(queues=(Queue(id="q"),)))
        with pytest.raises(BadInput, match="'q' is unknown to the policy"):
            compile_problem(one, Policy(queues=(Queue(id="r"),)))
        assert compile_problem(one, Policy()).num_jobs == 1

    def test_more_than_200_000_rows_of_elastic_options(self) -> None:
        """Two ranges of 1 to 100,000 add 199,998 rows, one of 1 to 3 two, and then one of 1 to 2 is a row too much."""
        wide = [option(name, workers=100_000, workers_min=1) for name in ("a", "b")]
        shapes = (*wide, option("c", workers=3, workers_min=1), option("d"), option("e", workers=2, workers_min=1))
        with pytest.raises(BadInput, match=r"job 'a': elastic range 1\.\.2 makes more than 200000"):
            compile_problem(instance(1, [job("a", options=shapes)]))

    @pytest.mark.parametrize(
        ("changes", "dearest"),
        [
            ({}, 0),
            ({"move_price": 10}, 10),
            ({"preemption_price": 10}, 10),
            ({"shrink_price_per_worker": 2}, 20_000),
        ],
    )
    def test_values_that_could_sum_past_2_to_the_53(self, changes: dict[str, int], dearest: int) -> None:
        """
        Just 2^53 is fine, one more is not: floats of solvers are exact up to there.

        900 jobs are worth 10^13 each, one 7,199,254,740,992 in its best option, and one that runs nothing. Changes of
        that one count twice; a shrink could take 10,000 workers.
        """
        large = (option(workers=10_000, workers_min=1, value=10**13, value_per_worker=10**9),)
        held, policy = job("r", value=0), Policy(changes=Changes(**changes))
        for over in (0, 1):
            value = 7_199_254_740_992 - 2 * dearest + over
            best = option("best", workers=7200, value=value)
            jobs = [
                held,
                job("rest", options=(option("less"), best)),
                *(job(f"{i}", options=large) for i in range(900)),
            ]
            round_ = instance(1, jobs, running=[running(held, [("n0", [0])])], policy=policy)
            if over:
                with pytest.raises(Unsupported, match=f"the 1 running ones cost up to {dearest} each: more than 2"):
                    compile_problem(round_)
            else:
                assert compile_problem(round_).num_jobs == 902


def test_gpus_that_are_gone_are_far_from_all_others() -> None:
    """As far as any two of a stated matrix are, and 0 from themselves."""
    gang = job("a", gpus=2)
    kind = machine(gpus=3, gpu_distance_matrix=((0, 1, 20), (1, 0, 7), (20, 7, 0)))
    problem = compile_problem(instance(1, [gang], machines=[kind], running=[running(gang, [("n0", [3, 4])])]))
    topology = problem.topology
    assert topology.distance[topology.node_machine[0]].tolist() == [
        [0, 1, 20, 20, 20],
        [1, 0, 7, 20, 20],
        [20, 7, 0, 20, 20],
        [20, 20, 20, 0, 20],
        [20, 20, 20, 20, 0],
    ]


def test_fragmentation_is_counted_at_every_level_inside_machines() -> None:
    """Sockets, NUMA domains and switches."""
    levels = ("socket", "numa", "switch")
    above = (None, "socket", "numa")
    parts = tuple(Part(id=a, level=a, parent=b) for a, b in zip(levels, above, strict=True))
    kind = machine(gpus=[Gpu(model="A", part="switch")] * 2, parts=parts)
    policy = Policy(fragmentation=Fragmentation(level_weights=dict.fromkeys(("node", "rack", *levels), 1)))
    problem = compile_problem(instance(1, [job("a")], machines=[kind], policy=policy))
    assert {*levels, "node"} <= {level.name for level in problem.levels}
