"""The search for the fewest cores at the highest speed."""

import pytest

from placeopt import BadInput
from placeopt.systems.soda import best_fit_cores, first_cores


class TestCores:
    """SODA V-B."""

    def test_where_the_search_begins(self) -> None:
        """By category, by history, by what else is told; never below one."""
        assert [first_cores(c) for c in ("vision", "language", "speech")] == [3, 5, 5]
        assert first_cores("vision", largest_before=8, heavy_preprocessing=True) == 9
        assert first_cores(largest_before=2, pipelined=True, many_weights=True) == 1

    @pytest.mark.parametrize("start", range(1, 11))
    @pytest.mark.parametrize("best", [1, 3, 6, 10])
    def test_the_fewest_cores_at_the_highest_speed(self, start: int, best: int) -> None:
        """Speed grows up to the best number and stays; from any start. Above its best, a job may slow down slightly."""
        found, measured = best_fit_cores(lambda cores: min(cores, best), start, most=10)
        assert found == best
        assert measured <= abs(start - best) + 3
        assert best_fit_cores(lambda cores: -abs(cores - 4), 6, most=8) == (4, 4)


def test_what_cannot_begin_is_refused() -> None:
    with pytest.raises(BadInput, match="category: None; expected one of vision"):
        first_cores()
    with pytest.raises(BadInput, match="start: 9; expected 1 to 8"):
        best_fit_cores(lambda _: 1.0, 9, most=8)
