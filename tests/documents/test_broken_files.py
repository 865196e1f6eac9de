"""Every broken instance file ends in one kind of error that names the field; the whole campaign takes two seconds."""

from pathlib import Path

import pytest

from helpers.broken_files import FAULTS, GOLDEN, Fault
from placeopt import BadInput, read_instance


def test_there_are_many_of_one_valid_file_and_all_differ() -> None:
    """A campaign that lost its faults must not pass in silence, nor one whose files are refused for another reason."""
    assert len(FAULTS) == len({fault.name for fault in FAULTS}) >= 490
    assert len({fault.data for fault in FAULTS}) >= len(FAULTS) - 5
    read_instance(GOLDEN)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_broken_file_is_refused(fault: Fault, tmp_path: Path) -> None:
    """BadInput, naming file and field; no other exception."""
    path = tmp_path / "round.json"
    path.write_bytes(fault.data)
    with pytest.raises(BadInput) as caught:
        read_instance(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert len(message) < 6000
    told = [line.strip() for line in message.removeprefix(f"{path}: ").splitlines()]
    assert any(names_field(line, fault.expected_field) for line in told), message[:500]


def names_field(line: str, field: str) -> bool:
    """Tell whether a line of a message is about ``field``: a path, ``line``, or a word where there is no path."""
    if field in ("UTF-8", "gzip", "nested", ""):
        return field in line
    return line.startswith((f"{field}:", f"{field} ")) or (field.startswith("line") and line.startswith(field))
