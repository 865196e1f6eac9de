"""GENIE's model database: a type that was never profiled takes the model of the most similar structure (section 6)."""

import pytest

from placeopt import BadInput
from placeopt.build import instance, job
from placeopt.model import Instance
from placeopt.systems.genie import genie_runs, genie_structures
from placeopt.systems.predictors import applied, fit_predictor
from placeopt.systems.similar import distance

Rows = list[dict[str, str]]


def runs(profile: str, alone: float, two: float | None, conv: int, lstm: int) -> Rows:
    """Return runs on one GPU and, unless it is None, on two of a node; the local batch is 32."""
    rates = ((1, alone),) if two is None else ((1, alone), (2, two))
    return [
        {
            "profile": profile, "nodes": "1", "gpus": str(gpus), "batch": str(32 * gpus), "rate": str(rate),
            "conv": str(conv), "lstm": str(lstm),
        }
        for gpus, rate in rates
    ]  # fmt: skip


CNN, RNN = runs("vgg-16", 100, 180, 13, 0), runs("lstm", 50, 60, 0, 2)


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        ({"conv": 5, "gemm": 3}, {"conv": 10, "gemm": 3}, 0.25),
        ({"conv": 5, "lstm": 0}, {"conv": 0, "lstm": 2}, 1),
        ({"conv": 0, "gemm": 4}, {"conv": 0, "gemm": 4}, 0),
        ({"flops": 2e9, "conv": 8, "batch": 3}, {"flops": 8e9, "conv": 8}, 0.375),
        ({"flops": 2, "conv": 8}, {"flops": 8, "conv": 8}, 0.375),
    ],
)
def test_distance_by_hand(one: dict[str, float], other: dict[str, float], apart: float) -> None:
    """The mean of 1 - smaller / larger over common features: in units of a billion it is the same."""
    assert distance(one, other) == distance(other, one) == apart


def predicted(rows: Rows, task: dict[str, str]) -> tuple[int | None, int | None]:
    """Return run time and rate of a task of two GPUs by a database."""
    model = fit_predictor("genie-rates", rows, source="made up")
    table = [{"batch": "64", "iterations": "90", **task}]
    made, _ = applied("genie-rates", model, table, instance(1, [job("a", gpus=2, profile=task["profile"])]))
    assert isinstance(made, Instance)
    return made.jobs[0].options[0].run_time_ms, made.jobs[0].options[0].rate_milli


def test_an_unseen_type_is_like_the_most_similar_one_until_it_is_profiled() -> None:
    """
    vgg-19 is nearest to vgg-16, 180 a second on two GPUs: 64 x 90 samples take 32 s.

    With a run on one GPU, 80 a second, it loses by communication what vgg-16 does, 0.2 GPUs of 2: 1.8 x 80 = 144, 40 s.
    With a run on two, 120, that is its own: 48 s.
    """
    unseen = {"profile": "vgg-19", "conv": "16", "lstm": "0"}
    assert predicted(CNN + RNN, unseen) == (32_000, 180_000)
    assert predicted(CNN + RNN + runs("vgg-19", 80, None, 16, 0), unseen) == (40_000, 144_000)
    assert predicted(CNN + RNN + runs("vgg-19", 80, 120, 16, 0), unseen) == (48_000, 120_000)
    assert predicted(CNN + RNN, {"profile": "gru", "conv": "0", "lstm": "3"}) == (96_000, 60_000)


def test_errors_on_types_that_were_left_out_by_hand() -> None:
    """
    Each by the other: 50 for 100, 60 for 180, 100 for 50, 180 for 60; means of 0.5, 0.667, 1 and 2.

    With its own rate on one GPU and the penalty of the other, 0.8 and 0.2 GPUs: 120 for 180, 90 for 60. Its few runs
    are all of its runs here.
    """
    model = fit_predictor("genie-rates", CNN + RNN, source="made up")
    assert model.held_out == (
        "mean error on types left out: 104.2 % by the most similar structure, 20.8 % with its runs on one GPU, "
        "0.0 % with those of the lightweight profiling"
    )
    bare = [{name: cell for name, cell in row.items() if name not in ("conv", "lstm")} for row in CNN + RNN]
    assert fit_predictor("genie-rates", bare, source="made up").held_out == ""


def test_errors_on_the_published_rates() -> None:
    """The figures of the documentation: six models on K80."""
    rows = [
        {
            "profile": name,
            **{column: str(cell) for column, cell in run._asdict().items()},
            **{column: str(cell) for column, cell in genie_structures()[name].items()},
        }
        for name, every in genie_runs().items()
        for run in every
    ]
    model = fit_predictor("genie-rates", rows, source="rates.csv")
    assert model.held_out == (
        "mean error on types left out: 191.6 % by the most similar structure, 31.6 % with its runs on one GPU, "
        "26.4 % with those of the lightweight profiling"
    )
    assert model.errors.mean == pytest.approx(0.251, abs=0.0005)


def test_structures_that_cannot_be_are_refused() -> None:
    """Features that differ between runs of a type; a type without runs and without features; other features."""
    with pytest.raises(BadInput, match="'lstm': features differ between its rows"):
        fit_predictor("genie-rates", RNN + runs("lstm", 50, None, 0, 3), source="made up")
    with pytest.raises(
        BadInput, match=r"'bert': no runs were fitted; known: vgg-16, lstm; state features .*: conv, lstm"
    ):
        predicted(CNN + RNN, {"profile": "bert"})
    with pytest.raises(BadInput, match="no feature in common: gemm, and conv"):
        distance({"gemm": 1}, {"conv": 1})


def test_jobs_that_were_never_measured_slow_others_as_similar_ones_do() -> None:
    """
    SC'17 4.2: d has the features of a, 1000 thousandths slower beside a or b, and slows these as a does.

    e states none: it is as the mean of a, b and c, beside a (1000 + 1000 + 0) / 3; beside its like as all nine.
    """
    ratios = {"a": (0.5, 0.8, 1.0), "b": (0.5, 0.8, 1.0), "c": (1.0, 1.0, 1.0)}
    layers = {"a": "10", "b": "4", "c": "1"}
    rows = [
        {"profile": one, "beside": other, "ratio": str(ratio), "conv": layers[one]}
        for one, every in ratios.items()
        for other, ratio in zip("abc", every, strict=True)
    ]
    model = fit_predictor("sc17-pairs", rows, source="made up")
    round_ = instance(1, [job(name, gpus=1, profile=name) for name in "bde"])
    made, jobs = applied("sc17-pairs", model, [{"profile": "d", "conv": "9"}], round_)
    assert isinstance(made, Instance)
    assert jobs == 3
    found = {(one.profile, one.beside): one.gpu_thousandths for one in made.slowdowns}
    assert [found.get(("d", other), 0) for other in "abcd"] == [1000, 250, 0, 1000]
    assert [found.get((other, "d"), 0) for other in "abce"] == [1000, 1000, 0, 667]
    assert [found.get(("e", other), 0) for other in "abcde"] == [667, 167, 0, 667, 278]
    assert [found.get((other, "e"), 0) for other in "abc"] == [417, 417, 0]
    assert model.held_out.startswith("mean error on jobs left out: ")
    with pytest.raises(BadInput, match="'a': features differ"):
        fit_predictor("sc17-pairs", [*rows, {**rows[0], "conv": "11"}], source="made up")
    alone = [{"profile": "a", "beside": "a", "ratio": str(0.5 + n / 10)} for n in range(5)]
    with pytest.raises(BadInput, match="expected at least 5"):
        fit_predictor("sc17-pairs", alone, source="made up")
