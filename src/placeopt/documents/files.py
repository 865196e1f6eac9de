"""
Bytes in and out: plain and gzip files and the standard streams, bounded when read, all or nothing when written.

Limits on the size of a text are checked before a parser allocates memory for it: some 70 bytes for each ``{},``.
"""

import contextlib
import gzip
import io
import json
import os
import re
import secrets
import stat
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from placeopt.errors import BadInput

MAX_BYTES = 1 << 30
"""Most that is read from one file, before and after decompression."""
MAX_RATIO = 100
"""Most that a gzip file may grow beyond 1 MiB; rounds grow 13 to 15 times, blanks 1,000 times."""
MAX_MEMBERS = 100_000
"""Most gzip files that may stand one after another in one; tools that compress in blocks of 64 KiB write 16,000."""
MAX_VALUES = 60_000_000
"""Commas and opening brackets of one document; a round of 2,000,000 jobs has 12,000,000 to 55,000,000."""
MAX_LINES = 5_000_000
"""Lines of a text that is read line by line."""
MAX_LINE = 1 << 20
"""Characters of one line of a table."""
STANDARD_STREAM = "-"
GZIP_MAGIC = b"\x1f\x8b"
NUMBER = re.compile("[0-9]{1,15}")


def read_bytes(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> bytes:
    """
    Read a whole file, decompressed if it is gzip.

    ``path``: A file, or ``-`` for the standard input. Gzip is recognised by the first bytes, not by the name.
    ``max_bytes``: Bound on the bytes returned. Nothing beyond is decompressed, so a gzip bomb costs no more than this.
    """
    name = file_name(path)
    try:
        if name == STANDARD_STREAM:
            return _read_stream(sys.stdin.buffer, label(name), max_bytes)
        with open(name, "rb") as stream:
            return _read_stream(stream, name, max_bytes)
    except OSError as error:
        raise BadInput(f"{label(name)}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # a NUL byte in the name
        raise BadInput(f"{name!r}: no file name: {error}") from None


def as_text(data: bytes, source: str, expected: str) -> str:
    """Return bytes as UTF-8, with or without byte order mark; ``expected``: what it should be, for messages."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\x00" in data[:4]:
        raise BadInput(f"{source}: not UTF-8 but UTF-16 or UTF-32, or no text at all; expected {expected}, as UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        byte = f"{data[error.start]:#04x} at offset {error.start}"
        raise BadInput(f"{source}: not UTF-8: byte {byte}; expected {expected}, as UTF-8") from None


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """
    Write a whole file or none: on any failure, or when interrupted, the target is as it was before.

    A temporary file beside the target is written, synced and renamed over it. An existing target keeps its permissions;
    a link is followed. Standard output (``-``), pipes, and devices such as ``/dev/null`` are written directly. A name
    that ends in ``.gz`` is compressed, the same bytes to the same file every time. Raises `BadInput` if the target
    cannot be written: no such folder, no permission, no space.
    """
    name = file_name(path)
    try:
        if name == STANDARD_STREAM:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
            return
        if name.endswith(".gz"):
            data = compress(data)
        _write_file(name, data)
    except OSError as error:
        raise BadInput(f"{label(name)}: cannot be written: {error.strerror or error}") from None
    except ValueError as error:
        raise BadInput(f"{name!r}: no file name: {error}") from None


def compress(data: bytes) -> bytes:
    """Compress as gzip without name and time, so that equal content gives equal files."""
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, compresslevel=6, mtime=0) as stream:
        stream.write(data)
    return packed.getvalue()


def file_name(path: object) -> str:
    """Return a path as text; raises `BadInput` if it is neither text nor a path."""
    if not isinstance(path, str | os.PathLike) or not isinstance(name := os.fspath(path), str):
        raise BadInput(f"path: {type(path).__name__}, expected the name of a file, or '-'")
    return name


def label(name: str) -> str:
    """Name a file for a message."""
    return "standard stream '-'" if name == STANDARD_STREAM else name


def _read_stream(stream: BinaryIO, name: str, max_bytes: int) -> bytes:
    size = 0
    with contextlib.suppress(OSError):  # what has no descriptor, as in tests
        size = os.fstat(stream.fileno()).st_size
    data = b"" if size > max_bytes else stream.read(max_bytes + 1)
    if max(size, len(data)) > max_bytes:
        raise _too_large(name, max_bytes)
    if not data.startswith(GZIP_MAGIC):
        return data
    if data.count(GZIP_MAGIC + b"\x08") > MAX_MEMBERS:
        raise BadInput(f"{name}: more than {MAX_MEMBERS:,} gzip files in one; unpack it first")
    most = min(max_bytes, max(1 << 20, MAX_RATIO * len(data)))
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
            inflated = packed.read(most + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise BadInput(f"{name}: damaged gzip file: {error}") from None
    if len(inflated) > max_bytes:
        raise _too_large(name, max_bytes)
    if len(inflated) > most:
        raise BadInput(f"{name}: {len(data):,} bytes of gzip become more than {most:,}; unpack it first")
    if inflated.startswith(GZIP_MAGIC):
        raise BadInput(f"{name}: a gzip file inside a gzip file; unpack it once")
    return inflated


def _too_large(name: str, max_bytes: int) -> BadInput:
    return BadInput(f"{name}: larger than {max_bytes} bytes; split it, or raise the limit")


def make_folder(path: str | os.PathLike[str]) -> Path:
    """Return the folder, made with all above it where it is not there."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise BadInput(f"{path}: is a file, expected a folder") from None
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: cannot be made: {getattr(error, 'strerror', None) or error}") from None
    return folder


def _write_file(name: str, data: bytes) -> None:
    target, mode = Path(os.path.realpath(name)), None
    if os.path.exists(name):
        mode = os.stat(name).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(None, "is a folder")
        if not stat.S_ISREG(mode):
            with open(name, "wb") as device:  # the real path of /dev/stdout to a pipe is none: /proc/1/fd/pipe:[7]
                device.write(data)
            return
        if not os.access(target, os.W_OK):  # a rename would replace even a read-only file
            raise PermissionError(None, "permission denied")
    temporary = target.with_name(f".{target.name[:200]}.{secrets.token_hex(6)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o666)
    try:
        with open(descriptor, "wb") as stream:
            if mode is not None:
                os.fchmod(descriptor, stat.S_IMODE(mode))
            stream.write(data)
            stream.flush()
            os.fsync(descriptor)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable; file systems that cannot sync a folder do without."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def check_bounds(document: bytes | str, source: str) -> None:
    """Refuse a document of more than ``MAX_VALUES`` values: by its signs, those inside of texts counted with them."""
    signs: tuple[Any, ...] = (",", "[", "{") if isinstance(document, str) else (b",", b"[", b"{")
    values = sum(map(document.count, signs))
    if values > MAX_VALUES:
        raise BadInput(f"{source}: more than {MAX_VALUES:,} values; no document of placeopt is so large")


def check_lines(text: bytes | str, source: str, *, longest: int | None = None) -> None:
    """Refuse a text of more than ``MAX_LINES`` lines, or of one with ``longest`` characters or more."""
    end: Any = "\n" if isinstance(text, str) else b"\n"
    lines = text.count(end)
    if lines > MAX_LINES:
        raise BadInput(f"{source}: {lines:,} lines, expected at most {MAX_LINES:,}")
    begin = 0
    while longest is not None and len(text) - begin > longest:
        begin = text.rfind(end, begin, begin + longest) + 1
        if not begin:
            raise BadInput(f"{source}: a line of {longest:,} characters or more, expected shorter ones")


def integers(words: Sequence[object], where: str) -> list[int]:
    """Return words as integers, or raise `BadInput` with the first that is none, and ``where`` it stands."""
    for position, word in enumerate(words, 1):
        if not NUMBER.fullmatch(str(word)):
            raise BadInput(f"{where}: word {position} is {str(word)[:32]!r}, expected whole numbers from 0 to 10^15")
    return [int(str(word)) for word in words]


def parse_json(document: bytes | str, source: str) -> Any:
    """Return the value of a JSON text."""
    check_bounds(document, source)
    try:
        return json.loads(document)
    except (ValueError, RecursionError) as error:
        line = f", line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise BadInput(f"{source}{line}: not JSON ({str(error)[:80]}); is the file complete?") from None
