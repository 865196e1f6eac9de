"""Maximal GPU patterns against enumeration of all multisets."""

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from placeopt.formulations.gpu_patterns import maximal_gpu_patterns


@given(
    unit=st.sampled_from((1, 10, 125)),
    parts=st.sets(st.integers(1, 9), min_size=1, max_size=4),
    share=st.integers(0, 12),
    odd=st.integers(0, 9),
    most=st.integers(0, 60),
)
def test_maximal_patterns_are_those_of_enumeration(unit: int, parts: set[int], share: int, odd: int, most: int) -> None:
    """The same multisets, those with more of the large sizes first; None exactly where they are too many."""
    sizes, room = np.array(sorted((unit * part for part in parts), reverse=True)), unit * share + odd % unit
    choices = product(*(range(room // size, -1, -1) for size in sizes.tolist()))
    left = ((slots, room - int(np.dot(slots, sizes))) for slots in choices)
    expected = [slots for slots, rest in left if 0 <= rest < sizes[-1]]
    found = maximal_gpu_patterns(room, sizes, most)
    if len(expected) > most:
        assert found is None
    else:
        assert found is not None
        assert found.dtype == np.int64
        assert [tuple(slots) for slots in found.tolist()] == expected


def test_far_too_many_patterns_are_not_made() -> None:
    """More than 10^30 multisets: they are counted, not listed, and counts do not overflow."""
    assert maximal_gpu_patterns(1000, np.arange(500, 0, -1), 20_000) is None
