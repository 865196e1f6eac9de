"""In which order waiting jobs are considered."""

from placeopt.build import instance, job, running
from placeopt.heuristics import order_jobs
from placeopt.model import Policy, Queue
from placeopt.problem import compile_problem


def ids(round_) -> list[str]:
    """The waiting jobs in weighted fair order."""
    problem = compile_problem(round_)
    return [problem.job_ids[j] for j in order_jobs(problem, "weighted_fair").tolist()]


def test_queues_take_turns_in_proportion_to_their_weights() -> None:
    """
    Single GPUs, weights 2 and 1. Queue a reaches 500, 1000, 1500, 2000 per weight, b 1000, 2000. Ties go to the job
    that came first: b1 before a2, b2 before a4.
    """
    policy = Policy(queues=(Queue(id="a", weight=2), Queue(id="b")))
    jobs = [job(f"b{i}", queue="b", arrival_ms=0) for i in (1, 2)]
    jobs += [job(f"a{i}", queue="a", arrival_ms=i) for i in (1, 2, 3, 4)]
    assert ids(instance(2, jobs, policy=policy)) == ["a1", "b1", "a2", "a3", "b2", "a4"]


def test_what_a_queue_holds_already_counts() -> None:
    """b holds two GPUs: 3000 with its next one, so a comes first with 1000 and 2000, and with 3000 as it came first."""
    policy = Policy(queues=(Queue(id="a"), Queue(id="b")))
    here = job("here", queue="b", gpus=2)
    jobs = [here, *(job(f"a{i}", queue="a") for i in (1, 2, 3)), job("b1", queue="b"), job("none", gpus=3)]
    held = running(here, [("n0", [0, 1])])
    assert ids(instance(2, jobs, policy=policy, running=[held])) == ["a1", "a2", "a3", "b1", "none"]


def test_what_a_queue_has_used_lately_counts() -> None:
    """a had four GPUs on the mean, b none: b takes four turns, and at 5000 the job that came first goes first."""
    policy = Policy(queues=(Queue(id="a", usage_gpu_milli=4000), Queue(id="b")))
    jobs = [job("a1", queue="a"), *(job(f"b{i}", queue="b", arrival_ms=9) for i in (1, 2, 3, 4, 5))]
    assert ids(instance(2, jobs, policy=policy)) == ["b1", "b2", "b3", "b4", "a1", "b5"]
