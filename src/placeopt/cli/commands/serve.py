"""``placeopt serve``: a live cluster as a service, over HTTP and as JSON lines."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from placeopt.cli.output import ExitCode, UsageError, write_error
from placeopt.cli.progress import Interruption

if TYPE_CHECKING:
    from placeopt.service.service import Service

SOCKET = "placeopt.sock"
POLL_S = 0.1


def serve(
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="unix:PATH|HOST:PORT",
            help=f"Where to answer HTTP; by default {SOCKET} in the folder of --state, or in the working folder. A "
            "port that other machines can reach needs --token-file.",
        ),
    ] = None,
    stdio: Annotated[
        bool, typer.Option("--stdio", help="Answer calls as JSON lines; HTTP only with --listen. Ends with its input.")
    ] = False,
    state: Annotated[
        str | None, typer.Option(metavar="DIR", help="Folder of the journal; without, nothing outlives the process.")
    ] = None,
    token_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="Who may call what: lines of ROLE NAME SHA256.")
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=NUMBER", help="A limit of HTTP, such as body_bytes; a wrong name lists all."),
    ] = None,
) -> int:
    """
    Keep a cluster and answer calls on it: changes, decisions, whole rounds, commits, questions.

    Every change is in the journal before it is answered. Ctrl-C and SIGTERM let calls under way end.
    """
    from placeopt.service.calls import CALLS
    from placeopt.service.service import Service

    if not stdio or listen is not None:
        try:
            import prometheus_client  # noqa: F401
            import starlette  # noqa: F401
            import uvicorn  # noqa: F401
        except ImportError as error:
            raise UsageError(f"serve: needs {error.name}; pip install 'placeopt[serve]'") from None
    folder = None if state is None else Path(state)
    with Interruption("the calls under way") as interruption:
        if stdio and listen is None:
            with Service(folder) as service:
                return _by_lines(service, interruption)
        from placeopt.service.limits import Limits
        from placeopt.service.listen_address import parse_address
        from placeopt.service.metrics import Metrics
        from placeopt.service.server import HttpServer
        from placeopt.service.tokens import read_tokens

        limits = Limits.of(limit or [])
        tokens = None if token_file is None else read_tokens(token_file)
        where = listen or f"unix:{(folder or Path()) / SOCKET}"
        address = parse_address(where, has_tokens=tokens is not None)
        metrics = Metrics(CALLS)
        with Service(folder) as service:
            service.on_round = lambda status: metrics.round_over(status.seconds, status.gap)
            service.on_jobs = metrics.bindings
            calls = tuple(CALLS.values())
            with HttpServer(service, calls, address, tokens=tokens, limits=limits, metrics=metrics) as server:
                write_error(f"listening on {server.address}")
                if stdio:
                    return _by_lines(service, interruption)
                while not interruption.event.wait(POLL_S) and not server.wait(0):
                    pass
        return ExitCode.INTERNAL if interruption.code is None else interruption.code


def _by_lines(service: Service, interruption: Interruption) -> int:
    """Answer JSON lines until standard input ends, or a signal comes."""
    from placeopt.service.stdio import serve_lines

    # Streams of their own: the thread may still hold them when the interpreter ends.
    lines = os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)

    def write(line: bytes) -> None:
        view = memoryview(line)
        while view:
            view = view[out.write(view) or 0 :]

    def run() -> None:
        with suppress(BrokenPipeError):  # the client is gone
            serve_lines(service, lines, write)

    reader = threading.Thread(target=run, name="placeopt-stdio", daemon=True)
    reader.start()
    while reader.is_alive() and interruption.code is None:
        reader.join(POLL_S)
    return ExitCode.DONE if interruption.code is None else interruption.code
