"""Judgements by hand: regret in both readings, jobs that wait, stranded GPUs, gains, and what cuts them short."""

import json
from typing import Any

import pytest

from placeopt import BadInput, build
from placeopt.edits import Drain
from placeopt.judge import Judgement, WaitingJobs, judge, live_round
from placeopt.model import Changes, Instance, Plan, Policy, Queue, Quota, ReadingNote, Taint
from placeopt.whatif import plan_of

FREE = Changes(moves_max=9, preemptions_max=9)


def busy(**fields: Any) -> Instance:
    """
    Return three nodes of 4 GPUs, on which four jobs of one GPU run: two on ``n0``, one on each other.

    All may be stopped, the first and the third moved. A job of 4 GPUs and a gang of two times 4 wait.
    """
    small = [build.job(f"small{i}") for i in range(4)]
    running = [
        build.running(job, [(f"n{i % 3}", [i // 3])], movable=i % 2 == 0, preemptible=True)
        for i, job in enumerate(small)
    ]
    jobs = [*small, build.job("whole", gpus=4, priority=2), build.gang("gang", workers=2, gpus=4, priority=3)]
    defaults: dict[str, Any] = {"nodes": 3, "jobs": jobs, "running": running, "policy": Policy(changes=FREE)}
    return build.instance(**{**defaults, **fields})


def of(found: Judgement, job: str) -> WaitingJobs:
    """Return what is said of a waiting job."""
    return next(kind for kind in found.waiting if job in kind.jobs)


def test_the_regret_of_what_runs_and_the_smallest_sets_of_changes() -> None:
    """Nothing more starts beside what runs; the gang needs one move and one stop, the other job one move."""
    found = judge(busy())
    fixed, free = found.regrets
    assert [(band.highest, band.given, band.best, band.bound) for band in fixed.bands] == [(3, 0, 0, 0), (2, 0, 0, 0)]
    assert [(band.highest, band.given, band.best) for band in free.bands] == [(3, 0, 1), (2, 0, 1), (0, 4, 0)]
    assert (free.stopped, free.gpu_milli, free.best_gpu_milli, free.jobs) == (4, 4000, 12_000, -2)
    assert not fixed.is_beaten
    assert free.is_beaten
    whole, gang = of(found, "whole"), of(found, "gang")
    assert (whole.verdict, whole.size, whole.least, len(whole.moved), whole.stopped) == ("changes", 1, 1, 1, ())
    assert (gang.verdict, gang.size, gang.least, len(gang.moved), len(gang.stopped)) == ("changes", 2, 2, 1, 1)
    assert found.proven
    assert found.of == "cluster"


def test_a_plan_that_stops_what_runs_has_no_regret_among_those_that_do_not() -> None:
    """It is compared with plans that change what runs, where it is the best."""
    round_ = busy()
    gone = {"small0", "small1", "small2", "small3"}
    best = judge(round_).regrets[1]
    assert best.stopped == len(gone)
    jobs = {job.id: job for job in round_.jobs}
    placed = [
        build.placement(jobs["whole"], [("n0", [0, 1, 2, 3])]),
        build.placement(jobs["gang"], [("n1", [0, 1, 2, 3]), ("n2", [0, 1, 2, 3])]),
    ]
    plan = plan_of(round_, placed)
    stops = [{"job": name, "freed_gpu_milli": 1000} for name in sorted(gone)]
    waits = [{"job": name, "reason": "outvoted", "detail": "stopped"} for name in sorted(gone)]
    document = {
        **plan.model_dump(mode="json", by_alias=True),
        "placements": [one.model_dump(mode="json") for one in placed],
        "preempted": stops,
        "unplaced": waits,
    }
    found = judge(round_, Plan.model_validate_json(json.dumps(document)))
    fixed, free = found.regrets
    assert (fixed.gpu_milli, fixed.jobs, fixed.is_beaten) == (None, None, False)
    assert not free.is_beaten
    assert of(found, "small0").verdict == "never"


def test_a_job_that_waits_although_it_fits_has_a_place() -> None:
    """The best plan starts it, too."""
    found = judge(build.instance(nodes=1, jobs=[build.job("a", gpus=3), build.job("b", gpus=1)]))
    assert [(kind.verdict, kind.size, kind.proven) for kind in found.waiting] == [("fits", 0, True)] * 2
    place = of(found, "a").place
    assert place is not None
    assert [len(part.gpus) for part in place.assignments] == [3]
    assert [(band.given, band.best, band.bound) for band in found.regrets[0].bands] == [(0, 2, 2)]


def test_fewer_jobs_of_a_higher_priority_are_better() -> None:
    """One of priority 1 before four of priority 0."""
    jobs = [build.job("whole", gpus=4, priority=1), *(build.job(f"one{i}") for i in range(4))]
    round_ = build.instance(nodes=1, jobs=jobs)
    plan = plan_of(round_, [build.placement(job, [("n0", [i])]) for i, job in enumerate(jobs[1:])])
    regret = judge(round_, plan).regrets[0]
    assert [(band.highest, band.given, band.best) for band in regret.bands] == [(1, 0, 1), (0, 4, 0)]
    assert (regret.jobs, regret.proven) == (-3, True)


def test_more_priorities_than_values_tell_apart() -> None:
    """The highest ones count one after the other, the rest alike."""
    jobs = [build.job(f"job{i}", priority=i) for i in range(60)]
    regret = judge(build.instance(nodes=1, jobs=jobs)).regrets[0]
    assert [(band.highest, band.lowest) for band in regret.bands[:2]] == [(59, 59), (58, 58)]
    last = regret.bands[-1]
    assert last.highest > last.lowest == 0
    assert last.jobs == last.highest + 1
    assert [band.best for band in regret.bands[:6]] == [1, 1, 1, 1, 0, 0]
    assert regret.proven


def test_strict_priorities_say_for_whom_a_job_stops() -> None:
    """For a higher priority, not for the same one."""
    runs = build.job("runs", gpus=4, priority=1)
    running = [build.running(runs, [("n0", [0, 1, 2, 3])], preemptible=True)]
    policy = Policy(priorities="strict", changes=FREE)
    jobs = [runs, build.job("same", gpus=2, priority=1), build.job("above", gpus=2, priority=2)]
    found = judge(build.instance(nodes=1, jobs=jobs, running=running, policy=policy))
    assert (of(found, "same").verdict, of(found, "same").proven) == ("never", True)
    assert (of(found, "above").verdict, of(found, "above").size) == ("changes", 1)
    assert [band.best for band in found.regrets[1].bands] == [1, 1]


def test_rules_that_are_broken_are_all_that_is_said() -> None:
    """Two jobs on one GPU."""
    jobs = [build.job("a"), build.job("b")]
    round_ = build.instance(nodes=1, jobs=jobs)
    found = judge(round_, plan_of(round_, [build.placement(job, [("n0", [0])]) for job in jobs]))
    assert found.violations
    assert (found.regrets, found.waiting, found.proven) == ((), (), False)


def test_idle_gpus_are_stranded_by_what_keeps_jobs_off() -> None:
    """
    CPU, a taint, a drained node; on the free node one worker of the gang fits, without room for the other.

    Jobs of one worker use that node.
    """
    taint = Taint(key="dedicated", value="team", effect="NoSchedule")
    nodes = [
        build.node("full"),
        build.node("tainted", taints=(taint,)),
        build.node("drained", drained=True),
        build.node("free"),
    ]
    eater = build.job("eater", gpus=1, cpu_millicores=32_000)
    jobs = [eater, build.gang("gang", workers=2, gpus=4, cpu_millicores=1000)]
    running = [build.running(eater, [("full", [0])])]
    found = judge(build.instance(nodes=nodes, jobs=jobs, running=running))
    causes = {one.cause: (one.gpus, one.nodes, one.jobs) for one in found.stranded}
    assert causes == {
        "drained nodes": (4, 1, 1),
        "taints": (4, 1, 1),
        "GPU count": (3, 1, 1),
        "GPU count + drained nodes + gang + taints": (4, 1, 1),
    }
    assert found.idle_gpus == 15
    ones = [build.job(f"one{i}", cpu_millicores=1000) for i in range(2)]
    more = judge(build.instance(nodes=nodes, jobs=[*jobs, *ones], running=running))
    assert {one.cause: one.gpus for one in more.stranded} == {"drained nodes": 4, "taints": 4, "CPU": 3}


def test_what_single_changes_bring() -> None:
    """A node, a quota and a drained node: jobs, and GPUs."""
    nodes = [build.node("n0"), build.node("off", drained=True)]
    policy = Policy(queues=(Queue(id="q", quota=Quota(gpu_milli=2000)),))
    jobs = [build.job("in", gpus=2, queue="q"), build.job("over", gpus=2, queue="q"), build.job("free", gpus=4)]
    found = judge(build.instance(nodes=nodes, jobs=jobs, policy=policy))
    assert {one.change: (one.jobs, one.gpu_milli) for one in found.gains} == {
        "node 'off' back, that is drained": (1, 2000),
        "one more node of type 'm'": (1, 2000),
        "lift the limits of queue 'q'": (1, 0),
    }
    assert found.gains[-1].proven
    assert Drain(do="undrain", nodes=("off",)) in [step for one in found.gains for step in one.steps]


def test_a_reading_is_judged_by_what_its_jobs_allow() -> None:
    """Its policy allows no changes; jobs that could not be read make it an answer about what was read."""
    unread = ReadingNote(kind="left out", reason="waiting, of which the request cannot be read", names=("odd",))
    reading = busy(policy=Policy(), reading=(unread,))
    assert judge(reading).regrets[1].stopped == 0
    found = judge(live_round(reading))
    assert found.regrets[1].stopped == 4
    assert (found.of, found.unread) == ("reading", ("odd",))
    assert found.regrets[0].of == "reading"


def test_without_time_what_is_known_is_said() -> None:
    """No statement is wrong, what is missing is named, and the judged plan is the best one known."""
    found = judge(busy(), time_limit_s=1e-6)
    assert not found.proven
    assert found.open
    assert {kind.verdict for kind in found.waiting} == {"unknown"}
    for regret in found.regrets:
        assert all(band.given == band.best <= band.bound for band in regret.bands)


def test_arguments_are_checked() -> None:
    """A time limit above 0, and a plan of the whole round."""
    round_ = build.instance(nodes=1, jobs=[build.job("a")])
    with pytest.raises(BadInput, match="time_limit_s: 0, expected seconds above 0"):
        judge(round_, time_limit_s=0)
    some = plan_of(round_, ()).model_copy(update={"asked": ("a",)})
    with pytest.raises(BadInput, match="expected a plan of the whole round"):
        judge(round_, some)
