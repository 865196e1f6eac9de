"""SODA's arrays on every node, worked by hand."""

from helpers.scenarios import policy, scenario, timed
from placeopt.model import Arrays, Job
from placeopt.simulation import simulate

NODES = Arrays(by="size", parts="equal", borrow_percent=1_000_000, per_node=True)
SODA = policy("best-fit", order="drf", preempts="node_arrays", arrays=NODES)


def cpu_job(name: str, arrival_ms: int, run_ms: int, cores: int) -> Job:
    """Build a job without GPUs."""
    return timed(name, arrival_ms, run_ms, gpus=0, cpu_millicores=1000 * cores, kind="cpu")


def where(jobs: list[Job], nodes: int = 2) -> dict[str, tuple[str, int | None]]:
    """Return the first node of every job, and its end."""
    played = simulate(scenario(jobs, nodes=nodes), SODA).jobs
    return {job.job: (job.spans[0].placement.assignments[0].node, job.end_ms) for job in played}


def test_the_last_nodes_are_those_of_large_jobs() -> None:
    """Equal parts of four nodes of 4 GPUs: a third of them, one, is for large jobs; all, or none, for one kind."""
    small, large, cpu = timed("s", 0, 1000), timed("l", 0, 1000, gpus=4), cpu_job("c", 0, 1000, 1)
    assert where([small, large, cpu], nodes=4) == {"s": ("n0", 1000), "l": ("n3", 1000), "c": ("n0", 1000)}
    assert where([large], nodes=2)["l"] == where([small], nodes=2)["s"] == ("n0", 1000)


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
