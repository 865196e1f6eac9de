"""The event loop of the service: seconds in which its process did not run are no seconds without a reply."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from placeopt import generate
from placeopt.formats import dumps

pytest.importorskip("uvicorn")
import httpx

from placeopt.service import Service
from placeopt.service.http import HttpServer, Limits, app, parse_address
from placeopt.service.http.arguments import read_body


def test_a_process_that_was_stopped_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after SIGSTOP, or on a machine that slept: a bind must not be refused with 503."""
    at_work, over, loops = threading.Event(), threading.Event(), []

    async def body(*how: Any) -> bytes:
        loops.append(asyncio.get_running_loop())
        return await read_body(*how)

    def stop() -> None:
        time.sleep(3.5)  # of the event loop, as by SIGSTOP
        over.set()

    address = parse_address("127.0.0.1:0", has_tokens=False)
    with (
        Service() as service,
        HttpServer(service, address, limits=Limits(request_s=3)) as server,
        httpx.Client(base_url=f"http://{server.address}", timeout=30) as client,
    ):
        service.call("put_cluster", dumps(generate("preempt", jobs=12, nodes=4, gpus=4, seed=0)))
        monkeypatch.setattr(app, "read_body", body)
        monkeypatch.setattr(service, "call", lambda *_, **__: at_work.set() or (over.wait() and b"{}"))
        with ThreadPoolExecutor(1) as pool:
            reply = pool.submit(client.get, "/v1/snapshot")
            at_work.wait()
            loops[0].call_soon_threadsafe(stop)
            assert reply.result().status_code == 200
