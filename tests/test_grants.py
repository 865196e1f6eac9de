"""Issue 16, A9: a job is granted above its request, up to its limit, what nobody else on its GPU requests."""

from builders import instance, job, machine
from placeopt import solve
from placeopt.check import violations
from placeopt.model import Instance, Plan


def shares(plan: Plan) -> dict[str, list[int]]:
    """Return the shares that each job holds, in the order of its nodes and GPUs."""
    return {p.job: [milli for a in p.assignments for milli in a.gpus.values()] for p in plan.placements}


def one_gpu(*jobs_: tuple[str, int, int | None]) -> Instance:
    """Build a round of one GPU and jobs of (id, request, limit)."""
    jobs = [job(name, gpu_milli=request, gpu_milli_limit=limit) for name, request, limit in jobs_]
    return instance(1, jobs, machines=[machine(gpus=1)])


def test_the_rest_of_a_gpu_is_granted_in_proportion_to_limit_minus_request() -> None:
    """
    Issue 16, A9, worked by hand: requests 250 and 250, limits 1000 and 500.

    The rest is 1000 - 500 = 500; the weights are 750 and 250; so 375 and 125 are granted on top: 625 and 375.
    """
    round_ = one_gpu(("a", 250, 1000), ("b", 250, 500))
    plan = solve(round_)
    assert shares(plan) == {"a": [625], "b": [375]}
    assert plan.facts["gpu_milli_placed"] == 500  # requests
    assert violations(round_, plan) == []


def test_a_job_alone_is_granted_its_limit() -> None:
    """Issue 16, A9, as reported: request 250, limit 1000, an idle GPU; 250 was granted."""
    assert shares(solve(one_gpu(("a", 250, 1000)))) == {"a": [1000]}
