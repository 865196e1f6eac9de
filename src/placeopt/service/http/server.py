"""The HTTP side at work: uvicorn in a thread of its own, on a socket that is opened before it starts."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Self

import uvicorn

from placeopt.service.http import listen_address
from placeopt.service.http.app import make_app
from placeopt.service.http.limits import Limits

if TYPE_CHECKING:
    from placeopt.service.http.listen_address import Address
    from placeopt.service.http.metrics import Metrics
    from placeopt.service.http.tokens import Tokens
    from placeopt.service.service import Service


class _Server(uvicorn.Server):
    """A server that leaves signals to the command."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class HttpServer:
    """
    Answers the calls of a service over HTTP/1.1; a context manager.

    Parameters
    ----------
    service
        What is called.
    address
        Where to listen.
    tokens
        Who may call what; None: whoever can connect may call everything.
    limits
        Sizes and times.
    metrics
        Where requests are counted; None: in metrics of its own.

    Raises
    ------
    BadInput
        If it cannot listen there.
    """

    def __init__(
        self,
        service: Service,
        address: Address,
        *,
        tokens: Tokens | None = None,
        limits: Limits | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        limits = Limits() if limits is None else limits
        self._socket, self.address = listen_address.open_socket(address)
        self._file = listen_address.identity(self.address)
        app = make_app(service, address=self.address, tokens=tokens, limits=limits, metrics=metrics)
        config = uvicorn.Config(
            app,
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            backlog=listen_address.BACKLOG,
            limit_concurrency=limits.connections,
            timeout_keep_alive=limits.idle_s,
            timeout_graceful_shutdown=limits.stop_s,
            h11_max_incomplete_event_size=limits.header_bytes,
        )
        self._server = _Server(config)
        self._thread = threading.Thread(target=self._run, name="placeopt-http", daemon=True)
        self._over = threading.Event()
        self._service = service

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Listen, and return once requests are answered."""
        self._socket.listen(listen_address.BACKLOG)  # clients wait from here on and are not refused
        self._thread.start()

    def stop(self) -> None:
        """Take no more connections, end all waits for events, let requests under way end for ``stop_s``, and return."""
        self._service.news.stop_waiting()
        self._server.should_exit = True
        if self._thread.ident is not None:
            self._thread.join()
        self._socket.close()
        listen_address.remove(self.address, self._file)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until it is over; return whether it is."""
        return self._over.wait(timeout_s)

    def _run(self) -> None:
        try:
            asyncio.run(self._server.serve(sockets=[self._socket]))
        finally:
            self._over.set()
