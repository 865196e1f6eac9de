"""GENIE's model of rates against figures worked out by hand, and against runs that it made."""

import pytest
from profiled_runs import ODD_RUNS, runs_of

from placeopt import BadInput
from placeopt.systems.genie import ProfiledRun, fit_rate


class TestRate:
    """GENIE eq. 5 to 8."""

    def test_by_hand(self) -> None:
        """
        Two nodes of two GPUs: (1 x 2 x 0.6 + 1 x 0.3) / 3 = 0.5 GPUs lost of 4, at 10 + 2 x 8 samples each.

        Outside what was profiled the nearest batch counts. Inference does not communicate: its penalty is not fitted.
        """
        model = fit_rate("made", runs_of(0.6, 0.3), source="test")
        assert model.penalty(2, 2) == pytest.approx(0.5)
        assert model.rate(2, 2, 32) == pytest.approx(3.5 * (10 + 2 * 8 - 0.01 * 64))
        assert model.latency_s(1, 1, 8, 100, 5.0) == pytest.approx(8 * 100 / (10 + 16 - 0.64) + 5)
        assert model.rate(1, 1, 1000) == model.rate(1, 1, 32)
        assert fit_rate("serving", runs_of(0.6, 0.3), source="test", communicates=False).penalty(4, 4) == 0

    @pytest.mark.parametrize(("across", "inside"), [(0.6, 0.3), (0.0, 0.0), (0.5, 0.0), (0.0, 0.4)])
    def test_the_model_that_made_the_runs_is_found(self, across: float, inside: float) -> None:
        model = fit_rate("made", runs_of(across, inside), source="test")
        assert (model.across, model.inside) == (pytest.approx(across, abs=1e-9), pytest.approx(inside, abs=1e-9))
        assert model.errors.worst < 1e-9

    @pytest.mark.parametrize("wrong", ODD_RUNS)
    def test_what_cannot_have_been_is_named(self, wrong: ProfiledRun) -> None:
        with pytest.raises(BadInput, match=r"runs\[1\]: "):
            fit_rate("odd", [ProfiledRun(1, 1, 8, 1.0), wrong], source="test")

    def test_one_gpu_is_what_all_is_built_on(self) -> None:
        with pytest.raises(BadInput, match="none on one GPU"):
            fit_rate("odd", [ProfiledRun(2, 1, 8, 1.0)], source="test")
