"""Every broken instance file ends in one kind of error that names the field; the whole campaign takes two seconds."""

from pathlib import Path

import pytest

from helpers.broken_files import FAULTS, GOLDEN, Fault, judge
from placeopt import read_instance


def test_there_are_many_and_all_differ() -> None:
    """A campaign that lost its faults must not pass in silence."""
    assert len(FAULTS) >= 400
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    assert len({fault.data for fault in FAULTS}) >= len(FAULTS) - 5


def test_the_file_they_are_made_from_is_valid() -> None:
    """Otherwise each of them would be refused for the wrong reason."""
    read_instance(GOLDEN)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_broken_file_is_refused(fault: Fault, tmp_path: Path) -> None:
    """BadInput, naming file and field; no other exception."""
    judge(fault, tmp_path)
