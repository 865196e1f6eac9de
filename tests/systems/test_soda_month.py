"""SODA's month: the published statistics hold, and the same seed gives the same month."""

import numpy as np
import pytest

from placeopt import BadInput
from placeopt.systems.soda.month import KINDS, best_cores, core_curve, offline_profile, soda_month


def test_the_published_statistics_hold() -> None:
    """On a tenth of the cluster for the whole month: a tenth of the jobs."""
    month = soda_month(nodes=8, days=30)
    cpu = [one for one in month.arrivals if one.job.kind == "cpu"]
    training = [one for one in month.arrivals if one.job.kind != "cpu"]
    assert (len(cpu), len(training)) == (7500, 2500)
    hours, cores, few = [], [], []
    for one in training:
        demand = one.job.options[0].demand
        speed = core_curve(one.job.profile).speed(demand.cpu_millicores // demand.gpus)
        hours.append(one.actual_run_time_ms / 3_600_000 * 1000 / speed)
        cores.append(demand.cpu_millicores // 1000)
        few.append(cores[-1] / demand.gpus in (1, 2) and cores[-1] <= 8)
    assert np.mean(np.array(hours) > 1) == pytest.approx(0.685, abs=0.02)
    assert np.mean(np.array(hours) > 2) == pytest.approx(0.396, abs=0.02)
    assert np.mean(np.array(cores) > 10) == pytest.approx(0.153, abs=0.02)
    assert np.mean(few) == pytest.approx(0.761, abs=0.04)
    hungry = [one for one in cpu if one.job.options[0].demand.memory_bandwidth_mbps > 40_000]
    assert len(hungry) / len(cpu) == pytest.approx(0.005, abs=0.002)
    assert len(month.cluster.machines[0].gpus) * 80 == 400


def test_the_same_seed_gives_the_same_month() -> None:
    """Another gives another."""
    one, same, other = (soda_month(seed=seed, nodes=4, days=1) for seed in (3, 3, 4))
    assert one == same != other


def test_curves_rise_to_the_best_number_of_cores() -> None:
    """And stay there."""
    curve = core_curve("transformer")
    assert list(curve.speed_thousandths) == sorted(set(curve.speed_thousandths))
    assert curve.speed(5000) == curve.speed(9000) == 1000


def test_gpu_jobs_of_a_node_occupy_twelve_cores() -> None:
    """KINDS has 4.4 a GPU in the mean, 22 for five: 12 / 22 of 2, 3, 4 and 5 cores are 1.09, 1.6, 2.2 and 2.7."""
    found = {name: best_cores(name, 12) for name in ("vgg16", "resnet50", "alexnet", "transformer")}
    assert found == {"vgg16": 1, "resnet50": 2, "alexnet": 2, "transformer": 3}
    assert sum(5 * best_cores(name) * kind.share for name, kind in KINDS.items()) == pytest.approx(22)
    assert best_cores("transformer") == 5
    speeds = {one.profile: one.speed_thousandths for one in soda_month(nodes=2, days=1, gpu_job_cores=12).core_curves}
    assert len(speeds["transformer"]) == 3


def test_a_service_is_profiled_for_the_largest_batch_and_then_the_fewest_cores() -> None:
    """Six cores compute two in time, and so do four; none where not even one is in time with all of them."""
    batches = [0, 1, 1, 2, 2, 2]
    assert offline_profile(lambda cores: batches[cores - 1], 6) == (2, 4)
    assert offline_profile(lambda cores: batches[cores - 1], 3) == (1, 2)
    assert offline_profile(lambda cores: batches[cores - 1], 1) is None


@pytest.mark.parametrize("fields", [{"nodes": 1}, {"days": 0}])
def test_what_cannot_be_is_refused(fields: dict) -> None:
    """With the range."""
    with pytest.raises(BadInput, match="expected 2 to 10000"):
        soda_month(**fields)
