"""``placeopt serve`` as a process of its own, and clients of it over HTTP."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import httpx

from placeopt.documents import dumps
from placeopt.model import Instance

SERVE = (sys.executable, "-m", "placeopt.cli", "serve")
SECRETS = {role: f"secret-of-{role}" for role in ("read", "other-read", "decide", "admin")}
JSON = {"content-type": "application/json"}
LONG_S = 120.0
"""Nothing takes so long, however busy the machine is."""


def token_file(folder: Path) -> Path:
    """Write a token for each of ``SECRETS``, and return the file."""
    path = folder / "tokens"
    lines = [
        f"{name.split('-')[-1]} {name} {hashlib.sha256(text.encode()).hexdigest()}" for name, text in SECRETS.items()
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    path.chmod(0o600)
    return path


class Served:
    """A service on a port with tokens; a context manager that kills it at the end."""

    def __init__(self, folder: Path, *options: str) -> None:
        command = [*SERVE, "--listen", "127.0.0.1:0", "--token-file", str(token_file(folder)), *options]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, env={**os.environ})
        assert self.process.stderr is not None
        line = self.process.stderr.readline().decode()
        assert " answers on " in line, line
        host, _, port = line.partition(" answers on ")[2].partition(";")[0].rpartition(":")
        self.address = host, int(port)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self.process:
            self.process.kill()

    def client(self, name: str) -> httpx.Client:
        """Return a client with a token."""
        host, port = self.address
        headers = {"authorization": f"Bearer {SECRETS[name]}"}
        return httpx.Client(base_url=f"http://{host}:{port}", timeout=LONG_S, headers=headers)

    def load(self, instance: Instance) -> None:
        """Load a cluster."""
        with self.client("admin") as admin:
            admin.put("/v1/cluster", content=dumps(instance), headers=JSON).raise_for_status()

    def send(self, name: str, path: str, body: object) -> socket.socket:
        """Send a POST without waiting for its reply; closing the socket is the client's end."""
        content = json.dumps(body).encode()
        sock = socket.create_connection(self.address, timeout=LONG_S)
        head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {SECRETS[name]}\r\n"
        head += f"content-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
        sock.sendall(head.encode() + content)
        return sock


def until(found: Callable[[], Any]) -> Any:
    """Return the first result that is true; fail after a time that is far too long."""
    end = time.monotonic() + LONG_S
    while not (result := found()):
        assert time.monotonic() < end, "did not happen"
        time.sleep(0.05)
    return result
