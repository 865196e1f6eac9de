"""Every spec: feasible, repeatable, of the size asked for, and distributed as documented."""

from collections import Counter
from math import gcd

import pytest

import placeopt
from helpers.imported_rounds import waiting
from helpers.plans import plan_for
from made_rounds import SPECS, generate
from placeopt import BadInput, solve, violations
from placeopt.generators import Size
from placeopt.model import Instance, Job, Option


def made(spec: str, jobs: int, nodes: int, gpus: int = 8, seed: int = 0) -> Instance:
    return generate(spec, jobs=jobs, nodes=nodes, gpus=gpus, seed=seed)


def faults_of(instance: Instance) -> list[object]:
    """What the referee says of the plan that changes nothing: what runs keeps running, all others wait."""
    return list(violations(instance, plan_for(instance, {held.job: held for held in instance.running})))


def waiting_jobs(instance: Instance) -> list[Job]:
    names = waiting(instance)
    return [job for job in instance.jobs if job.id in names]


def options(instance: Instance) -> list[Option]:
    """The first option of each job that waits."""
    return [job.options[0] for job in waiting_jobs(instance)]


def gpus_of(option: Option) -> int:
    return option.workers * option.demand.gpus


def held_milli(instance: Instance) -> int:
    return sum(milli for entry in instance.running for part in entry.assignments for milli in part.gpus.values())


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize(("jobs", "nodes", "seed"), [(0, 1, 0), (1, 1, 1), (30, 5, 2), (200, 40, 3)])
def test_size_repeatable_and_feasible(spec: str, jobs: int, nodes: int, seed: int) -> None:
    """The referee finds nothing wrong with what runs, at most 35 % is busy, and the same call gives the same bytes."""
    if spec == "planted" and not jobs:
        return  # nothing to cut a cluster into
    instance = made(spec, jobs, nodes, 8, seed)
    assert instance.name == f"{spec}-{jobs}x{nodes}x8-s{seed}"
    assert (len(waiting(instance)), len(instance.cluster.nodes)) == (jobs, nodes)
    assert faults_of(instance) == []
    assert held_milli(instance) <= (0.5 if spec in ("preempt", "defrag") else 0.35) * 1000 * nodes * 8
    assert made(spec, jobs, nodes, 8, seed).digest == instance.digest
    assert jobs < 30 or made(spec, jobs, nodes, 8, seed + 1).jobs != instance.jobs
    assert Instance.model_validate_json(instance.model_dump_json(exclude_defaults=True)) == instance


@pytest.mark.parametrize("spec", [spec for spec in SPECS if spec not in ("cubemesh", "islands")])
@pytest.mark.parametrize("gpus", [1, 2, 3, 6, 16])
def test_odd_numbers_of_gpus(spec: str, gpus: int) -> None:
    """No spec relies on powers of two; a worker never has more GPUs than a node."""
    if spec == "parity" and gpus < 3:
        with pytest.raises(BadInput, match="3 or more"):
            made(spec, 300, 33, gpus)
        return
    instance = made(spec, 300, 33, gpus)
    assert max(job.options[0].demand.gpus for job in instance.jobs) <= gpus
    assert max(gpus_of(job.options[0]) for job in instance.jobs) <= 33 * gpus
    assert faults_of(instance) == []


@pytest.mark.parametrize(
    ("spec", "share"),
    [("uniform", 0.35), ("varied", 0.35), ("fractions", 0.35), ("cubemesh", 0.35), ("gangs", 0.2)],
)
def test_share_of_busy_gpus_comes_close(spec: str, share: float) -> None:
    """Only whole jobs are taken, so a little less than the share is busy."""
    assert share - 0.01 <= held_milli(made(spec, 0, 200)) / (1000 * 200 * 8) <= share


def test_uniform_has_the_sizes_of_philly() -> None:
    """
    100,000 jobs: 93.19 % of one GPU or less, of these a quarter, a quarter and half; 2.21 % two, 2.27 four, 2.00 eight.

    A share p has a standard deviation of at most 0.16 percentage points; 0.7 are allowed.
    """
    asked = options(made("uniform", 100_000, 100))
    sizes = Counter(gpus_of(option) * option.demand.gpu_milli for option in asked)
    expected = {250: 23.30, 500: 23.30, 1000: 46.60, 2000: 2.21, 4000: 2.27, 8000: 2.00, 16_000: 0.24, 32_000: 0.08}
    assert sizes.keys() == expected.keys()
    assert {size: count / 1000 for size, count in sizes.items()} == pytest.approx(expected, abs=0.7)
    assert {option.demand.gpus for option in asked if option.workers > 1} == {4, 8}


def test_uniform_jobs_and_profiles() -> None:
    """Value is GPU-milli x 1, 2 or 4; weights 4 to 1 by batch and 0 alone; six profiles, known to the slowdowns."""
    instance = made("uniform", 2000, 100, 4)
    weight = {"tiny": 4, "small": 3, "medium": 2, "big": 1}
    for job in instance.jobs:
        option = job.options[0]
        assert option.value == gpus_of(option) * option.demand.gpu_milli * 2**job.priority
        assert job.profile is not None
        assert job.communication.weight == (weight[job.profile.split("-")[1]] if gpus_of(option) > 1 else 0)
    assert len({job.profile for job in instance.jobs}) == 6
    tiny = next(pair for pair in instance.slowdowns if (pair.profile, pair.beside) == ("alexnet-tiny",) * 2)
    assert (tiny.socket_thousandths, tiny.node_thousandths) == (300, 0)
    assert all(pair.profile != "alexnet-big" for pair in instance.slowdowns)
    arrivals = [job.arrival_ms for job in waiting_jobs(instance)]
    assert arrivals == sorted(arrivals)
    assert arrivals[-1] == instance.now_ms
    assert 5500 < arrivals[-1] / len(arrivals) < 6500


def test_uniform_cluster() -> None:
    """70 nodes: racks of 32, 32 and 6; half of the GPUs on either socket."""
    cluster = made("uniform", 0, 70, 5).cluster
    assert list(Counter(node.domain for node in cluster.nodes).values()) == [32, 32, 6]
    assert [gpu.part for gpu in cluster.machines[0].gpus] == ["socket0"] * 3 + ["socket1"] * 2


def test_varied_leaves_many_node_states() -> None:
    """At 1,000 nodes at least 150 distinct states of free GPU-milli, CPU and memory, as on a real cluster."""
    instance = made("varied", 100, 1000, 4)
    held: dict[str, tuple[Counter[str], list[int]]] = {}
    for entry in instance.running:
        for part in entry.assignments:
            gpus, rest = held.setdefault(part.node, (Counter(), [0, 0]))
            gpus.update(part.gpus)
            rest[0] += part.cpu_millicores
            rest[1] += part.memory_mib
    assert len({(tuple(sorted(gpus.values())), *rest) for gpus, rest in held.values()}) >= 150
    assert len({(job.options[0].demand.cpu_millicores, job.options[0].demand.memory_mib) for job in instance.jobs}) > 50


def test_varied_workers_fit_an_empty_node() -> None:
    instance = made("varied", 3000, 20)
    machine, demands = instance.cluster.machines[0], [job.options[0].demand for job in instance.jobs]
    assert max(demand.cpu_millicores for demand in demands) == machine.cpu_millicores
    assert max(demand.memory_mib for demand in demands) <= machine.memory_mib


def test_gangs_have_every_condition_and_each_can_hold() -> None:
    """40 nodes of 8 are five racks of 8 nodes: 64 GPUs a rack."""
    kinds: Counter[str] = Counter()
    for option in options(made("gangs", 1000, 40)):
        per_rack = 8 * (8 // option.demand.gpus)
        assert gpus_of(option) <= 320
        if option.workers_per_node_max == 1:
            kinds["spread"] += 1
            assert option.workers <= 40
        elif option.splits and option.splits[0].domains == 1:
            kinds["one_rack"] += 1
            assert option.workers <= per_rack
        elif option.splits:
            kinds["two_racks"] += 1
            assert option.splits[0].workers == option.workers // 2 <= per_rack
        elif option.workers > 1:
            kinds["free"] += 1
    assert all(kinds[kind] > 40 for kind in ("spread", "one_rack", "two_racks", "free")), kinds


def test_gangs_on_one_small_rack_drop_what_cannot_hold() -> None:
    asked = [job.options[0] for job in made("gangs", 300, 2, 2).jobs]
    assert all(split.domains == 1 for option in asked for split in option.splits)
    assert all(option.workers <= 2 for option in asked if option.workers_per_node_max == 1)


def test_fractions_have_the_twenty_sizes_of_openb() -> None:
    demands = [option.demand for option in options(made("fractions", 20_000, 10))]
    sizes = {demand.gpu_milli for demand in demands if demand.gpu_milli < 1000}
    assert (len(sizes), min(sizes), max(sizes), gcd(*sizes)) == (20, 50, 810, 10)
    assert {demand.gpus for demand in demands} == {1, 2, 4, 8}
    assert sum(demand.gpu_milli == 810 for demand in demands) / 20_000 == pytest.approx(1109 / 7064, abs=0.03)


def test_contention_has_every_shape_and_bandwidth() -> None:
    """
    8 GPUs a node: a job of 16 runs as 2 x 8, 4 x 4 or 1 x 8. Spread workers load the network by table II of SODA.

    ResNet50 with 8 of 16 GPUs makes 10.379 of 15.153 steps (ElasticFlow), so half is worth 16,000 x 0.685.
    """
    instance = made("contention", 3000, 40)
    jobs = [job for job in waiting_jobs(instance) if job.profile is not None]
    shapes = Counter(" ".join(option.id for option in job.options) for job in jobs)
    assert shapes.keys() == {"1x1", "1x2 2x1 1x1", "1x4 2x2 1x2", "1x8 2x4 1x4", "2x8 4x4 1x8"}
    assert shapes["1x1"] / len(jobs) == pytest.approx(0.7, abs=0.05)
    wide = next(job for job in jobs if gpus_of(job.options[0]) == 16 and job.profile == "resnet50" and not job.priority)
    assert [option.value for option in wide.options] == [16_000, 16_000, 10_959]
    assert [option.workers_per_node_max for option in wide.options] == [None, 1, None]
    assert [option.demand.network_bandwidth_mbps for option in wide.options] == [792, 792, 0]
    assert (wide.options[2].demand.memory_bandwidth_mbps, wide.communication.weight) == (8 * 4500, 6)
    serving = [job for job in waiting_jobs(instance) if job.profile is None]
    assert len(serving) / 3000 == pytest.approx(0.2, abs=0.03)
    assert all([option.demand.gpus for option in job.options] == [1, 0] for job in serving)
    assert {job.options[1].demand.memory_bandwidth_mbps for job in serving} == {26_300, 26_900, 27_000, 40_300}
    machine, domains = instance.cluster.machines[0], instance.cluster.domains
    assert (machine.memory_bandwidth_mbps, machine.network_bandwidth_mbps) == (140_000, 1250)
    assert [domain.uplink_mbps for domain in domains] == [5000] * 3
    excess = {(pair.profile, pair.beside): pair.node_thousandths for pair in instance.slowdowns}
    assert excess["resnet50", "vgg16"] == excess["vgg16", "resnet50"] == 75
    assert excess["transformer", "vgg16"] == 300
    assert ("vgg16", "transformer") not in excess


def test_contention_shows_every_cost() -> None:
    """Small rounds leave GPUs free, so fragmentation counts too."""
    plan = solve(made("contention", 12, 6, seed=1), time_limit_s=5)
    shown = {name for name, cost in plan.costs.items() if cost.raw}
    assert shown == {"communication", "interference", "fragmentation", "resource"}


def test_cubemesh_is_dgx1() -> None:
    instance = made("cubemesh", 500, 20)
    assert [machine.id for machine in instance.cluster.machines] == ["dgx-1"]
    assert set(map(gpus_of, options(instance))) == {1, 2, 4, 8}


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"spec": "uniforme"}, "expected one of uniform, gangs, fractions, planted, preempt"),
        ({"jobs": -1}, "jobs: -1, expected an integer of 0"),
        ({"nodes": 0}, "nodes: 0"),
        ({"gpus": 65}, "gpus: 65"),
        ({"seed": 1.0}, "seed: float"),
        ({"jobs": True}, "jobs: bool"),
        ({"jobs": 2_000_001}, "jobs: 2000001, expected an integer of 0..2000000"),
        ({"nodes": 200_000, "gpus": 11}, "expected at most 2000000 GPUs"),
        ({"spec": "planted", "jobs": 5, "nodes": 5, "gpus": 8}, "planted"),
    ],
)
def test_refusals(wrong: dict[str, object], expected: str) -> None:
    arguments: dict[str, object] = {"spec": "uniform", "jobs": 1, "nodes": 1, "gpus": 1, "seed": 0, **wrong}
    with pytest.raises(BadInput) as caught:
        placeopt.generate(**arguments)
    assert expected in str(caught.value)


def test_refusals_of_rounds_for_measurements() -> None:
    with pytest.raises(BadInput, match="gpus: 4, expected 8"):
        made("cubemesh", 1, 1, 4)
    with pytest.raises(BadInput, match=r"expected one of uniform.*contention"):
        made("uniforme", 1, 1)


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many GPUs as a round may have; with at most ten jobs in all, ten beside running ones are too many."""
    assert Size(jobs=2_000_000, nodes=200_000, gpus=10, seed=0).num_gpus == 2_000_000
    monkeypatch.setattr("placeopt.generators.shared.MAX_JOBS", 10)
    assert len(made("elastic", 10, 4).jobs) == 10  # none runs
    with pytest.raises(BadInput, match=r"jobs: 10 beside \d+ running ones, expected at most 10 jobs in all"):
        made("uniform", 10, 4)


@pytest.mark.parametrize(("jobs", "nodes"), [(10, 5), (40, 5), (200, 5), (900, 6)])
def test_planted_fills_the_cluster(jobs: int, nodes: int) -> None:
    """The jobs worth their whole size, put back node by node, use every GPU, CPU and MiB: the optimum is 1000 a GPU."""
    instance = made("planted", jobs, nodes, 8, seed=5)
    demands = [(job.options[0].demand, job.options[0].value) for job in instance.jobs]
    planted = [demand for demand, value in demands if value == demand.gpus * demand.gpu_milli]
    machine = instance.cluster.machines[0]
    assert len(planted) == jobs - round(0.2 * jobs)
    assert sum(demand.gpus * demand.gpu_milli for demand in planted) == 1000 * nodes * 8
    assert sum(demand.cpu_millicores for demand in planted) == nodes * machine.cpu_millicores
    assert sum(demand.memory_mib for demand in planted) == nodes * machine.memory_mib
    assert min(demand.gpu_milli for demand in planted) >= 50


def test_a_small_planted_round_is_solved_to_its_optimum() -> None:
    """Which also says that the cuts can be found again."""
    plan = solve(made("planted", 10, 2, 4, seed=1), time_limit_s=20)
    assert plan.levels[0].objective == plan.levels[0].bound == 8000


def test_parity_has_gpus_for_all_and_places_half() -> None:
    """A node takes one worker of more than half its GPUs."""
    instance = made("parity", 12, 10)
    plan = solve(instance, time_limit_s=10)
    assert sum(len(part.workers) for one in plan.placements for part in one.assignments) <= 10
    assert {job.options[0].demand.gpus for job in instance.jobs} == {5}


def test_what_runs_may_be_changed() -> None:
    """Stopped in one spec, moved in the other, at a price that the policy states."""
    stopped, moved = (made(spec, 30, 8, 4) for spec in ("preempt", "defrag"))
    assert {held.preemptible for held in stopped.running} == {held.movable for held in moved.running} == {True}
    assert solve(stopped, time_limit_s=5).preempted
    assert solve(moved, time_limit_s=5).moved
