"""The public builder: records in one line each, with the errors of the records."""

import pytest
from pydantic import ValidationError

from placeopt import build, solve, violations
from placeopt.model import Domain, Gpu, Split
from placeopt.simulation import Arrival


def test_a_first_round_in_a_few_lines() -> None:
    """A newcomer's own cluster needs no file and no record: three jobs on three nodes of eight GPUs."""
    dgx = build.machine("dgx", gpus=8, model="A100", gpu_memory_mib=81_920)
    jobs = [build.job("bert", gpus=4), build.gang("llama", workers=2, gpus=8), build.job("notebook", gpu_milli=250)]
    made = build.instance(nodes=3, machines=[dgx], jobs=jobs)
    assert [node.machine for node in made.cluster.nodes] == ["dgx"] * 3
    assert {gpu.model for gpu in made.cluster.machines[0].gpus} == {"A100"}
    plan = solve(made, isolation="thread", deterministic=True)
    assert violations(made, plan) == []
    assert sorted(placed.job for placed in plan.placements) == ["bert", "llama", "notebook"]


def test_fields_of_demand_option_and_job_may_be_mixed() -> None:
    made = build.job("a", workers=2, gpus=3, cpu_millicores=500, value=7, priority=2, single_node=True)
    (option,) = made.options
    assert (made.priority, option.value, option.workers, option.single_node) == (2, 7, 2, True)
    assert (option.demand.gpus, option.demand.cpu_millicores) == (3, 500)


def test_several_ways_to_run_are_options() -> None:
    """`options` replaces the one that would be made; a whole demand replaces the one made of its fields."""
    wide = build.option("wide", workers=2)
    narrow = build.option("narrow", demand=wide.demand)
    assert build.job("a", options=(wide, narrow)).options == (wide, narrow)
    assert narrow.demand == wide.demand


def test_a_gang_may_be_kept_together() -> None:
    """One domain of the level holds all workers; further splits stay."""
    made = build.gang("g", workers=4, gpus=2, together="rack", splits=(Split(level="node", domains=2),))
    assert made.options[0].splits == (Split(level="node", domains=2), Split(level="rack", domains=1))
    assert build.gang("g", workers=4).options[0].splits == ()


def test_racks_share_the_nodes_evenly() -> None:
    """Five nodes in two racks, in order: three and two."""
    made = build.cluster(5, racks=2)
    assert [node.domain for node in made.nodes] == ["r0", "r0", "r0", "r1", "r1"]
    assert [domain.level for domain in made.domains] == ["rack", "rack"]
    with pytest.raises(ValueError, match="racks: goes without 'domains'"):
        build.cluster(5, racks=2, domains=[Domain(id="x")])


def test_nodes_that_are_alike() -> None:
    """Their ids are numbered from the first on; two types stand in one cluster."""
    types = [build.machine("big", gpus=[Gpu(model="H100")] * 8), build.machine("small", gpus=1)]
    nodes = [*build.nodes(2, "big", prefix="b", labels={"zone": "z"}), *build.nodes(1, "small", first=7)]
    made = build.cluster(nodes, machines=types)
    assert [(node.id, node.machine) for node in made.nodes] == [("b0", "big"), ("b1", "big"), ("n7", "small")]
    assert [node.labels for node in made.nodes] == [{"zone": "z"}, {"zone": "z"}, {}]
    assert build.instance(made).cluster is made


def test_what_runs_holds_what_its_option_requests() -> None:
    """Two workers of two GPUs on one node and one on another, with their CPU; of a share, the share."""
    made = build.job("a", workers=3, gpus=2, cpu_millicores=1000)
    held = build.running(made, [("n0", [0, 1]), ("n0", [2, 3]), ("n1", [0, 1])], movable=True)
    assert [(part.node, part.cpu_millicores, sorted(part.gpus)) for part in held.assignments] == [
        ("n0", 2000, ["0", "1", "2", "3"]),
        ("n1", 1000, ["0", "1"]),
    ]
    assert held.movable
    assert build.instance(2, [made], running=[held]).running == (held,)
    options = (build.option("whole"), build.option("half", gpu_milli=500))
    share = build.placement(build.job("b", options=options), [("n0", [3])], option="half")
    assert share.assignments[0].gpus == {"3": 500}
    assert build.placement(build.job("b"), [("n0", [3])], milli=250).assignments[0].gpus == {"3": 250}


def test_a_scenario_tells_expected_from_actual_run_times() -> None:
    """Jobs become arrivals; an arrival stays as it is."""
    late = Arrival(job=build.job("b", arrival_ms=5), actual_run_time_ms=9)
    made = build.scenario(1, [build.job("a", run_time_ms=1000), late], run_time_ms={"a": 1500}, name="day")
    assert [(one.job.id, one.actual_run_time_ms) for one in made.arrivals] == [("a", 1500), ("b", 9)]
    assert made.name == "day"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: build.job("a", gpus=-1), "gpus"),
        (lambda: build.job("a", gpu_mili=500), "gpu_mili"),
        (lambda: build.machine(gpus=2, cpu_millicores="many"), "cpu_millicores"),
        (lambda: build.instance([build.node("n0", "dgx")]), r"no machine type 'dgx'; add it to 'machines'"),
        (lambda: build.instance(1, [build.job("a"), build.job("a")]), "appears twice"),
    ],
)
def test_what_is_wrong_is_named(make: object, words: str) -> None:
    """The errors are those of the records: field, value and what was expected."""
    with pytest.raises(ValidationError, match=words):
        make()
