"""Predictions against figures worked out by hand, and fits against models that made their data."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from placeopt import BadInput, Instance, Policy, generate, write_document
from placeopt.documents import read_document
from placeopt.model import Interference
from placeopt.predict import (
    CurveModel,
    InterferenceModel,
    Measured,
    Pair,
    fit_curve,
    fit_interference,
    gavel_pairs,
    relative_errors,
)

USE: Mapping[str, float] = {f"p{percent}": float(percent) for percent in range(10, 100, 10)}
TWO_PAIRS = [Pair("a", "a", 0.5), Pair("a", "b", 0.5)]


def pairs_of(a: float, b: float, c: float) -> list[Pair]:
    """Every profile beside every other, each slowed as the curve says."""
    joint = {(j, k): (u + v) / 100 for j, u in USE.items() for k, v in USE.items()}
    return [
        Pair(j, k, 1 / (1 + (a + b + c - 1) * x if x <= 1 else a * x * x + b * x + c)) for (j, k), x in joint.items()
    ]


def gavel(table: object) -> Measured:
    return gavel_pairs(json.dumps({"v100": table}), "v100")


def interference(*pairs: Pair, left_out: Mapping[str, int] | None = None) -> InterferenceModel:
    return fit_interference("made", Measured(pairs, "test", left_out=left_out or {}), folds=2)


def curve(pairs: list[Pair], use: Mapping[str, float] = USE) -> CurveModel:
    return fit_curve("t", Measured(pairs, "made up"), use)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: relative_errors([], []), "expected two equal lists, not empty"),
        (lambda: relative_errors([1], [1, 2]), "expected two equal lists, not empty"),
        (lambda: relative_errors([1], [0]), "a relative error needs measurements above 0"),
        *(
            (
                lambda ratio=ratio: interference(*(Pair("a", str(i), 0.5) for i in range(5)), Pair("b", "c", ratio)),
                r"pair 'b' beside 'c': a ratio of .*leave out",
            )
            for ratio in (0.0, -1.0, float("nan"), float("inf"))
        ),
        (lambda: interference(*TWO_PAIRS[:1]), "pairs: 1 different ones"),
        (lambda: curve(pairs_of(1, 1, 1)[:4]), "at least 5"),
        (lambda: curve([pairs_of(1, 1, 1)[0]._replace(ratio=0.0), *pairs_of(1, 1, 1)]), r"ratio of 0\.0"),
        (lambda: curve(pairs_of(1, 1, 1), {}), "utilisation_percent of 'p10'"),
        (lambda: gavel_pairs('{"v100": {}}', "k80"), "worker type 'k80'"),
        (lambda: gavel({}), "there is none"),
        (lambda: gavel({"('A', 4)": {"null": 1.0, "('A', 4)": [1.0, 1.0]}}), "1 of jobs of several GPUs"),
        (lambda: gavel({"(A": {"null": 1.0, "(A": [1.0, 1.0]}}), "1 with a name that is not a job"),
        (lambda: gavel({"A": {"null": 1.0, "A": [0.0, 0.0]}}), "1 of zeros"),
        (lambda: gavel({"A": {"null": float("nan"), "A": [1.0, 1.0]}}), r"A\.null nan: .*finite number"),
        (lambda: gavel({"A": {"null": -1.0, "A": [1.0, 1.0]}}), r"A\.null -1.0: .*greater than"),
        (lambda: gavel({"A": {"null": 1.0, "A": [1.0]}}), r"A\.A.*rates from 0 on"),
        (lambda: gavel({"A": {"null": 1.0, "A": [1.0, None]}}), r"A\.A.*rates from 0 on"),
        (lambda: gavel({"A": {"null": [1.0, 2.0], "A": [1.0, 1.0]}}), r"A\.null.*rates from 0 on"),
        (lambda: gavel({"A": {"null": 1.0, "A": 1.0}}), r"A\.A.*rates from 0 on"),
        (lambda: gavel([1]), "rates from 0 on"),
    ],
)
def test_what_cannot_be_is_refused(call: Callable[[], object], words: str) -> None:
    """By name, row or column."""
    with pytest.raises(BadInput, match=words):
        call()


def test_errors() -> None:
    """Off by 10, 0 and 50 percent."""
    found = relative_errors([110, 20, 15], [100, 20, 10])
    assert (found.count, found.mean, found.median, found.worst) == (3, pytest.approx(0.2), pytest.approx(0.1), 0.5)


class TestInterference:
    """Pairs on one GPU."""

    def test_an_additive_model_is_found_and_fills_in(self) -> None:
        """Three types, one pair never measured."""
        feels, presses = {"a": 0.2, "b": 0.5, "c": 0.1}, {"a": 0.3, "b": 0.0, "c": 0.4}
        every = [Pair(j, k, float(np.exp(-feels[j] - presses[k]))) for j in "abc" for k in "abc"]
        known = [pair for pair in every if (pair.profile, pair.beside) != ("b", "c")]
        model = fit_interference("made", Measured(known, "test"), folds=4)
        found = {(one.profile, one.beside): one.gpu_thousandths for one in model.slowdowns}
        assert found["b", "c"] == round(1000 * (np.exp(0.9) - 1))

    def test_slowdowns_of_an_instance(self) -> None:
        """Measured as it was, speed-ups as nothing."""
        pairs = [Pair("a", "a", 0.5), Pair("a", "b", 1.2), Pair("b", "a", 0.8), Pair("b", "b", 1.0)]
        found = interference(*pairs).slowdowns
        assert [(s.profile, s.beside, s.gpu_thousandths) for s in found] == [("a", "a", 1000), ("b", "a", 250)]

    def test_gavel_pairs_without_zeros(self) -> None:
        """Both directions of a pair; zeros, and jobs of several GPUs, left out, counted by reason."""
        one, two, four = "('A', 1)", "('B', 1)", "('A', 4)"
        first = {"null": 10.0, two: [5.0, 4.0], four: [1.0, 1.0]}
        found = gavel({one: first, two: {"null": 8.0, one: [0.0, 0.0]}, four: {"null": 20.0}})
        assert found.pairs == [Pair(one, two, 0.5), Pair(two, one, 0.5)]
        assert found.left_out == {"of jobs of several GPUs": 1, "of zeros: not runnable together, or never measured": 1}

    def test_gavel_pairs_without_a_number_of_gpus(self) -> None:
        """
        Names that lack ", 1)" once gave no pair, and none was counted.

        A plain name, as in Gavel's first files, is of a job of one GPU; the rest is counted by reason.
        """
        odd = {"('A', x)": [1.0, 1.0], "('A', 2)": [1.0, 1.0]}
        first = {"null": 10.0, "B": [5.0, 4.0], "C": [5.0, 1.0], **odd}
        found = gavel({"A": first, "B": {"null": 8.0, "A": [4.0, 5.0]}, "C": {"A": [1.0, 5.0]}})
        assert set(found.pairs) == {Pair("A", "B", 0.5), Pair("B", "A", 0.5)}
        counts = {"of a job without a rate alone": 2, "with a name that is not a job": 1, "of jobs of several GPUs": 1}
        assert found.left_out == counts
        five = [*found.pairs, Pair("A", "A", 0.4), Pair("B", "B", 0.7), Pair("A", "C", 0.7), Pair("C", "C", 0.7)]
        provenance = interference(*five, left_out=found.left_out).provenance
        assert provenance.left_out == 4
        assert provenance.why_left_out.startswith("pairs: 2 of a job")


class TestCurve:
    """Slowdown by the use of a shared GPU."""

    @pytest.mark.parametrize("made", [(1.2, 0.1, 0.05), (0.0, 0.6, 0.7), (2.0, 0.0, 0.0)])
    def test_the_curve_that_made_the_pairs_is_found(self, made: tuple[float, float, float]) -> None:
        """Below full use and above it, and pairs left out of the fit are met."""
        model = curve(pairs_of(*made))
        stated = model.curve
        found = (stated.square_millionths, stated.linear_millionths, stated.constant_millionths)
        assert found == tuple(round(1e6 * coefficient) for coefficient in made)
        assert model.errors.worst < 1e-9
        assert model.most == 1.8

    def test_a_policy_takes_it(self) -> None:
        """By hand: f = x^2 + x / 3, so f(1) = 1.333333; in whole millionths, and never below 1 at full use."""
        stated = curve(pairs_of(1, 1 / 3, 0)).curve
        millionths = (stated.square_millionths, stated.linear_millionths, stated.constant_millionths)
        assert millionths == (1_000_000, 333_333, 0)
        policy = Policy(interference=Interference(model="curve", curve=stated))
        round_ = generate("uniform", jobs=3, nodes=2, gpus=2, seed=0).model_copy(update={"policy": policy})
        assert Instance.model_validate_json(round_.model_dump_json()).policy == policy
        idle = curve([pair._replace(ratio=1.0) for pair in pairs_of(1, 1, 1)])
        millionths = idle.curve.model_dump()
        assert sum(millionths.values()) == 10**6


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: interference(*TWO_PAIRS), InterferenceModel),
        (lambda: curve(pairs_of(1, 1, 1)), CurveModel),
    ],
)
def test_models_come_back_from_files(tmp_path: Path, make: Callable[[], Any], kind: Any) -> None:
    """Equal, and of the right kind only."""
    model = make()
    write_document(tmp_path / "model.json", model)
    assert read_document(kind, tmp_path / "model.json") == model
    with pytest.raises(BadInput):
        read_document(CurveModel if kind is InterferenceModel else InterferenceModel, tmp_path / "model.json")
