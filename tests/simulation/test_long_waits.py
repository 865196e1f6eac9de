"""Rounds that hold room for the job that has waited longest, and queues whose usage counts over time."""

import pytest

from helpers.scenarios import PLAIN, policy, scenario, timed
from placeopt.model import Queue
from placeopt.simulation import simulate

MINUTE_MS = 60_000


def whole(method: str = "best-fit", **fields):
    return policy(method, rounds="whole", **fields)


@pytest.mark.parametrize("rounds", ["whole", "each"])
@pytest.mark.parametrize("hold_after_ms", [None, 10 * MINUTE_MS])
def test_a_stream_of_small_jobs_keeps_a_large_one_out_only_without_a_hold(rounds, hold_after_ms) -> None:
    """Four GPUs; a job of one GPU comes every 40 s and runs for 3 minutes, so one ends as often as one comes."""
    small = [timed(f"s{i}", 40_000 * i, 3 * MINUTE_MS) for i in range(60)]
    large = timed("large", MINUTE_MS, MINUTE_MS, gpus=4)
    rules = policy("best-fit", rounds=rounds, hold_after_ms=hold_after_ms)
    history = simulate(scenario([*small, large]), rules)
    start_ms = next(job.start_ms for job in history.jobs if job.job == "large")
    assert start_ms is not None
    if hold_after_ms is None:
        assert start_ms > small[-1].arrival_ms
    else:  # it has waited for 10 minutes at 11, and what began before ends within three
        assert 11 * MINUTE_MS < start_ms <= 14 * MINUTE_MS


def test_usage_with_a_half_life_is_kept_between_rounds() -> None:
    """
    One GPU; a holds it for 100 minutes, then both queues wait.

    With a half-life of ten minutes b goes on until it has had as much; without one they take turns from the start.
    """
    queues = PLAIN.model_copy(update={"order": "weighted_fair", "queues": (Queue(id="a"), Queue(id="b"))})
    jobs = [timed("a0", 0, 100 * MINUTE_MS, gpus=4, queue="a")]
    jobs += [timed(f"{queue}{i}", 1 + i, 2 * MINUTE_MS, gpus=4, queue=queue) for i in range(1, 9) for queue in "ab"]

    def order(half_life_ms: int | None) -> str:
        rules = whole("auto", policy=queues, usage_half_life_ms=half_life_ms)
        history = simulate(scenario(jobs), rules)
        return "".join(job.job[0] for job in sorted(history.jobs, key=lambda job: job.start_ms or 0))

    assert order(None).startswith("aabab")
    assert order(10 * MINUTE_MS).startswith("abbbb")
