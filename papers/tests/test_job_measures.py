"""Measures of training, GPU and CPU jobs and of services, each worked by hand."""

from __future__ import annotations

import pytest

from helpers.scenarios import policy, scenario, timed
from placeopt.build import placement
from placeopt.scheduling import named_policy
from placeopt.simulation import History, JobColumns, JobHistory, simulate, summarise
from placeopt.systems.dynamoml.scenarios import WANTED, dynamoml_scenario
from placeopt.systems.sc17.scenarios import pair
from placeopt_papers import job_measures as of


def test_training_waits_runs_and_ends() -> None:
    """On four GPUs one of 6 minutes, then one of 3 that waits for it; a job of another kind counts for nothing."""
    jobs = [
        timed("first", 0, 360_000, gpus=4, kind="training"),
        timed("second", 60_000, 180_000, gpus=2, kind="training"),
        timed("other", 60_000, 999_000, gpus=2, kind="inference"),
    ]
    history = simulate(scenario(jobs), policy())
    assert of.training_min(history, of.run_ms) == (6 + 3) / 2
    assert of.training_min(history, lambda job: (job.start_ms or 0) - job.arrival_ms) == (0 + 5) / 2
    assert of.training_within_percent(history, 5) == 50.0
    assert of.longest_training_min(history) == 6.0
    assert of.time_with_workers_percent(history, (1,)) == 100.0
    assert of.time_with_workers_percent(history, (3, 4)) == 0.0


def test_answers_by_the_time_that_they_take() -> None:
    """
    DynamoML 5.3 with clients that wait: 18.4 keep a replica of 100 a second at 80 %, 30 ms an answer and 200 to think.

    The minutes that want eight or more replicas have 131 clients and more: one replica answers 100 a second, so each
    takes over 1.1 s. With seven wanted it is 0.92 to 1.07 s. Under DynamoML none takes more than 128 ms.
    """
    slow, quick = (
        simulate(dynamoml_scenario(seed=11, waiting_clients=True), named_policy(name))
        for name in ("k8s-sharing", "dynamoml")
    )
    (endpoint,) = slow.scenario.endpoints
    minutes = [step.clients or 0 for step in endpoint.load[:31]]
    assert all(18.4 * (wanted - 0.93) < few < 18.4 * wanted for few, wanted in zip(minutes, WANTED, strict=True))
    beyond = sum(few / 100 - 0.2 > 1.024 for few in minutes)
    share = of.slow_percent(slow, 1024, 1_000_000)
    assert share == pytest.approx(100 * beyond * 60 * 100 / summarise(slow).serving.requests, rel=0.02)
    assert of.slow_percent(quick, 0, 128) == 100.0


def test_late_requests_by_load() -> None:
    """
    One replica serves all the time: 100 a second, in time up to 118 ms of waiting, so just under 100.

    By hand, a minute that wants twelve: 80 x 11.1 to 80 x 11.9 come a second, about 100 are in time: some 89 % late.
    """
    history = simulate(dynamoml_scenario(seed=11), named_policy("k8s-sharing"))
    few, some, many = (of.late_percent(history, *loads) or 0.0 for loads in ((1, 1), (2, 4), (12, 12)))
    assert few == 0.0
    assert 0 < some < many
    assert many == pytest.approx(100 * (1 - 96 / (80 * 11.5)), abs=1.5)
    assert of.late_percent(history, 13, 99) is None
    everything = of.late_percent(history, 1, 12)
    summary = summarise(history)
    assert summary.serving is not None
    assert everything == pytest.approx(100 * summary.serving.late_share, abs=0.5), "the scenario ends with the last job"


def test_deviation_of_waits() -> None:
    """One job at once, one after a minute, one after three: of 0, 1 and 3 minutes."""
    jobs = [timed("a", 0, 60_000, gpus=4), timed("b", 0, 120_000, gpus=4), timed("c", 0, 1_000, gpus=4)]
    assert of.wait_deviation_min(simulate(scenario(jobs), policy())) == pytest.approx((14 / 9) ** 0.5)


def test_gpu_and_cpu_jobs_that_wait() -> None:
    """The second GPU job waits for 70 s, the CPU job for nobody; a minute is too long for one of two."""
    jobs = [
        timed("a", 0, 80_000, gpus=4),
        timed("b", 10_000, 5_000, gpus=1),
        timed("c", 10_000, 5_000, gpus=0, cpu_millicores=1000, kind="cpu"),
    ]
    history = simulate(scenario(jobs), policy("best-fit"))
    assert of.waiting_percent(history, gpu=True, longer_than_s=60) == 50.0
    assert of.waiting_percent(history, gpu=True, longer_than_s=3600) == 0.0
    assert of.waiting_percent(history, gpu=False, longer_than_s=10) == 0.0


def test_cores_are_held_while_jobs_come() -> None:
    """Until the last arrival, at 10 s, a job holds 8 of the node's 32 cores for 5 s: an eighth."""
    cores = 8_000
    jobs = [timed("a", 0, 5_000, cpu_millicores=cores), timed("b", 10_000, 50_000, cpu_millicores=cores)]
    made = scenario(jobs)
    assert made.cluster.machines[0].cpu_millicores == 4 * cores
    assert of.cpu_held_percent(simulate(made, policy())) == pytest.approx(12.5)


def test_the_user_who_waits_longest() -> None:
    """Of two users one waits for an hour: with one job each, the 99th percentile is that job."""
    jobs = [timed("a", 0, 3_600_000, gpus=4, user="u"), timed("b", 0, 1_000, gpus=1, user="v")]
    assert of.worst_user_wait_h(simulate(scenario(jobs), policy())) == 1.0


def test_eq_4_of_two_jobs_of_batch_1() -> None:
    """SC'17: each takes 1.318 times as long beside the other, so the mean of solo / collocated is 1 / 1.318."""
    history = simulate(pair("1", apart=True, beside="1"), named_policy("fcfs"))
    assert of.solo_over_placed(history) == pytest.approx(1 / 1.318, abs=1e-4)
    assert sum(JobColumns.of(history).slowdown - 1) == pytest.approx(2 * 0.318, abs=1e-4), "our cost, eq. 4's place"


def test_inference_takes_the_gpus_that_training_gives() -> None:
    """DynamoML 5.1: eleven in the first seven minutes, twelve in the eighth; two workers most of the time."""
    history = simulate(dynamoml_scenario(seed=11), named_policy("dynamoml"))
    assert [of.most_service_gpus(history, minute) for minute in (1, 2, 7, 8)] == [1, 2, 11, 12]
    shares = [of.time_with_workers_percent(history, (number,)) or 0.0 for number in (1, 2, 3, 4)]
    assert sum(shares) == pytest.approx(100)
    assert max(shares) == shares[1]
    assert all(job.stops == 0 for job in of.training_jobs(history)), "the chief worker stays (3.3)"


def test_cores_given_beside_cores_asked_for() -> None:
    """Five more for one, twelve fewer for another: SODA's figure 15b counts 1 to 5 more, and 1 to 20 fewer."""
    jobs = [timed("few", 0, 1, cpu_millicores=1000), timed("many", 0, 1, cpu_millicores=15_000)]
    history = simulate(scenario(jobs), policy())

    def given(old: JobHistory, job_number: int, millicores: int) -> JobHistory:
        placed = placement(jobs[job_number], [("n0", (0,))])
        held = placed.assignments[0].model_copy(update={"cpu_millicores": millicores})
        return JobHistory(
            old.job, old.user, 0, 1000, 1, 0, 1, placement=placed.model_copy(update={"assignments": (held,)})
        )

    changed = (given(history.jobs[0], 0, 6000), given(history.jobs[1], 1, 3000))
    other = History(history.scenario, history.scheduling, 0, 1, True, changed, history.rounds)
    assert of.cores_changed_percent(other, 1, 5) == of.cores_changed_percent(other, -20, -1) == 50.0
    assert of.cores_changed_percent(history, 1, 5) == 0.0
