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
from placeopt.documents import read_bytes, write_bytes

PACKED = gzip.compress(bytes(range(256)) * 4)


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_plain_and_gzip_round_trip(tmp_path: Path, name: str) -> None:
    """What is written is read back, and gzip is known by content, not by name."""
    write_bytes(tmp_path / name, b"hello")
    assert read_bytes(tmp_path / name) == b"hello"
    (tmp_path / name).rename(tmp_path / "misnamed.json")
    assert read_bytes(tmp_path / "misnamed.json") == b"hello"


def test_gzip_files_are_deterministic(tmp_path: Path) -> None:
    """No time and no name inside: equal plans are equal files, today and tomorrow."""
    for name in ("a.gz", "b.gz"):
        write_bytes(tmp_path / name, b"x" * 1000)
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
    """At the limit is read, one byte above is refused with the limit; of 1 GiB in 1 MiB no more is unpacked."""
    (tmp_path / "f").write_bytes(pack(b"a" * 1000))
    assert len(read_bytes(tmp_path / "f", max_bytes=1000)) == 1000
    with pytest.raises(BadInput, match="larger than 999 bytes"):
        read_bytes(tmp_path / "f", max_bytes=999)
    (tmp_path / "bomb").write_bytes(gzip.compress(b"\0" * (1 << 24)) * 64)
    with pytest.raises(BadInput, match="larger than"):
        read_bytes(tmp_path / "bomb", max_bytes=1 << 24)


@pytest.mark.parametrize(
    "data",
    [
        *(PACKED[:cut] for cut in (3, 12, -5, -1)),
        PACKED[:-6] + bytes([PACKED[-6] ^ 1]) + PACKED[-5:],  # the check sum is checked
        gzip.compress(b"a") + b"tail",
    ],
    ids=["3", "12", "-5", "-1", "flipped", "tail"],
)
def test_damaged_gzip(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "f.gz").write_bytes(data)
    with pytest.raises(BadInput, match=r"f\.gz: damaged gzip file"):
        read_bytes(tmp_path / "f.gz")


@pytest.mark.parametrize("name", [".", "no/such/folder.json", "nul\0byte"])
def test_names_of_no_file(tmp_path: Path, name: str) -> None:
    """Missing files, folders and impossible names are bad input, not a traceback; nothing is left behind."""
    with pytest.raises(BadInput, match=r"cannot be read|no file name"):
        read_bytes(str(tmp_path / name))
    with pytest.raises(BadInput, match=r"cannot be written|no file name"):
        write_bytes(str(tmp_path / name), b"x")
    assert list(tmp_path.iterdir()) == []


def test_standard_streams_and_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """``-`` is standard input and output, and gzip is unpacked there too; ``/dev/null`` is not replaced."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(b"in"))))
    assert read_bytes("-") == b"in"
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out))
    write_bytes("-", b"out")
    assert out.getvalue() == b"out"
    write_bytes("/dev/null", b"x")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


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


def test_permissions_and_links_of_the_target_are_kept(tmp_path: Path) -> None:
    """A private plan stays private, ``latest.json -> plan-7.json`` a link; a new file gets what the umask says."""
    private, latest, fresh = tmp_path / "plan-7.json", tmp_path / "latest.json", tmp_path / "fresh"
    private.write_bytes(b"old")
    private.chmod(0o600)
    latest.symlink_to(private.name)
    write_bytes(latest, b"new")
    assert latest.is_symlink()
    assert (private.read_bytes(), stat.S_IMODE(private.stat().st_mode)) == (b"new", 0o600)
    old = os.umask(0o027)
    try:
        write_bytes(fresh, b"new")
    finally:
        os.umask(old)
    assert stat.S_IMODE(fresh.stat().st_mode) == 0o640


def test_pipes_are_written_directly() -> None:
    """``/dev/stdout`` to a pipe and ``>(gzip)`` have no real path, and were refused."""
    read, write = os.pipe()
    write_bytes(f"/dev/fd/{write}", b"x")
    assert os.read(read, 2) == b"x"
    os.close(read)
    os.close(write)
