"""Running jobs are stopped, moved and resized: nothing is lost, all is lawful, work is counted to the millisecond."""

from typing import Any

import pytest

from helpers.scenarios import PLAIN, policy, scenario, timed
from placeopt import BadInput
from placeopt.build import machine, option
from placeopt.model import Job, Slowdown, Split
from placeopt.scheduling import Scheduling
from placeopt.simulation import Arrival, Scenario, round_at, simulate, summarise
from placeopt.systems.horus import Watch
from placeopt.systems.soda import Arrays


def story(world: Scenario, scheduling: Scheduling) -> dict[str, list[tuple[int, int, int]]]:
    """Return the spans of every job: from, to, workers."""
    history = simulate(world, scheduling)
    return {
        job.job: [
            (span.start_ms, span.end_ms, sum(len(a.workers) for a in span.placement.assignments)) for span in job.spans
        ]
        for job in history.jobs
    }


def elastic(
    name: str, arrival_ms: int, run_ms: int, *, asked: int = 2, most: int = 4, memory_mib: int = 0, **told: Any
) -> Arrival:
    """Build a job of 1 to ``most`` workers of a GPU; ``run_ms`` with all of them."""
    options = (option(workers=most, workers_min=1, value=5, run_time_ms=run_ms, memory_mib=memory_mib),)
    return Arrival(job=timed(name, arrival_ms, 1, options=options), workers_asked=asked, **told)


def world_of(*jobs: Job | Arrival, nodes: int = 1, **physics: Any) -> Scenario:
    """Build a scenario on machines of four GPUs."""
    return scenario(jobs, nodes=nodes, physics=physics)


PRIORITY = policy("best-fit", order="priority", preempts="priority")
INFERENCE = policy("best-fit", order="inference_first", preempts="inference")
LEVELS = {"rule": "las", "levels_gpu_s": (8,)}
LAS = policy("best-fit", order=LEVELS, preempts={**LEVELS, "quantum_ms": 1000})
SRTF = policy("best-fit", order="srtf", preempts="srtf")
AGED = policy("best-fit", order={"rule": "priority", "aging_ms": 1000})
LOAD, PODS = policy("best-fit", elastic="load"), policy("fcfs", elastic="pods")
LOW_HIGH = [timed("low", 0, 5000, gpus=4), timed("high", 3000, 1000, gpus=4, priority=1)]
HIGH = timed("high", 10, 10, gpus=4, priority=5)
MIGRATES = [
    timed("a", 0, 9000, gpus=3, kind="training"),
    timed("b", 1, 9000, kind="training", nodes_allowed=("n1",)),
    timed("c", 100, 1000, gpus=4, kind="inference", nodes_allowed=("n0",)),
]
TURNS = [timed("a", 0, 6000, gpus=4), timed("b", 500, 4000, gpus=4)]
SHORTER = [timed("a", 0, 6000, gpus=4), timed("b", 1000, 4000, gpus=4), timed("c", 2000, 3500, gpus=4)]
LONG_WAITS = [timed("run", 0, 3000, gpus=4), timed("old", 100, 10, gpus=4)]
LONG_WAITS += [timed(name, at, 10, gpus=4, priority=1) for name, at in (("new", 1200), ("newest", 900))]
GROWS = elastic("first", 0, 6000), elastic("second", 1500, 1000)
PAIR = timed("held", 0, 1000, gpus=3), elastic("pair", 1, 1000, most=2)
GANG = timed("held", 0, 1000, gpus=3), timed("gang", 1, 1000, workers=2)
APART = (option(workers=2, run_time_ms=1000, splits=(Split(level="node", domains=2),)),)
DIVIDED = timed("held", 0, 1000, gpus=4), timed("gang", 1, 1, options=APART)
QUARTER_MIB = machine().memory_mib // 4
Spans = dict[str, list[tuple[int, int, int]]]
STORIES: list[tuple[Any, Scheduling, dict[str, Any], Spans]] = [
    # a job of 5 s is stopped after 3 s, by one of 1 s: it has 2 s left, and what the physics say
    (LOW_HIGH, PRIORITY, {}, {"low": [(0, 3000, 1), (4000, 6000, 1)], "high": [(3000, 4000, 1)]}),
    (LOW_HIGH, PRIORITY, {"restart_ms": 500}, {"low": [(0, 3000, 1), (4000, 6500, 1)]}),
    (LOW_HIGH, PRIORITY, {"checkpoint_ms": 2000}, {"low": [(0, 3000, 1), (4000, 7000, 1)]}),
    (LOW_HIGH, PRIORITY, {"keeps_work": False}, {"low": [(0, 3000, 1), (4000, 9000, 1)]}),
    # neither a job that says so nor inference is stopped
    ([Arrival(job=timed("held", 0, 5000, gpus=4), changeable=False), HIGH], PRIORITY, {}, {"high": [(5000, 5010, 1)]}),
    ([timed("held", 0, 5000, gpus=4, kind="inference"), HIGH], PRIORITY, {}, {"high": [(5000, 5010, 1)]}),
    # what was on the node that is wanted whole finds room on the other one in the same round
    (MIGRATES, INFERENCE, {"nodes": 2, "restart_ms": 50}, {"a": [(0, 100, 1), (100, 9050, 1)], "c": [(100, 1100, 1)]}),
    # the first attains 8 GPU-seconds in 2 s; the second is of that level too at 4 s, and equal ones stop nobody
    (TURNS, LAS, {}, {"a": [(0, 2000, 1), (6000, 10_000, 1)], "b": [(2000, 6000, 1)]}),
    # 5 s are left of the first when one of 4 s comes, and 3 s of that when one of 3.5 s comes
    (SHORTER, SRTF, {}, {"a": [(0, 1000, 1), (8500, 13_500, 1)], "b": [(1000, 5000, 1)], "c": [(5000, 8500, 1)]}),
    # one of priority 1 counts as much as a wait of 1 s
    (LONG_WAITS, AGED, {}, {"newest": [(3000, 3010, 1)], "old": [(3010, 3020, 1)], "new": [(3020, 3030, 1)]}),
    # a job that asks for 2 of up to 4 workers has all four at once: 6 s; with three it takes 8. After 1.5 s, a quarter
    # of its work, a second one takes one worker, its fewest, for 4 s, half of that work; then the first grows again
    (GROWS, LOAD, {}, {"first": [(0, 1500, 4), (1500, 5500, 3), (5500, 7000, 4)], "second": [(1500, 5500, 1)]}),
    # resizing costs the pauses, and 0.1 s of work with three workers
    (GROWS, LOAD, {"resize_ms": 100}, {"first": [(0, 1500, 4), (1500, 5500, 3), (5500, 5500 + 100 + 1500 + 75, 4)]}),
    (GROWS, policy("best-fit"), {}, {"first": [(0, 12_000, 2)]}),  # as many as it asks for
    # a worker more needs all the memory that is left
    ([elastic("first", 0, 6000, memory_mib=QUARTER_MIB)], LOAD, {}, {"first": [(0, 6000, 4)]}),
    ([elastic("first", 0, 6000, memory_mib=QUARTER_MIB + 1)], LOAD, {}, {"first": [(0, 8000, 3)]}),
    # pods are placed one by one: one of two stands on the free GPU, idle, until the second is there
    (PAIR, PODS, {}, {"pair": [(1, 1000, 1), (1000, 2000, 2)]}),
    (PAIR, policy("fcfs"), {}, {"pair": [(1000, 2000, 2)]}),
    # so are those of a gang that is not elastic; it begins when the second is there, and no change of size is paid
    (GANG, PODS, {"resize_ms": 100, "restart_ms": 50}, {"gang": [(1, 1000, 1), (1000, 2000, 2)]}),
    (GANG, policy("fcfs"), {}, {"gang": [(1000, 2000, 2)]}),
    # a gang whose workers must be divided over nodes is one to Kubernetes' scheduler, too
    (DIVIDED, PODS, {"nodes": 2}, {"gang": [(1000, 2000, 2)]}),
]


@pytest.mark.parametrize(("jobs", "scheduling", "fields", "expected"), STORIES, ids=range(len(STORIES)))
def test_stories(jobs: list[Any], scheduling: Scheduling, fields: dict[str, Any], expected: Spans) -> None:
    """From, to and workers of each span of a job, worked by hand."""
    assert story(world_of(*jobs, **fields), scheduling).items() >= expected.items()


def test_no_more_are_stopped_than_needed_and_the_last_of_the_lowest_first() -> None:
    """Two GPUs are wanted: 'late' gives one, 'wide' gives two, and then 'late' gets its own back."""
    jobs = [
        timed("old", 0, 9000, priority=0),
        timed("wide", 1, 9000, gpus=2, priority=0),
        timed("late", 2, 9000, priority=0),
        timed("high", 100, 1000, gpus=2, priority=1),
    ]
    told = story(world_of(*jobs), PRIORITY)
    assert [name for name, spans in told.items() if len(spans) > 1] == ["wide"]
    equal = [one if one.id != "high" else timed("high", 100, 1000, gpus=2) for one in jobs]
    assert all(len(spans) == 1 for spans in story(world_of(*equal), PRIORITY).values()), "equal ones stop nobody"


@pytest.mark.parametrize(("restart_ms", "stops"), [(0, 1), (999, 1), (1000, 0)])
def test_least_gpu_time_left_first_where_that_pays_for_a_restart(restart_ms: int, stops: int) -> None:
    """2 s on 4 GPUs are left of the first when one of 4 s on one comes: 4 GPU-seconds more, 4 x a restart less."""
    srsf = policy("best-fit", order="srsf", preempts="srsf")
    world = world_of(timed("first", 0, 3000, gpus=4), timed("small", 1000, 4000), restart_ms=restart_ms)
    assert summarise(simulate(world, srsf)).stops == stops


@pytest.mark.parametrize(("most", "stops"), [(None, 3), (120, 3), (119, 2), (80, 2), (79, 1), (0, 0)])
def test_no_job_is_stopped_beyond_its_share_of_restarts(most: int | None, stops: int) -> None:
    """A job of 10 s loses 0.4 s at each restart; three short ones come, and what may not stop it waits for its end."""
    world = world_of(
        timed("long", 0, 10_000, gpus=4),
        *(timed(f"short{i}", at, 1000, gpus=4) for i, at in enumerate((1000, 4000, 7000))),
        restart_ms=400,
    )
    srsf = policy("best-fit", order="srsf", preempts="srsf", restarts_max_thousandths=most)
    told = story(world, srsf)
    assert len(told["long"]) == 1 + stops
    assert sum(end - start for start, end, _ in told["long"]) == 10_000 + 400 * stops
    assert [told[f"short{i}"][0][0] in (1000, 4000, 7000) for i in range(3)] == [i < stops for i in range(3)]


def test_arrays_borrow_what_is_idle_and_give_it_back() -> None:
    """Two users with two GPUs each: one borrows all four, the other claims its two back from the last submitted."""
    by_user = Arrays(rule="arrays", by="user", borrow_percent=100)
    arrays = policy("best-fit", order="capacity", divides=by_user, preempts="capacity")
    jobs = [timed(f"a{i}", i, 9000, user="a") for i in range(4)]
    jobs += [timed("b", 1000, 500, gpus=2, user="b"), timed("b2", 1000, 500, user="b")]
    told = story(world_of(*jobs), arrays)
    assert told["b"] == [(1000, 1500, 1)]
    assert [len(told[f"a{i}"]) for i in range(4)] == [1, 1, 2, 2]
    assert told["b2"][0][0] == 1500, "its own part is in use, so it takes from nobody"
    alone = policy("best-fit", order="capacity", divides=Arrays(rule="arrays", by="user"))
    assert [spans[0][0] for spans in story(world_of(*jobs), alone).values()] == [0, 1, 9000, 9001, 1000, 1500]


def test_small_and_cpu_jobs_borrow_and_large_ones_claim_their_part() -> None:
    """
    SODA V-C: CPU jobs, small and large ones have thirds of two nodes, 2.67 GPUs and 21 of 64 cores.

    Four small jobs hold 48 cores. A large one asks for more than its own third, and waits; a CPU job within its third
    stops the last submitted small one, which starts again after it. Inference stops whoever is where it goes.
    """
    by_size = Arrays(rule="arrays", by="size", borrow_percent=1000)
    arrays = policy("best-fit", order="drf", divides=by_size, preempts="arrays")
    jobs = [timed(f"small{i}", i, 9000, cpu_millicores=12_000, kind="training") for i in range(4)]
    jobs += [
        timed("large", 500, 500, gpus=4, kind="training"),
        timed("cpu", 1000, 500, gpus=0, cpu_millicores=16_000, kind="cpu"),
        timed("service", 2000, 500, gpus=4, kind="inference"),
    ]
    told = story(world_of(*jobs, nodes=2), arrays)
    assert told["cpu"] == [(1000, 1500, 1)]
    assert told["small3"][:2] == [(3, 1000, 1), (1500, 2000, 1)]
    assert told["service"] == [(2000, 2500, 1)]
    assert told["large"] == [(2500, 3000, 1)]
    assert [len(told[f"small{i}"]) for i in range(4)] == [1, 1, 2, 3]


NODES = Arrays(rule="arrays", by="size", parts="equal", borrow_percent=1_000_000, per_node=True)
SODA = policy("best-fit", order="drf", preempts="node_arrays", divides=NODES)


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
    played = {job.job: job for job in simulate(scenario(jobs), SODA).jobs}
    assert (played["c0"].stops, played["c1"].stops) == (0, 1)
    assert (played["g0"].start_ms, played["g1"].start_ms) == (100, 1100)


def test_pods_that_wait_for_ever_are_reported() -> None:
    """Five workers on four GPUs: they hold them, and nobody goes on."""
    never = simulate(world_of(elastic("five", 0, 1000, asked=5, most=5)), policy("fcfs", elastic="pods"))
    assert never.stranded == ("five",)
    assert (never.jobs[0].start_ms, never.jobs[0].end_ms) == (0, None)


def test_two_gangs_that_hold_what_the_other_needs_are_reported() -> None:
    """
    Two nodes of four GPUs, of which a job holds two until 1000; each gang alone would fit, and none of them ends.

    Two workers of three GPUs: the second finds no room. Three of two: the second takes what is free at 1000, the third
    finds the one GPU that the first gang leaves.
    """
    jobs = [
        timed("held", 0, 1000, gpus=2, nodes_allowed=("n1",)),
        timed("a", 1, 10, workers=2, gpus=3),
        timed("b", 2, 10, workers=3, gpus=2),
    ]
    history = simulate(world_of(*jobs, nodes=2), PODS)
    assert history.stranded == ("a", "b")
    assert {one.job: one.why for one in summarise(history).never_ends} == {
        "a": "holds 3 GPUs and waits without end for the rest of its workers",
        "b": "holds 4 GPUs and waits without end for the rest of its workers",
    }
    seen = round_at(history, 500)
    assert [(one.job, len(one.assignments)) for one in seen.running] == [("held", 1), ("a", 1), ("b", 1)]
    assert [one.options[0].workers for one in seen.jobs] == [1, 1, 1], "as far as they are placed"
    whole = story(world_of(*jobs, nodes=2), policy("fcfs"))
    assert (whole["a"], whole["b"]) == ([(1000, 1010, 2)], [(2, 12, 3)])


def test_a_speedup_curve_sets_the_rate_of_workers() -> None:
    """Speeds 10, 15, 18, 20 with 1 to 4 workers: with two, 4 s of four take 4 x 20 / 15, rounded up."""
    curve = (10, 15, 18, 20)
    assert elastic("x", 0, 4000, speedup_thousandths=curve).actual_ms("default", 2) == 5334
    with pytest.raises(ValueError, match="3 speeds, but"):
        elastic("x", 0, 4000, speedup_thousandths=curve[:3])
    with pytest.raises(ValueError, match="workers_asked: 5"):
        elastic("x", 0, 4000, asked=5)


def test_a_newcomer_that_halves_a_speed_is_queued_again() -> None:
    """
    Excesses of 1.5 and 0.5: one loses more than half of its speed by the newcomer, the other less.

    The newcomer is looked at after a second, stopped, and comes back when the GPUs are free.
    """
    shared = PLAIN.model_copy(update={"share_mode": "overcommit", "jobs_per_gpu_max": 2})
    watch = policy("fcfs", watch=Watch(rule="slowed", after_ms=1000), policy=shared)
    jobs = (timed("there", 0, 4000, gpus=4, profile="a"), timed("new", 500, 1000, gpus=4, profile="b"))
    for excess, expected in ((1500, [(500, 1500, 1), (4600, 5200, 1)]), (500, [(500, 2000, 1)])):
        harm = (("a", "b", excess), ("b", "a", 500))
        slowdowns = tuple(Slowdown(profile=one, beside=other, gpu_thousandths=worse) for one, other, worse in harm)
        told = story(scenario(jobs, slowdowns=slowdowns), watch)["new"]
        assert (told[0][1], len(told)) == (expected[0][1], len(expected))


def test_no_job_starts_while_a_newcomer_is_watched() -> None:
    """Four GPUs are free for the first; the second shares one of them, and the third waits until it was looked at."""
    shared = PLAIN.model_copy(update={"share_mode": "overcommit", "jobs_per_gpu_max": 3})
    watch = policy("fcfs", watch=Watch(rule="slowed", after_ms=1000, one_by_one=True), policy=shared)
    world = world_of(*(timed(name, at, 9000, gpus=4, gpu_utilisation_percent=30) for at, name in enumerate("abc")))
    assert [spans[0][0] for spans in story(world, watch).values()] == [0, 1, 1001]


def test_changes_are_refused_where_they_mean_nothing() -> None:
    """Under a rule that prorates nothing, and in contradictions."""
    world = world_of(timed("x", 0, 10), rule="sc17")
    with pytest.raises(BadInput, match="rule 'sc17' cannot tell"):
        simulate(world, PRIORITY)
    for fields, told in (
        ({"preempts": "las"}, "levels_gpu_s"),
        ({"order": {"rule": "las", "levels_gpu_s": (2, 1)}}, "ascend"),
        ({"order": LEVELS, "preempts": {"rule": "las", "levels_gpu_s": (2,)}}, "the same"),
        ({"preempts": "capacity"}, "divides"),
        ({"preempts": "arrays"}, "divides"),
        ({"order": "srtf", "divides": Arrays(rule="arrays", by="user")}, "'capacity' and 'drf'"),
        ({"order": {"rule": "srtf", "aging_ms": 5}}, "aging_ms"),
        ({"restarts_max_thousandths": 100}, "goes with preempts"),
        ({"rounds": "whole", "elastic": "load"}, "policy.changes"),
        ({"order": {"rule": "clusters", "clusters": 2}}, "batch"),
        ({"order": "capacity"}, "needs it"),
        ({"order": "drf", "strict": True}, "no first job"),
    ):
        with pytest.raises(ValueError, match=told):
            policy("best-fit", **fields)
