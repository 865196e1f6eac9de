"""Predictions against figures worked out by hand, and fits against models that made their data."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from placeopt import BadInput, Instance, Policy, generate
from placeopt.model import Interference
from placeopt.predict import (
    REGRESSORS,
    CurveModel,
    InterferenceModel,
    Pair,
    ProfiledRun,
    RateModel,
    Regressor,
    best_fit_cores,
    first_cores,
    fit_curve,
    fit_interference,
    fit_rate,
    fit_regressor,
    fit_step,
    gavel_pairs,
    gpu_memory_mib,
    lightweight,
    read_fitted,
    relative_errors,
    rmsle,
    sia_runs,
    write_fitted,
)


class TestErrors:
    """Figures by hand."""

    def test_relative(self) -> None:
        """Off by 10, 0 and 50 percent."""
        found = relative_errors([110, 20, 15], [100, 20, 10])
        assert (found.count, found.mean, found.median, found.worst) == (3, pytest.approx(0.2), pytest.approx(0.1), 0.5)

    def test_logarithmic(self) -> None:
        """log 4 - log 2 = log 2, and 0."""
        assert rmsle([3, 0], [1, 0]) == pytest.approx(np.log(2) / np.sqrt(2))
        assert rmsle([-5], [0]) == 0

    @pytest.mark.parametrize(("predicted", "measured"), [([], []), ([1], [1, 2]), ([1], [0])])
    def test_what_cannot_be_compared_is_refused(self, predicted: list[float], measured: list[float]) -> None:
        """Nothing, unequal lists, a measurement of nothing."""
        with pytest.raises(BadInput):
            relative_errors(predicted, measured)


class TestMemory:
    """Horus eq. 2."""

    def test_by_hand(self) -> None:
        """(2 x 1 Mi + 3 Mi + 2 x 1 Mi) x 4 bytes = 28 MiB, and 100 to begin with."""
        mi = 2**20
        assert gpu_memory_mib(batch=2, activations=mi, parameters=3 * mi, gradients=mi, startup_mib=100) == 128
        assert gpu_memory_mib(batch=1, activations=0, parameters=1, gradients=0) == 1

    def test_negative_counts_are_refused(self) -> None:
        """By name."""
        with pytest.raises(BadInput, match="gradients: -1"):
            gpu_memory_mib(batch=1, activations=1, parameters=1, gradients=-1)


class TestCores:
    """SODA V-B."""

    def test_where_the_search_begins(self) -> None:
        """By category, by history, by what else is told; never below one."""
        assert [first_cores(c) for c in ("vision", "language", "speech")] == [3, 5, 5]  # type: ignore[arg-type]
        assert first_cores("vision", largest_before=8, heavy_preprocessing=True) == 9
        assert first_cores(largest_before=2, pipelined=True, many_weights=True) == 1
        with pytest.raises(BadInput, match="category: None; expected one of vision"):
            first_cores()

    @pytest.mark.parametrize("start", range(1, 11))
    @pytest.mark.parametrize("best", [1, 3, 6, 10])
    def test_the_fewest_cores_at_the_highest_speed(self, start: int, best: int) -> None:
        """Speed grows up to the best number and stays; from any start."""
        found, measured = best_fit_cores(lambda cores: min(cores, best), start, most=10)
        assert found == best
        assert measured <= abs(start - best) + 3

    def test_fewer_cores_can_be_faster(self) -> None:
        """Above its best, a job may slow down slightly."""
        assert best_fit_cores(lambda cores: -abs(cores - 4), 6, most=8) == (4, 4)

    def test_a_start_beyond_the_node_is_refused(self) -> None:
        """Nothing is measured then."""
        with pytest.raises(BadInput, match="start: 9; expected 1 to 8"):
            best_fit_cores(lambda _: 1.0, 9, most=8)


def made(across: float, inside: float) -> list[ProfiledRun]:
    """Runs of a job whose model is known."""
    model = RateModel.model_construct(
        single=(10.0, 2.0, -0.01), across=across, inside=inside, local_batch_min=1.0, local_batch_max=64.0
    )
    shapes = [(1, 1), (1, 2), (1, 4), (2, 4), (4, 4), (2, 1), (4, 1)]
    return [ProfiledRun(n, g, n * g * b, model.rate(n, g, n * g * b)) for n, g in shapes for b in (4, 8, 16, 32)]


class TestRate:
    """GENIE eq. 5 to 8."""

    def test_by_hand(self) -> None:
        """Two nodes of two GPUs: (1 x 2 x 0.6 + 1 x 0.3) / 3 = 0.5 GPUs lost of 4, at 10 + 2 x 8 samples each."""
        model = fit_rate("made", made(0.6, 0.3), source="test")
        assert model.penalty(2, 2) == pytest.approx(0.5)
        assert model.rate(2, 2, 32) == pytest.approx(3.5 * (10 + 2 * 8 - 0.01 * 64))
        assert model.latency_s(1, 1, 8, 100, 5.0) == pytest.approx(8 * 100 / (10 + 16 - 0.64) + 5)

    @pytest.mark.parametrize(("across", "inside"), [(0.6, 0.3), (0.0, 0.0), (0.5, 0.0), (0.0, 0.4)])
    def test_the_model_that_made_the_runs_is_found(self, across: float, inside: float) -> None:
        """Exactly, by all runs and by few."""
        runs = made(across, inside)
        for some in (runs, lightweight(runs)):
            model = fit_rate("made", some, source="test")
            assert (model.across, model.inside) == (pytest.approx(across, abs=1e-9), pytest.approx(inside, abs=1e-9))
            assert model.errors.worst < 1e-9

    def test_few_runs_are_few(self) -> None:
        """B + N + G of them: four batches alone, and shapes at one global batch."""
        few = lightweight(made(0.6, 0.3))
        assert {run.batch for run in few if run.nodes * run.gpus > 1} == {64}
        assert sum(run.nodes * run.gpus == 1 for run in few) == 4

    def test_inference_does_not_communicate(self) -> None:
        """Its penalty is not fitted."""
        assert fit_rate("serving", made(0.6, 0.3), source="test", communicates=False).penalty(4, 4) == 0

    def test_outside_what_was_profiled_the_nearest_batch_counts(self) -> None:
        """A quadratic knows nothing there."""
        model = fit_rate("made", made(0.6, 0.3), source="test")
        assert model.rate(1, 1, 1000) == model.rate(1, 1, 32)

    def test_runs_without_one_gpu_are_refused(self) -> None:
        """All else is built on them."""
        with pytest.raises(BadInput, match="none on one GPU"):
            fit_rate("odd", [ProfiledRun(2, 1, 8, 1.0)], source="test")

    @pytest.mark.parametrize("fit", [fit_rate, fit_step])
    @pytest.mark.parametrize(
        "wrong",
        [
            ProfiledRun(1, 1, 8, float("nan")),
            ProfiledRun(1, 1, 8, 0.0),
            ProfiledRun(1, 1, 0, 1.0),
            ProfiledRun(0, 1, 8, 1.0),
        ],
    )
    def test_runs_that_cannot_have_been_are_refused(self, fit: Callable[..., object], wrong: ProfiledRun) -> None:
        """By number; no fault of linear algebra, and no model of nothing."""
        with pytest.raises(BadInput, match=r"runs\[1\].*leave out what was not measured"):
            fit("odd", [ProfiledRun(1, 1, 8, 1.0), wrong], source="test")

    def test_sia_profiles_are_read(self) -> None:
        """A digit is a node; uneven rows are counted and left out."""
        text = "placement,local_bsz,step_time,sync_time\n1,4,0.5,0.1\n44,8,0.8,0.2\n31,8,0.8,0.2\n"
        assert sia_runs(text) == ([ProfiledRun(1, 1, 4, 8.0), ProfiledRun(2, 4, 64, 80.0)], 1)
        for row in ("1,4,0,0.1", "1,0,0.5,0.1", "1,inf,0.5,0.1", "1,4,nan,0.1", "1,4"):
            with pytest.raises(BadInput, match=r"line 2: .*numbers above 0"):
                sia_runs(f"placement,local_bsz,step_time,sync_time\n{row}\n")
        for other in ("placement,step_time\n1,0.5\n", "", "no profile at all"):
            with pytest.raises(BadInput, match=r"profile: no column .*local_bsz"):
                sia_runs(other)


class TestStep:
    """Seconds of a step."""

    def test_the_model_that_made_the_runs_is_found(self) -> None:
        """Computing 0.1 + 0.01 a sample, synchronising 0.05 inside a node, 0.2 and 0.01 more a GPU across."""
        runs = []
        for nodes, gpus in ((1, 1), (1, 2), (1, 4), (2, 2), (2, 4), (4, 4)):
            for local in (4, 8, 16):
                k = nodes * gpus
                sync = 0 if k == 1 else 0.05 if nodes == 1 else 0.2 + 0.01 * (k - 2)
                runs.append(ProfiledRun(nodes, gpus, k * local, k * local / (0.1 + 0.01 * local + sync)))
        model = fit_step("made", runs, source="test")
        assert model.coefficients == pytest.approx((0.1, 0.01, 0.05, 0, 0.2, 0.01), abs=1e-9)
        assert model.step_s(2, 2, 40) == pytest.approx(0.1 + 0.1 + 0.2 + 0.02)
        assert model.rate(1, 1, 10) == pytest.approx(10 / 0.2)

    def test_coefficients_are_never_below_zero(self) -> None:
        """Larger batches that are quicker say nothing sensible of time."""
        model = fit_step("odd", [ProfiledRun(1, 1, 4, 4.0), ProfiledRun(1, 1, 8, 16.0)], source="test")
        assert min(model.coefficients) >= 0
        with pytest.raises(BadInput, match="none; expected at least one"):
            fit_step("none", [], source="test")


class TestInterference:
    """Pairs on one GPU."""

    def test_an_additive_model_is_found_and_fills_in(self) -> None:
        """Three types, one pair never measured."""
        feels, presses = {"a": 0.2, "b": 0.5, "c": 0.1}, {"a": 0.3, "b": 0.0, "c": 0.4}
        pairs = [
            Pair(j, k, float(np.exp(-feels[j] - presses[k]))) for j in "abc" for k in "abc" if (j, k) != ("b", "c")
        ]
        model = fit_interference("made", pairs, source="test", folds=4)
        assert model.excess("b", "c") == pytest.approx(np.exp(0.9) - 1)

    def test_slowdowns_of_an_instance(self) -> None:
        """Measured as it was, speed-ups as nothing."""
        pairs = [Pair("a", "a", 0.5), Pair("a", "b", 1.2), Pair("b", "a", 0.8), Pair("b", "b", 1.0)]
        table = fit_interference("made", pairs, source="test", folds=2).slowdowns(["a", "b"])
        assert [(s.profile, s.beside, s.gpu_thousandths) for s in table] == [("a", "a", 1000), ("b", "a", 250)]

    def test_gavel_pairs_without_zeros(self) -> None:
        """Both directions of a pair; zeros, and jobs of several GPUs, left out, counted by reason."""
        one, two, four = "('A', 1)", "('B', 1)", "('A', 4)"
        table = {
            one: {"null": 10.0, two: [5.0, 4.0], four: [1.0, 1.0]},
            two: {"null": 8.0, one: [0.0, 0.0]},
            four: {"null": 20.0},
        }
        pairs, left = gavel_pairs(json.dumps({"v100": table}), "v100")
        assert pairs == [Pair(one, two, 0.5), Pair(two, one, 0.5)]
        assert left == {"of jobs of several GPUs": 1, "of zeros: not runnable together, or never measured": 1}
        with pytest.raises(BadInput, match="worker type 'k80'"):
            gavel_pairs(json.dumps({"v100": table}), "k80")

    def test_gavel_pairs_without_a_number_of_gpus(self) -> None:
        """
        Names that lack ", 1)" once gave no pair, and none was counted.

        A plain name, as in Gavel's first files, is of a job of one GPU; the rest is counted by reason.
        """
        table = {
            "A": {"null": 10.0, "B": [5.0, 4.0], "C": [5.0, 1.0], "('A', x)": [1.0, 1.0], "('A', 2)": [1.0, 1.0]},
            "B": {"null": 8.0, "A": [4.0, 5.0]},
            "C": {"A": [1.0, 5.0]},
        }
        pairs, left = gavel_pairs(json.dumps({"v100": table}), "v100")
        assert set(pairs) == {Pair("A", "B", 0.5), Pair("B", "A", 0.5)}
        assert left == {
            "of a job without a rate alone": 2,
            "with a name that is not a job": 1,
            "of jobs of several GPUs": 1,
        }
        five = [*pairs, Pair("A", "A", 0.4), Pair("B", "B", 0.7), Pair("A", "C", 0.7), Pair("C", "C", 0.7)]
        model = fit_interference("made", five, source="test", left_out=left)
        assert (model.provenance.left_out, model.provenance.why_left_out.startswith("pairs: 2 of a job")) == (4, True)

    @pytest.mark.parametrize(
        ("table", "words"),
        [
            ({}, "there is none"),
            ({"('A', 4)": {"null": 1.0, "('A', 4)": [1.0, 1.0]}}, "1 of jobs of several GPUs"),
            ({"(A": {"null": 1.0, "(A": [1.0, 1.0]}}, "1 with a name that is not a job"),
            ({"A": {"null": 1.0, "A": [0.0, 0.0]}}, "1 of zeros"),
            ({"A": {"null": float("nan"), "A": [1.0, 1.0]}}, "a rate of nan"),
            ({"A": {"null": 1.0, "A": [1.0]}}, "ValueError"),
            ({"A": {"null": 1.0, "A": [1.0, None]}}, "TypeError"),
        ],
    )
    def test_gavel_files_without_a_pair_are_refused(self, table: object, words: str) -> None:
        """It says what stood there instead."""
        with pytest.raises(BadInput, match=words):
            gavel_pairs(json.dumps({"v100": table}), "v100")

    @pytest.mark.parametrize("ratio", [0.0, -1.0, float("nan"), float("inf")])
    def test_ratios_that_cannot_have_been_are_refused(self, ratio: float) -> None:
        """A pair of zeros was never measured."""
        pairs = [Pair("a", str(number), 0.5) for number in range(5)]
        with pytest.raises(BadInput, match=r"pair 'b' beside 'c': a ratio of .*leave out"):
            fit_interference("odd", [*pairs, Pair("b", "c", ratio)], source="test")

    def test_unknown_profiles_are_refused(self) -> None:
        """With what is known."""
        model = fit_interference("made", [Pair("a", "a", 0.5), Pair("a", "b", 0.5)], source="test", folds=2)
        with pytest.raises(BadInput, match="profile 'z': not among the 2"):
            model.excess("z", "a")


def table() -> list[dict[str, float]]:
    """Forty models whose utilisation follows from two features."""
    rng = np.random.default_rng(1)
    rows = []
    for _ in range(40):
        flops, batch = float(10 ** rng.uniform(8, 12)), float(2 ** rng.integers(0, 8))
        rows.append(
            {"flops": flops, "batch": batch, "utilisation": min(100.0, 8 * np.log10(flops) + 2 * np.log2(batch))}
        )
    return rows


class TestCurve:
    """Slowdown by the use of a shared GPU."""

    USE: Mapping[str, float] = {f"p{percent}": float(percent) for percent in range(10, 100, 10)}

    def pairs(self, a: float, b: float, c: float) -> list[Pair]:
        """Every profile beside every other, each slowed as the curve says."""
        made = CurveModel.model_construct(a=a, b=b, c=c)
        return [Pair(j, k, 1 / made.slowdown((u + v) / 100)) for j, u in self.USE.items() for k, v in self.USE.items()]

    @pytest.mark.parametrize("made", [(1.2, 0.1, 0.05), (0.0, 0.6, 0.7), (2.0, 0.0, 0.0)])
    def test_the_curve_that_made_the_pairs_is_found(self, made: tuple[float, float, float]) -> None:
        """Below full use and above it, and pairs left out of the fit are met."""
        model = fit_curve("t", self.pairs(*made), self.USE, source="made up")
        assert (model.a, model.b, model.c) == pytest.approx(made, abs=1e-9)
        assert model.errors.worst < 1e-9
        assert model.most == 1.8

    def test_a_policy_takes_it(self) -> None:
        """By hand: f = x^2 + x / 3, so f(1) = 1.333333; in whole millionths, and never below 1 at full use."""
        curve = fit_curve("t", self.pairs(1, 1 / 3, 0), self.USE, source="made up").for_policy()
        assert (curve.square_millionths, curve.linear_millionths, curve.constant_millionths) == (1_000_000, 333_333, 0)
        policy = Policy(interference=Interference(model="curve", curve=curve))
        round_ = generate("uniform", jobs=3, nodes=2, gpus=2, seed=0).model_copy(update={"policy": policy})
        assert Instance.model_validate_json(round_.model_dump_json()).policy == policy
        idle = fit_curve(
            "t", [pair._replace(ratio=1.0) for pair in self.pairs(1, 1, 1)], self.USE, source="no slowdown"
        )
        assert idle.slowdown(1) == pytest.approx(1)
        assert idle.for_policy().constant_millionths <= 10**6

    def test_what_cannot_be_fitted_is_refused(self) -> None:
        """Too few pairs, a ratio of nothing, a profile of unknown use."""
        some = self.pairs(1, 1, 1)
        for pairs, use, word in (
            (some[:4], self.USE, "at least 5"),
            ([some[0]._replace(ratio=0.0), *some], self.USE, r"ratio of 0\.0"),
            (some, {}, "utilisation_percent of 'p10'"),
        ):
            with pytest.raises(BadInput, match=word):
                fit_curve("t", pairs, use, source="made up")


class TestRegressor:
    """Utilisation from features."""

    @pytest.mark.parametrize("kind", REGRESSORS)
    def test_left_out_rows_are_predicted(self, kind: str) -> None:
        """Better by far than the mean of all, and as the library itself would."""
        rows = table()
        y = [row["utilisation"] for row in rows]
        model = fit_regressor(kind, rows, "utilisation", source="test")  # type: ignore[arg-type]
        assert model.rmsle < 0.5 * rmsle(np.full(len(y), np.mean(y)), y)
        assert model.predict(rows) == pytest.approx(y, rel=0.3)

    def test_trees_are_those_of_the_library(self) -> None:
        """Copied node by node."""
        ensemble = pytest.importorskip("sklearn.ensemble")
        rows = table()
        x = np.log1p(np.array([[row["flops"], row["batch"]] for row in rows]))
        y = np.array([row["utilisation"] for row in rows])
        model = fit_regressor("boosting", rows, "utilisation", source="test")
        z = (x - x.mean(axis=0)) / x.std(axis=0)
        theirs = ensemble.GradientBoostingRegressor(n_estimators=100, max_depth=3, learning_rate=0.1, random_state=0)
        assert model.predict(rows) == pytest.approx(theirs.fit(z, y).predict(z).clip(y.min(), y.max()), rel=1e-6)

    def test_faults_name_row_and_column(self) -> None:
        """Missing, negative, too few."""
        rows = table()
        with pytest.raises(BadInput, match=r"rows\[39\]: no 'batch'"):
            fit_regressor("linear", [*rows[:-1], {"flops": 1.0, "utilisation": 1.0}], "utilisation", source="test")
        for batch in (-1.0, float("nan"), float("inf")):
            with pytest.raises(BadInput, match=rf"rows\[0\].batch: {batch}"):
                fit_regressor("linear", [{**rows[0], "batch": batch}, *rows[1:]], "utilisation", source="test")
        with pytest.raises(BadInput, match="rows: 2; expected at least 5"):
            fit_regressor("linear", rows[:2], "utilisation", source="test")
        with pytest.raises(BadInput, match="kind: 'magic'"):
            fit_regressor("magic", rows, "utilisation", source="test")  # type: ignore[arg-type]


def test_models_come_back_from_files(tmp_path: Path) -> None:
    """Equal, and of the right kind only."""
    models = [
        fit_rate("made", made(0.6, 0.3), source="test"),
        fit_interference("made", [Pair("a", "a", 0.5), Pair("a", "b", 0.5)], source="test", folds=2),
        fit_regressor("boosting", table(), "utilisation", source="test"),
        fit_curve("made", TestCurve().pairs(1, 1, 1), TestCurve.USE, source="test"),
    ]
    for model, kind in zip(models, (RateModel, InterferenceModel, Regressor, CurveModel), strict=True):
        write_fitted(tmp_path / "model.json", model)
        assert read_fitted(kind, tmp_path / "model.json") == model  # type: ignore[type-var]
    with pytest.raises(BadInput):
        read_fitted(RateModel, tmp_path / "model.json")
