"""What a round costs does not depend on how many queues its policy has."""

import sys
from types import FrameType

from placeopt import Instance, Plan, build, solve
from placeopt.model import Policy, Queue, Quota

JOBS = 300


def round_with(queues: int) -> Instance:
    """Return a round whose jobs are of as many queues, none of which ever binds."""
    jobs = [build.job(f"j{i}", queue=f"q{i % queues}", cpu_millicores=1000 * (i % 7)) for i in range(JOBS)]
    every = tuple(Queue(id=f"q{i}", quota=Quota(gpu_milli=10**9)) for i in range(queues))
    return build.instance(20, jobs, policy=Policy(queues=every))


def calls_of(made: Instance) -> tuple[Plan, int]:
    """Return the plan and the number of calls of functions that it took."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        plan = solve(made, method="stranding", deterministic=True, isolation="thread")
    finally:
        sys.setprofile(None)
    return plan, calls


def test_queues_that_never_bind_cost_next_to_nothing() -> None:
    """
    The ceilings of all queues were computed anew for every place that was judged.

    Each queue makes classes of jobs of its own, so a round of 100 queues takes more calls than one of a single queue;
    with ceilings computed for every job it took nine times as many.
    """
    one, calls_of_one = calls_of(round_with(1))
    many, calls_of_many = calls_of(round_with(100))
    assert len(many.placements) == len(one.placements) == 80
    assert calls_of_many < 4 * calls_of_one
