"""Exit codes, standard output and standard error: the only place that writes to them and handles their failures."""

from __future__ import annotations

import io
import os
import re
import shutil
import sys
from enum import IntEnum
from typing import TYPE_CHECKING, TextIO

from placeopt.errors import BadInput, printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


class ExitCode(IntEnum):
    """Exit code of the process. Fixed: scripts rely on the numbers."""

    DONE = 0
    """Done as asked."""
    NO = 1
    """The answer is no: violations found, or something is wrong with the installation."""
    USAGE = 2
    """
    The command line: unknown option, missing argument, value out of range, a name that is not known: of a method,
    policy, solver, set, level, GPU model, machine type, domain, queue.
    """
    BAD_INPUT = 3
    """A file: missing, malformed, out of range, a reference to nothing, not writable; a job that it does not have."""
    NOTHING_PLACED = 4
    """Jobs were waiting and none of them was placed."""
    INTERNAL = 5
    """A fault of placeopt itself."""
    INTERRUPTED = 130
    """Ctrl-C; the best plan was written."""
    TERMINATED = 143
    """SIGTERM; the best plan was written."""


class UsageError(Exception):
    """An argument that the parser accepts and the command refuses; exit code 2."""


MAX_WIDTH = 100
"""Columns of any output, unless a command sets another width."""
MIN_WIDTH = 40


_COLOURS = re.compile(r"(\x1b\[[0-9;]*m)")


def write_out(text: str, *, colours: bool = False) -> None:
    """
    Write text to standard output, made printable, whatever names from files stand in it.

    What cannot be printed is escaped as in JSON, so JSON stays JSON. With ``colours`` a terminal's colours pass.
    """
    pieces = _COLOURS.split(text) if colours else [text]
    _write(sys.stdout, "".join(piece if i % 2 else printable(piece) for i, piece in enumerate(pieces)))


def write_bytes_out(data: bytes) -> None:
    """Write a document to standard output, byte for byte."""
    if sys.stdout is None:
        raise BadInput("standard output: is closed")
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        discard(sys.stdout)
    except OSError as error:
        discard(sys.stdout)
        raise BadInput(f"standard output: cannot be written: {error.strerror or error}") from None


def write_error(text: str) -> None:
    """Write lines to standard error, made printable; a closed stream is ignored."""
    try:
        _write(sys.stderr, "".join(f"{printable(line)}\n" for line in text.split("\n")))
    except BadInput:
        return


def discard(stream: TextIO) -> None:
    """Redirect a stream without a reader to the null device, for the interpreter's final flush too."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        return


def show(*parts: RenderableType, width: int | None = None, color: bool = True) -> None:
    """Print rich renderables to standard output."""
    console = make_console(width=width, color=color)
    for part in parts:
        console.print(part)
    buffer = console.file
    if isinstance(buffer, io.StringIO):
        lines = (line.rstrip() for line in buffer.getvalue().splitlines())
        write_out("\n".join(lines) + "\n", colours=console.color_system is not None)


def make_console(*, width: int | None = None, color: bool = True) -> Console:
    """
    Return a console that renders into memory for standard output.

    Markup, emoji and highlighting are off: names come from files and are printed as they are. Colours follow the
    terminal, NO_COLOR and FORCE_COLOR as rich does.
    """
    from rich.console import Console

    return Console(
        file=io.StringIO(),
        width=width or output_width(),
        force_terminal=True if color and _is_terminal(sys.stdout) else None,
        color_system="auto" if color else None,
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
        soft_wrap=False,
    )


def output_width() -> int:
    """Return the columns to use: the terminal's, COLUMNS, or 100; never more than 100."""
    return max(MIN_WIDTH, min(shutil.get_terminal_size((MAX_WIDTH, 24)).columns, MAX_WIDTH))


def can_unicode() -> bool:
    """Return whether standard output can encode block characters."""
    encoding = (getattr(sys.stdout, "encoding", None) or "ascii").lower().replace("-", "")
    return encoding.startswith("utf")


def _write(stream: TextIO | None, text: str) -> None:
    if stream is None:  # closed by the parent process
        raise BadInput("standard output: is closed")
    try:
        if not can_unicode():
            encoding = getattr(stream, "encoding", None) or "ascii"
            text = text.encode(encoding, "replace").decode(encoding)
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        discard(stream)
    except OSError as error:
        discard(stream)
        raise BadInput(f"standard output: cannot be written: {error.strerror or error}") from None


def _is_terminal(stream: TextIO | None) -> bool:
    return bool(getattr(stream, "isatty", lambda: False)())
