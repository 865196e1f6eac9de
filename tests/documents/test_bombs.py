"""Small files that become large: what is refused, and how much is inflated or built before."""

import gzip
from pathlib import Path

import pytest

from campaigns.bombs import BOMBS, ENDINGS, Bomb, many, packed, readers
from placeopt import BadInput, read_instance
from placeopt.documents import MAX_BYTES, check_bounds, check_lines, read_bytes

MIB = 1 << 20
"""Up to so many bytes a file may be as regular as it likes."""
BEGINNINGS = ("`{", "80,000", "500,000", "entities", "6,000,000", "300,000", "gzip of", "1,000,000 empty o")


@pytest.fixture
def inflated(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the bytes that come out of gzip."""
    counts: list[int] = []

    class Counting(gzip.GzipFile):
        def read(self, size: int | None = -1) -> bytes:
            out = super().read(size)
            counts.append(len(out))
            return out

    monkeypatch.setattr(gzip, "GzipFile", Counting)
    return counts


@pytest.mark.parametrize("bomb", [bomb for bomb in BOMBS if bomb.name.startswith(BEGINNINGS)], ids=lambda one: one.name)
def test_bomb_is_refused(bomb: Bomb, tmp_path: Path, inflated: list[int]) -> None:
    """As BadInput that names the file, and after no more than 100 times the file's size."""
    path = tmp_path / f"bomb{ENDINGS.get(bomb.reader, '.json')}"
    data = bomb.data()
    path.write_bytes(data)
    with pytest.raises(BadInput, match=r"bomb\.|XML refused") as caught:
        readers()[bomb.reader](path)
    assert sum(inflated) <= max(MIB, 100 * len(data)) + 1
    assert len(str(caught.value)) < 3000


def test_ratio_is_for_large_files_only(tmp_path: Path, inflated: list[int]) -> None:
    """1 MiB may be as regular as it likes; one byte more, and the ratio counts."""
    (tmp_path / "f").write_bytes(packed(b" " * MIB))
    assert len(read_bytes(tmp_path / "f")) == MIB
    (tmp_path / "f").write_bytes(packed(b" " * (MIB + 1)))
    inflated.clear()
    with pytest.raises(BadInput, match="unpack it first"):
        read_bytes(tmp_path / "f")
    assert sum(inflated) == MIB + 1


def test_plain_files_have_the_same_bound(tmp_path: Path) -> None:
    """A file of holes is refused by its size, without reading it."""
    with open(tmp_path / "f", "wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(BadInput, match=f"larger than {MAX_BYTES} bytes"):
        read_bytes(tmp_path / "f")


@pytest.mark.parametrize("size", [MIB, MIB - 1, MIB + 1, 3 * MIB])
def test_output_that_waits_inside_zlib_is_not_lost(tmp_path: Path, size: int) -> None:
    """Whatever the file's length, its last bytes arrive: input may be used up before output is."""
    data = b"".join(b"%d " % (i * i) for i in range(size // 8))[:size]
    (tmp_path / "f").write_bytes(gzip.compress(data) + gzip.compress(b"end") + b"\0" * 7)
    assert read_bytes(tmp_path / "f") == data + b"end"


@pytest.mark.parametrize("kind", [bytes, str])
def test_values_are_counted_before_they_are_built(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many pass, one more does not."""
    monkeypatch.setattr("placeopt.documents.files.MAX_VALUES", 12)
    most, more = ('{"jobs":[' + "0," * number + "0]}" for number in (10, 11))
    check_bounds(most if kind is str else most.encode(), "x.json")
    with pytest.raises(BadInput, match=r"x\.json: more than 12 values"):
        check_bounds(more if kind is str else more.encode(), "x.json")


def test_lines_are_counted_before_they_are_split() -> None:
    """Tables of line ends, and of one endless line."""
    check_lines("a\n" * 1000, "x.csv", longest=3)
    with pytest.raises(BadInput, match=r"x\.csv: a line of 3 characters or more"):
        check_lines("a\n" * 1000 + "abc\n", "x.csv", longest=3)
    with pytest.raises(BadInput, match=r"x\.csv: 6,000,000 lines, expected at most 5,000,000"):
        check_lines(b"\n" * 6_000_000, "x.csv")


def test_of_many_wrong_entries_the_first_is_told(tmp_path: Path) -> None:
    (tmp_path / "round.json").write_bytes(many("jobs", b"{}", 90_000)())
    with pytest.raises(BadInput, match=r": jobs\[0\]\.id: is missing$"):
        read_instance(tmp_path / "round.json")
