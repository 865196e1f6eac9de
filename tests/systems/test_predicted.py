"""Estimates as the papers' predictors make them: what goes into them, and that the truth stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from placeopt.systems.genie.scenarios import genie_formulas, genie_tasks
from placeopt.systems.horus import onnx_features
from placeopt.systems.horus.networks import Graph, networks
from placeopt.systems.horus.scenarios import horus_testbed
from placeopt.systems.horus.utilisation import LAUNCH_S, PASSES, STEP_S, held_out, modelled_percent, with_regressor
from placeopt.systems.soda.month import services_that_share, soda_month
from placeopt.systems.soda.trials import with_trials

pytest.importorskip("onnx")
NETWORKS = {network.name: network for network in networks()}


@pytest.mark.parametrize(
    ("name", "parameters", "multiplications"),
    [
        ("vgg-16-224", 138.4e6, 15.5e9),
        ("vgg-19-224", 143.7e6, 19.6e9),
        ("resnet-18-224", 11.7e6, 1.82e9),
        ("resnet-50-224", 25.6e6, 4.1e9),
        ("resnet-101-224", 44.5e6, 7.8e9),
        ("googlenet-224", 7.0e6, 1.58e9),
        ("mobilenet-100-224", 4.2e6, 0.57e9),
    ],
)
def test_networks_are_as_large_as_published(name: str, parameters: float, multiplications: float) -> None:
    """Within 2 %: biases are left out, means and variances of normalisation count."""
    graph = NETWORKS[name].graph(1)
    assert graph.parameters == pytest.approx(parameters, rel=0.02)
    assert sum(work.flops for work in graph.work) / 2 == pytest.approx(multiplications, rel=0.02)


@pytest.mark.parametrize("name", ["alexnet-64", "googlenet-32", "mobilenet-50-64", "resnet-50-32", "encoder-4x256-64"])
def test_the_file_has_the_features_of_the_graph(name: str, tmp_path: Path) -> None:
    """Counted from shapes that onnx infers, not from ours."""
    graph = NETWORKS[name].graph(8)
    graph.save(tmp_path / "network.onnx")
    features = onnx_features(tmp_path / "network.onnx", batch=8)
    assert features["flops"] == sum(work.flops for work in graph.work)
    assert features["parameters"] == graph.parameters


def test_modelled_utilisation_by_hand() -> None:
    """One small operator: its launches are longer than its work, and the step waits for the host."""
    graph = Graph(1)
    graph.relu(graph.source(100))
    gpu_s = PASSES * 2 * 4 * 100 / (0.5 * 448e9)
    assert modelled_percent(graph) == pytest.approx(100 * gpu_s / (PASSES * LAUNCH_S + STEP_S + 1e-6))


def test_a_regressor_is_worse_at_families_that_it_never_saw() -> None:
    """Every network and batch is predicted once, with errors."""
    near, far = held_out("linear"), held_out("linear", "family")
    assert [one.name for one in near] == [one.name for one in far]
    assert len(near) == 3 * len(NETWORKS) == 156

    def off(found: tuple) -> float:
        return sum(abs(one.predicted - one.percent) for one in found) / len(found)

    assert 0 < off(near) < off(far)


def test_policies_see_predicted_utilisation_of_the_same_jobs() -> None:
    """Jobs stay as they are; of the same seed estimates are the same."""
    plain = horus_testbed(0)
    told = with_regressor(plain, kind="linear")
    assert [one.job for one in told.arrivals] == [one.job for one in plain.arrivals]
    assert told == with_regressor(plain, kind="linear")
    seen = [one.seen.options[0].demand.gpu_utilisation_percent for one in told.arrivals]
    true = [one.job.options[0].demand.gpu_utilisation_percent for one in plain.arrivals]
    assert seen != true
    assert all(1 <= percent <= 100 for percent in seen)


def test_genie_tasks_with_the_rates_of_its_formula() -> None:
    """Eq. 4: rate x latency is the work, alike in every shape; the truth stays. Inference loses nothing to others."""
    plain, told = genie_tasks(0), genie_tasks(0, predicted=True)
    assert [one.job for one in told.arrivals] == [one.job for one in plain.arrivals]
    for arrival in told.arrivals[:40]:
        rates = [one.rate_milli or 0 for one in arrival.estimates]
        work = [rate * (one.latency_ms or 0) for rate, one in zip(rates, arrival.estimates, strict=True)]
        assert len(rates) == len(arrival.job.options)
        assert all(
            one == pytest.approx(work[0], rel=0.01) for rate, one in zip(rates, work, strict=True) if rate > 10_000
        )
        model = genie_formulas()[str(arrival.job.profile)]
        if arrival.job.kind == "inference":
            fastest = max(model.rate(1, 1, batch) for batch in range(1, 1025))
            gpus = [option.workers * option.demand.gpus for option in arrival.job.options]
            assert all(rate <= 3001 * one * fastest for rate, one in zip(rates, gpus, strict=True))


def test_trials_and_profiles_of_soda() -> None:
    """60 s each, and rates that are off by a tenth; without noise only time is lost."""
    plain = soda_month(nodes=2, days=1)
    told, timed = with_trials(plain), with_trials(plain, noise=False)
    assert (told.physics.core_trial_ms, told.physics.core_trial_noise_thousandths) == (60_000, 20)
    assert (timed.physics.core_trial_ms, timed.physics.core_trial_noise_thousandths) == (60_000, 0)
    assert timed.endpoints == plain.endpoints
    for before, after in zip(plain.endpoints, told.endpoints, strict=True):
        assert after.gpu.rate_milli == before.gpu.rate_milli != after.gpu.profiled_rate_milli
    assert {endpoint.gpu.demand.gpu_milli for endpoint in services_that_share(plain).endpoints} == {333}
