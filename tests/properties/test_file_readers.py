"""A file with something changed is read, or refused in words that can be printed; nothing else, and soon."""

from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.cpu_limit import cpu_limit
from helpers.mutated_files import Format, formats, mutated
from placeopt import PlaceoptError

SECONDS = 5.0
"""Of CPU time, for one file."""


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Format]]:
    """Return a folder, and all formats with the files that are made there."""
    folder = tmp_path_factory.mktemp("files")
    return folder, formats(folder)


def test_every_format_is_among_them(known: tuple[Path, list[Format]]) -> None:
    """Names are unique."""
    assert len({one.name for one in known[1]}) == len(known[1]) >= 22


@settings(max_examples=settings().max_examples * 12)
@given(draw=st.randoms(use_true_random=False))
def test_no_reader_raises_anything_else(known: tuple[Path, list[Format]], draw: Random) -> None:
    """Bytes flipped, cut, doubled or put in; values replaced, keys renamed or doubled; now and then packed."""
    folder, all_formats = known
    one = draw.choice(all_formats)
    source = draw.choice(one.files)
    path = folder / f"changed{source.suffix}"
    path.write_bytes(mutated(source.read_bytes(), source.suffix == ".json", draw))
    try:
        with cpu_limit(SECONDS):
            one.read(path)
    except PlaceoptError as error:
        message = str(error)
        assert len(message) < 10_000, one.name
        assert message.replace("\n", "").isprintable(), one.name
