"""What a round costs does not depend on how many queues its policy has."""

import sys
from types import FrameType

from placeopt import Plan, build, solve
from placeopt.model import Policy, Queue, Quota


def calls_of(queues: int) -> tuple[Plan, int]:
    """Return the plan of 300 jobs in so many queues, none of which binds, and the number of calls that it took."""
    jobs = [build.job(f"j{i}", queue=f"q{i % queues}", cpu_millicores=1000 * (i % 7)) for i in range(300)]
    policy = Policy(queues=tuple(Queue(id=f"q{i}", quota=Quota(gpu_milli=10**9)) for i in range(queues)))
    round_, calls = build.instance(20, jobs, policy=policy), 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        plan = solve(round_, method="stranding", deterministic=True, isolation="thread")
    finally:
        sys.setprofile(None)
    return plan, calls


def test_queues_that_never_bind_cost_next_to_nothing() -> None:
    """
    The ceilings of all queues were computed anew for every place that was judged: nine times as many calls.

    Each queue makes classes of jobs of its own, so a round of 100 queues takes more calls than one of a single queue.
    """
    (one, calls_of_one), (many, calls_of_many) = calls_of(1), calls_of(100)
    assert len(many.placements) == len(one.placements) == 80
    assert calls_of_many < 4 * calls_of_one
