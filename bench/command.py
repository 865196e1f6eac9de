"""Commands of the placeopt that is measured, run in this process: what starting one takes is a spec of its own."""

from __future__ import annotations

import contextlib
import io
import json
from typing import Any

from placeopt.cli.run import run


def placeopt(*words: str) -> str:
    """
    Run a command and return what it prints.

    Raises
    ------
    RuntimeError
        If it ends with another exit code than 0, or 1 for an answer of no; with the last line of what it says of it.
    """
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(words)
    if code not in (0, 1):
        said = text_of(err).strip().splitlines() or ["(nothing said)"]
        raise RuntimeError(f"placeopt {' '.join(words)}: exit code {code}: {said[-1]}")
    return text_of(out)


def text_of(stream: io.TextIOWrapper) -> str:
    """Return what was written to a stream, as text or as bytes below it."""
    stream.flush()
    stream.seek(0)
    return stream.read()


def placeopt_json(*words: str) -> Any:
    """Run a command with ``--json`` and return what it answers."""
    return json.loads(placeopt(*words, "--json", "--quiet"))
