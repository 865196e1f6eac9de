"""Every spec: feasible, repeatable, of the size asked for, and distributed as documented."""

from collections import Counter
from math import gcd

import pytest

from placeopt import BadInput, solve
from placeopt.check import violations
from placeopt.generators import SPECS, Size, generate
from placeopt.model import Instance, InstanceRef, Job, Level, Plan, PolicyRef, Unplaced

CHANGING = ("preempt", "defrag")
SIZES = [(0, 1, 8, 0), (1, 1, 8, 1), (30, 5, 8, 2), (200, 40, 8, 3)]


def idle(instance: Instance) -> Plan:
    """The plan that changes nothing: what runs keeps running, all others wait."""
    running = {entry.job for entry in instance.running}
    return Plan(
        instance=InstanceRef(name=instance.name, digest=instance.digest, revision=instance.revision),
        policy=PolicyRef(name=instance.policy.name, digest=instance.policy.digest, values=instance.policy),
        status="feasible",
        limit="none",
        levels=(Level(name="value", sense="max", objective=0, bound=None),),
        gap=None,
        placements=instance.running,
        unplaced=tuple(
            Unplaced(job=job.id, reason="not_reached", detail="") for job in instance.jobs if job.id not in running
        ),
    )


def waiting(instance: Instance) -> list[Job]:
    running = {entry.job for entry in instance.running}
    return [job for job in instance.jobs if job.id not in running]


def gpus_of(job: Job) -> int:
    return job.options[0].workers * job.options[0].demand.gpus


def held_milli(instance: Instance) -> int:
    return sum(milli for entry in instance.running for part in entry.assignments for milli in part.gpus.values())


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize(("jobs", "nodes", "gpus", "seed"), SIZES)
def test_size_repeatable_and_feasible(spec: str, jobs: int, nodes: int, gpus: int, seed: int) -> None:
    """The referee finds nothing wrong with what runs, at most 35 % is busy, and the same call gives the same bytes."""
    if spec == "planted" and not jobs:
        return  # nothing to cut a cluster into
    instance = generate(spec, jobs=jobs, nodes=nodes, gpus=gpus, seed=seed)
    assert instance.name == f"{spec}-{jobs}x{nodes}x{gpus}-s{seed}"
    assert len(waiting(instance)) == jobs
    assert len(instance.cluster.nodes) == nodes
    assert violations(instance, idle(instance)) == []
    assert held_milli(instance) <= (0.5 if spec in CHANGING else 0.35) * 1000 * nodes * gpus
    again = generate(spec, jobs=jobs, nodes=nodes, gpus=gpus, seed=seed)
    assert again.digest == instance.digest
    assert Instance.model_validate_json(instance.model_dump_json(exclude_defaults=True)) == instance


@pytest.mark.parametrize("spec", SPECS)
def test_seeds_differ(spec: str) -> None:
    first, second = (generate(spec, jobs=20, nodes=4, gpus=8, seed=seed) for seed in (0, 1))
    assert first.jobs != second.jobs


@pytest.mark.parametrize("spec", [spec for spec in SPECS if spec not in ("cubemesh", "islands")])
@pytest.mark.parametrize("gpus", [1, 2, 3, 6, 16])
def test_odd_numbers_of_gpus(spec: str, gpus: int) -> None:
    """No spec relies on powers of two; a worker never has more GPUs than a node."""
    if spec == "parity" and gpus < 3:
        with pytest.raises(BadInput, match="3 or more"):
            generate(spec, jobs=300, nodes=33, gpus=gpus, seed=0)
        return
    instance = generate(spec, jobs=300, nodes=33, gpus=gpus, seed=0)
    assert max(job.options[0].demand.gpus for job in instance.jobs) <= gpus
    assert max(map(gpus_of, instance.jobs)) <= 33 * gpus
    assert violations(instance, idle(instance)) == []


def test_share_of_busy_gpus_comes_close() -> None:
    """Only whole jobs are taken, so a little less than the share is busy."""
    for spec, share in (("uniform", 0.35), ("varied", 0.35), ("fractions", 0.35), ("cubemesh", 0.35), ("gangs", 0.2)):
        instance = generate(spec, jobs=0, nodes=200, gpus=8, seed=0)
        assert share - 0.01 <= held_milli(instance) / (1000 * 200 * 8) <= share, spec


def test_uniform_has_the_sizes_of_philly() -> None:
    """
    100,000 jobs: 93.19 % of one GPU or less, of these a quarter, a quarter and half; 2.21 % two, 2.27 four, 2.00 eight.

    A share p has a standard deviation of at most 0.16 percentage points; 0.7 are allowed.
    """
    instance = generate("uniform", jobs=100_000, nodes=100, gpus=8, seed=0)
    sizes = Counter(gpus_of(job) * job.options[0].demand.gpu_milli for job in waiting(instance))
    expected = {250: 23.30, 500: 23.30, 1000: 46.60, 2000: 2.21, 4000: 2.27, 8000: 2.00, 16_000: 0.24, 32_000: 0.08}
    assert sizes.keys() == expected.keys()
    for size, percent in expected.items():
        assert sizes[size] / 1000 == pytest.approx(percent, abs=0.7)
    gangs = Counter(job.options[0].demand.gpus for job in waiting(instance) if job.options[0].workers > 1)
    assert gangs.keys() == {4, 8}


def test_uniform_jobs_and_profiles() -> None:
    """Value is GPU-milli x 1, 2 or 4; weights 4 to 1 by batch and 0 alone; six profiles, known to the slowdowns."""
    instance = generate("uniform", jobs=2000, nodes=100, gpus=4, seed=0)
    weight = {"tiny": 4, "small": 3, "medium": 2, "big": 1}
    for job in instance.jobs:
        option = job.options[0]
        assert option.value == gpus_of(job) * option.demand.gpu_milli * 2**job.priority
        assert job.profile is not None
        assert job.communication.weight == (weight[job.profile.split("-")[1]] if gpus_of(job) > 1 else 0)
    assert len({job.profile for job in instance.jobs}) == 6
    tiny = next(pair for pair in instance.slowdowns if (pair.profile, pair.beside) == ("alexnet-tiny",) * 2)
    assert (tiny.socket_thousandths, tiny.node_thousandths) == (300, 0)
    assert all(pair.profile != "alexnet-big" for pair in instance.slowdowns)
    arrivals = [job.arrival_ms for job in waiting(instance)]
    assert arrivals == sorted(arrivals)
    assert arrivals[-1] == instance.now_ms
    assert 5500 < arrivals[-1] / len(arrivals) < 6500


def test_uniform_cluster() -> None:
    """70 nodes: racks of 32, 32 and 6; half of the GPUs on either socket."""
    cluster = generate("uniform", jobs=0, nodes=70, gpus=5, seed=0).cluster
    assert list(Counter(node.domain for node in cluster.nodes).values()) == [32, 32, 6]
    assert [gpu.part for gpu in cluster.machines[0].gpus] == ["socket0"] * 3 + ["socket1"] * 2


def test_varied_leaves_many_node_states() -> None:
    """At 1,000 nodes at least 150 distinct states of free GPU-milli, CPU and memory, as on a real cluster."""
    instance = generate("varied", jobs=100, nodes=1000, gpus=4, seed=0)
    held: dict[str, tuple[Counter[str], list[int]]] = {}
    for entry in instance.running:
        for part in entry.assignments:
            gpus, rest = held.setdefault(part.node, (Counter(), [0, 0]))
            gpus.update(part.gpus)
            rest[0] += part.cpu_millicores
            rest[1] += part.memory_mib
    states = {(tuple(sorted(gpus.values())), *rest) for gpus, rest in held.values()}
    assert len(states) >= 150
    assert len({(job.options[0].demand.cpu_millicores, job.options[0].demand.memory_mib) for job in instance.jobs}) > 50


def test_varied_workers_fit_an_empty_node() -> None:
    instance = generate("varied", jobs=3000, nodes=20, gpus=8, seed=0)
    machine = instance.cluster.machines[0]
    assert max(job.options[0].demand.cpu_millicores for job in instance.jobs) == machine.cpu_millicores
    assert max(job.options[0].demand.memory_mib for job in instance.jobs) <= machine.memory_mib


def test_gangs_have_every_condition_and_each_can_hold() -> None:
    """40 nodes of 8 are five racks of 8 nodes: 64 GPUs a rack."""
    instance = generate("gangs", jobs=1000, nodes=40, gpus=8, seed=0)
    kinds: Counter[str] = Counter()
    for job in waiting(instance):
        option = job.options[0]
        per_rack = 8 * (8 // option.demand.gpus)
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
        assert gpus_of(job) <= 320
    assert all(kinds[kind] > 40 for kind in ("spread", "one_rack", "two_racks", "free")), kinds


def test_gangs_on_one_small_rack_drop_what_cannot_hold() -> None:
    instance = generate("gangs", jobs=300, nodes=2, gpus=2, seed=0)
    options = [job.options[0] for job in instance.jobs]
    assert all(split.domains == 1 for option in options for split in option.splits)
    assert all(option.workers <= 2 for option in options if option.workers_per_node_max == 1)


def test_fractions_have_the_twenty_sizes_of_openb() -> None:
    instance = generate("fractions", jobs=20_000, nodes=10, gpus=8, seed=0)
    demands = [job.options[0].demand for job in waiting(instance)]
    sizes = {demand.gpu_milli for demand in demands if demand.gpu_milli < 1000}
    assert len(sizes) == 20
    assert (min(sizes), max(sizes)) == (50, 810)
    assert gcd(*sizes) == 10
    assert {demand.gpus for demand in demands} == {1, 2, 4, 8}
    assert sum(demand.gpu_milli == 810 for demand in demands) / 20_000 == pytest.approx(1109 / 7064, abs=0.03)


def test_contention_has_every_shape_and_bandwidth() -> None:
    """
    8 GPUs a node: a job of 16 runs as 2 x 8, 4 x 4 or 1 x 8. Spread workers load the network by table II of SODA.

    ResNet50 with 8 of 16 GPUs makes 10.379 of 15.153 steps (ElasticFlow), so half is worth 16,000 x 0.685.
    """
    instance = generate("contention", jobs=3000, nodes=40, gpus=8, seed=0)
    jobs = [job for job in waiting(instance) if job.profile is not None]
    shapes = Counter(tuple(option.id for option in job.options) for job in jobs)
    assert shapes.keys() == {
        *(("1x1",), ("1x2", "2x1", "1x1"), ("1x4", "2x2", "1x2"), ("1x8", "2x4", "1x4"), ("2x8", "4x4", "1x8")),
    }
    assert shapes["1x1",] / len(jobs) == pytest.approx(0.7, abs=0.05)
    wide = next(job for job in jobs if gpus_of(job) == 16 and job.profile == "resnet50" and not job.priority)
    assert [option.value for option in wide.options] == [16_000, 16_000, 10_959]
    assert [option.workers_per_node_max for option in wide.options] == [None, 1, None]
    assert [option.demand.network_bandwidth_mbps for option in wide.options] == [792, 792, 0]
    assert wide.options[2].demand.memory_bandwidth_mbps == 8 * 4500
    assert wide.communication.weight == 6
    serving = [job for job in waiting(instance) if job.profile is None]
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
    plan = solve(generate("contention", jobs=12, nodes=6, gpus=8, seed=1), time_limit_s=5)
    assert {name for name, cost in plan.costs.items() if cost.raw} == {
        *("communication", "interference", "fragmentation", "resource"),
    }


def test_cubemesh_is_dgx1() -> None:
    instance = generate("cubemesh", jobs=500, nodes=20, gpus=8, seed=0)
    assert [machine.id for machine in instance.cluster.machines] == ["dgx-1"]
    assert {gpus_of(job) for job in waiting(instance)} == {1, 2, 4, 8}
    with pytest.raises(BadInput, match="gpus: 4, expected 8"):
        generate("cubemesh", jobs=1, nodes=1, gpus=4, seed=0)


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"spec": "uniforme"}, "expected one of uniform, varied, gangs, fractions, cubemesh"),
        ({"jobs": -1}, "jobs: -1, expected an integer of 0"),
        ({"nodes": 0}, "nodes: 0"),
        ({"gpus": 65}, "gpus: 65"),
        ({"seed": 1.0}, "seed: float"),
        ({"jobs": True}, "jobs: bool"),
        ({"jobs": 2_000_001}, "jobs: 2000001, expected an integer of 0..2000000"),
        ({"nodes": 200_000, "gpus": 11}, "expected at most 2000000 GPUs"),
    ],
)
def test_refusals(wrong: dict[str, object], expected: str) -> None:
    arguments: dict[str, object] = {"spec": "uniform", "jobs": 1, "nodes": 1, "gpus": 1, "seed": 0, **wrong}
    with pytest.raises(BadInput) as caught:
        generate(**arguments)  # type: ignore[arg-type]
    assert expected in str(caught.value)


def test_running_jobs_count_towards_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """With at most ten jobs in all, ten waiting ones beside running ones are too many."""
    monkeypatch.setattr("placeopt.generators.shared.MAX_JOBS", 10)
    assert len(generate("elastic", jobs=10, nodes=4, gpus=8, seed=0).jobs) == 10  # none runs
    with pytest.raises(BadInput, match=r"jobs: 10 beside \d+ running ones, expected at most 10 jobs in all"):
        generate("uniform", jobs=10, nodes=4, gpus=8, seed=0)


def test_limits_fit_into_the_model() -> None:
    """A cluster of as many GPUs as a round may have; no job, so that it is quick."""
    assert Size(jobs=2_000_000, nodes=200_000, gpus=10, seed=0).num_gpus == 2_000_000


def test_ten_thousand_jobs_on_a_thousand_nodes() -> None:
    """The size of SC'17's largest round: so many wait, beside those that run."""
    made = generate("uniform", jobs=10_000, nodes=1000, gpus=4, seed=0)
    assert len(made.jobs) - len(made.running) == 10_000
    assert len(made.cluster.nodes) == 1000


@pytest.mark.parametrize(("jobs", "nodes", "gpus"), [(10, 5, 8), (40, 5, 8), (200, 5, 8), (900, 6, 8)])
def test_planted_fills_the_cluster(jobs: int, nodes: int, gpus: int) -> None:
    """The jobs worth their whole size, put back node by node, use every GPU, CPU and MiB: the optimum is 1000 a GPU."""
    instance = generate("planted", jobs=jobs, nodes=nodes, gpus=gpus, seed=5)
    demands = [(job.options[0].demand, job.options[0].value) for job in instance.jobs]
    planted = [demand for demand, value in demands if value == demand.gpus * demand.gpu_milli]
    machine = instance.cluster.machines[0]
    assert len(planted) == jobs - round(0.2 * jobs)
    assert sum(demand.gpus * demand.gpu_milli for demand in planted) == 1000 * nodes * gpus
    assert sum(demand.cpu_millicores for demand in planted) == nodes * machine.cpu_millicores
    assert sum(demand.memory_mib for demand in planted) == nodes * machine.memory_mib
    assert min(demand.gpu_milli for demand in planted) >= 50
    with pytest.raises(BadInput, match="planted"):
        generate("planted", jobs=nodes, nodes=nodes, gpus=gpus, seed=0)


def test_a_small_planted_round_is_solved_to_its_optimum() -> None:
    """Which also says that the cuts can be found again."""
    instance = generate("planted", jobs=10, nodes=2, gpus=4, seed=1)
    plan = solve(instance, time_limit_s=20)
    assert plan.levels[0].objective == plan.levels[0].bound == 8000


def test_parity_has_gpus_for_all_and_places_half() -> None:
    """A node takes one worker of more than half its GPUs."""
    instance = generate("parity", jobs=12, nodes=10, gpus=8, seed=0)
    plan = solve(instance, time_limit_s=10)
    placed = sum(len(part.workers) for one in plan.placements for part in one.assignments)
    assert placed <= 10
    assert {job.options[0].demand.gpus for job in instance.jobs} == {5}


def test_what_runs_may_be_changed() -> None:
    """Stopped in one spec, moved in the other, at a price that the policy states."""
    for spec, flag in (("preempt", "preemptible"), ("defrag", "movable")):
        instance = generate(spec, jobs=30, nodes=8, gpus=4, seed=0)
        assert instance.running
        assert all(getattr(held, flag) for held in instance.running)
        plan = solve(instance, time_limit_s=5)
        assert plan.preempted if spec == "preempt" else plan.moved
