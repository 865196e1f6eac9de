"""Instance -> arrays: classes, option rows, masks, capacities, running jobs; and what is refused."""

import numpy as np
import pytest

from placeopt import BadInput, Unsupported
from placeopt.build import instance, job, machine, node, option, running
from placeopt.model import (
    Changes,
    Communication,
    Domain,
    Fragmentation,
    Gpu,
    Part,
    Policy,
    Queue,
    Split,
    Usable,
    Weights,
)
from placeopt.problem import RESOURCES, UNLIMITED, Placement, compile_problem
from placeopt.terms.objective import weighted_costs


def test_jobs_alike_are_one_class_and_jobs_that_differ_in_anything_the_rules_see_are_not() -> None:
    """Everything folds by class, so a field left out of the key would make two different jobs one."""
    same = [job("a"), job("b", priority=5, arrival_ms=7, user="u")]
    different = [
        job("value", value=2),
        job("profile", profile="p"),
        job("traffic", communication=Communication(weight=1)),
        job("selector", node_selector={"disk": "ssd"}),
        job("nodes", nodes_allowed=("n0",)),
        job("taints", tolerations=("old",)),
        job("utility", utility_min_thousandths=1),
        job("queue", queue="q"),
    ]
    policy = Policy(queues=(Queue(id="q"),))
    problem = compile_problem(instance(2, [*same, *different], policy=policy))
    assert problem.job_class.tolist() == [0, 0, *range(1, 9)]
    without = compile_problem(instance(2, [*same, *different]))
    assert without.job_class[-1] == 0  # no queues in the policy: a job's queue means nothing


def test_an_elastic_option_is_a_row_for_every_number_of_workers() -> None:
    """DynamoML 3.3: worth the value at the minimum plus so much for every worker above."""
    elastic = option("e", workers=4, workers_min=2, value=5, value_per_extra_worker=3, gpus=2)
    problem = compile_problem(instance(2, [job("a", options=(elastic, option("f", single_node=True, workers=3)))]))
    options = problem.options
    assert options.name == ("e", "e", "e", "f")
    assert options.workers.tolist() == [2, 3, 4, 3]
    assert options.value.tolist() == [5, 8, 11, 1]
    assert options.bundles.tolist() == [2, 3, 4, 1]
    assert options.total_milli.tolist() == [4000, 6000, 8000, 3000]
    assert list(problem.options_of(0)) == [0, 1, 2, 3]


def test_an_option_below_the_jobs_minimal_utility_has_no_row() -> None:
    """SC'17 alg. 1: it waits rather than run so badly. Unknown utility is no reason to wait."""
    options = (
        option("low", utility_thousandths=299),
        option("just", utility_thousandths=300),
        option("unknown"),
    )
    problem = compile_problem(instance(1, [job("a", options=options, utility_min_thousandths=300)]))
    assert problem.options.name == ("just", "unknown")


def test_a_machine_that_is_only_listed_is_no_part_of_the_cluster() -> None:
    """Its small GPU would make the memory of a job look dear, and so change the weights of all costs (regression)."""
    small, used = machine("small", [Gpu(model="A", memory_mib=100)]), machine()
    weights = Weights(communication=0, interference=0, fragmentation=0, horus=1000)
    needs = [job("a", gpu_memory_mib=100)]
    policy = Policy(weights=weights)
    problems = [
        compile_problem(instance(2, needs, machines=machines, policy=policy)) for machines in ([used], [used, small])
    ]
    assert problems[1].type_memory_mib.tolist() == [16_384]
    assert weighted_costs(problems[0])[0].worst == weighted_costs(problems[1])[0].worst


def test_masks_of_the_idle_nodes_on_which_a_bundle_fits() -> None:
    """Columns are made where the mask allows, so it must neither forbid nor allow too much."""
    machines = (machine("big", 4), machine("mixed", [Gpu(model="A", memory_mib=8000), Gpu(model="B", memory_mib=8000)]))
    nodes = (
        node("n0", "big"),
        node("n1", "mixed"),
        node("n2", "big", drained=True),
        node("n3", "big", taints=("old",)),
        node("n4", "big", labels={"disk": "ssd"}),
    )
    jobs = [
        job("any"),
        job("four", gpus=4),
        job("model", gpu_models=("B",)),
        job("memory", gpu_memory_mib=8001),
        job("tolerant", tolerations=("old", "new")),
        job("ssd", node_selector={"disk": "ssd"}),
        job("named", nodes_allowed=("n1", "n2")),
        job("together", workers=3, gpus=1, single_node=True),
        job("cpu", cpu_millicores=32_001),
        job("crowd", workers=2, single_node=True, workers_per_node_max=1),
    ]
    problem = compile_problem(instance(nodes, jobs, machines=machines))
    rows = {
        name: problem.node_ok(problem.options_of(j)[0]).astype(int).tolist() for j, name in enumerate(problem.job_ids)
    }
    assert rows == {
        "any": [1, 1, 0, 0, 1],
        "four": [1, 0, 0, 0, 1],
        "model": [0, 1, 0, 0, 0],
        "memory": [1, 0, 0, 0, 1],
        "tolerant": [1, 1, 0, 1, 1],
        "ssd": [0, 0, 0, 0, 1],
        "named": [0, 1, 0, 0, 0],
        "together": [1, 0, 0, 0, 1],
        "cpu": [0, 0, 0, 0, 0],
        "crowd": [0, 0, 0, 0, 0],
    }
    assert problem.gpu_ok(problem.options_of(2)[0]).nonzero()[0].tolist() == [5]


def test_domains_above_a_node_are_labels_of_it() -> None:
    """A selector may ask for a rack or for what stands above it."""
    domains = (Domain(id="z0", level="zone"), Domain(id="r0", parent="z0"), Domain(id="r1"))
    nodes = (node("n0", domain="r0"), node("n1", domain="r1"), node("n2"))
    jobs = [job("zone", node_selector={"zone": "z0"}), job("rack", node_selector={"rack": "r1"})]
    problem = compile_problem(instance(nodes, jobs, domains=domains))
    assert [problem.node_ok(o).tolist() for o in (0, 1)] == [[True, False, False], [False, True, False]]


def test_capacity_is_the_usable_part_and_unknown_is_no_limit() -> None:
    """SODA V-E: 75 % of memory bandwidth; percentages of integers round down, as load x 100 <= percent x capacity."""
    known = machine("m", 1, memory_bandwidth_mbps=1001, pcie_bandwidth_mbps=10)
    policy = Policy(usable=Usable(pcie_bandwidth_percent=66))
    problem = compile_problem(
        instance([node("a"), node("b", "open")], machines=(known, machine("open", 1)), policy=policy)
    )
    assert RESOURCES == ("cpu_millicores", "memory_mib", "memory_bandwidth_mbps", "pcie_bandwidth_mbps")
    assert problem.node_capacity.tolist() == [
        [32_000, 262_144, 750, 6],
        [32_000, 262_144, UNLIMITED, UNLIMITED],
    ]


def test_parts_are_numbered_through_the_cluster() -> None:
    """Two nodes of one machine type do not share a socket."""
    parts = (Part(id="s0", level="socket"), Part(id="w", level="switch", parent="s0"), Part(id="s1", level="socket"))
    gpus = [Gpu(model="A", part="w"), Gpu(model="A", part="s1"), Gpu(model="A")]
    problem = compile_problem(instance(2, machines=[machine(gpus=gpus, parts=parts)]))
    assert problem.gpu_socket.tolist() == [0, 1, -1, 2, 3, -1]
    assert problem.gpu_switch.tolist() == [0, -1, -1, 1, -1, -1]


def test_levels_are_those_that_have_a_weight_and_exist() -> None:
    """A level the cluster lacks counts nothing; a GPU outside every domain of a level belongs to none."""
    policy = Policy(
        fragmentation=Fragmentation(level_weights={"node": 2, "rack": 3, "socket": 1, "zone": 1, "numa": 0})
    )
    nodes = (node("n0", domain="r0"), node("n1"))
    problem = compile_problem(instance(nodes, machines=[machine(gpus=2)], domains=[Domain(id="r0")], policy=policy))
    assert [
        (level.name, level.weight, level.gpu_to_domain.tolist(), level.total.tolist()) for level in problem.levels
    ] == [
        ("node", 2, [0, 0, 1, 1], [2, 2]),
        ("rack", 3, [0, 0, -1, -1], [2]),
    ]


def test_domains_of_a_split_are_compiled_once() -> None:
    """Looking them up for every try walked all nodes."""
    nodes = (node("n0", domain="r0"), node("n1", domain="r1"), node("n2"))
    split = job("a", workers=2, splits=(Split(level="rack", domains=2), Split(level="node", domains=2)))
    problem = compile_problem(instance(nodes, [split], domains=[Domain(id="r0"), Domain(id="r1")]))
    assert {level: of.tolist() for level, of in problem.split_domain.items()} == {"rack": [0, 1, -1], "node": [0, 1, 2]}


def test_a_running_job_is_placed_as_in_the_file() -> None:
    """Ranks, nodes and GPUs; of its share the request counts, whatever is granted above."""
    elastic = job("a", options=(option(workers=3, workers_min=1, gpu_milli=400, gpu_milli_limit=700),))
    plain = job("b", gpus=2)
    runs = [
        running(elastic, [("n1", [3]), ("n0", [2])], milli=500),
        running(plain, [("n1", [0, 1])]),
    ]
    problem = compile_problem(instance(2, [elastic, plain, job("c")], running=runs))
    assert problem.running == {
        0: Placement(1, (1, 0), (7, 2)),
        1: Placement(3, (1,), (4, 5)),
    }


def test_running_jobs_in_an_option_without_utility_are_refused() -> None:
    """The referee would refuse every plan of such a round, so it is said at the door."""
    low = job("a", options=(option(utility_thousandths=1),), utility_min_thousandths=2)
    with pytest.raises(BadInput, match=r"running job 'a'.*utility"):
        compile_problem(instance(1, [low], running=[running(low, [("n0", [0])])]))


@pytest.mark.parametrize(
    ("changes", "flag", "field"),
    [
        (Changes(moves_max=1), "movable", "may_move"),
        (Changes(shrinks_max=1), "shrinkable", "may_shrink"),
        (Changes(preemptions_max=1), "preemptible", "may_preempt"),
    ],
)
def test_a_running_job_may_be_changed_where_policy_and_job_allow_it(changes: Changes, flag: str, field: str) -> None:
    """Both must; and a job at the minimum of its option has nothing to give."""
    jobs = [job("a", workers=2, workers_min=1), job("b", workers=2, workers_min=1)]
    runs = [
        running(jobs[0], [("n0", [0])], **{flag: True}),
        running(jobs[1], [("n0", [1]), ("n0", [2])], **{flag: True}),
    ]
    allowed = instance(1, jobs, running=runs, policy=Policy(changes=changes))
    at_minimum = set() if flag == "shrinkable" else {0}
    assert getattr(compile_problem(allowed), field) == at_minimum | {1}
    assert compile_problem(allowed).changeable == at_minimum | {1}
    assert not compile_problem(allowed, Policy()).changeable
    fixed = allowed.model_copy(update={"running": tuple(r.model_copy(update={flag: False}) for r in runs)})
    assert not compile_problem(fixed).changeable


def test_a_queue_that_another_policy_does_not_know_is_refused() -> None:
    """``policy=`` may override the instance's own, whose queues its jobs name."""
    one = instance(1, [job("a", queue="q")], policy=Policy(queues=(Queue(id="q"),)))
    with pytest.raises(BadInput, match="'q' is unknown to the policy"):
        compile_problem(one, Policy(queues=(Queue(id="r"),)))
    assert compile_problem(one, Policy()).class_queue.tolist() == [-1]


def test_values_that_cannot_be_summed_exactly_are_refused() -> None:
    """Within the fields' limits an elastic job may be worth 1e14; a hundred of them would wrap around in 64 bits."""
    elastic = option(workers=100_000, workers_min=1, value_per_extra_worker=10**9)
    with pytest.raises(Unsupported, match=r"more than 2\*\*53"):
        compile_problem(instance(1, [job(f"{i}", options=(elastic,)) for i in range(100)]))


def test_arrays_are_read_only() -> None:
    """States share them."""
    problem = compile_problem(instance(1, [job("a")]))
    for array in (problem.node_capacity, problem.options.value, problem.levels[0].total):
        with pytest.raises(ValueError, match="read-only"):
            np.add(array, 1, out=array)


def test_a_cluster_without_gpus_or_jobs_compiles() -> None:
    """The empty shapes are where array code breaks."""
    problem = compile_problem(instance(1, machines=[machine(gpus=0)]))
    assert (problem.num_gpus, problem.num_jobs, len(problem.options)) == (0, 0, 0)
    assert compile_problem(instance(1, [job("a", gpus=0)], machines=[machine(gpus=0)])).node_ok(0).tolist() == [True]
