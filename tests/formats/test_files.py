"""Bytes in and out: bounded when read, all or nothing when written."""

import errno
import gzip
import io
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from placeopt import BadInput
from placeopt.formats import read_bytes, write_bytes


def test_plain_and_gzip_round_trip(tmp_path: Path) -> None:
    """What is written is read back, and gzip is known by content, not by name."""
    for name in ("a.json", "a.json.gz"):
        write_bytes(tmp_path / name, b"hello")
        assert read_bytes(tmp_path / name) == b"hello"
    (tmp_path / "misnamed.json").write_bytes((tmp_path / "a.json.gz").read_bytes())
    assert read_bytes(tmp_path / "misnamed.json") == b"hello"


def test_gzip_files_are_deterministic(tmp_path: Path) -> None:
    """No time and no name inside: equal plans are equal files, today and tomorrow."""
    write_bytes(tmp_path / "a.gz", b"x" * 1000)
    write_bytes(tmp_path / "b.gz", b"x" * 1000)
    packed = (tmp_path / "a.gz").read_bytes()
    assert packed == (tmp_path / "b.gz").read_bytes()
    assert packed[3] == 0, "flags: no name"
    assert packed[4:8] == b"\0\0\0\0", "time"


def test_several_gzip_members_are_one_file(tmp_path: Path) -> None:
    """`cat a.gz b.gz` is a gzip file too."""
    (tmp_path / "ab.gz").write_bytes(gzip.compress(b"a") + gzip.compress(b"b"))
    assert read_bytes(tmp_path / "ab.gz") == b"ab"


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_size_is_bounded(tmp_path: Path, pack: Any) -> None:
    """At the limit is read, one byte above is refused with the limit."""
    (tmp_path / "f").write_bytes(pack(b"a" * 1000))
    assert len(read_bytes(tmp_path / "f", max_bytes=1000)) == 1000
    with pytest.raises(BadInput, match="larger than 999 bytes"):
        read_bytes(tmp_path / "f", max_bytes=999)


def test_gzip_bomb_is_not_unpacked(tmp_path: Path) -> None:
    """1 GiB in 1 MiB: refused at the bound, so in no time and without the memory."""
    member = gzip.compress(b"\0" * (1 << 24))
    (tmp_path / "bomb.gz").write_bytes(member * 64)
    with pytest.raises(BadInput, match="larger than"):
        read_bytes(tmp_path / "bomb.gz", max_bytes=1 << 24)


@pytest.mark.parametrize("cut", [3, 12, -5, -1])
def test_damaged_gzip(tmp_path: Path, cut: int) -> None:
    """Cut off anywhere is told as such."""
    (tmp_path / "f.gz").write_bytes(gzip.compress(os.urandom(1000))[:cut])
    with pytest.raises(BadInput, match=r"f\.gz: damaged gzip file"):
        read_bytes(tmp_path / "f.gz")


def test_gzip_with_a_flipped_bit_or_a_tail(tmp_path: Path) -> None:
    """The check sum is checked; what follows the end must be gzip too."""
    packed = bytearray(gzip.compress(b"a" * 1000))
    packed[-6] ^= 1
    (tmp_path / "f.gz").write_bytes(packed)
    with pytest.raises(BadInput, match="damaged"):
        read_bytes(tmp_path / "f.gz")
    (tmp_path / "f.gz").write_bytes(gzip.compress(b"a") + b"tail")
    with pytest.raises(BadInput, match="damaged"):
        read_bytes(tmp_path / "f.gz")


@pytest.mark.parametrize("name", ["missing.json", ".", "no/such/folder.json", "nul\0byte"])
def test_unreadable(tmp_path: Path, name: str) -> None:
    """Missing files, folders and impossible names are bad input, not a traceback."""
    with pytest.raises(BadInput, match=r"cannot be read|no file name"):
        read_bytes(str(tmp_path / name))


@pytest.mark.parametrize("name", [".", "no/such/folder.json", "nul\0byte"])
def test_unwritable(tmp_path: Path, name: str) -> None:
    """The same when written; nothing is left behind."""
    with pytest.raises(BadInput, match=r"cannot be written|no file name"):
        write_bytes(str(tmp_path / name), b"x")
    assert list(tmp_path.iterdir()) == []


def test_standard_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """``-`` is standard input and output, and gzip is unpacked there too."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(b"in"))))
    assert read_bytes("-") == b"in"
    out = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", out)
    write_bytes("-", b"out")
    assert out.buffer.getvalue() == b"out"  # type: ignore[attr-defined]


@pytest.mark.parametrize("failing", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_failure_leaves_the_target_untouched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str, error: BaseException
) -> None:
    """A full disk or Ctrl-C at the worst moment: the old file stays, no temporary file does."""
    target = tmp_path / "plan.json"
    target.write_bytes(b"old")

    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr(os, failing, fail)
    with pytest.raises((BadInput, KeyboardInterrupt)):
        write_bytes(target, b"new")
    monkeypatch.undo()
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]


def test_permissions_of_the_target_are_kept(tmp_path: Path) -> None:
    """A private plan stays private; a new file gets what the umask says."""
    private = tmp_path / "private"
    private.write_bytes(b"old")
    private.chmod(0o600)
    write_bytes(private, b"new")
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    old = os.umask(0o027)
    try:
        write_bytes(tmp_path / "fresh", b"new")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "fresh").stat().st_mode) == 0o640


def test_links_are_followed(tmp_path: Path) -> None:
    """``latest.json -> plan-7.json`` stays a link."""
    (tmp_path / "plan-7.json").write_bytes(b"old")
    (tmp_path / "latest.json").symlink_to("plan-7.json")
    write_bytes(tmp_path / "latest.json", b"new")
    assert (tmp_path / "latest.json").is_symlink()
    assert (tmp_path / "plan-7.json").read_bytes() == b"new"


def test_devices_are_written_directly() -> None:
    """``--out /dev/null`` must not replace the device."""
    write_bytes("/dev/null", b"x")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
