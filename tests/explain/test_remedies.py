"""Every remedy in a round worked by hand: what it names does, and one less does not."""

from __future__ import annotations

from placeopt import Instance, solve
from placeopt.build import instance, job, machine, node, running
from placeopt.explain import Explanation, explain
from placeopt.model import Changes, Domain, Option, Policy, Split

RACKS = tuple(Domain(id=f"r{i}") for i in range(3))


def explained(round_: Instance, job_id: str = "j") -> Explanation:
    """Explain a job of the plan that ``solve`` makes; everything in it must be proven."""
    found = explain(round_, solve(round_), job_id, isolation="thread")
    assert found.proven
    return found


def racks(per_rack: int, **fields: object) -> Instance:
    """Three racks of ``per_rack`` nodes of 4 GPUs, and a gang that must lie in one of them."""
    nodes = [node(f"n{i}", domain=f"r{i // per_rack}") for i in range(3 * per_rack)]
    gang = job("j", splits=(Split(level="rack", domains=1),), **fields)  # type: ignore[arg-type]
    return instance(nodes, [gang], domains=RACKS)


def test_fewer_workers_and_more_racks() -> None:
    """Two nodes of 4 GPUs a rack: 5 workers of 2 GPUs do not fit in one, 4 do, and all 5 in two racks."""
    found = explained(racks(2, workers=5, gpus=2)).remedies
    assert found.workers_max is not None
    assert (found.workers_max.workers, found.workers_max.asked) == (4, 5)
    assert [(one.level, one.domains, one.asked) for one in found.domains_min] == [("rack", 2, 1)]
    assert found.level == "cluster"
    assert found.none == {
        "gpus_to_free": "it would not fit with all of them free either",
        "preempt": "no running job is preemptible",
    }


def test_equal_parts_stay_equal() -> None:
    """12 workers in one rack of 8 places: 2 racks would be enough, 6 in each; 8 of them fit in one."""
    round_ = racks(2, workers=12, gpus=1)
    gang = round_.jobs[0].options[0]
    exact = gang.model_copy(update={"splits": (Split(level="rack", domains=1, workers=12),)})
    round_ = round_.model_copy(update={"jobs": (round_.jobs[0].model_copy(update={"options": (exact,)}),)})
    found = explained(round_).remedies
    assert found.workers_max is not None
    assert found.workers_max.workers == 8
    assert [one.domains for one in found.domains_min] == [2]


def test_too_many_domains_are_asked_for() -> None:
    """4 racks where there are 3: fewer would do, and the least of all is one."""
    nodes = [node(f"n{i}", domain=f"r{i}") for i in range(3)]
    gang = job("j", workers=4, splits=(Split(level="rack", domains=4),))
    found = explained(instance(nodes, [gang], domains=RACKS)).remedies
    assert [(one.domains, one.asked) for one in found.domains_min] == [(1, 4)]
    assert found.level == "node"


def test_the_first_level() -> None:
    """6 GPUs of 3 workers on one node of 4: a rack of two nodes holds them, so the rack is the first level."""
    nodes = [node(f"n{i}", domain=f"r{i // 2}") for i in range(4)]
    gang = job("j", workers=3, gpus=2, single_node=True)
    found = explained(instance(nodes, [gang], domains=RACKS)).remedies
    assert found.level == "rack"
    assert found.workers_max is not None
    assert found.workers_max.workers == 2
    assert found.none["domains_min"] == "it asks for no number of domains"


def test_gpus_to_free() -> None:
    """n0 holds two jobs of 1 GPU and n1 one of 3: for 4 GPUs on one node it takes 2, on n0."""
    held = [job("a"), job("b"), job("c", gpus=3)]
    runs = [running(held[0], [("n0", [1])]), running(held[1], [("n0", [3])]), running(held[2], [("n1", [0, 1, 2])])]
    found = explained(instance(2, [*held, job("j", gpus=4)], running=runs)).remedies
    assert found.gpus_to_free is not None
    assert [(gpu.node, gpu.gpu) for gpu in found.gpus_to_free.gpus] == [("n0", 1), ("n0", 3)]


def test_a_freed_gpu_gives_back_its_part_of_the_node() -> None:
    """
    A job of 4 GPUs takes all 32 cores of a node with 8. One of 2 GPUs and 8 cores finds GPUs, but no core.

    Each freed GPU gives back 8 cores: one is enough.
    """
    held = job("held", gpus=4, cpu_millicores=32_000)
    wanted = job("j", gpus=2, cpu_millicores=8000)
    runs = [running(held, [("n0", range(4))])]
    found = explained(instance(1, [held, wanted], machines=[machine(gpus=8)], running=runs))
    assert {constraint.group for constraint in found.conflict} == {"cpu"}
    assert found.remedies.gpus_to_free is not None
    assert len(found.remedies.gpus_to_free.gpus) == 1


def preemptible(*, flags: tuple[bool, ...] = (True, True, True), policy: Policy | None = None) -> Instance:
    """Three nodes of 4 GPUs, full: a worth 5 on n0, b and c worth 2 each on n1, d worth 9 on n2; j wants 4 GPUs."""
    held = [
        job("a", gpus=4, value=5, arrival_ms=10),
        job("b", gpus=2, value=2, arrival_ms=20),
        job("c", gpus=2, value=2, arrival_ms=30),
        job("d", gpus=4, value=9, arrival_ms=40),
    ]
    where = [("n0", range(4)), ("n1", range(2)), ("n1", range(2, 4)), ("n2", range(4))]
    may = (*flags, True)
    runs = [running(one, [at], preemptible=ok) for one, at, ok in zip(held, where, may, strict=True)]
    return instance(3, [*held, job("j", gpus=4, value=1)], running=runs, policy=policy)


def preempted(round_: Instance) -> tuple[list[str], int, bool] | None:
    """Return the jobs to preempt, at what price, and whether the policy lets it."""
    found = explained(round_).remedies.preempt
    return None if found is None else ([one.job for one in found.jobs], found.price, found.allowed)


def test_the_cheapest_jobs_to_preempt() -> None:
    """b and c are worth 4 together, less than a."""
    assert preempted(preemptible()) == (["b", "c"], 4, False)


def test_jobs_that_are_not_preemptible_stay() -> None:
    """Without c there is a; without any flag there is none."""
    assert preempted(preemptible(flags=(True, True, False))) == (["a"], 5, False)
    held = job("held", gpus=4)
    found = explained(instance(1, [held, job("j", gpus=4)], running=[running(held, [("n0", range(4))])])).remedies
    assert found.preempt is None
    assert found.none["preempt"] == "no running job is preemptible"


def test_the_price_of_preemption_counts() -> None:
    """At 2 a job, b and c cost 8 and a costs 7."""
    policy = Policy(changes=Changes(preemption_price=2))
    assert preempted(preemptible(policy=policy)) == (["a"], 7, False)


def test_last_submitted_first() -> None:
    """d came last: whoever stops, d stops first, and d alone makes the room."""
    policy = Policy(changes=Changes(last_submitted_first=True))
    assert preempted(preemptible(policy=policy)) == (["d"], 9, False)


def test_preempting_for_bandwidth() -> None:
    """
    Uplinks of 1000, 750 of them for GPU jobs. A job of two workers talks at 500 across both nodes; so would this one.

    GPUs are free. A worthless job holds one as well, but stopping it is of no use.
    """
    box = machine(gpus=4, network_bandwidth_mbps=1000)
    talker = job("talker", workers=2, network_bandwidth_mbps=500, value=7)
    quiet = job("quiet", value=0)
    wanted = job("j", workers=2, network_bandwidth_mbps=500, workers_per_node_max=1)
    runs = [
        running(talker, [("n0", [0]), ("n1", [0])], preemptible=True),
        running(quiet, [("n0", [1])], preemptible=True),
    ]
    round_ = instance(2, [talker, quiet, wanted], machines=[box], running=runs)
    found = explained(round_)
    assert {constraint.group for constraint in found.conflict} == {"network_bandwidth", "gang", "workers_per_node"}
    assert preempted(round_) == (["talker"], 7, False)
    assert found.remedies.gpus_to_free is None


def test_elastic_jobs_and_several_options() -> None:
    """Elastic 3 to 6 workers on a node of 2 GPUs: 2 workers would fit; the other option asks for 5 GPUs a worker."""
    ways = (
        Option(id="many", workers=6, workers_min=3, value=3, single_node=True),
        Option(id="one", demand=Option().demand.model_copy(update={"gpus": 5}), value=9),
    )
    found = explained(instance(1, [job("j", options=ways)], machines=[machine(gpus=2)])).remedies
    assert found.workers_max is not None
    assert (found.workers_max.option, found.workers_max.workers, found.workers_max.asked) == ("many", 2, 3)
    assert found.level is None
    assert found.none["level"] == "it does not fit into the whole cluster, however its workers are distributed"
