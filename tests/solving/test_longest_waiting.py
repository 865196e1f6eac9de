"""Room held for the job that has waited longest: streams of smaller jobs keep no job out for ever."""

import itertools
import random

import pytest

from placeopt import BadInput, hold_room, solve, violations
from placeopt.build import gang, instance, job, machine, running
from placeopt.model import Policy, Running


def stream(round_, *, after_ms, big, turns=40):
    """Run rounds of a minute; each job runs for three, and two small ones come each minute; when ``big`` starts."""
    for minute in range(turns):
        now_ms = 60_000 * minute
        come = tuple(job(f"s{minute}-{i}", gpus=1, arrival_ms=now_ms) for i in range(6))
        ended = {held.job for held in round_.running if now_ms - held.started_ms >= 180_000}
        round_ = round_.model_copy(
            update={
                "now_ms": now_ms,
                "running": tuple(held for held in round_.running if held.job not in ended),
                "jobs": (*(one for one in round_.jobs if one.id not in ended), *come),
            }
        )
        if after_ms is not None:
            round_ = hold_room(round_, after_ms=after_ms)
        plan = solve(round_, time_limit_s=5, deterministic=True, isolation="thread")
        assert violations(round_, plan) == []
        if plan.placement_of(big) is not None:
            return minute
        runs = {held.job: held for held in round_.running}
        started = tuple(
            runs.get(held.job)
            or Running(job=held.job, option=held.option, assignments=held.assignments, started_ms=now_ms)
            for held in plan.placements
        )
        round_ = round_.model_copy(update={"running": started})
    return None


@pytest.mark.parametrize("big", [job("big", gpus=8), gang("big", workers=2, gpus=6)], ids=["job", "gang"])
def test_a_job_that_needs_whole_nodes_starts_in_finite_time(big):
    """KAI #1969: as soon as a GPU is free, a job of one GPU takes it."""
    small = [job(f"a{i}") for i in range(16)]
    places = [running(one, [(f"n{i // 8}", [i % 8])], started_ms=0) for i, one in enumerate(small)]
    round_ = instance(2, [*small, big], machines=[machine(gpus=8)], running=places)
    assert stream(round_, after_ms=None, big="big") is None
    assert stream(round_, after_ms=600_000, big="big") == 12  # those that run after ten minutes began in the ninth


def price(sizes, gpus, free):
    """The fewest GPUs of whole jobs on a node that have to end, for so many free ones."""
    sets = itertools.chain.from_iterable(itertools.combinations(sizes, k) for k in range(len(sizes) + 1))
    return min(sum(some) for some in sets if gpus - sum(sizes) + sum(some) >= free)


def test_the_room_is_where_the_fewest_gpus_have_to_end():
    """Against all sets of nodes, on random rounds."""
    draw = random.Random(4)
    for _ in range(20):
        nodes, gpus = draw.randint(2, 4), 4
        workers, each = draw.choice([(1, 4), (2, 3), (2, 4), (1, 2)])
        jobs, places = [], []
        for n in range(nodes):
            at = 0
            while at < gpus and draw.random() < 0.8:
                size = draw.randint(1, gpus - at)
                jobs.append(job(f"r{n}-{at}", gpus=size))
                places.append(running(jobs[-1], [(f"n{n}", list(range(at, at + size)))]))
                at += size
        late = gang("late", workers=workers, gpus=each, workers_per_node_max=1)
        round_ = instance(nodes, [*jobs, late], machines=[machine(gpus=gpus)], running=places, now_ms=10)
        held = hold_room(round_, after_ms=10).holds
        sizes = {one.id: one.options[0].demand.gpus for one in jobs}
        on = [[one for one in places if one.assignments[0].node == f"n{n}"] for n in range(nodes)]
        best = sum(sorted(price([sizes[one.job] for one in here], gpus, each) for here in on)[:workers])
        ends = {
            one.job
            for hold in held
            for one in on[int(hold.node[1:])]
            if set(map(int, one.assignments[0].gpus)) & set(hold.gpus)
        }
        assert sum(len(hold.gpus) for hold in held) == workers * each
        assert sum(sizes[one] for one in ends) == best


def test_only_the_longest_waiting_job_that_fits_has_room_held():
    """What fits nowhere is passed over. Where priorities are strict a higher one goes first, and may take the room."""
    jobs = [
        job("new", gpus=8, arrival_ms=95),
        job("huge", gpus=9, arrival_ms=0),
        job("old", gpus=8, arrival_ms=10, priority=3),
        job("older", gpus=8, arrival_ms=5),
    ]
    round_ = instance(1, jobs, machines=[machine(gpus=8)], now_ms=100)
    (hold,) = hold_room(round_, after_ms=50).holds
    assert (hold.jobs, hold.node, hold.gpus, hold.priority) == (("older",), "n0", tuple(range(8)), None)
    strict = round_.model_copy(update={"policy": Policy(priorities="strict")})
    held = hold_room(strict, after_ms=50)
    assert [(hold.jobs, hold.priority) for hold in held.holds] == [(("old",), 3)]
    assert hold_room(held, after_ms=50) == held
    assert hold_room(held, after_ms=1000).holds == ()
    with pytest.raises(BadInput, match="after_ms: -1"):
        hold_room(round_, after_ms=-1)
