"""Predictors of the papers against figures worked out by hand, and fits against models that made their data."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from profiled_runs import ODD_RUNS, runs_of

from placeopt import BadInput, write_document
from placeopt.documents import read_document
from placeopt.systems.genie import ProfiledRun, RateModel, fit_rate, fit_step, lightweight, sia_runs
from placeopt.systems.horus import REGRESSORS, Regressor, fit_regressor, gpu_memory_mib, rmsle

MI = 2**20
SIA = "placement,local_bsz,step_time,sync_time\n"


def table(**first: float) -> list[dict[str, float]]:
    """Forty models whose utilisation follows from two features; ``first``: other values in the first row."""
    rng = np.random.default_rng(1)
    rows = []
    for _ in range(40):
        flops, batch = float(10 ** rng.uniform(8, 12)), float(2 ** rng.integers(0, 8))
        utilisation = min(100.0, 8 * np.log10(flops) + 2 * np.log2(batch))
        rows.append({"flops": flops, "batch": batch, "utilisation": utilisation})
    return [{**rows[0], **first}, *rows[1:]]


def fitted(rows: list[dict[str, float]], kind: str = "linear") -> Regressor:
    return fit_regressor(kind, rows, "utilisation", source="test")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: gpu_memory_mib(batch=1, activations=1, parameters=1, gradients=-1), "gradients: -1"),
        (lambda: fit_step("none", [], source="test"), "none; expected at least one"),
        *(
            (lambda row=row: sia_runs(f"{SIA}{row}\n"), r"line 2: .*numbers above 0")
            for row in ("1,4,0,0.1", "1,0,0.5,0.1", "1,inf,0.5,0.1", "1,4,nan,0.1", "1,4")
        ),
        *(
            (lambda other=other: sia_runs(other), r"profile: no column .*local_bsz")
            for other in ("placement,step_time\n1,0.5\n", "", "no profile at all")
        ),
        (lambda: sia_runs("placement,local_bsz,step_time\n1,32\rx,0.1\n"), "line 1: no CSV"),
        (lambda: fitted([*table()[:-1], {"flops": 1.0, "utilisation": 1.0}]), r"rows\[39\]: no 'batch'"),
        (lambda: fitted(table(batch=-1.0)), r"rows\[0\].batch: -1.0"),
        (lambda: fitted(table(batch=float("nan"))), r"rows\[0\].batch: nan"),
        (lambda: fitted(table(batch=float("inf"))), r"rows\[0\].batch: inf"),
        (lambda: fitted(table()[:2]), "rows: 2; expected at least 5"),
        (lambda: fitted(table(), "magic"), "kind: 'magic'"),
        *(
            (
                lambda wrong=wrong: fit_step("odd", [ProfiledRun(1, 1, 8, 1.0), wrong], source="test"),
                r"runs\[1\].*leave out what was not measured",
            )
            for wrong in ODD_RUNS
        ),
    ],
)
def test_what_cannot_be_is_refused(call: Callable[[], object], words: str) -> None:
    """By name, row or column."""
    with pytest.raises(BadInput, match=words):
        call()


def test_logarithmic_errors() -> None:
    """Log 4 - log 2 = log 2, and 0."""
    assert rmsle([3, 0], [1, 0]) == pytest.approx(np.log(2) / np.sqrt(2))
    assert rmsle([-5], [0]) == 0


def test_memory() -> None:
    """Horus eq. 2: (2 x 1 Mi + 3 Mi + 2 x 1 Mi) x 4 bytes = 28 MiB, and 100 to begin with."""
    assert gpu_memory_mib(batch=2, activations=MI, parameters=3 * MI, gradients=MI, startup_mib=100) == 128
    assert gpu_memory_mib(batch=1, activations=0, parameters=1, gradients=0) == 1


@pytest.mark.parametrize(("across", "inside"), [(0.6, 0.3), (0.0, 0.0), (0.5, 0.0), (0.0, 0.4)])
def test_few_runs_find_the_model_that_made_them(across: float, inside: float) -> None:
    model = fit_rate("made", lightweight(runs_of(across, inside)), source="test")
    assert (model.across, model.inside) == (pytest.approx(across, abs=1e-9), pytest.approx(inside, abs=1e-9))
    assert model.errors.worst < 1e-9


def test_few_runs_are_few() -> None:
    """B + N + G of them: four batches alone, and shapes at one global batch."""
    few = lightweight(runs_of(0.6, 0.3))
    assert {run.batch for run in few if run.nodes * run.gpus > 1} == {64}
    assert sum(run.nodes * run.gpus == 1 for run in few) == 4


def test_sia_profiles_are_read() -> None:
    """A digit is a node; uneven rows are counted and left out."""
    found = sia_runs(f"{SIA}1,4,0.5,0.1\n44,8,0.8,0.2\n31,8,0.8,0.2\n")
    assert found == ([ProfiledRun(1, 1, 4, 8.0), ProfiledRun(2, 4, 64, 80.0)], 1)


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


class TestRegressor:
    """Utilisation from features."""

    @pytest.mark.parametrize("kind", REGRESSORS)
    def test_left_out_rows_are_predicted(self, kind: str) -> None:
        """Better by far than the mean of all, and as the library itself would."""
        rows = table()
        y = [row["utilisation"] for row in rows]
        model = fitted(rows, kind)
        assert model.rmsle < 0.5 * rmsle(np.full(len(y), np.mean(y)), y)
        assert model.predict(rows) == pytest.approx(y, rel=0.3)

    def test_trees_are_those_of_the_library(self) -> None:
        """Copied node by node."""
        ensemble = pytest.importorskip("sklearn.ensemble")
        rows = table()
        x = np.log1p(np.array([[row["flops"], row["batch"]] for row in rows]))
        y = np.array([row["utilisation"] for row in rows])
        z = (x - x.mean(axis=0)) / x.std(axis=0)
        theirs = ensemble.GradientBoostingRegressor(n_estimators=100, max_depth=3, learning_rate=0.1, random_state=0)
        expected = theirs.fit(z, y).predict(z).clip(y.min(), y.max())
        assert fitted(rows, "boosting").predict(rows) == pytest.approx(expected, rel=1e-6)


def test_a_regressor_comes_back_from_its_file(tmp_path: Path) -> None:
    """Equal, and of the right kind only."""
    model = fitted(table(), "boosting")
    write_document(tmp_path / "model.json", model)
    assert read_document(Regressor, tmp_path / "model.json") == model
    with pytest.raises(BadInput):
        read_document(RateModel, tmp_path / "model.json")
