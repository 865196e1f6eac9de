"""``placeopt serve``: the service, over HTTP or as JSON lines."""

from __future__ import annotations

import os
import select
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from placeopt.cli.driving import TelemetryChoice, read_telemetry
from placeopt.cli.files import read_scheduling
from placeopt.cli.output import ExitCode, UsageError, write_error
from placeopt.cli.progress import Interruption
from placeopt.errors import BadInput

if TYPE_CHECKING:
    from placeopt.service.service import Service

SOCKET = "placeopt.sock"


def serve(
    *,
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="unix:PATH|HOST:PORT",
            help=f"Where to answer HTTP; by default {SOCKET} in the folder of --state, or in the working folder.",
        ),
    ] = None,
    stdio: Annotated[
        bool, typer.Option("--stdio", help="Answer JSON lines on standard input and output instead.")
    ] = False,
    state: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the journal; without it nothing outlives the process."),
    ] = None,
    host_driver: Annotated[
        bool,
        typer.Option(
            "--host-driver",
            help="Refuse decisions after each start until put_cluster has said what the host system runs.",
        ),
    ] = False,
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            help="Who runs where in rounds: a scheduling policy by name, or a file; by default the cluster's policy.",
        ),
    ] = None,
    telemetry: TelemetryChoice = None,
    token_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Who may call what: lines ROLE NAME SHA256. Needed on ports of a network."),
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=NUMBER", help="A limit of HTTP, such as body_bytes; a wrong name lists all."),
    ] = None,
) -> int:
    """
    Keep a cluster and answer calls on it: changes, decisions, whole rounds, commits, explanations.

    Changes are on disk before they are answered. After a crash the same command goes on at the same revision.
    """
    if stdio and (listen is not None or token_file is not None or limit):
        raise UsageError(
            "--stdio takes no --listen, --token-file or --limit: its only client is the one that started it"
        )
    if telemetry is not None and policy is None:
        raise UsageError("--telemetry goes with --policy: rounds of the cluster's own policy read no measures")
    from placeopt.service.service import Service

    scheduling = None if policy is None else read_scheduling(policy)
    with (
        Interruption(keeps="the state") as interruption,
        Service(state, host_driver=host_driver, scheduling=scheduling, telemetry=read_telemetry(telemetry)) as service,
    ):
        if stdio:
            _lines(service, interruption)
        else:
            where = listen or f"unix:{(state or Path()) / SOCKET}"
            _http(service, where, token_file, limit or [], interruption)
        return interruption.code or ExitCode.DONE


def _lines(service: Service, interruption: Interruption) -> None:
    """Answer lines until the input ends, the client closes its end, or a signal comes."""
    from placeopt.service.stdio import serve_lines

    # Streams of their own: the thread may still wait for a line when the process ends.
    lines = os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    over = threading.Event()

    def write(line: bytes) -> None:
        view = memoryview(line)
        while view:
            view = view[out.write(view) or 0 :]

    def run() -> None:
        try:
            serve_lines(service, lines, write)
        except BrokenPipeError:
            pass  # the client is gone
        finally:
            over.set()

    threading.Thread(target=run, name="placeopt-stdio", daemon=True).start()
    reader = select.poll()
    reader.register(out, 0)  # reports only that the client has closed its end
    while not over.wait(0.2) and not interruption.event.is_set() and not reader.poll(0):
        pass


def _http(
    service: Service, listen: str, token_file: Path | None, limits: list[str], interruption: Interruption
) -> None:
    """Answer HTTP until a signal comes."""
    try:
        from placeopt.service.http.limits import Limits
        from placeopt.service.http.listen_address import parse_address
        from placeopt.service.http.metrics import Metrics
        from placeopt.service.http.server import HttpServer
        from placeopt.service.http.tokens import read_tokens
    except ImportError as error:
        raise BadInput(f"serve: {error.name} is not installed; pip install 'placeopt[serve]', or use --stdio") from None
    tokens = None if token_file is None else read_tokens(str(token_file))
    address = parse_address(listen, has_tokens=tokens is not None)
    metrics = Metrics()
    service.on_round = lambda status: metrics.round_over(status.seconds, status.gap)
    service.on_jobs = metrics.bindings
    kept = Limits.of(limits)
    with HttpServer(service, address, tokens=tokens, limits=kept, metrics=metrics) as server:
        write_error(f"placeopt answers on {server.address}; revision {service.numbers.revision}")
        while not server.wait(0.2) and not interruption.event.is_set():
            pass
