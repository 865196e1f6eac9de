"""Scenarios drawn after papers: sizes, mixes and what is stated."""

from __future__ import annotations

from collections import Counter
from statistics import fmean

import pytest

from placeopt import BadInput
from placeopt.scheduling import Scheduling, named_policy
from placeopt.simulation import simulate
from placeopt.systems.genie.scenarios import BATCHES, genie_models, genie_tasks, placements, task_options
from placeopt.systems.horus.scenarios import horus_testbed, horus_trace
from placeopt.systems.sc17.scenarios import mixed_jobs, pair, small_jobs, table_1
from placeopt.systems.sc17.times import sc17_times


def test_times_of_the_artifact() -> None:
    """Two GPUs with batch 1: 127.4 s in a socket, 159.1 across; a pair of such jobs 167.9."""
    times = sc17_times()
    assert (times.run_time_ms["alexnet-1-2"], times.spread_thousandths["alexnet-1-2"]) == (127_415, 249)
    (beside,) = times.among({"alexnet-1-2"})
    assert beside.socket_thousandths == 318


def test_table_1() -> None:
    """Networks, batches and arrivals as printed, but for CaffeRef."""
    jobs = [arrival.job for arrival in table_1().arrivals]
    assert [job.profile for job in jobs[:2]] == ["alexnet-1-1", "googlenet-4-1"]
    assert [job.arrival_ms for job in jobs] == [510, 15_030, 24_360, 25_330, 29_330, 29_890]
    assert [job.utility_min_thousandths for job in jobs] == [300, 300, 300, 500, 500, 500]


def test_pairs_run_from_the_beginning() -> None:
    """Across the sockets, each with a GPU of both."""
    held = pair("1", apart=True, beside="128").running
    assert [sorted(one.assignments[0].gpus) for one in held] == [["0", "2"], ["1", "3"]]
    assert sorted(pair("1", apart=False).running[0].assignments[0].gpus) == ["0", "1"]
    with pytest.raises(BadInput, match="batch"):
        pair("2", apart=True)


def test_drawn_jobs_of_sc17() -> None:
    """The artifact's mix; the binomials of the paper; arrivals rarer where there are fewer machines, or by the load."""
    small = small_jobs(0, jobs=2_000)
    kinds = Counter(arrival.job.profile for arrival in small.arrivals)
    assert 0.28 < kinds["alexnet-1-2"] / 2_000 < 0.36
    assert 5_500 < small.arrivals[-1].job.arrival_ms / 2_000 < 6_500
    mixed = mixed_jobs(0, jobs=2_000, machines=100)
    batches = Counter((arrival.job.profile or "").split("-")[1] for arrival in mixed.arrivals)
    assert 0.10 < batches["1"] / 2_000 < 0.15
    assert 0.34 < batches["4"] / 2_000 < 0.41
    assert 55_000 < mixed.arrivals[-1].job.arrival_ms / 2_000 < 65_000
    loaded = mixed_jobs(0, jobs=2_000, machines=100, load=0.9)
    asked = sum((a.job.options[0].run_time_ms or 0) * a.job.options[0].demand.gpus for a in loaded.arrivals)
    assert asked / loaded.arrivals[-1].job.arrival_ms / 400 == pytest.approx(0.9, rel=0.06)


def test_communication_weights_by_batch() -> None:
    """SC'17 5.1: 4 for the smallest batch to 1 for the largest; jobs of one GPU do not communicate."""
    plain, weighted = small_jobs(4), small_jobs(4, weighted=True)
    found = {
        (one.job.profile or "", one.job.communication.weight, other.job.communication.weight)
        for one, other in zip(plain.arrivals, weighted.arrivals, strict=True)
    }
    assert {("alexnet-1-2", 1, 4), ("alexnet-4-2", 1, 3), ("alexnet-1-1", 0, 0)} <= found
    assert {weight for kind, _, weight in found if kind.endswith("-1")} == {0}


def test_drawn_jobs_of_horus() -> None:
    """3 minutes to 2 hours, 51 % used on average; more short ones in W-Small; the trace's median and mean."""
    large, small = (horus_testbed(1, name, jobs=3_000) for name in ("large", "small"))
    times = [(arrival.job.options[0].run_time_ms or 0) / 1000 for arrival in large.arrivals]
    assert min(times) >= 180
    assert max(times) <= 7_200
    short = sum(time <= 800 for time in times) / 3_000
    assert 0.43 < short < 0.49
    assert short < sum((a.job.options[0].run_time_ms or 0) <= 800_000 for a in small.arrivals) / 3_000
    percent = [arrival.job.options[0].demand.gpu_utilisation_percent for arrival in large.arrivals]
    assert 49 < fmean(percent) < 54
    trace = horus_trace(1, jobs=4_000)
    minutes = sorted((arrival.job.options[0].run_time_ms or 0) / 60_000 for arrival in trace.arrivals)
    assert minutes[2_000] == pytest.approx(300, rel=0.1)
    assert fmean(minutes) == pytest.approx(500, rel=0.1)
    gpus = [arrival.job.options[0].workers * arrival.job.options[0].demand.gpus for arrival in trace.arrivals]
    assert set(gpus) == {8, 16, 32, 64}
    assert fmean(gpus) == pytest.approx(24.8, rel=0.1)
    demand = large.arrivals[0].job.options[0].demand
    assert abs(demand.gpu_memory_mib - 1024 - 66.56 * demand.gpu_utilisation_percent) <= 1025
    with pytest.raises(BadInput, match="small or large"):
        horus_testbed(0, "medium")


def test_tasks_of_genie() -> None:
    """Arrivals by density, half of them training, classes and completion times of eq. 9, six models alike."""
    made = genie_tasks(3, per_hour=100)
    jobs = [arrival.job for arrival in made.arrivals]
    assert 2_200 < len(jobs) < 2_600
    assert 0.46 < sum(job.kind == "training" for job in jobs) / len(jobs) < 0.54
    assert 0.03 < sum(job.priority == 2 for job in jobs) / len(jobs) < 0.07
    assert 0.56 < sum(job.priority == 0 for job in jobs) / len(jobs) < 0.64
    assert {job.user for job in jobs} == set(BATCHES)
    for job in jobs[:50]:
        alone = job.options[0]
        assert (alone.id, alone.value) == ("1x1", 1000)
        due = (job.expected_completion_ms or 0) - job.arrival_ms
        assert due == pytest.approx((2 - job.priority) * (alone.run_time_ms or 0), abs=2)
        for option in job.options:
            assert (option.run_time_ms or 0) * option.value == pytest.approx(1000 * (alone.run_time_ms or 0), rel=0.01)
    with pytest.raises(BadInput, match="per_hour"):
        genie_tasks(0, classes=(50, 50, 1))


def test_every_placement_of_genie_s_algorithm_1() -> None:
    """
    Line 3: 1 to N nodes of 1 to 4 GPUs, 16 on 4 nodes and 12 on 3; none with more GPUs than the batch has samples.
    """
    assert len(placements(4)) == 16
    assert set(placements(3)) == {(n, g) for n in (1, 2, 3) for g in (1, 2, 3, 4)}
    made = genie_tasks(0, per_hour=5, hours=2, every_placement=True)
    few = genie_tasks(0, per_hour=5, hours=2)
    for arrival, other in zip(made.arrivals, few.arrivals, strict=True):
        options = {option.id: option for option in arrival.job.options}
        assert set(options) == {f"{n}x{g}" for n in (1, 2, 3, 4) for g in (1, 2, 3, 4)}
        assert all(options[option.id] == option for option in other.job.options)
        assert [options["3x2"].workers, options["3x2"].demand.gpus] == [3, 2]
    tiny = task_options(genie_models()["lstm"], 5, 3600, 4, trains=True, shapes=placements(4))
    assert {option.id for option in tiny} == {"1x1", "1x2", "1x3", "1x4", "2x1", "2x2", "3x1", "4x1"}


def test_rates_of_genie_fit_what_was_measured() -> None:
    """Within 6 % on average; inference loses by small batches alone, training by synchronising too."""
    assert all(model.errors.mean < 0.06 for model in genie_models().values())
    lstm = genie_models()["lstm"]
    trains = {option.id: option.value for option in task_options(lstm, 40, 3600, 4, trains=True)}
    infers = {option.id: option.value for option in task_options(lstm, 40, 3600, 4, trains=False)}
    assert infers["1x1"] == 1000 < infers["1x2"] == infers["2x1"] < infers["4x4"] < 16_000
    assert trains["1x2"] > trains["2x1"]
    assert trains["4x4"] < trains["1x2"]
    assert set(infers) == {f"{n}x{g}" for n in (1, 2, 4) for g in (1, 2, 4)}
    assert "4x1" not in {option.id for option in task_options(lstm, 40, 3600, 2, trains=False)}


def test_owners_ask_for_one_shape() -> None:
    """
    It is worth most, and to a scheduler that knows no other (``valued``) it is the only one; nothing else differs.

    Of 1,000 tasks some 932 ask for one GPU, as jobs of Philly's trace do (76,627 of 82,157).
    """
    asked, plain = (genie_tasks(1, per_hour=100, requested=requested) for requested in (True, False))
    ones = 0
    for one, other in zip(asked.arrivals, plain.arrivals, strict=True):
        best = max(one.job.options, key=lambda option: option.value)
        ones += best.workers * best.demand.gpus == 1
        same = [option.model_copy(update={"value": 0}) for option in one.job.options]
        assert same == [option.model_copy(update={"value": 0}) for option in other.job.options]
        assert sum(option.value == best.value for option in one.job.options) == 1
    assert 0.9 < ones / len(asked.arrivals) < 0.96
    few = genie_tasks(1, hours=3, requested=True)
    rules = Scheduling.model_validate({**dict(named_policy("min-min")), "choice": {"rule": "valued"}})
    placed = {job.job: job.spans[0].placement.option for job in simulate(few, rules).jobs}
    for arrival in few.arrivals:
        assert placed[arrival.job.id] == max(arrival.job.options, key=lambda option: option.value).id
