"""SODA's arrays on every node, and users compared by GPUs alone: worked by hand."""

from helpers.scenarios import policy, scenario, timed
from placeopt.build import placement
from placeopt.model import Arrays, Job
from placeopt.simulation import named_policy, simulate
from placeopt.simulation.scheduling.drf_queue import ArrayDivision, DrfQueue
from placeopt.simulation.scheduling.node_arrays import NodeArrays, size_of

NODES = Arrays(by="size", parts="equal", borrow_percent=1_000_000, per_node=True)
SODA = policy("best-fit", order="drf", preempts="node_arrays", arrays=NODES)


def cpu_job(name: str, arrival_ms: int, run_ms: int, cores: int) -> Job:
    """Build a job without GPUs."""
    return timed(name, arrival_ms, run_ms, gpus=0, cpu_millicores=1000 * cores, kind="cpu")


def test_nodes_and_cores_of_each_array() -> None:
    """
    Equal parts of four nodes of 4 GPUs: 16 GPUs in three parts, 5,334 thousandths each; a third of four nodes is one.

    Of each node's cores CPU jobs have a third, rounded down.
    """
    world = scenario([timed("s", 0, 1), timed("l", 0, 1, gpus=4), cpu_job("c", 0, 1, 2)], nodes=4)
    nodes = ArrayDivision(world, NODES).nodes
    assert nodes is not None
    assert (nodes.nodes_of("small"), nodes.nodes_of("large")) == (("n0", "n1", "n2"), ("n3",))
    cores = world.cluster.machines[0].cpu_millicores
    assert not nodes.beyond_cpu_part("n0", -(cores // 3) + 1)
    assert nodes.beyond_cpu_part("n0", -(cores // 3) - 1)
    assert [size_of(arrival.job) for arrival in world.arrivals] == ["small", "large", "none"]


def test_one_kind_of_jobs_has_all_nodes() -> None:
    """Without large jobs, and without small ones."""
    cluster = scenario([], nodes=2).cluster
    small, large = (NodeArrays(cluster, {size: (8000, 1000, 0)}) for size in ("small", "large"))
    assert (small.nodes_of("small"), small.nodes_of("large")) == (("n0", "n1"), ())
    assert (large.nodes_of("small"), large.nodes_of("large")) == ((), ("n0", "n1"))


def where(jobs: list[Job], nodes: int = 2) -> dict[str, tuple[str, int | None]]:
    """Return the first node of every job, and its end."""
    played = simulate(scenario(jobs, nodes=nodes), SODA).jobs
    return {job.job: (job.spans[0].placement.assignments[0].node, job.end_ms) for job in played}


def test_a_job_is_placed_in_its_own_array_and_borrows_where_that_is_full() -> None:
    """Small jobs go to n0, though n1 is as free; the fifth finds that full and borrows a GPU of n1."""
    jobs = [timed(f"s{i}", 0, 1000) for i in range(5)]
    jobs.append(timed("l", 5000, 1000, gpus=4))
    assert [node for node, _ in where(jobs).values()] == ["n0"] * 4 + ["n1", "n1"]


def test_a_large_job_takes_its_node_back_and_the_small_one_moves() -> None:
    """At 500 s1 leaves n0; at 600 the large job claims n1, and the borrower goes to n0 with 600 of 1000 ms done."""
    jobs = [timed("s0", 0, 2000), timed("s1", 0, 500), timed("s2", 0, 2000), timed("s3", 0, 2000), timed("b", 0, 1000)]
    jobs.append(timed("l", 600, 1000, gpus=4))
    played = {job.job: job for job in simulate(scenario(jobs, nodes=2), SODA).jobs}
    assert (played["l"].start_ms, played["b"].stops, played["b"].end_ms) == (600, 1, 1000)
    assert [span.placement.assignments[0].node for span in played["b"].spans] == ["n1", "n0"]


def test_a_gpu_job_stops_cpu_jobs_beyond_their_part_of_the_node() -> None:
    """
    Half of a node's 32 cores are the CPU jobs': two of 12 hold 24. A GPU job of 12 cores takes back the later one's.

    A second GPU job of 12 finds 8 free cores and CPU jobs within their part, and waits.
    """
    jobs = [cpu_job("c0", 0, 5000, 12), cpu_job("c1", 1, 5000, 12)]
    jobs += [timed("g0", 100, 1000, cpu_millicores=12_000), timed("g1", 200, 1000, cpu_millicores=12_000)]
    world = scenario(jobs)
    machine = world.cluster.machines[0].model_copy(update={"cpu_millicores": 32_000})
    world = world.model_copy(update={"cluster": world.cluster.model_copy(update={"machines": (machine,)})})
    played = {job.job: job for job in simulate(world, SODA).jobs}
    assert (played["c0"].stops, played["c1"].stops) == (0, 1)
    assert (played["g0"].start_ms, played["g1"].start_ms) == (100, 1100)


def test_kelp_drf_compares_users_by_gpus_alone() -> None:
    """SODA VI-A: ann holds a GPU of 4 and no core, ben 60 % of the cores; by the largest share it is ann's turn."""
    world = scenario([])
    cores = world.cluster.machines[0].cpu_millicores
    jobs = [timed("a", 0, 1, user="ann"), timed("b", 1, 1, user="ben")]
    ran = timed("x", 0, 1, user="ann"), cpu_job("y", 0, 1, cores * 6 // 10_000)
    for alone, first in ((False, "a"), (True, "b")):
        queue = DrfQueue(world.cluster, gpus_alone=alone)
        for job in jobs:
            queue.add(job, job.id)
        queue.update_held(ran[0], placement(ran[0], [("n0", (0,))]), 1)
        queue.update_held(ran[1].model_copy(update={"user": "ben"}), placement(ran[1], [("n0", ())]), 1)
        assert next(queue.in_order(set(), 0))[0] == first
    assert named_policy("kelp-drf").dominant == "gpu"
